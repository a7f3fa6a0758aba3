//! What the simulated cache reads, writes and forgets, against sums done by hand.
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use foreshorten::economics::{Money, PriceRow, PriceTable, Request, Segment, Simulator, TurnBill, break_even};
use proptest::prelude::*;

fn row(id: &str) -> PriceRow {
    PriceTable::builtin().unwrap().row(id).unwrap().clone()
}

/// A segment whose bytes are four times its tokens.
fn segment(hash: u64, tokens: u64) -> Segment {
    Segment { hash, bytes: tokens * 4, tokens }
}

fn send(simulator: &mut Simulator, common: usize, segments: &[Segment]) -> TurnBill {
    simulator.feed(&Request { common, segments, ..Request::default() })
}

fn send_later(simulator: &mut Simulator, seconds: u64, segments: &[Segment]) -> TurnBill {
    simulator.feed(&Request { segments, idle_seconds: Some(seconds), ..Request::default() })
}

/// `row` with nothing rounded and no minimum, found by longest prefix.
fn plain() -> PriceRow {
    let mut row = row("openai-5.5");
    (row.min_tokens, row.granularity, row.long_context) = (0, 1, None);
    row
}

#[test]
fn an_append_only_session_reads_all_it_sent_before() {
    for id in ["anthropic-5m", "anthropic-1h", "openai-5.6"] {
        let mut simulator = Simulator::new(&row(id));
        let first = send(&mut simulator, 0, &[segment(1, 10_000), segment(2, 5_000)]);
        assert_eq!((first.cached, first.written, first.uncached), (0, 15_000, 0), "{id}");
        assert!(!first.prefix_broken && first.previous_bytes == 0);
        let second = send(&mut simulator, 2, &[segment(3, 700)]);
        assert_eq!((second.cached, second.written, second.uncached), (15_000, 700, 0), "{id}");
        assert_eq!((second.prefix_bytes, second.previous_bytes, second.bytes), (60_000, 60_000, 62_800));
        assert!(!second.prefix_broken);
    }
}

#[test]
fn one_bill_by_hand() {
    // Opus 5: 15,000 read at $0.50, 700 written at $6.25, 300 answered at $25 per million.
    let mut simulator = Simulator::new(&row("anthropic-5m"));
    send(&mut simulator, 0, &[segment(1, 15_000)]);
    let bill =
        simulator.feed(&Request { common: 1, segments: &[segment(2, 700)], output_tokens: 300, ..Request::default() });
    assert_eq!(bill.output_cost, Money::from_microdollars(7_500));
    assert_eq!(bill.cost, Money::from_microdollars(7_500 + 4_375 + 7_500));
    // DeepSeek: 5,120 read at 0.0028 and 80 at 0.14: 14.336 + 11.2 millionths of a dollar, kept exactly.
    let mut simulator = Simulator::new(&row("deepseek"));
    send(&mut simulator, 0, &[segment(1, 5_180)]);
    let bill = send(&mut simulator, 1, &[segment(2, 20)]);
    assert_eq!((bill.cached, bill.written, bill.uncached), (5_120, 0, 80));
    assert_eq!(bill.cost.picodollars(), 25_536_000);
}

#[test]
fn minimum_and_steps_of_the_automatic_cache() {
    let mut simulator = Simulator::new(&row("openai-5.5"));
    for (total, cached_next) in [(1_023, 0), (1_024, 1_024), (1_151, 1_024), (1_152, 1_152), (1_300, 1_280)] {
        send(&mut simulator, 0, &[segment(total, total)]);
        assert_eq!(send(&mut simulator, 1, &[segment(7, 10)]).cached, cached_next, "{total}");
    }
}

#[test]
fn a_short_prefix_is_neither_written_nor_read_at_a_mark() {
    let mut simulator = Simulator::new(&row("anthropic-haiku-4.5"));
    let first = send(&mut simulator, 0, &[segment(1, 4_095)]);
    assert_eq!((first.cached, first.written, first.uncached), (0, 0, 4_095));
    let second = send(&mut simulator, 1, &[segment(2, 1)]);
    assert_eq!((second.cached, second.written, second.uncached), (0, 4_096, 0));
    let third = send(&mut simulator, 2, &[segment(3, 1)]);
    assert_eq!((third.cached, third.written), (4_096, 1));
}

