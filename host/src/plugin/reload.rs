//! A plugin whose file may change while sessions run.
//!
//! At the boundary of a turn it is looked whether the file, its `plugin.toml`, `FILE.sha256` or `FILE.sig` changed: by the facts
//! of the file system first, then by content. A changed plugin is loaded beside the turn, passes everything that it would pass
//! otherwise, and is the one that is used from the next boundary on. One that does not pass, a half-written file for instance,
//! is not taken: the one before stays, which is said once, and it is tried again when the file changes again.
//!
//! Name and grants are settled when a pipeline is built, so a file that changes these is not taken either. What it kept
//! goes on within one major version; its breaker begins anew, since that is kept under the digest.

use std::collections::VecDeque;
use std::io::Read as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};

use super::manifest::{beside, manifest_of, open_file};
use super::span::short;
use super::{FileKind, LoadError, Loader, Metrics, Settings, StagePlugin, SummaryPlugin};
use crate::summarizer::{Summarizer, Summary, SummaryAsk, SummaryError};

/// What can be loaded again: a stage or a summarizer.
pub trait Reloadable: Sized + Send + Sync + 'static {
    /// Loads it, with everything that is checked.
    ///
    /// # Errors
    /// Why it is not loaded.
    fn load(loader: &Loader, path: &Path) -> Result<Self, LoadError>;
    /// Its name.
    fn name(&self) -> &str;
    /// SHA-256 of its file.
    fn digest(&self) -> &str;
    /// Whether it may put text of its own into the view.
    fn may_condense(&self) -> bool;
    /// Its account.
    fn account(&self) -> &Mutex<Metrics>;
}

impl Reloadable for StagePlugin {
    fn load(loader: &Loader, path: &Path) -> Result<Self, LoadError> {
        loader.stage(path)
    }

    fn name(&self) -> &str {
        Self::name(self)
    }

    fn digest(&self) -> &str {
        Self::digest(self)
    }

    fn may_condense(&self) -> bool {
        Self::may_condense(self)
    }

    fn account(&self) -> &Mutex<Metrics> {
        &self.metrics
    }
}

impl Reloadable for SummaryPlugin {
    fn load(loader: &Loader, path: &Path) -> Result<Self, LoadError> {
        loader.summarizer(path)
    }

    fn name(&self) -> &str {
        Self::name(self)
    }

    fn digest(&self) -> &str {
        Self::digest(self)
    }

    fn may_condense(&self) -> bool {
        false
    }

    fn account(&self) -> &Mutex<Metrics> {
        &self.metrics
    }
}

/// A plugin that is loaded again when its file changes. Clones are the same one.
///
/// In a runner it stands in a pipeline as [`StageSpec::Reloading`](crate::context::StageSpec::Reloading), and every turn looks
/// by itself; a summarizer is given to [`Compaction::summarizer`](crate::context::Compaction::summarizer). A blocking host
/// calls [`refresh`](Self::refresh) between two turns and takes [`active`](Self::active) for the next.
///
/// Native libraries are not reloaded: they are never unloaded, so two would be in the process at once.
///
/// ```no_run
/// use std::sync::Arc;
/// use foreshorten::context::{Compaction, StageSpec};
/// use foreshorten::plugin::{Limits, Loader, Reloading, StagePlugin};
/// let loader = Arc::new(Loader::new(Limits::caps())?);
/// let stage: Reloading<StagePlugin> = Reloading::open(loader, "my-stage.wasm")?;
/// let policy = Compaction::new().stage(StageSpec::Reloading(stage));
/// # Ok::<(), foreshorten::plugin::LoadError>(())
/// ```
#[derive(Debug)]
pub struct Reloading<P>(Arc<Slot<P>>);

impl<P> Clone for Reloading<P> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
struct Slot<P> {
    path: PathBuf,
    loader: Arc<Loader>,
    name: String,
    may_condense: bool,
    state: Mutex<State<P>>,
}

#[derive(Debug)]
struct State<P> {
    active: Arc<P>,
    /// Loaded, and active from the next boundary on.
    next: Option<Arc<P>>,
    /// A load is under way.
    loading: bool,
    /// The files that matter, and what the file system said about them before they were last read.
    files: Vec<PathBuf>,
    seen: Vec<Stamp>,
    /// A file was written so shortly before that another write might leave the same facts: contents are compared.
    unsure: bool,
    /// Digest of their contents then, whether they were taken or not.
    content: [u8; 32],
    /// What happened, newest last, and how much of it there was in all.
    news: VecDeque<String>,
    happened: u64,
}

