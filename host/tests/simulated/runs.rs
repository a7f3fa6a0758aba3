//! Hundreds of turns against a simulated provider that misbehaves by turns: no session is wedged, the record is complete,
//! every view is legal for its protocol, every marker brings back the exact bytes.
#![allow(clippy::unwrap_used, reason = "helpers of tests are test code")]

use std::sync::Arc;

use crate::agent::{Content, Given, PATIENCE, PROTOCOLS, provider, tools};
use foreshorten::context::{Compaction, STATE_KEY};
use foreshorten::provider::Settings;
use foreshorten::record::Message;
use foreshorten::runner::{Agent, RunError, Runner, Session};
use foreshorten::session::FileSessions;
use foreshorten::stores::MemoryStore;
use foreshorten::tool::{ToolCall, make_recall_tool};
use foreshorten::window::WindowResolver;
use foreshorten_core::transcript::{EntryKind, Part, RECALL_TOOL, Transcript as _, text_of};
use foreshorten_core::view::Piece;
use foreshorten_simulator::{
    Config, Fault, Of, Protocol, RateWording, RetryAfter, Rule, Simulator, Summary, UsageLie, Verdict,
};

/// Model calls of a run. The long form, 500, takes minutes: `FORESHORTEN_TURNS=500`.
fn turns() -> u32 {
    std::env::var("FORESHORTEN_TURNS").ok().and_then(|turns| turns.parse().ok()).unwrap_or(120)
}

/// Every misbehaviour, by turns.
fn misbehaviours() -> Vec<Rule> {
    let rate = |retry_after, wording| Fault::RateLimit { retry_after, wording };
    let faults = [
        rate(RetryAfter::Millis(2), RateWording::Requests),
        Fault::Status(500),
        Fault::Truncated,
        rate(RetryAfter::Unsaid, RateWording::TokensPerMinute),
        Fault::Usage(UsageLie::Zero),
        Fault::Reset,
        Fault::Status(529),
        Fault::Usage(UsageLie::Missing),
        Fault::InvalidJson,
        Fault::Usage(UsageLie::Huge),
        Fault::NoTerminalEvent,
        Fault::HangMidStream(3 * PATIENCE),
        Fault::ErrorEvent,
        Fault::Usage(UsageLie::OutputAsInput),
        Fault::Html(502),
        Fault::ResetMidStream,
        Fault::WrongContentType,
        Fault::Hang(3 * PATIENCE),
        Fault::EmptyAnswer,
        Fault::Status(503),
        Fault::Truncate { keep: 2_000, say: false },
        Fault::Truncate { keep: 2_000, say: true },
    ];
    let mut rules = Vec::new();
    let count = faults.len() as u64;
    for (at, fault) in faults.into_iter().enumerate() {
        let numbers = (0..200u64).map(|round| 9 + 7 * (round * count + at as u64)).collect();
        rules.push(Rule { when: foreshorten_simulator::When::In(numbers), of: Of::Turns, fault });
    }
    rules
}

fn config(window: u64) -> Config {
    let mut config = Config { seed: window, faults: misbehaviours(), ..Config::default() };
    config.window.tokens = window;
    // Twice the endpoint takes less than it did, and less than it says.
    config.window.announced = Some(window);
    let later = u64::from(turns());
    config.window.changes = vec![(later * 6 / 10, window * 7 / 8), (later * 8 / 10, window * 3 / 4)];
    config.agent.rounds = 12;
    config.models.window_field = Some("context_length".into());
    config.summaries = vec![
        Summary::Good,
        Summary::EmptyHeadings,
        Summary::Good,
        Summary::CallsTool,
        Summary::CutByLength,
        Summary::NoHeadings,
        Summary::Good,
    ];
    config
}

