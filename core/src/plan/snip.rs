//! The middle of a long conversation gives way to a note.

use super::{Proposal, Stage, StageContext};

/// Second stage of the earlier proposal: when a view has more than `max_entries` entries, everything between
/// the first `keep_initial_entries` and the last `keep_recent_entries` is covered by a model-free note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MiddleSnip {
    /// Most entries a view may have; above it the stage asks for a pass. Default 80; `None` leaves it to tokens.
    pub max_entries: Option<u32>,
    /// Entries kept at the beginning, moved out to whole groups. Default 3.
    pub keep_initial_entries: u32,
    /// Entries kept at the end, moved out to whole groups. Default 40.
    pub keep_recent_entries: u32,
}

impl Default for MiddleSnip {
    fn default() -> Self {
        Self { max_entries: Some(80), keep_initial_entries: 3, keep_recent_entries: 40 }
    }
}

impl Stage for MiddleSnip {
    fn name(&self) -> &str {
        "middle_snip"
    }

    fn wants_pass(&self, entries: usize) -> bool {
        self.max_entries.is_some_and(|max| entries > max as usize)
    }

    fn plan(&self, ctx: &mut StageContext<'_>) {
        let columns = ctx.columns();
        let visible = ctx.visible();
        let in_tail = columns.len() - columns.group_start(ctx.tail_start());
        let count = visible.len() + in_tail;
        if self.max_entries.is_none_or(|max| count <= max as usize) && ctx.reached_target() {
            return;
        }
        let recent = (self.keep_recent_entries as usize).saturating_sub(in_tail);
        if visible.len() <= recent {
            return;
        }
        let cut = visible.len() - recent;
        let to = visible.get(cut).map_or_else(|| ctx.tail_start(), |&entry| columns.group(entry));
        // The initial entries are those of the record: a note that stands after them is extended, not moved.
        let mut from = 0;
        while from < to && columns.group_start(from) < self.keep_initial_entries as usize {
            from += 1;
        }
        let _ = ctx.propose(Proposal::Snip { from, to });
    }
}
