//! The pieces of a view, kept between turns.

use alloc::{string::String, vec::Vec};
use core::ops::Range;

use crate::{
    error::OutOfMemory,
    marker::STAND_IN,
    state::{Action, Guard, Ledger, Note},
    transcript::{Columns, EntryKind, NONE},
    view::Piece,
};

/// A piece as the cache holds it: 28 bytes, 16 of them ranges into the arena and the part numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Segment {
    shape: Shape,
    group: u32,
    entry: u32,
    text: Range<u32>,
    parts: Range<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Entry,
    Text,
    Elided,
    Arguments,
    Note,
    StandIn,
}

/// The rendered view: pieces that borrow the record, and an arena for the little text that is not in it.
///
/// While nothing is decided a turn appends and allocates nothing once room is reserved.
#[derive(Clone, Debug, Default)]
pub struct RenderCache {
    segments: Vec<Segment>,
    arena: String,
    parts: Vec<u32>,
    /// Pieces no ordinary turn changes: everything the last pass left.
    settled: usize,
    orphans: usize,
    stand_ins: usize,
}

impl RenderCache {
    /// An empty view.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes room for `additional` more pieces.
    pub fn reserve(&mut self, additional: usize) {
        self.segments.reserve(additional);
    }

    /// As [`reserve`](Self::reserve), for who must not abort when memory is short.
    ///
    /// # Errors
    /// There is no room. Nothing has changed.
    pub fn try_reserve(&mut self, additional: usize) -> Result<(), OutOfMemory> {
        Ok(self.segments.try_reserve(additional)?)
    }

    /// Bytes a piece costs; its text, when it has any that is not in the record, comes on top
    /// ([`copied_bytes`](Self::copied_bytes)).
    #[must_use]
    pub const fn bytes_per_piece() -> usize {
        size_of::<Segment>()
    }

