//! What a policy would have done to a recorded session, turn by turn.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use foreshorten_core::{
    Compactor, Policy, Turn,
    budget::Mode,
    plan::Level,
    transcript::{Columns, EntryKind, EntryRef, PartRef, Transcript},
    view::Piece,
};

use crate::{
    drive::{Helpers, Summaries, settle_counted},
    economics::{BASELINE_NAMES, Baselines, EntryFact, FactKind, PriceRow, Request, Segment, Simulator, break_even},
    formats::Conversation,
    plugin::Stages,
    report::{BaselineRow, Decided, LevelColumn, LevelRun, PassRow, ReplayReport, TurnRow},
};

/// What to replay with.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// The policy in words.
    pub description: &'a str,
    /// Context window in tokens.
    pub window: u64,
    /// Who writes summaries.
    pub summarizer: &'a Summaries,
    /// Stages of others that the policy names.
    pub plugins: &'a Stages,
    /// Prices.
    pub price: &'a PriceRow,
}

/// The first entries of a record: what existed when a call was made.
#[derive(Clone, Copy, Debug)]
struct Until<'a, T> {
    whole: &'a T,
    len: usize,
}

impl<T: Transcript> Transcript for Until<'_, T> {
    fn len(&self) -> usize {
        self.len
    }
    fn entry(&self, index: usize) -> EntryRef<'_> {
        self.whole.entry(index)
    }
    fn part(&self, index: usize, part: usize) -> PartRef<'_> {
        self.whole.part(index, part)
    }
}

