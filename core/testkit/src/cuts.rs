//! Groups, pairs and the tail, against a naive account of the same record.

use foreshorten_core::{
    budget::tail_start,
    transcript::{Columns, Entry, EntryKind, NONE, OwnedTranscript, Transcript as _},
};

use crate::{Script, entries};

/// Entries of one record at most: the naive account is quadratic.
const MAX_ENTRIES: usize = 160;

/// The core looks at no more calls of one id than this; beyond it the account here does not hold.
const SAME_ID: usize = 64;

/// A record of sensible and senseless entries; every fact the core keeps about it is compared with a naive account, and
/// every cut falls between groups.
///
/// # Panics
/// When I5 or I6 does not hold.
pub fn cuts(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let mut all = Vec::new();
    let mut turn = 0;
    while !script.is_done() && all.len() < MAX_ENTRIES {
        if script.one_in(2) {
            entries(&mut script, turn, &mut all);
        } else {
            all.push(senseless(&mut script));
        }
        turn += 1;
    }
    all.truncate(MAX_ENTRIES);
    let record = OwnedTranscript::from(all);
    let weights: Vec<u32> = (0..record.len()).map(|_| weight(&mut script)).collect();
    let mut columns = Columns::new();
    for (index, &weight) in weights.iter().enumerate() {
        columns.push(&record, weight);
        assert_eq!(columns.len(), index + 1);
    }
    pairs(&record, &columns);
    groups(&columns);
    sums(&columns, &weights);
    for budget in [0, 1, 500, 100_000, u64::MAX, u64::from(script.byte()) * 97] {
        tail(&columns, budget);
    }
}

fn senseless(script: &mut Script<'_>) -> Entry {
    let kind = EntryKind::ALL[script.below(6)];
    let mut entry = Entry::text(kind, if script.one_in(4) { String::new() } else { format!("{}", script.byte()) });
    // Ids on entries of kinds that have none are not looked at.
    entry.call_id = ["a", "b", "", "call_0"][script.below(4)].into();
    entry.sealed = script.one_in(6);
    entry.is_error = script.one_in(6);
    if script.one_in(9) {
        entry.parts.clear();
    }
    entry
}

fn weight(script: &mut Script<'_>) -> u32 {
    match script.byte() {
        255 => u32::MAX,
        byte => u32::from(byte) * 13,
    }
}

/// A result answers the newest group that still waits under its id, in it the first call.
fn pairs(record: &OwnedTranscript, columns: &Columns) {
    let mut waiting: Vec<usize> = Vec::new();
    for index in 0..record.len() {
        let entry = record.entry(index);
        match entry.kind {
            EntryKind::ToolCall => waiting.push(index),
            EntryKind::ToolResult => {
                let same: Vec<usize> =
                    waiting.iter().copied().filter(|&call| record.entry(call).call_id == entry.call_id).collect();
                if same.len() > SAME_ID {
                    return;
                }
                let newest = same.iter().map(|&call| columns.group(call)).max();
                let call = same.into_iter().find(|&call| Some(columns.group(call)) == newest);
                let expected = call.map_or(NONE, |call| call as u32);
                assert_eq!(columns.pair(index), expected, "I5: result {index} answers another call");
                if let Some(call) = call {
                    waiting.retain(|&other| other != call);
                    assert_eq!(columns.pair(call) as usize, index, "I5: call {call} does not know its result");
                    assert_eq!(columns.group(call), columns.group(index), "I5: a pair in two groups");
                    assert!(call < index, "I5: a result before its call");
                }
                assert_eq!(columns.is_orphan(index), call.is_none());
                assert_eq!(columns.orphans().contains(&(index as u32)), call.is_none());
            }
            _ => assert_eq!(columns.pair(index), NONE),
        }
        assert_eq!((columns.kind(index), columns.is_sealed(index)), (entry.kind, entry.sealed));
    }
    for call in waiting {
        assert_eq!(columns.pair(call), NONE, "I5: call {call} has a result nobody gave");
        let newest = columns.group(call) + 1 == columns.groups();
        assert_eq!(columns.is_pending(call), newest, "a call is pending in the newest group only");
    }
    let newest = (0..record.len()).rev().find(|&e| columns.kind(e) == EntryKind::User && columns.has_text(e));
    assert_eq!(columns.newest_user(), newest.map_or(NONE, |entry| entry as u32), "the newest user text");
}

/// Groups are a partition; an assistant message stands together, with its results after it.
fn groups(columns: &Columns) {
    let mut seen = vec![0u32; columns.len()];
    for group in 0..columns.groups() {
        let start = columns.group_start(group);
        assert_eq!(columns.group(start), group, "a group starts with itself");
        assert!(start < columns.group_start(group + 1), "groups start one after the other");
        let members: Vec<usize> = columns.members(group).collect();
        assert_eq!(members.first(), Some(&start));
        assert!(members.is_sorted(), "members stand in order");
        let mut results = false;
        for &member in &members {
            seen[member] += 1;
            assert_eq!(columns.group(member), group, "a member of two groups");
            if members.len() > 1 {
                let kind = columns.kind(member);
                assert!(kind.is_assistant_side() || kind == EntryKind::ToolResult, "{kind:?} shares a group");
                assert!(!(results && kind.is_assistant_side()), "I5: a message goes on after its results");
                results |= kind == EntryKind::ToolResult;
            }
        }
    }
    assert_eq!(columns.group_start(columns.groups()), columns.len());
    assert!(seen.iter().all(|&count| count == 1), "groups are no partition: {seen:?}");
    for &(group, entry) in columns.late_results() {
        assert!((entry as usize) >= columns.group_start(group as usize + 1), "a result that is not late");
    }
}

fn sums(columns: &Columns, weights: &[u32]) {
    let sum = |from: usize, to: usize| weights[from..to].iter().map(|&weight| u64::from(weight)).sum::<u64>();
    for from in 0..=weights.len() {
        for to in [from, weights.len(), from.midpoint(weights.len())] {
            assert_eq!(columns.range_weight(from, to), sum(from, to));
        }
    }
    assert_eq!(columns.total_weight(), sum(0, weights.len()));
}

/// The tail holds the newest group, then as many as fit, and no more budget makes it smaller.
fn tail(columns: &Columns, budget: u64) {
    let weight = |group: usize| columns.members(group).map(|entry| u64::from(columns.weight(entry))).sum::<u64>();
    let start = tail_start(columns, budget, weight);
    if columns.groups() == 0 {
        assert_eq!(start, 0);
        return;
    }
    assert!(start < columns.groups(), "I6: the newest group is always in the tail");
    let held: u64 = (start..columns.groups()).map(weight).sum();
    assert!(held <= budget || start + 1 == columns.groups(), "I6: the tail holds more than it may");
    assert!(start == 0 || held + weight(start - 1) > budget, "I6: one more group fits the tail");
    assert!(tail_start(columns, budget.saturating_add(1_000), weight) <= start, "more room, less tail");
}
