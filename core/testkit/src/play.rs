//! Operation sequences over a whole session, out of bytes.

use foreshorten_core::{
    CompactionState, Compactor, PipelineStage, Policy, PolicyConfig, Step, Turn,
    budget::{CachePrice, Economy, Watermark},
    config,
    estimate::{ByteEstimator, Family, Weigher},
    marker::MarkerStyle,
    plan::{self, ToolRule},
    state::History,
    transcript::{Entry, EntryKind, OwnedTranscript, Part, Transcript as _},
};

use crate::{Answers, Hostile, Script, Session, cases, entries};

/// What a played session came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// Turns run and checked.
    pub turns: usize,
    /// Passes among them that decided something.
    pub passes: usize,
    /// Summarizer calls.
    pub calls: usize,
}

const ANSWERS: [Answers; 5] =
    [Answers::NoSummarizer, Answers::Extractive, Answers::Failing, Answers::Overflowing, Answers::Lying];

const WINDOWS: [u64; 8] = [1_000, 4_000, 8_000, 16_000, 32_000, 64_000, 400, 1_000_000];

/// Turns of one session at most: what goes wrong goes wrong early, and the checks cost what the record holds.
const MAX_TURNS: usize = 100;

fn policy(script: &mut Script<'_>) -> Policy {
    let outside = || PipelineStage::External("outside".into());
    let mut stages = match script.below(8) {
        0 => config::default_pipeline(),
        1 => config::five_stage_pipeline(),
        2 => vec![
            PipelineStage::plan(plan::DropSuperseded::default()),
            PipelineStage::plan(plan::DropOldImages::default()),
            PipelineStage::plan(plan::ClearReasoning::default()),
            PipelineStage::plan(plan::ClipToolArguments::default()),
            PipelineStage::plan(plan::OffloadToolResults::default()),
            PipelineStage::plan(plan::ClearToolResults { clear_at_least_tokens: Some(500), ..Default::default() }),
            PipelineStage::Summarize(plan::SummarizeHistory::default()),
        ],
        3 => vec![PipelineStage::Summarize(plan::SummarizeHistory::default())],
        4 => vec![outside()],
        5 => {
            let mut stages = vec![outside()];
            stages.extend(config::default_pipeline());
            stages
        }
        6 => vec![
            PipelineStage::Summarize(plan::SummarizeHistory { require_sections: false, ..Default::default() }),
            outside(),
        ],
        _ => vec![PipelineStage::plan(plan::MiddleSnip::default()), outside()],
    };
    let flags = script.byte();
    if flags & 1 > 0 {
        stages.insert(0, PipelineStage::plan(Hostile::new(script.take(32).to_vec())));
    }
    for stage in &mut stages {
        if let (PipelineStage::Summarize(summary), true) = (stage, flags & 128 > 0) {
            summary.layers_percent = 25;
        }
    }
    let rules = [("bash", ToolRule::KeepArguments), ("read", ToolRule::Never), ("search", ToolRule::DropFirst)];
    let more = script.byte();
    cases::built(PolicyConfig {
        stages,
        archive: flags & 2 > 0,
        may_condense: flags & 4 > 0,
        style: MarkerStyle { recall_tool: flags & 8 == 0 },
        min_gain_percent: if flags & 16 > 0 { 0 } else { 10 },
        tools: if flags & 32 > 0 { rules.map(|(name, rule)| (name.into(), rule)).to_vec() } else { Vec::new() },
        weigher: Weigher {
            bytes: if flags & 64 > 0 { ByteEstimator::Automaton(Family::ALL[0]) } else { ByteEstimator::BytesPer4 },
            ..Weigher::default()
        },
        keep_recent_tokens: [None, None, Some(1), Some(500)][usize::from(more & 3)],
        reserve_output_tokens: [None, None, Some(1), Some(300)][usize::from(more >> 2 & 3)],
        compact_to: Watermark::BasisPoints([6_000, 6_000, 2_000, 8_400][usize::from(more >> 4 & 3)]),
        fold_without_summary: flags & 128 > 0,
        economy: [None, None, Some(Economy::default()), Some(odd_economy(more))][usize::from(more >> 6 & 3)],
        ..PolicyConfig::default()
    })
}

/// Prices nobody has, a floor that is next to nothing, and a session about to end.
fn odd_economy(more: u8) -> Economy {
    let price = CachePrice { write: 20_000, read: [0, 1, 20_000, 100][usize::from(more & 3)], output: u32::from(more) };
    let growth_tokens = (more & 4 > 0).then_some(u64::from(more));
    Economy { price, floor_tokens: 1 + u64::from(more), growth_tokens, expected_turns: (more & 8 > 0).then_some(20) }
}

/// Plays the session that `bytes` describe, checking every invariant after every turn.
///
/// # Panics
/// When an invariant does not hold, with a sentence that names it.
pub fn play(bytes: &[u8]) -> Played {
    let mut script = Script::new(bytes);
    let policy = policy(&mut script);
    let answers = ANSWERS[script.below(5)];
    let window = WINDOWS[script.below(WINDOWS.len())];
    let mut session = Session::new(&policy, OwnedTranscript::default(), window, answers);
    session.turn.schema_tokens = [0, 0, 300, 6_000][script.below(4)];
    session.stride = 1 + script.below(8);
    let mut played = Played::default();
    let mut fork = None;
    while !script.is_done() && played.turns < MAX_TURNS {
        let mut new = Vec::new();
        entries(&mut script, played.turns, &mut new);
        operation(&mut script, &policy, &mut session, &mut fork);
        session.step(new);
        session.turn.manual = false;
        session.turn.cache_cold = false;
        played.turns += 1;
    }
    Played { passes: session.passes, calls: session.calls, ..played }
}

