//! Plugins as WebAssembly components: the engine, the loader, and the encoder.

mod cache;
mod call;
mod canary;
mod encode;
mod engine;
mod imports;
mod nesting;
mod world;

pub use encode::encode;
pub use world::{Item, Outline, WIT, WIT_VERSION, World};

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use super::code_cache::{CodeCache, Loads};
use super::load;
use super::manifest::Settings;
use super::sealed::Key;
use super::signature::TrustedKeys;
use super::{Call, Guest, Job, Limits, LoadError, Metrics, StagePlugin, SummaryPlugin};
use call::{Prepared, State};

/// Loads plugins. One serves a whole process.
///
/// What happens, in this order, the first that fails naming itself: the size, the SHA-256 that was pinned, the signature
/// when keys are trusted, the version of the interface (before anything is compiled), every import against what is granted, compilation, the plugin's own
/// `check`, and a run over a built-in record.
pub struct Loader {
    engine: Engine,
    linker: Linker<State>,
    caps: Limits,
    trusted: TrustedKeys,
    cache: Option<CodeCache>,
    compiled: AtomicU64,
    from_cache: AtomicU64,
}

impl std::fmt::Debug for Loader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loader").field("caps", &self.caps).field("cache", &self.cache).finish_non_exhaustive()
    }
}

impl Loader {
    /// A loader whose plugins get no more than `caps`, whatever they ask for; [`Limits::caps`] is a good choice.
    ///
    /// # Errors
    /// The engine does not start on this machine.
    pub fn new(caps: Limits) -> Result<Self, LoadError> {
        let engine = engine::engine(&caps)?;
        let linker = imports::linker(&engine).map_err(|error| LoadError::Compile(format!("{error:#}")))?;
        let (compiled, from_cache) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Self { engine, linker, caps, trusted: TrustedKeys::default(), cache: None, compiled, from_cache })
    }

    /// Keeps compiled code in this cache, and takes it from there. Default: everything is compiled anew.
    #[must_use]
    pub fn cached(mut self, cache: CodeCache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Loads only what one of these keys signed ([`signature`](super::signature)). Default: no keys, and signatures are not
    /// looked at.
    #[must_use]
    pub fn trusting(mut self, keys: TrustedKeys) -> Self {
        self.trusted = keys;
        self
    }

    /// How often it compiled, and how often it did not have to.
    #[must_use]
    pub fn loads(&self) -> Loads {
        Loads { compiled: self.compiled.load(Ordering::Relaxed), from_cache: self.from_cache.load(Ordering::Relaxed) }
    }

    /// Loads a stage from a `plugin.toml`, a folder with one, or a bare component.
    ///
    /// # Errors
    /// Why it is not loaded.
    pub fn stage(&self, path: &Path) -> Result<StagePlugin, LoadError> {
        let (file, settings) = Settings::find(path)?;
        let (bytes, digest) = self.bytes(&file, &settings)?;
        let name = load::name_for(&settings, &file);
        let plugin = self.stage_of(&bytes, &name, digest, &settings)?;
        canary::stage(&plugin)?;
        Ok(plugin)
    }

    /// Loads a summarizer likewise.
    ///
    /// # Errors
    /// Why it is not loaded.
    pub fn summarizer(&self, path: &Path) -> Result<SummaryPlugin, LoadError> {
        let (file, settings) = Settings::find(path)?;
        let (bytes, digest) = self.bytes(&file, &settings)?;
        let limits = settings.limits.within(&self.caps);
        let name = load::name_for(&settings, &file);
        let guest = self.prepare(&bytes, World::Summarizer, &name, &settings, limits)?;
        let plugin = SummaryPlugin {
            name,
            digest,
            config: config(&settings),
            limits,
            guest,
            metrics: Mutex::new(Metrics::default()),
            asks: AtomicBool::new(false),
        };
        canary::summarizer(&plugin)?;
        Ok(plugin)
    }

    /// A stage from bytes, checked but not tried on a record.
    ///
    /// # Errors
    /// Why it is not loaded.
    pub fn stage_of(
        &self,
        component: &[u8],
        name: &str,
        digest: String,
        settings: &Settings,
    ) -> Result<StagePlugin, LoadError> {
        let limits = settings.limits.within(&self.caps);
        let guest = self.prepare(component, World::Stage, name, settings, limits)?;
        Ok(StagePlugin {
            name: name.into(),
            digest,
            major: settings.version.split('.').next().filter(|major| !major.is_empty()).unwrap_or("0").into(),
            config: config(settings),
            limits,
            may_condense: settings.grants.iter().any(|grant| grant == "condensing"),
            on_failure: settings.on_failure.clone(),
            guest,
            metrics: Mutex::new(Metrics::default()),
        })
    }

    fn bytes(&self, file: &Path, settings: &Settings) -> Result<(Vec<u8>, String), LoadError> {
        let most = settings.limits.within(&self.caps).file_bytes;
        load::read(file, settings.sha256.as_deref(), most)
    }

    fn prepare(
        &self,
        bytes: &[u8],
        world: World,
        name: &str,
        settings: &Settings,
        limits: Limits,
    ) -> Result<Arc<dyn Guest>, LoadError> {
        self.trusted.check(bytes, name, settings)?;
        let exported = Outline::read(bytes)?.check(world, &settings.grants)?;
        let wrong = |error: wasmtime::Error| LoadError::Compile(format!("{error:#}"));
        let (component, fresh) = self.component(bytes)?;
        let pre = self.linker.instantiate_pre(&component).map_err(wrong)?;
        let missing = || LoadError::World(format!("it does not export all of {exported}"));
        let at = component.get_export_index(None, &exported).ok_or_else(missing)?;
        let function = |name: &str| component.get_export_index(Some(&at), name).ok_or_else(missing);
        let (check, main) = (function("check")?, function(world.exports().1)?);
        let guest = Prepared { engine: self.engine.clone(), pre, check, main };
        let job = Job {
            call: Call::Check,
            line: None,
            entries: 0,
            config: config(settings),
            memo: Vec::new(),
            summary: None,
            limits,
            condenses_as: None,
        };
        let done = guest.call(job).0;
        done.result.map_err(|fault| LoadError::Check("check", fault))?;
        // Only what passed is kept.
        if let (Some(key), Some(cache)) = (fresh, &self.cache) {
            cache::keep(cache, &key, &component);
        }
        Ok(Arc::new(guest))
    }

    /// The component, out of the cache or compiled here; with its key when it is not in the cache yet.
    fn component(&self, bytes: &[u8]) -> Result<(Component, Option<Key>), LoadError> {
        let key = self.cache.as_ref().map(|_| cache::key(&self.engine, bytes));
        if let (Some(cache), Some(key)) = (&self.cache, &key)
            && let Some(component) = cache::take(&self.engine, cache, key)
        {
            self.from_cache.fetch_add(1, Ordering::Relaxed);
            return Ok((component, None));
        }
        // `from_binary` refuses precompiled code, whoever made it.
        let component = Component::from_binary(&self.engine, bytes);
        let component = component.map_err(|error| LoadError::Compile(format!("{error:#}")))?;
        self.compiled.fetch_add(1, Ordering::Relaxed);
        Ok((component, key))
    }
}

fn config(settings: &Settings) -> Arc<str> {
    Arc::from(settings.config.as_deref().unwrap_or("{}"))
}
