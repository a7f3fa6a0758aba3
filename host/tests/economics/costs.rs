//! What policies cost over a fixed set of sessions, as numbers in a file: a change of policy shows as a diff of a table.
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::common::session;
use foreshorten::drive::Summaries;
use foreshorten::economics::{Pauses, PriceTable};
use foreshorten::formats::{Conversation, read_session};
use foreshorten::options::PolicyOptions;
use foreshorten::plugin::Stages;
use foreshorten::replay::{Setting, replay};
use foreshorten::report::ReplayReport;
use foreshorten_core::budget::Watermark;

/// Sessions, and the windows they are played at.
const SESSIONS: [(&str, [u64; 2]); 4] = [
    ("coding-agent.claude-code.jsonl", [32_000, 64_000]),
    ("research.openai-responses.json", [8_000, 16_000]),
    ("support.openai-chat.json", [8_000, 16_000]),
    ("mixed.anthropic-messages.json", [4_000, 8_000]),
];

/// The made session, and its windows.
const MADE: [u64; 3] = [32_000, 64_000, 200_000];

/// Presets; those that the program does not have are left out.
const PRESETS: [&str; 3] = ["default", "steady", "economy"];

const ROWS: [&str; 4] = ["anthropic-5m", "openai-5.5", "openai-5.6", "deepseek"];

const HEAD: &str = "\
# What policies cost over a fixed set of sessions: simulated, under the price rows of prices.toml.
# `cargo test -p foreshorten --test economics costs::` compares; with FORESHORTEN_ACCEPT=1 it writes this file anew. Look at
# the difference before you commit it.
#
# passes: runs of the pipeline. breaks: requests that did not begin with the whole request before. mean: tokens of a view.
# prefix: bytes sent that were the request before, in thousandths. Bills: millionths of a dollar for input, output left out.
# A name with +40:900 has a pause of a quarter of an hour after every 40 calls, which the caches of the first two rows do not outlive.
";

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/costs.txt")
}

/// A chat of 400 turns with tools, results from 200 bytes to 12 kB with a long tail, and a user's word every seventh turn.
fn made() -> Conversation {
    let mut seed = 20_261_130_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let text = |random: &mut dyn FnMut(usize) -> usize, length: usize| {
        let words = ["build", "error:", "src/main.rs", "ok", "128", "the", "request", "failed", "at", "line", "0x7f"];
        let mut text = String::new();
        while text.len() < length {
            text.push_str(words[random(words.len())]);
            text.push(if random(12) == 0 { '\n' } else { ' ' });
        }
        text
    };
    let mut messages = vec![serde_json::json!({"role": "system", "content": text(&mut random, 6_000)})];
    for turn in 0..400 {
        if turn % 7 == 0 {
            messages.push(serde_json::json!({"role": "user", "content": text(&mut random, 300)}));
        }
        let calls: Vec<String> = (0..=random(4) / 2).map(|call| format!("call_{turn}_{call}")).collect();
        let wanted: Vec<_> = calls
            .iter()
            .map(|id| {
                let arguments = serde_json::json!({"path": text(&mut random, 40)}).to_string();
                serde_json::json!({"id": id, "type": "function", "function": {"name": "read", "arguments": arguments}})
            })
            .collect();
        messages
            .push(serde_json::json!({"role": "assistant", "content": text(&mut random, 120), "tool_calls": wanted}));
        for id in &calls {
            let length = if random(8) == 0 { 12_000 } else { 200 + random(3_000) };
            messages
                .push(serde_json::json!({"role": "tool", "tool_call_id": id, "content": text(&mut random, length)}));
        }
    }
    let body = serde_json::json!({"model": "m", "messages": messages}).to_string();
    read_session(body.into_bytes(), None).unwrap().remove(0)
}

/// The options of a policy, if the program has it.
fn options(preset: &str, window: u64) -> Option<PolicyOptions> {
    let mut options = PolicyOptions::default();
    options.preset = Some(preset.into());
    options.build(Some(window), "", true, false).is_ok().then_some(options)
}

