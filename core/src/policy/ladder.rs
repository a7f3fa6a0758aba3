//! The ladder of last resorts (I8): it makes any view fit that can fit.
//!
//! Rungs, cheapest first: the results that the stages spared before the tail; a model-free note over the
//! oldest unprotected groups; notes made anew where they keep what is not pinned any more; the tail shrunk group by
//! group; the results of the newest group cut; notes shortened; one note in place of all. Every step makes the view
//! smaller or is not taken, and there are finitely many groups, results and notes, so the climb ends. What is left
//! when it does not fit even then is the floor: instructions, schemas, pins, the newest group with its results as
//! markers, and one note in its shortest form.

use alloc::vec::Vec;

use super::desk::PassDesk;
use crate::{
    notice::CannotFit,
    plan::{Desk, Proposal},
    state::{Guard, Ledger, NoteKind},
    transcript::{Columns, EntryKind},
};

/// A rung that did something: its reason code, raw tokens freed, and whether it reached into the tail.
pub(super) type Rung = (&'static str, u64, bool);

/// Climbs until the view is within `limit`. Notes are laid from `enough` on, and down to `target`, so that the next
/// turn does not need another.
pub(super) fn climb(desk: &mut PassDesk<'_>, target: u64, enough: u64, limit: u64) -> Vec<Rung> {
    let mut rungs = Vec::new();
    let mut rung = |desk: &mut PassDesk<'_>, name, last_resort, step: &mut dyn FnMut(&mut PassDesk<'_>)| {
        if desk.view_tokens() > if last_resort { limit } else { enough } {
            let before = desk.ledger.view_raw();
            step(desk);
            let freed = before.saturating_sub(desk.ledger.view_raw());
            if freed > 0 {
                rungs.push((name, freed, last_resort));
            }
        }
    };
    rung(desk, "spared_results", false, &mut |desk| reduce_spared(desk, target));
    rung(desk, "middle_snip", false, &mut |desk| snip_down(desk, target, enough));
    rung(desk, "released_pins", false, &mut |desk| release_kept(desk, enough));
    rung(desk, "last_resort_tail", true, &mut |desk| shrink_tail(desk, limit));
    rung(desk, "last_resort_newest", true, &mut |desk| cut_newest(desk, limit));
    rung(desk, "last_resort_notes", true, &mut |desk| shorten_notes(desk, limit));
    rung(desk, "last_resort_one_note", true, &mut merge_notes);
    rungs
}

/// The first group that is not part of the fixed head.
pub(super) fn body_start(columns: &Columns) -> usize {
    let mut group = 0;
    while group < columns.groups() && columns.kind(columns.group_start(group)) == EntryKind::System {
        group += 1;
    }
    group
}

/// Reduces the results before the tail that the stages spared for being new or short: a preview of the large
/// ones, then markers, oldest first. Less is lost than by a note over the whole stretch.
fn reduce_spared(desk: &mut PassDesk<'_>, goal: u64) {
    let columns = desk.guard.columns;
    let mut results = Vec::new();
    let mut group = desk.next_open_group(body_start(columns));
    while group < desk.guard.tail_start {
        results.extend(columns.members(group).filter(|&entry| columns.kind(entry) == EntryKind::ToolResult));
        group = desk.next_open_group(group + 1);
    }
    for &entry in results.iter().filter(|&&entry| columns.weight(entry) >= LARGE) {
        if desk.view_tokens() <= goal {
            return;
        }
        let _ = desk.propose(Proposal::Offload { entry, head: PREVIEW, tail: 0 });
    }
    for entry in results {
        if desk.view_tokens() <= goal {
            return;
        }
        let _ = desk.propose(Proposal::Clear { entry });
    }
}

/// Raw tokens from which a spared result is worth a preview, and bytes of that preview.
const LARGE: u32 = 500;
const PREVIEW: u32 = 400;

/// Covers more and more until the view holds `enough`: what a note frees is an estimate, and calibrated totals shrink
/// by less than the ratio says once they are below what the provider counted.
pub(super) fn snip_down(desk: &mut PassDesk<'_>, goal: u64, enough: u64) {
    let mut before = u64::MAX;
    while desk.view_tokens() > enough && desk.ledger.view_raw() < before {
        before = desk.ledger.view_raw();
        snip(desk, goal);
    }
}

