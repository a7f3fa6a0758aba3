//! `compact` as a filter: what it does to one body, and what it leaves alone.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

use crate::common::talk::{Protocol, Talk, references};
use crate::common::{Room, foreshorten, session};
use serde_json::{Value, json};

/// More than any body here.
const LARGE: u64 = 2_000_000;

const BODIES: [&str; 4] = [
    "support.openai-chat.json",
    "research.openai-responses.json",
    "mixed.anthropic-messages.json",
    "huge-result.openai-chat.json",
];

/// The tools of a body. Lone surrogates elsewhere in it are no business of this test's parser.
fn tools(body: &[u8]) -> Vec<Value> {
    #[derive(serde::Deserialize)]
    struct Offer {
        tools: Option<Vec<Value>>,
        functions: Option<Vec<Value>>,
    }
    let offer: Offer = serde_json::from_slice(body).unwrap();
    offer.tools.or(offer.functions).unwrap_or_default()
}

#[test]
fn without_decisions_and_without_the_recall_tool_a_body_comes_out_byte_for_byte() {
    for name in BODIES {
        let body = std::fs::read(session(name)).unwrap();
        let room = Room::new();
        for _ in 0..2 {
            let done = room.compact(LARGE, &body, &["--no-recall-tool"]).good();
            assert!(done.out() == body, "{name}");
            assert!(!done.compacted());
        }
    }
}

#[test]
fn the_recall_tool_is_all_that_is_added_to_a_body_without_decisions() {
    for name in BODIES {
        let body = std::fs::read(session(name)).unwrap();
        let once = Room::new().compact(LARGE, &body, &[]).good();
        let (before, after) = (tools(&body), tools(once.out()));
        assert_eq!(after.len(), before.len() + 1, "{name}");
        assert_eq!(after[..before.len()], before, "{name}");
        assert!(after[before.len()].to_string().contains("recall_tool_result"), "{name}");
        // Cutting the added stretch out again gives the body.
        let (out, added) = (once.out(), once.out().len() - body.len());
        let at = crate::common::common(out, &body);
        let from = (0..=at).rev().find(|&from| out[..from] == body[..from] && out[from + added..] == body[from..]);
        assert!(from.is_some(), "{name}: more than one stretch was added");
    }
}

#[test]
fn the_recall_tool_is_appended_once() {
    for protocol in Protocol::ALL {
        let body = Talk::new(protocol).turns(2, 100).body();
        let once = Room::new().compact(LARGE, &body, &[]).good();
        let twice = Room::new().compact(LARGE, once.out(), &[]).good();
        assert!(once.out() == twice.out(), "{protocol:?}");
        let names: Vec<String> = tools(once.out()).iter().map(|tool| protocol.tool_name(tool).to_owned()).collect();
        assert_eq!(names, ["read_log", "recall_tool_result"], "{protocol:?}");
        assert_eq!(once.number("tokens_after"), twice.number("tokens_after"), "{protocol:?}: the tool is counted once");
    }
}

#[test]
fn a_tool_that_only_mentions_the_recall_tool_is_not_taken_for_it() {
    let body = br#"{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"x","description":"unlike recall_tool_result"}}]}"#;
    let done = Room::new().compact(LARGE, body, &[]).good();
    assert_eq!(tools(done.out()).len(), 2);
    let bare = br#"{"messages":[{"role":"user","content":"hi"}],"tools":[]}"#;
    let less = Room::new().compact(LARGE, bare, &[]).good();
    assert!(done.number("tokens_before") > less.number("tokens_before"), "the added schema counts in both");
}

