//! Generators and oracles for the invariants of the core.
//!
//! [`script`] makes transcripts out of bytes, with every pathology met in real sessions. [`Session`] drives a
//! compactor over one, turn by turn, and checks every invariant after every turn; it panics with a sentence
//! that names the invariant. Property tests and fuzz targets are glue around these two.

#![allow(clippy::expect_used, reason = "an oracle panics when what it watches is wrong")]

pub mod cases;
mod counted;
mod legal;
mod script;
mod session;

pub use counted::Counted;
pub use legal::check_legal;
pub use script::{Script, entries};
pub use session::{Answers, Growing, Session, Summarizer, materialize};
