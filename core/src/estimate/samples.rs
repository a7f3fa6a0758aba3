//! The estimators against true counts: 22 kinds of text by 11 tokenizers, none of it fitted.
//!
//! The samples and the table of true counts stay outside the repository: the folder is the environment's
//! `FORESHORTEN_SHARED`, or a `shared` beside one of the folders above this crate. Without it the test
//! says so and passes.

extern crate std;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::prelude::rust_2024::*;
use std::vec;
use std::{env, fs, io, println};

use super::{ByteEstimator, Family};

/// Each family, its column in the table, and what this test holds it to, in per cent: the mean error, and
/// the furthest it may be too low and too high on any one sample.
const BOUNDS: [(Family, &str, i64, i64, i64); 11] = [
    (Family::O200k, "o200k", 8, -6, 33),
    (Family::Cl100k, "cl100k", 8, -8, 24),
    (Family::Llama3, "llama3", 7, -9, 26),
    (Family::Qwen25, "qwen2.5", 7, -8, 25),
    (Family::Qwen35, "qwen3.5", 8, -7, 34),
    (Family::Gemma3, "gemma3", 6, -6, 21),
    (Family::Claude, "ctok4.7", 6, -13, 18),
    (Family::Claude3, "ctok3.0", 6, -10, 38),
    (Family::DeepSeek, "dsV3.2", 6, -7, 22),
    (Family::Mistral, "tekken", 8, -7, 25),
    (Family::Glm, "glm4.7", 8, -10, 33),
];

fn shared() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = match env::var_os("FORESHORTEN_SHARED") {
        Some(named) => vec![PathBuf::from(named)],
        None => here.ancestors().map(|folder| folder.join("shared")).collect(),
    };
    folders.into_iter().find(|folder| folder.join("reference/tokens.md").is_file())
}

/// The cells of the lines of a Markdown table.
fn rows(markdown: &str) -> impl Iterator<Item = Vec<&str>> {
    let lines = markdown.lines().filter(|line| line.starts_with('|'));
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
}

/// "0.194" as 194.
fn thousandths(cell: &str) -> Option<i64> {
    let (whole, part) = cell.split_once('.')?;
    if part.len() == 3 { Some(whole.parse::<i64>().ok()? * 1000 + part.parse::<i64>().ok()?) } else { None }
}

#[test]
fn samples_are_estimated_within_the_stated_bounds() {
    let Some(shared) = shared() else {
        // Straight to the descriptor: the harness swallows what a passing test prints.
        assert!(env::var_os("CI").is_none(), "skipped in CI: the shared folder is not there");
        let _ = writeln!(io::stderr(), "SKIPPED: no shared/reference/tokens.md; set FORESHORTEN_SHARED to its folder");
        return;
    };
    let markdown = fs::read_to_string(shared.join("reference/tokens.md")).unwrap();
    let head = rows(&markdown).find(|row| row[0] == "kind").unwrap();
    let kinds: Vec<Vec<&str>> =
        rows(&markdown).filter(|row| row.len() == head.len() && row[1].parse::<usize>().is_ok()).collect();
    assert_eq!(kinds.len(), 22);

    let texts = kinds.iter().map(|row| {
        let text = fs::read_to_string(shared.join("samples").join(row[0]).with_extension("txt")).unwrap();
        assert_eq!(text.len().to_string(), row[1], "{}", row[0]);
        text
    });
    let texts: Vec<String> = texts.collect();

    let mut table = vec![kinds.iter().map(|row| std::format!("{:>15}", row[0])).collect::<Vec<_>>().concat()];
    let mut broken = Vec::new();
    for (family, column, mean_bound, low_bound, high_bound) in BOUNDS {
        let column = head.iter().position(|name| *name == column).unwrap();
        let errors = |estimator: ByteEstimator| -> Vec<i64> {
            let one = |(text, row): (&String, &Vec<&str>)| {
                // In thousandths of a token, as exact as the table is.
                let truth = thousandths(row[column]).unwrap() * text.len() as i64;
                // Per mille, signed.
                (i64::from(estimator.tokens(text)) * 1000 - truth) * 1000 / truth
            };
            texts.iter().zip(&kinds).map(one).collect()
        };
        for estimator in [ByteEstimator::BytesPer4, ByteEstimator::Automaton(family)] {
            let errors = errors(estimator);
            let mean = errors.iter().map(|error| error.abs()).sum::<i64>() / errors.len() as i64;
            let (low, high) = (*errors.iter().min().unwrap(), *errors.iter().max().unwrap());
            let percent = |error: i64| std::format!("{:+}.{}", error / 10, error.abs() % 10);
            let mut line = std::format!("{:>8} {:>8}:", family.name(), estimator.name());
            write!(line, " mean {:>5} low {:>6} high {:>6} |", percent(mean), percent(low), percent(high)).unwrap();
            for error in &errors {
                write!(line, " {:>4}", (error + 5 * error.signum()) / 10).unwrap();
            }
            table.push(line);
            if estimator != ByteEstimator::BytesPer4
                && (mean > mean_bound * 10 || low < low_bound * 10 || high > high_bound * 10)
            {
                broken.push(family.name());
            }
        }
    }
    println!("{}", table.join("\n"));
    assert!(broken.is_empty(), "out of bounds: {broken:?}");
}
