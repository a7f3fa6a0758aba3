//! The blocking loop around the core, and what it answers with.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use foreshorten_core::{
    Compactor, Effect, Finish, Policy, Step, SummaryFailure, SummaryReply, SummaryRequest, summary::extractive_summary,
    transcript::Transcript,
};

use crate::plugin::{Account, LoadError, Loaders, Metrics, Required, Stages, SummaryPlugin};
use crate::stores::FileStore;

/// Who writes summaries, of those that come along.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[non_exhaustive]
pub enum SummarizerKind {
    /// Nobody: old stretches give way to a note that says what was left out.
    #[default]
    None,
    /// Lines taken from the record, without a model.
    Extractive,
}

/// Who writes summaries, as people say it: `none`, `extractive`, or the file of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SummarizerChoice {
    /// One that comes along.
    Kind(SummarizerKind),
    /// A plugin.
    File(PathBuf),
}

impl FromStr for SummarizerChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(Self::Kind(SummarizerKind::None)),
            "extractive" => Ok(Self::Kind(SummarizerKind::Extractive)),
            file if is_plugin(file) => Ok(Self::File(file.into())),
            _ => Err(
                "expected none, extractive, or the path of a plugin: a .wasm file, a native library, a plugin.toml, or a \
                 folder with one, written with a slash: ./NAME"
                    .into(),
            ),
        }
    }
}

impl std::fmt::Display for SummarizerChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kind(SummarizerKind::None) => f.write_str("none"),
            Self::Kind(SummarizerKind::Extractive) => f.write_str("extractive"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl SummarizerChoice {
    /// Loads the plugin, if it is one.
    ///
    /// # Errors
    /// Why it is not loaded.
    pub fn load(&self, loaders: impl FnOnce() -> Result<Loaders, LoadError>) -> Result<Summaries, LoadError> {
        Ok(match self {
            Self::Kind(SummarizerKind::None) => Summaries::None,
            Self::Kind(SummarizerKind::Extractive) => Summaries::Extractive,
            Self::File(path) => Summaries::Plugin(Arc::new(loaders()?.summarizer(path)?)),
        })
    }
}

/// Whether a name in a pipeline means a file, or a folder: by its ending or a slash in it; `.` and `..` do too. Nothing is
/// looked for on the disk, so that a folder that happens to be there changes no pipeline.
///
/// ```
/// use foreshorten::drive::is_plugin;
/// assert!(is_plugin("my-stage.wasm") && is_plugin("./my-stage") && is_plugin("."));
/// assert!(!is_plugin("my-stage") && !is_plugin("clear"));
/// ```
#[must_use]
pub fn is_plugin(name: &str) -> bool {
    [".wasm", ".toml", ".so", ".dylib", ".dll"].iter().any(|ending| name.ends_with(ending))
        || name.contains(std::path::is_separator)
        || matches!(name, "." | "..")
}

/// Who writes summaries, ready to.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Summaries {
    /// Nobody.
    #[default]
    None,
    /// Lines taken from the record.
    Extractive,
    /// A plugin.
    Plugin(Arc<SummaryPlugin>),
}

impl Summaries {
    /// Why they will not be written where there is no model to ask, when that is known: the plugin asks one.
    #[must_use]
    pub fn lacks_model(&self) -> Option<String> {
        match self {
            Self::Plugin(plugin) if plugin.asks_model() => Some(format!(
                "the summarizer {} asks a model, and none is called here; take `extractive`, `none`, or a plugin that writes \
                 by itself (in an agent that runs, `Compaction::summarizer` gives it the run's own model)",
                plugin.name()
            )),
            _ => None,
        }
    }

    /// Whether anybody does.
    #[must_use]
    pub const fn any(&self) -> bool {
        !matches!(self, Self::None)
    }

