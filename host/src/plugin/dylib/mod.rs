//! Plugins as native libraries: trusted code, for who cannot have an engine.
//!
//! Nothing bounds what a library does, so it is loaded only where three things come together: this feature, a
//! [`DylibLoader`], which only an operator makes, and a SHA-256 that pins the file. The bytes that were verified are the
//! bytes that are loaded: they are copied into a private folder first. A library is never unloaded.

mod abi;
mod about;
mod host;

pub use about::About;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::load;
use super::manifest::Settings;
use super::{Call, Done, Fault, Guest, Job, LoadError, Metrics, StagePlugin, SummaryPlugin, line::Line};
use abi::{ABI_MAJOR, ABI_MINOR, Entry, Factory, MAGIC, SYMBOL, Str};

/// Loads native libraries. Making one is the operator's permission.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct DylibLoader {}

/// A table of a loaded library.
struct Native {
    factory: Factory,
}

impl Guest for Native {
    fn call(&self, job: Job) -> (Done, Option<Line>) {
        let start = Instant::now();
        let function = if job.call == Call::Check { self.factory.check } else { self.factory.main };
        let mut call = host::Call::new(job);
        if let Some(function) = function {
            // SAFETY: the function is of a library that the operator trusts and that is never unloaded, of the shape that
            // its version promises. Both pointers hold for the time of the call.
            let code = unsafe { function(&raw const host::TABLE, &raw mut call) };
            if code != 0 && call.done.result.is_ok() {
                call.done.result = Err(Fault::Refused(format!("code {code}")));
            }
        }
        call.done.spent.wall = start.elapsed();
        (call.done, call.job.line)
    }
}

impl DylibLoader {
    /// A loader: from here on, libraries that are pinned are loaded.
    #[must_use]
    pub const fn new() -> Self {
        Self {}
    }

    /// Loads a stage from a `plugin.toml` with `sha256`, or from a library with its `FILE.sha256` beside it.
    ///
    /// # Errors
    /// Why it is not loaded.
    pub fn stage(&self, path: &Path) -> Result<StagePlugin, LoadError> {
        let (settings, name, digest, guest) = self.load(path, "stage/0.1")?;
        Ok(StagePlugin {
            name,
            digest,
            major: settings.version.split('.').next().filter(|major| !major.is_empty()).unwrap_or("0").into(),
            config: Arc::from(settings.config.as_deref().unwrap_or("{}")),
            limits: settings.limits,
            may_condense: settings.grants.iter().any(|grant| grant == "condensing"),
            on_failure: settings.on_failure,
            guest,
            metrics: Mutex::new(Metrics::default()),
        })
    }

    /// Loads a summarizer likewise.
    ///
    /// # Errors
    /// Why it is not loaded.
    pub fn summarizer(&self, path: &Path) -> Result<SummaryPlugin, LoadError> {
        let (settings, name, digest, guest) = self.load(path, "summarizer/0.1")?;
        Ok(SummaryPlugin {
            name,
            digest,
            config: Arc::from(settings.config.as_deref().unwrap_or("{}")),
            limits: settings.limits,
            guest,
            metrics: Mutex::new(Metrics::default()),
        })
    }

    fn load(&self, path: &Path, key: &'static str) -> Result<(Settings, String, String, Arc<dyn Guest>), LoadError> {
        let (file, settings) = Settings::find(path)?;
        let Some(pinned) = settings.sha256.as_deref() else {
            let why = "a native library must be pinned: write sha256 in its plugin.toml, or FILE.sha256 beside it";
            return Err(LoadError::Settings(file, why.into()));
        };
        is_private(&file)?;
        let (bytes, digest) = load::read(&file, Some(pinned), MOST_BYTES)?;
        let factory = factory(&bytes, key)?;
        let guest = Native { factory };
        let config = Arc::from(settings.config.as_deref().unwrap_or("{}"));
        let job = Job {
            call: Call::Check,
            line: None,
            entries: 0,
            config,
            memo: Vec::new(),
            summary: None,
            limits: settings.limits,
            condenses_as: None,
        };
        guest.call(job).0.result.map_err(|fault| LoadError::Check("check", fault))?;
        let name = load::name_for(&settings, &file);
        Ok((settings, name, digest, Arc::new(guest)))
    }
}

