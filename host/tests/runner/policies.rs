//! Passes, summaries, manual acts and what is said about them.

#![allow(clippy::unwrap_used, reason = "helpers of tests are test code")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::model::{Call, Model, Reads, SUMMARY, worker};
use foreshorten::context::{CompactingContextPolicy, Compaction, STATE_KEY};
use foreshorten::provider::{Purpose, Usage};
use foreshorten::record::Message;
use foreshorten::runner::{Agent, Event, Runner, Session};
use foreshorten::summarizer::{LlmSummarizer, SummaryMode};
use foreshorten::tool::{Tool, ToolCall, ToolOutput, ToolSpec};
use foreshorten::window::WindowResolver;
use foreshorten_core::CompactionState;
use foreshorten_core::transcript::{Entry, EntryKind, Part, RECALL_TOOL, Transcript as _};

const WINDOW: u64 = 12_000;

fn runner() -> Runner {
    Runner::new().windows(Arc::new(WindowResolver::new().configured(WINDOW)))
}

fn agent(model: &Arc<Model>, policy: Compaction) -> Agent {
    Agent::new(model.clone(), "m").tool(Arc::new(Reads { bytes: 1_500 })).context_policy(Arc::new(policy))
}

fn policy() -> Compaction {
    Compaction::new().reserve_output_tokens(2_000)
}

fn state(session: &Session) -> CompactionState {
    CompactionState::decode(&session.scratch().meta.0[STATE_KEY]).unwrap()
}

fn text(entry: &Entry) -> &str {
    match entry.parts.first() {
        Some(Part::Text(text)) => text,
        _ => "",
    }
}

async fn work(runner: &Runner, agent: &Agent, session: &mut Session, tasks: u32) {
    for task in 0..tasks {
        runner.run(agent, session, Message::user(format!("task {task}"))).await.unwrap();
    }
}

#[tokio::test]
async fn a_summary_rides_the_warm_prefix_and_is_counted_apart() {
    let model = Arc::new(Model::new(worker(6)));
    let runner = runner();
    let agent = agent(&model, policy().reserve_output_tokens(4_000).stages(summary_only()));
    let mut session = runner.open("s").await.unwrap();
    let mut policy_usage = foreshorten::context::PolicyUsage::default();
    let mut usage = Usage::default();
    for task in 0..8 {
        let outcome = runner.run(&agent, &mut session, Message::user(format!("task {task}"))).await.unwrap();
        policy_usage += outcome.policy_usage;
        usage += outcome.usage;
    }
    let summaries = model.summaries();
    assert!(summaries.len() >= 2 && policy_usage.calls as usize == summaries.len());
    let all = model.calls.lock().unwrap().clone();
    let turns: u64 = all.iter().filter(|call| call.purpose == Purpose::Turn).map(|call| call.tokens).sum();
    let asked: u64 = summaries.iter().map(|call| call.tokens).sum();
    assert_eq!((usage.input_tokens, policy_usage.tokens.input_tokens), (turns, asked));
    for (at, call) in all.iter().enumerate().filter(|(_, call)| call.purpose == Purpose::Summary) {
        let before = all[..at].iter().rev().find(|call| call.purpose == Purpose::Turn).unwrap();
        assert!(call.instruction.is_some() && call.tools == before.tools, "the same tools, one instruction more");
        assert!(call.entries.starts_with(&before.entries), "the prefix is that of the last call");
        assert_eq!(call.temperature, Some(0.0));
    }
    let shown = &model.turns().pop().unwrap().entries;
    assert!(shown.iter().any(|entry| entry.kind == EntryKind::User && text(entry).contains(SUMMARY)));
}

fn summary_only() -> Vec<foreshorten::context::StageSpec> {
    vec![foreshorten::context::StageSpec::Summarize(foreshorten_core::plan::SummarizeHistory::default())]
}

#[tokio::test]
async fn a_plain_summary_has_no_tools_and_names_ids_and_errors_within_a_fence() {
    let model = Arc::new(Model::new(worker(6)));
    let runner = runner();
    let summarizer = LlmSummarizer::new().mode(SummaryMode::Plain);
    let agent = agent(&model, policy().stages(summary_only()).summarizer(Arc::new(summarizer)));
    let mut session = runner.open("s").await.unwrap();
    work(&runner, &agent, &mut session, 6).await;
    let call: Call = model.summaries().remove(0);
    assert!(call.tools.is_empty() && call.instruction.is_none());
    assert_eq!(call.entries.len(), 2);
    assert!(text(&call.entries[1]).contains("call_0a") && text(&call.entries[1]).contains("```"));
}

