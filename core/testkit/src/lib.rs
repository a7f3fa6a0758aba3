//! Generators and oracles for the invariants of the core.
//!
//! [`script`] makes transcripts out of bytes, with every pathology met in real sessions. [`Session`] drives a
//! compactor over one, turn by turn, and checks every invariant after every turn; it panics with a sentence
//! that names the invariant. Property tests and fuzz targets are glue around these two.

#![allow(clippy::expect_used, reason = "an oracle panics when what it watches is wrong")]

pub mod cases;
mod counted;
mod cuts;
mod hostile;
mod legal;
mod overflow_texts;
mod play;
mod recalls;
mod rendering;
mod script;
mod session;
mod states;
mod texts;

pub use counted::Counted;
pub use cuts::cuts;
pub use hostile::{Hostile, malicious, proposals};
pub use legal::check_legal;
pub use overflow_texts::overflow_text;
pub use play::{Played, play};
pub use recalls::recall_refs;
pub use rendering::rendering;
pub use script::{Script, entries};
pub use session::{Answers, Growing, Session, Summarizer, materialize, turns_checked};
pub use states::{damaged, forged, meet, state_decode};
pub use texts::texts;

/// Every fuzz target over the core: its name, and what checks one input. Tests replay seeds and regressions by it.
pub const TARGETS: [(&str, fn(&[u8])); 8] = [
    ("cuts", cuts),
    ("overflow_text", overflow_text),
    ("proposals", malicious),
    ("recall_refs", recall_refs),
    ("rendering", rendering),
    ("session", session_target),
    ("state_decode", state_decode),
    ("text", texts),
];

fn session_target(bytes: &[u8]) {
    let _ = play(bytes);
}
