//! 6. Transcript and state, rendered: a pure function.
//!
//! [`render_view`] renders from scratch; [`RenderCache`] keeps the pieces and only appends while nothing is
//! decided. Both go through the same few lines, so they cannot differ.

mod cache;

pub use cache::RenderCache;

use crate::{
    estimate::Weigher,
    marker::{MarkerStyle, SUMMARY_WRAPPER},
    state::{CompactionState, Guard, Ledger},
    transcript::{Columns, Transcript},
};

/// Renders the view of `transcript` under `state` from scratch.
///
/// The state must have been made for this record (see [`Compactor`](crate::Compactor), which fits a stored state
/// to a record first); decisions about entries that are not there are ignored.
///
/// ```
/// use foreshorten_core::{render::render_view, state::CompactionState, transcript::{Entry, OwnedTranscript}};
/// let transcript = OwnedTranscript::from(vec![Entry::user("hello"), Entry::assistant("hi")]);
/// let view = render_view(&transcript, &CompactionState::new());
/// assert_eq!(view.pieces().count(), 2);
/// ```
#[must_use]
pub fn render_view(transcript: &dyn Transcript, state: &CompactionState) -> RenderCache {
    let weigher = Weigher::default();
    let mut columns = Columns::new();
    for index in 0..transcript.len() {
        columns.push(transcript, weigher.entry(transcript, index));
    }
    let guard = Guard {
        transcript,
        columns: &columns,
        weigher: &weigher,
        style: MarkerStyle::default(),
        summary_wrapper: SUMMARY_WRAPPER,
        tools: &[],
        may_condense: false,
        tail_start: columns.groups(),
        last_resort: false,
    };
    let ledger = Ledger::new(state.clone(), &guard);
    let mut cache = RenderCache::new();
    cache.rebuild_from(&ledger, &guard, 0);
    cache
}
