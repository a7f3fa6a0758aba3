//! Both loaders behind one door: which of them a file needs, its first bytes tell.

use std::path::Path;

use super::{CodeCache, FileKind, Limits, LoadError, Loader, StagePlugin, SummaryPlugin, TrustedKeys};

/// Loads components, and native libraries where the operator allows them.
///
/// The loader of components is made when the first one is met: who has none needs no engine.
#[derive(Debug)]
pub struct Loaders {
    caps: Limits,
    cache: Option<CodeCache>,
    trusted: TrustedKeys,
    allow_native: bool,
    components: Option<Loader>,
}

impl Loaders {
    /// Both loaders, for plugins that get no more than `caps` and that one of the keys signed, when there are any.
    /// `allow_native` is the operator's word: never take it from data.
    #[must_use]
    pub const fn new(caps: Limits, cache: Option<CodeCache>, trusted: TrustedKeys, allow_native: bool) -> Self {
        Self { caps, cache, trusted, allow_native, components: None }
    }

    /// Loads a stage from what [`Settings::find`](super::Settings::find) understands.
    ///
    /// # Errors
    /// Why it is not loaded; for a native library also when it is not allowed, or this build has not the feature `dylib`.
    pub fn stage(&mut self, path: &Path) -> Result<StagePlugin, LoadError> {
        match FileKind::of(path)? {
            FileKind::Library => native::stage(path, self.allow_native, &self.trusted),
            FileKind::Component => self.components()?.stage(path),
        }
    }

    /// Loads a summarizer likewise.
    ///
    /// # Errors
    /// As [`stage`](Self::stage).
    pub fn summarizer(&mut self, path: &Path) -> Result<SummaryPlugin, LoadError> {
        match FileKind::of(path)? {
            FileKind::Library => native::summarizer(path, self.allow_native, &self.trusted),
            FileKind::Component => self.components()?.summarizer(path),
        }
    }

    fn components(&mut self) -> Result<&Loader, LoadError> {
        if self.components.is_none() {
            let mut loader = Loader::new(self.caps)?.trusting(self.trusted.clone());
            if let Some(cache) = self.cache.take() {
                loader = loader.cached(cache);
            }
            self.components = Some(loader);
        }
        self.components.as_ref().ok_or(LoadError::Unsupported("wasm"))
    }
}

#[cfg(feature = "dylib")]
mod native {
    use std::path::Path;

    use super::super::{LoadError, StagePlugin, SummaryPlugin, TrustedKeys, dylib::DylibLoader};

    pub(super) fn stage(path: &Path, allowed: bool, keys: &TrustedKeys) -> Result<StagePlugin, LoadError> {
        loader(path, allowed, keys)?.stage(path)
    }

    pub(super) fn summarizer(path: &Path, allowed: bool, keys: &TrustedKeys) -> Result<SummaryPlugin, LoadError> {
        loader(path, allowed, keys)?.summarizer(path)
    }

    fn loader(path: &Path, allowed: bool, keys: &TrustedKeys) -> Result<DylibLoader, LoadError> {
        if allowed {
            return Ok(DylibLoader::new().trusting(keys.clone()));
        }
        let why = "a native library, and nothing bounds what one does: it is loaded only with --allow-native, and only \
                   when its SHA-256 is pinned (sha256 in its plugin.toml, or FILE.sha256 beside it)";
        Err(LoadError::Settings(path.to_owned(), why.into()))
    }
}

#[cfg(not(feature = "dylib"))]
mod native {
    use std::path::Path;

    use super::super::{LoadError, StagePlugin, SummaryPlugin, TrustedKeys};

    pub(super) const fn stage(_: &Path, _: bool, _: &TrustedKeys) -> Result<StagePlugin, LoadError> {
        Err(LoadError::Unsupported("dylib"))
    }

    pub(super) const fn summarizer(_: &Path, _: bool, _: &TrustedKeys) -> Result<SummaryPlugin, LoadError> {
        Err(LoadError::Unsupported("dylib"))
    }
}
