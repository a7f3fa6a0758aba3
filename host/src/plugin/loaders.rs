//! Both loaders behind one door: which of them a file needs, its first bytes tell.

use std::path::Path;

use super::{FileKind, LoadError, Loader, StagePlugin, SummaryPlugin};

/// Loads components, and native libraries where the operator allows them.
///
/// The loader of components is made when the first one is met: who has none needs no engine.
pub struct Loaders<M> {
    make: M,
    components: Option<Loader>,
    allow_native: bool,
}

impl<M> std::fmt::Debug for Loaders<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaders").field("allow_native", &self.allow_native).finish_non_exhaustive()
    }
}

impl<M: Fn() -> Result<Loader, LoadError>> Loaders<M> {
    /// Both loaders. `make` makes that of components. `allow_native` is the operator's word: never take it from data.
    pub const fn new(make: M, allow_native: bool) -> Self {
        Self { make, components: None, allow_native }
    }

    /// Loads a stage from what [`Settings::find`](super::Settings::find) understands.
    ///
    /// # Errors
    /// Why it is not loaded; for a native library also when it is not allowed, or this build has not the feature `dylib`.
    pub fn stage(&mut self, path: &Path) -> Result<StagePlugin, LoadError> {
        match FileKind::of(path)? {
            FileKind::Library => native::stage(path, self.allow_native),
            FileKind::Component => self.components()?.stage(path),
        }
    }

    /// Loads a summarizer likewise.
    ///
    /// # Errors
    /// As [`stage`](Self::stage).
    pub fn summarizer(&mut self, path: &Path) -> Result<SummaryPlugin, LoadError> {
        match FileKind::of(path)? {
            FileKind::Library => native::summarizer(path, self.allow_native),
            FileKind::Component => self.components()?.summarizer(path),
        }
    }

    fn components(&mut self) -> Result<&Loader, LoadError> {
        if self.components.is_none() {
            self.components = Some((self.make)()?);
        }
        self.components.as_ref().ok_or(LoadError::Unsupported("wasm"))
    }
}

#[cfg(feature = "dylib")]
mod native {
    use std::path::Path;

    use super::super::{LoadError, StagePlugin, SummaryPlugin, dylib::DylibLoader};

    pub(super) fn stage(path: &Path, allowed: bool) -> Result<StagePlugin, LoadError> {
        loader(path, allowed)?.stage(path)
    }

    pub(super) fn summarizer(path: &Path, allowed: bool) -> Result<SummaryPlugin, LoadError> {
        loader(path, allowed)?.summarizer(path)
    }

    fn loader(path: &Path, allowed: bool) -> Result<DylibLoader, LoadError> {
        if allowed {
            return Ok(DylibLoader::new());
        }
        let why = "a native library, and nothing bounds what one does: it is loaded only with --allow-native, and only \
                   when its SHA-256 is pinned (sha256 in its plugin.toml, or FILE.sha256 beside it)";
        Err(LoadError::Settings(path.to_owned(), why.into()))
    }
}

#[cfg(not(feature = "dylib"))]
mod native {
    use std::path::Path;

    use super::super::{LoadError, StagePlugin, SummaryPlugin};

    pub(super) const fn stage(_: &Path, _: bool) -> Result<StagePlugin, LoadError> {
        Err(LoadError::Unsupported("dylib"))
    }

    pub(super) const fn summarizer(_: &Path, _: bool) -> Result<SummaryPlugin, LoadError> {
        Err(LoadError::Unsupported("dylib"))
    }
}
