//! What a pass costs the prompt cache is said before the request is made, and the bill that comes then agrees to the token. On
//! a cold cache a pass costs nothing, and passes move there.
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::common::session;
use foreshorten::drive::{Summaries, SummarizerKind, settle};
use foreshorten::economics::{
    BreakEven, CacheRule, Money, Pauses, PriceRow, PriceTable, Request, Segment, Simulator, TurnBill,
};
use foreshorten::formats::{Conversation, read_session};
use foreshorten::options::PolicyOptions;
use foreshorten::plugin::Stages;
use foreshorten::replay::{Setting, replay};
use foreshorten::report::ReplayReport;
use foreshorten_core::transcript::Until;
use foreshorten_core::view::Piece;
use foreshorten_core::{CompactionNotice, Compactor, Policy, Turn};

const SESSIONS: [&str; 4] = [
    "coding-agent.claude-code.jsonl",
    "support.openai-chat.json",
    "research.openai-responses.json",
    "mixed.anthropic-messages.json",
];

/// The whole request as a row of segments, tool schemas first, and where a client would mark it for the cache.
fn request(compactor: &Compactor<&Policy>, schema_tokens: u64) -> (Vec<Segment>, [usize; 2]) {
    let (view, columns, ledger) = (compactor.view(), compactor.columns(), compactor.ledger());
    let weigher = &compactor.policy().config().weigher;
    let segments = view.pieces().map(|piece| {
        let mut hash = DefaultHasher::new();
        format!("{piece:?}").hash(&mut hash);
        let tokens = match piece {
            Piece::Entry { entry } => columns.weight(entry).into(),
            Piece::Text { entry, .. } | Piece::Elided { entry, .. } | Piece::Arguments { entry, .. } => {
                ledger.view_weight(columns, entry)
            }
            Piece::Note { text } | Piece::StandIn { text, .. } => weigher.framed(text).into(),
        };
        Segment { hash: hash.finish(), bytes: 4 * tokens, tokens }
    });
    let schemas = (schema_tokens > 0).then_some(Segment { hash: 1, bytes: 4 * schema_tokens, tokens: schema_tokens });
    let head = usize::from(schema_tokens > 0);
    (schemas.into_iter().chain(segments).collect(), [view.head(columns) + head, view.settled() + head])
}

/// One pass: what was said of it, and the bills of the request with it and without.
struct Pass {
    turn: u64,
    notice: CompactionNotice,
    quoted: TurnBill,
    with: TurnBill,
    without: TurnBill,
}

/// Plays a session twice: as it is, and, at each pass, once more as if there had been none. The policy is not told of pauses.
fn passes(conversation: &Conversation, policy: &Policy, window: u64, row: &PriceRow, pauses: Pauses) -> Vec<Pass> {
    let mut compactor = Compactor::new(policy);
    let mut simulator = Simulator::new(row);
    let weigher = &policy.config().weigher;
    let schema_tokens = conversation.tools.iter().map(|tool| u64::from(weigher.framed(tool))).sum();
    let mut found = Vec::new();
    for (turn, &len) in conversation.calls.iter().enumerate() {
        let record = Until { whole: &conversation.transcript, len };
        let idle_seconds = pauses.before(turn as u64, None);
        compactor.sync(&record);
        let can_summarize = true;
        let turn_of = Turn { scope: "test", window: Some(window), can_summarize, schema_tokens, ..Turn::default() };
        compactor.begin(&record, turn_of);
        let (calm, calm_marks) = request(&compactor, schema_tokens);
        settle(&mut compactor, &record, SummarizerKind::Extractive, None);
        let (view, marks) = request(&compactor, schema_tokens);
        let ask = Request { segments: &view, marks: &marks, idle_seconds, ..Request::default() };
        let quoted = simulator.quote(&ask);
        let mut other = simulator.clone();
        let with = simulator.feed(&ask);
        if let Some(notice) = compactor.outcome().notice.clone().filter(|_| compactor.outcome().compacted) {
            let without =
                other.feed(&Request { segments: &calm, marks: &calm_marks, idle_seconds, ..Request::default() });
            found.push(Pass { turn: turn as u64 + 1, notice, quoted, with, without });
        }
    }
    found
}

fn conversations() -> Vec<Conversation> {
    let read = |name: &str| read_session(std::fs::read(session(name)).unwrap(), None).unwrap();
    SESSIONS.into_iter().flat_map(read).collect()
}

fn uncached(bill: &TurnBill) -> u64 {
    bill.written + bill.uncached
}

