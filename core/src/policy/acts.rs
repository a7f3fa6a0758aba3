//! What a user or host does to a session between turns: pins, undo, what it notes beside the decisions.

use core::borrow::Borrow;

use super::{Compactor, difference::first_difference, guard};
use crate::{
    config::Policy,
    plan::{Level, Refusal},
    state::CompactionState,
    transcript::Transcript,
};

impl<P: Borrow<Policy>> Compactor<P> {
    /// Pins an entry: it stays verbatim wherever it stands.
    ///
    /// # Errors
    /// An entry that was reduced already cannot be pinned.
    pub fn pin(&mut self, entry: usize) -> Result<(), Refusal> {
        if entry >= self.columns.len() {
            return Err(Refusal::OutOfRange);
        }
        if self.ledger.level(&self.columns, entry) > Level::Verbatim {
            return Err(Refusal::NotRising);
        }
        self.ledger.pin(&self.columns, entry);
        Ok(())
    }

    /// Takes a pin back.
    pub fn unpin(&mut self, entry: usize) {
        self.ledger.state.pins.retain(|pin| pin.index as usize != entry);
    }

    /// Takes back every decision: the user's explicit act. As [`undo_to`](Self::undo_to) a state without decisions.
    pub fn undo_all(&mut self, transcript: &dyn Transcript) -> bool {
        self.undo_to(transcript, &CompactionState::new())
    }

    /// Takes back what was decided since `checkpoint`: the user's explicit act, never a stage's. Answers whether there
    /// was anything to take back.
    ///
    /// To undo the last pass, hand in the state that was stored before it: the one before the turn whose outcome said
    /// `compacted`. Decisions made since go, and those that they replaced stand again. A new epoch begins, which
    /// another host's decisions join as the newer one; what was learned stays, and so do pins. Proactive passes rest
    /// until the view has grown by a twentieth of usable, or does not fit.
    ///
    /// The next outcome names the first piece that changed. A pass that is under way is dropped. Call it after
    /// [`sync`](Self::sync): nothing is taken back before the state has met its record, nor while the record is foreign
    /// or the mere beginning of the session's.
    ///
    /// ```
    /// use foreshorten_core::{Compactor, Effect, Policy, Step, Turn};
    /// use foreshorten_core::transcript::{Entry, OwnedTranscript};
    ///
    /// let messages: Vec<Entry> = (10..50).map(|n| Entry::user(format!("{n}").repeat(500))).collect();
    /// let record = OwnedTranscript::from(messages);
    /// let mut compactor = Compactor::new(Policy::default());
    /// compactor.sync(&record);
    /// let checkpoint = compactor.state().clone();
    /// compactor.begin(&record, Turn { window: Some(8_000), ..Turn::default() });
    /// while let Step::Effect(_) = compactor.poll(&record) {}
    /// assert!(compactor.outcome().compacted && compactor.view().len() < 40);
    ///
    /// assert!(compactor.undo_to(&record, &checkpoint));
    /// assert_eq!((compactor.view().len(), compactor.state().epoch()), (40, 1));
    /// ```
    pub fn undo_to(&mut self, transcript: &dyn Transcript, checkpoint: &CompactionState) -> bool {
        self.pass = None;
        if self.aside.is_some() || self.stored.is_some() {
            return false;
        }
        let guard = guard(self.policy.borrow(), transcript, &self.columns);
        let window = self.outcome.budget.map(|budget| budget.window);
        let Some(ledger) = self.ledger.undone_to(checkpoint, &guard, window) else { return false };
        let from = first_difference(self.ledger.state(), ledger.state(), &self.columns);
        self.ledger = ledger;
        self.ledger.state.make_room();
        if let Some(group) = from {
            let piece = self.cache.rebuild_from(&self.ledger, &guard, group);
            self.cache.settle();
            self.changed = Some(self.changed.map_or(piece, |before| before.min(piece)));
        }
        true
    }

    /// Remembers the window an endpoint named for `scope`. Figures that cannot be a window are not learned.
    pub fn learn_window(&mut self, scope: &str, tokens: u64) -> bool {
        self.own_state().learn_window(scope, tokens)
    }

    /// Sets a fact the host keeps with the state, in the middle of a pass as well.
    pub fn set_label(&mut self, key: &str, value: &str) {
        if let Some(pass) = &mut self.pass {
            pass.set_label(key, value);
        }
        self.own_state().set_label(key, value);
    }

    /// What [`state`](Self::state) shows. Decisions are never changed through it: the ledger's sums hang on them.
    fn own_state(&mut self) -> &mut CompactionState {
        match (&mut self.aside, &mut self.stored) {
            (Some(state), _) | (None, Some(state)) => state,
            (None, None) => &mut self.ledger.state,
        }
    }
}
