//! The oracles that look at every turn.

use std::{collections::HashSet, sync::atomic::Ordering};

use foreshorten_core::{
    CompactionState, Compactor,
    plan::Level,
    state::History,
    transcript::{EntryKind, Transcript},
    view::Piece,
};

use super::{Met, Session, TURNS, assert_same, is_aside, materialize};
use crate::legal::check_legal;

impl<T: Transcript> Session<'_, T> {
    /// Looks at what a turn came to. `stored` is the state before the turn, `met` what the record made of it.
    pub(super) fn check(&mut self, history: History, stored: &CompactionState, met: &Met) {
        let view = materialize(self.compactor.view(), &self.transcript);
        let levels = self.levels_now();
        if let Err(wrong) = check_legal(self.compactor.view().pieces(), &self.transcript, self.compactor.columns()) {
            panic!("I5 pairs: {wrong}");
        }
        self.check_levels(history, met, &levels);
        self.check_prefix(history, &view);
        self.check_pins(&met.levels, &levels);
        self.check_pass(met);
        if is_aside(history) {
            assert_eq!(self.state(), &stored.clone().sane(), "a record that is not the session's changed the state");
        }
        self.check_fits(&levels);
        self.turns += 1;
        TURNS.fetch_add(1, Ordering::Relaxed);
        if self.outcome().compacted || self.turns.is_multiple_of(self.stride.max(1)) {
            self.check_recall();
            self.check_resumed(history, &view);
        }
        if self.outcome().compacted && !is_aside(history) {
            self.is_idle("I9: a second pass without new content");
        }
        self.passes += usize::from(self.outcome().compacted);
        self.levels = levels;
        self.epoch = self.compactor.ledger().state().epoch();
        self.view = view;
    }

    /// I3
    fn check_levels(&self, history: History, met: &Met, levels: &[Level]) {
        let fell = |before: &[Level]| before.iter().zip(levels).position(|(was, is)| is < was);
        if let Some(entry) = fell(&met.levels) {
            panic!("I3 monotonic: a pass let entry {entry} fall from {:?} to {:?}", met.levels[entry], levels[entry]);
        }
        if self.compactor.ledger().state().epoch() == self.epoch && !is_aside(history) {
            // A pin kept beside a note is shown again when a wider note keeps it; it was never reduced.
            if let Some(entry) = fell(&self.levels) {
                panic!("I3 monotonic: entry {entry} fell from {:?} to {:?}", self.levels[entry], levels[entry]);
            }
        }
    }

    /// I4
    fn check_prefix(&self, history: History, view: &[String]) {
        let outcome = self.outcome();
        if self.fresh || is_aside(history) {
            return;
        }
        let edited = history == History::Edited;
        assert!(
            !edited || outcome.first_changed.is_some(),
            "I4 history: the record changed a view and nobody says where"
        );
        let kept = outcome.first_changed.unwrap_or(usize::MAX).min(self.view.len());
        assert!(
            view.len() >= kept && view[..kept] == self.view[..kept],
            "I4 prefix: changed before piece {kept} of {} (compacted: {}, {history:?}): {:?} became {:?}",
            self.view.len(),
            outcome.compacted,
            self.view.iter().zip(view).find(|(a, b)| a != b),
            view.get(self.view.len().wrapping_sub(1)),
        );
        if !outcome.compacted && !self.undone && !edited {
            assert!(outcome.first_changed.is_none(), "I4 prefix: a change without a pass");
            assert!(view.len() >= self.view.len(), "I4 prefix: the view shrank without a pass");
        }
        // What was taken back may have been decided anew.
        let once = u8::from(outcome.compacted) + u8::from(self.undone) + u8::from(edited) == 1;
        if once && !edited && kept < self.view.len() {
            assert_ne!(view.get(kept), self.view.get(kept), "I4 prefix: piece {kept} is named and did not change");
        }
    }

    /// I6: the newest user text, all instructions and the user's pins are there, verbatim; the newest group is left alone.
    fn check_pins(&self, met: &[Level], levels: &[Level]) {
        let columns = self.compactor.columns();
        let verbatim: HashSet<usize> = self
            .compactor
            .view()
            .pieces()
            .filter_map(|piece| if let Piece::Entry { entry } = piece { Some(entry) } else { None })
            .collect();
        let newest = columns.newest_user() as usize;
        for (entry, level) in levels.iter().enumerate() {
            let pinned = self.pins.contains(&entry) && !columns.is_orphan(entry);
            let must = columns.kind(entry) == EntryKind::System || entry == newest || pinned;
            // An image elided while the message was not yet the newest stays elided.
            let elided = *level == Level::Elided;
            assert!(!must || elided || verbatim.contains(&entry), "I6 pins: entry {entry} is not verbatim");
        }
        // I5: what a note covers are whole groups.
        let is_boundary = |at: usize| at == columns.len() || columns.group_start(columns.group(at)) == at;
        for note in self.compactor.ledger().state().notes() {
            let whole = is_boundary(note.from as usize) && is_boundary(note.to as usize);
            assert!(whole, "I5 pairs: a note over {}..{} cuts a group", note.from, note.to);
        }
        let Some(newest) = columns.groups().checked_sub(1) else { return };
        let last_resort = self.outcome().notice.as_ref().is_some_and(|notice| notice.last_resort);
        for entry in columns.members(newest) {
            assert_ne!(levels[entry], Level::Covered, "I6 tail: entry {entry} of the newest group stands under a note");
            let untouched = last_resort || levels[entry] == met[entry];
            assert!(untouched, "I6 tail: entry {entry} of the newest group was reduced");
        }
    }

    /// I7, I16
    fn check_pass(&self, met: &Met) {
        let (outcome, state) = (self.outcome(), self.compactor.ledger().state());
        if !outcome.compacted {
            assert_eq!(state.records(), met.state.records(), "a decision without a pass");
            assert_eq!(state.notes(), met.state.notes(), "a note without a pass");
            return;
        }
        assert!(
            outcome.tokens_after < outcome.tokens_before,
            "I7 shrink or nothing: {} -> {}: {:?}",
            outcome.tokens_before,
            outcome.tokens_after,
            outcome.notice
        );
        let notice = outcome.notice.as_ref().expect("I16: a pass has a notice");
        assert!(notice.prefix_kept_percent <= 100);
        assert_eq!((notice.tokens_before, notice.tokens_after), (outcome.tokens_before, outcome.tokens_after));
        assert!(!notice.reasons.is_empty(), "I16: a notice without a reason: {notice:?}");
        let budget = outcome.budget.expect("a pass has a budget");
        if !notice.aggressive && !notice.manual && !self.policy_counts_entries() {
            assert!(notice.tokens_before >= budget.trigger, "a pass below the trigger");
        }
    }

    /// I8
    fn check_fits(&self, levels: &[Level]) {
        let outcome = self.outcome();
        let Some(budget) = outcome.budget else { return };
        if outcome.tokens_after > budget.usable {
            assert!(outcome.cannot_fit.is_some(), "I8: does not fit and nobody says so");
            self.check_floor(levels);
        } else {
            assert!(outcome.cannot_fit.is_none(), "I8: fits, and is said not to");
        }
    }

    /// I2, I11
    fn check_resumed(&self, history: History, view: &[String]) {
        let state = self.state();
        let resumed = CompactionState::decode(&state.encode()).expect("I11: a state decodes");
        assert_eq!(&resumed, state, "I11: decode(encode(state)) = state");
        let mut again = Compactor::resume(self.policy, resumed);
        let found = again.sync(&self.transcript);
        if is_aside(history) {
            return;
        }
        assert!(matches!(found, History::Grown | History::New), "I11: the same record is {found:?} to its own state");
        assert_same(&materialize(again.view(), &self.transcript), view, "I2/I11: resumed, another view");
        let (recount, total) = (again.ledger().view_raw(), self.compactor.ledger().view_raw());
        assert_eq!(recount, total, "the running total differs from a recount");
        assert_eq!(again.state().calibration(), state.calibration(), "I11: resumed, another calibration");
    }
}
