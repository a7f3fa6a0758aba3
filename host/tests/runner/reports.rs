//! Public bug reports that concern the runner and what stands around it (`b14_…` is row B14). The core's own are in
//! `core/tests`.
#![allow(clippy::unwrap_used, reason = "helpers of tests are test code")]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::model::{Model, Reads, lines, worker};
use foreshorten::context::{Compaction, STATE_KEY, StageSpec};
use foreshorten::formats::Format;
use foreshorten::provider::{ProviderError, Purpose};
use foreshorten::record::{Message, Record};
use foreshorten::runner::{Agent, RunError, Runner};
use foreshorten::stores::{
    ArchiveContext, CompactionArchive as _, FileArchive, FileStore, ResultStore, StoreError, Stored,
};
use foreshorten::summarizer::{LlmSummarizer, SummaryMode};
use foreshorten::view::{View, ViewPiece};
use foreshorten::window::WindowResolver;
use foreshorten_core::digest::Digest;
use foreshorten_core::plan::SummarizeHistory;
use foreshorten_core::transcript::{Entry, EntryKind, Part, Transcript as _};

fn runner(window: u64) -> Runner {
    Runner::new().windows(Arc::new(WindowResolver::new().configured(window)))
}

fn agent(model: &Arc<Model>, policy: Compaction) -> Agent {
    Agent::new(model.clone(), "m").tool(Arc::new(Reads { bytes: 2_000 })).context_policy(Arc::new(policy))
}

fn summaries_only() -> Compaction {
    Compaction::new().reserve_output_tokens(2_000).stages(vec![StageSpec::Summarize(SummarizeHistory::default())])
}

#[tokio::test]
async fn b14_what_cannot_shrink_is_turned_down_once_and_the_providers_own_error_comes_out() {
    let model = Arc::new(Model::new(worker(1)).windowed(2_000));
    let runner = Runner::new();
    let mut session = runner.open("s").await.unwrap();
    let error = runner
        .run(&agent(&model, Compaction::new()), &mut session, Message::user("word ".repeat(4_000)))
        .await
        .unwrap_err();
    let RunError::Provider(ProviderError::Overflow(rejection)) = &error else { panic!("{error}") };
    assert!(rejection.message.contains("maximum context length is 2000"), "{error}");
    assert_eq!((model.turns().len(), model.summaries().len()), (1, 0), "one call, no summary");
}

#[tokio::test]
async fn b28_a_tier_that_may_not_use_the_long_window_is_no_overflow_and_nothing_is_learned() {
    let model = Arc::new(Model::new(worker(1)));
    let text =
        "Extra usage is required for long context requests. This account may not use the 1M context window tier.";
    model.failures.lock().unwrap().push_back(ProviderError::from_answer(Some(429), text));
    let runner = Runner::new();
    let mut session = runner.open("s").await.unwrap();
    let agent = agent(&model, Compaction::new());
    let error = runner.run(&agent, &mut session, Message::user("hi")).await.unwrap_err();
    assert!(!matches!(error, RunError::Provider(ProviderError::Overflow(_))), "{error}");
    runner.resume(&agent, &mut session).await.unwrap();
    let state = foreshorten_core::CompactionState::decode(&session.scratch().meta.0[STATE_KEY]).unwrap();
    assert!(state.windows().is_empty());
}

#[tokio::test]
async fn b29_an_error_that_is_only_quoted_in_the_conversation_is_no_error() {
    let quoted =
        "Error 400: This model's maximum context length is 4096 tokens. However, your messages resulted in 9000.";
    let model = Arc::new(Model::new(move |made, _| match made {
        0 => vec![Entry::assistant(quoted), Entry::tool_call("a", "nothing", "{}")],
        _ => vec![Entry::assistant(quoted)],
    }));
    let runner = Runner::new();
    let mut session = runner.open("s").await.unwrap();
    let outcome = runner.run(&agent(&model, Compaction::new()), &mut session, Message::user(quoted)).await.unwrap();
    assert_eq!((outcome.rejections, outcome.notices.len()), (0, 0));
    let state = foreshorten_core::CompactionState::decode(&session.scratch().meta.0[STATE_KEY]).unwrap();
    assert!(state.windows().is_empty() && session.record().len() == 5);
}

#[tokio::test]
async fn b43_what_is_said_while_a_summary_is_written_stays_in_the_view_verbatim() {
    let model = Arc::new(Model::new(worker(5)));
    let runner = runner(12_000);
    let agent = agent(&model, summaries_only().background(0.8));
    let mut session = runner.open("s").await.unwrap();
    for task in 0..12 {
        let said = format!("request number {task}");
        runner.run(&agent, &mut session, Message::user(said.as_str())).await.unwrap();
        let sent = model.turns().pop().unwrap().entries;
        assert!(sent.contains(&Entry::user(said.as_str())), "{said}");
    }
    assert!(!model.summaries().is_empty());
}

