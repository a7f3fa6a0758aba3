//! What happens between two turns: users, hosts and providers act.

use foreshorten_core::{
    CompactionState, Compactor, Finish, SummaryReply,
    plan::{Level, Proposal},
    transcript::{Entry, EntryKind, OwnedTranscript, Transcript},
};

use super::{Session, assert_same, is_aside, materialize};
use crate::Reference;

impl<T: Transcript> Session<'_, T> {
    /// Stops, stores the state and resumes from its bytes.
    pub fn restart(&mut self) {
        if self.is_beside() {
            // What was decided about a record beside its session is in no state.
            self.levels.clear();
            self.fresh = true;
        }
        self.compactor = Compactor::resume(self.policy, self.fork());
    }

    /// Whether the record is not, or not yet, the one that the state belongs to.
    pub(super) fn is_beside(&self) -> bool {
        !self.compactor.columns().is_empty() && !std::ptr::eq(self.compactor.state(), self.compactor.ledger().state())
    }

    /// Nothing of a dropped pass is left, and answers that come too late change nothing.
    pub(super) fn dropped(&mut self, met: &CompactionState) {
        self.sync();
        let view = materialize(self.compactor.view(), &self.transcript);
        let told = |state: &CompactionState| (state.records().to_vec(), state.notes().to_vec(), state.epoch());
        assert_eq!(told(self.compactor.ledger().state()), told(met), "I3: a dropped pass decided something");
        let state = self.compactor.state().clone();
        let late = SummaryReply { text: crate::cases::summary_text(80), finish: Finish::Complete };
        self.compactor.handle_summary(&self.transcript, Ok(late));
        self.compactor.handle_archived(false);
        let columns = self.compactor.columns();
        let late = (0..columns.len()).map(|entry| Proposal::Clear { entry }).collect();
        self.compactor.handle_proposals(&self.transcript, late);
        assert_eq!(self.compactor.state(), &state, "a late answer changed the state");
        assert_eq!(told(self.compactor.ledger().state()), told(met), "a late answer decided something");
        let now = materialize(self.compactor.view(), &self.transcript);
        assert_same(&now, &view, "a late answer changed the view");
        if !self.is_beside() {
            let mut again = Compactor::resume(self.policy, state);
            again.sync(&self.transcript);
            let again = materialize(again.view(), &self.transcript);
            assert_same(&again, &view, "I11: resumed after a cancel, another view");
        }
    }

    /// I14: a window is learned exactly or not at all, and for this scope only.
    pub(super) fn learned(&self, before: &CompactionState) {
        let state = self.compactor.ledger().state();
        for window in state.windows() {
            let named = window.scope == self.turn.scope && self.turn.reported_window == Some(window.tokens);
            assert!(named || before.windows().contains(window), "I14: {window:?} was never named");
        }
        for window in before.windows() {
            let renewed = window.scope == self.turn.scope && self.turn.reported_window.is_some();
            assert!(renewed || state.windows().contains(window), "I14: {window:?} was forgotten");
        }
    }

    /// Reports a provider's count for the view of the last turn.
    ///
    /// # Panics
    /// When a refused figure taught something, or one figure counts twice.
    pub fn usage(&mut self, tokens: u64) {
        let calibration = |compactor: &Compactor<_>| match compactor.columns().is_empty() {
            true => *compactor.state().calibration(),
            false => *compactor.ledger().state().calibration(),
        };
        let before = calibration(&self.compactor);
        let result = self.compactor.handle_usage(tokens);
        let after = calibration(&self.compactor);
        match result {
            Ok(()) => assert_eq!(after.evidence(), before.evidence() + 1, "I14: a figure that was not counted"),
            Err(_) => assert_eq!(after, before, "I14: a refused figure taught something"),
        }
        assert!(
            self.compactor.handle_usage(tokens.max(1)).is_err(),
            "I14: a figure for a view that was counted already"
        );
    }

    /// Pins an entry, as the user asks.
    ///
    /// # Panics
    /// When an entry is pinned that was reduced before.
    pub fn pin(&mut self, entry: usize) {
        self.sync();
        let level = (entry < self.compactor.columns().len()).then(|| self.level(entry));
        match self.compactor.pin(entry) {
            Ok(()) => {
                assert_eq!(level, Some(Level::Verbatim), "I6: a reduced entry was pinned");
                self.pins.push(entry);
            }
            Err(_) => assert_ne!(level, Some(Level::Verbatim), "I6: an entry that stands verbatim cannot be pinned"),
        }
    }

    /// Takes a pin back.
    pub fn unpin(&mut self, entry: usize) {
        self.compactor.unpin(entry);
        self.pins.retain(|&pin| pin != entry);
    }

    /// The user's explicit act: all decisions are taken back, and a new epoch begins.
    ///
    /// # Panics
    /// As [`undo_to`](Self::undo_to).
    pub fn undo(&mut self) {
        self.undo_to(&CompactionState::new());
    }

    /// The user's explicit act: the last pass is taken back, and a new epoch begins. Nothing happens when the record or
    /// the state became another since.
    ///
    /// # Panics
    /// As [`undo_to`](Self::undo_to); also when what is left is not exactly what stood before that pass.
    pub fn undo_last(&mut self) {
        let Some(checkpoint) = self.before_pass.take() else { return };
        self.undo_to(&checkpoint);
        if !self.bodies_lost && !self.is_beside() {
            let reference = Reference::read(&self.transcript, self.policy.config());
            let (now, then) = (self.state(), &checkpoint);
            assert_eq!(reference.levels(now), reference.levels(then), "undo: not what stood before the pass");
            assert_eq!(now.notes(), then.notes(), "undo: not the notes that stood before the pass");
            assert_same(&reference.view(now), &reference.view(then), "undo: not the view before the pass");
        }
    }

    /// The user's explicit act: what was decided since `checkpoint` is taken back, whatever state that is.
    ///
    /// # Panics
    /// When more is hidden than before, something else than decisions is taken back, a stage could undo, or another host
    /// that did not see it overrules it.
    pub fn undo_to(&mut self, checkpoint: &CompactionState) {
        self.sync();
        let (before, levels) = (self.compactor.state().clone(), self.levels_now());
        let view = materialize(self.compactor.view(), &self.transcript);
        let undone = self.compactor.undo_to(&self.transcript, checkpoint);
        let after = self.compactor.state();
        let now = materialize(self.compactor.view(), &self.transcript);
        if !undone {
            assert_eq!(after, &before, "undo: nothing was taken back, and the state is another");
            assert_same(&now, &view, "undo: nothing was taken back, and the view is another");
            return;
        }
        assert_eq!(after.epoch(), before.epoch() + 1, "I3: taken back without a new epoch");
        let more = self.levels_now().iter().zip(&levels).position(|(is, was)| is > was);
        assert_eq!(more, None, "undo: entry {more:?} is reduced more than before");
        let learned = |state: &CompactionState| {
            (*state.calibration(), *state.breaker(), state.windows().to_vec(), state.pins().to_vec(), state.turn())
        };
        assert_eq!(learned(after), learned(&before), "undo: more than decisions was taken back");
        let joint = after.clone().join(&before);
        assert_eq!(
            (joint.records(), joint.notes()),
            (after.records(), after.notes()),
            "I12: a host that has not seen the user's act overrules it"
        );
        let reference = Reference::read(&self.transcript, self.policy.config());
        assert_same(&now, &reference.view(after), "undo: second opinion");
        assert_eq!(self.compactor.ledger().view_raw(), reference.raw(after), "undo: sums are stale");
        self.is_idle("undo: a pass without new content");
        self.levels = self.levels_now();
        self.epoch = self.state().epoch();
        self.undone = true;
        self.before_pass = None;
    }

    /// The state of a second host that has seen the same, to be merged later.
    #[must_use]
    pub fn fork(&self) -> CompactionState {
        CompactionState::decode(&self.compactor.state().encode()).expect("I11: a state decodes")
    }

    /// The state of another host joins this one, and the session goes on from both.
    ///
    /// # Panics
    /// When the join is no join.
    pub fn merge(&mut self, other: &CompactionState) {
        self.sync();
        let mine = self.compactor.state().clone();
        let joint = mine.clone().join(other);
        assert_eq!(joint, other.clone().join(&mine), "I12: does not commute");
        assert_eq!(joint.clone().join(&mine), joint, "I12: joining again changes something");
        assert_eq!(joint.clone().join(other), joint, "I12: joining again changes something");
        assert_eq!(mine.clone().join(&mine), mine, "I12: is not idempotent");
        let levels = |state: &CompactionState| {
            let mut compactor = Compactor::resume(self.policy, state.clone());
            compactor.sync(&self.transcript);
            let columns = compactor.columns();
            (0..columns.len()).map(|entry| compactor.ledger().level(columns, entry)).collect::<Vec<_>>()
        };
        let both = levels(&joint);
        for side in [&mine, other].into_iter().filter(|side| side.epoch() == joint.epoch()) {
            for (entry, (was, is)) in levels(side).into_iter().zip(&both).enumerate() {
                // What one side keeps beside its note, the other may have covered with its own.
                let kept = [&mine, other]
                    .iter()
                    .any(|state| state.notes().iter().any(|note| note.covers(entry) && !note.kept.is_empty()));
                assert!(kept || *is >= was, "I12: entry {entry} fell from {was:?} to {is:?}");
            }
        }
        self.levels = both;
        self.epoch = joint.epoch();
        self.compactor = Compactor::resume(self.policy, joint);
        self.another();
    }

    /// A new session begins.
    pub(super) fn forget(&mut self) {
        self.levels.clear();
        self.epoch = self.compactor.state().epoch();
        self.view.clear();
        self.another();
    }

    /// Record or state are not those of the last turn.
    fn another(&mut self) {
        self.pins.clear();
        self.before_pass = None;
        self.fresh = true;
    }

    /// I9: the same content, and no usage: nothing to do, while the view fits.
    pub(super) fn is_idle(&self, what: &str) {
        let mut again = Compactor::resume(self.policy, self.state().clone());
        if is_aside(again.sync(&self.transcript)) {
            return;
        }
        let turn = foreshorten_core::Turn { overflow: false, reported_window: None, manual: false, ..self.turn };
        again.begin(&self.transcript, turn);
        let idle = matches!(again.poll(&self.transcript), foreshorten_core::Step::Done(outcome) if !outcome.compacted);
        let outcome = again.outcome();
        let fitted = outcome.budget.is_none_or(|budget| outcome.tokens_before <= budget.usable);
        assert!(idle || !fitted || outcome.cannot_fit.is_some(), "{what}");
    }
}