#[test]
fn the_cache_expires_after_its_lifetime_and_a_use_refreshes_it() {
    for id in ["anthropic-5m", "openai-5.5"] {
        let row = row(id);
        let ttl = row.ttl_seconds;
        let mut simulator = Simulator::new(&row);
        let whole = [segment(1, 12_800)];
        assert_eq!(send_later(&mut simulator, 0, &whole).cached, 0, "{id}");
        // Four uses, each just in time, long after the first write would have died.
        for _ in 0..4 {
            let bill = send_later(&mut simulator, ttl, &whole);
            assert_eq!((bill.cached, bill.expired), (12_800, false), "{id}");
        }
        let bill = send_later(&mut simulator, ttl + 1, &whole);
        assert_eq!((bill.cached, bill.expired, bill.prefix_broken), (0, true, false), "{id}");
        assert_eq!(send_later(&mut simulator, 1, &whole).cached, 12_800, "{id}: warm again");
    }
}

#[test]
fn an_older_request_still_alive_is_found_again() {
    for mut row in [plain(), row("anthropic-5m"), row("openai-5.6")] {
        row.ttl_seconds = 100;
        let mut simulator = Simulator::new(&row);
        let long = [segment(1, 5_000), segment(2, 5_000), segment(3, 5_000)];
        let other = [segment(1, 5_000), segment(9, 2_000)];
        send_later(&mut simulator, 0, &long);
        let bill = send_later(&mut simulator, 60, &other);
        assert!(bill.prefix_broken && bill.prefix_bytes == 20_000);
        let back = send_later(&mut simulator, 40, &long);
        assert_eq!(back.cached, 15_000, "{}: alive for exactly its lifetime", row.id);
        send_later(&mut simulator, 60, &other);
        send_later(&mut simulator, 60, &other);
        // The shared head was used a moment ago, the rest of the long request 120 seconds ago.
        let late = send_later(&mut simulator, 0, &long);
        let expected = if row.id == "openai-5.5" { 5_000 } else { 0 };
        assert_eq!(late.cached, expected, "{}: only what the automatic rule refreshed by prefix", row.id);
    }
}

#[test]
fn a_change_in_the_middle_is_read_up_to_a_mark() {
    let before: Vec<Segment> = (0..100).map(|n| segment(n, 1_000)).collect();
    let after: Vec<Segment> = (50..90).map(|n| segment(n + 1_000, 500)).collect();
    let run = |id: &str, marks: &[usize]| {
        let mut simulator = Simulator::new(&row(id));
        simulator.feed(&Request { segments: &before, marks, ..Request::default() });
        let bill = simulator.feed(&Request { common: 50, segments: &after, marks, ..Request::default() });
        assert!(bill.prefix_broken);
        assert_eq!(bill.prefix_bytes, 200_000);
        bill.cached
    };
    assert_eq!(run("openai-5.5", &[]), 49_920, "automatic: rounded to steps of 128");
    assert_eq!(run("openai-5.6", &[]), 0, "no shorter prefix is tried without a mark");
    assert_eq!(run("openai-5.6", &[50]), 50_000);
    assert_eq!(run("anthropic-5m", &[]), 0);
    assert_eq!(run("anthropic-5m", &[6, 50]), 50_000);
    assert_eq!(run("anthropic-5m", &[6]), 6_000);
    assert_eq!(run("anthropic-5m", &[6, 50, 7, 8, 9]), 50_000, "marks beyond the fourth are left out");
    assert_eq!(run("anthropic-5m", &[6, 7, 8, 50]), 8_000, "the end takes the fourth");
}

