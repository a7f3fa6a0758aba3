//! The small test configuration in which reported cases are told, and the words they are told in.
//!
//! One token is four ASCII bytes and framing is free, so that an entry of *n* tokens is 4*n* bytes. Every text is
//! another: a number that counts up within a test stands in front.

use std::cell::Cell;

use foreshorten_core::{
    Finish, Policy, PolicyConfig, SummaryFailure, SummaryReply,
    budget::Watermark,
    estimate::{ByteEstimator, Weigher},
    summary::REQUIRED_SECTIONS,
    transcript::{Entry, OwnedTranscript},
};

use crate::{Answers, Session};

/// The window of [`t10`].
pub const WINDOW: u64 = 10_000;
/// The usable part of it.
pub const USABLE: u64 = 8_000;
/// Where a pass begins.
pub const TRIGGER: u64 = 6_800;
/// Where it ends.
pub const TARGET: u64 = 4_800;

/// The configuration of the reported cases: 8,000 usable tokens, a pass from 6,800 to 4,800, a tail of 1,600; on the
/// aggressive path a tail of 800 and a target of 2,000.
#[must_use]
pub fn t10() -> PolicyConfig {
    PolicyConfig {
        context_window: Some(WINDOW),
        reserve_output_tokens: Some(2_000),
        compact_at: Watermark::Tokens(TRIGGER),
        compact_to: Watermark::Tokens(TARGET),
        keep_recent_tokens: Some(1_600),
        // The seeds' rule: the sizes of the reported cases are bytes divided by four.
        weigher: Weigher { bytes: ByteEstimator::BytesPer4, entry_overhead: 0, ..Weigher::default() },
        ..PolicyConfig::default()
    }
}

/// The defaults, weighed by the seeds' rule, for tests whose sizes are in bytes divided by four.
#[must_use]
pub fn seeds_rule() -> PolicyConfig {
    PolicyConfig {
        weigher: Weigher { bytes: ByteEstimator::BytesPer4, ..Weigher::default() },
        ..PolicyConfig::default()
    }
}

/// The policy of a configuration that is known to be good.
#[must_use]
pub fn built(config: PolicyConfig) -> Policy {
    config.build().expect("a good configuration")
}

/// An empty session in the window of [`t10`].
#[must_use]
pub fn session(policy: &Policy, answers: Answers) -> Session<'_> {
    Session::new(policy, OwnedTranscript::default(), WINDOW, answers)
}

/// A text of exactly `tokens` tokens that was not there before.
#[must_use]
pub fn text(tokens: usize) -> String {
    thread_local!(static NEXT: Cell<u32> = const { Cell::new(0) });
    let number = NEXT.replace(NEXT.get() + 1);
    padded(&format!("{number} "), tokens)
}

/// `start`, filled up (or cut) to exactly `tokens` tokens.
#[must_use]
pub fn padded(start: &str, tokens: usize) -> String {
    let filler = "lorem ipsum dolor sit amet ".bytes().cycle();
    let bytes: Vec<u8> = start.bytes().chain(filler).take(tokens * 4).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Instructions of `tokens` tokens.
#[must_use]
pub fn s(tokens: usize) -> Entry {
    Entry::system(text(tokens))
}

/// A user message of `tokens` tokens.
#[must_use]
pub fn u(tokens: usize) -> Entry {
    Entry::user(text(tokens))
}

/// An assistant text of `tokens` tokens.
#[must_use]
pub fn a(tokens: usize) -> Entry {
    Entry::assistant(text(tokens))
}

/// A call that weighs `tokens` tokens (4 or more), name and arguments together.
#[must_use]
pub fn c(id: &str, tokens: usize) -> Entry {
    Entry::tool_call(id, "read", format!("{{\"q\":\"{}\"}}", text(tokens.max(4) - 3)))
}

/// The result of a call, of `tokens` tokens.
#[must_use]
pub fn r(id: &str, tokens: usize) -> Entry {
    Entry::tool_result(id, text(tokens))
}

/// A call and its result.
#[must_use]
pub fn pair(id: &str, call: usize, result: usize) -> [Entry; 2] {
    [c(id, call), r(id, result)]
}

/// `turns` times a user message and an answer.
#[must_use]
pub fn chat(turns: usize, user: usize, assistant: usize) -> Vec<Entry> {
    (0..turns).flat_map(|_| [u(user), a(assistant)]).collect()
}

/// Conversation of exactly `tokens` tokens (50 or more), in messages of 50 and answers of 200.
#[must_use]
pub fn filler(tokens: usize) -> Vec<Entry> {
    let mut out = chat(tokens / 250, 50, 200);
    match tokens % 250 {
        0 => {}
        left @ 1..=50 => out.push(u(left)),
        left => out.extend([u(50), a(left - 50)]),
    }
    out
}

/// The weight of entries under [`t10`].
#[must_use]
pub fn tokens(entries: &[Entry]) -> usize {
    let bytes4 = |text: &str| text.len().div_ceil(4);
    let one = |entry: &Entry| -> usize {
        let parts = entry.parts.iter().map(|part| match part {
            foreshorten_core::transcript::Part::Text(text) => bytes4(text),
            _ => 0,
        });
        bytes4(&entry.name) + parts.sum::<usize>()
    };
    entries.iter().map(one).sum()
}

/// A good summary of exactly `tokens` tokens (about 60 or more).
#[must_use]
pub fn summary_text(tokens: usize) -> String {
    let mut out = String::new();
    for section in REQUIRED_SECTIONS {
        out.push_str("## ");
        out.push_str(section);
        out.push_str("\nWhat was said there.\n");
    }
    padded(&out, tokens)
}

/// The answer of a summarizer that does its work.
///
/// # Errors
/// Never; the type is that of an answer.
pub fn summary(tokens: usize) -> Result<SummaryReply, SummaryFailure> {
    Ok(SummaryReply { text: summary_text(tokens), finish: Finish::Complete })
}

/// The answer of a summarizer that says exactly this.
///
/// # Errors
/// Never; the type is that of an answer.
pub fn says(text: impl Into<String>) -> Result<SummaryReply, SummaryFailure> {
    Ok(SummaryReply { text: text.into(), finish: Finish::Complete })
}
