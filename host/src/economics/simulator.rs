//! Requests in, bills out.

use serde::Serialize;

use super::cache::{Cache, PathSteps, Step, extend, place_marks};
use super::money::Money;
use super::prices::PriceRow;

/// One piece of a request, as the cache sees it.
///
/// Two segments are the same bytes exactly when their hashes are equal. The cache rules that count blocks count
/// segments, so a segment should be one content block: in practice, one piece of a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Hash of the content (and of whatever else stands in the request for it, such as role and ids).
    pub hash: u64,
    /// Size in the request.
    pub bytes: u64,
    /// Weight.
    pub tokens: u64,
}

/// One model call.
///
/// The segments of the whole request are the first `common` segments of the *previous* request, followed by
/// `segments`. `common` may be too small (0 is always right, then `segments` is the whole request); what is equal is
/// found again. It must not be too large. Work is proportional to `segments` plus what the previous request had beyond
/// `common`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// Leading segments that are those of the previous request.
    pub common: usize,
    /// The segments after them.
    pub segments: &'a [Segment],
    /// Positions (counts of leading segments of the whole request) that the caller would mark for the cache, the most
    /// useful first. The end of the request is always marked. Only rules with marks look at them.
    pub marks: &'a [usize],
    /// Tokens the model answered with.
    pub output_tokens: u64,
    /// Seconds since the previous request; `None` when the record does not say, which counts as no time at all.
    pub idle_seconds: Option<u64>,
}

/// What one request cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TurnBill {
    /// Input tokens: `cached + written + uncached`.
    pub sent_tokens: u64,
    /// Read from the cache.
    pub cached: u64,
    /// Billed at the write price. Always 0 where writing is free.
    pub written: u64,
    /// Billed as plain input.
    pub uncached: u64,
    /// Answered by the model.
    pub output_tokens: u64,
    /// Bytes of the request.
    pub bytes: u64,
    /// Leading bytes that are those of the previous request.
    pub prefix_bytes: u64,
    /// Bytes of the previous request.
    pub previous_bytes: u64,
    /// The previous request is not a prefix of this one.
    pub prefix_broken: bool,
    /// More time has passed since the previous request than the cache lives.
    pub expired: bool,
    /// Input and output together, exact inside, whole microdollars when serialised.
    #[serde(rename = "cost_microdollars")]
    pub cost: Money,
    /// The output's part of it.
    #[serde(rename = "output_cost_microdollars")]
    pub output_cost: Money,
}

/// Bills added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Requests.
    pub turns: u64,
    /// Input tokens of all requests.
    pub sent_tokens: u64,
    /// Read from the cache.
    pub cached: u64,
    /// Billed at the write price.
    pub written: u64,
    /// Billed as plain input.
    pub uncached: u64,
    /// Answered by the model.
    pub output_tokens: u64,
    /// The largest request, in tokens.
    pub largest_tokens: u64,
    /// Bytes of all requests.
    pub bytes: u64,
    /// Bytes that were a prefix of the request before.
    pub prefix_bytes: u64,
    /// Bytes that could have been: the sizes of all requests but the last.
    pub previous_bytes: u64,
    /// Requests that did not begin with the whole request before.
    pub prefix_breaks: u64,
    /// Requests larger than the window: a provider would have refused them.
    pub over_window: u64,
    /// Requests that found the cache expired.
    pub expired: u64,
    /// Input and output together.
    #[serde(rename = "cost_microdollars")]
    pub cost: Money,
    /// The output's part of it.
    #[serde(rename = "output_cost_microdollars")]
    pub output_cost: Money,
}

impl Totals {
    /// Adds one request; `window` is the model's, for [`over_window`](Self::over_window).
    pub fn add(&mut self, bill: &TurnBill, window: u64) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.turns, 1);
        add(&mut self.sent_tokens, bill.sent_tokens);
        add(&mut self.cached, bill.cached);
        add(&mut self.written, bill.written);
        add(&mut self.uncached, bill.uncached);
        add(&mut self.output_tokens, bill.output_tokens);
        self.largest_tokens = self.largest_tokens.max(bill.sent_tokens);
        add(&mut self.bytes, bill.bytes);
        add(&mut self.prefix_bytes, bill.prefix_bytes);
        add(&mut self.previous_bytes, bill.previous_bytes);
        add(&mut self.prefix_breaks, u64::from(bill.prefix_broken));
        add(&mut self.over_window, u64::from(bill.sent_tokens > window));
        add(&mut self.expired, u64::from(bill.expired));
        self.cost += bill.cost;
        self.output_cost += bill.output_cost;
    }

    /// Share of all bytes sent that were a prefix of the request before, in thousandths.
    #[must_use]
    pub fn prefix_share_thousandths(&self) -> Option<u64> {
        share(self.prefix_bytes, self.bytes)
    }

    /// Share of all input tokens that were read from the cache, in thousandths.
    #[must_use]
    pub fn cached_share_thousandths(&self) -> Option<u64> {
        share(self.cached, self.sent_tokens)
    }
}

