//! Trimming stored outputs, and recalling them afterwards.

use std::path::Path;
use std::sync::Arc;

use foreshorten::core::digest::Digest;
use foreshorten::core::transcript::{Entry, EntryKind, Part};
use foreshorten::core::{Compactor, Policy, Turn};
use foreshorten::drive::{SummarizerKind, settle};
use foreshorten::formats::Format;
use foreshorten::record::{Message, Record};
use foreshorten::session::{
    Commit, CommitError, FileSessions, MemorySessions, RewriteSessions, SessionStore as _, SqliteSessions, Trim,
    trim_tool_results,
};
use foreshorten::stores::{MemoryStore, ResultStore, StoreError, Stored};
use foreshorten::tool::{RecallTool, Tool as _, ToolCall, ToolOutput};

fn stores(folder: &Path) -> [Arc<dyn RewriteSessions>; 3] {
    [
        Arc::new(MemorySessions::new()),
        Arc::new(FileSessions::open(&folder.join("sessions")).unwrap()),
        Arc::new(SqliteSessions::open(&folder.join("sessions.db")).unwrap()),
    ]
}

fn long(letter: &str) -> String {
    letter.repeat(9_000)
}

/// Old runs with results of every kind, and a newest one.
async fn session(sessions: &dyn RewriteSessions) {
    let image = Entry::tool_result("c3", "seen").with(Part::Image("image/png".into(), b"aGk=".repeat(500)));
    let anthropic = format!(
        r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c2","content":"{}","is_error":true}},{{"type":"text","text":"and now?"}}]}}"#,
        long("b")
    );
    let old = [
        Message::user(long("u")),
        Message::of(vec![Entry::tool_call("c1", "read", "{}"), Entry::tool_call("c2", "run", "{}")]),
        Message::result("c1", long("漢")),
        Message::raw(Format::AnthropicMessages, anthropic).unwrap(),
        Message::of(vec![Entry::tool_call("c3", "look", "{}")]),
        Message::of(vec![image]),
        Message::result("c4", "short"),
    ];
    let old: Vec<Arc<Message>> = old.into_iter().map(Arc::new).collect();
    let new = [Arc::new(Message::result("c5", long("n")))];
    sessions.commit("s", Commit::new(0, "old").appending(&old).ending()).await.unwrap();
    sessions.commit("s", Commit::new(1, "new").appending(&new)).await.unwrap();
}

async fn load(sessions: &dyn RewriteSessions) -> Record {
    sessions.load("s").await.unwrap().unwrap().record()
}

async fn recall(tool: &RecallTool, record: &Record, reference: &str) -> ToolOutput {
    let arguments = format!("{{\"ref\":{reference:?},\"limit\":65536}}");
    tool.call(ToolCall::new("now", &arguments, record)).await
}

#[tokio::test]
async fn archived_outputs_of_older_runs_are_trimmed_and_recalled_whole() {
    let folder = tempfile::tempdir().unwrap();
    for sessions in stores(folder.path()) {
        session(&*sessions).await;
        let before = load(&*sessions).await;
        let store = Arc::new(MemoryStore::default());
        let report = trim_tool_results(&*sessions, "s", Trim::default(), Some(&*store)).await.unwrap();
        assert_eq!((report.version, report.trimmed, report.archived, report.skipped), (3, 3, 3, 0));
        let after = load(&*sessions).await;
        assert_eq!(after.entries().count(), before.entries().count());
        let tool = RecallTool::new(Some(store));
        for (old, new) in before.entries().zip(after.entries()) {
            let facts = |entry: &Entry| (entry.kind, entry.call_id.clone(), entry.name.clone(), entry.is_error);
            assert_eq!(facts(old), facts(new));
            if old == new {
                continue;
            }
            assert_eq!(new.parts.len(), 1);
            let recalled = recall(&tool, &after, &old.call_id).await;
            assert_eq!(recalled.parts[..old.parts.len()], old.parts[..]);
        }
        // The newest run, what was short, and what is no output are as they were.
        let kept: Vec<usize> =
            before.entries().zip(after.entries()).enumerate().filter(|(_, (a, b))| a == b).map(|(at, _)| at).collect();
        assert_eq!(kept, [0, 1, 2, 5, 6, 8, 9]);
        let again = trim_tool_results(&*sessions, "s", Trim::default(), None).await.unwrap();
        assert_eq!((again.trimmed, again.version), (0, 3));
    }
}