/// One of the things that happen between two turns.
fn operation<'p>(
    script: &mut Script<'_>,
    policy: &'p Policy,
    session: &mut Session<'p>,
    fork: &mut Option<CompactionState>,
) {
    let len = session.transcript.len();
    match script.below(48) {
        0 => session.turn.overflow = true,
        1 => {
            session.turn.overflow = true;
            session.turn.reported_window = Some([2_000, 5_000, 12_000, 0, 255, u64::MAX][script.below(6)]);
        }
        2 => session.restart(),
        3 => {
            let percent = 60 + script.below(120) as u64;
            session.usage(session.compactor.outcome().tokens_after * percent / 100);
        }
        4 => session.turn.manual = true,
        5 => session.turn.cache_cold = true,
        6 => session.usage([0, 1, u64::MAX, 1 << 40, 100_000][script.below(5)]),
        7..=9 => {
            session.turn.manual = script.one_in(3);
            session.turn.overflow = script.one_in(3);
            if session.cancel(script.below(5)) {
                session.turn.overflow = false;
            }
            session.turn.manual = false;
        }
        10 | 11 => *fork = Some(session.fork()),
        12..=14 => {
            let other = fork.take().unwrap_or_else(|| session.fork());
            if let Some(other) = elsewhere(script, policy, &session.transcript, other) {
                session.merge(&other);
            }
        }
        15 => session.undo(),
        35 => session.undo_last(),
        36 => session.archive_fails = !session.archive_fails,
        37 => session.hostile = Some(len as u64),
        38 => session.hostile = None,
        39 => {
            // Back to whatever state is at hand.
            if let Some(checkpoint) = fork.take() {
                session.undo_to(&checkpoint);
            }
        }
        16 => session.pin(script.below(len.max(1) + 1)),
        17 => session.unpin(script.below(len.max(1))),
        18 => session.turn.schema_tokens = [0, 200, 5_000, 1 << 40][script.below(4)],
        19 => {
            let window = WINDOWS[script.below(WINDOWS.len())];
            session.turn.window = (!script.one_in(6)).then_some(window);
        }
        20 => session.answer(ANSWERS[script.below(5)]),
        21 => session.turn.scope = ["test/model", "other/model", ""][script.below(3)],
        22 => session.turn.summarizer_window = [None, Some(300), Some(2_000), Some(0)][script.below(4)],
        23..=28 => session.plugin = script.take(32).to_vec(),
        29 if len > 0 => {
            let count = script.below(len);
            session.edit(|entries, levels| {
                entries.drain(..count);
                levels.drain(..count);
            });
            *fork = None;
        }
        30 if len > 0 => {
            let keep = script.below(len) + 1;
            session.edit(|entries, levels| {
                entries.truncate(keep);
                levels.truncate(keep);
            });
            *fork = None;
        }
        31 if len > 0 => {
            let at = script.below(len);
            let entry = [Entry::user("another text"), Entry::assistant("rewritten"), Entry::tool_result("t0-0", "new")]
                [script.below(3)]
            .clone();
            session.edit(|entries, levels| {
                entries[at] = entry;
                levels[at] = plan::Level::Verbatim;
            });
            session.bodies_lost = true;
            *fork = None;
        }
        32 if len > 0 => {
            let (at, entry) = (script.below(len + 1), Entry::assistant("inserted"));
            session.edit(|entries, levels| {
                entries.insert(at, entry);
                levels.insert(at, plan::Level::Verbatim);
            });
            *fork = None;
        }
        33 => {
            let bytes = [0, 40, 420, 2_000][script.below(4)];
            session.edit(|entries, _| entries.iter_mut().for_each(|entry| trim_body(entry, bytes)));
            session.bodies_lost = true;
        }
        34 => {
            // Another conversation, or none at all.
            let other = if script.one_in(2) { Vec::new() } else { vec![Entry::user("a title for this, please")] };
            session.edit(|entries, levels| {
                *entries = other;
                levels.clear();
            });
            *fork = None;
        }
        _ => {}
    }
}

/// What a tool does that makes stored results smaller behind everybody's back.
fn trim_body(entry: &mut Entry, bytes: usize) {
    if entry.kind == EntryKind::ToolResult
        && let Some(Part::Text(text)) = entry.parts.first_mut()
    {
        text.truncate(foreshorten_core::text::floor_boundary(text, bytes));
    }
}

/// The state of another host that goes on with the same record: other windows, other providers, other counts. `None`
/// when it holds the record for another conversation.
fn elsewhere(
    script: &mut Script<'_>,
    policy: &Policy,
    record: &OwnedTranscript,
    state: CompactionState,
) -> Option<CompactionState> {
    let mut compactor = Compactor::resume(policy, state);
    if compactor.sync(record) == History::Foreign {
        return None; // the record is another conversation since
    }
    for _ in 0..script.below(3) {
        let turn = Turn {
            window: Some([700, 2_500, 9_000][script.below(3)]),
            scope: ["test/model", "other/model"][script.below(2)],
            overflow: script.one_in(3),
            reported_window: script.one_in(3).then_some(2_500),
            manual: script.one_in(5),
            ..Turn::default()
        };
        compactor.begin(record, turn);
        while !matches!(compactor.poll(record), Step::Done(_)) {}
        let tokens = compactor.tokens();
        let _ = compactor.handle_usage(tokens * (80 + script.below(60) as u64) / 100);
    }
    if script.one_in(8) {
        let _ = compactor.undo_all(record);
    }
    Some(compactor.state().clone())
}
