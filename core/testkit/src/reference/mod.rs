//! A second opinion: a naive reader of records and states, written from the design and the public types alone.
//!
//! Nothing here is quick and nothing is kept between turns. It reads the whole record each time, and knows the core only by what a
//! state stores, by the texts of markers and by the rule for weighing a text. [`Session`](crate::Session)
//! compares it with the real core after every turn: the view string by string, its weight, every level; and after
//! every pass [`judge`](Reference::judge) looks at each new decision from first principles.

mod judge;
mod view;
mod weights;

pub use judge::PassFacts;
pub use weights::MeasuredWeights;

use foreshorten_core::{
    PolicyConfig,
    plan::Level,
    state::{CompactionState, Note},
    transcript::{EntryKind, PartRef, RECALL_TOOL, Transcript},
};

/// A record, read whole.
#[derive(Clone)]
pub struct Reference<'t> {
    transcript: &'t dyn Transcript,
    config: &'t PolicyConfig,
    /// The group of every entry.
    group: Vec<usize>,
    /// The entries of every group, in the order in which a view shows them.
    groups: Vec<Vec<usize>>,
    /// The call of a result, the result of a call.
    pair: Vec<Option<usize>>,
}

impl core::fmt::Debug for Reference<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Reference").field("groups", &self.groups).field("pair", &self.pair).finish_non_exhaustive()
    }
}

impl<'t> Reference<'t> {
    /// Reads a record.
    ///
    /// A result answers the nearest earlier call of its id that still waits: in the newest group that has one, the
    /// first. Assistant entries that follow each other are one message. All else begins a group.
    #[must_use]
    pub fn read(transcript: &'t dyn Transcript, config: &'t PolicyConfig) -> Self {
        let mut out =
            Self { transcript, config, group: Vec::new(), groups: Vec::new(), pair: vec![None; transcript.len()] };
        let mut waiting: Vec<usize> = Vec::new();
        for index in 0..transcript.len() {
            let entry = transcript.entry(index);
            let mut joins = None;
            if entry.kind == EntryKind::ToolResult {
                let mine: Vec<usize> =
                    waiting.iter().copied().filter(|&call| transcript.entry(call).call_id == entry.call_id).collect();
                let newest = mine.iter().map(|&call| out.group[call]).max();
                if let Some(call) = mine.into_iter().find(|&call| Some(out.group[call]) == newest) {
                    out.pair[call] = Some(index);
                    out.pair[index] = Some(call);
                    waiting.retain(|&other| other != call);
                    joins = newest;
                }
            } else if entry.kind.is_assistant_side()
                && index > 0
                && transcript.entry(index - 1).kind.is_assistant_side()
            {
                joins = Some(out.group[index - 1]);
            }
            if entry.kind == EntryKind::ToolCall {
                waiting.push(index);
            }
            let group = joins.unwrap_or(out.groups.len());
            if group == out.groups.len() {
                out.groups.push(Vec::new());
            }
            out.groups[group].push(index);
            out.group.push(group);
        }
        out
    }

    fn kind(&self, index: usize) -> EntryKind {
        self.transcript.entry(index).kind
    }

    /// Whether a result has no call. It stands in no view.
    fn is_orphan(&self, index: usize) -> bool {
        self.kind(index) == EntryKind::ToolResult && self.pair[index].is_none()
    }

    /// Whether a call has no result.
    fn is_unanswered(&self, index: usize) -> bool {
        self.kind(index) == EntryKind::ToolCall && self.pair[index].is_none()
    }

    fn newest_group(&self) -> usize {
        self.groups.len().saturating_sub(1)
    }

    /// First entry of a group; for the group after the last, the end of the record.
    fn start(&self, group: usize) -> usize {
        self.groups.get(group).map_or(self.group.len(), |members| members[0])
    }

    /// Whether an entry is a call of the recall tool or its result.
    fn is_recall(&self, index: usize) -> bool {
        let call = if self.kind(index) == EntryKind::ToolResult { self.pair[index] } else { Some(index) };
        call.is_some_and(|call| {
            self.kind(call) == EntryKind::ToolCall && self.transcript.entry(call).name == RECALL_TOOL
        })
    }

    /// The newest entry in which the user wrote text.
    fn newest_user(&self) -> Option<usize> {
        let has_text =
            |index: usize| self.parts(index).any(|part| matches!(part, PartRef::Text(text) if !text.is_empty()));
        (0..self.group.len()).rev().find(|&index| self.kind(index) == EntryKind::User && has_text(index))
    }

    fn is_pinned(&self, state: &CompactionState, index: usize) -> bool {
        self.kind(index) == EntryKind::System
            || self.newest_user() == Some(index)
            || state.pins().iter().any(|pin| pin.index as usize == index)
    }

    fn parts(&self, index: usize) -> impl Iterator<Item = PartRef<'_>> {
        (0..self.transcript.entry(index).parts as usize).map(move |part| self.transcript.part(index, part))
    }

    /// The note that answers for a group: of several over it, the one that begins last.
    fn note_over<'s>(&self, state: &'s CompactionState, group: usize) -> Option<&'s Note> {
        let start = self.start(group) as u32;
        state.notes().iter().rfind(|note| note.from <= start && start < note.to)
    }

    /// Whether a group is covered and not kept beside its note.
    fn is_hidden(&self, state: &CompactionState, group: usize) -> bool {
        let start = self.start(group) as u32;
        self.note_over(state, group).is_some_and(|note| note.kept.iter().all(|place| place.index != start))
    }

    /// The level of every entry.
    #[must_use]
    pub fn levels(&self, state: &CompactionState) -> Vec<Level> {
        let level = |index: usize| {
            if self.is_hidden(state, self.group[index]) {
                return Level::Covered;
            }
            let record = state.records().iter().find(|record| record.place.index as usize == index);
            record.map_or(Level::Verbatim, |record| record.action.level())
        };
        (0..self.group.len()).map(level).collect()
    }
}