/// A cache without minimum, steps and marks: what a prefix is, and nothing else.
fn plain(row: &PriceRow) -> PriceRow {
    PriceRow { rule: CacheRule::Automatic, min_tokens: 0, granularity: 1, long_context: None, ..row.clone() }
}

#[test]
fn the_notice_says_to_the_token_what_the_bill_says() {
    let table = PriceTable::builtin().unwrap();
    let row = plain(table.row("anthropic-5m").unwrap());
    let mut seen = 0;
    for conversation in conversations() {
        for window in [8_000, 16_000, 32_000] {
            let policy = PolicyOptions::default().build(Some(window), "", true, false).unwrap();
            for pass in passes(&conversation, &policy, window, &row, Pauses::None) {
                let place = format!("{} at {window}, turn {}", conversation.name, pass.turn);
                let resent = uncached(&pass.with).saturating_sub(uncached(&pass.without));
                assert_eq!(pass.notice.resent_tokens, resent, "{place}");
                assert_eq!(pass.notice.tokens_before, pass.without.sent_tokens, "{place}");
                assert_eq!(pass.notice.tokens_after, pass.with.sent_tokens, "{place}");
                // From the notice alone, the same turns to break even as from the bills.
                let loan = BreakEven::between(&row, &pass.with, &pass.without);
                assert_eq!(loan.resent_tokens, resent, "{place}");
                assert_eq!(pass.notice.turns_to_break_even(row.write, row.read), loan.turns_tenths, "{place}");
                seen += 1;
            }
        }
    }
    assert!(seen > 60, "only {seen} passes");
}

#[test]
fn under_every_price_row_the_quote_is_the_bill() {
    let table = PriceTable::builtin().unwrap();
    let (mut seen, mut lost) = (0, 0);
    for conversation in conversations() {
        let policy = PolicyOptions::default().build(Some(16_000), "", true, false).unwrap();
        for row in &table.rows {
            let mine = passes(&conversation, &policy, 16_000, row, Pauses::None);
            for pass in &mine {
                assert_eq!(pass.quoted, pass.with, "{} under {}, turn {}", conversation.name, row.id, pass.turn);
                let loan = BreakEven::between(row, &pass.with, &pass.without);
                assert_eq!(loan.loss, pass.with.cost.saturating_sub(pass.without.cost));
                lost += u64::from(loan.loss.picodollars() > 0);
                seen += 1;
            }
        }
    }
    assert!(seen > 100 && lost > 50, "{seen} passes, {lost} with a loss");
}

fn played(
    conversation: &Conversation,
    policy: &Policy,
    window: u64,
    price: &PriceRow,
    pauses: Pauses,
    tell_cold: bool,
) -> ReplayReport {
    let plugins = &Stages::default();
    let setting = Setting {
        policy,
        description: "",
        window,
        summarizer: &Summaries::Extractive,
        plugins,
        price,
        pauses,
        tell_cold,
    };
    replay(conversation, setting, &mut |_| {})
}

/// The report of `replay` states the loss of each pass; it is what two whole replays by hand come to.
#[test]
fn the_report_states_the_difference_of_the_bills() {
    let table = PriceTable::builtin().unwrap();
    let bytes = std::fs::read(session("support.openai-chat.json")).unwrap();
    let conversation = read_session(bytes, None).unwrap().remove(0);
    assert!(!conversation.tools.is_empty(), "schemas are part of what is sent");
    let policy = PolicyOptions::default().build(Some(8_000), "", true, false).unwrap();
    for id in ["anthropic-5m", "openai-5.5", "openai-5.6", "deepseek"] {
        let row = table.row(id).unwrap();
        let report = played(&conversation, &policy, 8_000, row, Pauses::None, true);
        let expected: Vec<(u64, BreakEven)> = passes(&conversation, &policy, 8_000, row, Pauses::None)
            .iter()
            .map(|pass| (pass.turn, BreakEven::between(row, &pass.with, &pass.without)))
            .collect();
        let stated: Vec<(u64, BreakEven)> =
            report.passes.iter().map(|pass| (pass.turn, pass.break_even.unwrap())).collect();
        assert!(stated.len() >= 2, "{id}");
        // Output is in both bills of a replay, and in none here, so that it is in no difference.
        assert_eq!(stated, expected, "{id}");
    }
}