/// Covers the oldest open groups before the tail by a note, as far as `goal` needs.
fn snip(desk: &mut PassDesk<'_>, goal: u64) {
    let columns = desk.guard.columns;
    let (body, tail) = (body_start(columns), desk.guard.tail_start);
    let mut group = desk.next_open_group(body);
    if group >= tail {
        return;
    }
    // A snip that ends where the open stretch begins is extended; a summary stays as it is, byte for byte.
    let start = columns.group_start(group);
    // One that another overlaps, as after a join of two states, cannot be extended alone.
    let notes = desk.ledger.state().notes();
    let joins = notes
        .iter()
        .find(|note| note.to as usize == start && note.kind == NoteKind::Snip && !note.shortest)
        .filter(|note| notes.iter().all(|other| other.to <= note.from || note.contains(other)));
    let from = joins.map_or(group, |note| columns.group(note.from as usize));
    // The note itself costs something: a hundred tokens cover the longest one.
    let needed = desk.ledger.state().calibration().raw_for(desk.view_tokens().saturating_sub(goal)) + 100;
    let mut covered = 0u64;
    let mut end = group;
    while group < tail && covered < needed {
        let pinned = columns.members(group).any(|entry| desk.ledger.is_pinned(columns, entry));
        if !pinned {
            covered += desk.ledger.group_weight(&desk.guard, group);
        }
        end = group + 1;
        group = desk.next_open_group(group + 1);
    }
    if desk.propose(Proposal::Snip { from, to: end }).is_err() && end < tail {
        let _ = desk.propose(Proposal::Snip { from, to: tail });
    }
}

/// Lets the oldest group out of the tail: its results give way to markers, then a note covers it. A twentieth below
/// `limit` is aimed at: just within it, every turn would need a pass of its own.
fn shrink_tail(desk: &mut PassDesk<'_>, limit: u64) {
    let columns = desk.guard.columns;
    let limit = limit - limit / 20;
    while desk.view_tokens() > limit && desk.guard.tail_start + 1 < columns.groups() {
        let group = desk.guard.tail_start;
        desk.guard.tail_start += 1;
        clear_results(desk, group, limit);
        snip_down(desk, limit, limit);
    }
}

/// Clears the results of a group, largest first, until the view is within `limit`.
fn clear_results(desk: &mut PassDesk<'_>, group: usize, limit: u64) {
    desk.guard.last_resort = true;
    for (_, entry) in results_by_weight(desk, group) {
        if desk.view_tokens() <= limit {
            break;
        }
        let _ = desk.propose(Proposal::Clear { entry });
    }
    desk.guard.last_resort = false;
}

fn results_by_weight(desk: &PassDesk<'_>, group: usize) -> Vec<(u64, usize)> {
    let columns = desk.guard.columns;
    let mut results: Vec<(u64, usize)> = columns
        .members(group)
        .filter(|&entry| columns.kind(entry) == EntryKind::ToolResult && desk.is_shown(entry))
        .map(|entry| (desk.view_weight(entry), entry))
        .collect();
    results.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    results
}

/// Cuts the results of the newest group to one common length, beginning and end kept, so that the view is a twentieth
/// below `limit`: right after such a cut an estimate is some per cent off, and of the views just within it endpoints
/// turn some down (10 in 250 calls at a window of 6,000 tokens). Where that leaves next to nothing, markers take their
/// place.
fn cut_newest(desk: &mut PassDesk<'_>, limit: u64) {
    let Some(newest) = desk.guard.columns.groups().checked_sub(1) else { return };
    desk.guard.last_resort = true;
    let results = results_by_weight(desk, newest);
    let aim = limit - limit / 20;
    let needed = desk.ledger.state().calibration().raw_for(desk.view_tokens().saturating_sub(aim)) + 1;
    let cut = |entry: usize, keep: u32| Proposal::Offload { entry, head: keep / 4 * 3, tail: keep / 4 };
    let saved = |desk: &PassDesk<'_>, keep: u32| -> u64 {
        results.iter().filter_map(|&(_, entry)| desk.saving(&cut(entry, keep)).ok()).sum()
    };
    const LEAST: u32 = 128;
    if saved(desk, LEAST) >= needed {
        // The largest common length that still frees enough. Lengths are bounded by what the results hold.
        let (mut good, mut bad) = (LEAST, 1 << 24);
        while good + good / 16 + 1 < bad {
            let middle = good + (bad - good) / 2;
            if saved(desk, middle) >= needed { good = middle } else { bad = middle }
        }
        for &(_, entry) in &results {
            let _ = desk.propose(cut(entry, good));
        }
    }
    for &(_, entry) in &results {
        if desk.view_tokens() <= limit {
            break;
        }
        let _ = desk.propose(Proposal::Clear { entry });
    }
    desk.guard.last_resort = false;
}