impl Session<'_, OwnedTranscript> {
    /// The host's record is edited (trimmed, rewound, rewritten): it resumes from the stored state. `edit` does the same
    /// to the levels as to the entries; a level it leaves standing must not fall, unless the state says that a new epoch
    /// began.
    pub fn edit(&mut self, edit: impl FnOnce(&mut Vec<Entry>, &mut Vec<Level>)) {
        self.restart();
        let mut entries = self.transcript.entries().to_vec();
        self.levels.resize(entries.len(), Level::Verbatim);
        let count = |entries: &[Entry], id: &str| {
            [EntryKind::ToolCall, EntryKind::ToolResult]
                .map(|kind| entries.iter().filter(|entry| entry.kind == kind && entry.call_id == id).count())
        };
        let before = entries.clone();
        edit(&mut entries, &mut self.levels);
        // Where one of several calls of one id is gone or there are several now, or so of results, results answer others than
        // before: no level is about them any more.
        for (entry, level) in entries.iter().zip(&mut self.levels) {
            let (had, has) = (count(&before, &entry.call_id), count(&entries, &entry.call_id));
            if had.iter().chain(&has).any(|&count| count > 1) && has != had {
                *level = Level::Verbatim;
            }
        }
        self.transcript = OwnedTranscript::from(entries);
        self.edited = true;
        self.another();
    }
}
