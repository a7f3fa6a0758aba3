//! Odd inputs, through every command that reads: right, or exit 3 with the place; never a panic.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

use crate::common::{Room, Run, foreshorten};
use serde_json::{Value, json};

/// Runs every reading command on `input`, as a file or on stdin.
fn each(input: &[u8]) -> Vec<(&'static str, Run)> {
    let room = Room::new();
    let file = room.write("input", input);
    let file = file.to_str().unwrap();
    let (state, notice) = (room.state(), room.path("notice"));
    let compact = |more: &[&str]| {
        let state = ["--state", state.to_str().unwrap(), "--notice", notice.to_str().unwrap()];
        foreshorten([&["compact", "--window", "4000"], &state[..], more].concat(), input)
    };
    vec![
        ("compact", compact(&[])),
        ("compact again", compact(&["--summarizer", "extractive", "--overflow"])),
        ("replay", foreshorten(["replay", "--window", "4000", "--every-turn", file], b"")),
        ("replay --json", foreshorten(["replay", "--window", "4000", "--json", file], b"")),
        ("estimate", foreshorten(["estimate", file], b"")),
        ("estimate --json", foreshorten(["estimate", "--json", file], b"")),
        ("recall", foreshorten(["recall", "--transcript", file, "c"], b"")),
        ("search", foreshorten(["recall", "--transcript", file, "--search", "x"], b"")),
        ("state", foreshorten(["state", file], b"")),
    ]
}

/// Every command comes to an end that is documented.
#[track_caller]
fn documented(what: &str, input: &[u8]) -> Vec<(&'static str, Run)> {
    let runs = each(input);
    for (command, run) in &runs {
        let good = match run.code {
            0 | 4 => true,
            3 => {
                run.err.contains("line ") && run.err.contains("byte ")
                    || *command == "state"
                    || run.err.contains("no session")
            }
            5 | 6 => *command == "recall",
            _ => false,
        };
        assert!(good, "{what}: {command} exits {}: {}", run.code, run.err);
        assert!(matches!(run.code, 0 | 4) || run.out.is_empty(), "{what}: {command} prints and fails");
    }
    runs
}

/// Every command but `state`, `recall` reads it.
#[track_caller]
fn read_by_all(what: &str, input: &[u8]) -> Vec<(&'static str, Run)> {
    let runs = documented(what, input);
    for (command, run) in &runs {
        let fine = matches!(run.code, 0 | 4) || matches!(*command, "state" | "recall");
        assert!(fine, "{what}: {command} exits {}: {}", run.code, run.err);
    }
    runs
}

/// A chat with one result.
fn chat(result: &str) -> Vec<u8> {
    // By hand: a result may hold escapes that no serializer would write.
    format!(
        r#"{{"messages":[{{"role":"user","content":"go"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"c","type":"function","function":{{"name":"t","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"c","content":{result}}},{{"role":"assistant","content":"done"}},{{"role":"user","content":"more"}}]}}"#
    )
    .into_bytes()
}

#[track_caller]
fn recalled(what: &str, input: &[u8], expected: &[u8]) {
    let runs = read_by_all(what, input);
    let recall = runs.into_iter().find(|run| run.0 == "recall").unwrap().1.good();
    assert!(recall.out == expected, "{what}: {:?}", String::from_utf8_lossy(&recall.out));
}

#[test]
fn scripts_emoji_line_ends_and_nuls_come_back_as_they_were() {
    for text in [
        "日本語 русский عربى हिन्दी ไทย 한국어 ελληνικά",
        "👩‍👩‍👧‍👦🏳️‍🌈👍🏽 e\u{301} \u{200f}\u{202e}",
        "a\rb\r\nc\n\r\n\u{2028}\u{2029}\u{85}",
        "\u{0}\u{1}\u{7f}\u{0}",
        "",
        " ",
        "\u{feff}x\u{fffd}\u{10ffff}",
        "\\\"/\u{8}\u{c}\t",
    ] {
        let escaped = Value::from(text).to_string();
        recalled(text, &chat(&escaped), text.as_bytes());
        // The same, every character escaped.
        let units: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        recalled(text, &chat(&format!("\"{units}\"")), text.as_bytes());
        // And many times over, so that it is cut and cleared.
        let long = text.repeat(20_000 / text.len().max(1));
        recalled(text, &chat(&Value::from(long.as_str()).to_string()), long.as_bytes());
    }
}

