//! Every invariant, over every session in `testdata/` and `../shared/transcripts/`, turn by turn to the end, at six
//! windows, with and without a summarizer.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};

use foreshorten::formats::{Conversation, read_session};
use foreshorten_core::{Policy, PolicyConfig, config, transcript::Transcript as _};
use foreshorten_testkit::{Answers, Growing, Session};
use rayon::prelude::*;

const WINDOWS: [u64; 6] = [4_000, 8_000, 16_000, 32_000, 64_000, 200_000];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn sessions(folder: &Path) -> Vec<(String, Conversation)> {
    let mut paths = Vec::new();
    files(folder, &mut paths);
    paths.sort();
    let read = |path: &PathBuf| {
        let name = path.display().to_string();
        read_session(std::fs::read(path).unwrap(), None).map(|all| (name, all)).ok()
    };
    paths
        .par_iter()
        .filter_map(read)
        .flat_map(|(name, all)| all.into_par_iter().map(move |one| (format!("{name} {}", one.name), one)))
        .collect()
}

/// Plays one session to the end; answers (turns, passes, turns that cannot fit).
fn play(conversation: &Conversation, policy: &Policy, window: u64, answers: Answers) -> (usize, usize, usize) {
    let record = Growing { whole: &conversation.transcript, len: 0 };
    let mut session = Session::new(policy, record, window, answers);
    let weigher = &policy.config().weigher;
    session.turn.schema_tokens = conversation.tools.iter().map(|tool| u64::from(weigher.framed(tool))).sum();
    session.stride = 16;
    let mut floors = 0;
    let mut calls = conversation.calls.clone();
    calls.push(conversation.transcript.len());
    for (turn, &len) in calls.iter().enumerate() {
        session.transcript.len = len;
        session.run();
        floors += usize::from(session.compactor.outcome().cannot_fit.is_some());
        if turn % 50 == 49 {
            session.restart();
        }
    }
    (calls.len(), session.passes, floors)
}

fn play_all(sessions: &[(String, Conversation)]) {
    let default = PolicyConfig::default().build().unwrap();
    let five = PolicyConfig { stages: config::five_stage_pipeline(), ..PolicyConfig::default() }.build().unwrap();
    let runs: Vec<_> = sessions
        .iter()
        .flat_map(|session| WINDOWS.map(|window| (session, window)))
        .flat_map(|(session, window)| {
            [(&default, Answers::NoSummarizer), (&default, Answers::Extractive), (&five, Answers::Extractive)]
                .map(|(policy, answers)| (session, window, policy, answers))
        })
        .collect();
    let played: Vec<(usize, usize, usize)> = runs
        .par_iter()
        .map(|((name, conversation), window, policy, answers)| {
            let run = std::panic::AssertUnwindSafe(|| play(conversation, policy, *window, *answers));
            std::panic::catch_unwind(run).unwrap_or_else(|_| panic!("in {name} at {window} with {answers:?}"))
        })
        .collect();
    let sum = |of: fn(&(usize, usize, usize)) -> usize| played.iter().map(of).sum::<usize>();
    println!(
        "{} sessions, {} runs, {} turns, {} passes, {} turns above the floor, 0 violations",
        sessions.len(),
        runs.len(),
        sum(|run| run.0),
        sum(|run| run.1),
        sum(|run| run.2)
    );
    assert!(sum(|run| run.1) > 0, "no pass at all");
}

#[test]
fn every_invariant_holds_over_our_own_sessions() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/sessions");
    let sessions = sessions(&folder);
    assert!(sessions.len() >= 10, "testdata/sessions is not there");
    play_all(&sessions);
}

#[test]
fn every_invariant_holds_over_recorded_sessions() {
    let shared = std::env::var_os("FORESHORTEN_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let folder = shared.join("transcripts");
    if !folder.is_dir() {
        assert!(std::env::var_os("CI").is_none(), "SKIPPED in CI: {} is not there", folder.display());
        println!("SKIPPED: {} is not there, so no recorded session was played", folder.display());
        return;
    }
    let sessions = sessions(&folder);
    assert!(sessions.len() >= 50, "only {} sessions were read", sessions.len());
    play_all(&sessions);
}