#[test]
fn on_a_cold_cache_a_pass_loses_nothing() {
    let table = PriceTable::builtin().unwrap();
    let row = table.row("anthropic-5m").unwrap();
    let mut seen = 0;
    for conversation in conversations() {
        let policy = PolicyOptions::default().build(Some(16_000), "", true, false).unwrap();
        for pass in passes(&conversation, &policy, 16_000, row, Pauses::Every { calls: 1, seconds: 301 }) {
            let loan = BreakEven::between(row, &pass.with, &pass.without);
            assert_eq!((loan.resent_tokens, loan.turns_tenths), (0, Some(0)), "turn {}", pass.turn);
            assert!(pass.with.cost < pass.without.cost);
            seen += 1;
        }
    }
    assert!(seen > 10);
}

/// Ten minutes after every few calls, under a cache that lives for five: told of it, the policy passes there, where nothing
/// is lost, and the same session costs less than when the passes come as they come.
#[test]
fn passes_move_to_where_the_cache_is_cold() {
    let table = PriceTable::builtin().unwrap();
    let conversation = &conversations()[0];
    for (id, window, calls) in
        [("anthropic-5m", 64_000, 12), ("anthropic-sonnet-4.6", 64_000, 10), ("anthropic-5m", 48_000, 6)]
    {
        let row = table.row(id).unwrap();
        let policy = PolicyOptions::default().build(Some(window), "", true, false).unwrap();
        let pauses = Pauses::Every { calls, seconds: 600 };
        let told = played(conversation, &policy, window, row, pauses, true);
        let not_told = played(conversation, &policy, window, row, pauses, false);
        let cold = |report: &ReplayReport| {
            report
                .passes
                .iter()
                .filter(|pass| (pass.turn - 1).is_multiple_of(calls))
                .map(|pass| pass.turn)
                .collect::<Vec<_>>()
        };
        let lost =
            |report: &ReplayReport| report.passes.iter().map(|pass| pass.break_even.unwrap().loss).sum::<Money>();
        let place = format!("{id} at {window}: {:?} told, {:?} not told", cold(&told), cold(&not_told));
        assert!(cold(&told).len() > cold(&not_told).len(), "{place}");
        assert!(
            cold(&told).len() * 2 >= told.passes.len(),
            "half of the passes are there: {place} of {}",
            told.passes.len()
        );
        for pass in told.passes.iter().filter(|pass| (pass.turn - 1).is_multiple_of(calls)) {
            let loan = pass.break_even.unwrap();
            assert_eq!((loan.resent_tokens, loan.loss), (0, Money::ZERO), "{place}");
        }
        assert!(lost(&told) < lost(&not_told), "{place}: lost {} and {}", lost(&told), lost(&not_told));
        assert!(told.totals.cost < not_told.totals.cost, "{place}: {} and {}", told.totals.cost, not_told.totals.cost);
        assert_eq!(told.totals.expired, not_told.totals.expired);
    }
}

/// The same passes, had the cache been warm: the loss that the pause spares.
#[test]
fn the_same_passes_cost_more_on_a_warm_cache() {
    let table = PriceTable::builtin().unwrap();
    let row = table.row("anthropic-5m").unwrap();
    let conversation = &conversations()[0];
    let policy = PolicyOptions::default().build(Some(32_000), "", true, false).unwrap();
    let losses = |pauses| -> Vec<Money> {
        let found = passes(conversation, &policy, 32_000, row, pauses);
        found.iter().map(|pass| BreakEven::between(row, &pass.with, &pass.without).loss).collect()
    };
    // Untold, the policy decides the same whatever the time.
    let (warm, cold) = (losses(Pauses::None), losses(Pauses::Every { calls: 1, seconds: 301 }));
    assert_eq!(warm.len(), cold.len());
    assert!(warm.len() > 5 && warm.iter().all(|loss| *loss > Money::ZERO), "{warm:?}");
    assert!(cold.iter().all(|loss| *loss == Money::ZERO), "{cold:?}");
}

#[test]
fn recorded_times_are_pauses() {
    let table = PriceTable::builtin().unwrap();
    let row = |ttl_seconds| PriceRow { ttl_seconds, ..table.row("anthropic-5m").unwrap().clone() };
    let conversation = &conversations()[0];
    let policy = PolicyOptions::default().build(Some(32_000), "", true, false).unwrap();
    let expired = |ttl, pauses| played(conversation, &policy, 32_000, &row(ttl), pauses, true).totals.expired;
    assert_eq!(expired(5, Pauses::None), 0);
    assert_eq!(expired(100_000, Pauses::Recorded), 0);
    assert!(expired(5, Pauses::Recorded) > 20, "{}", expired(5, Pauses::Recorded));
}