    /// Number of pieces.
    #[must_use]
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// Whether the view is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// The pieces, in the order in which the model reads them.
    #[inline]
    pub fn pieces(&self) -> impl ExactSizeIterator<Item = Piece<'_>> + Clone {
        self.segments.iter().map(|segment| self.piece(segment))
    }

    /// The piece at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Piece<'_>> {
        self.segments.get(index).map(|segment| self.piece(segment))
    }

    /// Number of leading pieces that the last pass left and no ordinary turn will change: the end of a stable
    /// prefix, and the place for a cache breakpoint.
    #[must_use]
    pub const fn settled(&self) -> usize {
        self.settled
    }

    /// Number of leading pieces that belong to the fixed head (instructions before anything else).
    #[must_use]
    pub fn head(&self, columns: &Columns) -> usize {
        self.segments
            .iter()
            .take_while(|s| s.shape == Shape::Entry && columns.kind(s.entry as usize) == EntryKind::System)
            .count()
    }

    /// Results left out because their call is not in the record.
    #[must_use]
    pub const fn orphans(&self) -> usize {
        self.orphans
    }

    /// Results made up for calls that never got one.
    #[must_use]
    pub const fn stand_ins(&self) -> usize {
        self.stand_ins
    }

    /// Bytes of view text that are not borrowed from the record.
    #[must_use]
    pub fn copied_bytes(&self) -> usize {
        self.arena.len()
    }

    /// Nearly all pieces are entries as they stand, for which nothing is looked up; a view is walked on every turn.
    #[inline]
    fn piece<'v>(&'v self, segment: &Segment) -> Piece<'v> {
        match segment.shape {
            Shape::Entry => Piece::Entry { entry: segment.entry as usize },
            _ => self.made_piece(segment),
        }
    }

    fn made_piece<'v>(&'v self, segment: &Segment) -> Piece<'v> {
        let entry = segment.entry as usize;
        let text = &self.arena[segment.text.start as usize..segment.text.end as usize];
        match segment.shape {
            Shape::Entry => Piece::Entry { entry },
            Shape::Text => Piece::Text { entry, text },
            Shape::Elided => {
                let parts = &self.parts[segment.parts.start as usize..segment.parts.end as usize];
                Piece::Elided { entry, parts, text }
            }
            Shape::Arguments => Piece::Arguments { entry, json: text },
            Shape::Note => Piece::Note { text },
            Shape::StandIn => Piece::StandIn { call: entry, text: STAND_IN },
        }
    }

    /// The first piece of a group, or of what stands after it.
    pub(crate) fn first_of(&self, group: usize) -> usize {
        self.segments.partition_point(|segment| (segment.group as usize) < group)
    }

    /// Marks everything rendered so far as what a pass left.
    pub(crate) fn settle(&mut self) {
        self.settled = self.segments.len();
    }

    /// Appends what the entry just pushed adds to the view. Call after [`Ledger::pushed`].
    pub(crate) fn pushed(&mut self, ledger: &Ledger, guard: &Guard<'_>) {
        let columns = guard.columns;
        let entry = columns.len() - 1;
        let group = columns.group(entry);
        if columns.group_start(group) == entry && group > 0 && ledger.is_shown(columns, group - 1) {
            self.stand_ins_of(columns, group - 1);
        }
        if columns.is_orphan(entry) {
            self.orphans += 1;
        } else {
            self.push(Shape::Entry, group, entry, "");
        }
    }

    /// Renders the groups from `group` on anew, and answers the first piece that changed (`len()` when none did).
    pub(crate) fn rebuild_from(&mut self, ledger: &Ledger, guard: &Guard<'_>, group: usize) -> usize {
        let columns = guard.columns;
        // A note stands at the start of what it covers: begin there if `group` lies under one.
        let over = ledger.note_over(columns, group).filter(|note| (note.from as usize) < columns.len());
        let group = over.map_or(group, |note| columns.group(note.from as usize)).min(group);
        let keep = self.segments.partition_point(|segment| (segment.group as usize) < group);
        let old: Vec<Segment> = self.segments.split_off(keep);
        let old_text = old.iter().map(|s| s.text.start).min().map_or(self.arena.len(), |start| start as usize);
        let old_parts = old.iter().map(|s| s.parts.start).min().map_or(self.parts.len(), |start| start as usize);
        let (text_end, parts_end) = (self.arena.len(), self.parts.len());
        self.settled = self.settled.min(keep);
        let mut at = group;
        while at < columns.groups() {
            at = self.group(ledger, guard, at);
        }
        let same = old
            .iter()
            .zip(&self.segments[keep..])
            .take_while(|(before, after)| {
                before.shape == after.shape
                    && before.entry == after.entry
                    && self.arena.get(text_range(before)) == self.arena.get(text_range(after))
                    && self.parts.get(parts_range(before)) == self.parts.get(parts_range(after))
            })
            .count();
        // Close the gap that the old text left.
        self.arena.drain(old_text..text_end);
        self.parts.drain(old_parts..parts_end);
        let (text_gap, parts_gap) = ((text_end - old_text) as u32, (parts_end - old_parts) as u32);
        for segment in &mut self.segments[keep..] {
            segment.text = segment.text.start - text_gap..segment.text.end - text_gap;
            segment.parts = segment.parts.start - parts_gap..segment.parts.end - parts_gap;
        }
        self.orphans = columns.orphans().len();
        self.stand_ins = self.segments.iter().filter(|segment| segment.shape == Shape::StandIn).count();
        keep + same
    }

    /// Renders one group, or the note over it and what is kept beside it; answers the next group to render.
    fn group(&mut self, ledger: &Ledger, guard: &Guard<'_>, group: usize) -> usize {
        let columns = guard.columns;
        let Some(note) = ledger.note_over(columns, group) else {
            self.open_group(ledger, guard, group);
            return group + 1;
        };
        let notes = ledger.state().notes();
        let mut at = notes.partition_point(|other| (other.from, other.to) < (note.from, note.to));
        loop {
            self.note(ledger, guard, &notes[at]);
            // Where joined notes overlap, the next may lie under its neighbours, and still answers for what it keeps.
            match notes.get(at + 1) {
                Some(next) if next.from < notes[at].to => at += 1,
                _ => return ledger.next_open_after(columns, &notes[at]).max(group + 1),
            }
        }
    }

    /// A note and what is kept beside it.
    fn note(&mut self, ledger: &Ledger, guard: &Guard<'_>, note: &Note) {
        let columns = guard.columns;
        let first = columns.group(note.from as usize);
        self.push(Shape::Note, first, note.from as usize, &note.text(guard.style, guard.summary_wrapper));
        for place in &note.kept {
            // Where joined notes overlap, the later one answers for what both keep.
            let kept = columns.group((place.index as usize).min(columns.len() - 1));
            if ledger.note_over(columns, kept).is_some_and(|over| over.from == note.from) {
                self.open_group(ledger, guard, kept);
            }
        }
    }

    fn open_group(&mut self, ledger: &Ledger, guard: &Guard<'_>, group: usize) {
        let columns = guard.columns;
        for entry in columns.members(group) {
            if columns.is_orphan(entry) {
                continue;
            }
            let Some(record) = ledger.state().record(entry) else {
                self.push(Shape::Entry, group, entry, "");
                continue;
            };
            let start = self.arena.len();
            if !record.push_marker(guard.transcript, columns, guard.style, &mut self.arena) {
                continue;
            }
            match &record.action {
                Action::Elide { parts, .. } => {
                    self.push_made(Shape::Elided, group, entry, start);
                    let start = self.parts.len() as u32;
                    self.parts.extend_from_slice(parts);
                    if let Some(segment) = self.segments.last_mut() {
                        segment.parts = start..self.parts.len() as u32;
                    }
                }
                Action::Clip { .. } => self.push_made(Shape::Arguments, group, entry, start),
                _ => self.push_made(Shape::Text, group, entry, start),
            }
        }
        if group + 1 < columns.groups() {
            self.stand_ins_of(columns, group);
        }
    }

    fn stand_ins_of(&mut self, columns: &Columns, group: usize) {
        for entry in columns.members(group) {
            if columns.kind(entry) == EntryKind::ToolCall && columns.pair(entry) == NONE {
                self.push(Shape::StandIn, group, entry, "");
                self.stand_ins += 1;
            }
        }
    }

    fn push(&mut self, shape: Shape, group: usize, entry: usize, text: &str) {
        let start = self.arena.len();
        self.arena.push_str(text);
        self.push_made(shape, group, entry, start);
    }

    /// Appends a piece whose text is what the arena holds from `start` on.
    fn push_made(&mut self, shape: Shape, group: usize, entry: usize, start: usize) {
        let parts = self.parts.len() as u32;
        self.segments.push(Segment {
            shape,
            group: group as u32,
            entry: entry as u32,
            text: start as u32..self.arena.len() as u32,
            parts: parts..parts,
        });
    }
}

fn text_range(segment: &Segment) -> Range<usize> {
    segment.text.start as usize..segment.text.end as usize
}

fn parts_range(segment: &Segment) -> Range<usize> {
    segment.parts.start as usize..segment.parts.end as usize
}
