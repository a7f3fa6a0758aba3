//! One session.

use alloc::{format, string::String, vec::Vec};
use core::cell::RefCell;

use foreshorten_core::{
    CompactionState, Compactor, Effect, Finish, Policy, Step as Core, SummaryFailure, SummaryReply, Turn as CoreTurn,
    recall::{self, Found},
    summary::extractive_summary,
    transcript::OwnedTranscript,
};

use crate::bindings::exports::foreshorten::planner::planning::{
    ArchiveRequest, Entry, GuestSession, Piece, Policy as Wanted, Reply, Session as Handle, Step, Turn,
};
use crate::convert;

/// What a handle stands for.
pub struct Session(RefCell<Inner>);

struct Inner {
    record: OwnedTranscript,
    compactor: Compactor<Policy>,
    /// The summary that is asked for.
    asked: Option<foreshorten_core::SummaryRequest>,
}

impl GuestSession for Session {
    fn open(policy: Wanted, state: Vec<u8>) -> Result<Handle, String> {
        let policy = convert::policy(policy)?;
        let compactor = if state.is_empty() {
            Compactor::new(policy)
        } else {
            let state = CompactionState::decode(&state).map_err(|error| format!("the state: {error}"))?;
            Compactor::resume(policy, state)
        };
        let inner = Inner { record: OwnedTranscript::default(), compactor, asked: None };
        Ok(Handle::new(Self(RefCell::new(inner))))
    }

    fn push(&self, entries: Vec<Entry>) -> Result<(), String> {
        // All or none: an entry that is not understood leaves the record as it was.
        let entries: Vec<_> = entries.into_iter().map(convert::entry).collect::<Result<_, _>>()?;
        let inner = &mut *self.0.borrow_mut();
        for entry in entries {
            inner.record.push(entry);
        }
        inner.compactor.sync(&inner.record);
        Ok(())
    }

    fn begin(&self, turn: Turn) {
        let inner = &mut *self.0.borrow_mut();
        inner.asked = None;
        let turn = CoreTurn {
            window: turn.window,
            scope: &turn.scope,
            schema_tokens: turn.schema_tokens,
            overflow: turn.overflow,
            reported_window: turn.reported_window,
            cache_cold: turn.cache_cold,
            manual: turn.manual,
            can_summarize: turn.can_summarize,
            ..CoreTurn::default()
        };
        inner.compactor.begin(&inner.record, turn);
    }

    fn poll(&self) -> Step {
        let inner = &mut *self.0.borrow_mut();
        loop {
            match inner.compactor.poll(&inner.record) {
                Core::Done(outcome) => return Step::Done(convert::outcome(outcome)),
                Core::Effect(Effect::Summarize(request)) => {
                    let asked = convert::request(&request);
                    inner.asked = Some(request);
                    return Step::Summarize(asked);
                }
                Core::Effect(Effect::Archive { entry, digest }) => {
                    return Step::Archive(ArchiveRequest { entry: convert::narrow(entry), digest: digest.0.to_vec() });
                }
                // No policy of this interface has a stage that runs elsewhere.
                Core::Effect(_) => inner.compactor.handle_proposals(&inner.record, Vec::new()),
            }
        }
    }

    fn summarized(&self, reply: Reply) {
        let inner = &mut *self.0.borrow_mut();
        inner.asked = None;
        let reply = match reply {
            Reply::Written(text) => Ok(SummaryReply { text, finish: Finish::Complete }),
            Reply::Cut(text) => Ok(SummaryReply { text, finish: Finish::Cut }),
            Reply::Failed => Err(SummaryFailure::Failed),
            Reply::Overflow => Err(SummaryFailure::Overflow),
        };
        inner.compactor.handle_summary(&inner.record, reply);
    }

    fn summarized_by_extract(&self, max_chars: u32) {
        let inner = &mut *self.0.borrow_mut();
        let Some(asked) = inner.asked.take() else { return };
        let guard = inner.compactor.guard(&inner.record);
        let chars = asked.max_chars.min(max_chars) as usize;
        let text = extractive_summary(&guard, &asked.entries, asked.prior.as_deref(), chars);
        inner.compactor.handle_extract(&inner.record, text);
    }

    fn archived(&self, stored: bool) {
        self.0.borrow_mut().compactor.handle_archived(stored);
    }

    fn used(&self, input_tokens: u64) -> bool {
        self.0.borrow_mut().compactor.handle_usage(input_tokens).is_ok()
    }

    fn view(&self, start: u32) -> Vec<Piece> {
        self.0.borrow().compactor.view().pieces().skip(start as usize).map(convert::piece).collect()
    }

    fn state(&self) -> Vec<u8> {
        self.0.borrow().compactor.state().encode()
    }

    fn recall(&self, reference: String) -> Result<Vec<u32>, String> {
        let inner = &*self.0.borrow();
        match recall::resolve(&reference, &inner.record, inner.compactor.columns(), inner.compactor.ledger()) {
            Ok(Found::Entry { entry, .. }) => Ok([convert::narrow(entry)].into()),
            Ok(Found::Note { entries }) => Ok(entries.into_iter().map(convert::narrow).collect()),
            Ok(_) => Err("a kind of reference that this interface does not know".into()),
            Err(error) => Err(format!("{error}")),
        }
    }

    fn pin(&self, entry: u32) -> Result<(), String> {
        self.0.borrow_mut().compactor.pin(entry as usize).map_err(|why| format!("{why}"))
    }

    fn undo_all(&self) -> bool {
        let inner = &mut *self.0.borrow_mut();
        inner.compactor.undo_all(&inner.record)
    }
}
