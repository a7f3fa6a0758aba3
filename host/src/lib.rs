//! Host library of Foreshorten: wire formats, replay, the store, and the loop around the core.
//!
//! The program `foreshorten` is a thin shell over this library; see `README.md` for what it does.

pub mod context;
pub mod drive;
pub mod economics;
pub mod formats;
pub mod options;
pub mod plugin;
pub mod provider;
pub mod record;
pub mod replay;
pub mod report;
pub mod runner;
pub mod session;
pub mod stores;
pub mod summarizer;
pub mod tool;
pub mod view;
pub mod window;

pub use foreshorten_core as core;
