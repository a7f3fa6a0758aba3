//! What people do without a policy: three ways of feeding a growing session to a model.
//!
//! Each is given the best marks it could place, so that what it loses is lost by what it sends.

use super::money::Money;
use super::prices::PriceRow;
use super::simulator::{Request, Segment, Simulator, Totals, TurnBill};

/// Number of baselines.
pub const BASELINE_COUNT: usize = 3;

/// Their names, in the order in which [`Baselines`] answers.
pub const BASELINE_NAMES: [&str; BASELINE_COUNT] = ["no compaction", "drop oldest", "keep newest 3"];

/// What the stub in the place of an old tool result weighs.
pub const STUB_TOKENS: u64 = 20;

/// Size of that stub.
pub const STUB_BYTES: u64 = 80;

/// Results that `keep newest 3` leaves alone.
const KEPT_RESULTS: usize = 3;

/// What a baseline must know of an entry's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactKind {
    /// Instructions and tool schemas: never dropped.
    System,
    /// A tool's result.
    Result,
    /// Anything else.
    Other,
}

/// What a baseline must know of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryFact {
    /// Its kind.
    pub kind: FactKind,
    /// Its weight, measured as the policy's view is.
    pub tokens: u64,
    /// Its size in a request.
    pub bytes: u64,
    /// Its group; never falls from one entry to the next. Groups are dropped whole.
    pub group: u32,
}

/// The three baselines on one session.
///
/// * `no compaction` sends everything, however large ([`Totals::over_window`] counts what a provider would refuse).
/// * `drop oldest`: each turn, as many whole groups as needed go from the front until the rest is at most 85 % of
///   usable. System entries and the newest group stay.
/// * `keep newest 3`: each turn, all tool results but the newest three are a stub of [`STUB_TOKENS`] tokens, if they
///   weigh more.
#[derive(Clone, Debug)]
pub struct Baselines {
    facts: Vec<EntryFact>,
    /// Weight of all entries before each.
    before: Vec<u64>,
    window: u64,
    all: Simulator,
    drop: DropOldest,
    keep: KeepNewest,
    totals: [Totals; BASELINE_COUNT],
    scratch: Vec<Segment>,
}

#[derive(Clone, Debug)]
struct DropOldest {
    simulator: Simulator,
    limit: u64,
    /// Entries before this one are gone, except those in `system`.
    cursor: usize,
    /// System entries before the cursor.
    system: Vec<usize>,
    system_tokens: u64,
    /// Entries already sent.
    sent: usize,
}

#[derive(Clone, Debug)]
struct KeepNewest {
    simulator: Simulator,
    /// Positions of tool results, and how many of the oldest are stubs.
    results: Vec<usize>,
    stubs: usize,
    sent: usize,
}

impl Baselines {
    /// Baselines for a model with this `window`, of which `usable` tokens may be input.
    #[must_use]
    pub fn new(row: &PriceRow, window: u64, usable: u64) -> Self {
        let limit = u64::try_from(u128::from(usable) * 85 / 100).unwrap_or(u64::MAX);
        let simulator = Simulator::new(row);
        Self {
            facts: Vec::new(),
            before: Vec::new(),
            window,
            all: simulator.clone(),
            drop: DropOldest {
                simulator: simulator.clone(),
                limit,
                cursor: 0,
                system: Vec::new(),
                system_tokens: 0,
                sent: 0,
            },
            keep: KeepNewest { simulator, results: Vec::new(), stubs: 0, sent: 0 },
            totals: [Totals::default(); BASELINE_COUNT],
            scratch: Vec::new(),
        }
    }

    /// A recorded model call: `new` are the entries since the last one, oldest first.
    pub fn call(
        &mut self,
        new: &[EntryFact],
        output_tokens: u64,
        idle_seconds: Option<u64>,
    ) -> [TurnBill; BASELINE_COUNT] {
        for fact in new {
            let total = self.weight_before(self.facts.len());
            self.before.push(total);
            if fact.kind == FactKind::Result {
                self.keep.results.push(self.facts.len());
            }
            self.facts.push(*fact);
        }
        let bills = [
            self.send_all(self.facts.len() - new.len(), output_tokens, idle_seconds),
            self.send_newest(output_tokens, idle_seconds),
            self.send_stubbed(output_tokens, idle_seconds),
        ];
        for (total, bill) in self.totals.iter_mut().zip(&bills) {
            total.add(bill, self.window);
        }
        bills
    }

    /// Everything billed so far, in the order of [`BASELINE_NAMES`].
    #[must_use]
    pub const fn totals(&self) -> &[Totals; BASELINE_COUNT] {
        &self.totals
    }