#[test]
fn a_body_gets_the_recall_tool_wherever_its_tools_stand() {
    let messages = r#""messages":[{"role":"user","content":"hi"}]"#;
    for (body, key) in [
        (format!("{{{messages}}}"), "tools"),
        (format!("{{{messages},\"tools\":null}}"), "tools"),
        (format!("{{\"tools\":[],{messages}}}"), "tools"),
        (format!("{{{messages},\"functions\":[{{\"name\":\"f\"}}]}}"), "functions"),
    ] {
        let done = Room::new().compact(LARGE, body.as_bytes(), &[]).good();
        let out: Value = serde_json::from_slice(done.out()).unwrap();
        let last = out[key].as_array().unwrap().last().unwrap().to_string();
        assert!(last.contains("\"recall_tool_result\""), "{body}: {out}");
    }
}

#[test]
fn a_bare_list_comes_out_byte_for_byte() {
    for protocol in Protocol::ALL {
        let bare = Talk::new(protocol).turns(3, 100).bare();
        let done = Room::new().compact(LARGE, &bare, &["--format", protocol.name()]).good();
        assert!(done.out() == bare, "{protocol:?}");
    }
    for text in ["[]", "[ ]", " [\n]\n", "[]\r\n"] {
        for more in [&[][..], &["--format", "anthropic-messages"], &["--format", "openai-responses"]] {
            let done = Room::new().compact(LARGE, text.as_bytes(), more).good();
            assert_eq!(done.out(), text.as_bytes());
            assert_eq!(done.number("tokens_before"), 0);
        }
    }
}

#[test]
fn an_ambiguous_list_is_read_as_chat_and_a_format_once_asked_for_sticks() {
    let body = br#"{"messages":[{"role":"user","content":"hi"}]}"#;
    let shape = |out: &[u8]| tools(out)[0].get("input_schema").is_some();
    let room = Room::new();
    assert!(!shape(room.compact(LARGE, body, &[]).good().out()), "chat");
    let room = Room::new();
    assert!(shape(room.compact(LARGE, body, &["--format", "anthropic-messages"]).good().out()));
    assert!(shape(room.compact(LARGE, body, &[]).good().out()), "it sticks");
    let chat = room.compact(LARGE, body, &["--format", "openai-chat"]).good();
    assert!(!shape(chat.out()), "until another is asked for");

    let list = br#"[{"role":"user","content":"hi"},{"role":"assistant","content":"yes?"}]"#;
    let room = Room::new();
    room.compact(LARGE, list, &[]).good();
    let state = foreshorten(["state".as_ref(), room.state().as_os_str()], b"").good();
    assert!(state.text().contains("openai-chat"), "{}", state.text());
}

#[test]
fn a_body_of_another_protocol_than_the_session_is_still_read() {
    let room = Room::new();
    room.compact(LARGE, &Talk::new(Protocol::Anthropic).turns(2, 100).body(), &[]).good();
    let chat = Talk::new(Protocol::Chat).turns(2, 100).body();
    let done = room.compact(LARGE, &chat, &["--no-recall-tool"]).good();
    assert!(done.out() == chat);
}

#[test]
fn what_is_not_the_conversation_is_untouched_when_the_conversation_is_not() {
    for protocol in Protocol::ALL {
        let talk = Talk::new(protocol).turns(30, 3_000);
        let body = talk.body();
        let done = Room::new().compact(16_000, &body, &["--no-recall-tool"]).good();
        assert!(done.compacted() && done.number("tokens_after") <= done.number("usable"), "{protocol:?}");
        let list = format!("\"{}\": [", protocol.list());
        let start = String::from_utf8_lossy(&body).find(&list).unwrap() + list.len();
        assert_eq!(done.out()[..start], body[..start], "{protocol:?}");
        let end = body.len() - body.iter().rposition(|&byte| byte == b']').unwrap();
        assert_eq!(done.out()[done.out().len() - end..], body[body.len() - end..], "{protocol:?}");
    }
}

