//! The one place that touches all rooms: a [`Compactor`] per session.

mod acts;
mod depth;
mod desk;
mod difference;
mod due;
mod foreign;
mod ladder;
mod pass;
mod summarizing;
mod turn;

pub use summarizing::{Finish, Rejected, SummaryFailure, SummaryReply, SummaryRequest};
pub use turn::{Effect, Outcome, RETRY_BELOW_PERCENT, Step, Turn};

use alloc::{string::String, vec::Vec};
use core::borrow::Borrow;

use crate::{
    budget::Mode,
    config::Policy,
    error::OutOfMemory,
    estimate::Refused,
    plan::Proposal,
    render::RenderCache,
    state::{Attachment, CompactionState, Guard, History, Ledger},
    transcript::{Columns, EntryKind, Transcript},
    view::Piece,
};
use difference::first_difference;
use pass::Pass;

/// Plans, keeps and renders the view of one session.
///
/// The methods are of four kinds. *Feeding*: [`sync`](Self::sync), [`handle_usage`](Self::handle_usage),
/// `handle_*`. *Commands*: [`begin`](Self::begin), [`pin`](Self::pin). *Polling*: [`poll`](Self::poll).
/// *Looking*: the rest.
///
/// **After `begin`, poll until `Done` before the view is used.** Between any two effects the compactor may be
/// dropped, or begun anew: the state is then as it was before the pass.
///
/// ```
/// use foreshorten_core::{Compactor, Effect, Policy, Step, Turn};
/// use foreshorten_core::transcript::{Entry, OwnedTranscript};
///
/// let mut transcript = OwnedTranscript::default();
/// let mut compactor = Compactor::new(Policy::default());
/// transcript.push(Entry::user("hello"));
/// compactor.sync(&transcript);
/// compactor.begin(&transcript, Turn { window: Some(200_000), ..Turn::default() });
/// loop {
///     match compactor.poll(&transcript) {
///         Step::Effect(Effect::Summarize(_)) => compactor.handle_summary(&transcript, Err(Default::default())),
///         Step::Effect(Effect::Archive { .. }) => compactor.handle_archived(true),
///         Step::Effect(_) => compactor.handle_proposals(&transcript, Vec::new()),
///         Step::Done(_) => break,
///     }
/// }
/// assert_eq!(compactor.view().len(), 1);
/// ```
#[derive(Debug)]
pub struct Compactor<P = Policy> {
    policy: P,
    columns: Columns,
    ledger: Ledger,
    cache: RenderCache,
    /// A stored state that has not met its record yet.
    stored: Option<CompactionState>,
    /// The state of the session a foreign record does not belong to.
    aside: Option<CompactionState>,
    attachment: Attachment,
    /// First piece changed by the record itself since the last view.
    changed: Option<usize>,
    pass: Option<Pass>,
    outcome: Outcome,
    schema_tokens: u64,
    /// Raw tokens of the view handed out last, schemas included; nothing where that is not known.
    sent_raw: u64,
    /// How much of it the view still begins with: what a warm prompt cache holds. `None` where that is not known.
    warm_raw: Option<u64>,
}

impl<P: Borrow<Policy>> Compactor<P> {
    /// A compactor for a new session.
    #[must_use]
    pub fn new(policy: P) -> Self {
        let mut ledger = Ledger::default();
        ledger.state.use_estimator(policy.borrow().config().weigher.bytes.id());
        Self {
            policy,
            columns: Columns::new(),
            ledger,
            cache: RenderCache::new(),
            stored: None,
            aside: None,
            attachment: Attachment::default(),
            changed: None,
            pass: None,
            outcome: Outcome::default(),
            schema_tokens: 0,
            sent_raw: 0,
            warm_raw: None,
        }
    }

    /// A compactor that resumes from a stored state. The first [`sync`](Self::sync) fits it to the record.
    #[must_use]
    pub fn resume(policy: P, state: CompactionState) -> Self {
        Self { sent_raw: state.last_view.raw, stored: Some(state.sane()), ..Self::new(policy) }
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        self.policy.borrow()
    }

    /// Makes room for `additional` more entries, so that calm turns allocate nothing.
    ///
    /// A turn is calm when no pass is due and the new entries come in order. What may still allocate: the
    /// stand-ins of calls that are given up (a piece each), and a result that comes late.
    pub fn reserve(&mut self, additional: usize) {
        self.columns.reserve(additional);
        self.cache.reserve(additional);
        self.ledger.state.make_room();
    }