/// Plays one conversation; `progress` is told of every turn.
pub fn replay(conversation: &Conversation, setting: Setting<'_>, progress: &mut dyn FnMut(usize)) -> ReplayReport {
    let whole = &conversation.transcript;
    let budget = setting.policy.budget(setting.window, Mode::Proactive);
    let weigher = &setting.policy.config().weigher;
    let schema_tokens: u64 = conversation.tools.iter().map(|tool| u64::from(weigher.framed(tool))).sum();
    let schema_bytes: u64 = conversation.tools.iter().map(|tool| tool.len() as u64).sum();

    let mut compactor = Compactor::new(setting.policy);
    let mut simulator = Simulator::new(setting.price);
    let mut baselines = Baselines::new(setting.price, setting.window, budget.usable);
    let mut report = ReplayReport {
        session: conversation.name.clone(),
        format: conversation.format.to_string(),
        format_reason: conversation.reason.clone(),
        policy: setting.description.to_owned(),
        window: setting.window,
        usable: budget.usable,
        trigger: budget.trigger,
        target: budget.target,
        price: setting.price.into(),
        baselines: BASELINE_NAMES
            .iter()
            .map(|name| BaselineRow { name: (*name).to_owned(), ..BaselineRow::default() })
            .collect(),
        ..ReplayReport::default()
    };
    let schemas = Segment { hash: u64::MAX, bytes: schema_bytes, tokens: schema_tokens };
    let head = usize::from(schema_tokens > 0);
    // Bytes of the view up to every piece, to tell how much of it stayed.
    let mut lengths: Vec<u64> = Vec::new();
    let mut known = 0;
    let (mut over, mut repaired) = (0u64, (0usize, 0usize));
    for (turn, &len) in conversation.calls.iter().enumerate() {
        let record = Until { whole, len };
        compactor.sync(&record);
        compactor.begin(
            &record,
            Turn {
                scope: "replay",
                schema_tokens,
                window: Some(setting.window),
                can_summarize: setting.summarizer.any(),
                ..Turn::default()
            },
        );
        let helpers = Helpers { summarizer: setting.summarizer, store: None, plugins: setting.plugins };
        if let Err(failed) = settle_counted(&mut compactor, &record, helpers, &mut report.plugins) {
            report.notes.push(format!("turn {}: {failed}; the call would not have been made", turn + 1));
        }
        let outcome = compactor.outcome();
        let view = compactor.view();
        let columns = compactor.columns();
        over += u64::from(outcome.cannot_fit.is_some());
        repaired = (view.orphans(), view.stand_ins());

        // The part of the view that is as it was.
        let before: u64 = lengths.iter().sum();
        let common = outcome.first_changed.unwrap_or(lengths.len()).min(lengths.len());
        lengths.truncate(common);
        let mut segments: Vec<Segment> = Vec::new();
        if turn == 0 && head > 0 {
            segments.push(schemas);
        }
        for at in common..view.len() {
            let Some(piece) = view.get(at) else { break };
            let segment = segment(whole, columns, &compactor, piece);
            lengths.push(segment.bytes);
            segments.push(segment);
        }
        let first = if turn == 0 { 0 } else { common + head };
        let marks = [view.head(columns) + head, view.settled() + head];
        let output = answer_tokens(conversation, setting.policy, turn);
        let bill = simulator.feed(&Request {
            common: first,
            segments: &segments,
            marks: &marks,
            output_tokens: output,
            idle_seconds: None,
        });
        report.totals.add(&bill, setting.window);
        report.turns.push(TurnRow {
            turn: turn as u64 + 1,
            entries: len as u64,
            tokens: outcome.tokens_after,
            bytes: bill.bytes,
            prefix_kept_bytes: bill.prefix_bytes,
            cached: bill.cached,
            written: bill.written,
            uncached: bill.uncached,
            cost: bill.cost,
        });
        if outcome.compacted
            && let Some(notice) = &outcome.notice
        {
            let kept: u64 = lengths[..common].iter().sum();
            let kept_tokens = notice.tokens_before * kept / before.max(1);
            report.passes.push(PassRow {
                turn: turn as u64 + 1,
                reasons: notice.reasons.clone(),
                aggressive: notice.aggressive,
                tokens_before: notice.tokens_before,
                tokens_after: notice.tokens_after,
                decided: Decided {
                    elided: notice.decided.elided.into(),
                    condensed: notice.decided.condensed.into(),
                    preview: notice.decided.offloaded.into(),
                    cleared: notice.decided.cleared.into(),
                    covered: notice.decided.covered.into(),
                },
                first_changed: Some(notice.first_changed as u64),
                verbatim_tokens: notice.verbatim_tokens,
                verbatim_percent: notice.verbatim_percent,
                bytes_before: before,
                prefix_kept_bytes: kept,
                ladder: notice.last_resort,
                break_even: Some(break_even(
                    setting.price,
                    notice.tokens_before,
                    kept_tokens,
                    notice.tokens_before - notice.tokens_after,
                )),
                detail: notice.detail.clone(),
            });
            report.levels.push(levels(turn as u64 + 1, &compactor));
        }
        let mut facts = Vec::with_capacity(len - known + 1);
        if turn == 0 && schema_tokens > 0 {
            facts.push(EntryFact { kind: FactKind::System, tokens: schema_tokens, bytes: schema_bytes, group: 0 });
        }
        for entry in known..len {
            let kind = match columns.kind(entry) {
                EntryKind::System => FactKind::System,
                EntryKind::ToolResult => FactKind::Result,
                _ => FactKind::Other,
            };
            facts.push(EntryFact {
                kind,
                tokens: columns.weight(entry).into(),
                bytes: entry_bytes(whole, entry),
                group: columns.group(entry) as u32,
            });
        }
        known = len;
        baselines.call(&facts, output, None);
        for (row, cost) in report.baselines.iter_mut().zip(baselines.costs()) {
            row.cumulative.push(cost);
        }
        progress(turn + 1);
    }
    for (row, totals) in report.baselines.iter_mut().zip(baselines.totals()) {
        row.totals = *totals;
    }
    if let Some(last) = report.turns.last() {
        report.levels.push(levels(last.turn, &compactor));
    }
    report.notes.extend(setting.summarizer.lacks_model());
    notes(&mut report, conversation, over, repaired);
    report
}

fn notes(report: &mut ReplayReport, conversation: &Conversation, over: u64, repaired: (usize, usize)) {
    let mut say = |text: String| report.notes.push(text);
    if conversation.calls.is_empty() {
        say("no model call is recorded here".into());
    }
    if over > 0 {
        say(format!(
            "on {over} {} what cannot shrink (instructions, the newest messages) is above the usable window",
            if over == 1 { "turn" } else { "turns" }
        ));
    }
    let (orphans, unanswered) = repaired;
    if orphans > 0 {
        let are = if orphans == 1 { "result without a call is" } else { "results without a call are" };
        say(format!("{orphans} {are} left out of the view"));
    }
    if unanswered > 0 {
        let were = if unanswered == 1 { "call without a result was" } else { "calls without a result were" };
        say(format!("{unanswered} {were} given a stand-in"));
    }
    for (kind, count) in &conversation.skipped {
        let are = if *count == 1 { "record of type" } else { "records of type" };
        let verb = if *count == 1 { "is" } else { "are" };
        say(format!("{count} {are} {kind} {verb} no part of what the model was sent"));
    }
}