fn play(conversation: &Conversation, window: u64, options: &PolicyOptions, row: &str, pauses: Pauses) -> ReplayReport {
    let table = PriceTable::builtin().unwrap();
    let policy = options.build(Some(window), "", true, false).unwrap();
    let setting = Setting {
        policy: &policy,
        description: "",
        window,
        summarizer: &Summaries::Extractive,
        plugins: &Stages::default(),
        price: table.row(row).unwrap(),
        pauses,
        tell_cold: true,
    };
    replay(conversation, setting, &mut |_| {})
}

/// One line of the table.
fn line(out: &mut String, name: &str, window: u64, policy: &str, reports: &[ReplayReport]) {
    // With pauses, a policy does not decide the same under every row: what it decided is told of the first.
    let first = &reports[0];
    let mean = first.totals.sent_tokens / first.totals.turns.max(1);
    let prefix = first.totals.prefix_share_thousandths().unwrap_or(0);
    let _ = write!(
        out,
        "{name:<22} {window:>7}  {policy:<15} {:>6} {:>6} {mean:>7} {prefix:>6}",
        first.passes.len(),
        first.totals.prefix_breaks
    );
    for report in reports {
        let bill = report.totals.cost.saturating_sub(report.totals.output_cost).microdollars();
        let _ = write!(out, " {bill:>12}");
    }
    out.push('\n');
}

fn table() -> String {
    let mut out = format!(
        "{HEAD}\n{:<22} {:>7}  {:<15} {:>6} {:>6} {:>7} {:>6}",
        "session", "window", "policy", "passes", "breaks", "mean", "prefix"
    );
    for row in ROWS {
        let _ = write!(out, " {row:>12}");
    }
    out.push('\n');
    let read = |name: &str| read_session(std::fs::read(session(name)).unwrap(), None).unwrap().remove(0);
    let mut sessions: Vec<(String, Conversation, Vec<u64>)> = SESSIONS
        .iter()
        .map(|(name, windows)| (name.split('.').next().unwrap_or(name).to_owned(), read(name), windows.to_vec()))
        .collect();
    sessions.push(("made".into(), made(), MADE.to_vec()));
    for (name, conversation, windows) in &sessions {
        for &window in windows {
            let mut deep = PolicyOptions::default();
            deep.compact_to = Some(Watermark::BasisPoints(3_000));
            let mut policies: Vec<(String, PolicyOptions)> = PRESETS
                .iter()
                .filter_map(|preset| options(preset, window).map(|options| ((*preset).to_owned(), options)))
                .collect();
            policies.push(("default to 30%".into(), deep));
            for (policy, options) in policies {
                let play = |row: &&str| play(conversation, window, &options, row, Pauses::None);
                line(&mut out, name, window, &policy, &ROWS.iter().map(play).collect::<Vec<_>>());
            }
            let pauses = Pauses::Every { calls: 40, seconds: 900 };
            let options = options("default", window).unwrap();
            let play = |row: &&str| play(conversation, window, &options, row, pauses);
            line(&mut out, name, window, "default +40:900", &ROWS.iter().map(play).collect::<Vec<_>>());
        }
    }
    out
}

#[test]
fn costs_are_what_they_were() {
    let found = table();
    if std::env::var_os("FORESHORTEN_ACCEPT").is_some() {
        std::fs::write(file(), &found).unwrap();
        return;
    }
    let known = std::fs::read_to_string(file()).unwrap_or_default();
    let differs = |(a, b): &(&str, &str)| a != b;
    let lines: Vec<String> = known
        .lines()
        .chain(std::iter::repeat(""))
        .zip(found.lines().chain(std::iter::repeat("")))
        .take(known.lines().count().max(found.lines().count()))
        .filter(differs)
        .map(|(was, is)| format!("  was {was}\n  is  {is}\n"))
        .collect();
    assert!(
        lines.is_empty(),
        "testdata/costs.txt is not what policies cost now. If that is meant, run this test with FORESHORTEN_ACCEPT=1, look at \
         the difference, and say it in CHANGELOG.md:\n{}",
        lines.concat()
    );
}