    /// As [`reserve`](Self::reserve), for who must not abort when memory is short: called before every
    /// [`sync`](Self::sync) with the number of new entries, it lets a host refuse the entries rather than
    /// grow. A pass allocates for itself; `docs/embedding.md` says how much.
    ///
    /// # Errors
    /// There is no room for all of it. Nothing is lost, and what was there goes on working.
    ///
    /// ```
    /// use foreshorten_core::{Compactor, OutOfMemory, Policy};
    /// let mut compactor = Compactor::new(Policy::default());
    /// assert_eq!(compactor.try_reserve(usize::MAX), Err(OutOfMemory));
    /// assert_eq!(compactor.try_reserve(1_000), Ok(()));
    /// ```
    pub fn try_reserve(&mut self, additional: usize) -> Result<(), OutOfMemory> {
        self.columns.try_reserve(additional)?;
        self.cache.try_reserve(additional)
    }

    /// Takes in the entries that were added since the last call. Costs what is new.
    pub fn sync(&mut self, transcript: &dyn Transcript) -> History {
        self.pass = None;
        let policy = self.policy.borrow();
        let weigher = &policy.config().weigher;
        let first_time = self.columns.is_empty();
        if first_time && let Some(mut state) = self.stored.take() {
            for index in 0..transcript.len() {
                self.columns.push(transcript, weigher.entry(transcript, index));
            }
            if self.columns.is_empty() {
                self.stored = Some(state);
                return History::New;
            }
            let known = state.anchors.len as usize;
            let as_stored = state.clone();
            self.attachment = state.attach(transcript, &self.columns);
            match self.attachment.history {
                History::Foreign => {
                    self.aside = Some(as_stored);
                    state = CompactionState::new();
                    state.note_seen(&self.columns);
                }
                History::Beginning => self.aside = Some(as_stored),
                _ => {}
            }
            state.use_estimator(weigher.bytes.id());
            let guard = guard(policy, transcript, &self.columns);
            self.ledger = Ledger::new(state, &guard);
            self.cache.rebuild_from(&self.ledger, &guard, 0);
            self.cache.settle();
            if self.attachment.history == History::Grown
                && let Some(group) = self.columns.reopened_since(known)
            {
                // A result came for a call that had been given up, while nobody was looking.
                self.changed = Some(self.cache.first_of(group));
                self.attachment.history = History::Edited;
            }
            return self.attachment.history;
        }
        if self.attachment.history == History::Beginning && transcript.len() > self.columns.len() {
            // It goes on from there: the record was rewound for good.
            self.aside = None;
        }
        if self.attachment.history != History::Beginning || self.aside.is_none() {
            self.attachment = Attachment { history: History::Grown, ..Attachment::default() };
        }
        let mut changed: Option<usize> = None;
        for index in self.columns.len()..transcript.len() {
            let weight = weigher.entry(transcript, index);
            self.columns.push(transcript, weight);
            let guard = guard(policy, transcript, &self.columns);
            match self.ledger.pushed(&guard) {
                None if changed.is_none() => self.cache.pushed(&self.ledger, &guard),
                None => {}
                Some(group) => changed = Some(changed.map_or(group, |before| before.min(group))),
            }
        }
        if let Some(group) = changed {
            // A result came for a call that had been given up: the view changes in the middle, and that is said.
            let guard = guard(policy, transcript, &self.columns);
            let piece = self.cache.rebuild_from(&self.ledger, &guard, group);
            self.changed = Some(self.changed.map_or(piece, |before| before.min(piece)));
            self.attachment.history = History::Edited;
        }
        if first_time {
            // There was no view before this one that could have changed.
            self.changed = None;
            self.attachment.history = History::New;
        }
        self.ledger.state.note_seen(&self.columns);
        self.attachment.history
    }

    /// Takes in the provider's prompt-token count for the view handed out last.
    ///
    /// # Errors
    /// Figures that cannot be a count of that view are refused, and nothing is learned.
    pub fn handle_usage(&mut self, input_tokens: u64) -> Result<(), Refused> {
        // A resumed state that has not met its record yet knows the view that its last process handed out.
        let state = self.stored.as_mut().unwrap_or(&mut self.ledger.state);
        state.count(input_tokens)
    }

    /// Raw tokens of the view before the piece at `at`.
    fn raw_before(&self, guard: &Guard<'_>, at: usize) -> u64 {
        self.cache.pieces().take(at).map(|piece| desk::piece_raw(&self.ledger, guard, piece)).sum()
    }