    /// What each has cost so far.
    #[must_use]
    pub fn costs(&self) -> [Money; BASELINE_COUNT] {
        self.totals.map(|total| total.cost)
    }

    /// Weight of the entries before `index`.
    fn weight_before(&self, index: usize) -> u64 {
        match self.before.get(index) {
            Some(weight) => *weight,
            None => match (self.before.last(), self.facts.last()) {
                (Some(weight), Some(fact)) => weight.saturating_add(fact.tokens),
                _ => 0,
            },
        }
    }

    /// Leading system entries.
    fn head(&self) -> usize {
        self.facts.iter().take_while(|fact| fact.kind == FactKind::System).count()
    }

    fn verbatim(&self, index: usize) -> Segment {
        let fact = self.facts.get(index);
        Segment {
            hash: index as u64 * 2,
            bytes: fact.map_or(0, |fact| fact.bytes),
            tokens: fact.map_or(0, |fact| fact.tokens),
        }
    }

    fn send_all(&mut self, sent: usize, output_tokens: u64, idle_seconds: Option<u64>) -> TurnBill {
        let mut segments = std::mem::take(&mut self.scratch);
        segments.clear();
        segments.extend((sent..self.facts.len()).map(|index| self.verbatim(index)));
        let marks = [self.head()];
        let request = Request { common: sent, segments: &segments, marks: &marks, output_tokens, idle_seconds };
        let bill = self.all.feed(&request);
        self.scratch = segments;
        bill
    }

    fn send_newest(&mut self, output_tokens: u64, idle_seconds: Option<u64>) -> TurnBill {
        let end = self.facts.len();
        let total = self.weight_before(end);
        let newest = self.facts.last().map(|fact| fact.group);
        let mut cursor = self.drop.cursor;
        while self.drop.system_tokens.saturating_add(total - self.weight_before(cursor)) > self.drop.limit {
            // One whole group, if it is not the newest.
            let Some(group) = self.facts.get(cursor).map(|fact| fact.group) else { break };
            if Some(group) == newest {
                break;
            }
            while let Some(fact) = self.facts.get(cursor).filter(|fact| fact.group == group) {
                if fact.kind == FactKind::System {
                    self.drop.system.push(cursor);
                    self.drop.system_tokens = self.drop.system_tokens.saturating_add(fact.tokens);
                }
                cursor += 1;
            }
        }
        let moved = cursor != self.drop.cursor;
        self.drop.cursor = cursor;
        let mut segments = std::mem::take(&mut self.scratch);
        segments.clear();
        let common = if moved {
            segments.extend(self.drop.system.iter().map(|index| self.verbatim(*index)));
            segments.extend((cursor..end).map(|index| self.verbatim(index)));
            0
        } else {
            segments.extend((self.drop.sent..end).map(|index| self.verbatim(index)));
            self.drop.simulator.segments()
        };
        self.drop.sent = end;
        let marks = [if cursor == 0 { self.head() } else { self.drop.system.len() }];
        let request = Request { common, segments: &segments, marks: &marks, output_tokens, idle_seconds };
        let bill = self.drop.simulator.feed(&request);
        self.scratch = segments;
        bill
    }

    fn send_stubbed(&mut self, output_tokens: u64, idle_seconds: Option<u64>) -> TurnBill {
        let end = self.facts.len();
        let due = self.keep.results.len().saturating_sub(KEPT_RESULTS);
        // The oldest result that becomes a stub now, among those already sent, is where the prefix ends.
        let changed = self.keep.results.get(self.keep.stubs).copied().filter(|_| due > self.keep.stubs);
        let common = changed.map_or(self.keep.sent, |index| index.min(self.keep.sent));
        let mut segments = std::mem::take(&mut self.scratch);
        segments.clear();
        // Where the newest results begin: before it, everything that ever will be a stub is one.
        let frontier = self.keep.results.get(due).copied().unwrap_or(end);
        segments.extend((common..end).map(|index| {
            let segment = self.verbatim(index);
            let old = index < frontier && self.facts.get(index).is_some_and(|fact| fact.kind == FactKind::Result);
            if old && segment.tokens > STUB_TOKENS {
                Segment { hash: segment.hash + 1, bytes: STUB_BYTES, tokens: STUB_TOKENS }
            } else {
                segment
            }
        }));
        self.keep.stubs = due;
        self.keep.sent = end;
        let marks = [self.head(), frontier];
        let request = Request { common, segments: &segments, marks: &marks, output_tokens, idle_seconds };
        let bill = self.keep.simulator.feed(&request);
        self.scratch = segments;
        bill
    }
}
