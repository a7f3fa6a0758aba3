use std::sync::Mutex;

use foreshorten_core::marker::{MarkerStyle, trim_marker};
use foreshorten_core::state::CompactionState;
use foreshorten_core::transcript::Entry;
use foreshorten_core::{Compactor, Policy, Turn};

use super::*;
use crate::drive::{SummarizerKind, settle};
use crate::record::{Message, Record};
use crate::stores::{MemoryStore, StoreError};

/// A record of calls and results, long enough that a pass clears the older ones, and the state after it.
fn compacted(results: &[&str]) -> (Record, CompactionState) {
    let mut record = Record::new();
    record.push(Message::user("go"));
    for (number, result) in results.iter().enumerate() {
        let id = format!("call_{number}");
        record.push(Message::of(vec![Entry::tool_call(&id, "read", format!("{{\"path\":\"{number}\"}}"))]));
        record.push(Message::result(&id, *result));
    }
    let policy = Policy::default();
    let mut compactor = Compactor::new(&policy);
    compactor.sync(&record);
    compactor.begin(&record, Turn { window: Some(8_000), ..Turn::default() });
    settle(&mut compactor, &record, SummarizerKind::None, None);
    assert!(compactor.outcome().compacted);
    (record, compactor.state().clone())
}

/// Words, whose weight no fit of the tables moves far.
fn long(letter: &str) -> String {
    format!("{letter}: a line of what was read\n").repeat(110)
}

fn eight() -> (Record, CompactionState) {
    let texts: Vec<String> = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"].map(long).into();
    compacted(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}

async fn ask(tool: &RecallTool, record: &Record, state: &CompactionState, arguments: Value) -> ToolOutput {
    let (state, arguments) = (state.encode(), arguments.to_string());
    tool.call(ToolCall { state: &state, ..ToolCall::new("now", &arguments, record) }).await
}

fn texts(output: &ToolOutput) -> Vec<&str> {
    output
        .parts
        .iter()
        .filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None })
        .collect()
}

/// Counts how often it is asked, and answers nothing, rubbish or an error.
#[derive(Default)]
struct Odd {
    asked: Mutex<Vec<Digest>>,
    rubbish: bool,
    fails: bool,
}

#[async_trait]
impl ResultStore for Odd {
    async fn put(&self, _: &Digest, _: &Stored) -> Result<(), StoreError> {
        Ok(())
    }

    async fn get(&self, digest: &Digest) -> Result<Option<Stored>, StoreError> {
        self.asked.lock().unwrap().push(*digest);
        match (self.fails, self.rubbish) {
            (true, _) => Err(StoreError::new("on fire")),
            (_, true) => Ok(Some(Stored::whole(b"not what you asked for".to_vec()))),
            _ => Ok(None),
        }
    }
}

#[tokio::test]
async fn every_reference_in_a_view_brings_back_the_exact_bytes() {
    let (record, state) = eight();
    let tool = RecallTool::new(None);
    assert!(state.records().len() >= 3);
    for decided in state.records() {
        let entry = decided.place.index as usize;
        let original = ToolOutput::text(
            record
                .get(entry)
                .map(|entry| match &entry.parts[0] {
                    Part::Text(text) => text.clone(),
                    _ => unreachable!(),
                })
                .unwrap(),
        );
        let digest = decided.action.digest().unwrap().to_string();
        for reference in [record.get(entry).unwrap().call_id.clone(), digest] {
            assert_eq!(ask(&tool, &record, &state, json!({"ref": reference})).await, original, "{reference}");
        }
    }
}