/// Works until the model was called so often, going on after errors that pass. Answers how many runs gave up.
async fn work(runner: &Runner, agent: &Agent, session: &mut Session, turns: u32) -> u32 {
    let (mut calls, mut gave_up, mut in_a_row, mut said) = (0, 0, 0, 0);
    let mut fresh = true;
    while calls < turns {
        let agent = agent.clone().max_rounds(turns - calls);
        let done = match fresh {
            true => {
                said += 1;
                runner
                    .run(
                        &agent,
                        session,
                        Message::user(format!("Task {said}: look into it, and then say what you found.")),
                    )
                    .await
            }
            false => runner.resume(&agent, session).await,
        };
        match done {
            Ok(outcome) => {
                calls += outcome.rounds;
                (fresh, in_a_row) = (true, 0);
            }
            Err(RunError::Provider(error)) => {
                assert!(error.is_transient(), "{error}");
                calls += 1;
                gave_up += 1;
                in_a_row += 1;
                fresh = false;
                assert!(in_a_row < 4, "wedged: {error}");
            }
            Err(error) => panic!("{error}"),
        }
    }
    gave_up
}

/// Brings back everything that the last view does not show, page by page, and holds it against the record.
async fn recalls_are_exact(session: &Session, store: &Arc<MemoryStore>, given: &Given) -> usize {
    let tool = make_recall_tool(Some(store.clone()));
    let state = session.scratch().meta.0[STATE_KEY].clone();
    let mut count = 0;
    for piece in session.last_view().pieces() {
        let Piece::Text { entry, text } = piece else { continue };
        let mark = "recall_tool_result(\"";
        let at = text.find(mark).unwrap_or_else(|| panic!("a marker without a way back: {text}")) + mark.len();
        let reference = &text[at..at + text[at..].find('"').unwrap()];
        let (mut whole, mut offset) = (String::new(), 0);
        loop {
            let arguments = serde_json::json!({"ref": reference, "offset": offset}).to_string();
            let call = ToolCall::new("x", &arguments, session.record()).within(session.id(), &state);
            let output = tool.call(call).await;
            let texts: Vec<&str> = output
                .parts
                .iter()
                .filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None })
                .collect();
            // The page is a part of its own; what is said about it stands behind.
            whole.push_str(texts[0]);
            let Some(next) = texts[1..].iter().find_map(|said| said.split("The next page begins at offset ").nth(1))
            else {
                break;
            };
            offset = next.split('.').next().unwrap().parse().unwrap();
        }
        let recorded = text_of(session.record(), entry);
        let gave = |text: &str| given.lock().unwrap().values().flatten().any(|given| given == text);
        if whole != recorded {
            // The marker of a recall result leads to the original, not to the page that was recalled.
            let original = reference.starts_with("note:") || gave(&whole);
            assert!(is_recall(session, entry) && original, "{reference}: {} of {}", whole.len(), recorded.len());
        } else {
            assert!(gave(&whole) || is_recall(session, entry), "what the tool gave is what is recorded");
        }
        count += 1;
    }
    count
}

/// Whether an entry answers a call of the recall tool.
fn is_recall(session: &Session, entry: usize) -> bool {
    let id = &session.record().get(entry).unwrap().call_id;
    session
        .record()
        .entries()
        .any(|call| call.kind == EntryKind::ToolCall && call.call_id == *id && call.name == RECALL_TOOL)
}

