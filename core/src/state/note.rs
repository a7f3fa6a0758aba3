//! Notes: what stands in place of a stretch of the conversation.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use super::Place;
use crate::{marker::Counts, transcript::Chain};

/// What kind of text a note is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum NoteKind {
    /// Model-free: what was left out and how to recall it.
    Snip,
    /// A summary.
    Summary,
}

/// A summary's text and what it covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SummaryState {
    /// The text, without wrapper.
    pub text: String,
}

/// A note over the entries `from..to` (whole groups; `from` and `to` are starts of groups).
///
/// Of two notes over one stretch the one with the higher revision wins; a note whose stretch contains
/// another's replaces it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Note {
    /// First entry covered.
    pub from: u32,
    /// One past the last entry covered.
    pub to: u32,
    /// Rises when the ladder of last resorts shortens the note.
    pub revision: u32,
    /// Summary or snip.
    pub kind: NoteKind,
    /// Fingerprint of the record before `from`.
    pub before: Chain,
    /// Fingerprint of the record up to `to`.
    pub after: Chain,
    /// Fingerprint of the covered stretch alone; also the note's reference.
    pub span: u64,
    /// What is covered.
    pub counts: Counts,
    /// Shown in its shortest form.
    pub shortest: bool,
    /// The summary; empty for a snip.
    pub summary: SummaryState,
    /// First entries of covered groups that are pinned and therefore shown right after the note, ascending.
    pub kept: Vec<Place>,
}

impl Note {
    /// Whether the whole stretch of `other` is covered by this note too.
    #[must_use]
    pub const fn contains(&self, other: &Self) -> bool {
        self.from <= other.from && other.to <= self.to
    }

    /// Whether an entry index lies in the covered stretch.
    #[must_use]
    pub const fn covers(&self, index: usize) -> bool {
        self.from as usize <= index && index < self.to as usize
    }

    /// Whether the group that starts at entry `start` is covered but shown all the same.
    #[must_use]
    pub fn keeps(&self, start: usize) -> bool {
        self.kept.binary_search_by(|place| (place.index as usize).cmp(&start)).is_ok()
    }

    /// Brings what is kept into order: each once, and only what lies in the stretch.
    pub(super) fn keep_inside(&mut self) {
        let (from, to) = (self.from, self.to);
        self.kept.retain(|place| (from..to).contains(&place.index));
        self.kept.sort_unstable();
        self.kept.dedup();
    }

    /// The reference by which the covered stretch is recalled.
    #[must_use]
    pub fn reference(&self) -> String {
        crate::marker::note_reference(self.span)
    }
}