    fn write<P: std::borrow::Borrow<Policy>>(
        &self,
        compactor: &Compactor<P>,
        transcript: &dyn Transcript,
        request: &SummaryRequest,
        account: &mut Account,
    ) -> Result<SummaryReply, SummaryFailure> {
        let text = match self {
            Self::None => return Err(SummaryFailure::Failed),
            Self::Extractive => {
                let guard = compactor.guard(transcript);
                let most = (request.max_chars as usize).min(EXTRACT_CHARS);
                extractive_summary(&guard, &request.entries, request.prior.as_deref(), most)
            }
            // It would ask again, and there is still no model.
            Self::Plugin(plugin) if plugin.asks_model() => return Err(SummaryFailure::Failed),
            Self::Plugin(plugin) => {
                let (columns, ledger) = (compactor.columns(), compactor.ledger());
                let mut call = Metrics::default();
                let written = plugin.write_counted(request, transcript, columns, ledger, &mut call);
                account.add(plugin.name(), &call);
                written.map_err(|fault| {
                    tracing::warn!(plugin = plugin.name(), %fault, "a summarizer failed");
                    SummaryFailure::Failed
                })?
            }
        };
        Ok(SummaryReply { text, finish: Finish::Complete })
    }
}

/// Who answers what the core asks for.
#[derive(Clone, Copy, Debug)]
pub struct Helpers<'a> {
    /// Summaries.
    pub summarizer: &'a Summaries,
    /// Where reduced results are kept.
    pub store: Option<&'a FileStore>,
    /// Stages of others.
    pub plugins: &'a Stages,
}

/// Polls until the view is ready, answering effects in this thread. Stages of others are left out.
pub fn settle<P: std::borrow::Borrow<Policy>>(
    compactor: &mut Compactor<P>,
    transcript: &dyn Transcript,
    summarizer: SummarizerKind,
    store: Option<&FileStore>,
) {
    let summarizer = match summarizer {
        SummarizerKind::None => Summaries::None,
        SummarizerKind::Extractive => Summaries::Extractive,
    };
    // Without plugins there is none that is required.
    let _ = settle_with(compactor, transcript, Helpers { summarizer: &summarizer, store, plugins: &Stages::default() });
}

/// Polls until the view is ready, answering effects in this thread.
///
/// # Errors
/// A plugin failed that is required: the view must not be used.
pub fn settle_with<P: std::borrow::Borrow<Policy>>(
    compactor: &mut Compactor<P>,
    transcript: &dyn Transcript,
    helpers: Helpers<'_>,
) -> Result<(), Required> {
    settle_counted(compactor, transcript, helpers, &mut Account::default())
}

/// As [`settle_with`]; what plugins did is added to `account`.
///
/// # Errors
/// As there.
pub fn settle_counted<P: std::borrow::Borrow<Policy>>(
    compactor: &mut Compactor<P>,
    transcript: &dyn Transcript,
    helpers: Helpers<'_>,
    account: &mut Account,
) -> Result<(), Required> {
    loop {
        match compactor.poll(transcript) {
            Step::Done(_) => return Ok(()),
            Step::Effect(Effect::Summarize(request)) => {
                let reply = helpers.summarizer.write(compactor, transcript, &request, account);
                compactor.handle_summary(transcript, reply);
            }
            Step::Effect(Effect::Archive { entry, digest }) => {
                let stored = helpers.store.is_some_and(|store| store.put_entry(&digest, transcript, entry).is_ok());
                compactor.handle_archived(stored);
            }
            Step::Effect(Effect::RunStage { name }) => match helpers.plugins.get(&name) {
                Some(plugin) => {
                    let mut call = Metrics::default();
                    let ran = plugin.run_counted(compactor, transcript, &mut call);
                    account.add(&name, &call);
                    ran?;
                }
                None => compactor.abandon_stage(&format!("{name}: there is no such plugin; left out")),
            },
            Step::Effect(_) => compactor.handle_proposals(transcript, Vec::new()),
        }
    }
}

/// Length of an extract, in characters: long enough to carry on, a tenth of a small window.
pub(crate) const EXTRACT_CHARS: usize = 4_000;
