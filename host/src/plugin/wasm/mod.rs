//! Plugins as WebAssembly components: the engine, the loader, and the encoder.

mod call;
mod canary;
mod encode;
mod engine;
mod imports;
mod world;

pub use encode::encode;
pub use world::{Item, Outline, WIT, WIT_VERSION, World};

use std::path::Path;
use std::sync::{Arc, Mutex};

use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use super::load;
use super::manifest::Settings;
use super::{Call, Guest, Job, Limits, LoadError, Metrics, StagePlugin, SummaryPlugin};
use call::{Prepared, State};

/// Loads plugins. One serves a whole process.
///
/// What happens, in this order, the first that fails naming itself: the size, the SHA-256 that was pinned, the version of
/// the interface (before anything is compiled), every import against what is granted, compilation, the plugin's own
/// `check`, and a run over a built-in record.
pub struct Loader {
    engine: Engine,
    linker: Linker<State>,
    caps: Limits,
}

impl std::fmt::Debug for Loader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loader").field("caps", &self.caps).finish_non_exhaustive()
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
        Ok(Self { engine, linker, caps })
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
        let guest = self.prepare(&bytes, World::Summarizer, &settings, limits)?;
        let plugin = SummaryPlugin {
            name: load::name_for(&settings, &file),
            digest,
            config: config(&settings),
            limits,
            guest,
            metrics: Mutex::new(Metrics::default()),
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
        let guest = self.prepare(component, World::Stage, settings, limits)?;
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
        settings: &Settings,
        limits: Limits,
    ) -> Result<Arc<dyn Guest>, LoadError> {
        let exported = Outline::read(bytes)?.check(world, &settings.grants)?;
        let wrong = |error: wasmtime::Error| LoadError::Compile(format!("{error:#}"));
        // `from_binary` refuses precompiled code, whoever made it.
        let component = Component::from_binary(&self.engine, bytes).map_err(wrong)?;
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
        Ok(Arc::new(guest))
    }
}

fn config(settings: &Settings) -> Arc<str> {
    Arc::from(settings.config.as_deref().unwrap_or("{}"))
}
