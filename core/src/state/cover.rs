//! The one door for notes: drafting, judging and putting them in place.

use alloc::{string::String, vec::Vec};

use super::{
    Note, NoteKind, Place, SummaryState,
    attach::before,
    ledger::{Guard, Ledger, MIN_SAVING},
};
use crate::{
    marker::{self, Counts, MarkerStyle},
    plan::Refusal,
    text,
    transcript::{Chain, EntryKind},
};

impl Ledger {
    /// Drafts a note over the groups `from..to`; pinned groups among them stay beside it.
    ///
    /// # Errors
    /// Why no note may stand there.
    pub fn draft_note(
        &self,
        guard: &Guard<'_>,
        mut from: usize,
        to: usize,
        summary: Option<&str>,
    ) -> Result<Note, Refusal> {
        let columns = guard.columns;
        // Instructions stay where they are: a note never begins with the fixed head.
        while from < to.min(columns.groups()) && columns.kind(columns.group_start(from)) == EntryKind::System {
            from += 1;
        }
        if from >= to || to > columns.groups() {
            return Err(Refusal::OutOfRange);
        }
        if to > guard.tail_start {
            return Err(Refusal::Tail);
        }
        // A note that begins here already is carried on from where it ends, so that covering more costs what is new.
        let first = columns.group_start(from);
        let end_of = |note: &Note| self.next_open_after(columns, note);
        // Unless a late result came for a covered call since: then it counts, and all is counted again.
        let came_late = |note: &Note| {
            let late = columns.late_results();
            let since = late.partition_point(|&(_, entry)| entry < note.to);
            late[since..].iter().any(|&(group, _)| (from..end_of(note)).contains(&(group as usize)))
        };
        let carries = |note: &&Note| note.from as usize == first && end_of(note) <= to && !came_late(note);
        let held = self.state.notes.iter().find(carries);
        let mut counts = held.map_or_else(Counts::default, |note| note.counts);
        let mut span = Chain(held.map_or(0, |note| note.span));
        let mut kept = Vec::new();
        let is_pinned = |group: usize| columns.members(group).any(|entry| self.is_pinned(columns, entry));
        for place in held.into_iter().flat_map(|note| &note.kept) {
            let group = columns.group(place.index as usize);
            if is_pinned(group) {
                kept.push(*place);
            } else {
                columns.members(group).for_each(|entry| count(&mut counts, columns.kind(entry)));
            }
        }
        for group in held.map_or(from, end_of)..to {
            let pinned = is_pinned(group);
            if pinned {
                kept.push(Place::of(columns, columns.group_start(group)));
            }
            for entry in columns.members(group) {
                if columns.is_pending(entry) {
                    return Err(Refusal::Pending);
                }
                if columns.kind(entry) != EntryKind::System {
                    span = span.then(columns.identity(entry));
                }
                if !pinned {
                    count(&mut counts, columns.kind(entry));
                }
            }
        }
        let (start, end) = (columns.group_start(from), columns.group_start(to));
        Ok(Note {
            from: u32::try_from(start).unwrap_or(u32::MAX),
            to: u32::try_from(end).unwrap_or(u32::MAX),
            revision: 0,
            kind: if summary.is_some() { NoteKind::Summary } else { NoteKind::Snip },
            before: before(columns, start),
            after: before(columns, end),
            span: span.0,
            counts,
            shortest: false,
            summary: SummaryState { text: summary.unwrap_or_default().into() },
            kept,
        })
    }