/// Bytes of a library at most.
const MOST_BYTES: u64 = 256 << 20;

/// The table of that key in a library of these bytes, which stays loaded for good.
fn factory(bytes: &[u8], key: &'static str) -> Result<Factory, LoadError> {
    let wrong = |why: String| LoadError::Compile(why);
    let io = |error: std::io::Error| LoadError::Compile(format!("no private copy can be made: {error}"));
    // The folder is the user's alone (0700) and has a name that cannot be guessed; what was verified is what is loaded.
    let folder = tempfile::tempdir().map_err(io)?;
    let copy = folder.path().join("plugin");
    std::fs::write(&copy, bytes).map_err(io)?;
    // SAFETY: initialisers of the library run here. The operator allowed libraries, and pinned these bytes.
    let library = unsafe { libloading::Library::new(&copy) }.map_err(|error| wrong(error.to_string()))?;
    // Never unloaded: threads, statics and destructors of it may outlive any use of ours.
    let library: &'static libloading::Library = Box::leak(Box::new(library));
    // SAFETY: the symbol is a function of this shape in every library that has it; the header says so.
    let entry = unsafe { library.get::<unsafe extern "C" fn() -> *const Entry>(SYMBOL) };
    let entry = entry.map_err(|_| LoadError::World("it has no function foreshorten_plugin_entry".into()))?;
    // SAFETY: as above; it takes nothing.
    let entry = unsafe { entry() };
    if entry.is_null() {
        return Err(LoadError::World("its entry is empty".into()));
    }
    // SAFETY: the first two members are in every version of the table; the magic number tells whether it is one.
    let (magic, size) = unsafe { ((*entry).magic, (*entry).struct_size) };
    if magic != MAGIC {
        return Err(LoadError::World(format!("its entry is none: it begins with {magic:#x}, not {MAGIC:#x}")));
    }
    if (size as usize) < size_of::<Entry>() {
        return Err(LoadError::World(format!("its entry has {size} bytes; {} are needed", size_of::<Entry>())));
    }
    // SAFETY: it is at least as large as our idea of it.
    let entry = unsafe { *entry };
    if entry.abi_major != ABI_MAJOR || entry.abi_minor != ABI_MINOR {
        let wants = format!("plugin ABI {}.{}", entry.abi_major, entry.abi_minor);
        return Err(LoadError::Version(wants, format!("{ABI_MAJOR}.{ABI_MINOR}")));
    }
    let none = || LoadError::World(format!("it offers no {key}"));
    let get = entry.get_factory.ok_or_else(none)?;
    // SAFETY: of the shape that this version promises; the key is lent for the call.
    let factory = unsafe { get(Str::of(key)) };
    if factory.is_null() {
        return Err(none());
    }
    // SAFETY: the size is the first member of every table.
    let size = unsafe { (*factory).struct_size };
    if size < size_of::<Factory>() {
        return Err(LoadError::World(format!("its {key} has {size} bytes; {} are needed", size_of::<Factory>())));
    }
    // SAFETY: as above.
    let factory = unsafe { *factory };
    if factory.check.is_none() || factory.main.is_none() {
        return Err(LoadError::World(format!("its {key} lacks a function")));
    }
    Ok(factory)
}

/// Refuses files that others can write: the digest would be right today and the library another tomorrow.
#[cfg(unix)]
fn is_private(file: &Path) -> Result<(), LoadError> {
    use std::os::unix::fs::MetadataExt as _;
    let found = std::fs::metadata(file).map_err(|error| LoadError::File(file.to_owned(), error))?;
    if found.mode() & 0o022 != 0 {
        return Err(LoadError::Settings(file.to_owned(), "others can write this file".into()));
    }
    Ok(())
}

#[cfg(not(unix))]
fn is_private(_: &Path) -> Result<(), LoadError> {
    Ok(())
}
