//! Policy flags and files, help texts, completions, manual pages, and the state for people.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

use crate::common::talk::{Protocol, Talk};
use crate::common::{Room, foreshorten, session};
use serde_json::{Value, json};

const COMMANDS: [&str; 9] =
    ["replay", "compact", "recall", "estimate", "explain-error", "state", "stages", "completions", "man"];

const POLICY_FLAGS: [&str; 33] = [
    "preset",
    "stages",
    "compact-at",
    "compact-to",
    "keep-recent-tokens",
    "reserve-output-tokens",
    "image-tokens",
    "file-tokens",
    "entry-overhead",
    "weigher",
    "min-gain-percent",
    "offload-min-chars",
    "offload-keep-last",
    "preview-chars",
    "clear-keep-last",
    "clear-min-chars",
    "clear-at-least-tokens",
    "min-savings-ratio",
    "max-failures",
    "max-summary-chars",
    "images-keep-last",
    "clip-min-bytes",
    "max-entries",
    "keep-initial-entries",
    "keep-recent-entries",
    "reactive-keep-recent-entries",
    "keep-recent-tool-results",
    "tool-result-budget-chars",
    "large-tool-result-chars",
    "tool-result-preview-chars",
    "tool-rule",
    "allow-native",
    "config",
];

const OWN_FLAGS: [(&str, &[&str]); 5] = [
    ("replay", &["format", "window", "summarizer", "price", "prices", "json", "html", "every-turn"]),
    (
        "compact",
        &[
            "format",
            "window",
            "summarizer",
            "state",
            "store",
            "last-input-tokens",
            "overflow",
            "reported-window",
            "cache-cold",
            "notice",
            "no-recall-tool",
        ],
    ),
    ("recall", &["format", "transcript", "state", "store", "offset", "limit", "part", "search", "ignore-case"]),
    ("estimate", &["format", "json"]),
    ("explain-error", &["status", "json"]),
];

/// Every flag of a command.
fn flags(command: &str) -> Vec<&'static str> {
    let own = OWN_FLAGS.iter().filter(|(name, _)| *name == command).flat_map(|(_, flags)| flags.iter().copied());
    let policy = POLICY_FLAGS.into_iter().filter(|_| ["replay", "compact", "estimate"].contains(&command));
    own.chain(policy).collect()
}

/// A budget of a session that needs a pass.
fn budget(more: &[&str]) -> Value {
    Room::new().compact(16_000, &Talk::new(Protocol::Chat).turns(30, 3_000).body(), more).good().notice
}

#[test]
fn every_help_text_mentions_every_flag() {
    for command in COMMANDS {
        let long = foreshorten([command, "--help"], b"").good();
        for flag in flags(command).into_iter().chain(["help"]) {
            let there = long
                .text()
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
                .any(|word| word == format!("--{flag}"));
            assert!(there, "{command} --{flag}");
        }
        assert!(long.text().contains("Usage:"), "{command}");
        // No flag without a word about it.
        let lines: Vec<&str> = long.text().lines().collect();
        for pair in lines.windows(2).filter(|pair| pair[0].trim_start().starts_with("--")) {
            let described = pair[0].trim().contains("  ") || !pair[1].trim().is_empty();
            assert!(described, "{command}: {}", pair[0]);
        }
    }
    let top = foreshorten(["--help"], b"").good();
    for word in COMMANDS.iter().copied().chain(["Exit codes", "stdout carries data only"]) {
        assert!(top.text().contains(word), "{word}");
    }
    assert!(foreshorten(["--version"], b"").good().text().starts_with("foreshorten "));
    foreshorten(Vec::<&str>::new(), b"").exits(2);
    foreshorten(["frobnicate"], b"").exits(2).says(&["frobnicate"]);
}

#[test]
fn completions_know_every_flag_in_every_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let script = foreshorten(["completions", shell], b"").good();
        for (command, _) in OWN_FLAGS {
            assert!(script.text().contains(command), "{shell}: {command}");
            for flag in flags(command) {
                let written = if shell == "fish" { format!("-l {flag}") } else { format!("--{flag}") };
                assert!(script.text().contains(&written), "{shell}: {command} --{flag}");
            }
        }
    }
    foreshorten(["completions", "cmd.exe"], b"").exits(2);
}