#[tokio::test]
async fn a_broken_summarizer_never_stops_a_session_and_an_extract_stands_in_when_wanted() {
    for extract in [false, true] {
        let model = Arc::new(Model::new(worker(6)));
        *model.summary.lock().unwrap() = None;
        let runner = runner();
        let mut events = runner.subscribe();
        let agent = agent(&model, policy().stages(summary_only()).extractive_fallback(extract));
        let mut session = runner.open("s").await.unwrap();
        work(&runner, &agent, &mut session, 20).await;
        assert_eq!(model.refused(), 0);
        let failed = std::iter::from_fn(|| events.try_recv().ok())
            .filter(|event| matches!(event, Event::SummaryFailed { .. }))
            .count();
        let turns = model.turns().len();
        assert!(failed >= 3 && failed < turns / 4, "{failed} tries in {turns} turns: the breaker holds");
        let summaries = state(&session).notes().iter().filter(|note| !note.summary.text.is_empty()).count();
        assert_eq!(summaries > 0, extract, "an extract is a summary, a snip is not");
    }
}

#[tokio::test]
async fn a_pass_prepared_in_the_background_is_taken_at_once_when_one_is_due() {
    let model = Arc::new(Model::new(worker(6)));
    let runner = runner();
    let agent = agent(&model, policy().stages(summary_only()).background(0.9));
    let mut session = runner.open("s").await.unwrap();
    let mut notices = Vec::new();
    for task in 0..10 {
        notices.extend(runner.run(&agent, &mut session, Message::user(format!("task {task}"))).await.unwrap().notices);
    }
    let ahead = |notice: &&foreshorten_core::CompactionNotice| {
        notice.detail.iter().any(|line| line == "prepared in the background")
    };
    assert!(notices.iter().filter(ahead).count() >= 2, "{notices:?}");
    assert!(notices.iter().all(|notice| notice.tokens_after < notice.tokens_before));
    assert_eq!(model.refused(), 0);
    let turns = model.turns();
    assert!(turns.iter().all(|call| call.tokens <= WINDOW));
}

#[tokio::test]
async fn compact_now_asks_with_the_focus_and_a_dry_run_decides_nothing() {
    let model = Arc::new(Model::new(worker(4)));
    let runner = runner();
    let agent = agent(&model, policy().stages(summary_only()));
    let mut session = runner.open("s").await.unwrap();
    work(&runner, &agent, &mut session, 1).await;
    let before = (state(&session), model.calls.lock().unwrap().len());
    let dry = runner.dry_run(&agent, &mut session).await.unwrap();
    assert!(dry.compacted && dry.tokens_after < dry.tokens_before);
    assert_eq!((state(&session), model.calls.lock().unwrap().len()), before);
    let done = runner.compact_now(&agent, &mut session, Some("the colour of the fox")).await.unwrap();
    assert!(done.compacted && done.notice.unwrap().manual);
    let asked = model.summaries().remove(0);
    let said = asked.instruction.unwrap_or_else(|| text(asked.entries.last().unwrap()).into());
    assert!(said.contains("the colour of the fox"), "{said}");
    let reopened = runner.open("s").await.unwrap();
    assert_eq!(state(&reopened).notes().len(), 1, "it is kept");
}

