//! What a turn is told, what it asks for, and what it comes to.

use alloc::string::String;

use super::SummaryRequest;
use crate::{
    budget::TokenBudget,
    digest::Digest,
    notice::{CannotFit, CompactionNotice},
    state::Attachment,
};

/// Facts of one turn that only the host knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turn<'a> {
    /// The context window as the host resolved it; the policy's own comes first, a learned one caps both.
    pub window: Option<u64>,
    /// The (endpoint, model) this turn goes to, as one string. Learned windows are kept per scope.
    pub scope: &'a str,
    /// Tokens of the tool schemas the request carries.
    pub schema_tokens: u64,
    /// The provider rejected the last view as too long.
    pub overflow: bool,
    /// The window the provider named when it rejected.
    pub reported_window: Option<u64>,
    /// The prompt cache is probably cold, so that a pass now breaks nothing.
    pub cache_cold: bool,
    /// The user asked to compact now.
    pub manual: bool,
    /// Window of the summarizer's own model, when it is another.
    pub summarizer_window: Option<u64>,
    /// A summarizer is at hand. Without one no summary is asked for.
    pub can_summarize: bool,
    /// The most output tokens this request asks for. That much is kept free at least, and no more than half the window;
    /// without an explicit `reserve_output_tokens` it takes the place of the default.
    pub output_tokens: Option<u64>,
}

/// What [`poll`](super::Compactor::poll) asks the host to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Effect {
    /// Summarize; answer with [`handle_summary`](super::Compactor::handle_summary).
    Summarize(SummaryRequest),
    /// Keep the content of `entry` under `digest`; answer with [`handle_archived`](super::Compactor::handle_archived).
    Archive {
        /// The entry.
        entry: usize,
        /// The key.
        digest: Digest,
    },
    /// Run the stage of this name and hand its proposals in with [`handle_proposals`](super::Compactor::handle_proposals);
    /// or let it look and propose with [`with_stage`](super::Compactor::with_stage), and close with
    /// [`commit_stage`](super::Compactor::commit_stage) or [`abandon_stage`](super::Compactor::abandon_stage).
    RunStage {
        /// The stage.
        name: String,
    },
}

/// Where a turn stands.
#[derive(Debug)]
pub enum Step<'a> {
    /// The core needs the world. Answer it, then poll again.
    Effect(Effect),
    /// The view is ready.
    Done(&'a Outcome),
}

/// What a turn came to.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// Something was decided in this turn.
    pub compacted: bool,
    /// The account of the pass, when something was decided, and once when a target is out of reach.
    pub notice: Option<CompactionNotice>,
    /// Calibrated tokens before this turn's decisions.
    pub tokens_before: u64,
    /// Calibrated tokens of the view.
    pub tokens_after: u64,
    /// The room, when a window is known or an overflow stood in for it.
    pub budget: Option<TokenBudget>,
    /// What cannot shrink and is too large; `None` when the view fits, or no window is known.
    pub cannot_fit: Option<CannotFit>,
    /// After an overflow: whether the view is enough smaller (below 95 %) for a second try to make sense.
    pub retry: Option<bool>,
    /// First piece of the view that is not as it was in the last view; `None` when all of it is.
    pub first_changed: Option<usize>,
    /// How the record relates to the state.
    pub attachment: Attachment,
    /// Archive requests the host could not carry out.
    pub archive_failures: u32,
    /// Proposals refused in this turn.
    pub refused: u32,
    /// Raw tokens of the view at which a pass gained too little.
    pub(crate) stalled: Option<u64>,
}

/// A second try after an overflow makes sense below this share of the rejected view, in per cent: what is
/// dropped must be more than estimates are off by.
pub const RETRY_BELOW_PERCENT: u64 = 95;
