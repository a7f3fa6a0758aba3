//! The rows of the shared fixture and of `testdata/overflow/more.jsonl`.

use crate::overflow::{ErrorClass, explain};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

extern crate std;
use std::{env, fs, path::PathBuf, println};

pub(super) struct Row {
    pub(super) id: String,
    pub(super) status: Option<u16>,
    pub(super) text: String,
    pub(super) class: ErrorClass,
    pub(super) window: Option<u64>,
}

fn class(name: &str) -> ErrorClass {
    match name {
        "OVER" => ErrorClass::Overflow,
        "BOTH" => ErrorClass::PromptPlusOutput,
        "OUTCAP" => ErrorClass::OutputCap,
        "RATE" => ErrorClass::Rate,
        "TIER" => ErrorClass::Tier,
        "BYTES" => ErrorClass::Bytes,
        "CHARS" => ErrorClass::Chars,
        "OTHER" => ErrorClass::Other,
        "OK" => ErrorClass::None,
        other => panic!("unknown class {other}"),
    }
}

fn rows(path: &PathBuf) -> Vec<Row> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
            let digits: String = row["status"].as_str().unwrap().chars().take_while(char::is_ascii_digit).collect();
            Row {
                id: row["id"].as_str().unwrap().to_string(),
                status: digits.parse().ok(),
                text: row["text"].as_str().unwrap().to_string(),
                class: class(row["class"].as_str().unwrap()),
                window: row["window"].as_u64(),
            }
        })
        .collect()
}

/// The shared folder, if this checkout has one beside it.
pub(super) fn shared_root() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    [env::var_os("FORESHORTEN_SHARED").map(PathBuf::from), Some(beside)]
        .into_iter()
        .flatten()
        .find(|root| root.is_dir())
}

/// The shared rows; none where the shared folder is absent.
pub(super) fn shared() -> Vec<Row> {
    let Some(path) = shared_root().map(|root| root.join("cases/overflow_errors.jsonl")).filter(|path| path.is_file())
    else {
        assert!(env::var_os("CI").is_none(), "skipped in CI: the shared folder is not there");
        println!("SKIPPED: no shared/cases/overflow_errors.jsonl; set FORESHORTEN_SHARED");
        return Vec::new();
    };
    rows(&path)
}

/// Our own rows.
pub(super) fn own() -> Vec<Row> {
    rows(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/overflow/more.jsonl"))
}

pub(super) fn check(rows: &[Row]) {
    let mut wrong = Vec::new();
    for row in rows {
        let found = explain(row.status, &row.text);
        if (found.class, found.window) != (row.class, row.window) {
            wrong.push(format!(
                "{}: {:?} {:?} for {:?} {:?}: {}\n    {}",
                row.id, found.class, found.window, row.class, row.window, row.text, found.why
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows wrong:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[test]
fn every_row_of_the_fixture() {
    check(&shared());
}

#[test]
fn every_row_of_our_own() {
    check(&own());
}

#[test]
fn an_input_limit_is_told_from_a_window() {
    for text in [
        "Current message (1150000 tokens) exceeds budget (975500 tokens)",
        "Input length 140200 exceeds the maximum allowed input length of 131600 tokens",
        "`inputs` must have less than 1100 tokens. Given: 1900",
        "Range of input length should be [1, 98304]",
        "prompt token count of 139000 exceeds the limit of 64500",
        "The input token count (1190321) exceeds the maximum number of tokens allowed (1048575).",
    ] {
        assert!(explain(Some(400), text).input_limit, "{text}");
    }
    for text in [
        "maximum context length is 9001 tokens. However, your messages resulted in 9777 tokens",
        "prompt is too long: 200149 tokens > 200100 maximum",
        "Prompt contains 140100 tokens, too large for model with 131500 maximum context length",
        "Input length (11700) exceeds model's maximum context length (4200).",
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3500 `inputs` tokens and 1024 `max_new_tokens`",
        "Your request exceeded model token limit: 262144 (requested: 291351)",
    ] {
        let found = explain(Some(400), text);
        assert!(found.window.is_some() && !found.input_limit, "{text}");
    }
}

#[test]
fn a_missing_body_says_that_it_is_a_guess() {
    for (status, text) in [(400, ""), (413, " "), (400, "400 status code (no body)")] {
        let found = explain(Some(status), text);
        assert!(found.is_overflow() && found.body_missing && found.window.is_none());
    }
    assert!(!explain(Some(400), "prompt is too long").body_missing);
}
