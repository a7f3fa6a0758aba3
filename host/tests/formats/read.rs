//! Recorded sessions of every format, as small fixtures of our own, and everything that is none.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

use foreshorten::formats::{Conversation, Format, decode_media, detect, parse_body, read_session};
use foreshorten_core::transcript::{Columns, EntryKind, NONE, PartRef, Transcript, text_of};

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../testdata/formats/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn session(name: &str) -> Vec<Conversation> {
    read_session(fixture(name), None).unwrap()
}

/// Entries in short: kind, and the beginning of the text.
fn outline(conversation: &Conversation) -> Vec<String> {
    let transcript = &conversation.transcript;
    (0..transcript.len())
        .map(|index| {
            let entry = transcript.entry(index);
            let flags = format!("{}{}", if entry.is_error { "!" } else { "" }, if entry.sealed { "#" } else { "" });
            format!("{}{flags} {}", entry.kind.as_str(), text_of(transcript, index).replace('\n', " / "))
        })
        .collect()
}

#[test]
fn claude_code_merges_messages_drops_branches_and_parts_sub_agents() {
    let all = session("claude-code.jsonl");
    assert_eq!(all.len(), 2);
    assert_eq!(
        outline(&all[0]),
        [
            "user Look around.",
            "reasoning# hm",
            "tool_call {\"command\":\"ls\"}",
            "tool_call {\"prompt\":\"dig\"}",
            "tool_result a.txt",
            "tool_result! dug",
            "assistant The way on.",
            "user Summary of it all.",
            "assistant On we go.",
        ]
    );
    assert_eq!((&*all[0].name, all[0].model.as_deref()), ("s-1", Some("claude-test-2")));
    assert_eq!(all[0].calls, [1, 6, 8]);
    assert_eq!(all[0].usage, [Some(60), Some(70), Some(40)]);
    assert_eq!(outline(&all[1]), ["user dig", "assistant dug"]);
    assert_eq!(all[1].name, "agent ag7");
    let skipped: Vec<_> = all[0].skipped.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
    assert_eq!(
        skipped,
        [
            ("abandoned branch", 2),
            ("api error shown as a message", 1),
            ("progress", 1),
            ("summary", 1),
            ("system/compact_boundary", 1),
            ("line cut at the end of the file", 1),
        ]
    );
    let lines = all[0].transcript.entries_as_json(&[2, 3]);
    assert!(lines.len() == 2 && lines[0].starts_with(r#"{"type":"assistant","uuid":"a2""#));
}

#[test]
fn a_result_written_before_its_call_is_put_after_it() {
    let text = concat!(
        r#"{"type":"user","uuid":"1","parentUuid":null,"message":{"role":"user","content":"go"}}"#,
        "\n",
        r#"{"type":"user","uuid":"2","parentUuid":"1","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"early"}]}}"#,
        "\n",
        r#"{"type":"assistant","uuid":"3","parentUuid":"2","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]}}"#,
        "\n",
    );
    let all = read_session(text.as_bytes().to_vec(), None).unwrap();
    assert_eq!(outline(&all[0]), ["user go", "tool_call {}", "tool_result early"]);
}

#[test]
fn lines_without_a_tree_are_read_in_the_order_of_the_file() {
    let line = |role: &str, parent: &str, at: usize| {
        format!(
            r#"{{"type":"{role}","uuid":"{at}","parentUuid":{parent},"message":{{"role":"{role}","content":"{at}"}}}}"#
        ) + "\n"
    };
    for parent in ["null", "\"gone\"", "\"3\""] {
        let text: String = (0..6).map(|at| line(if at % 2 == 0 { "user" } else { "assistant" }, parent, at)).collect();
        let all = read_session(text.into_bytes(), None).unwrap();
        let said: Vec<_> =
            (0..all[0].transcript.len()).map(|at| text_of(&all[0].transcript, at).into_owned()).collect();
        assert!(said.is_sorted() && said.last().is_some_and(|last| last == "5"), "{parent}: {said:?}");
        assert!(parent == "\"3\"" || said.len() == 6);
    }
}

#[test]
fn codex_reads_items_and_counts_but_no_echoes() {
    let all = session("codex.jsonl");
    assert_eq!(
        outline(&all[0]),
        [
            "system You are Codex.",
            "user Fix it.",
            "reasoning# ",
            "tool_call {\"command\":[\"false\"]}",
            "tool_result! Exit code: 1 / Wall time: 0.1 seconds / Output: / ",
            "assistant Fixed.",
        ]
    );
    assert_eq!((all[0].calls.clone(), all[0].usage.clone()), (vec![2, 5], vec![Some(900), None]));
    assert_eq!((&*all[0].name, all[0].model.as_deref()), ("r-1", Some("gpt-test-3")));
    assert!(all[0].skipped.contains(&("compacted".into(), 1)));
}

#[test]
fn gemini_parts_calls_and_results() {
    let all = session("gemini-cli.json");
    assert_eq!(
        outline(&all[0]),
        [
            "user Read it.",
            "reasoning Plan / Read, then say.",
            "assistant Reading.",
            "tool_call {\"path\":\"a\"}",
            "tool_call {\"path\":\"b\"}",
            "tool_call {}",
            "tool_result text of a",
            "tool_result! no such file",
            "assistant Read.",
        ]
    );
    assert_eq!((all[0].calls.clone(), all[0].usage.clone()), (vec![1, 8], vec![Some(500), Some(600)]));
    let PartRef::Image(image) = all[0].transcript.part(6, 1) else { panic!("no image") };
    assert_eq!((image.media_type, decode_media(image.data).as_deref()), ("image/png", Some(&b"\x89PNG\r\n\x1a\n"[..])));
}

#[test]
fn swe_agent_links_by_its_list_of_ids() {
    let all = session("swe-agent.traj");
    assert_eq!(
        outline(&all[0]),
        [
            "system SETTING",
            "user Solve it.",
            "assistant I list.",
            "tool_call {\"command\":\"ls\"}",
            "tool_result a.txt"
        ]
    );
    assert_eq!(all[0].transcript.entry(4).call_id, "c1");
}

#[test]
fn openhands_joins_parallel_calls_and_links_by_cause() {
    let all = session("openhands.json");
    assert_eq!(
        outline(&all[0]),
        [
            "system You are OpenHands.",
            "user Do it.",
            "assistant Two at once.",
            "tool_call {\"command\":\"ls\"}",
            "tool_call {\"command\":\"pwd\"}",
            "tool_result! no",
            "tool_result /w",
            "tool_result! Could not parse the call.",
            "assistant Now the file.",
            "tool_call {\"path\":\"/w/a\",\"thought\":\"Now the file.\"}",
            "tool_result text",
            "assistant All done.",
        ]
    );
    let transcript = &all[0].transcript;
    let mut columns = Columns::new();
    (0..transcript.len()).for_each(|_| columns.push(transcript, 1));
    assert_eq!((columns.pair(3), columns.pair(4), columns.pair(7), columns.pair(9)), (5, 6, NONE, 10));
    assert_eq!((all[0].usage[0], all[0].tools.len()), (Some(77), 1));
}

#[test]
fn recorded_requests_that_grow_are_one_conversation() {
    let all = session("captured.json");
    assert_eq!(all.len(), 2);
    assert_eq!(outline(&all[0]), ["system s", "user one", "tool_call {}", "tool_result r", "assistant two"]);
    assert_eq!((all[0].calls.clone(), all[0].usage.clone()), (vec![2, 4], vec![Some(11), Some(20)]));
    assert_eq!((all[1].format, outline(&all[1]).len()), (Format::OpenAiResponses, 2));
    // One request a line is the same thing.
    let lines: Vec<_> = [
        r#"{"messages":[{"role":"user","content":"a"}]}"#,
        r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}"#,
        r#"{"messages":[{"role":"user","content":"other"}]}"#,
    ]
    .join("\n")
    .into_bytes();
    let all = read_session(lines, None).unwrap();
    assert_eq!(all.iter().map(|of| of.calls.clone()).collect::<Vec<_>>(), [vec![1, 3], vec![1]]);
}

#[test]
fn lines_of_messages_are_read_with_crlf_blanks_and_noise() {
    let all = session("chat.jsonl");
    assert_eq!(outline(&all[0]), ["user one", "assistant two", "user three"]);
    assert_eq!((all[0].calls.clone(), all[0].skipped.clone()), (vec![1], vec![("note".to_owned(), 1)]));
    assert_eq!(read_session(fixture("chat.jsonl"), Some(Format::Jsonl)).unwrap()[0].format, Format::OpenAiChat);
}

#[test]
fn shapes_are_recognised_with_a_reason() {
    use Format::{AnthropicMessages, OpenAiChat, OpenAiResponses};
    for (text, format) in [
        ("[]", OpenAiChat),
        (r#"[{"role":"user","content":"hi"}]"#, OpenAiChat),
        (r#"[{"role":"user","content":[{"type":"text","text":"hi"}]}]"#, OpenAiChat),
        (
            r#"[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]}]"#,
            AnthropicMessages,
        ),
        (
            r#"[{"role":"user","content":"a"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]"#,
            OpenAiResponses,
        ),
        (r#"[{"type":"message","role":"user","content":"a"}]"#, OpenAiResponses),
        (r#"{"messages":[{"role":"user","content":"a"}],"system":"s"}"#, AnthropicMessages),
        (r#"{"messages":[{"role":"user","content":"a"}],"tools":[{"name":"f","input_schema":{}}]}"#, AnthropicMessages),
        (r#"{"messages":[{"role":"user","content":"a"}],"model":"claude-x","max_tokens":1}"#, AnthropicMessages),
        (r#"{"messages":[{"role":"user","content":"a"}],"model":"claude-x","max_tokens":1,"stop":[]}"#, OpenAiChat),
        (r#"{"messages":[{"role":"user","content":"a"}],"model":"m"}"#, OpenAiChat),
        (r#"{"input":"a"}"#, OpenAiResponses),
    ] {
        let found = detect(text.as_bytes()).unwrap();
        assert_eq!(found.format, format, "{text}");
        assert!(found.reason.contains(" because "));
        assert_eq!(parse_body(text.as_bytes().to_vec(), None).unwrap().format(), format);
    }
    for format in Format::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    assert!("md".parse::<Format>().is_err_and(|error| error.contains("openai-chat, ")));
}

#[test]
fn malformed_input_is_an_error_with_its_place() {
    for (bytes, line, offset, expected) in [
        (&b""[..], 1, 0, "one of the formats"),
        (b"# aider chat", 1, 0, "one of the formats"),
        (b"{\"messages\": [", 1, 14, "a JSON value"),
        (b"{\"messages\": []\n} x", 2, 18, "nothing after"),
        (b"{\"messages\":\n [NaN]}", 2, 15, "a JSON value"),
        (b"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}", 1, 39, "UTF-8"),
        (b"\xff\xfe{\x00}\x00", 1, 0, "UTF-8"),
        (b"{\"messages\":[{\"role\":\"user\",\"content\":\"a\nb\"}]}", 1, 40, "control character"),
        (b"{\"messages\":[{\"content\":\"a\"}]}", 1, 13, "`role`"),
        (b"{\"messages\":[17]}", 1, 13, "`role`"),
        (b"{\"messages\":\"text\"}", 1, 0, "one of the formats"),
        (b"{\"input\":{}}", 1, 9, "a list as `input`"),
        (b"{\"model\":\"m\"}", 1, 0, "one of the formats"),
        (b"\"text\"", 1, 0, "one of the formats"),
        (b"[1,2]", 1, 0, "one of the formats"),
        (b"{\"type\":\"user\",\"message\":{}}\n{oops}\n{\"type\":\"user\"}\n", 2, 30, "a key in double quotes"),
        (b"{\"role\":\"user\",\"content\":\"\"}\n{\"role\":\"user\"} {}\n{}\n", 2, 45, "one JSON value a line"),
    ] {
        let shown = String::from_utf8_lossy(bytes);
        let error = read_session(bytes.to_vec(), None).expect_err(&shown);
        assert_eq!((error.line, error.offset), (line, offset), "{shown}: {error}");
        assert!(error.expected.contains(expected), "{shown}: {error}");
        assert!(error.to_string().starts_with(&format!("line {line} (byte {offset}): expected ")));
        parse_body(bytes.to_vec(), None).expect_err(&shown);
    }
    let error = read_session(fixture("chat.json"), Some(Format::ClaudeCode)).expect_err("not claude-code");
    assert!(
        error
            .to_string()
            .contains("expected a session of claude-code, found nothing of that kind; it looks like openai-chat")
    );
    assert!(parse_body(fixture("chat.json"), Some(Format::Codex)).is_err());
    assert!(parse_body(fixture("chat.json"), Some(Format::OpenAiResponses)).is_err());
}

#[test]
fn hostile_shapes_take_linear_time() {
    let deep =
        format!(r#"{{"messages":[{{"role":"user","content":{}1{}}}]}}"#, "[".repeat(200_000), "]".repeat(200_000));
    let open = "[".repeat(2_000_000);
    let many = format!(r#"{{"messages":[{{"role":"user","content":"x"{}}}]}}"#, r#","content":"y""#.repeat(200_000));
    let calls: String = (0..50_000)
        .map(|at| format!(r#"{{"type":"assistant","uuid":"{at}","parentUuid":"{}","message":{{"id":"same","role":"assistant","content":[{{"type":"tool_use","id":"same","name":"f","input":{{}}}}]}}}}"#, at + 1) + "\n")
        .collect();
    let started = std::time::Instant::now();
    assert_eq!(parse_body(deep.into_bytes(), None).unwrap().transcript().len(), 1);
    assert!(parse_body(open.into_bytes(), None).is_err());
    let body = parse_body(many.into_bytes(), None).unwrap();
    assert_eq!(text_of(body.transcript(), 0), "y");
    assert_eq!(read_session(calls.into_bytes(), None).unwrap()[0].transcript.len(), 50_000);
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}

/// 16 MB of tool turns, unoptimised and beside other work, in a fraction of what anything that is not linear would take.
#[test]
fn a_large_body_is_read_in_seconds() {
    let line = "warning: unused variable: `x` at src/main.rs:10:9\\n".repeat(40);
    let mut text = String::from(r#"{"messages":[{"role":"user","content":"go"}"#);
    for at in 0..8_000 {
        text.push_str(&format!(
            r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{at}","type":"function","function":{{"name":"bash","arguments":"{{\"cmd\":\"make\"}}"}}}}]}},{{"role":"tool","tool_call_id":"c{at}","content":"{line}"}}"#
        ));
    }
    text.push_str("]}");
    let (size, started) = (text.len(), std::time::Instant::now());
    let body = parse_body(text.into_bytes(), None).unwrap();
    let took = started.elapsed();
    assert_eq!(body.transcript().len(), 16_001);
    assert_eq!((0..16_001).filter(|&at| body.transcript().entry(at).kind == EntryKind::ToolResult).count(), 8_000);
    assert!(body.transcript().overhead() < size * 3 / 2);
    println!("{:.1} MB in {took:?}", size as f64 / 1e6);
    assert!(took.as_secs() < 60, "{took:?}");
}
