//! Taking decisions back: the user's explicit act, and the start of a new epoch.

use super::{Action, CompactionState, Guard, Ledger, Note, Record, Stall};

impl CompactionState {
    /// This state with nothing but the decisions that `checkpoint`, an earlier state of the session, had too; `None` when
    /// that is what it has. `ledger` is this state over the record in `guard`.
    ///
    /// The record may have been edited since, and what is handed in may be anything: each decision is looked for as
    /// after an edit, and one that hides more than is hidden now is none of an earlier state.
    fn without_later(ledger: &Ledger, checkpoint: &Self, guard: &Guard<'_>) -> Option<Self> {
        let columns = guard.columns;
        let earlier = checkpoint.clone().sane();
        let mut state = ledger.state.clone();
        state.records = earlier.records;
        state.notes = earlier.notes;
        state.place_decisions(guard.transcript, columns);
        state.pins.clone_from(&ledger.state.pins);
        state.notes.retain(|note| ledger.hides(note, guard));
        state.records.retain(|record| ledger.reaches(record, guard));
        // Records under a note are not needed any more.
        let mut laid = Ledger::new(state, guard);
        let mut records = core::mem::take(&mut laid.state.records);
        records.retain(|record| laid.is_shown(columns, columns.group(record.place.index as usize)));
        laid.state.records = records;
        let same = laid.state.records == ledger.state.records && laid.state.notes == ledger.state.notes;
        (!same).then_some(laid.state)
    }
}

impl Ledger {
    /// This ledger without what was decided since `checkpoint`, in a new epoch; `None` when that is nothing.
    ///
    /// Proactive passes rest until the view has grown by as much as after a pass that gained too little.
    pub(crate) fn undone_to(
        &self,
        checkpoint: &CompactionState,
        guard: &Guard<'_>,
        window: Option<u64>,
    ) -> Option<Self> {
        let mut state = CompactionState::without_later(self, checkpoint, guard)?;
        state.epoch = state.epoch.saturating_add(1);
        let mut ledger = Self::new(state, guard);
        let state = &mut ledger.state;
        state.stall = Stall {
            raw: ledger.view_raw,
            turn: state.turn,
            said: false,
            len: guard.columns.len() as u64,
            evidence: state.calibration.evidence(),
            window: window.unwrap_or(state.stall.window),
        };
        state.measured.changed();
        Some(ledger)
    }

    /// Whether all that a note would hide is hidden already.
    fn hides(&self, note: &Note, guard: &Guard<'_>) -> bool {
        let columns = guard.columns;
        let (from, to) = (note.from as usize, note.to as usize);
        let mut group = if from < columns.len() { columns.group(from) } else { return false };
        while group < columns.groups() && columns.group_start(group) < to {
            let start = columns.group_start(group);
            if !note.keeps(start) && self.is_shown(columns, group) {
                return false;
            }
            group += 1;
        }
        true
    }

    /// Whether an entry is reduced already by as much as a record would reduce it.
    fn reaches(&self, record: &Record, guard: &Guard<'_>) -> bool {
        let entry = record.place.index as usize;
        if entry >= guard.columns.len() {
            return false;
        }
        let (level, now) = (record.action.level(), self.level(guard.columns, entry));
        if level != now {
            return level < now;
        }
        let held = self.record_at(entry).map(|at| &self.state.records[at].action);
        match (&record.action, held) {
            (Action::Elide { parts, .. }, Some(Action::Elide { parts: gone, .. })) => {
                parts.iter().all(|part| gone.contains(part))
            }
            (_, held) => held.is_some(),
        }
    }
}
