//! Context policies: what of the record one model call is sent.
//!
//! A [`ContextPolicy`] is posture: set once on an agent, it serves every run and session. [`Compaction`] is the default;
//! [`NoopContextPolicy`] sends everything. A policy of one's own is one method:
//!
//! ```
//! use foreshorten::context::{CompactionRequest, ContextPolicy, ContextResult, PolicyError};
//! use foreshorten::view::{View, ViewPiece};
//! use foreshorten_core::transcript::{EntryKind, Transcript};
//!
//! /// Sends what the user said, and nothing else.
//! struct OnlyTheUser;
//!
//! #[async_trait::async_trait]
//! impl ContextPolicy for OnlyTheUser {
//!     async fn compact(&self, request: CompactionRequest<'_>) -> Result<ContextResult, PolicyError> {
//!         let said = (0..request.record.len()).filter(|&at| request.record.entry(at).kind == EntryKind::User);
//!         Ok(ContextResult::of(View::new(said.map(ViewPiece::Entry).collect())))
//!     }
//! }
//! ```

mod background;
mod compaction;
mod earlier;
mod effects;
mod noop;
mod recipe;
mod result;
mod scratch;
mod settings;

pub use compaction::Compaction;
pub(crate) use compaction::scope;
pub use earlier::CompactingContextPolicy;
pub use noop::NoopContextPolicy;
pub use recipe::{SharedStage, StageSpec, WeigherChoice};
pub use result::ContextResult;
pub use scratch::Scratch;
pub use settings::IntoWatermark;

use std::fmt;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use foreshorten_core::CompactionState;

use crate::provider::{Provider, Settings, Usage};
use crate::record::Record;
use crate::session::Meta;
use crate::tool::{ToolSpec, Tools};

/// Name under which [`Compaction`] keeps its state with a session.
pub const STATE_KEY: &str = "context";

/// Why a policy is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Occasion<'a> {
    /// A model call is about to be made.
    #[default]
    Turn,
    /// The user wants the view compacted now; the text says what a summary should look at especially.
    Manual(Option<&'a str>),
    /// The user wants to know what compacting now would decide. Nothing is decided, and no model is asked.
    DryRun,
}

/// What the policy's own model calls cost. Counted apart from the conversation's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyUsage {
    /// Calls made.
    pub calls: u32,
    /// Calls that failed.
    pub failed: u32,
    /// Tokens of them.
    pub tokens: Usage,
}

impl std::ops::AddAssign for PolicyUsage {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.failed += other.failed;
        self.tokens += other.tokens;
    }
}

/// What a policy is asked with.
#[non_exhaustive]
pub struct CompactionRequest<'a> {
    /// The record, for reading.
    pub record: &'a Record,
    /// The provider that the view goes to.
    pub provider: &'a Arc<dyn Provider>,
    /// The model that the view goes to.
    pub model: &'a str,
    /// The tools offered with it.
    pub tools: &'a [ToolSpec],
    /// The settings of the call, its `max_tokens` among them.
    pub settings: &'a Settings,
    /// The session and the run, for archives.
    pub session: &'a str,
    /// The run within it.
    pub run: &'a str,
    /// The context window in tokens, as far as it is known.
    pub window: Option<u64>,
    /// What the provider counted for the view made last, if it said.
    pub last_input_tokens: Option<u64>,
    /// The provider turned down the view made last as too long.
    pub overflow: bool,
    /// The window that it named then. It outranks every other.
    pub reported_window: Option<u64>,
    /// The provider's prompt cache is probably cold, so that a pass now breaks nothing.
    pub cache_cold: bool,
    /// Why the policy is asked.
    pub occasion: Occasion<'a>,
    /// What the policy keeps with the session. It is carried through checkpoints.
    pub scratch: &'a mut Scratch,
    /// Where the policy counts what its own calls cost, also when it fails.
    pub usage: &'a mut PolicyUsage,
}

