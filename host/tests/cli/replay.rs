//! `replay`: the main job.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

use std::path::Path;

use crate::common::talk::{Protocol, Talk};
use crate::common::{Room, Run, foreshorten, session, shared};
use serde_json::Value;

fn replay(file: &Path, window: u64, more: &[&str]) -> Run {
    let window = window.to_string();
    let args = [&["replay", file.to_str().unwrap(), "--window", &window], more].concat();
    foreshorten(args, b"")
}

fn shipped() -> std::path::PathBuf {
    session("coding-agent.claude-code.jsonl")
}

#[test]
fn the_shipped_session_has_passes_and_is_measured_against_three_baselines() {
    let done = replay(&shipped(), 64_000, &[]).good();
    let text = done.text();
    for word in [
        "claude-code",
        "looks like",
        "because",
        "reason",
        "tokens before → after",
        "decided",
        "from entry",
        "prefix kept",
        "this policy",
        "no compaction",
        "drop oldest",
        "keep newest 3",
        "turns",
        "passes",
        "tokens sent",
        "cached tokens",
        "uncached tokens",
        "cost",
        "offload_tool_results",
        "Simulated with price row",
    ] {
        assert!(text.contains(word), "`{word}` is not in:\n{text}");
    }
    assert!(text.contains(" of 2026"), "the price table is dated:\n{text}");
    assert!(!text.contains('\u{1b}'), "no colours off a terminal");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(!text.contains("note    0 ") && !text.contains(" 0 results") && !text.contains(" 0 calls"), "{text}");
}

#[test]
fn the_json_has_the_documented_fields_and_they_agree() {
    for summarizer in ["none", "extractive"] {
        let found = replay(&shipped(), 32_000, &["--json", "--summarizer", summarizer]).good().json();
        assert_eq!(found["schema"], "foreshorten.replay/1");
        let one = &found["sessions"][0];
        for field in ["session", "format", "format_reason", "policy"] {
            assert!(one[field].is_string(), "{field}");
        }
        for field in ["window", "usable", "trigger", "target"] {
            assert!(one[field].is_u64(), "{field}");
        }
        for field in ["turns", "passes", "baselines", "levels", "notes"] {
            assert!(one[field].is_array(), "{field}");
        }
        let number = |value: &Value| value.as_u64().unwrap();
        let turns = one["turns"].as_array().unwrap();
        assert_eq!(turns.len(), 129);
        let sum = |field: &str| turns.iter().map(|turn| number(&turn[field])).sum::<u64>();
        let totals = &one["totals"];
        assert_eq!(number(&totals["turns"]), 129);
        assert_eq!(number(&totals["sent_tokens"]), sum("tokens"));
        assert_eq!(number(&totals["bytes"]), sum("bytes"));
        assert_eq!(number(&totals["prefix_bytes"]), sum("prefix_kept_bytes"));
        let billed = sum("cached") + sum("written") + sum("uncached");
        assert_eq!(number(&totals["cached"]) + number(&totals["written"]) + number(&totals["uncached"]), billed);
        assert_eq!(billed, sum("tokens"), "every token sent is billed once");
        for (at, turn) in turns.iter().enumerate() {
            assert_eq!(number(&turn["turn"]), at as u64 + 1);
            assert!(number(&turn["tokens"]) <= number(&one["usable"]), "{turn}");
            assert!(number(&turn["prefix_kept_bytes"]) <= number(&turn["bytes"]), "{turn}");
        }
        let passes = one["passes"].as_array().unwrap();
        assert!(passes.len() > 3);
        for pass in passes {
            assert!(number(&pass["tokens_after"]) < number(&pass["tokens_before"]), "{pass}");
            assert!(number(&pass["tokens_before"]) >= number(&one["trigger"]), "{pass}");
            assert!(pass["reasons"].as_array().is_some_and(|reasons| !reasons.is_empty()), "{pass}");
            assert!(
                pass["decided"].as_object().is_some_and(|decided| decided.values().any(|it| number(it) > 0)),
                "{pass}"
            );
            assert!(pass["first_changed"].is_u64() && pass["ladder"].is_boolean(), "{pass}");
            assert!(number(&pass["prefix_kept_bytes"]) <= number(&pass["bytes_before"]), "{pass}");
        }
        let baselines = one["baselines"].as_array().unwrap();
        let names: Vec<&str> = baselines.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["no compaction", "drop oldest", "keep newest 3"]);
        for baseline in baselines {
            let costs = baseline["cumulative_microdollars"].as_array().unwrap();
            assert_eq!(costs.len(), 129);
            assert!(costs.is_sorted_by_key(number));
        }
    }
}