fn share(part: u64, whole: u64) -> Option<u64> {
    (whole > 0).then(|| u64::try_from(u128::from(part) * 1000 / u128::from(whole)).unwrap_or(u64::MAX))
}

/// One provider's prompt cache and till, for one conversation.
#[derive(Clone, Debug)]
pub struct Simulator {
    row: PriceRow,
    cache: Cache,
    path: PathSteps,
    /// Seconds since the first request.
    clock: u64,
    started: bool,
    marks: Vec<usize>,
}

impl Simulator {
    /// A cold cache of the provider that `row` describes.
    #[must_use]
    pub fn new(row: &PriceRow) -> Self {
        let cache = Cache::new(row.rule);
        Self { row: row.clone(), cache, path: PathSteps::default(), clock: 0, started: false, marks: Vec::new() }
    }

    /// The prices in use.
    #[must_use]
    pub const fn row(&self) -> &PriceRow {
        &self.row
    }

    /// Number of segments in the last request.
    #[must_use]
    pub const fn segments(&self) -> usize {
        self.path.len()
    }

    /// The next request of the conversation.
    pub fn feed(&mut self, request: &Request<'_>) -> TurnBill {
        let mut marks = std::mem::take(&mut self.marks);
        let seen = self.look(request, &mut marks);
        self.cache.retire(self.path.after(seen.shared), self.clock);
        self.path.replace_after(seen.shared, &seen.rest);
        self.cache.mark(&self.path, seen.found, &marks, seen.since, seen.now);
        self.marks = marks;
        self.clock = seen.now;
        self.started = true;
        seen.bill
    }

    /// What [`feed`](Self::feed) would answer, while the cache and the conversation stay as they are: the price of a request
    /// that may or may not be made.
    #[must_use]
    pub fn quote(&self, request: &Request<'_>) -> TurnBill {
        self.look(request, &mut Vec::new()).bill
    }

    fn look(&self, request: &Request<'_>, marks: &mut Vec<usize>) -> Seen {
        let last_length = self.path.len();
        let idle = request.idle_seconds.unwrap_or(0);
        let now = self.clock.saturating_add(idle);
        let warm = idle <= self.row.ttl_seconds;
        let since = now.saturating_sub(self.row.ttl_seconds);

        let (shared, rest) = self.beyond(request);
        let path = self.path.branch(shared, &rest);
        let whole = path.whole();
        let (cached, found) = match self.cache {
            Cache::Anywhere { .. } => {
                let length = self.cache.longest(&path, warm && self.started, since);
                let tokens = path.prefix(length).tokens;
                let steps = tokens.checked_sub(self.row.min_tokens).map(|beyond| beyond % self.row.granularity);
                (steps.map_or(0, |over| tokens - over), None)
            }
            Cache::Marked { max_marks, .. } => {
                let last_end = (self.started && shared == last_length).then_some(last_length);
                place_marks(&path, request.marks, last_end, max_marks, &self.row, marks);
                let found = self.cache.marked(&path, marks, since);
                (found.map_or(0, |length| path.prefix(length).tokens), found)
            }
        };
        let cached = cached.min(whole.tokens);
        let uncovered = whole.tokens - cached;
        let stores = self.row.bills_writes() && whole.tokens >= self.row.min_tokens;
        let (written, uncached) = if stores { (uncovered, 0) } else { (0, uncovered) };
        let output_cost = self.row.output_cost(request.output_tokens, whole.tokens);
        let bill = TurnBill {
            sent_tokens: whole.tokens,
            cached,
            written,
            uncached,
            output_tokens: request.output_tokens,
            bytes: whole.bytes,
            prefix_bytes: self.path.prefix(shared).bytes,
            previous_bytes: self.path.prefix(last_length).bytes,
            prefix_broken: shared < last_length,
            expired: self.started && !warm,
            cost: self.row.input_cost(cached, written, uncached) + output_cost,
            output_cost,
        };
        Seen { shared, rest, found, since, now, bill }
    }

    /// How many leading segments a request shares with the last one, and the prefixes beyond.
    fn beyond(&self, request: &Request<'_>) -> (usize, Vec<Step>) {
        let mut shared = request.common.min(self.path.len());
        let mut segments = request.segments;
        while let Some((first, others)) = segments.split_first() {
            let same = shared < self.path.len()
                && self.path.prefix(shared + 1).hash == extend(self.path.prefix(shared).hash, first.hash);
            if !same {
                break;
            }
            shared += 1;
            segments = others;
        }
        let mut last = self.path.prefix(shared);
        let step = |segment: &Segment| {
            last = Step {
                hash: extend(last.hash, segment.hash),
                tokens: last.tokens.saturating_add(segment.tokens),
                bytes: last.bytes.saturating_add(segment.bytes),
            };
            last
        };
        (shared, segments.iter().map(step).collect())
    }
}

/// A request, looked at.
struct Seen {
    /// Leading segments it shares with the last one.
    shared: usize,
    /// The prefixes beyond.
    rest: Vec<Step>,
    /// Leading segments that were read, under a rule with marks.
    found: Option<usize>,
    /// What was used at this second or later is alive.
    since: u64,
    /// When it is made.
    now: u64,
    bill: TurnBill,
}
