//! One session through a real compactor, call by call.

use foreshorten_core::config::PipelineStage;
use foreshorten_core::estimate::{ByteEstimator, Weigher};
use foreshorten_core::plan::Proposal;
use foreshorten_core::state::CompactionState;
use foreshorten_core::transcript::{Entry, OwnedTranscript};
use foreshorten_core::{Compactor, Effect, Policy, PolicyConfig, Step, Turn};

use crate::figures::Errors;
use crate::sessions::{Event, Session};

/// What a session came to.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Every call but the first of a session.
    pub(crate) all: Errors,
    /// Those of which a twentieth of the prompt or more is new.
    pub(crate) new: Errors,
    /// The first calls after compactions that the file describes.
    pub(crate) passes: Vec<(u64, u64, u64)>,
    /// Views cut by us, with what was measured, and with the ratio alone.
    pub(crate) cut: Errors,
    pub(crate) cut_by_ratio: Errors,
}

/// Tokens that are left standing where a view is cut by us.
const TAIL: u64 = 12_000;
/// Every so many calls a view is cut.
const CUT_EVERY: usize = 5;

const WINDOW: u64 = 20_000_000;

/// A policy that does nothing by itself, and cuts where it is told to.
pub(crate) fn policy(bytes: ByteEstimator) -> Policy {
    let config = PolicyConfig {
        keep_recent_tokens: Some(1),
        stages: vec![PipelineStage::External("cut".into())],
        weigher: Weigher { bytes, ..Weigher::default() },
        ..PolicyConfig::default()
    };
    config.build().unwrap_or_default()
}

/// A call that was counted.
struct Counted {
    entries: usize,
    tokens: u64,
}

pub(crate) fn play(session: &Session, bytes: ByteEstimator) -> Found {
    let policy = policy(bytes);
    let mut found = Found::default();
    let mut record = OwnedTranscript::default();
    let mut compactor = Compactor::new(&policy);
    // What the request carries beside the record (instructions, tool schemas) is in no file: it is what the first count holds
    // above the estimate.
    let mut floor = 0;
    let mut calls: Vec<Counted> = Vec::new();
    let mut compacted: Option<(&str, usize)> = None;
    // The recorded summary is not in our view, where a note without a model stands: by how much it weighs more.
    let mut summary_before = 0;
    for event in &session.events {
        match event {
            Event::Entry(entry) => record.push(entry.clone()),
            Event::Restart => {
                record = OwnedTranscript::default();
                compactor = Compactor::new(&policy);
                calls.clear();
                compacted = None;
            }
            Event::Compacted { summary, kept_from } => compacted = Some((summary, *kept_from)),
            // Aborted before anything was counted.
            Event::Call(0) => {}
            Event::Call(tokens) => {
                compactor.sync(&record);
                if calls.is_empty() {
                    floor = tokens.saturating_sub(compactor.ledger().view_raw());
                }
                let turn = Turn { schema_tokens: floor, ..Turn::default() };
                if let Some((summary, kept_from)) = compacted.take() {
                    let mut by_ratio = resumed(&policy, &compactor, false);
                    let mut shown = |compactor: &mut Compactor<_>| {
                        compactor.sync(&record);
                        let (view, note) = cut(compactor, &record, turn, kept_from)?;
                        let written = weigh(compactor, &Entry::user(summary));
                        let estimate = (view + written).saturating_sub(note + summary_before);
                        Some((estimate, written.saturating_sub(note)))
                    };
                    let ratio_alone = by_ratio.as_mut().and_then(&mut shown).map_or(0, |(estimate, _)| estimate);
                    let estimate = shown(&mut compactor);
                    summary_before = estimate.map_or(0, |(_, more)| more);
                    let estimate = estimate.map(|(estimate, _)| estimate);
                    found.passes.extend(estimate.map(|estimate| (estimate, ratio_alone, *tokens)));
                    calls.clear();
                } else {
                    settle(&mut compactor, &record, turn);
                    let estimate = compactor.tokens();
                    if let Some(last) = calls.last() {
                        found.all.note(estimate, *tokens);
                        if estimate.saturating_sub(last.tokens) * 20 >= *tokens {
                            found.new.note(estimate, *tokens);
                        }
                    }
                }
                // A refused count teaches nothing, and that is the product's own answer to it.
                let _ = compactor.handle_usage(*tokens);
                calls.push(Counted { entries: record.entries().len(), tokens: *tokens });
                if calls.len().is_multiple_of(CUT_EVERY) {
                    try_cut(&policy, &compactor, &record, turn, &calls, &mut found);
                }
            }
        }
    }
    found
}

