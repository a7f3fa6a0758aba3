//! 5. The ledger: every decision of a session, and what was learned.
//!
//! [`CompactionState`] is what is stored and joined; [`Ledger`] is a state laid over a record, with the sums a
//! planner needs. There is no method that removes a decision or lowers a level within an epoch: the only ways
//! a decision goes are a note that covers its entry, and the start of a new epoch.

mod attach;
mod breaker;
mod codec;
mod cover;
mod hashed;
mod join;
mod judge;
mod ledger;
mod note;
mod ranges;
mod record;
mod undo;

pub use attach::{Attachment, History};
pub use breaker::{Breaker, HALF_OPEN_AFTER_TURNS};
pub use codec::{FORMAT_VERSION, StateError};
pub use ledger::{Guard, Ledger};
pub use note::{Note, NoteKind, SummaryState};
pub use record::{Action, OffloadRecord, Record};

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    estimate::{ByteEstimator, Calibration, Measured, Refused},
    transcript::{Chain, Columns, Identity},
};

/// All decisions of a session and what was learned: calibration, windows, breaker.
///
/// Sticky and monotonic within an epoch; serialisable ([`encode`](Self::encode), serde); joinable
/// ([`join`](Self::join)). Its size follows the decisions still needed: what a note covers is dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompactionState {
    /// Counts explicit acts that reset decisions: undo, a rewritten history.
    pub(crate) epoch: u64,
    /// Counts turns; the only clock there is.
    pub(crate) turn: u64,
    pub(crate) anchors: Anchors,
    /// Sorted by (index, chain).
    pub(crate) records: Vec<Record>,
    /// Sorted by (from, to); none contains another.
    pub(crate) notes: Vec<Note>,
    /// Entries pinned by the user, sorted by index.
    pub(crate) pins: Vec<Place>,
    pub(crate) calibration: Calibration,
    /// Sorted by scope.
    pub(crate) windows: Vec<LearnedWindow>,
    pub(crate) breaker: Breaker,
    pub(crate) last_view: LastView,
    pub(crate) stall: Stall,
    /// Small facts the host keeps beside the decisions (the format a session is in), sorted by key.
    pub(crate) labels: Vec<(String, String)>,
    /// What entries weighed by the provider's counts.
    pub(crate) measured: Measured,
}

/// A place in the record: where, and what stood there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// Index of the entry.
    pub index: u32,
    /// Fingerprint of the record up to it.
    pub chain: Chain,
    /// What the entry is.
    pub identity: Identity,
}

impl Place {
    pub(crate) fn of(columns: &Columns, index: usize) -> Self {
        Self {
            index: u32::try_from(index).unwrap_or(u32::MAX),
            chain: columns.chain(index),
            identity: columns.identity(index),
        }
    }
}

/// How many of the newest entries a state remembers, to find itself again in a trimmed record.
const RECENT: usize = 8;

/// What is remembered of the record itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Anchors {
    /// Entries seen.
    pub(crate) len: u32,
    /// Fingerprint of all of them.
    pub(crate) chain: Chain,
    /// The first entry that is not a system instruction.
    pub(crate) first: Identity,
    /// The newest entries that are not system instructions, newest last.
    pub(crate) recent: Vec<Identity>,
    /// Fingerprints after 1, 2, 4, 8 … entries that are not system instructions: a body that stops at one of these is
    /// known to hold nothing new.
    pub(crate) steps: Vec<Chain>,
    /// Entries seen that are not system instructions.
    pub(crate) body: u32,
}

/// A context window named by a provider, for one (endpoint, model).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LearnedWindow {
    /// The (endpoint, model) it holds for, as the host names it.
    pub scope: String,
    /// Turn at which it was learned: the more recent one wins.
    pub turn: u64,
    /// Tokens.
    pub tokens: u64,
}

/// The raw estimate of the last view handed out, to which the next usage figure belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct LastView {
    /// Turn in which it was made.
    pub(crate) turn: u64,
    /// Raw tokens, schemas included; 0 when a figure for it was already taken or none is expected.
    pub(crate) raw: u64,
}

/// A target that could not be reached: said once, not chased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Stall {
    /// Raw tokens of the view at which a pass last gained too little; 0 when none did.
    pub(crate) raw: u64,
    /// Turn of that pass.
    pub(crate) turn: u64,
    /// Whether it was said.
    pub(crate) said: bool,
    /// Entries, usage figures and window at the last pass: without a change in these there is no second one.
    pub(crate) len: u64,
    pub(crate) evidence: u64,
    pub(crate) window: u64,
}

impl CompactionState {
    /// A state with no decisions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of explicit resets so far.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Number of turns so far.
    #[must_use]
    pub const fn turn(&self) -> u64 {
        self.turn
    }

    /// Decisions about single entries, oldest entry first.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Notes, in order.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Entries pinned by the user, in order.
    #[must_use]
    pub fn pins(&self) -> &[Place] {
        &self.pins
    }

