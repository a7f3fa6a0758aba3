//! Every view fits, or what cannot fit is named (I8): windows from 1k to 1M, schemas larger than the window, single
//! messages larger than the window, summarizers that fail, overflow or lie, stores that fail, hostile stages.
//!
//! 3,000 cases in an ordinary run; `FORESHORTEN_CASES` for longer ones. A case is a session of up to 40 turns, each of them checked.
//! `docs/full-run.md` has the longest run so far. The number of turns is printed with `--nocapture`.

use std::sync::{
    LazyLock,
    atomic::{AtomicU32, AtomicUsize, Ordering},
};

use foreshorten_core::{
    PipelineStage, Policy, PolicyConfig,
    budget::Economy,
    config, plan,
    transcript::{Entry, OwnedTranscript, Part},
};
use foreshorten_testkit::{Answers, Script, Session, cases::built, entries};
use proptest::prelude::*;

const ANSWERS: [Answers; 5] =
    [Answers::NoSummarizer, Answers::Extractive, Answers::Failing, Answers::Overflowing, Answers::Lying];
const WINDOWS: [u64; 8] = [1_000, 2_000, 5_000, 10_000, 32_000, 128_000, 400_000, 1_000_000];

/// The default pipeline, the five stages, two in which a hostile stage has the first word and the last, and the presets.
static POLICIES: LazyLock<[Policy; 6]> = LazyLock::new(|| {
    let hostile = |stages: Vec<PipelineStage>| {
        let mut all = vec![PipelineStage::External("hostile".into())];
        all.extend(stages);
        all.push(PipelineStage::External("hostile".into()));
        all
    };
    let five = config::five_stage_pipeline;
    [
        PolicyConfig::default(),
        PolicyConfig { stages: five(), archive: true, ..PolicyConfig::default() },
        PolicyConfig { stages: hostile(config::default_pipeline()), may_condense: true, ..PolicyConfig::default() },
        PolicyConfig {
            stages: hostile(vec![PipelineStage::Summarize(plan::SummarizeHistory::default())]),
            archive: true,
            ..PolicyConfig::default()
        },
        PolicyConfig::steady(),
        PolicyConfig::economy(Economy::default()),
    ]
    .map(built)
});

/// Longest text made, as a rule and now and then: what is larger is made of images, which weigh much and cost nothing to read.
const LONGEST: [u64; 2] = [8_000, 60_000];
const IMAGE: u64 = 1_600;

/// About this many tokens of user message, result, answer, arguments or instructions.
fn heavy(script: &mut Script<'_>, tokens: u64, turn: usize, out: &mut Vec<Entry>) {
    let unit = ["lorem ipsum dolor ", "漢字かな交じり文。", "🙂👩‍👩‍👧"][script.below(3)];
    let longest = LONGEST[usize::from(script.one_in(16))];
    let bytes = usize::try_from((tokens * 4).min(longest)).unwrap_or(usize::MAX);
    let text = format!("{turn} {}", unit.repeat(bytes / unit.len()));
    let images = if tokens * 4 > longest { usize::try_from(tokens / IMAGE).unwrap_or(0) } else { 0 };
    let picture =
        |entry: Entry| (0..images).fold(entry, |entry, _| entry.with(Part::Image("image/png".into(), vec![1])));
    let id = format!("h{turn}-{}", out.len());
    match script.below(8) {
        0 | 1 => out.push(picture(Entry::user(text))),
        2 => out.push(Entry::assistant(text)),
        3 => out.extend([Entry::tool_call(id.clone(), "read", text), Entry::tool_result(id, "done")]),
        4 => out.push(Entry::system(text)),
        5 => {
            let n = 2 + script.below(5);
            let ids: Vec<String> = (0..n).map(|call| format!("{id}-{call}")).collect();
            out.extend(ids.iter().map(|id| Entry::tool_call(id.clone(), "bash", "{}")));
            out.extend(ids.into_iter().map(|id| Entry::tool_result(id, text.clone())));
        }
        _ => {
            out.push(Entry::tool_call(id.clone(), "read", "{}"));
            out.push(picture(Entry::tool_result(id, text)));
        }
    }
}

/// Cases and turns played so far.
static CASES: AtomicU32 = AtomicU32::new(0);
static TURNS: AtomicUsize = AtomicUsize::new(0);

/// Answers the turns.
fn play(bytes: &[u8]) -> usize {
    let mut script = Script::new(bytes);
    let policy = &POLICIES[script.below(6)];
    let window = WINDOWS[script.below(8)];
    let answers = ANSWERS[script.below(5)];
    let mut session = Session::new(policy, OwnedTranscript::default(), window, answers);
    session.turn.schema_tokens = [0, 0, 0, window / 20, window / 3, window * 2][script.below(6)];
    session.hostile = Some(u64::from(script.byte()));
    session.archive_fails = script.one_in(2);
    session.turn.summarizer_window = [None, Some(300), Some(window * 4)][script.below(3)];
    let mut turn = 0;
    while !script.is_done() && turn < 40 {
        let mut new = Vec::new();
        match script.below(3) {
            0 => entries(&mut script, turn, &mut new),
            1 => {
                let share = [50, 20, 8, 4][script.below(4)];
                heavy(&mut script, window / share, turn, &mut new);
            }
            _ => {
                let percent = [40, 70, 110, 250][script.below(4)];
                heavy(&mut script, window * percent / 100, turn, &mut new);
            }
        }
        match script.below(20) {
            0 => session.turn.overflow = true,
            1 => session.restart(),
            2 => session.answer(ANSWERS[script.below(5)]),
            3 => session.turn.window = Some(WINDOWS[script.below(8)].min(window * 2)),
            4 => {
                let percent = 60 + script.below(120) as u64;
                let _ = session.compactor.handle_usage(session.compactor.outcome().tokens_after * percent / 100);
            }
            _ => {}
        }
        session.step(new);
        turn += 1;
    }
    turn
}

fn cases() -> u32 {
    std::env::var("FORESHORTEN_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(3_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_view_fits_or_what_cannot_is_named(bytes in proptest::collection::vec(any::<u8>(), 0..160)) {
        TURNS.fetch_add(play(&bytes), Ordering::Relaxed);
        let done = CASES.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(cases().div_ceil(10)) {
            println!("{done} cases, {} turns", TURNS.load(Ordering::Relaxed));
        }
    }
}
