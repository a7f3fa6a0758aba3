//! States between hosts: a restart, a second host, both joined, another's record.

use alloc::{borrow::Cow, vec, vec::Vec};

use foreshorten_core::{
    CompactionState, Compactor, Effect, Step, SummaryFailure, Turn, state::History, transcript::EntryKind,
};

use super::Play;
use crate::{
    feed::Feed,
    record::{Entry, Part, Record, Text},
    tally::Wrong,
};

impl Play<'_> {
    fn stored(&self, bytes: &[u8]) -> Result<CompactionState, Wrong> {
        CompactionState::decode(bytes).map_err(|_| self.broken("an encoded state decodes"))
    }

    pub(super) fn restart(&mut self) -> Result<(), Wrong> {
        let bytes = self.compactor.state().encode();
        let state = self.stored(&bytes)?;
        if state.encode() != bytes {
            return Err(self.broken("a state decoded and encoded is the same bytes"));
        }
        self.compactor = Compactor::resume(self.policy, state);
        let history = self.compactor.sync(&self.record);
        self.history(history);
        Ok(())
    }

    /// Another host takes the state over, and the user asks it to compact.
    pub(super) fn fork(&mut self) -> Result<(), Wrong> {
        let state = self.stored(&self.compactor.state().encode())?;
        let mut other = Compactor::resume(self.policy, state);
        other.sync(&self.record);
        other.begin(&self.record, Turn { window: Some(self.setup.window), manual: true, ..Turn::default() });
        while let Step::Effect(effect) = other.poll(&self.record) {
            match effect {
                Effect::Summarize(_) => other.handle_summary(&self.record, Err(SummaryFailure::Failed)),
                Effect::Archive { .. } => other.handle_archived(true),
                _ => other.handle_proposals(&self.record, Vec::new()),
            }
        }
        other.set_label("host", "second");
        other.learn_window("other/model", 8_192);
        self.fork = other.state().encode();
        self.hash.field(&self.fork);
        Ok(())
    }

    pub(super) fn merge(&mut self) -> Result<(), Wrong> {
        let bytes = core::mem::take(&mut self.fork);
        let other = self.stored(&bytes)?;
        let mine = self.compactor.state().clone();
        let joined = mine.clone().join(&other);
        if other.join(&mine) != joined {
            return Err(self.broken("two states join to one, whichever comes first"));
        }
        self.hash.field(&joined.encode());
        self.tally.joined += 1;
        self.compactor = Compactor::resume(self.policy, joined);
        let history = self.compactor.sync(&self.record);
        self.history(history);
        Ok(())
    }

    pub(super) fn stranger(&mut self, text: Text) -> Result<(), Wrong> {
        let bytes = self.compactor.state().encode();
        let mut other = Compactor::resume(self.policy, self.stored(&bytes)?);
        let entry = Entry {
            kind: EntryKind::User,
            call_id: Cow::Borrowed(""),
            name: Cow::Borrowed(""),
            is_error: false,
            sealed: false,
            parts: vec![Part::Text(text)],
        };
        let record = Record { entries: vec![entry] };
        let history = other.sync(&record);
        self.history(history);
        if history == History::Foreign && other.state().encode() != bytes {
            return Err(self.broken("a foreign record leaves the state alone"));
        }
        Ok(())
    }
}
