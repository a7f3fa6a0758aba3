//! What a hostile user of the runner would try.

#![allow(clippy::unwrap_used, reason = "helpers of tests are test code")]

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use crate::model::{Model, Reads, worker};
use foreshorten::context::{Compaction, ContextPolicy, NoopContextPolicy, STATE_KEY};
use foreshorten::provider::{
    FinishReason, ModelReply, ModelRequest, OnDelta, Provider, ProviderError, Settings, Usage,
};
use foreshorten::record::Message;
use foreshorten::runner::{Agent, Event, Runner, Session};
use foreshorten::session::{Commit, MemorySessions, SessionStore as _};
use foreshorten::window::WindowResolver;
use foreshorten_core::CompactionState;
use foreshorten_core::transcript::{Entry, EntryKind, Part, Transcript as _};

fn runner(store: &Arc<MemorySessions>, window: u64) -> Runner {
    Runner::new().sessions(store.clone()).windows(Arc::new(WindowResolver::new().configured(window)))
}

fn agent(model: &Arc<Model>) -> Agent {
    let policy = Compaction::new().reserve_output_tokens(2_000);
    Agent::new(model.clone(), "m").tool(Arc::new(Reads { bytes: 1_500 })).context_policy(Arc::new(policy))
}

fn state(session: &Session) -> CompactionState {
    CompactionState::decode(&session.scratch().meta.0[STATE_KEY]).unwrap()
}

/// What every provider asks for: each batch of calls is followed by one result for each, and by nothing else.
fn legal(entries: &[Entry]) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut answering = false;
    for (at, entry) in entries.iter().enumerate() {
        match entry.kind {
            EntryKind::ToolCall if answering && !open.is_empty() => return Err(format!("{at}: a call before results")),
            EntryKind::ToolCall => {
                answering = false;
                open.push(&entry.call_id);
            }
            EntryKind::ToolResult => {
                answering = true;
                let found = open.iter().position(|id| *id == entry.call_id);
                open.remove(found.ok_or_else(|| format!("{at}: a result of no call: {}", entry.call_id))?);
            }
            EntryKind::Assistant | EntryKind::Reasoning if !answering && open.is_empty() => {}
            _ if !open.is_empty() => return Err(format!("{at}: {:?} before the results of {open:?}", entry.kind)),
            _ => answering = false,
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("no result of {open:?}")) }
}

fn all_legal(model: &Model) {
    for (at, call) in model.turns().iter().enumerate() {
        if let Err(why) = legal(&call.entries) {
            let kinds: Vec<_> = call.entries.iter().map(|entry| (entry.kind, entry.call_id.clone())).collect();
            panic!("call {at}: {why}\n{kinds:?}");
        }
    }
}

fn run_for(polls: usize, future: impl Future<Output = ()>) -> bool {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    (0..polls).any(|_| future.as_mut().poll(&mut context) == Poll::Ready(()))
}

#[test]
fn a_run_dropped_at_any_await_can_be_resumed_with_a_legal_prompt() {
    for more in [false, true] {
        for polls in 1..60 {
            let model = Arc::new(Model::new(worker(5)));
            let store = Arc::new(MemorySessions::default());
            let agent = agent(&model);
            let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let _inside = tokio.enter();
            let runner = runner(&store, 200_000);
            let mut session = tokio.block_on(runner.open("s")).unwrap();
            let done = run_for(polls, async {
                runner.run(&agent, &mut session, Message::user("go")).await.unwrap();
            });
            if session.record().is_empty() && !more {
                continue;
            }
            let input = more.then(|| Message::user("go on"));
            tokio.block_on(runner.run_with(&agent, &mut session, input, None)).unwrap();
            all_legal(&model);
            if done {
                break;
            }
        }
    }
}

#[tokio::test]
async fn two_runners_in_one_session_send_legal_prompts() {
    let model = Arc::new(Model::new(worker(6)));
    let store = Arc::new(MemorySessions::default());
    let agent = agent(&model);
    let one = async |name: &str| {
        let runner = runner(&store, 16_000);
        let mut session = runner.open("s").await.unwrap();
        for task in 0..4 {
            runner.run(&agent, &mut session, Message::user(format!("{name} {task}"))).await.unwrap();
        }
    };
    tokio::join!(one("first"), one("second"), one("third"));
    all_legal(&model);
}