#[test]
fn a_mark_looks_back_so_far_and_no_further() {
    let mut tight = row("anthropic-5m");
    tight.rule = foreshorten::economics::CacheRule::Breakpoints { max_marks: 1, lookback: 20 };
    let burst = |count: u64| {
        let mut simulator = Simulator::new(&tight);
        send(&mut simulator, 0, &[segment(1, 10_000)]);
        let new: Vec<Segment> = (0..count).map(|n| segment(n + 2, 10)).collect();
        send(&mut simulator, 1, &new).cached
    };
    assert_eq!(burst(20), 10_000);
    assert_eq!(burst(21), 0, "a burst of blocks between two marks misses silently");
    // With a mark to spare it stands at the end of the request before, and nothing is missed.
    let mut simulator = Simulator::new(&row("anthropic-5m"));
    send(&mut simulator, 0, &[segment(1, 10_000)]);
    let new: Vec<Segment> = (0..500).map(|n| segment(n + 2, 10)).collect();
    assert_eq!(send(&mut simulator, 1, &new).cached, 10_000);
}

#[test]
fn only_the_newest_entries_are_remembered() {
    let mut few = row("openai-5.6");
    few.rule = foreshorten::economics::CacheRule::Exact { max_marks: 1, remembered: 2 };
    let mut simulator = Simulator::new(&few);
    for hash in [1, 2, 3] {
        send(&mut simulator, 0, &[segment(hash, 2_000)]);
    }
    assert_eq!(send(&mut simulator, 0, &[segment(2, 2_000)]).cached, 2_000);
    assert_eq!(send(&mut simulator, 0, &[segment(1, 2_000)]).cached, 0);
}

#[test]
fn the_price_cliff_multiplies_the_whole_request() {
    let bill = |tokens| {
        let mut simulator = Simulator::new(&row("openai-5.5"));
        simulator.feed(&Request { segments: &[segment(1, tokens)], output_tokens: 1_000, ..Request::default() })
    };
    let (below, above) = (bill(272_000), bill(272_001));
    assert_eq!(below.cost, Money::from_microdollars(1_360_000 + 30_000));
    assert_eq!(above.cost, Money::from_microdollars(2_720_010 + 45_000));
}

/// The table of field.md §5b: tokens, then loss in microdollars and turns in tenths, per price row.
#[test]
fn break_even_as_published() {
    let with = |id: &str, input: u64, read: u64, write: u64| PriceRow { input, read, write, ..row(id) };
    let rows = [
        (with("anthropic-5m", 5_000_000, 500_000, 6_250_000), 425_000, 122, 163),
        (with("anthropic-1h", 5_000_000, 500_000, 10_000_000), 725_000, 208, 275),
        (with("anthropic-5m", 10_000_000, 250_000, 12_500_000), 962_500, 550, 725),
        (with("openai-5.5", 5_000_000, 500_000, 5_000_000), 325_000, 93, 125),
        (with("openai-5.6", 2_000_000, 200_000, 2_500_000), 170_000, 122, 163),
        (with("openai-6.1", 1_000_000, 50_000, 1_250_000), 92_500, 265, 350),
        (with("gemini", 2_000_000, 200_000, 2_000_000), 130_000, 93, 125),
    ];
    for (row, loss, turns_a, turns_b) in &rows {
        let a = break_even(row, 170_000, 20_000, 70_000);
        assert_eq!(a.loss, Money::from_microdollars(*loss), "{}", row.id);
        assert_eq!(a.turns_tenths, Some(*turns_a), "A {}", row.id);
        let b = break_even(row, 170_000, 120_000, 20_000);
        assert_eq!(b.turns_tenths, Some(*turns_b), "B {}", row.id);
    }
    assert_eq!(break_even(&row("gemini"), 100, 50, 0).turns_tenths, None, "nothing saved");
    assert_eq!(break_even(&row("gemini"), 100, 200, 500).turns_tenths, Some(0), "absurd figures are clamped");
}

