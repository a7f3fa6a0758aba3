//! Plugins as native libraries: trusted code, for who cannot have an engine.
//!
//! Nothing bounds what a library does, so it is loaded only where three things come together: this feature, a
//! [`DylibLoader`], which only an operator makes, and a SHA-256 that pins the file. The bytes that were verified are the
//! bytes that are loaded: they are copied into a private folder first. A library is never unloaded.

mod about;
// One file for both sides, so that they cannot differ.
#[path = "../../../../plugins/sdk/src/abi.rs"]
pub mod abi;
mod host;
mod tables;

pub use about::About;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::line::{Answering, Line};
use super::load;
use super::manifest::Settings;
use super::signature::TrustedKeys;
use super::{Call, Done, Fault, Guest, Job, LoadError, Metrics, StagePlugin, SummaryPlugin};
use abi::{Entry, Factory, STAGE, SUMMARIZER};

/// Loads native libraries. Making one is the operator's permission.
#[derive(Debug, Default)]
pub struct DylibLoader {
    trusted: TrustedKeys,
}

/// A table of a loaded library.
struct Native {
    factory: Factory,
}

impl Guest for Native {
    fn call(&self, job: Job) -> (Done, Option<Line>) {
        self.run(job, None)
    }

    /// A library is trusted and nothing ends its calls, so a thread of its own would gain nothing, and have every column
    /// cross from one core's cache to another's.
    fn call_here(&self, job: Box<Job>, answering: Answering<'_>) -> Result<Done, Box<Job>> {
        Ok(self.run(*job, Some(answering)).0)
    }
}