/// Cuts the view as it was just counted down to the head of the first call and a tail, on a copy. The truth is the first
/// count and the difference of two others.
fn try_cut(
    policy: &Policy,
    compactor: &Compactor<&Policy>,
    record: &OwnedTranscript,
    turn: Turn<'_>,
    calls: &[Counted],
    found: &mut Found,
) {
    let (Some(first), Some(last)) = (calls.first(), calls.last()) else { return };
    let Some(from) = calls.iter().rposition(|call| call.tokens + TAIL <= last.tokens) else { return };
    // Where counts shrink, something else than the record changed.
    let grows = calls.windows(2).all(|pair| pair[0].tokens <= pair[1].tokens);
    if from == 0 || !grows {
        return;
    }
    let truth = first.tokens + last.tokens - calls[from].tokens;
    let mut longer = record.clone();
    longer.push(Entry::user("."));
    let last_word = weigh(compactor, &Entry::user("."));
    for measured in [true, false] {
        let Some(mut copy) = resumed(policy, compactor, measured) else { return };
        copy.sync(&longer);
        let range = (first.entries, calls[from].entries);
        let Some((view, note)) = cut_between(&mut copy, &longer, turn, range) else { return };
        let estimate = (view - note).saturating_sub(last_word);
        if measured { found.cut.note(estimate, truth) } else { found.cut_by_ratio.note(estimate, truth) }
    }
}

/// A copy by way of the stored state, with or without what was measured.
fn resumed<'p>(policy: &'p Policy, compactor: &Compactor<&'p Policy>, measured: bool) -> Option<Compactor<&'p Policy>> {
    let mut state = CompactionState::decode(&compactor.state().encode()).ok()?;
    if !measured {
        let mut json = serde_json::to_value(&state).ok()?;
        json.as_object_mut()?.remove("measured");
        state = serde_json::from_value(json).ok()?;
    }
    Some(Compactor::resume(policy, state))
}

/// Tokens of an entry as they would be thought of now.
fn weigh(compactor: &Compactor<&Policy>, entry: &Entry) -> u64 {
    let raw = compactor.policy().config().weigher.entry(&OwnedTranscript::from(vec![entry.clone()]), 0);
    compactor.state().calibration().ratio().scale(raw.into())
}

fn settle(compactor: &mut Compactor<&Policy>, record: &OwnedTranscript, turn: Turn<'_>) {
    compactor.begin(record, turn);
    while !matches!(compactor.poll(record), Step::Done(_)) {}
}

/// Covers all before an entry by a note. Answers the tokens of the view, and of the note in it.
fn cut(compactor: &mut Compactor<&Policy>, record: &OwnedTranscript, turn: Turn<'_>, to: usize) -> Option<(u64, u64)> {
    cut_between(compactor, record, turn, (0, to))
}

fn cut_between(
    compactor: &mut Compactor<&Policy>,
    record: &OwnedTranscript,
    turn: Turn<'_>,
    (from, to): (usize, usize),
) -> Option<(u64, u64)> {
    let columns = compactor.columns();
    let proposal = Proposal::Snip { from: columns.group(from), to: columns.group(to) };
    compactor.begin(record, Turn { manual: true, window: Some(WINDOW), ..turn });
    loop {
        match compactor.poll(record) {
            Step::Effect(Effect::RunStage { .. }) => compactor.handle_proposals(record, vec![proposal.clone()]),
            Step::Effect(_) => {}
            Step::Done(outcome) => {
                if !outcome.compacted {
                    return None;
                }
                break;
            }
        }
    }
    let raw: u64 = (0..compactor.state().notes().len()).map(|at| compactor.ledger().note_cost(at)).sum();
    Some((compactor.tokens(), compactor.state().calibration().ratio().scale(raw)))
}