#[tokio::test]
async fn a_count_is_taken_for_the_view_it_measured_and_for_no_other() {
    let model = Arc::new(Model::new(worker(6)));
    let store = Arc::new(MemorySessions::default());
    let (runner, agent) = (runner(&store, 40_000), agent(&model));
    let mut session = runner.open("s").await.unwrap();
    runner.run(&agent, &mut session, Message::user("go")).await.unwrap();
    // A call that fails: a view was made, and never counted.
    model.failures.lock().unwrap().push_back(ProviderError::TimedOut(std::time::Duration::ZERO));
    let before = state(&session).calibration().evidence();
    runner.run(&agent.clone().max_rounds(1), &mut session, Message::user("x".repeat(9_000))).await.unwrap_err();
    assert_eq!(state(&session).calibration().evidence(), before);
    model.failures.lock().unwrap().push_back(ProviderError::TimedOut(std::time::Duration::ZERO));
    runner.resume(&agent, &mut session).await.unwrap_err();
    runner.compact_now(&agent, &mut session, None).await.unwrap();
    assert_eq!(state(&session).calibration().evidence(), before, "the count of an older view was taken");
    runner.compact_now(&agent, &mut session, None).await.unwrap();
    assert_eq!(state(&session).calibration().evidence(), before, "the count of an older view was taken");
}

/// Tokens of a view beside so many tools.
type Counter = dyn Fn(&[Entry], usize) -> u64 + Send + Sync;

