//! Generators and oracles for the invariants of the core.
//!
//! [`entries`] makes transcripts out of bytes, with every pathology met in real sessions. [`Session`] drives a
//! compactor over one, turn by turn, and checks every invariant after every turn; it panics with a sentence
//! that names the invariant. Property tests and fuzz targets are glue around these two. [`Reference`]
//! is a second opinion on views and decisions, which a session asks for after every turn.

#![allow(clippy::expect_used, reason = "an oracle panics when what it watches is wrong")]

pub mod cases;
mod counted;
mod legal;
mod reference;
mod script;
mod session;
mod world;

pub use counted::Counted;
pub use legal::check_legal;
pub use reference::{PassFacts, Reference};
pub use script::{Script, entries};
pub use session::{Growing, Session, materialize};
pub use world::{Answers, Summarizer, proposals};