#[test]
fn there_is_a_manual_page_for_the_program_and_for_every_command() {
    let top = foreshorten(["man"], b"").good();
    assert!(top.text().contains(".TH foreshorten 1"));
    for command in COMMANDS {
        assert!(top.text().contains(&command.replace('-', "\\-")), "{command}");
        let page = foreshorten(["man", command], b"").good();
        assert!(page.text().contains(&format!(".TH foreshorten-{command} 1")), "{}", &page.text()[..200]);
        for flag in flags(command) {
            assert!(page.text().contains(&format!("\\-\\-{}", flag.replace('-', "\\-"))), "{command} --{flag}");
        }
    }
    foreshorten(["man", "frobnicate"], b"").exits(2).says(&["frobnicate", "replay"]);
}

#[test]
fn values_that_cannot_be_meant_are_exit_2_and_name_their_field() {
    for (flags, field) in [
        (&["--compact-at", "0"][..], "--compact-at"),
        (&["--compact-at", "1.5"], "--compact-at"),
        (&["--compact-at", "NaN"], "--compact-at"),
        (&["--compact-at", "99999999"], "compact_at"),
        (&["--compact-to", "0.9"], "compact_to"),
        (&["--compact-to", "x"], "--compact-to"),
        (&["--keep-recent-tokens", "0"], "keep_recent_tokens"),
        (&["--keep-recent-tokens", "16000"], "keep_recent_tokens"),
        (&["--reserve-output-tokens", "16000"], "reserve_output_tokens"),
        (&["--reserve-output-tokens", "99999"], "reserve_output_tokens"),
        (&["--image-tokens", "0"], "image_tokens"),
        (&["--min-gain-percent", "100"], "min_gain_percent"),
        (&["--min-gain-percent", "300"], "--min-gain-percent"),
        (&["--min-savings-ratio", "1"], "min_savings_ratio"),
        (&["--min-savings-ratio", "nan"], "min_savings_ratio"),
        (&["--max-failures", "0"], "max_failures"),
        (&["--max-summary-chars", "0"], "max_summary_chars"),
        (&["--weigher", "scales"], "weigher"),
        (&["--preset", "best"], "preset"),
        (&["--stages", "clear,nope"], "nope"),
        (&["--stages", ""], "stages"),
        (&["--tool-rule", "read"], "NAME=RULE"),
        (&["--tool-rule", "read=maybe"], "keep-arguments"),
        (&["--tool-rule", "read=never", "--tool-rule", "read=ordinary"], "tools"),
        (&["--offload-min-chars", "-1"], "--offload-min-chars"),
        (&["--config", "no-such.toml"], "no-such.toml"),
    ] {
        let compact = [&["compact", "--window", "16000"], flags].concat();
        foreshorten(compact, b"{\"messages\":[]}").exits(2).says(&[field]);
        let path = session("one.openai-chat.json");
        let replay = [&["replay", path.to_str().unwrap(), "--window", "16000"], flags].concat();
        foreshorten(replay, b"").exits(2).says(&[field]);
    }
    for window in ["0", "255", "20000001", "99999999999999999999", "16k", "1.5"] {
        foreshorten(["compact", "--window", window], b"[]").exits(2).says(&["--window"]);
    }
}

#[test]
fn a_file_says_the_same_as_flags_and_flags_win() {
    let room = Room::new();
    let file = room.write("policy.toml", "compact_at = 0.5\ncompact_to = 2000\nreserve_output_tokens = 1000\n");
    let file = file.to_str().unwrap();
    let by_flags = budget(&["--compact-at", "0.5", "--compact-to", "2000", "--reserve-output-tokens", "1000"]);
    let by_file = budget(&["--config", file]);
    assert_eq!(by_file, by_flags);
    assert_eq!(
        (by_file["usable"].as_u64(), by_file["trigger"].as_u64(), by_file["target"].as_u64()),
        (Some(15_000), Some(7_500), Some(2_000))
    );
    let both = budget(&["--config", file, "--compact-at", "0.8"]);
    assert_eq!((both["trigger"].as_u64(), both["target"].as_u64()), (Some(12_000), Some(2_000)));
}

