//! What happens, for subscribers.

use std::sync::Arc;

use foreshorten_core::notice::{CannotFit, CompactionNotice};
use foreshorten_core::transcript::Entry;
use futures_util::future::BoxFuture;

use super::Truncation;
use crate::provider::{Rejection, Usage};
use crate::record::Record;
use crate::stores::ArchiveRef;
use crate::view::View;
use crate::window::KnownWindow;

/// A callback that is awaited after every pass.
pub type CompactedCallback = Arc<dyn Fn(Arc<ContextCompacted>) -> BoxFuture<'static, ()> + Send + Sync>;

/// A pass was recorded. Counts and references; the lists of entries can be asked for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ContextCompacted {
    /// The session.
    pub session: String,
    /// The run.
    pub run: String,
    /// Why, as one code: see [`ContextResult::reason`](crate::context::ContextResult::reason).
    pub reason: Option<String>,
    /// It answered a prompt that was turned down.
    pub reactive: bool,
    /// The account of the pass.
    pub notice: CompactionNotice,
    /// Where the archive keeps the transcript as it stood.
    pub archive: Option<ArchiveRef>,
    /// Pieces of the view before.
    pub pieces_before: usize,
    /// Pieces of the view after.
    pub pieces_after: usize,
    /// Explicit resets so far.
    pub epoch: u64,
    pub(super) record: Record,
    pub(super) before: View,
    pub(super) after: View,
}

impl ContextCompacted {
    /// The view before, as entries.
    #[must_use]
    pub fn entries_before(&self) -> Vec<Entry> {
        self.before.entries(&self.record)
    }

    /// The view after, as entries.
    #[must_use]
    pub fn entries_after(&self) -> Vec<Entry> {
        self.after.entries(&self.record)
    }
}

/// Something that happened in a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A pass was recorded.
    ContextCompacted(Arc<ContextCompacted>),
    /// A target is out of reach; said once.
    TargetOutOfReach {
        /// The session.
        session: String,
        /// The account.
        notice: CompactionNotice,
    },
    /// What cannot shrink does not fit the window.
    CannotFit {
        /// The session.
        session: String,
        /// What, and by how much.
        what: CannotFit,
    },
    /// The window that is reckoned with became known, or another.
    Window {
        /// The session.
        session: String,
        /// The window.
        window: KnownWindow,
    },
    /// No window is known: views shrink only after a prompt was turned down. Said once for a session.
    WindowUnknown {
        /// The session.
        session: String,
    },
    /// The endpoint turned a prompt down as too long.
    PromptRejected {
        /// The session.
        session: String,
        /// What it said.
        rejection: Rejection,
        /// Whether a smaller view is tried.
        retrying: bool,
    },
    /// A success that betrays that the prompt was cut.
    Truncated {
        /// The session.
        session: String,
        /// What betrays it.
        what: Truncation,
    },
    /// Text of the answer, as it comes in.
    Text {
        /// The session.
        session: String,
        /// The piece.
        text: String,
    },
    /// Reasoning, as it comes in.
    Reasoning {
        /// The session.
        session: String,
        /// The piece.
        text: String,
    },
    /// The answer broke off and is asked for again: the pieces told so far do not count.
    Restarted {
        /// The session.
        session: String,
    },
    /// An answer is recorded.
    Answered {
        /// The session.
        session: String,
        /// What the provider counted.
        usage: Option<Usage>,
        /// Calibrated tokens that the view was thought to be.
        estimated: Option<u64>,
    },
    /// A tool was called and answered.
    ToolCalled {
        /// The session.
        session: String,
        /// The tool.
        name: String,
        /// The id of the call.
        call_id: String,
        /// It failed.
        is_error: bool,
    },
    /// Contents could not be kept by a store or an archive. They can still be recalled from the record.
    StoreFailed {
        /// The session.
        session: String,
        /// How many.
        contents: u32,
    },
    /// A summary could not be made.
    SummaryFailed {
        /// The session.
        session: String,
        /// Why.
        why: String,
    },
    /// Another runner wrote to the session; its messages and decisions were joined.
    Joined {
        /// The session.
        session: String,
    },
}
