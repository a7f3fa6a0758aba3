//! Generators and oracles for the invariants of the core.
//!
//! [`entries`] makes transcripts out of bytes, with every pathology met in real sessions. [`Session`] drives a
//! compactor over one, turn by turn, and checks every invariant after every turn; it panics with a sentence
//! that names the invariant. [`Reference`] is a second opinion on views and decisions, which a session asks for after
//! every turn. [`play`] makes a whole session out of bytes, with everything that happens between turns.
//!
//! Property tests, fuzz targets and the broken cores of `core/mutants` are glue around these: [`TARGETS`] lists what
//! a fuzz target checks, by name.

#![allow(clippy::expect_used, reason = "an oracle panics when what it watches is wrong")]

pub mod cases;
mod counted;
mod cuts;
mod hostile;
mod legal;
mod overflow_texts;
mod play;
mod recalls;
mod reference;
mod rendering;
mod script;
mod session;
mod states;
mod texts;
mod world;

pub use counted::Counted;
pub use cuts::cuts;
pub use hostile::{Hostile, malicious, proposals, random_proposals};
pub use legal::check_legal;
pub use overflow_texts::overflow_text;
pub use play::{Played, play};
pub use recalls::recall_refs;
pub use reference::{MeasuredWeights, PassFacts, Reference};
pub use rendering::rendering;
pub use script::{Script, entries};
pub use session::{Growing, Session, materialize, turns_checked};
pub use states::{damaged, forged, meet, state_decode};
pub use texts::texts;
pub use world::{Answers, Summarizer};

/// A fuzz target: its name, and what checks one input.
pub type Target = (&'static str, fn(&[u8]));

/// Every fuzz target over the core. Tests replay seeds and regressions by it.
pub const TARGETS: [Target; 8] = [
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
