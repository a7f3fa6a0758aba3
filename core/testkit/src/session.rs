//! A session under observation.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
};

use foreshorten_core::{
    CompactionState, Compactor, Effect, Finish, Outcome, Policy, Step, SummaryFailure, SummaryReply, SummaryRequest,
    Turn,
    plan::Level,
    recall::{self, Found, RecallError},
    render::RenderCache,
    state::History,
    transcript::{Entry, EntryKind, EntryRef, OwnedTranscript, PartRef, Transcript, text_of},
    view::Piece,
};

use crate::{Script, legal::check_legal, proposals};

/// Turns checked in this process so far, by all sessions.
static TURNS: AtomicU64 = AtomicU64::new(0);

/// Turns checked in this process so far, by all sessions: what a long fuzz reports.
#[must_use]
pub fn turns_checked() -> u64 {
    TURNS.load(Ordering::Relaxed)
}

/// The first entries of a whole record: it grows by raising [`len`](Self::len).
#[derive(Debug)]
pub struct Growing<'a, T> {
    /// The whole record.
    pub whole: &'a T,
    /// Entries that exist so far.
    pub len: usize,
}

impl<T: Transcript> Transcript for Growing<'_, T> {
    fn len(&self) -> usize {
        self.len
    }
    fn entry(&self, index: usize) -> EntryRef<'_> {
        self.whole.entry(index)
    }
    fn part(&self, index: usize, part: usize) -> PartRef<'_> {
        self.whole.part(index, part)
    }
}

/// How the world answers.
#[derive(Clone, Copy, Debug)]
pub enum Answers {
    /// No summarizer at all.
    NoSummarizer,
    /// The model-free one of the core.
    Extractive,
    /// It always fails.
    Failing,
    /// Its prompt is always too long.
    Overflowing,
    /// It lies: empty, cut, headings only, far too long, by turns.
    Lying,
    /// What this function says.
    By(Summarizer),
}

/// A summarizer that keeps nothing between calls.
pub type Summarizer = fn(&SummaryRequest) -> Result<SummaryReply, SummaryFailure>;

/// A transcript, its compactor, and what the last turn looked like.
#[derive(Debug)]
pub struct Session<'p, T: Transcript = OwnedTranscript> {
    /// The record.
    pub transcript: T,
    /// Under test.
    pub compactor: Compactor<&'p Policy>,
    policy: &'p Policy,
    answers: Answers,
    /// Facts of every turn.
    pub turn: Turn<'static>,
    levels: Vec<Level>,
    epoch: u64,
    view: Vec<String>,
    /// Passes so far.
    pub passes: usize,
    /// Summarizer calls so far.
    pub calls: usize,
    /// What was asked of the summarizer so far.
    pub requests: Vec<SummaryRequest>,
    lies: usize,
    turns: usize,
    /// Calm turns on which the costly checks (recall, resume) run: every n-th. All turns with a pass are checked in full.
    pub stride: usize,
    /// What the external stage proposes: [`proposals`] made of these bytes, the same at every call of a turn.
    pub plugin: Vec<u8>,
    /// Entries the user pinned while they stood verbatim.
    pins: Vec<usize>,
    /// What the record did since the last turn that was checked.
    history: History,
    /// The view of the last turn was given up (undo, merge, edited record): the next one is compared with nothing.
    fresh: bool,
    /// Stored results were made smaller behind the state's back: what was replaced is in no record any more.
    pub bodies_lost: bool,
}

/// Every piece as the model reads it, one string each.
#[must_use]
pub fn materialize(view: &RenderCache, transcript: &dyn Transcript) -> Vec<String> {
    let content = |entry: usize| {
        let facts = transcript.entry(entry);
        format!("{:?} {} {} {} {}", facts.kind, facts.call_id, facts.name, facts.is_error, text_of(transcript, entry))
    };
    view.pieces()
        .map(|piece| match piece {
            Piece::Entry { entry } => format!("{entry} {}", content(entry)),
            Piece::Text { entry, text } => format!("{entry} text {text}"),
            Piece::Elided { entry, parts, text } => format!("{entry} elided {parts:?} {text} {}", content(entry)),
            Piece::Arguments { entry, json } => format!("{entry} arguments {json}"),
            Piece::Note { text } => format!("note {text}"),
            Piece::StandIn { call, text } => format!("stand-in {call} {text}"),
        })
        .collect()
}

