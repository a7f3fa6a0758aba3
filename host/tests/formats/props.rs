//! Whatever the bytes: a value or an error, never a panic; and what is accepted comes out as it went in.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

use std::collections::HashMap;

use crate::oracle::{asked, try_all, walk};
use foreshorten::formats::{Format, ToolsEdit, parse_body, recall_tool_schema};
use foreshorten_core::transcript::Transcript as _;
use proptest::prelude::*;
use serde_json::value::RawValue;

/// Keys, types and values that readers look at, in any combination.
fn word() -> impl Strategy<Value = String> {
    proptest::sample::select(vec![
        "messages",
        "input",
        "role",
        "content",
        "type",
        "text",
        "tool_calls",
        "tool_call_id",
        "function",
        "arguments",
        "name",
        "id",
        "user",
        "assistant",
        "tool",
        "system",
        "tool_use",
        "tool_result",
        "tool_use_id",
        "thinking",
        "signature",
        "image",
        "source",
        "image_url",
        "function_call",
        "function_call_output",
        "call_id",
        "output",
        "reasoning",
        "summary",
        "encrypted_content",
        "compaction",
        "payload",
        "response_item",
        "event_msg",
        "session_meta",
        "uuid",
        "parentUuid",
        "message",
        "history",
        "trajectory",
        "action",
        "observation",
        "args",
        "cause",
        "requests",
        "response",
        "usage",
        "toolCalls",
        "gemini",
        "sessionId",
        "result",
        "data",
        "url",
        "input_image",
        "is_error",
        "traj",
        "kwargs",
        "simulations",
        "tools",
        "thread",
        "previous_response_id",
        "isSidechain",
        "agentId",
        "data:image/png;base64,AA==",
        "data:,",
        "computer_call_output",
        "shell_call_output",
        "functions",
        "uri",
    ])
    .prop_map(str::to_owned)
}

fn leaf() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => word().prop_map(|word| format!("\"{word}\"")),
        1 => Just("null".to_owned()),
        1 => Just("true".to_owned()),
        1 => Just("-1.50e3".to_owned()),
        1 => Just(r#""\ud800 \u00e9\n""#.to_owned()),
        1 => Just("\"\"".to_owned()),
        1 => Just(format!("\"{}\"", "long ".repeat(20))),
    ]
}

fn json() -> impl Strategy<Value = String> {
    leaf().prop_recursive(6, 64, 6, |inner| {
        let space = proptest::sample::select(vec!["", " ", "\n"]);
        prop_oneof![
            (proptest::collection::vec(inner.clone(), 0..5), space.clone())
                .prop_map(|(items, space)| format!("[{space}{}]", items.join(&format!("{space},{space}")))),
            (proptest::collection::vec((word(), inner), 0..7), space).prop_map(|(members, space)| {
                let members: Vec<_> =
                    members.into_iter().map(|(key, value)| format!("\"{key}\":{space}{value}")).collect();
                format!("{{{space}{}{space}}}", members.join(","))
            }),
        ]
    })
}

/// A message that some protocol might send, with its parts in odd places.
fn message() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just(r#"{"type":"text","text":"words"}"#.to_owned()),
        Just(r#"{"type":"tool_result","tool_use_id":"a","content":"r"}"#.to_owned()),
        Just(r#"{"type":"tool_result","tool_use_id":"a"}"#.to_owned()),
        Just(r#"{"type":"tool_use","id":"a","name":"f","input":{"k":1}}"#.to_owned()),
        Just(r#"{"type":"thinking","thinking":"t","signature":"s"}"#.to_owned()),
        Just(r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}"#.to_owned()),
        Just(r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}"#.to_owned()),
        json(),
    ];
    let content = prop_oneof![
        2 => proptest::collection::vec(part, 0..4).prop_map(|parts| format!("[{}]", parts.join(", "))),
        1 => leaf(),
    ];
    let role = proptest::sample::select(vec!["user", "assistant", "tool", "system", "function"]);
    let more = prop_oneof![
        3 => Just(String::new()),
        1 => Just(r#","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b"}]"#.to_owned()),
        1 => Just(r#","reasoning_content":"why","tool_call_id":"a""#.to_owned()),
        1 => Just(r#","function_call":{"name":"f","arguments":"{}"}"#.to_owned()),
    ];
    (role, content, more).prop_map(|(role, content, more)| format!(r#"{{"role":"{role}" ,"content":{content}{more}}}"#))
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        try_all(&bytes);
    }

    #[test]
    fn arbitrary_json_never_panics_and_round_trips(text in json()) {
        try_all(text.as_bytes());
    }

    #[test]
    fn arbitrary_lines_never_panic(lines in proptest::collection::vec(json(), 1..5), cut in 0usize..400) {
        let text = lines.join("\n");
        let cut = (0..=cut.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        try_all(text.as_bytes());
        try_all(&text.as_bytes()[..cut]);
    }

    #[test]
    fn any_view_of_any_messages_is_json_with_honest_places(
        messages in proptest::collection::vec(message(), 0..6),
        choices in proptest::collection::vec(0u8..11, 40),
        shuffle in any::<bool>(),
        format in proptest::sample::select(vec![Format::OpenAiChat, Format::AnthropicMessages, Format::OpenAiResponses]),
    ) {
        let name = if format == Format::OpenAiResponses { "input" } else { "messages" };
        let text = format!("{{\"model\":\"m\" , \"{name}\":[ {} ] }}", messages.join(" , "));
        let body = parse_body(text.clone().into_bytes(), Some(format)).unwrap();
        walk(body.transcript());
        let mut pieces: Vec<_> =
            (0..body.transcript().len()).filter_map(|entry| asked(entry, choices[entry % choices.len()])).collect();
        if shuffle {
            pieces.reverse();
        }
        let schema = recall_tool_schema(format, "recall_tool_result", "d");
        let written = body.write(&pieces, ToolsEdit::Append { name: "recall_tool_result", schema: &schema });
        // Raw, since serde_json does not decode lone surrogates.
        let view: HashMap<String, &RawValue> = serde_json::from_slice(&written.bytes).unwrap();
        let list: Vec<&RawValue> = serde_json::from_str(view[name].get()).unwrap();
        let tools: Vec<&RawValue> = serde_json::from_str(view["tools"].get()).unwrap();
        prop_assert_eq!((list.len(), tools.len()), (written.message_starts.len(), 1));
        prop_assert_eq!(written.message_of_piece.len(), pieces.len());
        for (start, message) in written.message_starts.iter().zip(&list) {
            prop_assert!(written.bytes[*start..].starts_with(message.get().as_bytes()));
        }
        for message in written.message_of_piece.iter().flatten() {
            prop_assert!(*message < list.len());
        }
        // No list is left empty that was not.
        if !text.contains("[]") && !text.contains("[ ]") && !text.contains("[\n]") {
            prop_assert!(!String::from_utf8_lossy(&written.bytes).replace("\"messages\":[ ", "").contains(":[]"));
        }
        // The record is what it was.
        prop_assert_eq!(body.bytes(), text.as_bytes());
    }
}
