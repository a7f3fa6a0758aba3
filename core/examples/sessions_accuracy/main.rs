//! How near the estimate is to what providers counted, over recorded sessions: every call of every session is estimated
//! before its count is taken in.
//!
//! ```text
//! cargo run --release -p foreshorten-core --example sessions_accuracy -- [FOLDER]
//! ```
//!
//! FOLDER holds a folder for each format (`claude-code`, `pi`, `trae`, `codex`, `gemini-cli`); where none is named, it is
//! `transcripts` in `$FORESHORTEN_SHARED`, or in `../shared`. The tables it prints are those of
//! `docs/calibration-sessions.md`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a report is printed")]

mod figures;
mod play;
mod sessions;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use figures::Errors;
use foreshorten_core::estimate::ByteEstimator;
use play::{Found, play};
use sessions::{Event, Session};

/// A session of fewer calls says little of a session.
const LEAST_CALLS: usize = 5;

fn main() -> ExitCode {
    let named = env::args().nth(1).map(PathBuf::from);
    let shared = || env::var_os("FORESHORTEN_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    let folder = named.unwrap_or_else(|| shared().join("transcripts"));
    let sessions = read_all(&folder);
    if sessions.is_empty() {
        eprintln!(
            "SKIPPED: no recorded sessions in {}. Name a folder that holds some, or set FORESHORTEN_SHARED.",
            folder.display()
        );
        return ExitCode::SUCCESS;
    }
    let played: Vec<(&Session, Found, Found)> = sessions
        .iter()
        .map(|session| {
            let own = ByteEstimator::for_model(&session.model);
            (session, play(session, own), play(session, ByteEstimator::BytesPer4))
        })
        .collect();
    calls(&played);
    passes(&played);
    cuts(&played);
    ExitCode::SUCCESS
}

/// The sessions below a folder, by format and name.
fn read_all(folder: &Path) -> Vec<Session> {
    let mut sessions = Vec::new();
    for format in ["claude-code", "pi", "trae", "codex", "gemini-cli"] {
        let Ok(files) = fs::read_dir(folder.join(format)) else { continue };
        let mut files: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
        files.sort();
        for path in files {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if let Ok(file) = fs::read_to_string(&path) {
                sessions.extend(sessions::read(format, &stem, &file));
            }
        }
    }
    let calls = |session: &Session| session.events.iter().filter(|e| matches!(e, Event::Call(1..))).count();
    // Made-up sessions, of which nobody counted anything, have round counts or none.
    sessions.retain(|session| {
        calls(session) >= LEAST_CALLS && !session.name.contains("synthetic") && !session.name.contains("zoo")
    });
    sessions
}

fn row(name: &str, all: &Errors, new: &Errors) {
    println!(
        "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        all.len(),
        all.quantile(500),
        all.quantile(900),
        all.quantile(950),
        all.worst(),
        new.len(),
        new.quantile(500),
        new.quantile(900),
        new.quantile(950),
    );
}

fn calls(played: &[(&Session, Found, Found)]) {
    println!("### Every call\n");
    println!(
        "| session, estimator | calls | median | p90 | p95 | worst | a twentieth or more new | median | p90 | p95 |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut pooled = <[(Errors, Errors); 2]>::default();
    for (session, own, bytes4) in played {
        row(&format!("{}, {}", session.name, ByteEstimator::for_model(&session.model)), &own.all, &own.new);
        for (sum, found) in pooled.iter_mut().zip([own, bytes4]) {
            sum.0.add(&found.all);
            sum.1.add(&found.new);
        }
    }
    row("**all, by model**", &pooled[0].0, &pooled[0].1);
    row("**all, bytes4**", &pooled[1].0, &pooled[1].1);
}

fn passes(played: &[(&Session, Found, Found)]) {
    println!("\n### The first call after a compaction of the recorded agent\n");
    println!("| session | estimator | counted | estimated | error | by the ratio alone | error |");
    println!("|---|---|--:|--:|--:|--:|--:|");
    for (session, own, bytes4) in played {
        for (name, found) in [(ByteEstimator::for_model(&session.model).name(), own), ("bytes4", bytes4)] {
            for &(estimate, ratio_alone, truth) in &found.passes {
                let error = |estimate| {
                    let mut errors = Errors::default();
                    errors.note(estimate, truth);
                    errors.worst()
                };
                println!(
                    "| {} | {name} | {truth} | {estimate} | {} % | {ratio_alone} | {} % |",
                    session.name,
                    error(estimate),
                    error(ratio_alone)
                );
            }
        }
    }
}

fn cuts(played: &[(&Session, Found, Found)]) {
    println!("\n### Views cut down to the head and a tail of 12,000 tokens, the note left out of the sum\n");
    println!("| estimator | views | median | p90 | p95 | worst |");
    println!("|---|--:|--:|--:|--:|--:|");
    let mut pooled = <[Errors; 4]>::default();
    for (_, own, bytes4) in played {
        for (sum, found) in pooled.iter_mut().zip([&own.cut, &own.cut_by_ratio, &bytes4.cut, &bytes4.cut_by_ratio]) {
            sum.add(found);
        }
    }
    let names =
        ["by model, measured weights", "by model, ratio alone", "bytes4, measured weights", "bytes4, ratio alone"];
    for (name, errors) in names.into_iter().zip(&pooled) {
        println!(
            "| {name} | {} | {} | {} | {} | {} |",
            errors.len(),
            errors.quantile(500),
            errors.quantile(900),
            errors.quantile(950),
            errors.worst()
        );
    }
}