#[test]
fn messages_are_never_merged_reordered_or_made_up() {
    for protocol in Protocol::ALL {
        let talk = Talk::new(protocol).turns(40, 3_000);
        for window in ["8000", "16000", "32000"] {
            let done = Room::new().compact(window.parse().unwrap(), &talk.body(), &[]).good();
            let (before, after) = (talk.messages_in(&talk.body()), talk.messages_in(done.out()));
            // Without its content every message is one of the record, in its order; or a note of the user's role.
            let bones = |message: &Value| {
                let mut bones = message.clone();
                let mut id = Value::Null;
                if let Some(object) = bones.as_object_mut() {
                    if let Some(block) = object.get("content").and_then(|content| content.get(0)) {
                        id = json!([block["id"], block["tool_use_id"], block["type"]]);
                    }
                    object.remove("content");
                    object.remove("output");
                }
                json!([bones, id])
            };
            let mut record = before.iter();
            let mut notes = 0;
            for message in &after {
                if record.clone().any(|one| bones(one) == bones(message)) {
                    record.find(|one| bones(one) == bones(message)).unwrap();
                } else {
                    assert_eq!(message["role"], "user", "{protocol:?} {window}: {message}");
                    notes += 1;
                }
            }
            assert!(notes <= 2, "{protocol:?} {window}: {notes} notes");
            assert_eq!(before.last(), after.last(), "{protocol:?} {window}: the newest stays");
        }
    }
}

#[test]
fn the_newest_message_may_be_a_users_or_results() {
    for protocol in Protocol::ALL {
        let mut talk = Talk::new(protocol).turns(20, 3_000);
        let of_results = Room::new().compact(16_000, &talk.body(), &[]).good();
        talk.user("And the 08:10?");
        let of_user = Room::new().compact(16_000, &talk.body(), &[]).good();
        for (done, what) in [(of_results, "results"), (of_user, "user")] {
            assert!(done.compacted(), "{protocol:?} {what}");
            assert_eq!(
                talk.messages_in(done.out())[0]["role"],
                if protocol == Protocol::Chat { "system" } else { "user" }
            );
        }
    }
}

#[test]
fn without_a_recall_tool_markers_only_name_the_reference() {
    let body = Talk::new(Protocol::Chat).turns(30, 3_000).body();
    let with = Room::new().compact(16_000, &body, &[]).good();
    assert!(!references(with.out()).is_empty());
    let without = Room::new().compact(16_000, &body, &["--no-recall-tool"]).good();
    let text = String::from_utf8(without.out().to_vec()).unwrap();
    assert!(!text.contains("recall_tool_result") && text.contains("Reference: "), "{text}");
}

