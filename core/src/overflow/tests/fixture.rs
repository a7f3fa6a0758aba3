//! The rows of the shared fixture and of `testdata/overflow/more.jsonl`.

use crate::overflow::{ErrorClass, explain};
use alloc::{format, string::{String, ToString}, vec::Vec};

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
    text.lines().filter(|line| !line.trim().is_empty()).map(|line| {
        let row: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
        let digits: String = row["status"].as_str().unwrap().chars().take_while(char::is_ascii_digit).collect();
        Row {
            id: row["id"].as_str().unwrap().to_string(),
            status: digits.parse().ok(),
            text: row["text"].as_str().unwrap().to_string(),
            class: class(row["class"].as_str().unwrap()),
            window: row["window"].as_u64(),
        }
    }).collect()
}

/// The shared rows; none where the shared folder is absent.
pub(super) fn shared() -> Vec<Row> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let places = [env::var_os("FORESHORTEN_SHARED").map(PathBuf::from), Some(root.join("../../shared"))];
    let found = places.into_iter().flatten().map(|place| place.join("cases/overflow_errors.jsonl")).find(|path| path.is_file());
    found.map_or_else(|| {
        println!("SKIPPED: no shared/cases/overflow_errors.jsonl; set FORESHORTEN_SHARED");
        Vec::new()
    }, |path| rows(&path))
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
            wrong.push(format!("{}: {:?} {:?} for {:?} {:?}: {}\n    {}", row.id, found.class, found.window, row.class, row.window, row.text, found.why));
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
