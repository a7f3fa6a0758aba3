//! Cancelling, resuming, sharing: nothing is lost.

#![allow(clippy::unwrap_used, reason = "helpers of tests are test code")]

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::model::{Model, Reads, worker};
use foreshorten::context::{Compaction, STATE_KEY};
use foreshorten::record::{Message, Record};
use foreshorten::runner::{Agent, Runner};
use foreshorten::session::{MemorySessions, SessionStore as _};
use foreshorten::window::WindowResolver;
use foreshorten_core::CompactionState;
use foreshorten_core::transcript::{Entry, EntryKind, Transcript as _};

fn runner(store: &Arc<MemorySessions>) -> Runner {
    Runner::new().sessions(store.clone()).windows(Arc::new(WindowResolver::new().configured(16_000)))
}

fn agent(model: &Arc<Model>) -> Agent {
    let policy = Compaction::new().reserve_output_tokens(2_000);
    Agent::new(model.clone(), "m").tool(Arc::new(Reads { bytes: 3_000 })).context_policy(Arc::new(policy))
}

fn lines(record: &Record) -> Vec<String> {
    record.messages().iter().map(|message| message.to_line()).collect()
}

/// Polls a future at most `polls` times, then drops it. Whether it was done.
fn run_for(polls: usize, future: impl Future<Output = ()>) -> bool {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    (0..polls).any(|_| future.as_mut().poll(&mut context) == Poll::Ready(()))
}

#[test]
fn a_run_dropped_at_any_await_leaves_the_old_session_or_the_new_one() {
    let (mut polls, mut finished) = (0, false);
    while !finished {
        polls += 1;
        let model = Arc::new(Model::new(worker(12)));
        let store = Arc::new(MemorySessions::default());
        let agent = agent(&model);
        let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _inside = tokio.enter();
        finished = run_for(polls, async {
            let runner = runner(&store);
            let mut session = runner.open("s").await.unwrap();
            runner.run(&agent, &mut session, Message::user("go")).await.unwrap();
        });
        let stored = tokio.block_on(store.load("s")).unwrap().unwrap_or_default();
        let record = stored.record();
        // What is there is a beginning of what a whole run would have recorded, and every call has at most one result.
        let (mut calls, mut results) = (0, 0);
        for entry in record.entries() {
            match entry.kind {
                EntryKind::ToolCall => calls += 1,
                EntryKind::ToolResult => results += 1,
                _ => {}
            }
        }
        assert!(results <= calls && calls <= 24, "{polls}");
        if let Some(bytes) = stored.meta().and_then(|meta| meta.0.get(STATE_KEY)) {
            CompactionState::decode(bytes).unwrap();
        }
        // It goes on from there, in the same process and in another.
        let outcome = tokio.block_on(async {
            let runner = runner(&store);
            let mut session = runner.open("s").await.unwrap();
            let before = lines(session.record());
            let outcome = runner.run(&agent, &mut session, Message::user("go on")).await.unwrap();
            assert_eq!(lines(session.record())[..before.len()], before);
            outcome
        });
        assert!(outcome.text.starts_with("done"), "{polls}: {outcome:?}");
        assert_eq!(model.refused(), 0);
    }
    assert!(polls > 30, "{polls} awaits were tried");
}

#[test]
fn a_session_in_hand_that_was_dropped_in_the_middle_is_what_the_store_has() {
    for polls in [3, 7, 11, 19, 23, 41] {
        let model = Arc::new(Model::new(worker(12)));
        let store = Arc::new(MemorySessions::default());
        let agent = agent(&model);
        let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _inside = tokio.enter();
        let runner = runner(&store);
        let mut session = tokio.block_on(runner.open("s")).unwrap();
        run_for(polls, async {
            runner.run(&agent, &mut session, Message::user("go")).await.unwrap();
        });
        tokio.block_on(runner.run(&agent, &mut session, Message::user("go on"))).unwrap();
        let stored = tokio.block_on(store.load("s")).unwrap().unwrap();
        assert_eq!(lines(&stored.record()), lines(session.record()), "{polls}");
    }
}

