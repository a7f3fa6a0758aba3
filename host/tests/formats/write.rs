//! Views written back into the three request protocols, byte for byte.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

use foreshorten::formats::{Body, Format, ToolsEdit, Written, parse_body, recall_tool_schema};
use foreshorten_core::transcript::{Transcript, text_of};
use foreshorten_core::view::Piece;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../testdata/formats/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn body(name: &str) -> Body {
    parse_body(fixture(name), None).unwrap()
}

fn all(body: &Body) -> Vec<Piece<'static>> {
    (0..body.transcript().len()).map(|entry| Piece::Entry { entry }).collect()
}

fn written(body: &Body, pieces: &[Piece<'_>]) -> String {
    let written = body.write(pieces, ToolsEdit::Keep);
    coherent(&written, pieces);
    String::from_utf8(written.bytes).unwrap()
}

/// What is written is JSON, and says of itself where its messages are.
fn coherent(written: &Written, pieces: &[Piece<'_>]) {
    let text = std::str::from_utf8(&written.bytes).unwrap();
    serde_json::from_str::<&serde_json::value::RawValue>(text.trim_start_matches('\u{FEFF}')).unwrap();
    assert_eq!(written.message_of_piece.len(), pieces.len());
    assert!(written.message_starts.is_sorted());
    for message in written.message_of_piece.iter().flatten() {
        assert!(matches!(written.bytes[written.message_starts[*message]], b'{' | b'"'));
    }
}

/// What stands in `after` where `before` was; all else must be equal.
#[track_caller]
fn only_change(whole: &[u8], after: &str, before: &str, now: &str) {
    let whole = std::str::from_utf8(whole).unwrap();
    assert_eq!(whole.matches(before).count(), 1, "{before}");
    assert_eq!(after, whole.replace(before, now));
}

#[test]
fn a_view_without_decisions_is_the_body_itself() {
    for name in ["chat.json", "anthropic.json", "responses.json"] {
        let body = body(name);
        assert_eq!(written(&body, &all(&body)).as_bytes(), body.bytes(), "{name}");
        assert!(body.reason().starts_with("looks like "), "{}", body.reason());
    }
    for (text, format) in [
        ("[]", None),
        (" [ ] \n", None),
        ("\u{FEFF}{\"messages\" : [ ]}", None),
        (r#"{"input":"just \ud800 text"}"#, None),
        (r#"{"messages":[{"role":"assistant","content":null}]}"#, None),
        (
            r#"{"messages":[{"role":"assistant","content":[]},{"role":"user","content":[]}]}"#,
            Some(Format::AnthropicMessages),
        ),
        (r#"[{"role":"user","content":"a"} , {"role":"assistant","content":"b"}]"#, None),
        ("{\"messages\":[\r\n{\"role\":\"user\",\"content\":\"a\",\"content\":\"b\"}\r\n]}", None),
        (r#"{"messages":[{"role":"critic","content":{"odd":1}}]}"#, None),
    ] {
        let body = parse_body(text.as_bytes().to_vec(), format).unwrap();
        assert_eq!(written(&body, &all(&body)), text);
    }
}

#[test]
fn entries_of_a_chat_are_what_was_said() {
    let body = body("chat.json");
    let transcript = body.transcript();
    let kinds: Vec<_> = (0..transcript.len()).map(|entry| transcript.entry(entry).kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "system",
            "user",
            "reasoning",
            "tool_call",
            "tool_call",
            "tool_result",
            "tool_result",
            "assistant",
            "user",
            "tool_call"
        ]
    );
    assert_eq!(text_of(transcript, 3), r#"{"path": "a.txt", "n": 1.50}"#);
    assert_eq!(text_of(transcript, 5), "café 😀\nline two");
    assert_eq!((transcript.entry(4).name, transcript.entry(4).call_id), ("bash", "call_1"));
    assert_eq!(transcript.message_of(4), transcript.message_of(2));
    assert_eq!((body.model(), body.max_tokens(), body.tools().len()), (Some("gpt-test-1"), Some(512), 1));
    assert_eq!(transcript.entries_as_json(&[4, 3, 5]).len(), 2);
    assert!(transcript.entries_as_json(&[0])[0].contains("careful"));
}

#[test]
fn in_chat_only_the_changed_values_change() {
    let body = body("chat.json");
    let whole = body.bytes();
    let change = |entry: usize, piece: Option<Piece<'_>>| {
        let mut pieces = all(&body);
        match piece {
            Some(piece) => pieces[entry] = piece,
            None => drop(pieces.remove(entry)),
        }
        written(&body, &pieces)
    };
    only_change(
        whole,
        &change(5, Some(Piece::Text { entry: 5, text: "[cleared \"a\"\n]" })),
        r#""caf\u00e9 \ud83d\ude00\nline two""#,
        r#""[cleared \"a\"\n]""#,
    );
    only_change(
        whole,
        &change(3, Some(Piece::Arguments { entry: 3, json: r#"{"clipped":true}"# })),
        r#""{\"path\": \"a.txt\", \"n\": 1.50}""#,
        r#""{\"clipped\":true}""#,
    );
    only_change(
        whole,
        &change(1, Some(Piece::Elided { entry: 1, parts: &[1], text: "[image]" })),
        r#"{"type": "image_url", "image_url": {"url": "data:image\/png;base64,iVBORw0KGgo=", "detail": "low"}, "cache_control": {"type": "ephemeral"}}"#,
        r#"{"type":"text","text":"[image]","cache_control": {"type": "ephemeral"}}"#,
    );
    only_change(
        whole,
        &change(6, Some(Piece::Elided { entry: 6, parts: &[1], text: "[image]" })),
        r#"{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}"#,
        r#"{"type":"text","text":"[image]"}"#,
    );
    only_change(whole, &change(2, None), r#", "reasoning_content": "I must look first.""#, "");
}

#[test]
fn notes_and_stand_ins_are_messages_of_their_own_in_chat() {
    let body = body("chat.json");
    let pieces = [
        Piece::Entry { entry: 0 },
        Piece::Note { text: "a note" },
        Piece::Entry { entry: 8 },
        Piece::Entry { entry: 9 },
        Piece::StandIn { call: 9, text: "no result" },
    ];
    let text = written(&body, &pieces);
    let messages = text.split_once("\"messages\": [").unwrap().1;
    assert!(messages.starts_with(
        "\n    {\"role\": \"system\", \"content\": \"You are a careful agent.\"},{\"role\":\"user\",\"content\":\"a note\"},\n    {\"role\": \"user\", \"content\": \"Again, please.\"},\n    "
    ));
    assert!(messages.contains(",{\"role\":\"tool\",\"tool_call_id\":\"call_0\",\"content\":\"no result\"}\n  ],\n"));
    let map = body.write(&pieces, ToolsEdit::Keep).message_of_piece;
    assert_eq!(map, [Some(0), Some(1), Some(2), Some(3), Some(4)]);
}

#[test]
fn the_legacy_call_gets_the_legacy_answer() {
    let text = r#"[{"role":"user","content":"x"},{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},{"role":"user","content":"y"}]"#;
    let body = parse_body(text.as_bytes().to_vec(), None).unwrap();
    let pieces = [
        Piece::Entry { entry: 0 },
        Piece::Entry { entry: 1 },
        Piece::StandIn { call: 1, text: "none" },
        Piece::Entry { entry: 2 },
    ];
    assert!(
        written(&body, &pieces)
            .contains(r#",{"role":"function","name":"f","content":"none"},{"role":"user","content":"y"}]"#)
    );
}

#[test]
fn in_anthropic_only_the_changed_values_change() {
    let body = body("anthropic.json");
    let transcript = body.transcript();
    let kinds: Vec<_> = (0..transcript.len()).map(|entry| transcript.entry(entry).kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "system",
            "user",
            "reasoning",
            "assistant",
            "tool_call",
            "tool_call",
            "tool_result",
            "tool_result",
            "user",
            "assistant",
            "tool_call",
            "tool_call",
            "tool_result",
            "assistant",
            "assistant",
            "assistant",
            "user"
        ]
    );
    assert!(transcript.entry(2).sealed && transcript.entry(13).sealed && !transcript.entry(15).sealed);
    assert!(transcript.entry(7).is_error && !transcript.entry(6).is_error);
    assert_eq!(text_of(transcript, 4), r#"{"cmd": "ls  -l", "n":1.50}"#);
    let whole = body.bytes();
    let change = |entry: usize, piece: Option<Piece<'_>>| {
        let mut pieces = all(&body);
        match piece {
            Some(piece) => pieces[entry] = piece,
            None => drop(pieces.remove(entry)),
        }
        written(&body, &pieces)
    };
    let text = |entry| Some(Piece::Text { entry, text: "gone" });
    only_change(whole, &change(6, text(6)), r#""a.txt\nb.txt""#, r#""gone""#);
    let list = r#"[{"type":"text","text":"half of it"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="},"cache_control":{"type":"ephemeral"}}]"#;
    only_change(whole, &change(7, text(7)), list, r#""gone""#);
    only_change(
        whole,
        &change(12, text(12)),
        r#""tool_use_id":"toolu_1"}]}"#,
        r#""tool_use_id":"toolu_1","content":"gone"}]}"#,
    );
    only_change(
        whole,
        &change(4, Some(Piece::Arguments { entry: 4, json: r#"{"clipped":1}"# })),
        r#"{"cmd": "ls  -l", "n":1.50}"#,
        r#"{"clipped":1}"#,
    );
    only_change(
        whole,
        &change(7, Some(Piece::Elided { entry: 7, parts: &[1], text: "[image]" })),
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="},"cache_control":{"type":"ephemeral"}}"#,
        r#"{"type":"text","text":"[image]","cache_control":{"type":"ephemeral"}}"#,
    );
    only_change(
        whole,
        &change(16, Some(Piece::Elided { entry: 16, parts: &[0], text: "[file]" })),
        r#"{"type":"document","title":"notes.pdf","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}"#,
        r#"{"type":"text","text":"[file]"}"#,
    );
    only_change(whole, &change(2, None), r#"{"type":"thinking","thinking":"Let me look.","signature":"c2ln"},"#, "");
}

#[test]
fn a_covered_anthropic_group_leaves_the_pinned_text_of_its_message() {
    let body = body("anthropic.json");
    let mut pieces = vec![Piece::Entry { entry: 0 }, Piece::Note { text: "covered" }, Piece::Entry { entry: 8 }];
    pieces.extend((9..17).map(|entry| Piece::Entry { entry }));
    let text = written(&body, &pieces);
    assert!(text.contains("\"messages\":[\n {\"role\":\"user\",\"content\":\"covered\"},\n {\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Hurry up.\"}]},\n {\"role\":\"assistant\""));
    assert!(text.contains(
        r#""system":[{"type":"text","text":"You are a careful agent.","cache_control":{"type":"ephemeral"}}],"#
    ));
    assert_eq!(body.write(&pieces, ToolsEdit::Keep).message_of_piece[..4], [None, Some(0), Some(1), Some(2)]);
}

#[test]
fn anthropic_stand_ins_join_the_results_of_their_batch() {
    let body = body("anthropic.json");
    let stand_in = Piece::StandIn { call: 11, text: "never came" };
    let made = r#"{"type":"tool_result","tool_use_id":"toolu_3","content":"never came","is_error":true}"#;
    // After the batch's result, or before it: at the end of its message either way.
    for at in [12, 13] {
        let mut pieces = all(&body);
        pieces.insert(at, stand_in);
        let text = written(&body, &pieces);
        only_change(
            body.bytes(),
            &text,
            r#""tool_use_id":"toolu_1"}]}"#,
            &format!(r#""tool_use_id":"toolu_1"}},{made}]}}"#),
        );
        assert_eq!(body.write(&pieces, ToolsEdit::Keep).message_of_piece[at], Some(4));
    }
    // Without results of the batch: a message of its own, right after the calls.
    let mut pieces = all(&body);
    pieces[12] = stand_in;
    let text = written(&body, &pieces);
    assert!(text.contains(&format!("}}}}]}},{{\"role\":\"user\",\"content\":[{made}]}},\n {{\"role\":\"assistant\",\"content\":[{{\"type\":\"server_tool_use\"")));
    // The user's text follows the results it came with.
    let mut pieces = all(&body);
    pieces[7] = Piece::StandIn { call: 5, text: "x" };
    let text = written(&body, &pieces);
    assert!(text.contains(r#"{"type":"tool_result","tool_use_id":"toolu_2","content":"x","is_error":true},{"type":"text","text":"Hurry up."}]}"#));
}

#[test]
fn in_responses_only_the_changed_values_change() {
    let body = body("responses.json");
    let transcript = body.transcript();
    let kinds: Vec<_> = (0..transcript.len()).map(|entry| transcript.entry(entry).kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "system",
            "system",
            "user",
            "reasoning",
            "tool_call",
            "tool_call",
            "tool_result",
            "tool_result",
            "assistant",
            "assistant",
            "system",
            "user",
            "tool_call",
            "tool_result"
        ]
    );
    assert!(transcript.entry(3).sealed && transcript.entry(8).sealed && transcript.entry(6).is_error);
    let whole = body.bytes();
    let change = |entry: usize, piece: Piece<'_>| {
        let mut pieces = all(&body);
        pieces[entry] = piece;
        written(&body, &pieces)
    };
    only_change(
        whole,
        &change(6, Piece::Text { entry: 6, text: "gone" }),
        r#""{\"output\":\"no such file\",\"metadata\":{\"exit_code\":2,\"duration_seconds\":0.1}}""#,
        r#""gone""#,
    );
    only_change(
        whole,
        &change(7, Piece::Text { entry: 7, text: "gone" }),
        r#"[{"type":"input_text","text":"applied"},{"type":"input_image","image_url":"https://example.com/b.png"}]"#,
        r#""gone""#,
    );
    only_change(
        whole,
        &change(2, Piece::Elided { entry: 2, parts: &[1], text: "[image]" }),
        r#"{"type":"input_image","image_url":"data:image/jpeg;base64,/9j/4AAQ","detail":"auto"}"#,
        r#"{"type":"input_text","text":"[image]"}"#,
    );
    only_change(whole, &change(4, Piece::Arguments { entry: 4, json: "{}" }), r#""{\"cmd\":\"ls\"}""#, r#""{}""#);
    only_change(
        whole,
        &change(5, Piece::Arguments { entry: 5, json: "{\"c\":1}" }),
        r#""*** Begin Patch\n*** End Patch""#,
        r#""{\"c\":1}""#,
    );
    let shot = change(13, Piece::Elided { entry: 13, parts: &[0], text: "[image]" });
    assert!(
        shot.contains(r#""output":{"type":"computer_screenshot","image_url":"data:image/png;base64,"#)
            && !shot.contains("GgoGgo")
    );
    let mut pieces = all(&body);
    pieces[6] = Piece::StandIn { call: 4, text: "a" };
    pieces[7] = Piece::StandIn { call: 5, text: "b" };
    pieces.insert(3, Piece::Note { text: "n" });
    let text = written(&body, &pieces);
    assert!(text.contains(r#"},{"type":"message","role":"user","content":[{"type":"input_text","text":"n"}]},"#));
    assert!(text.contains(
        r#"},{"type":"function_call_output","call_id":"call_a","output":"a"},{"type":"custom_tool_call_output","call_id":"call_b","output":"b"},"#
    ));
}

#[test]
fn an_input_string_stays_a_string_unless_something_stands_beside_it() {
    let body = parse_body(br#"{"input":"h\u0069","model":"m"}"#.to_vec(), None).unwrap();
    assert_eq!(text_of(body.transcript(), 0), "hi");
    let text = written(&body, &[Piece::Note { text: "n" }, Piece::Entry { entry: 0 }]);
    assert_eq!(
        text,
        r#"{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"n"}]},{"role":"user","content":"h\u0069"}],"model":"m"}"#
    );
}

#[test]
fn the_recall_tool_is_added_once_at_the_end() {
    for name in ["chat.json", "anthropic.json", "responses.json"] {
        let body = body(name);
        let schema = recall_tool_schema(body.format(), "recall_tool_result", "Brings \"it\" back.");
        let edit = ToolsEdit::Append { name: "recall_tool_result", schema: &schema };
        let once = body.write(&all(&body), edit);
        let again = parse_body(once.bytes.clone(), None).unwrap();
        assert_eq!(again.tools().len(), body.tools().len() + 1);
        assert_eq!(again.tools().last(), Some(&&*schema));
        assert_eq!(again.write(&all(&again), edit).bytes, once.bytes);
        assert_eq!(once.bytes.len(), body.bytes().len() + schema.len() + if body.tools().is_empty() { 11 } else { 1 });
        coherent(&once, &all(&body));
    }
    for (before, after) in [
        (r#"{"messages":[],"tools":null}"#, r#"{"messages":[],"tools":[@S]}"#),
        (r#"{"tools":[ ],"messages":[]}"#, r#"{"tools":[@S ],"messages":[]}"#),
        ("{\n \"messages\":[]\n}\n", "{\n \"messages\":[],\"tools\":[@S]\n}\n"),
        ("[]", "[]"),
        (r#"{"messages":[],"functions":[{"name":"a"}]}"#, r#"{"messages":[],"functions":[{"name":"a"},@F]}"#),
    ] {
        let body = parse_body(before.as_bytes().to_vec(), None).unwrap();
        let schema = recall_tool_schema(Format::OpenAiChat, "r", "d");
        let function = serde_json::from_str::<std::collections::HashMap<String, &serde_json::value::RawValue>>(&schema)
            .unwrap()["function"];
        let out = body.write(&[], ToolsEdit::Append { name: "r", schema: &schema }).bytes;
        assert_eq!(String::from_utf8(out).unwrap(), after.replace("@S", &schema).replace("@F", function.get()));
    }
}

#[test]
fn a_growing_body_keeps_its_prefix_whatever_the_view() {
    let whole = body("chat.json");
    let messages: Vec<_> = (0..whole.transcript().messages()).map(|at| whole.transcript().message(at)).collect();
    for separator in [",", ",\n    "] {
        let mut before: Option<Vec<u8>> = None;
        for len in 4..=messages.len() {
            let text = format!("[\n{}\n]\n", messages[..len].join(separator));
            let body = parse_body(text.into_bytes(), None).unwrap();
            let mut pieces = vec![Piece::Entry { entry: 0 }, Piece::Note { text: "n" }];
            pieces.extend((5..body.transcript().len()).map(|entry| match entry {
                5 => Piece::Text { entry, text: "cleared" },
                _ => Piece::Entry { entry },
            }));
            let now = body.write(&pieces, ToolsEdit::Keep).bytes;
            if let Some(before) = before {
                let end = before.iter().rposition(|&byte| byte == b'}').unwrap() + 1;
                assert!(now.starts_with(&before[..end]));
            }
            before = Some(now);
        }
    }
}

#[test]
fn state_that_the_server_holds_makes_a_body_partial() {
    for (text, word) in [
        (r#"{"previous_response_id":"r","input":"x"}"#, "previous_response_id"),
        (r#"{"previous_response_id":"r","model":"m"}"#, "previous_response_id"),
        (r#"{"conversation":{"id":"c"},"input":[]}"#, "conversation"),
        (
            r#"{"thread":{"type":"continue","previous_message_id":"m"},"messages":[{"role":"user","content":"x"}],"max_tokens":1}"#,
            "thread",
        ),
        (r#"{"input":[{"type":"item_reference","id":"i"}]}"#, "item_reference"),
    ] {
        let body = parse_body(text.as_bytes().to_vec(), None).unwrap();
        assert!(body.partial().is_some_and(|reason| reason.starts_with(word)), "{text}");
        assert_eq!(body.write(&all(&body), ToolsEdit::Keep).bytes, text.as_bytes());
    }
    for text in [
        r#"{"previous_response_id":null,"input":"x"}"#,
        r#"{"thread":{"type":"create"},"messages":[{"role":"user","content":"x"}]}"#,
    ] {
        assert_eq!(parse_body(text.as_bytes().to_vec(), None).unwrap().partial(), None);
    }
}
