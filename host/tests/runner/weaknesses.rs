//! What was found wrong with the reference system around its runner (`d8_…` is entry D8). The core's own are in
//! `core/tests`.
#![allow(clippy::unwrap_used, reason = "helpers of tests are test code")]

use std::sync::Arc;

use crate::model::{Model, Reads, worker};
use foreshorten::context::{Compaction, STATE_KEY, StageSpec};
use foreshorten::provider::http::{HttpOptions, OpenAiChat};
use foreshorten::provider::{ProviderError, Settings};
use foreshorten::record::Message;
use foreshorten::runner::{Agent, Runner};
use foreshorten::session::{Commit, FileSessions, SessionStore as _};
use foreshorten::stores::{FileStore, ResultStore, Stored};
use foreshorten::window::{WindowResolver, WindowSource};
use foreshorten_core::CompactionState;
use foreshorten_core::digest::Digest;
use foreshorten_core::plan::SummarizeHistory;
use foreshorten_core::transcript::{Entry, OwnedTranscript};
use foreshorten_simulator::{Config, Simulator};

#[tokio::test]
async fn a11_a_segment_without_state_forgets_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(FileSessions::open(folder.path()).unwrap());
    let model = Arc::new(Model::new(worker(12)));
    let agent = Agent::new(model.clone(), "m").tool(Arc::new(Reads { bytes: 3_000 }));
    let windows = || Arc::new(WindowResolver::new().configured(16_000));
    let runner = Runner::new().sessions(store.clone()).windows(windows());
    let mut session = runner.open("s").await.unwrap();
    runner.run(&agent, &mut session, Message::user("go")).await.unwrap();
    let state =
        |session: &foreshorten::runner::Session| CompactionState::decode(&session.scratch().meta.0[STATE_KEY]).unwrap();
    let before = state(&session);
    assert!(!before.records().is_empty());
    // A web page's "stop" writes what the user said, and no state.
    let said = [Arc::new(Message::user("stop"))];
    let version = store.load("s").await.unwrap().unwrap().version;
    store.commit("s", Commit::new(version, "web").appending(&said).ending()).await.unwrap();
    let asked = model.summaries().len();
    let runner = Runner::new().sessions(store).windows(windows());
    let mut session = runner.open("s").await.unwrap();
    assert_eq!(state(&session), before);
    runner.run(&agent.clone().max_rounds(1), &mut session, Message::user("go on")).await.unwrap();
    assert_eq!((model.summaries().len(), state(&session).epoch()), (asked, before.epoch()));
}

#[tokio::test]
async fn b19_the_requests_own_output_limit_is_what_a_view_leaves_free() {
    let model = Arc::new(Model::new(worker(20)).windowed(40_000));
    let settings = Settings { max_tokens: Some(15_000), ..Settings::default() };
    let agent = Agent::new(model.clone(), "m").tool(Arc::new(Reads { bytes: 3_000 })).settings(settings);
    let runner = Runner::new().windows(Arc::new(WindowResolver::new().configured(40_000)));
    let mut session = runner.open("s").await.unwrap();
    runner.run(&agent, &mut session, Message::user("go")).await.unwrap();
    let turns = model.turns();
    assert!(turns.iter().all(|call| !call.refused && call.tokens <= 25_000));
    assert!(turns.iter().filter(|call| call.max_tokens == Some(15_000)).count() * 10 >= turns.len() * 9);
}

#[tokio::test]
async fn d1_line_ends_and_any_bytes_come_back_from_a_file_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(folder.path()).unwrap();
    let text = "a\r\nb\rprogress\n\u{0}\u{2028}\u{FFFD}";
    let record = OwnedTranscript::from(vec![Entry::tool_result("c", text)]);
    let digest = Digest::of_entry(&record, 0);
    ResultStore::put(&store, &digest, &Stored::of(&record, 0)).await.unwrap();
    let found = ResultStore::get(&store, &digest).await.unwrap().unwrap();
    assert_eq!(found.text(), text.as_bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn d8_models_that_refuse_a_temperature_still_write_summaries() {
    let mut config = Config { seed: 3, ..Config::default() };
    config.window.tokens = 16_000;
    let simulator = Simulator::start(config).unwrap();
    let options = HttpOptions::new().base_url(format!("{}/v1", simulator.base_url())).key(Config::KEY);
    let summary = StageSpec::Summarize(SummarizeHistory::default());
    let agent = Agent::new(Arc::new(OpenAiChat::new(options).unwrap()), "gpt-5")
        .settings(Settings { max_tokens: Some(2_000), ..Settings::default() })
        .tool(Arc::new(Reads { bytes: 3_000 }))
        .context_policy(Arc::new(Compaction::new().stages(vec![summary])));
    let runner = Runner::new().windows(Arc::new(WindowResolver::new().configured(16_000)));
    let mut session = runner.open("s").await.unwrap();
    for _ in 0..3 {
        runner.run(&agent, &mut session, Message::user("go")).await.unwrap();
    }
    let stats = simulator.stats();
    assert!(stats.summaries > 0, "{stats:?}");
    let state = CompactionState::decode(&session.scratch().meta.0[STATE_KEY]).unwrap();
    assert!(state.breaker().failures() == 0 && state.notes().iter().any(|note| !note.summary.text.is_empty()));
}

#[tokio::test]
async fn d10_a_summary_shares_the_prefix_of_the_conversation_or_is_written_while_it_goes_on() {
    let model = Arc::new(Model::new(worker(6)));
    let runner = Runner::new().windows(Arc::new(WindowResolver::new().configured(12_000)));
    let stages = vec![StageSpec::Summarize(SummarizeHistory::default())];
    let policy = Compaction::new().reserve_output_tokens(4_000).stages(stages);
    let agent = Agent::new(model.clone(), "m").tool(Arc::new(Reads { bytes: 1_500 })).context_policy(Arc::new(policy));
    let mut session = runner.open("s").await.unwrap();
    for _ in 0..4 {
        runner.run(&agent, &mut session, Message::user("go")).await.unwrap();
    }
    let all = model.calls.lock().unwrap().clone();
    let asked = all.iter().position(|call| call.instruction.is_some()).unwrap();
    let before = &all[asked - 1].entries;
    assert!(all[asked].entries.starts_with(before) && all[asked].tools == all[asked - 1].tools);
}

#[tokio::test]
async fn e3_a_probe_that_failed_is_tried_again_and_is_no_answer_for_the_life_of_a_process() {
    let model = Arc::new(Model::new(worker(0)));
    let down = || Err(ProviderError::Unavailable { status: Some(503), message: "down".into() });
    model.listed.lock().unwrap().extend([down(), down(), Ok(Some(32_768))]);
    let windows = WindowResolver::new().ask_again_after(std::time::Duration::ZERO);
    assert_eq!(windows.resolve(&*model, "m").await, None);
    assert_eq!(windows.resolve(&*model, "m").await, None);
    assert_eq!(windows.resolve(&*model, "m").await.unwrap().source, WindowSource::Listed);
    let patient = WindowResolver::new();
    model.listed.lock().unwrap().extend([down(), Ok(Some(1_000))]);
    assert_eq!(patient.resolve(&*model, "m").await, None);
    assert_eq!(patient.resolve(&*model, "m").await, None, "but not on every turn");
}