/// Shortens notes, the costliest first: summaries are cut, then reduced to the shortest note there is.
fn shorten_notes(desk: &mut PassDesk<'_>, limit: u64) {
    let mut order: Vec<usize> = (0..desk.ledger.state().notes().len()).collect();
    order.sort_by_key(|&at| (core::cmp::Reverse(desk.ledger.note_cost(at)), at));
    for at in order {
        let over = desk.view_tokens().saturating_sub(limit);
        if over == 0 {
            break;
        }
        let excess = desk.ledger.state().calibration().raw_for(over) + 1;
        let length = desk.ledger.state().notes()[at].summary.text.len();
        let cost = desk.ledger.note_cost(at).max(1);
        // Bytes per token of this very text, and a twentieth more.
        let cut = (excess as u128 * length as u128 / u128::from(cost)) as usize;
        let keep = length.saturating_sub(cut + cut / 20 + 16);
        let mut freed = 0;
        if keep >= 200 {
            freed += desk.ledger.shorten_note(&desk.guard, at, keep);
        }
        if desk.view_tokens() > limit {
            freed += desk.ledger.shorten_note(&desk.guard, at, 0);
        }
        desk.tally.decided.shortened += u32::from(freed > 0);
    }
}

/// Makes notes anew beside which something stands that was pinned when they were made and is not any more.
fn release_kept(desk: &mut PassDesk<'_>, enough: u64) {
    for at in 0..desk.ledger.state().notes().len() {
        if desk.view_tokens() <= enough {
            break;
        }
        let covered = desk.ledger.release_kept(&desk.guard, at);
        desk.tally.decided.covered = desk.tally.decided.covered.saturating_add(covered);
    }
}

/// Puts one note in its shortest form in place of all, for passes at the floor would otherwise leave one each.
fn merge_notes(desk: &mut PassDesk<'_>) {
    let (from, to) = (body_start(desk.guard.columns), desk.guard.tail_start);
    let covered = desk.ledger.lay_shortest(&desk.guard, from, to).unwrap_or_default();
    desk.tally.decided.covered = desk.tally.decided.covered.saturating_add(covered);
}

/// What the floor consists of, when a view does not fit.
pub(super) fn account(ledger: &Ledger, guard: &Guard<'_>, schema_tokens: u64, over: u64) -> CannotFit {
    let columns = guard.columns;
    let scale = |raw: u64| ledger.state().calibration().ratio().scale(raw);
    let mut out =
        CannotFit { over, tools: schema_tokens, system: scale(columns.system_weight()), ..CannotFit::default() };
    let newest = columns.groups().saturating_sub(1);
    let pinned = |entry: usize| {
        columns.kind(entry) != EntryKind::System && ledger.is_pinned(columns, entry) && columns.group(entry) != newest
    };
    let user = columns.newest_user() as usize;
    let pins = ledger.state().pins.iter().map(|pin| pin.index as usize).filter(|&pin| pin != user);
    let pins: u64 = pins
        .chain((user < columns.len()).then_some(user))
        .filter(|&e| pinned(e))
        .map(|e| ledger.view_weight(columns, e))
        .sum();
    out.pinned = scale(pins);
    if columns.groups() > 0 {
        out.newest = scale(ledger.group_weight(guard, newest));
    }
    out.notes = scale((0..ledger.state().notes().len()).map(|at| ledger.note_cost(at)).sum());
    out
}