#[test]
fn lone_surrogates_are_kept_in_the_body_and_shown_as_replacement_characters() {
    for raw in [r#""a\ud83db""#, r#""\udc00\ud800""#, r#""\ud83d""#, r#""\ud83d\n""#, r#""\uD83D\uD83D\uDE00""#] {
        let input = chat(raw);
        let runs = read_by_all(raw, &input);
        let out = &runs[0].1.out;
        assert!(out.windows(raw.len()).any(|window| window == raw.as_bytes()), "{raw} is copied");
        let recall = runs.iter().find(|run| run.0 == "recall").unwrap();
        assert!(recall.1.text().contains('\u{fffd}'), "{raw}: {}", recall.1.text());
    }
    // A lone surrogate in the newest message does not hide where the view ends.
    let room = Room::new();
    let body = br#"{"messages":[{"role":"user","content":"\ud83d"}]}"#;
    room.compact(4_000, body, &[]).good();
    let again = room.compact(4_000, body, &[]).good();
    assert_eq!(again.number("prefix_bytes_kept") as usize, body.len() - 2);
}

#[test]
fn empty_and_tiny_transcripts_are_read() {
    let runs = read_by_all("an empty list", b"[]");
    assert_eq!(runs[0].1.out, b"[]");
    for input in [
        &b"{\"messages\":[]}"[..],
        b"{\"input\":[]}",
        b"{\"input\":\"hi\"}",
        b"[{\"role\":\"user\",\"content\":\"hi\"}]",
        b"[{\"role\":\"assistant\",\"content\":\"hi\"}]",
        b"[{\"role\":\"system\",\"content\":\"hi\"}]",
        b"[{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"\"}]",
        b"[{\"role\":\"user\",\"content\":[]}]",
        b"[{\"role\":\"user\",\"content\":null}]",
        b"[{\"role\":\"user\"}]",
        b"\xef\xbb\xbf[{\"role\":\"user\",\"content\":\"with a mark\"}]",
    ] {
        read_by_all(&String::from_utf8_lossy(input), input);
    }
}

#[test]
fn one_huge_string_is_no_trouble() {
    let text = "ferry \u{e9}\n".repeat((20 << 20) / 9);
    let room = Room::new();
    let mut body = chat(&Value::from(text.as_str()).to_string());
    let done = room.compact(16_000, &body, &[]).good();
    assert!(done.compacted() && done.out().len() < 100_000);
    let path = room.write("body", &body);
    assert!(room.recall(&path, "c", &[]).good().out == text.as_bytes());
    foreshorten(["replay", "--window", "16000", path.to_str().unwrap()], b"").good();
    foreshorten(["estimate", path.to_str().unwrap()], b"").good();
    // As the request it cannot shrink.
    body = serde_json::to_vec(&json!({"messages": [{"role": "user", "content": text}]})).unwrap();
    let done = Room::new().compact(16_000, &body, &["--no-recall-tool"]).exits(4);
    assert!(done.out() == body);
}

