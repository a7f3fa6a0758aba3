//! Every invariant, over generated sessions with all pathologies, turn by turn.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use foreshorten_core::{PipelineStage, Policy, PolicyConfig, config, plan, transcript::OwnedTranscript};
use foreshorten_testkit::{Answers, Script, Session, cases, entries};
use proptest::prelude::*;

fn policy(which: u8) -> Policy {
    let stages = match which % 4 {
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
        _ => vec![PipelineStage::Summarize(plan::SummarizeHistory::default())],
    };
    cases::built(PolicyConfig { stages, archive: which % 8 > 3, ..PolicyConfig::default() })
}

const ANSWERS: [Answers; 5] =
    [Answers::NoSummarizer, Answers::Extractive, Answers::Failing, Answers::Overflowing, Answers::Lying];

fn play(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let policy = policy(script.byte());
    let answers = ANSWERS[script.below(5)];
    let window = [1_000, 4_000, 8_000, 16_000, 32_000, 64_000][script.below(6)];
    let mut session = Session::new(&policy, OwnedTranscript::default(), window, answers);
    session.turn.schema_tokens = [0, 0, 300, 6_000][script.below(4)];
    let mut turn = 0;
    while !script.is_done() && turn < 60 {
        let mut new = Vec::new();
        entries(&mut script, turn, &mut new);
        match script.below(24) {
            0 => session.turn.overflow = true,
            1 => {
                session.turn.overflow = true;
                session.turn.reported_window = Some([2_000, 5_000, 12_000][script.below(3)]);
            }
            2 => session.restart(),
            3 => {
                let percent = 60 + script.below(120) as u64;
                let _ = session.compactor.handle_usage(session.compactor.outcome().tokens_after * percent / 100);
            }
            4 => session.turn.manual = true,
            5 => session.turn.cache_cold = true,
            _ => {}
        }
        session.step(new);
        session.turn.manual = false;
        session.turn.cache_cold = false;
        turn += 1;
    }
}

/// 2,000 in an ordinary run; `FORESHORTEN_CASES` for longer ones.
fn cases() -> u32 {
    std::env::var("FORESHORTEN_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_invariant_holds_over_generated_sessions(bytes in proptest::collection::vec(any::<u8>(), 0..900)) {
        play(&bytes);
    }
}

/// Inputs that once broke an invariant.
#[test]
fn what_once_broke_stays_mended() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/regressions");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    for file in files {
        play(&std::fs::read(&file).unwrap());
    }
}
