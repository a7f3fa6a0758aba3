//! The loader of a build without an engine: it says what is missing.

use std::path::Path;

use super::{Limits, LoadError, StagePlugin, SummaryPlugin};

/// Loads plugins; here: says that it cannot.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Loader {}

impl Loader {
    /// A loader.
    ///
    /// # Errors
    /// None here; the other build's engine may not start.
    pub fn new(caps: Limits) -> Result<Self, LoadError> {
        let _ = caps;
        Ok(Self {})
    }

    /// Loads a stage.
    ///
    /// # Errors
    /// Always: this build has no engine.
    pub fn stage(&self, path: &Path) -> Result<StagePlugin, LoadError> {
        let _ = path;
        Err(LoadError::Unsupported("wasm"))
    }

    /// Loads a summarizer.
    ///
    /// # Errors
    /// Always: this build has no engine.
    pub fn summarizer(&self, path: &Path) -> Result<SummaryPlugin, LoadError> {
        let _ = path;
        Err(LoadError::Unsupported("wasm"))
    }
}