#[test]
fn deep_nesting_ends_in_a_view_or_a_place_and_not_in_the_stack() {
    for depth in [100, 1_000, 100_000] {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        documented("lists", format!("{open}{close}").as_bytes());
        documented("open lists", open.as_bytes());
        documented("objects", ("{\"a\":".repeat(depth) + "1" + &"}".repeat(depth)).as_bytes());
        documented("in a content", &chat(&format!("{open}{close}")));
        documented("messages", format!("{{\"messages\":{open}{close}}}").as_bytes());
        let strange = format!(r#"{{"messages":[{{"role":"user","content":"hi","x":{open}{close}}}]}}"#);
        documented("in an unknown field", strange.as_bytes());
        documented("requests", ("{\"requests\":[".repeat(depth) + &"]}".repeat(depth)).as_bytes());
    }
}

#[test]
fn truncated_json_is_refused_with_its_place_wherever_it_is_cut() {
    let whole = chat(r#""a \u00e9 \ud83d\ude00 result""#);
    for cut in (0..whole.len()).step_by(17) {
        for (command, run) in documented("cut", &whole[..cut]) {
            if command != "state" {
                assert_eq!(run.code, 3, "{command} reads the first {cut} bytes");
            }
        }
    }
}

#[test]
fn what_is_not_utf8_is_refused_with_its_place() {
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain("[]".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let big: Vec<u8> = [0xfe, 0xff].into_iter().chain("[]".encode_utf16().flat_map(u16::to_be_bytes)).collect();
    let mut latin = chat("\"caf\u{e9}\"");
    let at = latin.iter().position(|&byte| byte == 0xc3).unwrap();
    latin.remove(at);
    let binary: Vec<u8> = (0..4096u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for (what, input) in [("UTF-16", utf16), ("UTF-16 BE", big), ("Latin 1", latin), ("binary", binary)] {
        for (command, run) in documented(what, &input) {
            assert_eq!(run.code, 3, "{what}: {command}");
        }
    }
    documented("a picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    documented("NULs", &[0; 1000]);
    documented("nothing", b"");
    documented("white space", b" \n\t\r\n");
}

#[test]
fn what_is_json_and_no_conversation_is_refused() {
    for input in [
        "null",
        "true",
        "42",
        "\"text\"",
        "{}",
        "[1,2]",
        "[[]]",
        "{\"messages\":{}}",
        "{\"messages\":[1]}",
        "[null]",
        "{\"input\":7}",
    ] {
        for (command, run) in documented(input, input.as_bytes()) {
            assert_eq!(run.code, 3, "{input}: {command}: {}", run.err);
        }
    }
}

#[test]
fn fields_of_another_type_than_expected_are_copied() {
    for message in [
        r#"{"role":"user","content":{"a":1}}"#,
        r#"{"role":"user","content":17}"#,
        r#"{"role":"user","content":[1,null,"x",{"type":7},{}]}"#,
        r#"{"role":"assistant","content":null,"tool_calls":{}}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[null,1,{}]}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":7,"function":null}]}"#,
        r#"{"role":"tool","tool_call_id":null,"content":"x"}"#,
        r#"{"role":"wizard","content":"x"}"#,
        r#"{"role":"user","role":"assistant","content":"twice"}"#,
    ] {
        let body =
            format!(r#"{{"messages":[{{"role":"user","content":"hi"}},{message},{{"role":"user","content":"yes"}}]}}"#);
        read_by_all(message, body.as_bytes());
    }
}

#[test]
fn lines_of_jsonl_may_end_as_they_like_and_half_a_line_at_the_end_is_left_out() {
    let one = r#"{"role":"user","content":"hi"}"#;
    let two = r#"{"role":"assistant","content":"yes"}"#;
    for text in [
        format!("{one}\n{two}\n{one}"),
        format!("{one}\r\n{two}\r\n{one}\r\n"),
        format!("\n\n{one}\n\n{two}\n\n{one}\n"),
    ] {
        let room = Room::new();
        let file = room.write("lines", &text);
        let done = foreshorten(["estimate", "--json", file.to_str().unwrap()], b"").good();
        assert_eq!(done.json()["entries"], 3, "{text:?}");
    }
    let room = Room::new();
    let file = room.write("cut", format!("{one}\n{two}\n{{\"role\":\"us"));
    let done = foreshorten(["replay", "--window", "4000", file.to_str().unwrap()], b"").good();
    assert!(done.text().contains("cut at the end"), "{}", done.text());
    let file = room.write("broken", format!("{one}\n{{\"role\":\"us\n{two}\n"));
    foreshorten(["replay", "--window", "4000", file.to_str().unwrap()], b"").exits(3).says(&["line 2", "broken"]);
}
