//! Records of every sort.

use foreshorten_core::transcript::{Entry, OwnedTranscript, Part};

/// One of them.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) name: &'static str,
    pub(super) record: OwnedTranscript,
}

fn record(entries: Vec<Entry>) -> OwnedTranscript {
    let mut record = OwnedTranscript::default();
    entries.into_iter().for_each(|entry| record.push(entry));
    record
}

/// A talk of so many calls, with a result each.
fn talk(calls: usize, text: &str) -> Vec<Entry> {
    let mut entries = vec![Entry::system("Use the tools."), Entry::user("Go on.")];
    for call in 0..calls {
        let id = format!("call_{}", call % 50);
        entries.push(Entry::reasoning("Let me see."));
        entries.push(Entry::tool_call(&id, ["read", "run"][call % 2], format!("{{\"path\":\"{}\"}}", call % 7)));
        let result = Entry::tool_result(&id, text.repeat(10 + call % 40));
        entries.push(if call % 6 == 0 { result.failed() } else { result });
    }
    entries.push(Entry::user("And now?"));
    entries
}

/// Orphans, one id for everything, arguments that are no JSON, a call that nobody answered, images.
fn odd() -> Vec<Entry> {
    let image = || Part::Image("image/png".into(), b"aGVsbG8=".to_vec());
    let mut entries = vec![Entry::tool_result("nobody", "asked ".repeat(400)), Entry::user("")];
    entries.push(Entry::reasoning("sealed ".repeat(300)).sealed());
    entries.push(Entry::tool_call("a", "", "not json"));
    entries.push(Entry::tool_call("a", "same id", "{}"));
    entries.push(Entry::tool_result("a", "one ".repeat(900)));
    entries.push(Entry::tool_call("b", "never answered", "{}"));
    entries.extend((0..9).map(|_| Entry::user("").with(image())));
    entries.push(Entry::assistant("done"));
    entries
}

/// Text that is meant to upset: control characters, a line without an end, JSON a thousand deep, marks of our own.
fn nasty() -> Vec<Entry> {
    let mut entries = vec![Entry::user("\0\u{1}\u{7f}\u{202e}\u{feff}\u{fffd}".repeat(50))];
    let texts = [
        "\0".repeat(3_000),
        "x".repeat(200_000),
        format!("{}{}", "[".repeat(1_000), "]".repeat(1_000)),
        "\u{301}".repeat(4_000),
        "👩‍👩‍👧‍👦".repeat(500),
        "\r\n\t".repeat(2_000),
        "[cleared] <summary> ## Session intent\n".repeat(100),
        String::new(),
    ];
    for (at, text) in texts.into_iter().enumerate() {
        let id = format!("\"{at}\\");
        entries.push(Entry::tool_call(&id, format!("tool\n{at}"), "{\"a\":"));
        entries.push(Entry::tool_result(&id, text));
    }
    entries.extend((0..6).map(|_| Entry::user("go on")));
    entries
}

/// All of them, the largest last.
pub(super) fn samples() -> Vec<Sample> {
    let sample = |name, entries| Sample { name, record: record(entries) };
    let mut large = talk(3, "x");
    large.insert(2, Entry::tool_call("big", "run", "{}"));
    large.insert(3, Entry::tool_result("big", "0123456789abcde\n".repeat(1 << 18)));
    let mut wide = vec![Entry::user("Ask everybody.")];
    wide.extend((0..400).map(|at| Entry::tool_call(format!("w{at}"), format!("tool_{at}"), "{}")));
    wide.extend((0..400).map(|at| Entry::tool_result(format!("w{at}"), "an answer\n".repeat(20))));
    wide.extend([Entry::assistant("Done."), Entry::user("And now?"), Entry::assistant("Nothing.")]);
    vec![
        sample("no entry at all", Vec::new()),
        sample("one entry", vec![Entry::user("hello ".repeat(5_000))]),
        sample("nothing but tail", vec![Entry::user("short"), Entry::tool_call("a", "run", "{}")]),
        sample("a talk with tools", talk(60, "some line of output\n")),
        sample("scripts of the world", talk(30, "构建失败 — Fehler größer ошибка 🦀\n")),
        sample("orphans, repeated ids, images", odd()),
        sample("text that is meant to upset", nasty()),
        sample("400 calls of 400 tools at once", wide),
        sample("one result of 4 MB", large),
        sample("50,000 entries", talk(16_666, "line\n")),
    ]
}

/// Entries of turn `turn` of a session that grows.
pub(super) fn grow(record: &mut OwnedTranscript, turn: usize) {
    if turn == 0 {
        record.push(Entry::system("Use the tools."));
    }
    record.push(Entry::user(format!("Question {turn}.")));
    for call in 0..4 {
        let id = format!("t{turn}.{call}");
        record.push(Entry::tool_call(&id, ["read", "run", "list"][call % 3], format!("{{\"path\":\"{}\"}}", call % 3)));
        let result = Entry::tool_result(&id, "some line of output\n".repeat(15 + (turn * 7 + call * 3) % 40));
        record.push(if (turn + call).is_multiple_of(6) { result.failed() } else { result });
    }
    record.push(Entry::assistant(format!("Answer {turn}.")));
}