/// Counts as it is told, whatever it is sent.
struct Says(&'static str, Box<Counter>);

#[async_trait::async_trait]
impl Provider for Says {
    fn endpoint(&self) -> &str {
        self.0
    }

    async fn complete(&self, request: &ModelRequest<'_>, _: &OnDelta<'_>) -> Result<ModelReply, ProviderError> {
        let entries = request.view.entries(request.record);
        let usage =
            Usage { input_tokens: (self.1)(&entries, request.tools.len()), output_tokens: 4, ..Usage::default() };
        Ok(ModelReply::new(vec![Message::of(vec![Entry::assistant("fine")])], FinishReason::Stop).counted(usage))
    }
}

fn bytes(entries: &[Entry]) -> u64 {
    let part = |part: &Part| if let Part::Text(text) = part { text.len() as u64 } else { 0 };
    entries.iter().flat_map(|entry| &entry.parts).map(part).sum()
}

#[tokio::test]
async fn another_model_that_counts_less_has_truncated_nothing() {
    let store = Arc::new(MemorySessions::default());
    let runner = runner(&store, 200_000);
    let mut session = runner.open("s").await.unwrap();
    let one = Agent::new(Arc::new(Says("test://one", Box::new(|entries, _| bytes(entries) / 3))), "m");
    let two = Agent::new(Arc::new(Says("test://two", Box::new(|entries, _| bytes(entries) / 4))), "n");
    for (times, agent) in [(3_000, &one), (1, &two), (1, &one), (1, &two)] {
        let outcome = runner.run(agent, &mut session, Message::user("some words ".repeat(times))).await.unwrap();
        assert!(outcome.truncations.is_empty(), "{:?}", outcome.truncations);
    }
}

#[tokio::test]
async fn a_shorter_list_of_tools_has_truncated_nothing() {
    let store = Arc::new(MemorySessions::default());
    let runner = runner(&store, 200_000);
    let mut session = runner.open("s").await.unwrap();
    let says = Arc::new(Says("test://one", Box::new(|entries, tools| bytes(entries) / 4 + 2_000 * tools as u64)));
    let agent = Agent::new(says, "m").tool(Arc::new(Reads { bytes: 10 }));
    runner.run(&agent, &mut session, Message::user("some words ".repeat(2_000))).await.unwrap();
    let noop: Arc<dyn ContextPolicy> = Arc::new(NoopContextPolicy);
    let outcome = runner.run_with(&agent, &mut session, Some(Message::user("hi")), Some(&noop)).await.unwrap();
    assert!(outcome.truncations.is_empty(), "{:?}", outcome.truncations);
}

#[tokio::test]
async fn small_images_are_no_truncated_prompt() {
    let store = Arc::new(MemorySessions::default());
    let runner = runner(&store, 200_000);
    let mut session = runner.open("s").await.unwrap();
    let media = |entries: &[Entry]| {
        entries.iter().flat_map(|entry| &entry.parts).filter(|part| !matches!(part, Part::Text(_))).count() as u64
    };
    let says = Arc::new(Says("test://one", Box::new(move |entries, _| bytes(entries) / 4 + 85 * media(entries) + 20)));
    let agent = Agent::new(says, "m");
    for _ in 0..3 {
        let mut said = Entry::user("what is on these?");
        said.parts.extend((0..6).map(|_| Part::Image("image/png".into(), b"aGk=".to_vec())));
        let outcome = runner.run(&agent, &mut session, Message::of(vec![said])).await.unwrap();
        assert!(outcome.truncations.is_empty(), "{:?}", outcome.truncations);
    }
}

#[tokio::test]
async fn a_run_under_the_policy_that_does_nothing_keeps_what_another_runner_decided() {
    let model = Arc::new(Model::new(worker(6)));
    let store = Arc::new(MemorySessions::default());
    let (runner, agent) = (runner(&store, 24_000), agent(&model));
    let mut mine = runner.open("s").await.unwrap();
    runner.run(&agent, &mut mine, Message::user("go")).await.unwrap();
    let mut theirs = runner.open("s").await.unwrap();
    runner.run(&agent, &mut theirs, Message::user("and on")).await.unwrap();
    assert!(runner.compact_now(&agent, &mut theirs, None).await.unwrap().compacted);
    let decided = state(&theirs);
    let noop: Arc<dyn ContextPolicy> = Arc::new(NoopContextPolicy);
    let outcome = runner.run_with(&agent, &mut mine, Some(Message::user("hi")), Some(&noop)).await.unwrap();
    assert!(outcome.joined > 0);
    let again = runner.open("s").await.unwrap();
    assert_eq!(state(&again).records().len(), decided.records().len());
    assert_eq!(state(&again).notes().len(), decided.notes().len());
}

#[tokio::test]
async fn a_pin_outlives_a_pass_that_was_being_prepared() {
    let model = Arc::new(Model::new(worker(1)));
    let store = Arc::new(MemorySessions::default());
    let runner = runner(&store, 12_000);
    let policy = Compaction::new().reserve_output_tokens(2_000).without_summarizer().background(0.86);
    let agent = agent(&model).context_policy(Arc::new(policy));
    let mut session = runner.open("s").await.unwrap();
    let (mut pinned, mut passes) = (None, 0);
    for task in 0..14 {
        let outcome = runner.run(&agent, &mut session, Message::user(format!("task {task}"))).await.unwrap();
        passes += outcome.notices.len();
        // What is being prepared has time to be done.
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        if pinned.is_none() && outcome.last_input_tokens.is_some_and(|tokens| tokens > 7_350) {
            assert_eq!(passes, 0);
            let first = session.record().entries().position(|entry| entry.kind == EntryKind::ToolResult).unwrap();
            runner.pin(&agent, &mut session, first).await.unwrap();
            pinned = Some(first);
        }
    }
    assert!(passes > 0);
    let whole = session.record().get(pinned.unwrap()).unwrap().clone();
    assert!(model.turns().last().unwrap().entries.contains(&whole), "the pin is in the view");
}

#[tokio::test]
async fn acts_on_a_session_with_nothing_in_it_are_answered() {
    let model = Arc::new(Model::new(worker(0)));
    let store = Arc::new(MemorySessions::default());
    let (runner, agent) = (runner(&store, 12_000), agent(&model));
    let mut session = runner.open("s").await.unwrap();
    assert!(!runner.compact_now(&agent, &mut session, Some("nothing")).await.unwrap().compacted);
    assert!(!runner.dry_run(&agent, &mut session).await.unwrap().compacted);
    runner.undo(&agent, &mut session).await.unwrap();
    runner.undo(&agent, &mut session).await.unwrap();
    runner.undo_all(&agent, &mut session).await.unwrap();
    assert!(runner.pin(&agent, &mut session, 0).await.is_err());
    assert!(runner.pin(&agent, &mut session, usize::MAX).await.is_err());
    runner.unpin(&agent, &mut session, usize::MAX).await.unwrap();
    let outcome = runner.run(&agent, &mut session, Message::user("")).await.unwrap();
    assert!(outcome.text.starts_with("done"));
    assert!(runner.pin(&agent, &mut session, usize::MAX).await.is_err());
    runner.unpin(&agent, &mut session, usize::MAX).await.unwrap();
}

#[tokio::test]
async fn the_list_before_a_pass_is_what_was_sent_also_when_the_instructions_went() {
    let model = Arc::new(Model::new(worker(6)));
    let store = Arc::new(MemorySessions::default());
    let (runner, agent) = (runner(&store, 24_000), agent(&model));
    let mut session = runner.open("s").await.unwrap();
    runner.run(&agent.clone().system("Be brief."), &mut session, Message::user("go")).await.unwrap();
    let mut events = runner.subscribe();
    runner.compact_now(&agent, &mut session, None).await.unwrap();
    while let Ok(event) = events.try_recv() {
        if let Event::ContextCompacted(event) = event {
            let before = event.entries_before();
            assert_eq!(before.len(), event.pieces_before);
            let user = before.iter().position(|entry| entry.kind == EntryKind::User);
            assert!(before.is_empty() || user.is_some(), "{before:?}");
            return;
        }
    }
    panic!("there was a pass");
}

#[tokio::test]
async fn asking_what_would_be_decided_changes_nothing() {
    let model = Arc::new(Model::new(worker(6)));
    let store = Arc::new(MemorySessions::default());
    let (runner, agent) = (runner(&store, 24_000), agent(&model));
    let mut session = runner.open("s").await.unwrap();
    runner.run(&agent, &mut session, Message::user("go")).await.unwrap();
    let (meta, version) = (session.scratch().meta.clone(), store.load("s").await.unwrap().unwrap().version);
    assert!(runner.dry_run(&agent, &mut session).await.unwrap().compacted);
    assert_eq!(session.scratch().meta, meta);
    assert_eq!(store.load("s").await.unwrap().unwrap().version, version);
    let before = model.turns().last().unwrap().entries.clone();
    runner.run(&agent, &mut session, Message::user("on")).await.unwrap();
    assert!(model.turns()[7].entries.starts_with(&before));
    assert_eq!(model.summaries().len(), 0);
}

#[tokio::test]
async fn a_prompt_that_was_refused_bounds_what_is_compacted_by_hand_too() {
    let mut model = Model::new(worker(12)).windowed(9_000);
    model.refusal = "Your prompt is too long. Please reduce its length.";
    let model = Arc::new(model);
    let runner = Runner::new();
    let agent = agent(&model);
    let mut session = runner.open("s").await.unwrap();
    for task in 0..3 {
        runner.run(&agent, &mut session, Message::user(format!("task {task}"))).await.unwrap();
    }
    assert!(model.refused() > 0);
    assert!(runner.dry_run(&agent, &mut session).await.unwrap().window.is_some());
}

#[tokio::test]
async fn results_of_calls_with_equal_ids_stand_in_the_order_of_the_calls() {
    struct Slow;
    #[async_trait::async_trait]
    impl foreshorten::tool::Tool for Slow {
        fn spec(&self) -> foreshorten::tool::ToolSpec {
            foreshorten::tool::ToolSpec::new("slow", "Waits.", serde_json::json!({"type": "object"}))
        }
        async fn call(&self, call: foreshorten::tool::ToolCall<'_>) -> foreshorten::tool::ToolOutput {
            let rounds = if call.arguments.contains('1') { 20 } else { 1 };
            for _ in 0..rounds {
                tokio::task::yield_now().await;
            }
            foreshorten::tool::ToolOutput::text(call.arguments)
        }
    }
    let model = Arc::new(Model::new(|made, _| match made {
        0 => ["{\"n\":1}", "{\"n\":2}"].map(|arguments| Entry::tool_call("", "slow", arguments)).into(),
        _ => vec![Entry::assistant("done")],
    }));
    let store = Arc::new(MemorySessions::default());
    let runner = runner(&store, 100_000);
    let agent = agent(&model).tool(Arc::new(Slow));
    let mut session = runner.open("s").await.unwrap();
    runner.run(&agent, &mut session, Message::user("go")).await.unwrap();
    let results: Vec<&Entry> = session.record().entries().filter(|entry| entry.kind == EntryKind::ToolResult).collect();
    assert_eq!(results[0].parts, [Part::Text("{\"n\":1}".into())]);
    assert_eq!(results[1].parts, [Part::Text("{\"n\":2}".into())]);
    all_legal(&model);
}

#[tokio::test]
async fn errors_of_every_kind_leave_a_session_that_goes_on() {
    let errors = || {
        [
            ProviderError::RateLimited { retry_after: None, message: "slow".into() },
            ProviderError::Denied { status: 401, message: "key".into() },
            ProviderError::Invalid { status: Some(400), message: "roles".into() },
            ProviderError::Unavailable { status: None, message: "down".into() },
            ProviderError::TimedOut(std::time::Duration::ZERO),
            ProviderError::Connection("reset".into()),
            ProviderError::Garbled("half".into()),
            ProviderError::from_answer(Some(400), ""),
            ProviderError::from_answer(Some(413), ""),
        ]
    };
    let model = Arc::new(Model::new(worker(3)));
    let store = Arc::new(MemorySessions::default());
    let (runner, agent) = (runner(&store, 30_000), agent(&model));
    let agent = agent.settings(Settings { max_tokens: Some(1_000), ..Settings::default() });
    let mut session = runner.open("s").await.unwrap();
    for error in errors() {
        model.failures.lock().unwrap().push_back(error);
        let _ = runner.run(&agent, &mut session, Message::user("go")).await;
        let outcome = runner.resume(&agent, &mut session).await.unwrap();
        assert!(!outcome.text.is_empty());
    }
    all_legal(&model);
    let said = Commit::new(store.load("s").await.unwrap().unwrap().version, "elsewhere");
    store.commit("s", said.ending()).await.unwrap();
    runner.run(&agent, &mut session, Message::user("go")).await.unwrap();
    assert_eq!(
        model.made.load(Ordering::SeqCst) as usize,
        model.turns().iter().filter(|call| !call.refused).count() - 9
    );
}

#[tokio::test]
async fn under_the_policy_that_does_nothing_a_call_without_a_result_wedges_no_session() {
    let model = Arc::new(Model::new(worker(2)));
    let store = Arc::new(MemorySessions::default());
    let noop: Arc<dyn ContextPolicy> = Arc::new(NoopContextPolicy);
    let (runner, agent) = (runner(&store, 24_000), agent(&model).context_policy(noop));
    let call = |id: &str| Entry::tool_call(id, "read", "{}");
    let messages = [
        Message::user("go"),
        Message::of(vec![call("x"), call("y")]),
        Message::user("said in between"),
        Message::result("y", "late"),
        Message::of(vec![call("z")]),
    ]
    .map(Arc::new);
    store.commit("s", Commit::new(0, "elsewhere").appending(&messages)).await.unwrap();
    let mut session = runner.open("s").await.unwrap();
    runner.resume(&agent, &mut session).await.unwrap();
    all_legal(&model);
    let sent = &model.turns()[0].entries;
    assert!(sent.contains(&Entry::tool_result("y", "late")));
    assert_eq!(sent.iter().filter(|entry| entry.kind == EntryKind::ToolResult).count(), 3);
}
