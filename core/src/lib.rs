//! Deterministic planning, rendering and estimation of view-only context compaction for LLM agents.
//!
//! The **transcript** of a conversation is kept whole, for ever. What shrinks is the **view**: what one model call is
//! sent. This crate decides what a view leaves out, and keeps to what it decided. It does no I/O and owns no content.
//!
//! # The seven rooms
//!
//! Data flows one way through seven modules. Each may use those before it and none after it, save that [`render`] fills
//! the plain pieces that [`view`] declares:
//!
//! 1. [`transcript`]: the append-only record. A host lends its entries through a trait; what is kept here are integer
//!    columns: kind, weight, pair, group, identity, and a fingerprint of everything before.
//! 2. [`estimate`]: from bytes to tokens. An entry is weighed once, when it is seen. The sum that decides is anchored on
//!    what the provider counted last.
//! 3. [`budget`]: how much room there is: window, reserve, usable, trigger, target, tail.
//! 4. [`plan`]: the stages, cheap first. A stage proposes; it edits nothing and stores nothing.
//! 5. [`state`]: the ledger. It alone takes decisions in, and refuses every proposal that would break an invariant.
//!    Levels only rise. What is stored, resumed and joined is a [`CompactionState`].
//! 6. [`render`]: record and state, rendered. A pure function, with a cache that only appends while nothing is decided.
//! 7. [`view`]: the pieces one model call is sent, borrowed from the record.
//!
//! [`policy`] is the one place that touches all of them: a [`Compactor`] per session. Beside the rooms stand
//! [`config`] (every parameter), [`marker`] (every text a model may see), [`notice`] (the account of a pass),
//! [`recall`] (from a marker back to the original), [`summary`] and [`overflow`] (what a provider's error means). On
//! the shelf that all may use: [`digest`], [`error`], [`text`].
//!
//! # The loop
//!
//! **After `begin`, poll until `Done` before the view is used.** Work that needs the world is an [`Effect`], answered by
//! the host. Between any two effects the compactor may be dropped: its state is as it was before the pass.
//!
//! ```
//! use foreshorten_core::{Compactor, Effect, Policy, Step, Turn};
//! use foreshorten_core::transcript::{Entry, OwnedTranscript};
//!
//! let mut record = OwnedTranscript::default();
//! let mut compactor = Compactor::new(Policy::default());
//! for turn in 0..40 {
//!     record.push(Entry::user(format!("question {turn}")));
//!     record.push(Entry::tool_call(format!("call_{turn}"), "read", "{}"));
//!     record.push(Entry::tool_result(format!("call_{turn}"), "a line of output\n".repeat(100)));
//!     compactor.sync(&record);
//!     compactor.begin(&record, Turn { window: Some(8_000), ..Turn::default() });
//!     loop {
//!         match compactor.poll(&record) {
//!             Step::Effect(Effect::Summarize(_)) => compactor.handle_summary(&record, Err(Default::default())),
//!             Step::Effect(Effect::Archive { .. }) => compactor.handle_archived(false),
//!             Step::Effect(_) => compactor.handle_proposals(&record, Vec::new()),
//!             Step::Done(_) => break,
//!         }
//!     }
//!     // Send `compactor.view().pieces()` to the model. Tell `handle_usage` what the provider counted.
//!     assert!(compactor.outcome().cannot_fit.is_none());
//! }
//! let stored = compactor.state().encode(); // goes where the session is kept
//! # assert!(!stored.is_empty() && !compactor.state().records().is_empty());
//! ```
//!
//! # Panics
//!
//! Data never panics. Whatever a transcript, a stored state, a usage figure, a summary, a plugin's proposal or a
//! provider's error holds, the answer is a value. By family of methods:
//!
//! - Feeding, commanding and polling a [`Compactor`], decoding and joining states, recall, and reading errors do not
//!   panic, as long as the [`Transcript`](transcript::Transcript) lent keeps its word: entries do not change or go while
//!   they are read.
//! - Methods that take the number of an entry, a group or a note ([`Columns`](transcript::Columns),
//!   [`Ledger`](state::Ledger), [`Digest::of_entry`](digest::Digest::of_entry)) panic out of range, as slices do.
//! - A stage of the embedder's own that panics unwinds through `poll`. Nothing was decided then.
//!
//! # Without std
//!
//! The crate is `no_std` and needs `alloc`. It has no clock, no randomness, no floating point and no unsafe code, and no
//! order of a hash map reaches a decision or a byte. Turns are its only clock. It is built for `thumbv7em-none-eabi`, and
//! as a wasm module that imports nothing, in every run of the checks; the module gives the same views as a 64-bit build.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod budget;
pub mod config;
pub mod digest;
pub mod error;
pub mod estimate;
pub mod marker;
pub mod notice;
pub mod overflow;
pub mod plan;
pub mod policy;
pub mod recall;
pub mod render;
pub mod state;
pub mod summary;
pub mod text;
pub mod transcript;
pub mod view;

pub use config::{PipelineStage, Policy, PolicyConfig, default_pipeline, five_stage_pipeline};
pub use error::{ConfigError, OutOfMemory};
pub use notice::CompactionNotice;
pub use policy::{Compactor, Effect, Finish, Outcome, Step, SummaryFailure, SummaryReply, SummaryRequest, Turn};
pub use render::render_view;
pub use state::CompactionState;

/// The examples of the README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