#[tokio::test]
async fn the_store_comes_first_and_the_record_when_it_fails_or_lies() {
    let (record, state) = eight();
    let original = ToolOutput::text(long("a"));
    for (rubbish, fails) in [(false, false), (true, false), (false, true)] {
        let store = Arc::new(Odd { rubbish, fails, ..Odd::default() });
        let tool = RecallTool::new(Some(Arc::clone(&store) as _));
        assert_eq!(ask(&tool, &record, &state, json!({"ref": "call_0"})).await, original);
        assert_eq!(*store.asked.lock().unwrap(), [Digest::of(long("a").as_bytes())]);
        // What nothing was decided about is in the record alone.
        ask(&tool, &record, &state, json!({"ref": "call_11"})).await;
        assert_eq!(store.asked.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn pages_cover_the_content_and_say_where_the_next_begins() {
    let text: String = (0..9_000).map(|n| format!("{n}·")).collect();
    let record: Record = [Message::result("c", &text)].into_iter().collect();
    let tool = RecallTool::new(None);
    let (mut at, mut whole, mut pages) = (Some(0), String::new(), 0);
    while let Some(offset) = at {
        let output = ask(&tool, &record, &CompactionState::new(), json!({"ref": "c", "offset": offset})).await;
        let said = texts(&output);
        whole.push_str(said[0]);
        assert!(said[0].len() <= RecallTool::PAGE_BYTES && !output.is_error);
        at = said[1].split_once("begins at offset ").map(|next| next.1.trim_end_matches(".]").parse().unwrap());
        pages += 1;
    }
    assert_eq!(whole, text);
    assert_eq!(pages, text.len().div_ceil(RecallTool::PAGE_BYTES));
    let beyond = ask(&tool, &record, &CompactionState::new(), json!({"ref": "c", "offset": 9_999_999})).await;
    assert!(texts(&beyond).concat().contains("nothing at byte"), "{beyond:?}");
}

#[tokio::test]
async fn a_limit_is_kept_and_bounded_and_may_stand_in_quotes() {
    let record: Record = [Message::result("c", "x".repeat(200_000))].into_iter().collect();
    let tool = RecallTool::new(None);
    for (limit, bytes) in [(json!(10), 10), (json!("10"), 10), (json!(0), 16_384), (json!(9_999_999), 65_536)] {
        let output = ask(&tool, &record, &CompactionState::new(), json!({"ref": "c", "limit": limit})).await;
        assert_eq!(texts(&output)[0].len(), bytes, "{limit}");
    }
}

#[tokio::test]
async fn images_and_files_come_back_as_such_with_the_first_page() {
    let image = Part::Image("image/png".into(), b"aGk=".to_vec());
    let file = Part::File("application/pdf".into(), "a.pdf".into(), b"aGk=".to_vec());
    let entry = Entry::tool_result("c", "seen").with(image.clone()).with(file.clone()).with(Part::Opaque(vec![1, 2]));
    let record: Record = [Message::of(vec![entry])].into_iter().collect();
    let output = ask(&RecallTool::new(None), &record, &CompactionState::new(), json!({"ref": "c"})).await;
    assert_eq!(output.parts[..3], [Part::Text("seen".into()), image.clone(), file.clone()]);
    assert!(texts(&output)[1].contains("2 bytes that only the provider can read"));
    // From a store as well, after the record was trimmed.
    let store = MemoryStore::default();
    let digest = Digest::of_entry(&record, 0);
    store.put(&digest, &Stored::of(&record, 0)).await.unwrap();
    let marker = trim_marker(MarkerStyle::default(), &digest, 4, true, true);
    let trimmed: Record = [Message::result("c", marker)].into_iter().collect();
    let tool = RecallTool::new(Some(Arc::new(store)));
    for reference in ["c".to_owned(), digest.to_string()] {
        let output = ask(&tool, &trimmed, &CompactionState::new(), json!({"ref": reference})).await;
        assert_eq!(output.parts[..3], [Part::Text("seen".into()), image.clone(), file.clone()]);
    }
}

#[tokio::test]
async fn a_reused_id_is_answered_with_the_digests_that_tell_its_results_apart() {
    let mut record = Record::new();
    for text in ["one", "two", "two"] {
        record.push(Message::of(vec![Entry::tool_call("call_0", "read", "{\"path\":\"漢\"}")]));
        record.push(Message::result("call_0", text));
    }
    let tool = RecallTool::new(None);
    let output = ask(&tool, &record, &CompactionState::new(), json!({"ref": "call_0"})).await;
    let said = texts(&output).concat();
    assert!(output.is_error && said.contains("2 results") && said.contains("read {\"path\":\"漢\"}"), "{said}");
    for text in ["one", "two"] {
        let digest = Digest::of(text.as_bytes()).to_string();
        assert!(said.contains(&digest));
        let output = ask(&tool, &record, &CompactionState::new(), json!({"ref": digest})).await;
        assert_eq!(output, ToolOutput::text(text));
    }
    // Several that say the same are one.
    let same: Record = [Message::result("c", "x"), Message::result("c", "x")].into_iter().collect();
    assert_eq!(ask(&tool, &same, &CompactionState::new(), json!({"ref": "c"})).await, ToolOutput::text("x"));
}

#[tokio::test]
async fn an_unknown_reference_and_odd_arguments_say_what_to_do() {
    let record: Record = [Message::result("c", "x")].into_iter().collect();
    let tool = RecallTool::new(Some(Arc::new(MemoryStore::default())));
    let state = CompactionState::new().encode();
    for arguments in [
        r#"{"ref":"nope"}"#,
        r#"{"ref":"note:0123456789abcdef"}"#,
        r#"{"ref":"00000000000000000000000000000000"}"#,
        r#"{"ref":["c"]}"#,
        r#"{"ref":"c","offset":-1}"#,
        r#"{"ref":"c","limit":"many"}"#,
        r#"{"ref":""}"#,
        "{}",
        "[]",
        "\"c\"",
        "",
        "{\"ref\":",
    ] {
        let output = tool.call(ToolCall { state: &state, ..ToolCall::new("now", arguments, &record) }).await;
        let said = texts(&output).concat();
        assert!(output.is_error && said.contains("ref"), "{arguments}: {said}");
    }
}

#[tokio::test]
async fn search_lists_places_that_can_be_read_on_from() {
    let mut results: Vec<String> = (0..12).map(|n| format!("{}{n}", "x ".repeat(3_000))).collect();
    results[1].push_str(" The Needle is here");
    let (record, state) = compacted(&results.iter().map(String::as_str).collect::<Vec<_>>());
    let tool = RecallTool::new(None);
    for reference in ["", "whatever"] {
        let output = ask(&tool, &record, &state, json!({"ref": reference, "search": "needle"})).await;
        let said = texts(&output).concat();
        assert!(!output.is_error && said.starts_with("1 place"), "{said}");
        let (digest, rest) = said.split_once('"').unwrap().1.split_once('"').unwrap();
        let offset: usize = rest.trim_start_matches(" offset ").split_once(':').unwrap().0.parse().unwrap();
        let there = ask(&tool, &record, &state, json!({"ref": digest, "offset": offset, "limit": 6})).await;
        assert_eq!(texts(&there)[0], "Needle");
    }
    let within = ask(&tool, &record, &state, json!({"ref": "call_1", "search": "NEEDLE"})).await;
    assert!(texts(&within).concat().contains("\"call_1\" offset 6006:"), "{within:?}");
    let none = ask(&tool, &record, &state, json!({"ref": "call_0", "search": "needle"})).await;
    assert!(texts(&none).concat().contains("does not occur"), "{none:?}");
}

#[tokio::test]
async fn a_note_gives_back_all_it_covers_in_pages() {
    let mut record = Record::new();
    for turn in 0..40 {
        record.push(Message::user(format!("question {turn} {}", "q".repeat(500))));
        record.push(Message::of(vec![Entry::assistant(format!("answer {turn} {}", "a".repeat(500)))]));
    }
    let policy = Policy::default();
    let mut compactor = Compactor::new(&policy);
    compactor.sync(&record);
    compactor.begin(&record, Turn { window: Some(8_000), ..Turn::default() });
    settle(&mut compactor, &record, SummarizerKind::None, None);
    let state = compactor.state().clone();
    let note = &state.notes()[0];
    let tool = RecallTool::new(None);
    let (mut offset, mut whole) = (0usize, String::new());
    loop {
        let arguments = json!({"ref": note.reference(), "offset": offset, "limit": 5_000});
        let output = ask(&tool, &record, &state, arguments).await;
        let said = texts(&output);
        whole.push_str(said[0]);
        match said.get(1).and_then(|said| said.split_once("begins at offset ")) {
            Some(next) => offset = next.1.trim_end_matches(".]").parse().unwrap(),
            None => break,
        }
    }
    for entry in note.from..note.to {
        let Part::Text(text) = &record.get(entry as usize).unwrap().parts[0] else { panic!() };
        assert!(whole.contains(text.as_str()));
    }
    assert!(whole.starts_with("[user]\nquestion 0"));
    // A hit in what the assistant wrote can be read on from as well.
    let hits = ask(&tool, &record, &state, json!({"ref": "", "search": "answer 0"})).await;
    let said = texts(&hits).concat();
    let digest = said.split('"').nth(1).unwrap();
    let there = ask(&tool, &record, &state, json!({"ref": digest, "limit": 8})).await;
    assert_eq!(texts(&there)[0], "answer 0", "{said}");
}

#[tokio::test]
async fn content_of_another_session_is_not_given_out_unless_that_is_wanted() {
    let store = Arc::new(MemoryStore::default());
    let digest = Digest::of(b"secret");
    store.put(&digest, &Stored::whole(b"secret".to_vec())).await.unwrap();
    let record: Record = [Message::user(format!("what is {digest}?"))].into_iter().collect();
    let state = CompactionState::new();
    let arguments = json!({"ref": digest.to_string()});
    let confined = RecallTool::new(Some(Arc::clone(&store) as _));
    assert!(ask(&confined, &record, &state, arguments.clone()).await.is_error);
    let wide = RecallTool::new(Some(store)).over_all_sessions();
    assert_eq!(ask(&wide, &record, &state, arguments).await, ToolOutput::text("secret"));
}

#[tokio::test]
async fn what_was_trimmed_is_told_as_such_when_no_store_has_it() {
    let digest = Digest::of(long("a").as_bytes());
    let left = format!("aaa\n{}", trim_marker(MarkerStyle::default(), &digest, 3_000, false, false));
    let record: Record = [Message::of(vec![Entry::tool_result("c", left).failed()])].into_iter().collect();
    for store in [None, Some(Arc::new(Odd { fails: true, ..Odd::default() }) as Arc<dyn ResultStore>)] {
        let output = ask(&RecallTool::new(store), &record, &CompactionState::new(), json!({"ref": "c"})).await;
        let said = texts(&output);
        assert_eq!(said[0], "aaa");
        assert!(said[1].contains("a call that failed") && said[1].contains("Only the beginning"), "{said:?}");
    }
}

#[tokio::test]
async fn a_state_that_cannot_be_read_leaves_the_record() {
    let record: Record = [Message::result("c", "x")].into_iter().collect();
    let call = ToolCall { state: b"rubbish", ..ToolCall::new("now", r#"{"ref":"c","surplus":1}"#, &record) };
    assert_eq!(RecallTool::new(None).call(call).await, ToolOutput::text("x"));
}

#[test]
fn the_schema_is_the_one_of_the_filter() {
    let spec = make_recall_tool(None).spec();
    for format in [Format::OpenAiChat, Format::OpenAiResponses, Format::AnthropicMessages] {
        let filter = recall_tool_schema(format, RECALL_TOOL, RECALL_TOOL_DESCRIPTION);
        assert_eq!(spec.to_json(format), serde_json::from_str::<Value>(&filter).unwrap());
    }
}
