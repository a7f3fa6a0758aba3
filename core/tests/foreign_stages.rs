//! Stages that run elsewhere: what they see in the middle of a pass, and what is taken of what they decide.

#![allow(clippy::unwrap_used, reason = "helpers of tests are test code")]

use foreshorten_core::{
    Compactor, Effect, Policy, PolicyConfig, Step, SummaryReply, Turn,
    config::PipelineStage,
    plan::{ClearToolResults, Level, Proposal, Refusal, SummarizeHistory},
    transcript::{Entry, OwnedTranscript},
};
use foreshorten_testkit::cases::seeds_rule;

/// A talk with `calls` tool calls of about 500 tokens each.
fn talk(calls: usize) -> OwnedTranscript {
    let mut record = OwnedTranscript::default();
    record.push(Entry::user("look at everything"));
    for call in 0..calls {
        record.push(Entry::tool_call(format!("c{call}"), "read", format!("{{\"path\":\"{call}\"}}")));
        record.push(Entry::tool_result(format!("c{call}"), "some line of text\n".repeat(110)));
    }
    record.push(Entry::user("and now?"));
    record
}

fn policy(stages: Vec<PipelineStage>) -> Policy {
    PolicyConfig { stages, ..seeds_rule() }.build().unwrap()
}

fn external() -> PipelineStage {
    PipelineStage::External("foreign".into())
}

/// A compactor that waits for its foreign stage, over a record of 40 calls in a window of 24,000.
fn waiting(policy: &Policy, record: &OwnedTranscript, can_summarize: bool) -> Compactor<Policy> {
    let policy = self::policy(policy.config().stages.iter().map(again).collect());
    let mut compactor = Compactor::new(policy);
    compactor.sync(record);
    compactor.begin(record, Turn { window: Some(24_000), can_summarize, ..Turn::default() });
    assert!(matches!(compactor.poll(record), Step::Effect(Effect::RunStage { name }) if name == "foreign"));
    compactor
}

fn again(stage: &PipelineStage) -> PipelineStage {
    match stage {
        PipelineStage::Summarize(stage) => PipelineStage::Summarize(*stage),
        PipelineStage::External(name) => PipelineStage::External(name.clone()),
        _ => PipelineStage::plan(ClearToolResults::default()),
    }
}

#[test]
fn a_foreign_stage_sees_its_own_decisions_and_the_state_sees_them_only_once_they_are_taken() {
    let (record, policy) = (talk(40), policy(vec![external()]));
    let mut compactor = waiting(&policy, &record, false);
    assert_eq!(compactor.pending_stage(), Some("foreign"));
    let before = compactor.with_stage(&record, |stage| stage.view_tokens()).unwrap();
    compactor.with_stage(&record, |stage| stage.propose(Proposal::Clear { entry: 2 })).unwrap().unwrap();
    compactor.with_stage(&record, |stage| {
        assert_eq!(stage.level(2), Level::Cleared);
        assert!(stage.view_tokens() < before);
        assert_eq!(stage.propose(Proposal::Clear { entry: 2 }), Err(Refusal::NotRising));
        let newest_result = stage.columns().len() - 2;
        assert_eq!(stage.propose(Proposal::Clear { entry: newest_result }), Err(Refusal::Tail));
    });
    assert!(compactor.state().records().is_empty());
    assert!(compactor.commit_stage() > 300);
    assert_eq!(compactor.pending_stage(), None);
    assert!(compactor.with_stage(&record, |_| ()).is_none());
    while !matches!(compactor.poll(&record), Step::Done(_)) {}
    assert!(compactor.ledger().level(compactor.columns(), 2) >= Level::Cleared);
}

#[test]
fn what_an_abandoned_stage_decided_is_gone_and_the_notice_says_why() {
    let (record, policy) = (talk(40), policy(vec![external(), PipelineStage::plan(ClearToolResults::default())]));
    let mut compactor = waiting(&policy, &record, false);
    compactor.with_stage(&record, |stage| {
        stage.explain("never to be read");
        stage.propose(Proposal::ClipArguments { entry: 1 }).unwrap_err();
        stage.propose(Proposal::Offload { entry: 2, head: 100, tail: 0 }).unwrap();
    });
    compactor.abandon_stage("foreign: ran out of fuel");
    while !matches!(compactor.poll(&record), Step::Done(_)) {}
    let notice = compactor.outcome().notice.clone().unwrap();
    assert!(notice.detail.iter().any(|line| line == "foreign: ran out of fuel"), "{:?}", notice.detail);
    assert!(!notice.detail.iter().any(|line| line.contains("never to be read")));
    assert_eq!(notice.decided.offloaded, 0);
    assert_eq!(compactor.ledger().level(compactor.columns(), 2), Level::Cleared);
}

