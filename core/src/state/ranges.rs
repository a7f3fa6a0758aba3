//! Facts about ranges of entries: one walk over the decisions where each entry alone would be a search.

use alloc::{vec, vec::Vec};
use core::ops::Range;

use super::Ledger;
use crate::{
    plan::Level,
    transcript::{Columns, EntryKind},
};

impl Ledger {
    /// Levels of the entries of a range, as [`level`](Self::level) answers them.
    ///
    /// # Panics
    /// There is no such range.
    #[must_use]
    pub fn levels(&self, columns: &Columns, entries: Range<usize>) -> Vec<Level> {
        let mut levels = vec![Level::Verbatim; entries.len()];
        for (at, entry) in self.decided(entries.clone()) {
            levels[entry - entries.start] = self.state.records[at].action.level();
        }
        self.covered(columns, entries, |at| levels[at] = Level::Covered);
        levels
    }

    /// Weights in the view of the entries of a range, as [`view_weight`](Self::view_weight) answers them.
    ///
    /// # Panics
    /// There is no such range.
    #[must_use]
    pub fn view_weights(&self, columns: &Columns, entries: Range<usize>) -> Vec<u64> {
        let mut weights: Vec<u64> = columns.weights()[entries.clone()].iter().map(|&weight| weight.into()).collect();
        for (at, entry) in self.decided(entries.clone()) {
            weights[entry - entries.start] = self.costs[at].into();
        }
        for &orphan in columns.orphans() {
            if entries.contains(&(orphan as usize)) {
                weights[orphan as usize - entries.start] = 0;
            }
        }
        self.covered(columns, entries, |at| weights[at] = 0);
        weights
    }

    /// Whether the entries of a range are pinned, or of the groups from `tail_start` on.
    ///
    /// # Panics
    /// There is no such range.
    #[must_use]
    pub fn protections(&self, columns: &Columns, tail_start: usize, entries: Range<usize>) -> Vec<bool> {
        let fact = |entry| columns.kind(entry) == EntryKind::System || columns.group(entry) >= tail_start;
        let mut protected: Vec<bool> = entries.clone().map(fact).collect();
        let pins = self.state.pins.iter().map(|pin| pin.index as usize);
        for pinned in pins.chain([columns.newest_user() as usize]).filter(|entry| entries.contains(entry)) {
            protected[pinned - entries.start] = true;
        }
        protected
    }

    /// Decisions about entries of a range: their places, and the entries.
    fn decided(&self, entries: Range<usize>) -> impl Iterator<Item = (usize, usize)> + '_ {
        let first = self.state.records.partition_point(|record| (record.place.index as usize) < entries.start);
        let of = self.state.records[first..].iter().map(|record| record.place.index as usize);
        (first..).zip(of).take_while(move |&(_, entry)| entry < entries.end)
    }

    /// Calls with the places, counted from the start of the range, of entries that a note covers and that are not shown.
    fn covered(&self, columns: &Columns, entries: Range<usize>, mut each: impl FnMut(usize)) {
        // A late result is of a group that may be covered, wherever it stands itself; so each entry is asked about, if
        // there are notes at all.
        if self.state.notes.is_empty() {
            return;
        }
        for (at, entry) in entries.enumerate() {
            if !self.is_shown(columns, columns.group(entry)) {
                each(at);
            }
        }
    }
}