impl<'a> CompactionRequest<'a> {
    /// A turn of `record`, to be sent to `model` at `provider`. Everything else is not known, and can be set.
    #[must_use]
    pub fn new(
        record: &'a Record,
        provider: &'a Arc<dyn Provider>,
        model: &'a str,
        scratch: &'a mut Scratch,
        usage: &'a mut PolicyUsage,
    ) -> Self {
        static PLAIN: LazyLock<Settings> = LazyLock::new(Settings::default);
        Self {
            record,
            provider,
            model,
            tools: &[],
            settings: &PLAIN,
            session: "",
            run: "",
            window: None,
            last_input_tokens: None,
            overflow: false,
            reported_window: None,
            cache_cold: false,
            occasion: Occasion::Turn,
            scratch,
            usage,
        }
    }
}

/// Why a policy has no view.
#[derive(Debug)]
#[non_exhaustive]
pub enum PolicyError {
    /// The policy cannot do that.
    Unsupported(&'static str),
    /// A parameter that cannot be meant.
    Config(foreshorten_core::ConfigError),
    /// Another reason, in words.
    Other(String),
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(what) => write!(f, "this context policy cannot {what}"),
            Self::Config(error) => error.fmt(f),
            Self::Other(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for PolicyError {}

/// What a user does to the decisions by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManualAct {
    /// Keep this entry verbatim wherever it stands.
    Pin(usize),
    /// Take that back.
    Unpin(usize),
    /// Take back what the last pass decided: a new epoch. What it replaced stands again. A second undo, with no pass in
    /// between, takes back everything.
    Undo,
    /// Take back everything that was decided: a new epoch.
    UndoAll,
}

/// Decides what one model call is sent.
#[async_trait]
pub trait ContextPolicy: Send + Sync {
    /// The view for the next call. The record is never changed; decisions go into the request's scratch.
    ///
    /// The future may be dropped at any await: the scratch then holds the old state, whole.
    ///
    /// # Errors
    /// Why there is no view. The caller may send the whole record, or give up.
    async fn compact(&self, request: CompactionRequest<'_>) -> Result<ContextResult, PolicyError>;

    /// Tools that the policy contributes, from the first call on. A user's tool of the same name wins.
    fn tools(&self) -> Tools {
        Tools::new()
    }

    /// Whether the policy can make use of the context window, so that finding it out is worth a request.
    fn wants_window(&self) -> bool {
        false
    }

    /// Takes in what the provider counted for exactly the view made last.
    fn observe(&self, record: &Record, scratch: &mut Scratch, input_tokens: u64) {
        let _ = (record, scratch, input_tokens);
    }

    /// Joins what another runner of the same session decided into the scratch. By default what is not there is taken,
    /// and the decisions of [`Compaction`] are joined: also under a policy that makes none, none may be lost.
    fn join(&self, scratch: &mut Scratch, theirs: &Meta) {
        let decoded = |meta: &Meta| meta.0.get(STATE_KEY).and_then(|bytes| CompactionState::decode(bytes).ok());
        let joined = match (decoded(&scratch.meta), decoded(theirs)) {
            (Some(mine), Some(theirs)) => Some(mine.join(&theirs)),
            (mine, theirs) => mine.or(theirs),
        };
        for (key, value) in &theirs.0 {
            scratch.meta.0.entry(key.clone()).or_insert_with(|| value.clone());
        }
        if let Some(state) = joined {
            scratch.meta.0.insert(STATE_KEY.into(), state.encode());
        }
        scratch.settle();
    }

    /// Carries out what the user does by hand.
    ///
    /// # Errors
    /// When the policy cannot, or the entry cannot be pinned.
    fn act(&self, record: &Record, scratch: &mut Scratch, act: ManualAct) -> Result<(), PolicyError> {
        let _ = (record, scratch, act);
        Err(PolicyError::Unsupported("take manual acts"))
    }
}
