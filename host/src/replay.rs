//! What a policy would have done to a recorded session, turn by turn.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use foreshorten_core::{
    Compactor, Policy, Turn,
    budget::Mode,
    plan::Level,
    transcript::{Columns, EntryKind, PartRef, Transcript, Until},
    view::Piece,
};

use crate::{
    drive::{Helpers, Summaries, settle_counted},
    economics::{
        BASELINE_NAMES, Baselines, BreakEven, EntryFact, FactKind, Pauses, PriceRow, Request, Segment, Simulator,
        TurnBill, seconds_of,
    },
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
    /// Time between the calls.
    pub pauses: Pauses,
    /// Whether the policy is told that the cache has expired ([`Turn::cache_cold`]), as a host does that has a clock.
    pub tell_cold: bool,
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
    // When the last call was made, where the session says.
    let mut time = None;
    for (turn, &len) in conversation.calls.iter().enumerate() {
        let record = Until { whole, len };
        let now = (setting.pauses == Pauses::Recorded).then(|| time_of(conversation, len)).flatten();
        let idle = setting.pauses.before(turn as u64, time.zip(now));
        time = now.or(time);
        let cold = turn > 0 && idle.is_some_and(|seconds| seconds > setting.price.ttl_seconds);
        compactor.sync(&record);
        compactor.begin(
            &record,
            Turn {
                scope: "replay",
                schema_tokens,
                window: Some(setting.window),
                can_summarize: setting.summarizer.any(),
                cache_cold: cold && setting.tell_cold,
                ..Turn::default()
            },
        );
        // What the request would be without a pass: what one costs is the difference.
        let calm = Sending::of(whole, &compactor, lengths.len(), head);
        let helpers = Helpers { summarizer: setting.summarizer, store: None, plugins: setting.plugins };
        if let Err(failed) = settle_counted(&mut compactor, &record, helpers, &mut report.plugins) {
            report.notes.push(format!("turn {}: {failed}; the call would not have been made", turn + 1));
        }
        let outcome = compactor.outcome();
        let view = compactor.view();
        let columns = compactor.columns();
        over += u64::from(outcome.cannot_fit.is_some());
        repaired = (view.orphans(), view.stand_ins());

        let output = answer_tokens(conversation, setting.policy, turn);
        let request = |sending: &Sending| -> (usize, Vec<Segment>) {
            match turn {
                0 => (0, (head > 0).then_some(schemas).into_iter().chain(sending.segments.iter().copied()).collect()),
                _ => (sending.common + head, sending.segments.clone()),
            }
        };
        let price = |sending: &Sending, ask: &mut dyn FnMut(&Request<'_>) -> TurnBill| {
            let (common, segments) = request(sending);
            ask(&Request {
                common,
                segments: &segments,
                marks: &sending.marks,
                output_tokens: output,
                idle_seconds: idle,
            })
        };
        let (sending, without) = if outcome.compacted {
            let without = price(&calm, &mut |request| simulator.quote(request));
            (Sending::of(whole, &compactor, lengths.len(), head), Some(without))
        } else {
            (calm, None)
        };
        let bill = price(&sending, &mut |request| simulator.feed(request));
        let loss = without.map(|without| BreakEven::between(setting.price, &bill, &without));
        // What a pass found, and what of it stayed.
        let bytes = |pieces: &[u64]| pieces.iter().sum::<u64>();
        let (before, kept) = match loss {
            Some(_) => (bytes(&lengths), bytes(lengths.get(..sending.common).unwrap_or_default())),
            None => (0, 0),
        };
        lengths.truncate(sending.common);
        lengths.extend(sending.segments.iter().map(|segment| segment.bytes));
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
                break_even: loss,
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
        baselines.call(&facts, output, idle);
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

/// What of a request is not the request before.
struct Sending {
    /// Leading pieces of the view that are those of the view sent last.
    common: usize,
    /// The pieces after them.
    segments: Vec<Segment>,
    /// Where to mark the request for the cache.
    marks: [usize; 2],
}

impl Sending {
    /// The present view, of which `sent` pieces were sent last time; `head` segments stand before it.
    fn of(whole: &impl Transcript, compactor: &Compactor<&Policy>, sent: usize, head: usize) -> Self {
        let (view, columns) = (compactor.view(), compactor.columns());
        let common = compactor.outcome().first_changed.unwrap_or(sent).min(sent);
        let pieces = (common..view.len()).map_while(|at| view.get(at));
        let segments = pieces.map(|piece| segment(whole, columns, compactor, piece)).collect();
        Self { common, segments, marks: [view.head(columns) + head, view.settled() + head] }
    }
}

/// The second at which the call over the first `len` entries was made: when the newest of them was written.
fn time_of(conversation: &Conversation, len: usize) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct Stamped<'a> {
        #[serde(borrow)]
        timestamp: std::borrow::Cow<'a, str>,
    }
    let transcript = &conversation.transcript;
    let message = transcript.message(transcript.message_of(len.checked_sub(1)?)?);
    serde_json::from_str::<Stamped<'_>>(message).ok().and_then(|line| seconds_of(&line.timestamp))
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
