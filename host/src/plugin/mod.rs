//! Stages and summarizers of others, loaded at run time.
//!
//! A plugin is a file: a WebAssembly component of the worlds in `plugins/wit/` (feature `wasm`), or, for trusted code, a
//! native library with the header in `plugins/abi/` (feature `dylib`). A stage proposes, the
//! ledger of the core disposes, so the worst a plugin can do is waste its budget:
//!
//! - It sees the record in the middle of a pass through [`line::Ask`], never a byte of anything else.
//! - Its decisions are one transaction. When it fails in any way they are dropped, the pipeline goes on, and the notice
//!   says so ([`OnFailure`] for who wants otherwise).
//! - Every call is bounded ([`Limits`]): fuel, wall clock, memory, calls of the host, text read, decisions.
//! - After three failures in a row it is left alone for a while ([`breaker`]), across restarts too.
//!
//! [`Loader`] makes a [`StagePlugin`] or a [`SummaryPlugin`] out of a file; [`StagePlugin::run`] answers
//! [`Effect::RunStage`](foreshorten_core::Effect::RunStage).

pub mod breaker;
mod code_cache;
mod desk;
#[cfg(feature = "dylib")]
pub mod dylib;
mod fault;
mod guest;
mod kind;
mod limits;
pub mod line;
#[cfg(any(feature = "dylib", feature = "wasm"))]
mod load;
mod loaders;
mod manifest;
mod metrics;
mod reload;
pub mod sealed;
pub mod signature;
mod span;
mod stage;
mod summary;

// Whole files, not sprinkled conditions: without the feature there is a loader that says what is missing.
#[cfg(feature = "wasm")]
pub mod conformance;
#[cfg(feature = "wasm")]
pub mod scaffold;
#[cfg(not(feature = "wasm"))]
#[path = "wasm_disabled.rs"]
pub mod wasm;
#[cfg(feature = "wasm")]
pub mod wasm;

pub use code_cache::{CacheError, CodeCache, Loads};
pub use desk::code_of;
pub use fault::{Fault, LoadError};
pub use guest::{Call, Done, Guest, Job, ModelAsk, Spent, SummaryJob};
pub use kind::FileKind;
pub use limits::Limits;
pub use loaders::Loaders;
pub use manifest::{Manifest, Settings, sha256};
pub use metrics::{Account, Metrics};
pub use reload::{Reloadable, Reloading};
pub use signature::TrustedKeys;
pub use stage::{OnFailure, Required, StagePlugin, Stages};
pub use summary::{Step, SummaryPlugin};
pub use wasm::Loader;
