//! `estimate` and `explain-error`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

use crate::common::talk::{Protocol, Talk};
use crate::common::{Room, foreshorten, session, shared};
use serde_json::{Value, json};

const SESSIONS: [&str; 10] = [
    "coding-agent.claude-code.jsonl",
    "codex.jsonl",
    "gemini-cli.json",
    "huge-result.openai-chat.json",
    "mixed.anthropic-messages.json",
    "openhands.json",
    "orphans.anthropic-messages.json",
    "research.openai-responses.json",
    "support.openai-chat.json",
    "swe-agent.traj",
];

fn sum(list: &Value, field: &str) -> u64 {
    list.as_array().unwrap().iter().map(|row| row[field].as_u64().unwrap()).sum()
}

#[test]
fn the_numbers_add_up() {
    for name in SESSIONS {
        let path = session(name);
        let found = foreshorten(["estimate", "--json", path.to_str().unwrap()], b"").good().json();
        let all = |found: &Value| found.as_array().cloned().unwrap_or_else(|| vec![found.clone()]);
        for one in all(&found) {
            let tokens = one["tokens"].as_u64().unwrap();
            assert_eq!(sum(&one["kinds"], "tokens") + one["schemas"]["tokens"].as_u64().unwrap(), tokens, "{name}");
            assert_eq!(sum(&one["kinds"], "entries"), one["entries"].as_u64().unwrap(), "{name}");
            let of_kind = |kinds: &[&str], field: &str| -> u64 {
                let rows = one["kinds"].as_array().unwrap().iter();
                rows.filter(|row| kinds.iter().any(|kind| row["name"] == *kind))
                    .map(|row| row[field].as_u64().unwrap())
                    .sum()
            };
            let by_tool = sum(&one["tools"], "tokens");
            assert!(by_tool <= of_kind(&["tool_call", "tool_result"], "tokens"), "{name}: orphans are no tool's");
            assert!(by_tool >= of_kind(&["tool_call"], "tokens"), "{name}");
            let largest: Vec<u64> =
                one["largest"].as_array().unwrap().iter().map(|row| row["tokens"].as_u64().unwrap()).collect();
            assert!(largest.is_sorted_by(|a, b| a >= b) && largest.len() <= 10, "{name}: {largest:?}");
            assert!(largest.iter().sum::<u64>() <= tokens, "{name}");
            for row in one["largest"].as_array().unwrap() {
                assert!(row["entry"].is_u64() && row["kind"].is_string(), "{row}");
                assert!(row["tool"].is_string() || row["tool"].is_null(), "{row}");
            }
        }
    }
}

#[test]
fn the_table_says_the_same_as_the_json() {
    let path = session("support.openai-chat.json");
    let path = path.to_str().unwrap();
    let found = foreshorten(["estimate", "--json", path], b"").good().json();
    let table = foreshorten(["estimate", path], b"").good();
    let plain = table.text().replace(',', "");
    for row in found["kinds"].as_array().unwrap().iter().chain(found["tools"].as_array().unwrap()) {
        let (name, tokens) = (row["name"].as_str().unwrap(), row["tokens"].to_string());
        let line = plain.lines().find(|line| line.split_whitespace().next() == Some(name));
        assert!(line.is_some_and(|line| line.split_whitespace().nth(1) == Some(&tokens)), "{name} {tokens}: {plain}");
    }
    for word in ["by kind", "by tool", "largest entries", "tool schemas"] {
        assert!(table.text().contains(word), "{word}");
    }
}

#[test]
fn an_estimate_is_what_compact_counts() {
    for protocol in Protocol::ALL {
        let room = Room::new();
        let body = Talk::new(protocol).turns(6, 2_000).body();
        let path = room.write("body.json", &body);
        let found = foreshorten(["estimate", "--json", path.to_str().unwrap()], b"").good().json();
        let done = room.compact(100_000, &body, &["--no-recall-tool"]).good();
        assert_eq!(found["tokens"].as_u64(), Some(done.number("tokens_before")), "{protocol:?}");
        assert_eq!(found["tools"][0]["name"], "read_log");
        assert_eq!(found["tools"][0]["entries"], 12);
        assert_eq!(found["schemas"]["tools"], 1);
    }
}