    /// What a note would change: raw tokens of the view with it in place.
    ///
    /// # Errors
    /// The view would not get smaller, or coverage would shrink.
    pub fn judge_note(&self, guard: &Guard<'_>, note: &Note) -> Result<u64, Refusal> {
        let columns = guard.columns;
        let mut raw = self.view_raw;
        for (held, cost) in self.state.notes.iter().zip(&self.note_costs) {
            let overlaps = note.from < held.to && held.from < note.to;
            if note.contains(held) {
                raw = raw.saturating_sub(*cost);
            } else if overlaps {
                return Err(Refusal::Covered);
            }
        }
        // Only what is shown now can go: open groups, and what the notes in the way keep beside them.
        let first = columns.group(note.from as usize);
        let end = self.next_open_after(columns, note);
        let goes = |group: usize| !note.keeps(columns.group_start(group));
        let mut hides = false;
        let mut group = self.next_open_group(columns, first);
        while group < end {
            if goes(group) {
                hides = true;
                raw = raw.saturating_sub(self.group_weight(guard, group));
            }
            group = self.next_open_group(columns, group + 1);
        }
        for held in self.state.notes.iter().filter(|held| note.contains(held)) {
            for place in &held.kept {
                let group = columns.group(place.index as usize);
                // What two overlapping notes keep is shown once, beside the later.
                let answers = self.note_over(columns, group).is_some_and(|over| core::ptr::eq(over, held));
                if goes(group) && answers {
                    hides = true;
                    raw = raw.saturating_sub(self.group_weight(guard, group));
                }
            }
        }
        let replaced = self.state.notes.iter().filter(|held| note.contains(held)).count();
        if note.kind == NoteKind::Snip && !hides && replaced < 2 {
            // A summary does not give way to a note that says less about the same stretch; several notes may give way to
            // one, which is the last rung of the ladder.
            return Err(Refusal::NotRising);
        }
        for place in &note.kept {
            let group = columns.group(place.index as usize);
            if !self.is_shown(columns, group) {
                raw += self.group_weight(guard, group);
            }
        }
        raw += note_cost(note, guard);
        if raw + MIN_SAVING <= self.view_raw { Ok(raw) } else { Err(Refusal::NotSmaller) }
    }

    /// Puts a note in place; notes it contains and records under it go. Answers the raw tokens saved.
    pub(crate) fn accept_note(&mut self, guard: &Guard<'_>, note: Note) -> Result<u64, Refusal> {
        let raw = self.judge_note(guard, &note)?;
        let saved = self.view_raw - raw;
        let raw_before = self.view_raw;
        let columns = guard.columns;
        // What is shown of the stretch and was measured; what of it is shown no more is found out below.
        let mut shown: Vec<usize> = Vec::new();
        let end = self.next_open_after(columns, &note);
        let mut group = self.next_open_group(columns, columns.group(note.from as usize));
        while group < end {
            shown.push(group);
            group = self.next_open_group(columns, group + 1);
        }
        let contained = self.state.notes.iter().filter(|held| note.contains(held));
        shown.extend(contained.flat_map(|held| &held.kept).map(|place| columns.group(place.index as usize)));
        shown.sort_unstable();
        shown.dedup();
        let mut shown: Vec<(usize, (u64, u64))> =
            shown.into_iter().map(|group| (group, self.measured_group(columns, group))).collect();
        let mut at = 0;
        while at < self.state.notes.len() {
            if note.contains(&self.state.notes[at]) {
                self.state.notes.remove(at);
                self.note_costs.remove(at);
            } else {
                at += 1;
            }
        }
        let at = self.state.notes.partition_point(|held| (held.from, held.to) < (note.from, note.to));
        self.note_costs.insert(at, note_cost(&note, guard));
        self.state.notes.insert(at, note);
        self.view_raw = raw;
        shown.retain(|&(group, _)| !self.is_shown(columns, group));
        let leaves = shown
            .iter()
            .fold((0u64, 0u64), |sum, (_, leaves)| (sum.0.saturating_add(leaves.0), sum.1.saturating_add(leaves.1)));
        self.state.measured.changed();
        self.shrank(raw_before, leaves, (0, 0));
        // Records under a note are not needed any more; those of kept groups are.
        let mut records = core::mem::take(&mut self.state.records);
        let mut costs = core::mem::take(&mut self.costs).into_iter();
        let mut left = Vec::with_capacity(costs.len());
        records.retain(|record| {
            let cost = costs.next().unwrap_or_default();
            let shown = self.is_shown(columns, columns.group(record.place.index as usize));
            if shown {
                left.push(cost);
            }
            shown
        });
        self.state.records = records;
        self.costs = left;
        Ok(saved)
    }