    /// What was learned about the provider's counting.
    #[must_use]
    pub const fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// The rule by which the session has been weighed so far; `None` when it has not begun. A host that goes on with it
    /// keeps what was learned.
    ///
    /// ```
    /// use foreshorten_core::{Compactor, Policy, estimate::ByteEstimator};
    /// use foreshorten_core::transcript::{Entry, OwnedTranscript};
    /// let mut compactor = Compactor::new(Policy::default());
    /// assert_eq!(compactor.state().estimator(), None);
    /// let mut record = OwnedTranscript::default();
    /// record.push(Entry::user("hello"));
    /// compactor.sync(&record);
    /// assert_eq!(compactor.state().estimator(), Some(ByteEstimator::default()));
    /// ```
    #[must_use]
    pub fn estimator(&self) -> Option<ByteEstimator> {
        if self.anchors.len == 0 { None } else { ByteEstimator::from_id(self.calibration.estimator()) }
    }

    /// The weight of the entry at `index`, estimated at `weight`, by the two counts of the provider around it; `None` when
    /// no two counts tell.
    #[must_use]
    pub fn measured_weight(&self, index: usize, weight: u64) -> Option<u64> {
        self.measured.weight(index, weight)
    }

    /// Takes in the provider's count for the view handed out last.
    pub(crate) fn count(&mut self, real: u64) -> Result<(), Refused> {
        let raw = core::mem::take(&mut self.last_view.raw);
        let before = self.calibration;
        if self.measured.is_moved() {
            self.calibration.anchor_at(raw, real)?;
        } else {
            self.calibration.observe(raw, real)?;
        }
        self.measured.count(&before, self.calibration.ratio(), raw, real);
        Ok(())
    }

    /// Forgets what was learned by another estimator than the one of this id.
    pub(crate) fn use_estimator(&mut self, id: u8) {
        if self.calibration.estimator() != id {
            self.measured.forget_all(self.anchors.len);
        }
        self.calibration.use_estimator(id);
    }

    /// State of the summary breaker.
    #[must_use]
    pub const fn breaker(&self) -> &Breaker {
        &self.breaker
    }

    /// Windows learned from rejections.
    #[must_use]
    pub fn windows(&self) -> &[LearnedWindow] {
        &self.windows
    }

    /// The window learned for `scope`.
    #[must_use]
    pub fn learned_window(&self, scope: &str) -> Option<u64> {
        self.windows.iter().find(|window| window.scope == scope).map(|window| window.tokens)
    }

    /// Remembers the window an endpoint named for `scope`. Figures that cannot be a window are not learned.
    pub fn learn_window(&mut self, scope: &str, tokens: u64) -> bool {
        if !(crate::budget::MIN_WINDOW..=crate::budget::MAX_WINDOW).contains(&tokens) {
            return false;
        }
        let learned = LearnedWindow { scope: scope.into(), turn: self.turn, tokens };
        match self.windows.binary_search_by(|window| window.scope.as_str().cmp(scope)) {
            Ok(at) => self.windows[at] = learned,
            Err(at) => self.windows.insert(at, learned),
        }
        true
    }

    /// A fact the host keeps with the state.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Sets a fact the host keeps with the state.
    pub fn set_label(&mut self, key: &str, value: &str) {
        match self.labels.binary_search_by(|(name, _)| name.as_str().cmp(key)) {
            Ok(at) => self.labels[at].1 = value.into(),
            Err(at) => self.labels.insert(at, (key.into(), value.into())),
        }
    }

    /// The record of a decision about the entry at `index`.
    #[must_use]
    pub fn record(&self, index: usize) -> Option<&Record> {
        let at = self.records.partition_point(|record| (record.place.index as usize) < index);
        self.records.get(at).filter(|record| record.place.index as usize == index)
    }

    /// Notes what of the record was seen. `from` is the number of entries already noted.
    pub(crate) fn note_seen(&mut self, columns: &Columns) {
        use crate::transcript::EntryKind;
        let len = columns.len();
        let from = (self.anchors.len as usize).min(len);
        self.make_room();
        for index in from..len {
            if columns.kind(index) == EntryKind::System {
                continue;
            }
            let identity = columns.identity(index);
            self.anchors.body = self.anchors.body.saturating_add(1);
            if self.anchors.body.is_power_of_two() {
                self.anchors.steps.push(columns.chain(index));
            }
            if self.anchors.recent.is_empty() {
                self.anchors.first = identity;
            }
            if self.anchors.recent.len() == RECENT {
                self.anchors.recent.rotate_left(1);
                self.anchors.recent[RECENT - 1] = identity;
            } else {
                self.anchors.recent.push(identity);
            }
        }
        self.anchors.len = u32::try_from(len).unwrap_or(u32::MAX);
        self.anchors.chain = len.checked_sub(1).map(|last| columns.chain(last)).unwrap_or_default();
    }

    /// Room for all anchors there can be (one step for every power of two), so that a calm turn never allocates.
    pub(crate) fn make_room(&mut self) {
        self.anchors.steps.reserve(32usize.saturating_sub(self.anchors.steps.len()));
        self.anchors.recent.reserve(RECENT.saturating_sub(self.anchors.recent.len()));
        self.measured.make_room();
    }

    /// Starts the memory of the record over, as after a rewrite.
    pub(crate) fn forget_seen(&mut self) {
        self.anchors = Anchors::default();
    }
}