    /// Starts a turn: decides whether a pass is due.
    pub fn begin(&mut self, transcript: &dyn Transcript, turn: Turn<'_>) {
        self.pass = None;
        self.schema_tokens = turn.schema_tokens;
        if let Some(stored) = &mut self.stored {
            // A turn over no record at all: the next figure is not about the view of the stored state.
            stored.last_view = crate::state::LastView::default();
        }
        let state = &mut self.ledger.state;
        state.turn = state.turn.saturating_add(1);
        state.measured.goes_to(turn.scope);
        if let Some(named) = turn.reported_window {
            state.learn_window(turn.scope, named);
        }
        if turn.overflow {
            state.last_view = crate::state::LastView::default();
        }
        let tokens = self.tokens();
        self.outcome = Outcome {
            tokens_before: tokens,
            tokens_after: tokens,
            first_changed: self.changed,
            attachment: self.attachment,
            ..Outcome::default()
        };
        self.warm_raw = match (self.changed, self.attachment.history) {
            (Some(piece), _) => {
                let guard = guard(self.policy.borrow(), transcript, &self.columns);
                Some(self.raw_before(&guard, piece) + self.schema_tokens)
            }
            (None, History::New) => Some(self.sent_raw),
            (None, History::Grown) if self.sent_raw > 0 => Some(self.sent_raw),
            _ => None,
        };
        self.pass = Pass::due(
            self.policy.borrow(),
            transcript,
            &self.columns,
            &self.ledger,
            &self.cache,
            turn,
            &mut self.outcome,
        );
        if self.pass.is_none() {
            self.finish(transcript, turn.overflow);
        }
    }