/// Two views are one; else says where they part, in a few words.
///
/// # Panics
/// When they are two.
pub(crate) fn assert_same(one: &[String], other: &[String], what: &str) {
    if one == other {
        return;
    }
    let at = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let glimpse = |view: &[String]| view.get(at).map(|piece| foreshorten_core::text::head(piece, 160).to_owned());
    let (a, b) = (glimpse(one), glimpse(other));
    panic!("{what}: piece {at} of {} and {}: {a:?} and {b:?}", one.len(), other.len());
}

impl<'p, T: Transcript> Session<'p, T> {
    /// A session over `transcript` (its entries so far count as the first turn's).
    #[must_use]
    pub fn new(policy: &'p Policy, transcript: T, window: u64, answers: Answers) -> Self {
        Self {
            transcript,
            compactor: Compactor::new(policy),
            policy,
            answers,
            turn: Turn {
                window: Some(window),
                scope: "test/model",
                can_summarize: !matches!(answers, Answers::NoSummarizer),
                ..Turn::default()
            },
            levels: Vec::new(),
            epoch: 0,
            view: Vec::new(),
            passes: 0,
            calls: 0,
            requests: Vec::new(),
            lies: 0,
            turns: 0,
            stride: 1,
            plugin: Vec::new(),
            pins: Vec::new(),
            history: History::Grown,
            fresh: false,
            bodies_lost: false,
        }
    }

    /// Another summarizer from here on.
    pub fn answer(&mut self, answers: Answers) {
        self.answers = answers;
        self.turn.can_summarize = !matches!(answers, Answers::NoSummarizer);
    }

    /// The view of the last turn, piece by piece, as [`materialize`] writes it.
    #[must_use]
    pub fn view(&self) -> &[String] {
        &self.view
    }

    /// What the last turn came to.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        self.compactor.outcome()
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> &CompactionState {
        self.compactor.state()
    }

    /// Level of an entry.
    #[must_use]
    pub fn level(&self, entry: usize) -> Level {
        self.compactor.ledger().level(self.compactor.columns(), entry)
    }

    /// Whether the view shows an entry as it stands in the record.
    #[must_use]
    pub fn is_verbatim(&self, entry: usize) -> bool {
        self.compactor.view().pieces().any(|piece| piece == Piece::Entry { entry })
    }

    /// The texts of the notes in the view.
    #[must_use]
    pub fn notes(&self) -> Vec<&str> {
        let pieces = self.compactor.view().pieces();
        pieces.filter_map(|piece| if let Piece::Note { text } = piece { Some(text) } else { None }).collect()
    }

    /// What a reference brings back.
    ///
    /// # Errors
    /// As [`recall::resolve`].
    pub fn recall(&self, reference: &str) -> Result<Found, RecallError> {
        recall::resolve(reference, &self.transcript, self.compactor.columns(), self.compactor.ledger())
    }

    /// Stops, stores the state and resumes from its bytes.
    pub fn restart(&mut self) {
        let state = CompactionState::decode(&self.compactor.state().encode()).expect("a state decodes");
        self.compactor = Compactor::resume(self.policy, state);
    }

    /// Runs one turn and checks everything.
    ///
    /// # Panics
    /// When an invariant does not hold.
    pub fn run(&mut self) {
        let _ = self.run_some(usize::MAX);
    }

    /// Begins a turn and drops it when it asks for the world once more than `effects` times, as a host does that is
    /// cancelled. A turn that needs no more than that is a turn like any other. Answers whether it was dropped.
    ///
    /// # Panics
    /// When an invariant does not hold; among them, that a dropped pass leaves state and view as they were.
    pub fn cancel(&mut self, effects: usize) -> bool {
        !self.run_some(effects)
    }