#[tokio::test]
async fn undo_takes_decisions_back_as_a_new_epoch_and_pins_stay_verbatim() {
    let model = Arc::new(Model::new(worker(4)));
    let runner = runner();
    let agent = agent(&model, policy());
    let mut session = runner.open("s").await.unwrap();
    work(&runner, &agent, &mut session, 1).await;
    let pinned = session.record().entries().position(|entry| entry.kind == EntryKind::ToolResult).unwrap();
    runner.pin(&agent, &mut session, pinned).await.unwrap();
    runner.compact_now(&agent, &mut session, None).await.unwrap();
    let decided = state(&session);
    assert!(!decided.records().is_empty());
    let refused = decided.records()[0].place.index as usize;
    assert!(runner.pin(&agent, &mut session, refused).await.is_err(), "a reduced entry cannot be pinned");
    runner.undo(&agent, &mut session).await.unwrap();
    let undone = state(&session);
    assert_eq!((undone.epoch(), undone.records().len()), (decided.epoch() + 1, 0));
    let outcome = runner.run(&agent, &mut session, Message::user("go on")).await.unwrap();
    assert!(outcome.text.starts_with("done"));
    let whole = session.record().get(pinned).unwrap().clone();
    assert!(model.turns().last().unwrap().entries.contains(&whole), "the pin is in every view");
}

#[tokio::test]
async fn every_pass_is_told_with_counts_and_the_lists_can_be_asked_for() {
    let model = Arc::new(Model::new(worker(8)));
    static CALLED: AtomicU32 = AtomicU32::new(0);
    let callback: foreshorten::runner::CompactedCallback = Arc::new(|event| {
        Box::pin(async move {
            assert!(!event.entries_after().is_empty());
            CALLED.fetch_add(1, Ordering::SeqCst);
        })
    });
    let runner = runner().on_compacted(callback);
    let mut events = runner.subscribe();
    let agent = agent(&model, policy());
    let mut session = runner.open("s").await.unwrap();
    work(&runner, &agent, &mut session, 4).await;
    let mut passes = 0;
    while let Ok(event) = events.try_recv() {
        if let Event::ContextCompacted(event) = event {
            passes += 1;
            assert!(event.notice.tokens_after < event.notice.tokens_before);
            assert_eq!(event.entries_after().len(), event.pieces_after);
            assert!(event.entries_before().len() == event.pieces_before && event.reason.is_some());
        }
    }
    assert!(passes > 0);
    assert_eq!(CALLED.load(Ordering::SeqCst), passes);
}

#[tokio::test]
async fn a_users_own_recall_tool_wins_and_without_recall_the_list_of_tools_is_the_agents() {
    struct Own;
    #[async_trait::async_trait]
    impl Tool for Own {
        fn spec(&self) -> ToolSpec {
            ToolSpec::new(RECALL_TOOL, "My own.", serde_json::json!({"type": "object"}))
        }
        async fn call(&self, _: ToolCall<'_>) -> ToolOutput {
            ToolOutput::text("mine")
        }
    }
    let model = Arc::new(Model::new(|made, _| match made {
        0 => vec![Entry::tool_call("a", RECALL_TOOL, "{}")],
        _ => vec![Entry::assistant("done")],
    }));
    let runner = runner();
    let mut session = runner.open("s").await.unwrap();
    runner.run(&agent(&model, policy()).tool(Arc::new(Own)), &mut session, Message::user("go")).await.unwrap();
    assert_eq!(model.turns()[0].tools, ["read", RECALL_TOOL]);
    assert_eq!(text(session.record().get(2).unwrap()), "mine");
    runner.run(&agent(&model, policy().recall_tool(false)), &mut session, Message::user("go")).await.unwrap();
    assert_eq!(model.turns().pop().unwrap().tools, ["read"]);
}

#[tokio::test]
async fn the_earlier_proposals_pipeline_runs_under_its_own_names() {
    #[expect(deprecated, reason = "names from before the proposal are still taken")]
    let policy = CompactingContextPolicy { max_entries: Some(30), keep_recent_entries: 9, ..Default::default() }
        .max_tokens(WINDOW)
        .compact_at_ratio(0.7)
        .keep_recent_messages(10)
        .reactive_keep_recent_messages(6)
        .build()
        .unwrap();
    let model = Arc::new(Model::new(worker(8)));
    let runner = Runner::new();
    let agent = agent(&model, policy);
    let mut session = runner.open("s").await.unwrap();
    let outcome = runner.run(&agent, &mut session, Message::user("go")).await.unwrap();
    let reasons: Vec<String> = outcome.notices.iter().flat_map(|notice| notice.reasons.clone()).collect();
    assert!(reasons.iter().any(|reason| reason == "middle_snip" || reason == "tool_result_retention"), "{reasons:?}");
    assert!(session.record().len() > 40);
}