#[tokio::test]
async fn without_a_store_the_marker_says_that_the_rest_is_gone_and_names_it() {
    let sessions = MemorySessions::new();
    session(&sessions).await;
    let digest = Digest::of(long("漢").as_bytes());
    trim_tool_results(&sessions, "s", Trim { keep_chars: 3, ..Trim::default() }, None).await.unwrap();
    let after = load(&sessions).await;
    let text = after.messages()[2].text_of(EntryKind::ToolResult);
    assert!(
        text.starts_with("漢漢漢\n[") && text.contains("27,000 bytes") && text.contains(&digest.to_string()),
        "{text}"
    );
    let tool = RecallTool::new(None);
    for reference in ["c1", &digest.to_string()] {
        let recalled = recall(&tool, &after, reference).await;
        assert_eq!(recalled.parts[0], Part::Text("漢漢漢".into()));
        assert!(matches!(&recalled.parts[1], Part::Text(said) if said.contains("Only the beginning")), "{recalled:?}");
    }
    // A store that had it all along brings it back, archived by the trim or not.
    let store = MemoryStore::default();
    store.put(&digest, &Stored::whole(long("漢").into())).await.unwrap();
    let recalled = recall(&RecallTool::new(Some(Arc::new(store))), &after, "c1").await;
    assert_eq!(recalled, ToolOutput::text(long("漢")));
}

#[tokio::test]
async fn decisions_survive_a_trim_and_their_markers_still_bring_back_the_bytes() {
    let sessions = MemorySessions::new();
    let mut messages = vec![Arc::new(Message::user("go"))];
    for number in 0..12 {
        let id = format!("call_{number}");
        messages.push(Arc::new(Message::of(vec![Entry::tool_call(&id, "read", format!("{{\"n\":{number}}}"))])));
        messages.push(Arc::new(Message::result(&id, format!("{number}{}", long("x")))));
    }
    sessions.commit("s", Commit::new(0, "old").appending(&messages).ending()).await.unwrap();
    sessions.commit("s", Commit::new(1, "new").appending(&[Arc::new(Message::user("go on"))])).await.unwrap();
    let before = load(&sessions).await;
    let policy = Policy::default();
    let mut compactor = Compactor::new(&policy);
    compactor.sync(&before);
    compactor.begin(&before, Turn { window: Some(24_000), ..Turn::default() });
    settle(&mut compactor, &before, SummarizerKind::None, None);
    let state = compactor.state().clone();
    assert!(state.records().len() > 3);
    let store = Arc::new(MemoryStore::default());
    trim_tool_results(&sessions, "s", Trim::default(), Some(&*store)).await.unwrap();
    let after = load(&sessions).await;
    let mut resumed = Compactor::resume(&policy, state.clone());
    resumed.sync(&after);
    assert_eq!(resumed.state().records().len(), state.records().len());
    let (tool, encoded) = (RecallTool::new(Some(store)), state.encode());
    for record in state.records() {
        let original = before.get(record.place.index as usize).unwrap();
        for reference in [original.call_id.clone(), record.action.digest().unwrap().to_string()] {
            let arguments = format!("{{\"ref\":{reference:?}}}");
            let mut call = ToolCall::new("now", &arguments, &after);
            call.state = &encoded;
            assert_eq!(tool.call(call).await.parts[..1], original.parts[..], "{reference}");
        }
    }
}

#[tokio::test]
async fn a_signed_message_is_left_as_it_came_and_counted() {
    let sessions = MemorySessions::new();
    let raw = format!(
        r#"{{"role":"assistant","content":[{{"type":"thinking","thinking":"x","signature":"abc"}},{{"type":"text","text":"{}"}}]}}"#,
        long("a")
    );
    let signed = Arc::new(Message::raw(Format::AnthropicMessages, raw).unwrap());
    let user = format!(
        r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c","content":"{}"}},{{"type":"odd","x":1}}]}}"#,
        long("b")
    );
    let odd = Arc::new(Message::raw(Format::AnthropicMessages, user).unwrap());
    let all = [signed, odd];
    sessions.commit("s", Commit::new(0, "old").appending(&all).ending()).await.unwrap();
    let report = trim_tool_results(&sessions, "s", Trim { keep_runs: 0, ..Trim::default() }, None).await.unwrap();
    assert_eq!((report.trimmed, report.skipped, report.version), (0, 1, 1));
    assert_eq!(load(&sessions).await.messages(), all);
}

/// A store that is full.
struct Full;

#[async_trait::async_trait]
impl ResultStore for Full {
    async fn put(&self, _: &Digest, _: &Stored) -> Result<(), StoreError> {
        Err(StoreError::new("full"))
    }

    async fn get(&self, _: &Digest) -> Result<Option<Stored>, StoreError> {
        Ok(None)
    }
}

#[tokio::test]
async fn nothing_is_trimmed_that_the_store_does_not_take() {
    let sessions = MemorySessions::new();
    session(&sessions).await;
    let before = load(&sessions).await;
    let error = trim_tool_results(&sessions, "s", Trim::default(), Some(&Full)).await.unwrap_err();
    assert!(matches!(&error, CommitError::Store(_)), "{error}");
    assert_eq!(load(&sessions).await.messages(), before.messages());
    assert!(trim_tool_results(&sessions, "other", Trim::default(), None).await.is_err());
}