async fn long_run(protocol: Protocol, model: &str, window: u64) {
    let simulator = Simulator::start(config(window)).unwrap();
    let given = Given::default();
    let store = Arc::new(MemoryStore::default());
    let folder = tempfile::tempdir().unwrap();
    let sessions = Arc::new(FileSessions::open(folder.path()).unwrap());
    let settings = Settings { max_tokens: Some(window / 16), ..Settings::default() };
    let mut agent = Agent::new(provider(&simulator, protocol, "s"), model)
        .system("You look into things with tools.")
        .settings(settings)
        .context_policy(Arc::new(Compaction::new().store(store.clone()).build().unwrap()));
    for tool in tools(Content::Mixed, (window as usize / 3).min(40_000), &given) {
        agent = agent.tool(tool);
    }
    let runner = Runner::new().sessions(sessions.clone());
    let mut session = runner.open("s").await.unwrap();
    let half = turns() / 2;
    let mut gave_up = work(&runner, &agent, &mut session, half).await;
    // The process ends here, and another goes on.
    drop((session, runner));
    let runner = Runner::new().sessions(sessions);
    let mut session = runner.open("s").await.unwrap();
    gave_up += work(&runner, &agent, &mut session, half).await;

    let log = simulator.log();
    for record in &log {
        if let Verdict::Refused(reason, words) = &record.verdict {
            assert!(reason.code() == "overflow", "request {} is not legal: {} {words}", record.number, reason.code());
        }
    }
    // Every call the model made has its result in the record, once.
    let delivered: usize = log.iter().filter(|record| record.fault.is_none()).map(|record| record.calls.len()).sum();
    let kinds = |kind| session.record().entries().filter(|entry| entry.kind == kind).count();
    let (calls, results) = (kinds(EntryKind::ToolCall), kinds(EntryKind::ToolResult));
    assert!(calls >= delivered.saturating_sub(3) && results + 3 >= calls, "{delivered} {calls} {results}");
    let recalled = recalls_are_exact(&session, &store, &given).await;
    let stats = simulator.stats();
    let passes = session.last_notice().is_some();
    println!(
        "{protocol:?} {window}: {} requests, {} faults, {} overflows, {} summaries, {} recalls of the model, {recalled} markers \
         brought back, {} entries, {gave_up} runs went on after an error",
        stats.requests,
        stats.faults,
        stats.overflows,
        stats.summaries,
        stats.recalls,
        session.record().len(),
    );
    assert!(passes || window > 100_000, "no pass was made");
    let long: Vec<_> = log.iter().filter(|record| record.verdict.refused().is_some()).collect();
    for record in &long {
        println!(
            "  {protocol:?} {window}: request {} ({}) of {} tokens and {:?} of output was too long for {}",
            record.number,
            if record.summary { "summary" } else { "turn" },
            record.prompt_tokens,
            record.max_output,
            record.window,
        );
    }
    let turns_refused = long.iter().filter(|record| !record.summary).count() as u32;
    assert!(turns_refused <= 4 + turns() / 100, "{stats:?}");
}

fn run(protocol: Protocol, model: &'static str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::join!(
            long_run(protocol, model, 8_000),
            long_run(protocol, model, 32_000),
            long_run(protocol, model, 200_000),
        );
    });
}

#[test]
fn chat_at_8k_32k_and_200k_with_every_misbehaviour() {
    run(PROTOCOLS[0].0, PROTOCOLS[0].1);
}

#[test]
fn responses_at_8k_32k_and_200k_with_every_misbehaviour() {
    run(PROTOCOLS[1].0, PROTOCOLS[1].1);
}

#[test]
fn messages_at_8k_32k_and_200k_with_every_misbehaviour() {
    run(PROTOCOLS[2].0, PROTOCOLS[2].1);
}

/// A window that is enforced, not announced: one failed request in the life of the session, restart included.
#[tokio::test(flavor = "multi_thread")]
async fn an_unannounced_window_costs_one_request_in_each_protocol() {
    for (protocol, model) in PROTOCOLS {
        let mut config = Config { seed: 5, ..Config::default() };
        config.window.tokens = 24_000;
        config.agent.rounds = 10;
        let simulator = Simulator::start(config).unwrap();
        let given = Given::default();
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { max_tokens: Some(1_500), ..Settings::default() };
        let mut agent = Agent::new(provider(&simulator, protocol, "s"), model).settings(settings);
        for tool in tools(Content::Code, 9_000, &given) {
            agent = agent.tool(tool);
        }
        for _ in 0..3 {
            let sessions = Arc::new(FileSessions::open(folder.path()).unwrap());
            let runner = Runner::new().sessions(sessions).windows(Arc::new(WindowResolver::new()));
            let mut session = runner.open("s").await.unwrap();
            assert_eq!(work(&runner, &agent, &mut session, 40).await, 0);
        }
        let stats = simulator.stats();
        println!("{protocol:?}: {} requests, {} overflow", stats.requests, stats.overflows);
        assert_eq!((stats.overflows, stats.refusals), (1, 0), "{protocol:?}: {stats:?}");
    }
}
