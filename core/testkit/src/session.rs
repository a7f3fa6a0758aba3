//! A session under observation.

use std::collections::HashMap;

use foreshorten_core::{
    CompactionState, Compactor, Effect, Outcome, Policy, Step, SummaryRequest, Turn,
    plan::Level,
    recall::{self, Found, RecallError},
    render::RenderCache,
    state::History,
    transcript::{Entry, EntryKind, EntryRef, OwnedTranscript, PartRef, Transcript, text_of},
    view::Piece,
};

mod oracles;

use crate::{Answers, legal::check_legal, world::proposals};

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
    /// No archive request succeeds.
    pub archive_fails: bool,
    /// External stages propose anything at all, out of this seed; without one, nothing.
    pub hostile: Option<u64>,
    /// Calm turns on which the costly checks (recall, resume) run: every n-th. All turns with a pass are checked in full.
    pub stride: usize,
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
            archive_fails: false,
            hostile: None,
            stride: 1,
        }
    }

    /// Another summarizer from here on.
    pub fn answer(&mut self, answers: Answers) {
        self.answers = answers;
        self.turn.can_summarize = !matches!(answers, Answers::NoSummarizer);
    }

    /// The policy.
    #[must_use]
    pub const fn policy(&self) -> &'p Policy {
        self.policy
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
        let before_state = self.compactor.state().clone();
        let history = self.compactor.sync(&self.transcript);
        let met = self.compactor.ledger().state().clone();
        self.compactor.begin(&self.transcript, self.turn);
        let effects = self.drive();
        self.turn.overflow = false;
        self.turn.reported_window = None;
        self.check(history, &before_state, effects);
        self.compare(&met);
    }

    fn drive(&mut self) -> usize {
        let mut effects = 0;
        loop {
            match self.compactor.poll(&self.transcript) {
                Step::Done(_) => return effects,
                Step::Effect(Effect::Summarize(request)) => {
                    effects += 1;
                    self.calls += 1;
                    assert!(
                        effects <= self.calls_allowed(),
                        "I9: more summarizer calls in a pass than the stages allow"
                    );
                    self.requests.push(request.clone());
                    let guard = self.compactor.guard(&self.transcript);
                    self.lies += usize::from(matches!(self.answers, Answers::Lying));
                    let reply = self.answers.summarize(&request, &guard, self.lies);
                    self.compactor.handle_summary(&self.transcript, reply);
                }
                Step::Effect(Effect::Archive { entry, digest }) => {
                    assert_eq!(
                        foreshorten_core::digest::Digest::of_entry(&self.transcript, entry),
                        digest,
                        "an archive key is the digest of the content"
                    );
                    self.compactor.handle_archived(!self.archive_fails && entry % 2 == 0);
                }
                Step::Effect(Effect::RunStage { .. }) => {
                    self.hostile = self.hostile.map(|seed| seed + 1);
                    let proposals =
                        self.hostile.map(|seed| proposals(seed, &self.transcript, self.compactor.columns()));
                    self.compactor.handle_proposals(&self.transcript, proposals.unwrap_or_default());
                }
                Step::Effect(_) => unreachable!("an effect this kit does not know"),
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
        if state.epoch() == self.epoch && !matches!(history, History::Foreign | History::Beginning) {
            for (entry, (was, is)) in self.levels.iter().zip(&levels).enumerate() {
                // A pin kept beside a note is shown again when a wider note keeps it; it was never reduced.
                assert!(is >= was, "I3 monotonic: entry {entry} fell from {was:?} to {is:?}");
            }
        }
        // I4
        if history == History::Grown || history == History::New {
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
            }
        }
        // I6: the newest user text and all instructions are there, verbatim.
        let verbatim: HashMap<usize, ()> = compactor
            .view()
            .pieces()
            .filter_map(|piece| if let Piece::Entry { entry } = piece { Some((entry, ())) } else { None })
            .collect();
        let newest = columns.newest_user() as usize;
        for entry in 0..columns.len() {
            let must = columns.kind(entry) == EntryKind::System || entry == newest;
            // An image elided while the message was not yet the newest stays elided.
            let elided = compactor.ledger().level(columns, entry) == Level::Elided;
            assert!(!must || elided || verbatim.contains_key(&entry), "I6 pins: entry {entry} is not verbatim");
        }
        let last_resort = outcome.notice.as_ref().is_some_and(|notice| notice.last_resort);
        if outcome.compacted && !last_resort && columns.groups() > 0 {
            for entry in columns.members(columns.groups() - 1) {
                let was = self.levels.get(entry).copied().unwrap_or_default();
                assert!(levels[entry] == was, "I6 tail: entry {entry} of the newest group was reduced");
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
            assert_eq!((notice.tokens_before, notice.tokens_after), (outcome.tokens_before, outcome.tokens_after));
            assert!(!notice.reasons.is_empty(), "I16: a notice without a reason: {notice:?}");
            let budget = outcome.budget.expect("a pass has a budget");
            if !notice.aggressive && !notice.manual && !self.policy_counts_entries() {
                assert!(notice.tokens_before >= budget.trigger, "a pass below the trigger");
            }
        } else if effects == 0 {
            assert_eq!(state.records(), before.records(), "a decision without a pass");
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
            if !matches!(history, History::Foreign | History::Beginning) {
                assert!(
                    matches!(found, History::Grown | History::New),
                    "I11: the same record is {found:?} to its own state"
                );
                assert_eq!(materialize(again.view(), &self.transcript), view, "I2/I11: resumed, another view");
                assert_eq!(
                    again.ledger().view_raw(),
                    compactor.ledger().view_raw(),
                    "the running total differs from a recount"
                );
            }
        }
        // I9: the same content, and no usage: nothing to do.
        if outcome.compacted {
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
}

impl Session<'_, OwnedTranscript> {
    /// Appends entries and runs a turn.
    pub fn step(&mut self, entries: impl IntoIterator<Item = Entry>) {
        self.transcript.extend(entries);
        self.run();
    }
}