#[tokio::test]
async fn two_runners_of_one_session_lose_nothing_and_join_their_decisions() {
    let model = Arc::new(Model::new(worker(10)));
    let store = Arc::new(MemorySessions::default());
    let agent = agent(&model);
    let one = async |name: &str| {
        let runner = runner(&store);
        let mut session = runner.open("s").await.unwrap();
        let mut joined = 0;
        for task in 0..4 {
            let outcome = runner.run(&agent, &mut session, Message::user(format!("{name} {task}"))).await.unwrap();
            joined += outcome.joined;
        }
        joined
    };
    let (a, b) = tokio::join!(one("first"), one("second"));
    assert!(a + b > 0, "they did race");
    let stored = store.load("s").await.unwrap().unwrap();
    let record = stored.record();
    for name in ["first", "second"] {
        for task in 0..4 {
            let said = format!("{name} {task}");
            assert_eq!(record.entries().filter(|entry| **entry == Entry::user(said.as_str())).count(), 1, "{said}");
        }
    }
    let calls = record.entries().filter(|entry| entry.kind == EntryKind::ToolCall).count();
    let results = record.entries().filter(|entry| entry.kind == EntryKind::ToolResult).count();
    assert_eq!(calls, results, "every call has its result");
    let state = CompactionState::decode(&stored.meta().unwrap().0[STATE_KEY]).unwrap();
    assert!(!state.records().is_empty() || !state.notes().is_empty());
    // And it goes on.
    let runner = runner(&store);
    let mut session = runner.open("s").await.unwrap();
    runner.run(&agent, &mut session, Message::user("together")).await.unwrap();
}

#[tokio::test]
async fn decisions_outlive_segments_without_meta_and_another_system_prompt() {
    let model = Arc::new(Model::new(worker(15)));
    let store = Arc::new(MemorySessions::default());
    let agent = agent(&model);
    let first = runner(&store);
    let mut session = first.open("s").await.unwrap();
    let outcome = first.run(&agent.clone().system("Be brief."), &mut session, Message::user("go")).await.unwrap();
    assert!(!outcome.notices.is_empty());
    let decided = |session: &foreshorten::runner::Session| {
        let state = CompactionState::decode(&session.scratch().meta.0[STATE_KEY]).unwrap();
        (state.epoch(), state.records().len(), state.notes().len())
    };
    let before = decided(&session);
    // Something else writes a segment, without meta.
    let version = store.load("s").await.unwrap().unwrap().version;
    let said = [Arc::new(Message::user("by the way"))];
    let commit = foreshorten::session::Commit::new(version, "elsewhere").appending(&said).ending();
    store.commit("s", commit).await.unwrap();
    let second = runner(&store);
    let mut session = second.open("s").await.unwrap();
    let noted = session.last_notice().expect("the last notice is kept with the session");
    assert_eq!(Some(&noted), outcome.notices.last());
    let calls = model.turns().len();
    second.run(&agent.clone().system("Be verbose.").max_rounds(1), &mut session, Message::user("on")).await.unwrap();
    let after = decided(&session);
    assert!(after.0 == before.0 && after.1 + after.2 >= before.1.min(1), "{before:?} {after:?}");
    assert!(model.turns()[calls].tokens < 16_000);
    assert_eq!(model.refused(), 0);
}

#[tokio::test]
async fn a_tool_that_panics_or_does_not_exist_is_told_to_the_model_and_batches_run_side_by_side() {
    use foreshorten::tool::{Tool, ToolCall, ToolOutput, ToolSpec};
    struct Panics;
    #[async_trait::async_trait]
    impl Tool for Panics {
        fn spec(&self) -> ToolSpec {
            ToolSpec::new("panics", "Does.", serde_json::json!({"type": "object"}))
        }
        async fn call(&self, _: ToolCall<'_>) -> ToolOutput {
            panic!("on purpose")
        }
    }
    struct Meets(tokio::sync::Barrier);
    #[async_trait::async_trait]
    impl Tool for Meets {
        fn spec(&self) -> ToolSpec {
            ToolSpec::new("meets", "Waits for the other call.", serde_json::json!({"type": "object"}))
        }
        async fn call(&self, _: ToolCall<'_>) -> ToolOutput {
            self.0.wait().await;
            ToolOutput::text("met")
        }
    }
    let model = Arc::new(Model::new(|made, _| match made {
        0 => vec![
            Entry::tool_call("a", "panics", "{}"),
            Entry::tool_call("b", "nowhere", "{}"),
            Entry::tool_call("c", "meets", "{}"),
            Entry::tool_call("d", "meets", "{}"),
        ],
        _ => vec![Entry::assistant("done")],
    }));
    let agent =
        Agent::new(model.clone(), "m").tool(Arc::new(Panics)).tool(Arc::new(Meets(tokio::sync::Barrier::new(2))));
    let runner = Runner::new();
    let mut session = runner.open("s").await.unwrap();
    runner.run(&agent, &mut session, Message::user("go")).await.unwrap();
    let failed: Vec<_> = session.record().entries().filter(|entry| entry.is_error).map(|e| e.call_id.clone()).collect();
    assert_eq!(failed.len(), 2);
    assert!(failed.contains(&"a".into()) && failed.contains(&"b".into()));
    assert_eq!(session.record().len(), 1 + 4 + 4 + 1);
}
