//! The three ways of going without a policy, on sessions small enough to follow by hand.
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use foreshorten::economics::{
    BASELINE_NAMES, Baselines, EntryFact, FactKind, Money, PriceRow, PriceTable, STUB_TOKENS, TurnBill,
};

/// $1 a million, reads at a tenth, no minimum, no steps, no end of life.
fn row() -> PriceRow {
    let mut row = PriceTable::builtin().unwrap().row("openai-5.5").unwrap().clone();
    (row.min_tokens, row.granularity, row.long_context, row.ttl_seconds) = (0, 1, None, u64::MAX);
    (row.input, row.read, row.write, row.output) = (1_000_000, 100_000, 1_000_000, Some(1_000_000));
    row
}

fn fact(kind: FactKind, tokens: u64, group: u32) -> EntryFact {
    EntryFact { kind, tokens, bytes: tokens * 4, group }
}

const SYSTEM: FactKind = FactKind::System;
const OTHER: FactKind = FactKind::Other;
const RESULT: FactKind = FactKind::Result;

/// System and user first, then per turn a call of 10 tokens and a result of 100 in one group.
fn session(turns: u32) -> Vec<Vec<EntryFact>> {
    let mut calls = vec![vec![fact(SYSTEM, 50, 0), fact(OTHER, 40, 1)]];
    calls.extend((0..turns).map(|turn| vec![fact(OTHER, 10, turn + 2), fact(RESULT, 100, turn + 2)]));
    calls
}

fn play(baselines: &mut Baselines, calls: &[Vec<EntryFact>]) -> Vec<[TurnBill; 3]> {
    calls.iter().map(|new| baselines.call(new, 5, None)).collect()
}

fn sent(bills: &[[TurnBill; 3]], which: usize) -> Vec<u64> {
    bills.iter().map(|turn| turn[which].sent_tokens).collect()
}

#[test]
fn no_compaction_sends_everything_and_counts_what_would_be_refused() {
    let mut baselines = Baselines::new(&row(), 400, 350);
    let bills = play(&mut baselines, &session(4));
    assert_eq!(sent(&bills, 0), [90, 200, 310, 420, 530]);
    assert!(bills.iter().all(|turn| !turn[0].prefix_broken));
    let total = baselines.totals()[0];
    assert_eq!((total.turns, total.sent_tokens, total.over_window, total.largest_tokens), (5, 1_550, 2, 530));
    // Read: 90 + 200 + 310 + 420. Plain: 90 and four times 110. Answered: five times 5.
    assert_eq!((total.cached, total.uncached), (1_020, 530));
    assert_eq!(total.cost, Money::from_microdollars(102 + 530 + 25));
    assert_eq!(baselines.costs()[0], total.cost);
}

#[test]
fn drop_oldest_takes_whole_groups_from_the_front_and_keeps_the_system_prompt() {
    // 85 % of 400 is 340: the user message goes first, then one call with its result a turn.
    let mut baselines = Baselines::new(&row(), 450, 400);
    let bills = play(&mut baselines, &session(5));
    assert_eq!(sent(&bills, 1), [90, 200, 310, 270, 270, 270]);
    assert_eq!(bills[3][1].prefix_bytes, 50 * 4, "420 without the user message's 40 are still too many");
    let broken: Vec<bool> = bills.iter().map(|turn| turn[1].prefix_broken).collect();
    assert_eq!(broken, [false, false, false, true, true, true]);
    // After each drop only the system prompt is read from the cache.
    assert_eq!(bills[5][1].cached, 50);
    assert_eq!(baselines.totals()[1].over_window, 0);
}

#[test]
fn drop_oldest_never_drops_the_newest_group() {
    let mut baselines = Baselines::new(&row(), 100, 100);
    let bills = play(&mut baselines, &session(2));
    assert_eq!(sent(&bills, 1), [90, 160, 160], "50 of system and 110 of the newest group remain");
    let empty = Baselines::new(&row(), 1, 1).call(&[], 0, None);
    assert_eq!(empty, [TurnBill::default(); 3]);
}

#[test]
fn a_later_system_entry_survives_the_group_it_stands_in() {
    let calls = [
        vec![fact(SYSTEM, 10, 0), fact(OTHER, 50, 1), fact(SYSTEM, 20, 2), fact(OTHER, 50, 3)],
        vec![fact(OTHER, 60, 4)],
    ];
    let mut baselines = Baselines::new(&row(), 200, 100);
    let bills = play(&mut baselines, &calls);
    assert_eq!(sent(&bills, 1), [80, 90], "first the 50 before it goes, then the 50 after it");
}

#[test]
fn keep_newest_3_stubs_older_results_every_turn() {
    let mut baselines = Baselines::new(&row(), 10_000, 10_000);
    let bills = play(&mut baselines, &session(6));
    let full = [90, 200, 310, 420, 530, 640, 750];
    let saved = [0, 0, 0, 0, 80, 160, 240];
    let expected: Vec<u64> = full.iter().zip(saved).map(|(full, saved)| full - saved).collect();
    assert_eq!(sent(&bills, 2), expected);
    let broken: Vec<bool> = bills.iter().map(|turn| turn[2].prefix_broken).collect();
    assert_eq!(broken, [false, false, false, false, true, true, true]);
    // Turn 5 changes the oldest result: system, user and the call before it are read. Turn 6 has its stub too.
    assert_eq!(bills[4][2].cached, 100);
    assert_eq!(bills[5][2].cached, 100 + STUB_TOKENS + 10);
}

#[test]
fn keep_newest_3_places_a_mark_where_it_pays() {
    let mut row = row();
    row.rule = foreshorten::economics::CacheRule::Breakpoints { max_marks: 4, lookback: 20 };
    row.write = 1_250_000;
    let mut baselines = Baselines::new(&row, 10_000, 10_000);
    let bills = play(&mut baselines, &session(8));
    for turn in &bills[5..] {
        assert!(turn[2].prefix_broken && turn[2].cached >= 110, "the frontier is read: {:?}", turn[2]);
    }
}

#[test]
fn small_results_and_batches() {
    let batch: Vec<EntryFact> = (0..6).map(|_| fact(RESULT, 30, 1)).chain([fact(RESULT, 12, 1)]).collect();
    let mut baselines = Baselines::new(&row(), 10_000, 10_000);
    let bills = play(&mut baselines, &[vec![fact(OTHER, 12, 0)], batch, vec![fact(RESULT, 12, 2); 3]]);
    assert_eq!(sent(&bills, 2), [12, 12 + 4 * 20 + 30 + 30 + 12, 12 + 6 * 20 + 12 + 36], "12 is less than a stub");
    assert!(!bills[1][2].prefix_broken, "what was never sent whole breaks nothing");
}

#[test]
fn a_long_session_is_linear() {
    let mut baselines = Baselines::new(&row(), 200_000, 180_000);
    let started = std::time::Instant::now();
    for turn in 0..20_000_u32 {
        baselines.call(&[fact(OTHER, 60, turn), fact(RESULT, 900, turn)], 60, None);
    }
    let totals = baselines.totals();
    assert_eq!(totals.map(|total| total.turns), [20_000; 3]);
    assert!(totals[1].cost > totals[2].cost, "dropping every turn costs more than stubbing every turn");
    assert!(totals[1].largest_tokens <= 153_000);
    assert_eq!(BASELINE_NAMES.len(), totals.len());
    // Far above what it takes; far below what a quadratic walk would.
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
}
