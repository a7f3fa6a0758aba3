//! The loader of a build without an engine: it says what is missing.

use std::path::Path;

use super::signature::TrustedKeys;
use super::{CodeCache, Limits, LoadError, Loads, StagePlugin, SummaryPlugin};

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

    /// Would keep compiled code in this cache.
    #[must_use]
    pub fn cached(self, cache: CodeCache) -> Self {
        let _ = cache;
        self
    }

    /// Would load only what one of these keys signed.
    #[must_use]
    pub fn trusting(self, keys: TrustedKeys) -> Self {
        let _ = keys;
        self
    }

    /// How often it compiled: never.
    #[must_use]
    pub fn loads(&self) -> Loads {
        Loads::default()
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
