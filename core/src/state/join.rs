//! Joining two states of one session: commutative, associative, idempotent, monotonic.

use alloc::vec::Vec;

use super::{Action, CompactionState, LearnedWindow, Note, Record};

impl CompactionState {
    /// The least state that holds the decisions of both.
    ///
    /// The higher epoch wins as a whole: it was started by an explicit act that the other had not seen.
    /// Within one epoch decisions are united, the higher level wins, ties go by content. What was learned
    /// (calibration, windows, breaker) goes by the more recent evidence, whatever the epoch.
    ///
    /// ```
    /// use foreshorten_core::state::CompactionState;
    /// let (mut a, b) = (CompactionState::new(), CompactionState::new());
    /// a.learn_window("endpoint/model", 8_192);
    /// assert_eq!(a.clone().join(&b), b.join(&a));
    /// ```
    #[must_use]
    pub fn join(mut self, other: &Self) -> Self {
        use core::cmp::Ordering;
        // Places are those of the record of the higher epoch.
        if (other.epoch, &other.measured) > (self.epoch, &self.measured) {
            self.measured.clone_from(&other.measured);
        }
        match self.epoch.cmp(&other.epoch) {
            Ordering::Less => {
                self.epoch = other.epoch;
                self.records.clone_from(&other.records);
                self.notes.clone_from(&other.notes);
                self.pins.clone_from(&other.pins);
                self.anchors = other.anchors.clone();
                self.stall = other.stall;
                self.last_view = other.last_view;
            }
            Ordering::Greater => {}
            Ordering::Equal => {
                self.records = join_records(&self.records, &other.records);
                self.notes = maximal(self.notes.iter().chain(&other.notes));
                self.pins.extend_from_slice(&other.pins);
                self.pins.sort_unstable();
                self.pins.dedup();
                if other.anchors > self.anchors {
                    self.anchors = other.anchors.clone();
                }
                self.stall = self.stall.max(other.stall);
                self.last_view = self.last_view.max(other.last_view);
            }
        }
        self.turn = self.turn.max(other.turn);
        self.calibration = self.calibration.join(other.calibration);
        self.breaker = self.breaker.join(other.breaker);
        self.windows = join_windows(&self.windows, &other.windows);
        for (key, value) in &other.labels {
            if self.label(key).is_none_or(|mine| mine < value.as_str()) {
                self.set_label(key, value);
            }
        }
        self
    }
}

/// The notes that no other contains, sorted. Of two over one stretch, the greater.
pub(super) fn maximal<'a>(notes: impl Iterator<Item = &'a Note>) -> Vec<Note> {
    let mut all: Vec<&Note> = notes.collect();
    // Widest first among those that start together; greater first among equals.
    all.sort_unstable_by(|a, b| a.from.cmp(&b.from).then(b.to.cmp(&a.to)).then(strength(b).cmp(&strength(a))));
    let mut out: Vec<Note> = Vec::new();
    for note in all {
        if out.last().is_none_or(|last| note.to > last.to) {
            out.push(note.clone());
        }
    }
    out
}

fn strength(note: &Note) -> (u32, &Note) {
    (note.revision, note)
}

fn join_records(a: &[Record], b: &[Record]) -> Vec<Record> {
    let mut out: Vec<Record> = Vec::with_capacity(a.len().max(b.len()));
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        match x.place.cmp(&y.place) {
            core::cmp::Ordering::Less => {
                out.push(x.clone());
                i += 1;
            }
            core::cmp::Ordering::Greater => {
                out.push(y.clone());
                j += 1;
            }
            core::cmp::Ordering::Equal => {
                out.push(Record { place: x.place, action: join_actions(&x.action, &y.action) });
                i += 1;
                j += 1;
            }
        }
    }
    out.extend_from_slice(&a[i..]);
    out.extend_from_slice(&b[j..]);
    out
}

fn join_actions(a: &Action, b: &Action) -> Action {
    if let (Action::Elide { digest, parts: x }, Action::Elide { digest: other, parts: y }) = (a, b) {
        let mut parts: Vec<u32> = x.iter().chain(y).copied().collect();
        parts.sort_unstable();
        parts.dedup();
        return Action::Elide { digest: *digest.max(other), parts };
    }
    // A clear that keeps less of the wording wins ties by content; levels first.
    if (a.level(), a) >= (b.level(), b) { a.clone() } else { b.clone() }
}

fn join_windows(a: &[LearnedWindow], b: &[LearnedWindow]) -> Vec<LearnedWindow> {
    let mut all: Vec<LearnedWindow> = a.iter().chain(b).cloned().collect();
    all.sort_unstable();
    let mut out: Vec<LearnedWindow> = Vec::with_capacity(all.len());
    for window in all {
        match out.last_mut() {
            // Sorted by (scope, turn, tokens): the last of a scope is the most recent.
            Some(last) if last.scope == window.scope => *last = window,
            _ => out.push(window),
        }
    }
    out
}