#[test]
fn another_stage_can_take_the_place_of_one_that_failed() {
    let (record, policy) = (talk(40), policy(vec![external()]));
    let mut compactor = waiting(&policy, &record, false);
    compactor.with_stage(&record, |stage| stage.propose(Proposal::Clear { entry: 4 })).unwrap().unwrap();
    compactor.restart_stage("foreign: trapped");
    compactor.with_stage(&record, |stage| {
        assert_eq!(stage.level(4), Level::Verbatim);
        foreshorten_core::plan::Stage::plan(&ClearToolResults::default(), stage);
    });
    assert!(compactor.commit_stage() > 0);
    while !matches!(compactor.poll(&record), Step::Done(_)) {}
    assert!(compactor.outcome().compacted);
}

#[test]
fn a_stage_can_pin_within_a_tenth_of_the_room_and_no_more() {
    let (record, policy) = (talk(40), policy(vec![external(), PipelineStage::plan(ClearToolResults::default())]));
    let mut compactor = waiting(&policy, &record, false);
    let pinned = compactor
        .with_stage(&record, |stage| {
            let results: Vec<usize> = stage.results();
            results.into_iter().map(|entry| (entry, stage.pin(entry))).collect::<Vec<_>>()
        })
        .unwrap();
    compactor.commit_stage();
    while !matches!(compactor.poll(&record), Step::Done(_)) {}
    let kept: Vec<usize> = pinned.iter().filter(|(_, verdict)| verdict.is_ok()).map(|&(entry, _)| entry).collect();
    assert_eq!(kept.len(), 2, "two of 500 tokens each fit a tenth of 12,000");
    assert!(pinned.iter().any(|(_, verdict)| *verdict == Err(Refusal::NoBudget)));
    for entry in kept {
        assert_eq!(compactor.ledger().level(compactor.columns(), entry), Level::Verbatim);
    }
    assert!(compactor.outcome().compacted && compactor.outcome().cannot_fit.is_none());
}

#[test]
fn a_stage_can_have_more_summarized_than_the_target_needs() {
    let summary = "## Session intent\nLook at everything there is.\n## Current state\nHalf of it is read now.\n\
                   ## Key facts and decisions\nNone so far.\n## Artifacts\nNone.\n## Constraints\nNone.\n## Next steps\nGo on reading.";
    let play = |ask: bool| {
        let record = talk(40);
        let policy = policy(vec![external(), PipelineStage::Summarize(SummarizeHistory::default())]);
        let mut compactor = waiting(&policy, &record, true);
        if ask {
            let end = compactor.with_stage(&record, |stage| {
                assert_eq!(stage.request_summary(stage.tail_start() + 1), Err(Refusal::Tail));
                stage.request_summary(stage.tail_start()).unwrap();
                stage.tail_start()
            });
            assert!(end.unwrap() > 0);
        }
        compactor.commit_stage();
        loop {
            match compactor.poll(&record) {
                Step::Effect(Effect::Summarize(_)) => {
                    let reply = SummaryReply { text: summary.into(), ..SummaryReply::default() };
                    compactor.handle_summary(&record, Ok(reply));
                }
                Step::Effect(_) => compactor.handle_proposals(&record, Vec::new()),
                Step::Done(outcome) => return outcome.tokens_after,
            }
        }
    };
    assert!(play(true) + 1_000 < play(false));
    let (record, policy) = (talk(40), policy(vec![external()]));
    let mut compactor = waiting(&policy, &record, true);
    let refused = compactor.with_stage(&record, |stage| stage.request_summary(3)).unwrap();
    assert_eq!(refused, Err(Refusal::NotGranted), "no summary stage follows");
}

#[test]
fn a_label_set_in_the_middle_of_a_pass_stays() {
    let (record, policy) = (talk(40), policy(vec![external()]));
    let mut compactor = waiting(&policy, &record, false);
    compactor.with_stage(&record, |stage| stage.propose(Proposal::Clear { entry: 2 })).unwrap().unwrap();
    compactor.set_label("plugin.foreign", "1");
    assert_eq!(compactor.state().label("plugin.foreign"), Some("1"));
    compactor.commit_stage();
    while !matches!(compactor.poll(&record), Step::Done(_)) {}
    assert!(compactor.outcome().compacted);
    assert_eq!(compactor.state().label("plugin.foreign"), Some("1"));
}