    /// Goes on with the turn until the host is needed or the view is ready.
    pub fn poll(&mut self, transcript: &dyn Transcript) -> Step<'_> {
        let policy = self.policy.borrow();
        if let Some(pass) = &mut self.pass {
            if let Some(effect) = pass.advance(policy, transcript, &self.columns, &self.ledger) {
                return Step::Effect(effect);
            }
            if let Some(pass) = self.pass.take() {
                let aggressive = pass.mode() == Mode::Aggressive;
                self.commit(transcript, pass);
                self.finish(transcript, aggressive);
            }
        }
        Step::Done(&self.outcome)
    }

    /// Answers [`Effect::Summarize`].
    pub fn handle_summary(&mut self, transcript: &dyn Transcript, reply: Result<SummaryReply, SummaryFailure>) {
        if let Some(pass) = &mut self.pass {
            pass.handle_summary(self.policy.borrow(), transcript, &self.columns, reply);
            // Failures count whether or not the pass comes to anything.
            self.ledger.state.breaker = *pass.breaker();
        }
    }

    /// Answers [`Effect::Summarize`] with a summary that no model wrote. It is judged like any other, but says nothing
    /// about the summarizer: the breaker stays as it was.
    pub fn handle_extract(&mut self, transcript: &dyn Transcript, text: String) {
        if let Some(pass) = &mut self.pass {
            let breaker = *pass.breaker();
            let reply = SummaryReply { text, finish: Finish::Complete };
            pass.handle_summary(self.policy.borrow(), transcript, &self.columns, Ok(reply));
            pass.set_breaker(breaker);
        }
    }

    /// Answers [`Effect::Archive`]. A store that fails never blocks a turn: the record can always be recalled from.
    pub fn handle_archived(&mut self, stored: bool) {
        if let Some(pass) = &mut self.pass {
            pass.handle_archived(stored);
        }
    }

    /// Answers [`Effect::RunStage`]: every proposal is checked like any stage's.
    pub fn handle_proposals(&mut self, transcript: &dyn Transcript, proposals: Vec<Proposal>) {
        if let Some(pass) = &mut self.pass {
            pass.handle_proposals(self.policy.borrow(), transcript, &self.columns, proposals);
        }
    }

    /// The view, in pieces that borrow the record.
    #[must_use]
    pub const fn view(&self) -> &RenderCache {
        &self.cache
    }

    /// The decisions and what was learned, to be stored. During a pass: as before it.
    ///
    /// For a foreign record this is the untouched state of the session it does not belong to.
    #[must_use]
    pub fn state(&self) -> &CompactionState {
        self.aside.as_ref().or(self.stored.as_ref()).unwrap_or(&self.ledger.state)
    }

    /// The ledger over the present record.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Facts about the record.
    #[must_use]
    pub const fn columns(&self) -> &Columns {
        &self.columns
    }

    /// What the last turn came to.
    #[must_use]
    pub const fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Calibrated tokens of the view, schemas included.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.ledger.state.calibration.tokens(self.ledger.view_raw() + self.schema_tokens)
    }

    /// The checks that hold outside a pass.
    #[must_use]
    pub fn guard<'a>(&'a self, transcript: &'a dyn Transcript) -> Guard<'a> {
        guard(self.policy.borrow(), transcript, &self.columns)
    }

    fn commit(&mut self, transcript: &dyn Transcript, pass: Pass) {
        let policy = self.policy.borrow();
        let guard = guard(policy, transcript, &self.columns);
        let Some(done) = pass.conclude(policy, &mut self.ledger, &mut self.outcome) else { return };
        let from = first_difference(self.ledger.state(), done.ledger.state(), &self.columns);
        let raw_before = self.ledger.view_raw();
        self.ledger = done.ledger;
        self.ledger.state.make_room();
        let mut notice = done.notice;
        if let Some(group) = from {
            let piece = self.cache.rebuild_from(&self.ledger, &guard, group);
            self.cache.settle();
            let changed = self.outcome.first_changed.map_or(piece, |before| before.min(piece));
            self.outcome.first_changed = Some(changed);
            notice.first_changed = changed;
            let kept = self.raw_before(&guard, changed);
            // Both requests, with the pass and without, end in what no cache holds yet.
            let new = self.warm_raw.map_or(0, |warm| (raw_before + self.schema_tokens).saturating_sub(warm));
            let resent = self.ledger.view_raw().saturating_sub(kept).saturating_sub(new);
            notice.resent_tokens = self.ledger.state.calibration.ratio().scale(resent);
            let all = (raw_before + self.schema_tokens).max(1);
            notice.prefix_kept_percent = ((kept + self.schema_tokens) * 100 / all).min(100) as u8;
        }
        (notice.verbatim_tokens, notice.verbatim_percent) = self.verbatim();
        self.outcome.compacted = true;
        self.outcome.notice = Some(notice);
    }

    /// How much of the record, instructions aside, the view shows as it came: calibrated tokens, and per cent.
    fn verbatim(&self) -> (u64, u8) {
        let columns = &self.columns;
        let shown = self.cache.pieces().map(|piece| match piece {
            Piece::Entry { entry } if columns.kind(entry) != EntryKind::System => u64::from(columns.weight(entry)),
            _ => 0,
        });
        let all = columns.total_weight().saturating_sub(columns.system_weight()).max(1);
        let raw = shown.sum::<u64>();
        let percent = (raw.saturating_mul(100) / all).min(100) as u8;
        (self.ledger.state().calibration().ratio().scale(raw), percent)
    }

    fn finish(&mut self, transcript: &dyn Transcript, overflow: bool) {
        let tokens = self.tokens();
        // Said with a view that is handed out; a turn that was dropped has said nothing.
        self.changed = None;
        let outcome = &mut self.outcome;
        outcome.tokens_after = tokens;
        if overflow {
            outcome.retry = Some(tokens * 100 < outcome.tokens_before * RETRY_BELOW_PERCENT);
        }
        if let Some(budget) = outcome.budget
            && tokens > budget.usable
        {
            let guard = guard(self.policy.borrow(), transcript, &self.columns);
            outcome.cannot_fit =
                Some(ladder::account(&self.ledger, &guard, self.schema_tokens, tokens - budget.usable));
        }
        let raw = self.ledger.view_raw() + self.schema_tokens;
        self.sent_raw = raw;
        let state = &mut self.ledger.state;
        if let Some(raw) = outcome.stalled {
            state.stall.raw = raw;
            state.stall.said = true;
        }
        if outcome.stalled.is_some() || outcome.compacted {
            state.stall.len = self.columns.len() as u64;
            state.stall.evidence = state.calibration.evidence();
            state.stall.window = outcome.budget.map_or(0, |budget| budget.window);
            state.stall.turn = state.turn;
        }
        state.last_view = crate::state::LastView { turn: state.turn, raw };
        state.measured.handed_out(u32::try_from(self.columns.len()).unwrap_or(u32::MAX));
    }
}

fn guard<'a>(policy: &'a Policy, transcript: &'a dyn Transcript, columns: &'a Columns) -> Guard<'a> {
    let config = policy.config();
    Guard {
        transcript,
        columns,
        weigher: &config.weigher,
        style: config.style,
        summary_wrapper: &config.summary_wrapper,
        tools: &config.tools,
        may_condense: config.may_condense,
        tail_start: columns.groups().saturating_sub(1),
        last_resort: false,
    }
}