#[test]
fn every_parameter_can_stand_in_a_file_under_its_name() {
    let room = Room::new();
    let body = Talk::new(Protocol::Chat).turns(3, 300).body();
    // What only an operator may say is no key: `program::a_native_library_needs…` holds that.
    for flag in POLICY_FLAGS.into_iter().filter(|flag| !["config", "allow-native"].contains(flag)) {
        let key = flag.replace('-', "_");
        let line = match flag {
            "preset" => "preset = \"five-stage\"".into(),
            "stages" => "stages = [\"clear\", \"offload\"]".into(),
            "weigher" => "weigher = \"o200k\"".into(),
            "compact-at" => "compact_at = \"0.9\"".into(),
            "compact-to" => "compact_to = 0.4".into(),
            "min-savings-ratio" => "min_savings_ratio = 0.2".into(),
            "tool-rule" => "[tool_rules]\nread_log = \"never\"".into(),
            _ => format!("{key} = 7"),
        };
        let file = room.write("policy.toml", &line);
        room.compact(16_000, &body, &["--config", file.to_str().unwrap()]).good();
    }
    let seeds =
        "trigger_ratio = 0.9\nmax_summary_failures = 2\nkeep_recent_messages = 20\nreactive_keep_recent_messages = 6\n";
    let file = room.write("policy.toml", seeds);
    room.compact(16_000, &body, &["--config", file.to_str().unwrap()]).good();
}

#[test]
fn a_mistake_in_a_file_is_named_with_its_place() {
    let room = Room::new();
    for (text, words) in [
        ("compact_att = 0.8", &["compact_att", "line 1"][..]),
        ("compact_at = 0.8\n\n[policy]\nx = 1", &["policy"]),
        ("compact_at = true", &["compact_at"]),
        ("compact_at = -3", &["compact_at"]),
        ("image_tokens = \"many\"", &["image_tokens"]),
        ("stages = [\"nope\"]", &["nope"]),
        ("compact_at = ", &["line 1"]),
        ("[tool_rules]\nread = \"maybe\"", &["maybe", "keep-arguments"]),
        ("window = 8000", &["window"]),
    ] {
        let file = room.write("policy.toml", text);
        let args = ["compact", "--window", "16000", "--config", file.to_str().unwrap()];
        foreshorten(args, b"[]").exits(2).says(words);
        let input = session("one.openai-chat.json");
        let args = ["estimate", "--config", file.to_str().unwrap(), input.to_str().unwrap()];
        foreshorten(args, b"").exits(2).says(words);
    }
}

