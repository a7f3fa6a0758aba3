//! A session under observation.

use std::sync::atomic::{AtomicU64, Ordering};

use foreshorten_core::{
    CompactionState, Compactor, Effect, Outcome, Policy, Step, SummaryRequest, Turn,
    plan::Level,
    recall::{self, Found, RecallError},
    render::RenderCache,
    state::History,
    transcript::{Entry, OwnedTranscript, Transcript, text_of},
    view::Piece,
};

mod acts;
mod check;
mod oracles;

use crate::{
    Answers, Script,
    hostile::{proposals, random_proposals},
};

/// Turns checked in this process so far, by all sessions.
static TURNS: AtomicU64 = AtomicU64::new(0);

/// Turns checked in this process so far, by all sessions: what a long fuzz reports.
#[must_use]
pub fn turns_checked() -> u64 {
    TURNS.load(Ordering::Relaxed)
}

/// The first entries of a whole record: it grows by raising its `len`.
pub use foreshorten_core::transcript::Until as Growing;

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
    /// Levels, epoch and view of the last turn.
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
    /// What an external stage proposes: [`proposals`] made of these bytes, the same at every call of a turn.
    pub plugin: Vec<u8>,
    /// External stages propose anything at all instead, out of this seed, and something else at every call.
    pub hostile: Option<u64>,
    /// Calm turns on which the costly checks (recall, resume) run: every n-th. All turns with a pass are checked in full.
    pub stride: usize,
    /// Entries the user pinned while they stood verbatim.
    pins: Vec<usize>,
    /// What the record did since the last turn that was checked.
    history: History,
    /// The view of the last turn was given up (merge, edited record): the next one is compared with nothing.
    fresh: bool,
    /// Decisions were taken back since the last turn that was checked.
    undone: bool,
    /// The state as it was before the last pass, until the record or the state is another.
    before_pass: Option<CompactionState>,
    /// The record was edited at any time.
    edited: bool,
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
            plugin: Vec::new(),
            hostile: None,
            stride: 1,
            pins: Vec::new(),
            history: History::Grown,
            fresh: false,
            undone: false,
            before_pass: None,
            edited: false,
            bodies_lost: false,
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
        let (stored, beside) = (self.compactor.state().clone(), self.is_beside());
        let same = matches!(self.sync(), History::Grown | History::New) && !beside && !self.is_beside();
        let met = Met { state: self.compactor.ledger().state().clone(), levels: self.levels_now() };
        if same && !self.fresh && !self.compactor.columns().is_empty() {
            let decided = |state: &CompactionState| (state.records().to_vec(), state.notes().to_vec());
            assert_eq!(decided(&met.state), decided(&stored), "a decision without a pass: new entries decide nothing");
        }
        self.compactor.begin(&self.transcript, self.turn);
        if !self.drive(limit) {
            self.dropped(&met.state);
            return false;
        }
        let history = self.history;
        self.check(history, &stored, &met);
        self.compare(&met.state);
        self.learned(&met.state);
        if self.outcome().compacted && !is_aside(history) {
            self.before_pass = Some(met.state);
        }
        self.turn.overflow = false;
        self.turn.reported_window = None;
        self.history = History::Grown;
        // Over no record at all the state has met nothing yet.
        self.fresh = self.fresh && self.compactor.columns().is_empty();
        self.undone = false;
        if history == History::Foreign {
            // The host says so, and goes on with a new session.
            self.compactor = Compactor::new(self.policy);
            self.forget();
        }
        true
    }

    /// Takes in what is new, and remembers the most that was said about it until a turn is checked.
    fn sync(&mut self) -> History {
        let now = self.compactor.sync(&self.transcript);
        let rank = |history: History| match history {
            History::New => 0,
            History::Grown => 1,
            History::Edited => 2,
            _ => 3,
        };
        // A record is beside its session until it goes on from there.
        let gone_on = is_aside(self.history) && !self.is_beside();
        if gone_on || rank(now) > rank(self.history) {
            self.history = now;
        }
        now
    }

    /// Answers effects until the view is ready: whether it came to that before more than `limit` were asked for.
    fn drive(&mut self, limit: usize) -> bool {
        let mut effects = 0;
        let mut summaries = 0;
        loop {
            let effect = match self.compactor.poll(&self.transcript) {
                Step::Done(_) => return true,
                Step::Effect(effect) => effect,
            };
            if effects >= limit {
                return false;
            }
            effects += 1;
            match effect {
                Effect::Summarize(request) => {
                    summaries += 1;
                    self.calls += 1;
                    assert!(
                        summaries <= self.calls_allowed(),
                        "I9: more summarizer calls in a pass than the stages allow"
                    );
                    self.requests.push(request.clone());
                    let guard = self.compactor.guard(&self.transcript);
                    self.lies += usize::from(matches!(self.answers, Answers::Lying));
                    let reply = self.answers.summarize(&request, &guard, self.lies);
                    self.compactor.handle_summary(&self.transcript, reply);
                }
                Effect::Archive { entry, digest } => {
                    assert_eq!(
                        foreshorten_core::digest::Digest::of_entry(&self.transcript, entry),
                        digest,
                        "an archive key is the digest of the content"
                    );
                    self.compactor.handle_archived(!self.archive_fails && entry % 2 == 0);
                }
                Effect::RunStage { .. } => {
                    let columns = self.compactor.columns();
                    self.hostile = self.hostile.map(|seed| seed.wrapping_add(1));
                    let proposals = match self.hostile {
                        Some(seed) => random_proposals(seed, columns),
                        None => proposals(&mut Script::new(&self.plugin), columns),
                    };
                    self.compactor.handle_proposals(&self.transcript, proposals);
                }
                _ => unreachable!("an effect this kit does not know"),
            }
        }
    }

    fn levels_now(&self) -> Vec<Level> {
        let (columns, ledger) = (self.compactor.columns(), self.compactor.ledger());
        (0..columns.len()).map(|entry| ledger.level(columns, entry)).collect()
    }
}

/// What a turn began with, once the record was taken in.
#[derive(Debug)]
struct Met {
    state: CompactionState,
    levels: Vec<Level>,
}

/// Whether a record is not, or not yet, the one its state belongs to: the state is left alone.
const fn is_aside(history: History) -> bool {
    matches!(history, History::Foreign | History::Beginning)
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

impl Session<'_, OwnedTranscript> {
    /// Appends entries and runs a turn.
    pub fn step(&mut self, entries: impl IntoIterator<Item = Entry>) {
        self.transcript.extend(entries);
        self.run();
    }
}