#[test]
fn pictures_cost_what_the_flag_says() {
    let mut talk = Talk::new(Protocol::Anthropic);
    talk.call("shot", "screenshot", json!({}));
    let picture = talk.picture(&"iVBORw0KGgoA".repeat(5_000));
    talk.result("shot", json!([picture]));
    let room = Room::new();
    let path = room.write("body.json", talk.body());
    let tokens = |more: &[&str]| {
        let args = [&["estimate", "--json", path.to_str().unwrap()], more].concat();
        foreshorten(args, b"").good().json()["tokens"].as_u64().unwrap()
    };
    assert_eq!(tokens(&["--image-tokens", "1000"]), tokens(&[]) - 600);
    assert!(tokens(&["--weigher", "o200k"]) < tokens(&[]) + 1_000);
    foreshorten(["estimate", path.to_str().unwrap(), "--weigher", "abacus"], b"").exits(2).says(&["weigher", "o200k"]);
}

#[test]
fn control_characters_of_a_session_do_not_reach_the_terminal() {
    let room = Room::new();
    let body = json!([{"role": "user", "content": "\u{1b}[2J\u{7}red \u{9b}31m"}]);
    let path = room.write("body.json", body.to_string());
    let table = foreshorten(["estimate", path.to_str().unwrap()], b"").good();
    assert!(!table.text().chars().any(|c| c.is_control() && c != '\n'), "{:?}", table.text());
}

#[test]
fn a_file_that_cannot_be_read_is_exit_3() {
    foreshorten(["estimate", "no-such-file"], b"").exits(3).says(&["no-such-file"]);
    let folder = session("");
    foreshorten(["estimate", folder.to_str().unwrap()], b"").exits(3);
    foreshorten(["estimate"], b"").exits(2);
}

/// The class as `explain-error` names it.
fn class(name: &str) -> &str {
    match name {
        "OVER" => "overflow",
        "BOTH" => "prompt_plus_output",
        "OUTCAP" => "output_cap",
        "RATE" => "rate",
        "TIER" => "tier",
        "BYTES" => "bytes",
        "CHARS" => "chars",
        "OTHER" => "other",
        "OK" => "none",
        other => panic!("unknown class {other}"),
    }
}

fn every_row(rows: &str) -> usize {
    let rows: Vec<Value> =
        rows.lines().filter(|line| !line.trim().is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect();
    for row in &rows {
        let status: String = row["status"].as_str().unwrap().chars().take_while(char::is_ascii_digit).collect();
        let mut args = vec!["explain-error", "--json"];
        if !status.is_empty() {
            args.extend(["--status", &status]);
        }
        let found = foreshorten(args, row["text"].as_str().unwrap().as_bytes()).good().json();
        assert_eq!(found["class"], class(row["class"].as_str().unwrap()), "{row}");
        assert_eq!(found["window"], row["window"], "{row}");
        assert!(found["why"].as_str().is_some_and(|why| !why.is_empty()), "{row}");
    }
    rows.len()
}

#[test]
fn every_row_of_the_shared_errors_is_explained() {
    let Some(path) = shared().map(|shared| shared.join("cases/overflow_errors.jsonl")) else { return };
    assert_eq!(every_row(&std::fs::read_to_string(path).unwrap()), 70);
}

#[test]
fn every_row_of_our_own_errors_is_explained() {
    let path = session("").join("../overflow/more.jsonl");
    assert!(every_row(&std::fs::read_to_string(path).unwrap()) > 0);
}

#[test]
fn an_error_is_explained_for_people_too() {
    let error = br#"{"error":{"message":"prompt is too long: 214315 tokens > 204798 maximum"}}"#;
    let found = foreshorten(["explain-error", "--status", "400"], error).good();
    let lines: Vec<&str> = found.text().lines().collect();
    assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["class", "overflow"]);
    assert!(lines[1].contains("204798") && lines[2].starts_with("why"), "{lines:?}");
    for odd in [&b""[..], b"\xff\xfe\x00", &[b'9'; 300_000], b"{\"error\":"] {
        foreshorten(["explain-error", "--json"], odd).good().json();
    }
    foreshorten(["explain-error", "--status", "70000"], b"").exits(2).says(&["--status"]);
}
