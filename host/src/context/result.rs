//! What a policy answers.

use foreshorten_core::notice::{CannotFit, CompactionNotice};
use foreshorten_core::state::History;

use crate::plugin::Account;
use crate::stores::ArchiveRef;
use crate::view::View;

/// A view, and what was decided to get it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ContextResult {
    /// What the call is sent.
    pub view: View,
    /// The view is not the whole record.
    pub changed: bool,
    /// Something was decided on this call.
    pub compacted: bool,
    /// Why, as one code: names of the stages that decided, joined by `+`; `reactive_` before them after a rejection;
    /// `sticky_replay` when only earlier decisions apply.
    pub reason: Option<String>,
    /// The summary made on this call.
    pub summary: Option<String>,
    /// The account of the pass; also given, once, for a target that is out of reach.
    pub notice: Option<CompactionNotice>,
    /// Calibrated tokens before.
    pub tokens_before: Option<u64>,
    /// Calibrated tokens of the view: what the provider will count, as far as can be told.
    pub tokens_after: Option<u64>,
    /// Lines for people.
    pub detail: Vec<String>,
    /// After a rejection: whether the view is enough smaller for another try.
    pub retry: Option<bool>,
    /// The estimate is anchored on a count of the provider's.
    pub calibrated: bool,
    /// What cannot shrink and is too large.
    pub cannot_fit: Option<CannotFit>,
    /// The window that was reckoned with.
    pub window: Option<u64>,
    /// Tokens of it that a view may take.
    pub usable: Option<u64>,
    /// How the record relates to the stored decisions.
    pub history: Option<History>,
    /// Explicit resets so far.
    pub epoch: u64,
    /// Where the archive keeps the transcript as it stood.
    pub archive: Option<ArchiveRef>,
    /// Contents a store or an archive could not keep.
    pub archive_failures: u32,
    /// What went wrong with summaries, in words.
    pub summary_failures: Vec<String>,
    /// A window that the run's own endpoint named when it turned down the prompt of a summary.
    pub named_window: Option<u64>,
    /// What plugins did on this call, by name.
    pub plugins: Account,
}

impl ContextResult {
    /// A view about which nothing else is known.
    #[must_use]
    pub fn of(view: View) -> Self {
        Self { view, ..Self::default() }
    }
}