/// Lines that are kept for sessions that have not heard them yet.
const NEWS: usize = 16;

/// What the file system says about a file; `None` when there is none.
type Stamp = Option<(u64, Option<SystemTime>, u64)>;

fn stamp(path: &Path) -> Stamp {
    let facts = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&facts);
    #[cfg(not(unix))]
    let number = 0;
    Some((facts.len(), facts.modified().ok(), number))
}

fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    files.iter().map(|file| stamp(file)).collect()
}

/// What the clock of a file system may be behind: two writes within it can look like one.
const TICK: Duration = Duration::from_millis(100);

/// Whether any of these could still change without looking changed.
fn is_fresh(seen: &[Stamp]) -> bool {
    let now = SystemTime::now();
    seen.iter()
        .flatten()
        .any(|(_, written, _)| written.is_none_or(|at| now.duration_since(at).is_ok_and(|age| age < TICK)))
}

/// Digest of the contents of files, and of which of them are there.
fn content(files: &[PathBuf]) -> [u8; 32] {
    let mut all = Sha256::new();
    for path in files {
        let mut digest = Sha256::new();
        let mut buffer = vec![0; 1 << 16];
        let Ok(mut file) = open_file(path) else {
            all.update([0]);
            continue;
        };
        while let Ok(length @ 1..) = file.read(&mut buffer) {
            digest.update(&buffer[..length]);
        }
        all.update([1]);
        all.update(digest.finalize());
    }
    all.finalize().into()
}

/// The files that a plugin is made of; the component is where its settings say, or where it was when they cannot be read.
fn files(path: &Path, before: Option<&PathBuf>) -> Vec<PathBuf> {
    let file = Settings::find(path).map(|(file, _)| file).ok().or_else(|| before.cloned());
    let file = file.unwrap_or_else(|| path.to_owned());
    let (pin, signature) = (beside(&file, ".sha256"), beside(&file, ".sig"));
    [file, pin, signature].into_iter().chain(manifest_of(path)).collect()
}

impl<P: Reloadable> Reloading<P> {
    /// Loads the plugin: from a `plugin.toml`, a folder with one, or a bare component.
    ///
    /// # Errors
    /// Why it is not loaded; a native library never is.
    pub fn open(loader: Arc<Loader>, path: impl Into<PathBuf>) -> Result<Self, LoadError> {
        let path = path.into();
        if FileKind::of(&path)? == FileKind::Library {
            let why = "a native library, which stays as it was loaded; start again to change it";
            return Err(LoadError::NotAComponent(why.into()));
        }
        let files = files(&path, None);
        // Before it is read: a change while it is read is seen at the next look.
        let seen = stamps(&files);
        let (unsure, content) = (is_fresh(&seen), content(&files));
        let active = Arc::new(P::load(&loader, &path)?);
        let (name, may_condense) = (active.name().to_owned(), active.may_condense());
        let (news, happened) = (VecDeque::new(), 0);
        let state = State { active, next: None, loading: false, files, seen, unsure, content, news, happened };
        Ok(Self(Arc::new(Slot { path, loader, name, may_condense, state: Mutex::new(state) })))
    }

    /// Its name, the same for all its versions.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether it may put text of its own in place of results.
    #[must_use]
    pub fn may_condense(&self) -> bool {
        self.0.may_condense
    }

    /// The plugin as it is used now. Who holds it goes on with it, whatever is loaded.
    #[must_use]
    pub fn active(&self) -> Arc<P> {
        Arc::clone(&self.0.state().active)
    }

    /// Whether a changed file is being loaded right now.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.0.state().loading
    }

    /// What it did so far, earlier versions of it included.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.active().account().lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The boundary of a turn: what was loaded meanwhile takes its place, and if the file changed, a load begins beside the
    /// turn, on the blocking pool of the runtime, or on a thread of its own where there is none.
    pub fn at_turn(&self) -> Arc<P> {
        self.0.take_next();
        if self.0.begin() {
            let slot = Arc::clone(&self.0);
            match tokio::runtime::Handle::try_current() {
                Ok(runtime) => drop(runtime.spawn_blocking(move || slot.load())),
                // Where no thread can be had, it is loaded here.
                Err(_) => {
                    if std::thread::Builder::new().name("plugin-load".into()).spawn(move || slot.load()).is_err() {
                        self.0.load();
                    }
                }
            }
        }
        self.active()
    }

    /// For blocking hosts, between two turns: looks, loads what changed, and uses it from here on. Answers whether it is
    /// another plugin now.
    pub fn refresh(&self) -> bool {
        if self.0.begin() {
            self.0.load();
        }
        self.0.take_next()
    }

    /// How much has happened so far, for [`news`](Self::news).
    #[must_use]
    pub fn happened(&self) -> u64 {
        self.0.state().happened
    }

    /// Lines for people about what happened since: that another file is used, or why one is not. And how much happened with
    /// these.
    #[must_use]
    pub fn news(&self, since: u64) -> (Vec<String>, u64) {
        let state = self.0.state();
        let new = usize::try_from(state.happened.saturating_sub(since)).unwrap_or(usize::MAX);
        (state.news.iter().skip(state.news.len().saturating_sub(new)).cloned().collect(), state.happened)
    }
}