/// A piece as a prompt cache sees it. The record does not change during a replay, so an entry's index stands for its content.
fn segment(whole: &impl Transcript, columns: &Columns, compactor: &Compactor<&Policy>, piece: Piece<'_>) -> Segment {
    let mut hash = DefaultHasher::new();
    let weigher = &compactor.policy().config().weigher;
    let ledger = compactor.ledger();
    let (bytes, tokens) = match piece {
        Piece::Entry { entry } => {
            (0u8, entry).hash(&mut hash);
            (entry_bytes(whole, entry), u64::from(columns.weight(entry)))
        }
        Piece::Text { entry, text } | Piece::Arguments { entry, json: text } => {
            (1u8, entry, text).hash(&mut hash);
            (text.len() as u64 + FRAME_BYTES, ledger.view_weight(columns, entry))
        }
        Piece::Elided { entry, parts, text } => {
            (2u8, entry, parts, text).hash(&mut hash);
            (text.len() as u64 * parts.len() as u64 + FRAME_BYTES, ledger.view_weight(columns, entry))
        }
        Piece::Note { text } => {
            (3u8, text).hash(&mut hash);
            (text.len() as u64 + FRAME_BYTES, weigher.framed(text).into())
        }
        Piece::StandIn { call, text } => {
            (4u8, call).hash(&mut hash);
            (text.len() as u64 + FRAME_BYTES, weigher.framed(text).into())
        }
    };
    Segment { hash: hash.finish(), bytes, tokens }
}

/// Bytes a message costs on the wire around its content, roughly.
const FRAME_BYTES: u64 = 48;

fn entry_bytes(transcript: &impl Transcript, entry: usize) -> u64 {
    let facts = transcript.entry(entry);
    let content: usize = (0..facts.parts as usize)
        .map(|part| match transcript.part(entry, part) {
            PartRef::Text(text) => text.len(),
            PartRef::Image(media) | PartRef::File(media) => media.data.len(),
            PartRef::Opaque(data) => data.len(),
        })
        .sum();
    (content + facts.name.len() + facts.call_id.len()) as u64 + FRAME_BYTES
}

/// Tokens of what the model answered to a call: the assistant entries that follow it.
fn answer_tokens(conversation: &Conversation, policy: &Policy, turn: usize) -> u64 {
    let transcript = &conversation.transcript;
    let from = conversation.calls[turn];
    let to = conversation.calls.get(turn + 1).copied().unwrap_or_else(|| transcript.len());
    let weigher = &policy.config().weigher;
    (from..to)
        .take_while(|&entry| transcript.entry(entry).kind.is_assistant_side())
        .map(|entry| u64::from(weigher.entry(transcript, entry)))
        .sum()
}

/// Level of every entry; a stretch under a note is one run, so that a long session costs what is still open.
fn levels(turn: u64, compactor: &Compactor<&Policy>) -> LevelColumn {
    let (columns, ledger) = (compactor.columns(), compactor.ledger());
    let level = |entry: usize| ledger.level(columns, entry) as u8;
    if !columns.late_results().is_empty() {
        return LevelColumn::of(turn, (0..columns.len()).map(level));
    }
    let mut column = LevelColumn { turn, runs: Vec::new() };
    let mut push = |level: u8, entries: u64| match column.runs.last_mut() {
        Some(run) if run.level == level => run.entries += entries,
        _ if entries > 0 => column.runs.push(LevelRun { level, entries }),
        _ => {}
    };
    let mut entry = 0;
    while entry < columns.len() {
        match ledger.note_over(columns, columns.group(entry)) {
            Some(note) => {
                let end = (note.to as usize).min(columns.len());
                let from = entry;
                for place in note.kept.iter().map(|place| place.index as usize).filter(|&kept| kept >= from) {
                    push(Level::Covered as u8, (place - entry) as u64);
                    entry = columns.group_start(columns.group(place) + 1);
                    (place..entry).for_each(|kept| push(level(kept), 1));
                }
                push(Level::Covered as u8, (end - entry) as u64);
                entry = end;
            }
            None => {
                push(level(entry), 1);
                entry += 1;
            }
        }
    }
    column
}