impl Native {
    fn run(&self, job: Job, here: Option<Answering<'_>>) -> (Done, Option<Line>) {
        let start = Instant::now();
        let function = if job.call == Call::Check { self.factory.check } else { self.factory.main };
        let mut call = host::Call::new(job, here);
        if let Some(function) = function {
            // SAFETY: the function is of a library that the operator trusts and that is never unloaded, of the shape that
            // its version promises. Both pointers hold for the time of the call.
            let code = unsafe { function(&raw const host::TABLE, (&raw mut call).cast()) };
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
    pub fn new() -> Self {
        Self::default()
    }

    /// Loads only what one of these keys signed, besides being pinned. Default: no keys, and signatures are not looked at.
    #[must_use]
    pub fn trusting(mut self, keys: TrustedKeys) -> Self {
        self.trusted = keys;
        self
    }

    /// Loads a stage from a `plugin.toml` with `sha256`, or from a library with its `FILE.sha256` beside it.
    ///
    /// # Errors
    /// Why it is not loaded.
    pub fn stage(&self, path: &Path) -> Result<StagePlugin, LoadError> {
        let (file, settings) = Settings::find(path)?;
        self.stage_with(&file, &settings)
    }

    /// Loads a stage from a library with these settings, whatever lies beside the file; they must pin it.
    ///
    /// # Errors
    /// Why it is not loaded.
    pub fn stage_with(&self, file: &Path, settings: &Settings) -> Result<StagePlugin, LoadError> {
        let (digest, guest) = self.load(file, settings, STAGE)?;
        Ok(stage(load::name_for(settings, file), digest, settings, guest))
    }

    /// A stage that is linked into this program, by its entry: for where nothing can be loaded at run time. Nothing is
    /// pinned then, as it is part of the program.
    ///
    /// # Errors
    /// Its tables are not as they must be, or its `check` fails.
    ///
    /// # Safety
    /// `entry` is null or what a `foreshorten_plugin_entry` answers: tables as large as they say, of functions as the
    /// header has them, that stay as they are for as long as the stage is used.
    pub unsafe fn linked_stage(
        &self,
        entry: *const Entry,
        name: &str,
        settings: &Settings,
    ) -> Result<StagePlugin, LoadError> {
        // SAFETY: as the caller promises.
        let factory = unsafe { tables::factory(&tables::entry(entry)?, STAGE)? };
        let guest = checked(factory, settings)?;
        Ok(stage(name.into(), super::sha256(name.as_bytes()), settings, guest))
    }

    /// Loads a summarizer likewise.
    ///
    /// # Errors
    /// Why it is not loaded.
    pub fn summarizer(&self, path: &Path) -> Result<SummaryPlugin, LoadError> {
        let (file, settings) = Settings::find(path)?;
        let (digest, guest) = self.load(&file, &settings, SUMMARIZER)?;
        Ok(SummaryPlugin {
            name: load::name_for(&settings, &file),
            digest,
            config: Arc::from(settings.config.as_deref().unwrap_or("{}")),
            limits: settings.limits,
            guest,
            metrics: Mutex::new(Metrics::default()),
            asks: AtomicBool::new(false),
        })
    }

    /// The library in `file`, checked: its digest, and what is called.
    fn load(&self, file: &Path, settings: &Settings, key: &'static str) -> Result<(String, Arc<dyn Guest>), LoadError> {
        let Some(pinned) = settings.sha256.as_deref() else {
            let why = "a native library must be pinned: write sha256 in its plugin.toml, or FILE.sha256 beside it";
            return Err(LoadError::Settings(file.to_owned(), why.into()));
        };
        is_private(file)?;
        let (bytes, digest) = load::read(file, Some(pinned), MOST_BYTES)?;
        self.trusted.check(&bytes, &load::name_for(settings, file), settings)?;
        Ok((digest, checked(factory(&bytes, key)?, settings)?))
    }
}

/// A table that can be called, after its `check`.
fn checked(factory: Factory, settings: &Settings) -> Result<Arc<dyn Guest>, LoadError> {
    let guest = Native { factory };
    let config = Arc::from(settings.config.as_deref().unwrap_or("{}"));
    guest.call(Job::check(config, settings.limits)).0.result.map_err(|fault| LoadError::Check("check", fault))?;
    Ok(Arc::new(guest))
}

fn stage(name: String, digest: String, settings: &Settings, guest: Arc<dyn Guest>) -> StagePlugin {
    StagePlugin {
        name,
        digest,
        major: settings.version.split('.').next().filter(|major| !major.is_empty()).unwrap_or("0").into(),
        config: Arc::from(settings.config.as_deref().unwrap_or("{}")),
        limits: settings.limits,
        may_condense: settings.grants.iter().any(|grant| grant == "condensing"),
        on_failure: settings.on_failure.clone(),
        guest,
        metrics: Mutex::new(Metrics::default()),
    }
}

/// The one symbol that a library must have.
const SYMBOL: &[u8] = b"foreshorten_plugin_entry\0";

/// Bytes of a library at most.
const MOST_BYTES: u64 = 256 << 20;

/// Loads a library of these bytes, which stays loaded for good; answers what its entry function answers.
fn open(bytes: &[u8]) -> Result<*const Entry, LoadError> {
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
    let symbol = unsafe { library.get::<unsafe extern "C" fn() -> *const Entry>(SYMBOL) };
    let symbol = symbol.map_err(|_| LoadError::World("it has no function foreshorten_plugin_entry".into()))?;
    // SAFETY: as above; it takes nothing.
    Ok(unsafe { symbol() })
}

/// The table of that key in a library of these bytes.
fn factory(bytes: &[u8], key: &'static str) -> Result<Factory, LoadError> {
    let entry = open(bytes)?;
    // SAFETY: what a library's entry function answers, and what that answers, are tables as the header says.
    unsafe { tables::factory(&tables::entry(entry)?, key) }
}

/// Refuses files that others can write: the digest would be right today and the library another tomorrow. Who can write
/// its `FILE.sha256`, or the folder of both, can change the digest along with it.
#[cfg(unix)]
fn is_private(file: &Path) -> Result<(), LoadError> {
    use std::os::unix::fs::MetadataExt as _;
    let pin = super::manifest::beside(file, ".sha256");
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    for path in [file, &pin, folder] {
        let found = match std::fs::metadata(path) {
            Ok(found) => found,
            Err(_) if path == pin => continue,
            Err(error) => return Err(LoadError::File(path.to_owned(), error)),
        };
        // In a folder with this bit, each can replace only files of their own.
        const STICKY: u32 = 0o1000;
        if found.mode() & 0o022 != 0 && !(found.is_dir() && found.mode() & STICKY != 0) {
            let what = if found.is_dir() { "folder, and so replace what is in it" } else { "file" };
            let why = format!("others can write this {what}; chmod go-w {}", path.display());
            return Err(LoadError::Settings(path.to_owned(), why));
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn is_private(_: &Path) -> Result<(), LoadError> {
    Ok(())
}