#[test]
fn every_stage_runs_by_its_name_and_says_so() {
    let names: Vec<String> = foreshorten(["stages"], b"")
        .good()
        .text()
        .lines()
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .collect();
    assert_eq!(names.len(), 12, "{names:?}");
    // One session with something for each of them.
    let mut talk = Talk::new(Protocol::Anthropic);
    for turn in 0..24 {
        let id = format!("c{turn}");
        // The result of the same read again, with a long argument; a picture now and then.
        talk.call(&id, "read_log", json!({"n": 1, "why": "because ".repeat(500)}));
        talk.messages.last_mut().unwrap()["content"]
            .as_array_mut()
            .unwrap()
            .insert(0, json!({"type": "text", "text": "Let me look."}));
        let text = crate::common::talk::log(turn, 6_000);
        let parts = if turn % 4 == 0 {
            json!([{"type": "text", "text": text}, talk.picture("iVBORw0KGgo=")])
        } else {
            json!(text)
        };
        talk.result(&id, parts);
        talk.user("Go on.");
    }
    let mut reasoning = Talk::new(Protocol::Chat);
    for turn in 0..24 {
        reasoning.call(&format!("c{turn}"), "read_log", json!({}));
        reasoning.messages.last_mut().unwrap()["reasoning_content"] = json!("thinking ".repeat(400));
        reasoning.result(&format!("c{turn}"), "ok");
    }
    for name in &names {
        let body = if name == "clear_reasoning" { reasoning.body() } else { talk.body() };
        let small = [
            "--large-tool-result-chars",
            "4000",
            "--tool-result-preview-chars",
            "200",
            "--max-entries",
            "20",
            "--keep-recent-entries",
            "8",
        ];
        let args = [&["--stages", name, "--summarizer", "extractive"], &small[..]].concat();
        let room = Room::new();
        let mut done = room.compact(32_000, &body, &args).good();
        if name == "reactive_summary" {
            let room = Room::new();
            room.compact(200_000, &body, &args).good();
            done = room.compact(200_000, &body, &[&args[..], &["--overflow"]].concat()).good();
        }
        let reasons = done.notice["reasons"].as_array().unwrap();
        assert!(reasons.iter().any(|reason| reason == name.as_str()), "{name}: {}", done.notice);
        let dashes = name.replace('_', "-");
        let again = Room::new().compact(
            32_000,
            &body,
            &[&["--stages", &dashes, "--summarizer", "extractive"], &small[..]].concat(),
        );
        again.good();
    }
    for preset in ["default", "five-stage"] {
        assert_eq!(budget(&["--preset", preset])["compacted"], true, "{preset}");
    }
}

#[test]
fn a_tool_that_must_never_be_touched_is_not() {
    let mut talk = Talk::new(Protocol::Chat);
    for turn in 0..8 {
        talk.call(&format!("kept_{turn}"), "ask_captain", json!({"n": turn}));
        talk.result(&format!("kept_{turn}"), crate::common::talk::log(100 + turn, 600));
        talk = talk.turns(2, 3_000);
    }
    let whole = |more: &[&str]| {
        let args = [&["--stages", "clear"], more].concat();
        let done = Room::new().compact(16_000, &talk.body(), &args).good();
        let shown = talk.messages_in(done.out());
        let kept = talk.messages.iter().filter(|message| message["tool_call_id"].to_string().contains("kept_"));
        (kept.filter(|message| shown.contains(message)).count(), done.compacted())
    };
    assert_eq!(whole(&["--tool-rule", "ask_captain=never"]), (8, true));
    assert!(whole(&[]).0 < 8);
}

#[test]
fn stdout_carries_data_only() {
    let room = Room::new();
    let body = Talk::new(Protocol::Chat).turns(30, 3_000).body();
    room.write("state", "no state");
    let done = room.compact(16_000, &body, &["--last-input-tokens", "1", "--reported-window", "3"]).good();
    serde_json::from_slice::<Value>(done.out()).unwrap();
    assert!(done.run.err.lines().count() >= 3, "what is to be said is said on stderr: {}", done.run.err);
    assert!(done.run.err.lines().all(|line| line.starts_with("foreshorten: ")), "{}", done.run.err);
}

#[test]
fn a_state_is_shown_as_json() {
    let room = Room::new();
    let body = Talk::new(Protocol::Chat).turns(60, 3_000).body();
    room.compact(16_000, &body, &["--reported-window", "12000", "--summarizer", "extractive"]).good();
    let shown = foreshorten(["state".as_ref(), room.state().as_os_str()], b"").good();
    assert!(shown.text().lines().count() > 20, "over many lines");
    let state = shown.json();
    assert!(state["records"].is_array() && state["notes"].is_array(), "{state}");
    assert_eq!(state["windows"][0]["tokens"], 12_000);
    assert_eq!(state["windows"][0]["scope"], "model-x");
    let missing = room.path("missing");
    foreshorten(["state".as_ref(), missing.as_os_str()], b"").exits(3).says(&["missing"]);
    let other = room.write("other", "hello");
    foreshorten(["state".as_ref(), other.as_os_str()], b"").exits(3).says(&["other", "not a compaction state"]);
    foreshorten(["state"], b"").exits(2);
}