    fn run_some(&mut self, limit: usize) -> bool {
        let before = self.compactor.state().clone();
        self.sync();
        let synced = self.compactor.state().clone();
        self.compactor.begin(&self.transcript, self.turn);
        let Some(effects) = self.drive(limit) else {
            self.dropped(&synced);
            return false;
        };
        let history = self.history;
        self.check(history, &before, effects);
        self.learned(&synced);
        self.turn.overflow = false;
        self.turn.reported_window = None;
        self.history = History::Grown;
        self.fresh = false;
        if history == History::Foreign {
            // The host says so, and goes on with a new session.
            self.compactor = Compactor::new(self.policy);
            self.forget();
        }
        true
    }

    /// Takes in what is new, and remembers the most that was said about it until a turn is checked.
    fn sync(&mut self) {
        let rank = |history: History| match history {
            History::New => 0,
            History::Grown => 1,
            History::Edited => 2,
            _ => 3,
        };
        let now = self.compactor.sync(&self.transcript);
        if rank(now) > rank(self.history) {
            self.history = now;
        }
    }

    /// Nothing of a dropped pass is left, and answers that come too late change nothing.
    fn dropped(&mut self, synced: &CompactionState) {
        self.sync();
        let view = materialize(self.compactor.view(), &self.transcript);
        let told = |state: &CompactionState| (state.records().to_vec(), state.notes().to_vec(), state.epoch());
        assert_eq!(told(self.compactor.state()), told(synced), "I3: a dropped pass decided something");
        let state = self.compactor.state().clone();
        let late = SummaryReply { text: crate::cases::summary_text(80), finish: Finish::Complete };
        self.compactor.handle_summary(&self.transcript, Ok(late));
        self.compactor.handle_archived(false);
        let columns = self.compactor.columns();
        let late = (0..columns.len()).map(|entry| foreshorten_core::plan::Proposal::Clear { entry }).collect();
        self.compactor.handle_proposals(&self.transcript, late);
        assert_eq!(self.compactor.state(), &state, "a late answer changed the state");
        let now = materialize(self.compactor.view(), &self.transcript);
        assert_same(&now, &view, "a late answer changed the view");
        let mut again = Compactor::resume(self.policy, state);
        if again.sync(&self.transcript) != History::Foreign {
            let again = materialize(again.view(), &self.transcript);
            assert_same(&again, &view, "I11: resumed after a cancel, another view");
        }
    }