impl<P: Reloadable> Slot<P> {
    fn state(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a load should be made, which is then this caller's to make.
    fn begin(&self) -> bool {
        let mut state = self.state();
        let changed = !state.loading && state.next.is_none() && (state.unsure || stamps(&state.files) != state.seen);
        state.loading |= changed;
        changed
    }

    /// Loads, and notes what came of it.
    fn load(&self) {
        let before = self.state().files.first().cloned();
        let files = files(&self.path, before.as_ref());
        let seen = stamps(&files);
        let (unsure, content) = (is_fresh(&seen), content(&files));
        let known = self.state().content == content;
        // Only touched, or written again as it was.
        let loaded = (!known).then(|| self.try_load().and_then(|plugin| self.fits(plugin)));
        let mut state = self.state();
        (state.loading, state.files, state.seen, state.unsure, state.content) = (false, files, seen, unsure, content);
        match loaded {
            None => {}
            Some(Ok(plugin)) => state.next = Some(Arc::new(plugin)),
            Some(Err(error)) => {
                let old = short(state.active.digest()).to_owned();
                tracing::warn!(target: "foreshorten::plugin", plugin = %self.name, %error, "a changed plugin is not taken");
                state.say(format!(
                    "{}: its changed file is not taken: {error}; that of SHA-256 {old}… stays",
                    self.name
                ));
                let mut account = state.active.account().lock().unwrap_or_else(PoisonError::into_inner);
                account.reload_failures += 1;
            }
        }
    }

    /// Loads it. A panic of the engine is a failure like any other: the next change is looked at all the same.
    fn try_load(&self) -> Result<P, LoadError> {
        let load = AssertUnwindSafe(|| P::load(&self.loader, &self.path));
        catch_unwind(load).unwrap_or_else(|_| Err(LoadError::Compile("it panicked".into())))
    }

    /// Whether it can take the place of the one before.
    fn fits(&self, plugin: P) -> Result<P, LoadError> {
        let wrong = |why: String| Err(LoadError::Settings(self.path.clone(), why));
        if plugin.name() != self.name {
            return wrong(format!(
                "its name is `{}` now, and the pipeline has `{}`; start again",
                plugin.name(),
                self.name
            ));
        }
        if plugin.may_condense() && !self.may_condense {
            return wrong(
                "it has the grant `condensing` now, which the pipeline was built without; start again".into(),
            );
        }
        Ok(plugin)
    }

    /// Puts what was loaded into its place.
    fn take_next(&self) -> bool {
        let mut state = self.state();
        let Some(next) = state.next.take() else { return false };
        let before = std::mem::replace(&mut state.active, next);
        let (old, new) = (short(before.digest()), short(state.active.digest()).to_owned());
        {
            // The account is the plugin's, whichever file it is in. What a call that is under way still adds is lost.
            let mut account = state.active.account().lock().unwrap_or_else(PoisonError::into_inner);
            account.clone_from(&before.account().lock().unwrap_or_else(PoisonError::into_inner));
            account.reloads += 1;
        }
        tracing::info!(target: "foreshorten::plugin", plugin = %self.name, digest = %new, before = %old, "a plugin was reloaded");
        let line = format!("{}: its file changed; SHA-256 {new}… is used in place of {old}…", self.name);
        state.say(line);
        true
    }
}

impl<P> State<P> {
    fn say(&mut self, line: String) {
        if self.news.len() == NEWS {
            self.news.pop_front();
        }
        self.news.push_back(line);
        self.happened += 1;
    }
}

/// Looks for a changed file before every summary.
#[async_trait]
impl Summarizer for Reloading<SummaryPlugin> {
    async fn summarize(&self, ask: SummaryAsk<'_>) -> Result<Summary, SummaryError> {
        self.at_turn().summarize(ask).await
    }
}