    /// Makes a note anew over the same stretch, its text as it was, so that what it keeps beside it for a pin that is
    /// no more is covered too. Answers the entries covered.
    pub(crate) fn release_kept(&mut self, guard: &Guard<'_>, at: usize) -> u32 {
        let held = &self.state.notes[at];
        let (kind, shortest, revision, covered) = (held.kind, held.shortest, held.revision, held.counts.total());
        let text = (!held.summary.text.is_empty()).then_some(held.summary.text.as_str());
        let (from, to) = (guard.columns.group(held.from as usize), self.next_open_after(guard.columns, held));
        let Ok(mut note) = self.draft_note(guard, from, to, text) else { return 0 };
        if note.kept.len() >= held.kept.len() {
            return 0;
        }
        // The newer of two notes over one stretch.
        (note.kind, note.shortest, note.revision) = (kind, shortest, revision.saturating_add(1));
        let total = note.counts.total();
        self.accept_note(guard, note).map_or(0, |_| total.saturating_sub(covered))
    }

    /// Covers the groups `from..to`, notes among them, by one note in its shortest form. Answers the entries newly
    /// covered.
    ///
    /// # Errors
    /// Why no note may stand there.
    pub(crate) fn lay_shortest(&mut self, guard: &Guard<'_>, from: usize, to: usize) -> Result<u32, Refusal> {
        let mut note = self.draft_note(guard, from, to, None)?;
        note.shortest = true;
        // The newest of all notes over this stretch.
        let held = || self.state.notes.iter().filter(|held| note.contains(held));
        let revision = held().map(|held| held.revision).max().unwrap_or_default().saturating_add(1);
        let covered = held().fold(0u32, |sum, held| sum.saturating_add(held.counts.total()));
        note.revision = revision;
        let total = note.counts.total();
        self.accept_note(guard, note).map(|_| total.saturating_sub(covered))
    }

    /// Shortens a note (the last rung of the ladder). Answers the raw tokens saved.
    pub(crate) fn shorten_note(&mut self, guard: &Guard<'_>, at: usize, summary_bytes: usize) -> u64 {
        let note = &self.state.notes[at];
        let mut shorter = note.clone();
        shorter.revision = note.revision.saturating_add(1);
        if summary_bytes == 0 {
            shorter.shortest = true;
            shorter.summary.text.clear();
        } else {
            let cut = text::head(&note.summary.text, summary_bytes).len();
            shorter.summary.text.truncate(cut);
        }
        let cost = note_cost(&shorter, guard);
        let Some(saved) = self.note_costs[at].checked_sub(cost).filter(|&saved| saved > 0) else { return 0 };
        self.state.notes[at] = shorter;
        self.note_costs[at] = cost;
        self.view_raw = self.view_raw.saturating_sub(saved);
        self.state.measured.changed();
        saved
    }
}

pub(super) fn count(counts: &mut Counts, kind: EntryKind) {
    let slot = match kind {
        EntryKind::System => return,
        EntryKind::User => &mut counts.user,
        EntryKind::Assistant | EntryKind::Reasoning => &mut counts.assistant,
        EntryKind::ToolCall => &mut counts.calls,
        EntryKind::ToolResult => &mut counts.results,
    };
    *slot = slot.saturating_add(1);
}

pub(super) fn note_cost(note: &Note, guard: &Guard<'_>) -> u64 {
    u64::from(guard.weigher.framed(&note.text(guard.style, guard.summary_wrapper)))
}

impl Note {
    /// The whole text of the note as a view shows it.
    #[must_use]
    pub fn text(&self, style: MarkerStyle, wrapper: &str) -> String {
        let reference = self.reference();
        if self.shortest {
            marker::shortest_note(style, &reference)
        } else if self.kind == NoteKind::Summary {
            marker::summary_entry(style, wrapper, &self.summary.text, &reference)
        } else {
            marker::snip_note(style, &reference, &self.counts)
        }
    }
}