#[test]
fn every_turn_prints_a_row_for_every_call() {
    let done = replay(&shipped(), 64_000, &["--every-turn"]).good();
    let first = |line: &str| line.split_whitespace().next().unwrap_or_default().trim_start_matches('*').parse::<u64>();
    let rows: Vec<u64> = done.text().lines().take_while(|line| !line.contains("a pass ran")).flat_map(first).collect();
    assert_eq!(rows, (1..=129).collect::<Vec<u64>>());
    let marked = |line: &str| line.trim_start().starts_with('*') && first(line).is_ok();
    assert!(done.text().lines().any(marked), "turns with a pass are marked");
}

#[test]
fn the_page_is_one_file_that_asks_for_nothing_else() {
    let room = Room::new();
    let page = room.path("page.html");
    let done = replay(&shipped(), 64_000, &["--html", page.to_str().unwrap()]).good();
    assert!(done.text().contains("this policy"), "the table is still printed");
    let html = std::fs::read_to_string(page).unwrap();
    assert_eq!(room.names(), ["page.html"]);
    assert!(html.starts_with("<!doctype html>") || html.starts_with("<!DOCTYPE html>"));
    for outside in [
        "src=\"http",
        "href=\"http",
        "src='http",
        "@import",
        "url(http",
        "<link",
        "<iframe",
        "fetch(",
        "XMLHttp",
        "//cdn",
    ] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(html.matches("<svg").count() >= 3 || html.contains("<canvas"), "plots");
    let gone = room.path("no/page.html");
    replay(&shipped(), 64_000, &["--html", gone.to_str().unwrap()]).exits(1).says(&["page.html", "cannot be written"]);
}

#[test]
fn several_files_folders_and_patterns_are_taken_together() {
    let room = Room::new();
    std::fs::create_dir_all(room.path("in/deeper")).unwrap();
    for (name, protocol) in
        [("in/a.json", Protocol::Chat), ("in/b.json", Protocol::Anthropic), ("in/deeper/c.json", Protocol::Responses)]
    {
        room.write(name, Talk::new(protocol).turns(10, 1_000).body());
    }
    let names = |run: &Run| -> Vec<String> {
        let found: Value = run.json();
        let name =
            |one: &Value| Path::new(one["session"].as_str().unwrap()).file_name().unwrap().to_str().unwrap().to_owned();
        found["sessions"].as_array().unwrap().iter().map(name).collect()
    };
    let folder = replay(&room.path("in"), 8_000, &["--json"]).good();
    assert_eq!(names(&folder), ["a.json", "b.json", "c.json"]);
    let pattern = replay(&room.path("in/*.json"), 8_000, &["--json"]).good();
    assert_eq!(names(&pattern), ["a.json", "b.json"]);
    let deep = replay(&room.path("in/**/*.json"), 8_000, &["--json"]).good();
    assert_eq!(names(&deep), ["a.json", "b.json", "c.json"]);
    let b = room.path("in/b.json");
    let two = replay(&room.path("in/a.json"), 8_000, &["--json", b.to_str().unwrap()]).good();
    assert_eq!(names(&two), ["a.json", "b.json"]);
    let table = replay(&room.path("in"), 8_000, &[]).good();
    assert!(table.text().contains("all 3"), "{}", table.text());
    replay(&room.path("in/*.yaml"), 8_000, &[]).exits(3).says(&["no such file"]);
}

#[test]
fn other_files_of_a_folder_are_skipped_with_a_word_and_a_named_one_is_refused() {
    let room = Room::new();
    room.write("good.json", Talk::new(Protocol::Chat).turns(10, 1_000).body());
    room.write("notes.txt", "buy milk");
    room.write("binary", [0xff, 0, 1]);
    room.write("broken.json", "{\"messages\":[");
    let done = replay(&room.path(""), 8_000, &["--json"]).good();
    assert_eq!(done.json()["sessions"].as_array().unwrap().len(), 1);
    for name in ["notes.txt", "binary", "broken.json"] {
        assert!(done.err.lines().any(|line| line.contains("skipped") && line.contains(name)), "{name}: {}", done.err);
        replay(&room.path(name), 8_000, &[]).exits(3).says(&[name, "line 1"]);
    }
    let good = room.path("good.json");
    replay(&room.path("notes.txt"), 8_000, &[good.to_str().unwrap()]).exits(3);
    let empty = Room::new();
    empty.write("notes.txt", "buy milk");
    replay(&empty.path(""), 8_000, &[]).exits(3).says(&["no session"]);
    let page = room.path("page.html");
    replay(&room.path("notes.txt"), 8_000, &["--html", page.to_str().unwrap()]).exits(3);
    assert!(!page.exists(), "nothing is written");
}