#[tokio::test]
async fn b58_the_plain_prompt_of_a_summary_is_text_alone() {
    let model = Arc::new(Model::new(worker(6)));
    let runner = runner(12_000);
    let plain = LlmSummarizer::new().mode(SummaryMode::Plain);
    let agent = agent(&model, summaries_only().summarizer(Arc::new(plain)));
    let mut session = runner.open("s").await.unwrap();
    let image = Entry::user("see").with(Part::Image("image/png".into(), b"aGk=".to_vec()));
    runner.run(&agent, &mut session, Message::of(vec![image])).await.unwrap();
    for _ in 0..5 {
        runner.run(&agent, &mut session, Message::user("go on")).await.unwrap();
    }
    let calls = model.summaries();
    assert!(!calls.is_empty());
    for call in calls {
        assert!(call.tools.is_empty() && call.purpose == Purpose::Summary);
        let kinds: Vec<EntryKind> = call.entries.iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, [EntryKind::System, EntryKind::User]);
        assert!(call.entries.iter().flat_map(|entry| &entry.parts).all(|part| matches!(part, Part::Text(_))));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn b64_what_is_kept_in_files_is_the_owners_alone_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("kept");
    let store = FileStore::open(&root.join("results")).unwrap();
    let archive = FileArchive::open(&root.join("archive")).unwrap();
    let record: Record =
        [Message::result("c", format!("key=sk-1234567890 {}", lines("x", 6_000)))].into_iter().collect();
    let content = Stored::of(&record, 0);
    ResultStore::put(&store, &Digest::of_entry(&record, 0), &content).await.unwrap();
    let context = ArchiveContext::new("../../s", "run");
    archive.save_transcript(&record, context, "test").await.unwrap();
    archive.save_tool_result(&content, "../c", context).await.unwrap();
    let mut open = vec![root];
    let mut files = 0;
    while let Some(path) = open.pop() {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        if path.is_dir() {
            assert_eq!(mode, 0o700, "{}", path.display());
            open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            assert_eq!(mode, 0o600, "{}", path.display());
            files += 1;
        }
    }
    assert!(files >= 3 && std::fs::read_dir(folder.path()).unwrap().count() == 1, "nothing outside of the root");
}

/// A store that fails at everything.
struct Broken;

#[async_trait::async_trait]
impl ResultStore for Broken {
    async fn put(&self, _: &Digest, _: &Stored) -> Result<(), StoreError> {
        Err(StoreError::new("no space left"))
    }
    async fn get(&self, _: &Digest) -> Result<Option<Stored>, StoreError> {
        Err(StoreError::new("no such device"))
    }
}

#[tokio::test]
async fn b66_a_store_that_fails_is_counted_and_recall_falls_back_to_the_record() {
    let model = Arc::new(Model::new(|made, seen: &[Entry]| {
        // Recalls what the first marker names, once there is one.
        let text = |entry: &Entry| match entry.parts.first() {
            Some(Part::Text(text)) => text.clone(),
            _ => String::new(),
        };
        let marked = seen.iter().map(text).find(|text| text.contains("recall_tool_result(\""));
        let named =
            marked.and_then(|text| Some(text.split("recall_tool_result(\"").nth(1)?.split('"').next()?.to_owned()));
        match named {
            Some(name) if made % 9 == 8 => {
                vec![Entry::tool_call(format!("r{made}"), "recall_tool_result", format!("{{\"ref\":\"{name}\"}}"))]
            }
            _ if made % 9 == 7 => vec![Entry::assistant("so far")],
            _ => vec![Entry::tool_call(format!("c{made}"), "read", format!("{{\"path\":\"{made}\"}}"))],
        }
    }));
    let runner = runner(9_000);
    let policy = Compaction::new().reserve_output_tokens(2_000).store(Arc::new(Broken));
    let agent = agent(&model, policy);
    let mut session = runner.open("s").await.unwrap();
    let mut failed = 0;
    for _ in 0..5 {
        failed += runner.run(&agent, &mut session, Message::user("go")).await.unwrap().store_failures;
    }
    assert!(failed > 0);
    let recalled: Vec<&Entry> = session
        .record()
        .entries()
        .filter(|entry| entry.kind == EntryKind::ToolResult && entry.call_id.starts_with('r'))
        .collect();
    assert!(!recalled.is_empty() && recalled.iter().all(|entry| !entry.is_error), "{recalled:?}");
    assert!(model.window.load(Ordering::SeqCst) > 9_000 && model.refused() == 0);
}

#[test]
fn b70_a_note_is_sent_in_the_users_role_and_neighbours_of_one_role_are_not_merged() {
    let record: Record = [Message::system("rules"), Message::user("old"), Message::user("new")].into_iter().collect();
    let view = View::new(vec![ViewPiece::Entry(0), ViewPiece::Note("what was".into()), ViewPiece::Entry(2)]);
    for format in [Format::OpenAiChat, Format::OpenAiResponses, Format::AnthropicMessages] {
        let messages = record.write(&view, format).unwrap().messages.clone();
        assert_eq!(messages.matches(r#""role":"user""#).count(), 2, "{messages}");
        assert!(messages.find("what was") < messages.find("new"), "{messages}");
    }
}
