//! Records that change protocol on the way.

#![allow(clippy::unwrap_used, reason = "helpers of tests are test code")]

use foreshorten::formats::Format;
use foreshorten::record::{Message, Record};
use foreshorten::view::View;
use foreshorten_core::transcript::Entry;
use serde_json::Value;

fn written(record: &Record, format: Format) -> Vec<Value> {
    serde_json::from_str(&record.write(&View::of(record), format).unwrap().messages).unwrap()
}

fn responses_batch() -> Record {
    let item = |json: &str| Message::raw(Format::OpenAiResponses, json).unwrap();
    [
        Message::user("go"),
        item(r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}"#),
        item(r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"two at once"}]}"#),
        item(r#"{"type":"function_call","call_id":"a","name":"read","arguments":"{}"}"#),
        item(r#"{"type":"function_call","call_id":"b","name":"read","arguments":"{}"}"#),
        Message::result("a", "1"),
        Message::result("b", "2"),
    ]
    .into_iter()
    .collect()
}

#[test]
fn calls_that_came_as_items_of_their_own_are_one_message_where_the_protocol_wants_it() {
    let messages = written(&responses_batch(), Format::OpenAiChat);
    let shape: Vec<(&str, usize)> = messages
        .iter()
        .map(|one| (one["role"].as_str().unwrap(), one["tool_calls"].as_array().map_or(0, Vec::len)))
        .collect();
    assert_eq!(shape, [("user", 0), ("assistant", 2), ("tool", 0), ("tool", 0)], "{messages:?}");
    assert_eq!(messages[1]["content"], "two at once");
    let messages = written(&responses_batch(), Format::AnthropicMessages);
    let roles: Vec<&str> = messages.iter().map(|one| one["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
}

#[test]
fn items_of_one_answer_that_come_one_by_one_give_the_same_bytes_as_all_at_once() {
    let whole = responses_batch();
    let mut grown = Record::new();
    for message in whole.messages() {
        grown.push(message.clone());
        for format in [Format::OpenAiChat, Format::AnthropicMessages] {
            grown.write(&View::of(&grown), format).unwrap();
        }
    }
    for format in [Format::OpenAiChat, Format::AnthropicMessages, Format::OpenAiResponses] {
        assert_eq!(written(&grown, format), written(&whole, format), "{format}");
    }
}

#[test]
fn call_ids_that_a_server_uses_again_are_unique_where_the_protocol_wants_it() {
    let call = |id: &str| Entry::tool_call(id, "read", "{}");
    let record: Record = [
        Message::user("go"),
        Message::of(vec![call("call_0"), call("call_1")]),
        Message::result("call_1", "first 1"),
        Message::result("call_0", "first 0"),
        Message::of(vec![call("call_0"), call(""), call("f:1"), call("f.1")]),
        Message::result("f.1", "second f.1"),
        Message::result("call_0", "second 0"),
        Message::result("", "second nameless"),
        Message::result("f:1", "second f:1"),
    ]
    .into_iter()
    .collect();
    let messages = written(&record, Format::AnthropicMessages);
    let mut ids: Vec<&str> = Vec::new();
    for pair in messages.windows(2).filter(|pair| pair[0]["role"] == "assistant") {
        let mut called: Vec<&str> =
            pair[0]["content"].as_array().unwrap().iter().map(|block| block["id"].as_str().unwrap()).collect();
        let mut answered: Vec<&str> =
            pair[1]["content"].as_array().unwrap().iter().map(|block| block["tool_use_id"].as_str().unwrap()).collect();
        ids.extend(&called);
        called.sort_unstable();
        answered.sort_unstable();
        assert_eq!(called, answered);
    }
    assert_eq!(ids.len(), 6);
    assert!(ids.iter().all(|id| !id.is_empty()), "{ids:?}");
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
    let text = serde_json::to_string(&messages).unwrap();
    for said in ["second f.1", "second f:1"] {
        let call = if said.ends_with(":1") { ids[4] } else { ids[5] };
        assert!(text.contains(&format!(r#""content":"{said}","tool_use_id":"{call}""#)), "{said}: {text}");
    }
}