/// The same example through the simulator: a pass on a warm cache loses exactly what the formula says, and once the
/// turns to break even are over, the shrunk session has cost less.
#[test]
fn the_simulator_agrees_with_the_formula() {
    let mut row = row("anthropic-5m");
    row.min_tokens = 0;
    let full = [segment(1, 20_000), segment(2, 150_000)];
    let shrunk = [segment(1, 20_000), segment(3, 80_000)];
    let run = |second: &[Segment], turns: usize| {
        let mut simulator = Simulator::new(&row);
        simulator.feed(&Request { segments: &full, marks: &[1], ..Request::default() });
        (0..turns)
            .map(|_| simulator.feed(&Request { segments: second, marks: &[1], ..Request::default() }).cost)
            .sum::<Money>()
    };
    assert_eq!(run(&shrunk, 1).saturating_sub(run(&full, 1)), Money::from_microdollars(425_000));
    assert!(run(&shrunk, 13) > run(&full, 13), "12.1 turns after the first are needed");
    assert!(run(&shrunk, 14) < run(&full, 14));
    // C: with a cold cache the same pass is a gain at once: 70k tokens less are written.
    let cold = |segments: &[Segment]| Simulator::new(&row).feed(&Request { segments, ..Request::default() }).cost;
    assert_eq!(cold(&full).saturating_sub(cold(&shrunk)), Money::from_microdollars(437_500));
}

#[test]
fn absurd_sizes_give_values() {
    let mut simulator = Simulator::new(&row("openai-5.6"));
    let huge = [Segment { hash: 1, bytes: u64::MAX, tokens: u64::MAX }; 3];
    let bill = simulator.feed(&Request {
        common: usize::MAX,
        segments: &huge,
        marks: &[0, 9, usize::MAX],
        output_tokens: u64::MAX,
        idle_seconds: Some(u64::MAX),
    });
    assert_eq!(bill.sent_tokens, u64::MAX);
    let again = simulator.feed(&Request { common: usize::MAX, idle_seconds: Some(u64::MAX), ..Request::default() });
    assert_eq!(again.prefix_bytes, u64::MAX);
    assert_eq!(Simulator::new(&plain()).feed(&Request::default()), TurnBill::default());
}

/// The automatic rule, done the slow way: every request is kept whole, with the second of its last use.
fn longest_prefix_by_search(history: &[(u64, Vec<u64>)], now: u64, ttl: u64, request: &[u64]) -> usize {
    let alive = history.iter().filter(|(used, _)| now - used <= ttl);
    alive.map(|(_, old)| old.iter().zip(request).take_while(|(a, b)| a == b).count()).max().unwrap_or(0)
}

proptest! {
    #[test]
    fn incremental_feeding_finds_what_a_search_finds(
        requests in prop::collection::vec((prop::collection::vec(0_u64..3, 0..12), 0_u64..8, any::<prop::sample::Index>()), 1..40),
    ) {
        let mut row = plain();
        row.ttl_seconds = 10;
        let mut simulator = Simulator::new(&row);
        let mut history: Vec<(u64, Vec<u64>)> = Vec::new();
        let mut clock = 0;
        for (hashes, idle, at) in requests {
            clock += idle;
            let last = history.last().map(|(_, hashes)| hashes.clone()).unwrap_or_default();
            let shared = last.iter().zip(&hashes).take_while(|(a, b)| a == b).count();
            // Any value up to what is really shared is allowed.
            let common = at.index(shared + 1);
            let segments: Vec<Segment> = hashes[common..].iter().map(|hash| segment(*hash, 7)).collect();
            let bill = simulator.feed(&Request { common, segments: &segments, idle_seconds: Some(idle), ..Request::default() });
            prop_assert_eq!(bill.cached, 7 * longest_prefix_by_search(&history, clock, 10, &hashes) as u64);
            prop_assert_eq!(bill.prefix_bytes, 28 * shared as u64);
            prop_assert_eq!(bill.prefix_broken, shared < last.len());
            prop_assert_eq!(bill.cached + bill.written + bill.uncached, bill.sent_tokens);
            prop_assert_eq!(bill.sent_tokens, 7 * hashes.len() as u64);
            history.push((clock, hashes));
        }
    }
}