#[test]
fn a_continued_conversation_passes_through_untouched() {
    for body in [
        r#"{ "model":"m", "previous_response_id" : "resp_1", "input":[{"type":"function_call_output","call_id":"a","output":"x"}]}"#,
        r#"{"previous_response_id":"resp_1","input":"go on"}"#,
        r#"{"conversation":"conv_1","input":"go on" }"#,
        r#"{"conversation":{"id":"conv_1"},"input":[]}"#,
        r#"{"model":"claude-x","max_tokens":9,"thread":{"type":"continue","id":"t_1"},"messages":[{"role":"user","content":"go on"}]}"#,
    ] {
        let room = Room::new();
        let done = room.compact(1_000, body.as_bytes(), &[]).good();
        assert_eq!(done.out(), body.as_bytes());
        assert_eq!(done.notice["history"], "partial", "{body}");
        assert!(done.run.err.contains("untouched"), "{body}");
        assert_eq!(room.state_bytes(), None, "{body}");
    }
    let room = Room::new();
    room.compact(16_000, &Talk::new(Protocol::Responses).turns(20, 3_000).body(), &[]).good();
    let state = room.state_bytes();
    room.compact(16_000, br#"{"previous_response_id":"resp_1","input":"go on"}"#, &[]).good();
    assert_eq!(room.state_bytes(), state, "nor is the state touched");
}

#[test]
fn a_thread_that_is_only_being_created_is_a_whole_conversation() {
    let body = br#"{"max_tokens":9,"thread":{"type":"create"},"messages":[{"role":"user","content":"hi"}]}"#;
    let done = Room::new().compact(LARGE, body, &[]).good();
    assert_eq!(done.notice["history"], Value::Null);
}

#[test]
fn what_cannot_fit_is_written_all_the_same_and_named() {
    for protocol in Protocol::ALL {
        let mut talk = Talk::new(protocol).turns(10, 3_000);
        talk.user(&"a very long request ".repeat(2_000));
        let request = talk.messages.last().cloned();
        talk.turn(100);
        let done = Room::new().compact(8_000, &talk.body(), &[]).exits(4);
        assert!(done.run.err.contains("pinned messages"), "{}", done.run.err);
        assert_eq!(done.notice["cannot_fit"]["what"], "pinned messages", "{protocol:?}");
        let over = done.notice["cannot_fit"]["over"].as_u64().unwrap();
        assert_eq!(done.number("tokens_after"), done.number("usable") + over, "{protocol:?}");
        assert!(talk.messages_in(done.out()).contains(request.as_ref().unwrap()), "{protocol:?}: user text is whole");
    }
    let mut talk = Talk::new(Protocol::Anthropic);
    talk.system = "rules ".repeat(8_000);
    Room::new().compact(8_000, &talk.body(), &[]).exits(4).run.says(&["the system prompt"]);
}

#[test]
fn bad_input_is_refused_with_its_place_and_nothing_is_written() {
    let session = std::fs::read(session("coding-agent.claude-code.jsonl")).unwrap();
    for (body, words) in [
        (&b""[..], &["stdin", "line 1", "byte 0"][..]),
        (b"{\"messages\":[\n{\"role\":\"user\",\"content\":\"hi\"}", &["stdin", "line 2"]),
        (b"{\"messages\":[\n{\"role\":\"user\",,}]}", &["line 2", "byte 29"]),
        (b"{\"messages\":\"hello\"}", &["messages"]),
        (b"{\"model\":\"m\"}", &["expected"]),
        (b"hello", &["line 1", "byte 0", "JSON", "hello"]),
        (b"{\"messages\":[]} trailing", &["line 1", "byte 16"]),
        (&session, &["expected"]),
    ] {
        let room = Room::new();
        let store = room.store();
        room.compact(16_000, body, &["--store", store.to_str().unwrap()]).exits(3).run.says(words);
        assert!(room.names().is_empty(), "{:?}", room.names());
    }
}

#[test]
fn bad_input_leaves_the_state_of_a_session_alone() {
    let room = Room::new();
    room.compact(16_000, &Talk::new(Protocol::Chat).turns(20, 3_000).body(), &[]).good();
    let before = room.state_bytes();
    room.compact(16_000, b"{\"messages\":[", &[]).exits(3);
    assert_eq!(room.state_bytes(), before);
}

#[test]
fn a_command_line_that_cannot_be_meant_is_said_before_anything_is_read_or_written() {
    for (args, word) in [
        (&["compact"][..], "--window"),
        (&["compact", "--window", "200k"], "200k"),
        (&["compact", "--window", "0"], "--window"),
        (&["compact", "--window", "-5"], "--window"),
        (&["compact", "--window", "8000", "--frobnicate"], "--frobnicate"),
        (&["compact", "--window", "8000", "--format", "yaml"], "openai-chat"),
        (&["compact", "--window", "8000", "--summarizer", "magic"], "extractive"),
        (&["compact", "--window", "8000", "--last-input-tokens", "many"], "--last-input-tokens"),
    ] {
        foreshorten(args, b"{\"messages\":[]}").exits(2).says(&[word]);
    }
    let room = Room::new();
    room.compact(16_000, b"{\"messages\":[]}", &["--compact-to", "0.99"]).exits(2).run.says(&["compact_to"]);
    assert!(room.names().is_empty());
}

#[test]
fn a_format_that_is_no_request_is_refused_for_compact() {
    for format in ["claude-code", "codex", "gemini-cli", "swe-agent", "openhands"] {
        let done = Room::new().compact(16_000, b"{\"messages\":[]}", &["--format", format]);
        done.exits(3).run.says(&["anthropic-messages"]);
    }
}