#[test]
fn a_refusal_lists_what_is_read_and_names_what_it_knows() {
    let room = Room::new();
    for (content, name) in [
        (r#"{"schema_version":"ATIF-v1","steps":[]}"#, "ATIF"),
        (r#"{"samples":[],"eval":{}}"#, "Inspect"),
        (r#"{"agent_steps":[]}"#, "Trae"),
        (r#"{"values":{"messages":[]}}"#, "LangGraph"),
        ("# a diary", "# a diary"),
    ] {
        let file = room.write("file", content);
        let refused = replay(&file, 8_000, &[]).exits(3).says(&[name]);
        for format in [
            "openai-chat",
            "openai-responses",
            "anthropic-messages",
            "claude-code",
            "codex",
            "gemini-cli",
            "swe-agent",
            "openhands",
        ] {
            assert!(refused.err.contains(format), "{format}: {}", refused.err);
        }
    }
}

#[test]
fn a_format_that_was_asked_for_is_read_or_refused() {
    let path = session("support.openai-chat.json");
    let found = replay(&path, 16_000, &["--format", "openai-chat", "--json"]).good().json();
    assert_eq!(found["sessions"][0]["format"], "openai-chat");
    replay(&path, 16_000, &["--format", "claude-code"]).exits(3).says(&["openai-chat"]);
    replay(&path, 16_000, &["--format", "yaml"]).exits(2).says(&["yaml", "claude-code"]);
}

#[test]
fn prices_are_chosen_by_name_or_brought_along() {
    let path = session("support.openai-chat.json");
    let cost = |more: &[&str]| {
        let found = replay(&path, 16_000, &[&["--json"], more].concat()).good().json();
        found["sessions"][0]["totals"]["cost_microdollars"].as_u64().unwrap()
    };
    let table = session("").join("../prices.toml");
    let table = table.to_str().unwrap();
    assert_eq!(cost(&["--prices", table]), cost(&[]), "the built-in table is the shipped one");
    let refused = replay(&path, 16_000, &["--price", "gold"]).exits(2).says(&["gold", "anthropic-5m"]);
    let text = std::fs::read_to_string(table).unwrap();
    let other = text.lines().filter_map(|line| line.strip_prefix("id = ")).map(|id| id.trim_matches('"'));
    assert!(other.clone().count() > 1, "{}", refused.err);
    assert!(other.into_iter().map(|id| cost(&["--price", id])).collect::<std::collections::BTreeSet<_>>().len() > 1);
    replay(&path, 16_000, &["--prices", "no-such-table"]).exits(2).says(&["no-such-table"]);
}

#[test]
fn a_replay_is_the_same_every_time() {
    for more in [&["--json"][..], &["--every-turn"]] {
        let (one, two) = (replay(&shipped(), 32_000, more).good(), replay(&shipped(), 32_000, more).good());
        assert!(one.out == two.out);
    }
}

#[test]
fn a_replay_and_compact_take_the_same_decisions() {
    let path = session("support.openai-chat.json");
    // By the seeds' rule the wording of markers makes least of a difference.
    let found = replay(&path, 12_000, &["--json", "--summarizer", "none", "--weigher", "bytes4"]).good().json();
    let last = found["sessions"][0]["turns"].as_array().unwrap().last().unwrap()["tokens"].as_u64().unwrap();
    // The same calls, one by one.
    let source: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let messages = source["messages"].as_array().unwrap();
    let room = Room::new();
    let mut tokens = 0;
    for (at, message) in messages.iter().enumerate() {
        if message["role"] == "assistant" && messages[at - 1]["role"] != "assistant" || at + 1 == messages.len() {
            let upto = if message["role"] == "assistant" { at } else { at + 1 };
            let body =
                serde_json::json!({"model": source["model"], "tools": source["tools"], "messages": messages[..upto]});
            let done =
                room.compact(12_000, body.to_string().as_bytes(), &["--no-recall-tool", "--weigher", "bytes4"]).good();
            tokens = done.number("tokens_after");
        }
    }
    assert!(tokens.abs_diff(last) * 20 < last, "{tokens} and {last}: but for the wording of markers");
}

#[test]
fn all_files_of_the_listed_formats_in_the_shared_corpus_replay() {
    let Some(shared) = shared() else { return };
    let read = [
        "openai-chat",
        "openai-responses",
        "anthropic-messages",
        "claude-code",
        "codex",
        "gemini-cli",
        "swe-agent",
        "openhands",
    ];
    let (mut played, mut refused) = (0, 0);
    for folder in std::fs::read_dir(shared.join("transcripts")).unwrap().map(|entry| entry.unwrap().path()) {
        let kind = folder.file_name().unwrap().to_str().unwrap().to_owned();
        if !folder.is_dir() || kind == "LICENSES" {
            continue;
        }
        for file in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if read.contains(&kind.as_str()) {
                for window in [8_000, 64_000] {
                    let found = replay(&file, window, &["--json"]).good().json();
                    assert!(!found["sessions"].as_array().unwrap().is_empty(), "{}", file.display());
                }
                foreshorten(["estimate", file.to_str().unwrap()], b"").good();
                played += 1;
            } else {
                replay(&file, 64_000, &[]).exits(3).says(&["openai-chat", "openhands", "line "]);
                refused += 1;
            }
        }
    }
    assert!(played >= 30 && refused >= 10, "{played} played, {refused} refused");
}
