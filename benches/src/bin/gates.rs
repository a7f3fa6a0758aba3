//! Gates by counts: instructions, allocations, bytes. The same figures on a busy machine as on a quiet one.
//!
//! `benches/run --gates` runs it; it fails when a goal is not met. The numbers in front are those of the goals.

#![allow(clippy::unwrap_used, reason = "a bench has nobody to tell but its reader")]

use std::collections::BTreeSet;
use std::process::ExitCode;

use foreshorten_benches::{
    heap::{Counting, allocations_of},
    measured::{calls, gate_measured, instructions},
    sessions::{HEAD, ROUND, session, session_with_duplicates},
    table::{Row, Table, thousands},
};
use foreshorten_core::{
    CompactionState, Compactor, Effect, Policy, PolicyConfig, Step, Turn,
    state::Record,
    transcript::{Columns, Entry, OwnedTranscript, PartRef, Transcript, Until},
};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What runs under callgrind: the same acts over a short session and over a long one.
const UNDER_CALLGRIND: &str = "--under-callgrind";
/// Also under callgrind: a session of which every second result is one that was there before.
const DUPLICATES: &str = "--duplicates";
const SMALL: usize = 1_000;
const LARGE: usize = 100_000;
/// Entries that are new in a turn.
const NEW: usize = 20;
/// Bytes of a result: instructions do not depend on it but for the new ones, and valgrind is slow.
const RESULT: usize = 120;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some(UNDER_CALLGRIND) => {
            for entries in [SMALL, LARGE] {
                calm_turn(entries);
                one_and_ten(entries);
            }
            return ExitCode::SUCCESS;
        }
        Some(DUPLICATES) => {
            let (distinct, archived) = duplicates();
            println!("{distinct} {archived}");
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let mut table = Table::default();
    println!("{}", Table::HEAD);
    by_instructions(&mut table);
    passes(&mut table);
    state(&mut table);
    hashing(&mut table);
    ledger(&mut table);
    if table.failed().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A policy in whose window nothing is due.
fn calm() -> Policy {
    PolicyConfig { context_window: Some(20_000_000), ..PolicyConfig::default() }.build().unwrap()
}

fn settle(compactor: &mut Compactor<&Policy>, record: &dyn Transcript, turn: Turn<'_>) {
    compactor.sync(record);
    compactor.begin(record, turn);
    while let Step::Effect(effect) = compactor.poll(record) {
        assert!(matches!(effect, Effect::Archive { .. }), "no summarizer is at hand");
        compactor.handle_archived(true);
    }
}

/// A turn of 20 new entries, in three rounds of which the last is cut: weighed, hashed, paired, rendered.
fn calm_turn(entries: usize) {
    let policy = calm();
    let entries = (entries - HEAD) / ROUND * ROUND + HEAD;
    let whole = session(entries + NEW + ROUND, RESULT);
    let mut compactor = Compactor::new(&policy);
    compactor.reserve(whole.len());
    settle(&mut compactor, &Until { whole: &whole, len: entries }, Turn::default());
    let record = Until { whole: &whole, len: entries + NEW };
    gate_measured(&mut || settle(&mut compactor, &record, Turn::default()));
    assert_eq!(compactor.view().len(), entries + NEW);
}

/// A turn of one new entry, and one of ten, all alike.
fn one_and_ten(entries: usize) {
    let policy = calm();
    let whole = OwnedTranscript::from(vec![Entry::user("Something that is said again and again."); entries + 11]);
    let mut compactor = Compactor::new(&policy);
    compactor.reserve(whole.len());
    settle(&mut compactor, &Until { whole: &whole, len: entries }, Turn::default());
    for new in [1, 11] {
        let record = Until { whole: &whole, len: entries + new };
        gate_measured(&mut || settle(&mut compactor, &record, Turn::default()));
    }
    assert_eq!(compactor.view().len(), entries + 11);
}

fn by_instructions(table: &mut Table) {
    let goals = [
        ("1 calm turn of 20 new entries, 100,000 against 1,000", "≤ 1.2× instructions"),
        ("8 turn of 10 new entries against 1", "≤ 12× instructions"),
        ("8 the same, 100,000 entries against 1,000", "≤ 1.2× instructions"),
    ];
    let counts = instructions(UNDER_CALLGRIND);
    let [small, one, ten, large, one_large, ten_large] = match counts.as_deref() {
        Ok(&[a, b, c, d, e, f]) => [a, b, c, d, e, f],
        Ok(other) => panic!("six counts were to come, not {other:?}"),
        Err(why) => {
            for (goal, asked) in goals {
                table.row(&Row { pass: Some(false), ..Row::missing(goal, asked, why) });
            }
            return;
        }
    };
    let mut ratio = |(goal, asked): (&str, &str), a: u64, b: u64, most: f64| {
        let ratio = a as f64 / b as f64;
        let measured = format!("{ratio:.3}× ({} to {})", thousands(a), thousands(b));
        table.row(&Row::new(goal, measured, asked, ratio <= most));
    };
    ratio(goals[0], large, small, 1.2);
    ratio(goals[1], ten, one, 12.0);
    let worst =
        if one_large as f64 / one as f64 > ten_large as f64 / ten as f64 { (one_large, one) } else { (ten_large, ten) };
    ratio(goals[2], worst.0, worst.1, 1.2);
}

/// What one pass decided: entries, or notes.
fn decisions(before: &CompactionState, after: &CompactionState) -> usize {
    let fresh = |record: &&Record| before.records().binary_search(record).is_err();
    after.records().iter().filter(fresh).count()
        + after.notes().iter().filter(|note| !before.notes().contains(note)).count()
}

fn bytes_of(record: &dyn Transcript, entry: usize) -> u64 {
    let text = |part| if let PartRef::Text(text) = record.part(entry, part) { text.len() as u64 } else { 0 };
    (0..record.entry(entry).parts as usize).map(text).sum()
}

/// Bytes of the view that are lent from the record.
fn lent(compactor: &Compactor<&Policy>, record: &dyn Transcript) -> u64 {
    let of = |piece| match piece {
        foreshorten_core::view::Piece::Entry { entry } => bytes_of(record, entry),
        _ => 0,
    };
    compactor.view().pieces().map(of).sum()
}

/// Many turns in a window that is often full: what passes allocate and copy.
fn passes(table: &mut Table) {
    let policy = PolicyConfig { context_window: Some(200_000), ..PolicyConfig::default() }.build().unwrap();
    let whole = session(6_000, 2_500);
    let mut compactor = Compactor::new(&policy);
    compactor.reserve(whole.len());
    let (mut passes, mut calm_turns, mut in_calm_turns) = (0u64, 0u64, 0u64);
    // The pass that is furthest from what it may: allocations, and entries decided about.
    let mut worst = (0, u64::MAX / 4);
    let (mut made, mut viewed, mut most) = (0, 0, 0.0f64);
    let mut len = HEAD;
    while len < whole.len() {
        len += ROUND;
        let record = Until { whole: &whole, len };
        let count = allocations_of(|| settle(&mut compactor, &record, Turn::default()));
        let outcome = compactor.outcome();
        let text = compactor.view().copied_bytes() as u64;
        let bytes = text + lent(&compactor, &record);
        viewed += bytes;
        if let Some(notice) = outcome.notice.as_ref().filter(|_| outcome.compacted) {
            passes += 1;
            let decided = notice.decided;
            let decided = [decided.elided, decided.condensed, decided.offloaded, decided.cleared, decided.covered];
            let decided: u64 = decided.into_iter().map(u64::from).sum();
            if count as i64 - 2 * decided as i64 > worst.0 as i64 - 2 * worst.1 as i64 {
                worst = (count, decided);
            }
            // No more than all of it is made anew.
            made += text;
            most = most.max(text as f64 / bytes as f64);
        } else if outcome.budget.is_some_and(|budget| outcome.tokens_before < budget.trigger) {
            calm_turns += 1;
            in_calm_turns += count;
        }
    }
    let measured = format!("{in_calm_turns} in {calm_turns} turns between passes");
    table.row(&Row::new("3 allocations in calm turns", measured, "0", in_calm_turns == 0));
    let allowed = 4 + 2 * worst.1;
    let measured = format!("{} where {} entries were decided about, the worst of {passes} passes", worst.0, worst.1);
    table.row(&Row::new("3 allocations in a pass", measured, "≤ 4 + 2 × decisions", worst.0 <= allowed));
    let share = made as f64 / viewed as f64;
    let measured =
        format!("{:.2} % over {} turns with {passes} passes; nothing while calm", share * 100.0, calm_turns + passes);
    table.row(&Row::new("4 bytes copied to build views, of their bytes", measured, "≤ 1 %", share <= 0.01));
    let what = "4 text that stands in no record (markers, previews), in the view that has most of it";
    table.row(&Row::told(what, format!("{:.1} %", most * 100.0)));
}

/// The state against its own JSON, and how it grows.
fn state(table: &mut Table) {
    let policy = PolicyConfig { context_window: Some(200_000), ..PolicyConfig::default() }.build().unwrap();
    let whole = session(6_000, 2_500);
    let mut compactor = Compactor::new(&policy);
    let (mut grew, mut decided, mut turns, mut in_calm) = (0i64, 0usize, 0i64, 0i64);
    let mut worst = 0.0f64;
    let mut len = HEAD;
    while len < whole.len() {
        len += ROUND;
        let before = compactor.state().clone();
        settle(&mut compactor, &Until { whole: &whole, len }, Turn::default());
        let state = compactor.state();
        let bytes = state.encode().len();
        let by = bytes as i64 - before.encode().len() as i64;
        if !compactor.outcome().compacted {
            turns += 1;
            in_calm += by;
            continue;
        }
        let new = decisions(&before, state);
        // A note drops what stands under it: only passes that add are asked what a decision costs.
        if by > 0 {
            grew += by;
            decided += new;
        }
        let json = serde_json::to_vec(state).unwrap().len();
        worst = worst.max(bytes as f64 / json as f64);
    }
    table.row(&Row::new("9 state, of its own JSON", format!("{worst:.2}× at most"), "≤ 0.5×", worst <= 0.5));
    let a_turn = in_calm as f64 / turns as f64;
    let a_decision = grew as f64 / decided as f64;
    let measured = format!("{a_decision:.1} bytes a decision, {a_turn:.2} a calm turn");
    // A turn moves counters and anchors; it adds a fingerprint when the record doubles.
    let pass = a_decision <= 64.0 && a_turn <= 1.0;
    table.row(&Row::new("9 growth of the state", measured, "with decisions only: ≤ 64 and ≤ 1", pass));
}

/// Plays a session of duplicates; answers how many different contents were decided about, and how many the host was asked to
/// keep under a digest it did not have.
fn duplicates() -> (usize, usize) {
    let config = PolicyConfig { context_window: Some(60_000), archive: true, ..PolicyConfig::default() };
    let policy = config.build().unwrap();
    let whole = session_with_duplicates(400, 6_000);
    let mut compactor = Compactor::new(&policy);
    let (mut seen, mut stored) = (BTreeSet::new(), BTreeSet::new());
    for len in 1..=whole.len() {
        let record = Until { whole: &whole, len };
        gate_measured(&mut || {
            compactor.sync(&record);
            compactor.begin(&record, Turn::default());
            while let Step::Effect(effect) = compactor.poll(&record) {
                let Effect::Archive { digest, .. } = effect else { panic!("no summarizer is at hand") };
                stored.insert(digest);
                compactor.handle_archived(true);
            }
        });
        if compactor.outcome().compacted {
            seen.extend(compactor.state().records().iter().filter_map(|record| record.action.digest()));
        }
    }
    (seen.len(), stored.len())
}

fn hashing(table: &mut Table) {
    let (what, asked) = ("12 contents hashed, half of all results duplicates", "one for each that is distinct");
    match calls(DUPLICATES, "foreshorten_core::digest::Digest::of_entry") {
        Ok((hashed, said)) => {
            let numbers: Vec<u64> = said.split_whitespace().map(|word| word.parse().unwrap()).collect();
            let &[distinct, stored] = numbers.as_slice() else { panic!("two numbers were to come, not {said}") };
            let measured = format!("{hashed} for {distinct} distinct contents");
            table.row(&Row::new(what, measured, asked, hashed == distinct && distinct > 100));
            let measured = format!("{stored} for {distinct}");
            table.row(&Row::new("12 contents a store is given to write", measured, asked, stored == distinct));
        }
        Err(why) => table.row(&Row { pass: Some(false), ..Row::missing(what, asked, why) }),
    }
}

fn ledger(table: &mut Table) {
    let bytes = Columns::bytes_per_entry();
    table.row(&Row::new("5 ledger, by length", format!("{bytes} bytes an entry"), "≤ 48", bytes <= 48));
}