    /// I14: a window is learned exactly or not at all, and for this scope only.
    fn learned(&self, before: &CompactionState) {
        let state = self.compactor.state();
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
        let before = *self.compactor.state().calibration();
        let result = self.compactor.handle_usage(tokens);
        let after = *self.compactor.state().calibration();
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
    pub fn undo(&mut self) {
        let mut state = self.compactor.state().clone();
        state.reset_decisions();
        self.compactor = Compactor::resume(self.policy, state);
        self.fresh = true;
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
        self.pins.clear();
        self.fresh = true;
    }

    fn forget(&mut self) {
        self.levels.clear();
        self.epoch = self.compactor.state().epoch();
        self.pins.clear();
        self.view.clear();
        self.fresh = true;
    }

    /// Answers effects until the view is ready; how many there were. `None` when more than `limit` are asked for.
    fn drive(&mut self, limit: usize) -> Option<usize> {
        let mut effects = 0;
        let mut summaries = 0;
        loop {
            let effect = match self.compactor.poll(&self.transcript) {
                Step::Done(_) => return Some(effects),
                Step::Effect(effect) => effect,
            };
            if effects >= limit {
                return None;
            }
            effects += 1;
            match effect {
                Effect::Summarize(request) => {
                    summaries += 1;
                    self.calls += 1;
                    assert!(summaries <= 32, "I9: summarizer calls without end");
                    self.requests.push(request.clone());
                    let reply = self.reply(&request);
                    self.compactor.handle_summary(&self.transcript, reply);
                }
                Effect::Archive { entry, digest } => {
                    assert_eq!(
                        foreshorten_core::digest::Digest::of_entry(&self.transcript, entry),
                        digest,
                        "an archive key is the digest of the content"
                    );
                    self.compactor.handle_archived(entry % 2 == 0);
                }
                Effect::RunStage { .. } => {
                    let proposals = proposals(&mut Script::new(&self.plugin), self.compactor.columns());
                    self.compactor.handle_proposals(&self.transcript, proposals);
                }
                _ => unreachable!("an effect this kit does not know"),
            }
        }
    }

    fn reply(&mut self, request: &SummaryRequest) -> Result<SummaryReply, SummaryFailure> {
        match self.answers {
            Answers::By(summarizer) => summarizer(request),
            Answers::NoSummarizer => panic!("a summary is asked for without a summarizer"),
            Answers::Failing => Err(SummaryFailure::Failed),
            Answers::Overflowing => Err(SummaryFailure::Overflow),
            Answers::Extractive => {
                let guard = self.compactor.guard(&self.transcript);
                let text = foreshorten_core::summary::extractive_summary(
                    &guard,
                    &request.entries,
                    request.prior.as_deref(),
                    2_000.min(request.max_chars as usize),
                );
                Ok(SummaryReply { text, finish: Finish::Complete })
            }
            Answers::Lying => {
                self.lies += 1;
                let text = match self.lies % 5 {
                    0 => String::new(),
                    1 => "I can't help with that.".into(),
                    2 => "## Session intent\n## Current state\n## Key facts and decisions\n## Artifacts\n## Constraints\n## Next steps\n".into(),
                    3 => "## Session intent\nx\n".repeat(20_000),
                    _ => request.text.clone(),
                };
                let finish = if self.lies.is_multiple_of(7) { Finish::Cut } else { Finish::Complete };
                Ok(SummaryReply { text, finish })
            }
        }
    }

    fn check(&mut self, history: History, before: &CompactionState, effects: usize) {
        let compactor = &self.compactor;
        let columns = compactor.columns();
        let outcome = compactor.outcome();
        let view = materialize(compactor.view(), &self.transcript);
        let state = compactor.state();

        // I5
        if let Err(wrong) = check_legal(compactor.view().pieces(), &self.transcript, columns) {
            panic!("I5 pairs: {wrong}");
        }
        // I3
        let levels: Vec<Level> = (0..columns.len()).map(|entry| compactor.ledger().level(columns, entry)).collect();
        if state.epoch() == self.epoch && history != History::Foreign {
            for (entry, (was, is)) in self.levels.iter().zip(&levels).enumerate() {
                // A pin kept beside a note is shown again when a wider note keeps it; it was never reduced.
                assert!(is >= was, "I3 monotonic: entry {entry} fell from {was:?} to {is:?}");
            }
        }
        // I4
        if (history == History::Grown || history == History::New) && !self.fresh {
            let kept = outcome.first_changed.unwrap_or(usize::MAX).min(self.view.len());
            assert!(
                view.len() >= kept && view[..kept] == self.view[..kept],
                "I4 prefix: changed before piece {kept} of {} (compacted: {}, {history:?}): {:?} became {:?}",
                self.view.len(),
                outcome.compacted,
                self.view.iter().zip(&view).find(|(a, b)| a != b),
                view.get(self.view.len().wrapping_sub(1)),
            );
            if !outcome.compacted {
                assert!(outcome.first_changed.is_none(), "I4 prefix: a change without a pass");
                assert!(view.len() >= self.view.len(), "I4 prefix: the view shrank without a pass");
            } else if kept < self.view.len() {
                assert_ne!(view.get(kept), self.view.get(kept), "I4 prefix: piece {kept} is named and did not change");
            }
        } else if history == History::Edited && !self.fresh {
            // A late result: the place is named, and all before it stays.
            let kept = outcome.first_changed.expect("I4 history: the record changed a view and nobody says where");
            let kept = kept.min(self.view.len());
            assert!(view.len() >= kept && view[..kept] == self.view[..kept], "I4 history: changed before piece {kept}");
        }
        // I6: the newest user text and all instructions are there, verbatim.
        let verbatim: HashMap<usize, ()> = compactor
            .view()
            .pieces()
            .filter_map(|piece| if let Piece::Entry { entry } = piece { Some((entry, ())) } else { None })
            .collect();
        let newest = columns.newest_user() as usize;
        for entry in 0..columns.len() {
            let pinned = self.pins.contains(&entry) && !columns.is_orphan(entry);
            let must = columns.kind(entry) == EntryKind::System || entry == newest || pinned;
            // An image elided while the message was not yet the newest stays elided.
            let elided = compactor.ledger().level(columns, entry) == Level::Elided;
            assert!(!must || elided || verbatim.contains_key(&entry), "I6 pins: entry {entry} is not verbatim");
        }
        let last_resort = outcome.notice.as_ref().is_some_and(|notice| notice.last_resort);
        if outcome.compacted && !last_resort && columns.groups() > 0 {
            for entry in columns.members(columns.groups() - 1) {
                let was = self.levels.get(entry).copied().unwrap_or_default();
                let is = levels[entry];
                assert!(is <= was, "I6 tail: entry {entry} of the newest group: {was:?} became {is:?}");
            }
        }
        // I7, I16
        if outcome.compacted {
            self.passes += 1;
            assert!(
                outcome.tokens_after < outcome.tokens_before,
                "I7 shrink or nothing: {} -> {}: {:?}",
                outcome.tokens_before,
                outcome.tokens_after,
                outcome.notice
            );
            let notice = outcome.notice.as_ref().expect("I16: a pass has a notice");
            assert!(notice.decided.any(), "I16: a pass that decided nothing: {notice:?}");
            assert!(notice.prefix_kept_percent <= 100);
            assert_eq!((notice.tokens_before, notice.tokens_after), (outcome.tokens_before, outcome.tokens_after));
            assert!(!notice.reasons.is_empty(), "I16: a notice without a reason: {notice:?}");
            let budget = outcome.budget.expect("a pass has a budget");
            if !notice.aggressive && !notice.manual && !self.policy_counts_entries() {
                assert!(notice.tokens_before >= budget.trigger, "a pass below the trigger");
            }
        } else if effects == 0 && matches!(history, History::Grown | History::New) && !self.fresh {
            assert_eq!(state.records(), before.records(), "a decision without a pass");
            assert_eq!(state.notes(), before.notes(), "a note without a pass");
        }
        if history == History::Foreign {
            assert_eq!(state, &before.clone().sane(), "a foreign record changed the state");
        }
        // I8
        if let Some(budget) = outcome.budget {
            if outcome.tokens_after > budget.usable {
                assert!(outcome.cannot_fit.is_some(), "I8: does not fit and nobody says so");
                self.check_floor(&levels);
            } else {
                assert!(outcome.cannot_fit.is_none(), "I8: fits, and is said not to");
            }
        }
        self.turns += 1;
        TURNS.fetch_add(1, Ordering::Relaxed);
        let thorough = outcome.compacted || self.turns.is_multiple_of(self.stride.max(1));
        // I10
        if thorough {
            self.check_recall();
        }
        // I2, I11
        if thorough {
            let resumed = CompactionState::decode(&state.encode()).expect("I11: a state decodes");
            assert_eq!(&resumed, state, "I11: decode(encode(state)) = state");
            let mut again = Compactor::resume(self.policy, resumed);
            let found = again.sync(&self.transcript);
            if history != History::Foreign {
                assert!(
                    matches!(found, History::Grown | History::New),
                    "I11: the same record is {found:?} to its own state"
                );
                let again_view = materialize(again.view(), &self.transcript);
                assert_same(&again_view, &view, "I2/I11: resumed, another view");
                assert_eq!(
                    again.ledger().view_raw(),
                    compactor.ledger().view_raw(),
                    "the running total differs from a recount"
                );
            }
        }
        // I9: the same content, and no usage: nothing to do.
        if outcome.compacted && history != History::Foreign {
            let mut again = Compactor::resume(self.policy, state.clone());
            again.sync(&self.transcript);
            again.begin(&self.transcript, Turn { overflow: false, reported_window: None, manual: false, ..self.turn });
            let idle = matches!(again.poll(&self.transcript), Step::Done(outcome) if !outcome.compacted);
            assert!(idle || outcome.cannot_fit.is_some(), "I9: a second pass without new content");
        }
        self.levels = levels;
        self.epoch = state.epoch();
        self.view = view;
    }

    fn policy_counts_entries(&self) -> bool {
        self.policy
            .config()
            .stages
            .iter()
            .any(|stage| matches!(stage, foreshorten_core::PipelineStage::Plan(stage) if stage.wants_pass(usize::MAX)))
    }

    /// When a view does not fit, nothing that could still shrink is left.
    fn check_floor(&self, levels: &[Level]) {
        let columns = self.compactor.columns();
        let ledger = self.compactor.ledger();
        let newest = columns.groups().saturating_sub(1);
        for (entry, level) in levels.iter().enumerate() {
            if *level == Level::Covered || columns.is_orphan(entry) {
                continue;
            }
            let group = columns.group(entry);
            let pinned = columns.members(group).any(|member| ledger.is_pinned(columns, member));
            // A group kept beside a note although it is not pinned any more waits for the note to be rewritten,
            // and so does one that is smaller than the shortest note over it.
            let kept = ledger.note_over(columns, group).is_some();
            let small = ledger.group_weight(&self.compactor.guard(&self.transcript), group) < 80;
            assert!(
                pinned || kept || small || group == newest,
                "I8: does not fit, and group {group} of {newest} is still there; weights {:?} notes {:?} outcome {:?}",
                (0..=newest)
                    .map(|g| (
                        g,
                        ledger.is_shown(columns, g),
                        ledger.group_weight(&self.compactor.guard(&self.transcript), g)
                    ))
                    .collect::<Vec<_>>(),
                ledger.state().notes(),
                self.compactor.outcome()
            );
            if group == newest && columns.kind(entry) == EntryKind::ToolResult {
                assert!(
                    *level == Level::Cleared || columns.weight(entry) < 80 || ledger.view_weight(columns, entry) < 80,
                    "I8: does not fit, and result {entry} of the newest group is {level:?}"
                );
            }
        }
    }

    fn check_recall(&self) {
        let columns = self.compactor.columns();
        let ledger = self.compactor.ledger();
        let resolve = |reference: &str| recall::resolve(reference, &self.transcript, columns, ledger);
        for record in ledger.state().records() {
            let entry = record.place.index as usize;
            let Some(reference) = record.reference(&self.transcript, columns) else { continue };
            if columns.is_recall(entry) {
                continue; // refers to what was recalled
            }
            match resolve(&reference) {
                Ok(Found::Entry { entry: found, exact, .. }) => {
                    assert!(exact || self.bodies_lost, "I10: {reference} is not exact");
                    assert!(
                        self.bodies_lost || text_of(&self.transcript, found) == text_of(&self.transcript, entry),
                        "I10: {reference} brings back something else"
                    );
                }
                other => panic!("I10: {reference} brings back {other:?}"),
            }
        }
        for note in ledger.state().notes() {
            assert!(matches!(resolve(&note.reference()), Ok(Found::Note { .. })), "I10: a note that leads nowhere");
        }
    }
}

impl Session<'_, OwnedTranscript> {
    /// Appends entries and runs a turn.
    pub fn step(&mut self, entries: impl IntoIterator<Item = Entry>) {
        self.transcript.extend(entries);
        self.run();
    }

    /// The host's record is edited (trimmed, rewound, rewritten): it resumes from the stored state. `edit` does the same
    /// to the levels as to the entries; a level it leaves standing must not fall, unless the state says that a new epoch
    /// began.
    pub fn edit(&mut self, edit: impl FnOnce(&mut Vec<Entry>, &mut Vec<Level>)) {
        let mut entries = self.transcript.entries().to_vec();
        self.levels.resize(entries.len(), Level::Verbatim);
        edit(&mut entries, &mut self.levels);
        self.transcript = OwnedTranscript::from(entries);
        self.restart();
        self.pins.clear();
        self.fresh = true;
    }
}
