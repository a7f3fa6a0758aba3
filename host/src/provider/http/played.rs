//! Recorded streams (`testdata/streams/`), cut up in every way a network may cut them.

use std::path::PathBuf;
use std::sync::Mutex;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::anthropic_answer::AnthropicAnswer;
use super::call::{Answer, events};
use super::chat_answer::ChatAnswer;
use super::responses_answer::ResponsesAnswer;
use super::trace;
use crate::provider::{Delta, ModelReply, ProviderError, Usage};
use crate::record::Message;

/// What a stream comes to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    #[serde(default)]
    messages: Vec<Box<RawValue>>,
    #[serde(default)]
    finish: String,
    /// Input, read, written, output, reasoning.
    #[serde(default)]
    usage: Option<[u64; 5]>,
    #[serde(default)]
    deltas: Vec<String>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    window: Option<u64>,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/streams")
}

fn streams() -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "sse"))
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap()))
        .collect();
    all.sort();
    all
}

type Played = (Result<ModelReply, ProviderError>, Vec<String>);

fn play(name: &str, chunks: &[&[u8]]) -> Played {
    match name.split('-').next().unwrap() {
        "chat" => played::<ChatAnswer>(chunks),
        "responses" => played::<ResponsesAnswer>(chunks),
        "anthropic" => played::<AnthropicAnswer>(chunks),
        other => panic!("`{other}` is no protocol"),
    }
}

fn played<A: Answer>(chunks: &[&[u8]]) -> Played {
    let told = Mutex::new(Vec::<String>::new());
    let tell = |delta: Delta<'_>| {
        told.lock().unwrap().push(match delta {
            Delta::Text(text) => format!("text {text}"),
            Delta::Reasoning(text) => format!("reasoning {text}"),
            Delta::ToolCall(name) => format!("call {name}"),
            Delta::Restart => "restart".into(),
        });
    };
    let chunks: Vec<_> = chunks.iter().map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
    let mut answer = A::new(10);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let read = runtime.block_on(events(futures_util::stream::iter(chunks), &mut answer, &tell));
    (read.and_then(|()| answer.reply()), told.into_inner().unwrap())
}

fn raw(message: &Message) -> String {
    match message.raw_json() {
        Some(raw) => raw.json.clone(),
        None => message.to_line(),
    }
}

fn check(name: &str, (result, deltas): Played, expected: &Expected) {
    match (result, &expected.error) {
        (Err(error), Some(class)) => {
            assert_eq!(trace::class(&error), class, "{name}: {error}");
            let window = match &error {
                ProviderError::Overflow(rejection) => rejection.window,
                _ => None,
            };
            assert_eq!(window, expected.window, "{name}");
        }
        (Ok(reply), None) => {
            let messages: Vec<String> = reply.messages.iter().map(raw).collect();
            let wanted: Vec<&str> = expected.messages.iter().map(|message| message.get()).collect();
            assert_eq!(messages, wanted, "{name}");
            assert_eq!(format!("{:?}", reply.finish), expected.finish, "{name}");
            let usage = expected.usage.map(|[input_tokens, read, written, output_tokens, reasoning_tokens]| Usage {
                input_tokens,
                cache_read_tokens: read,
                cache_write_tokens: written,
                output_tokens,
                reasoning_tokens,
            });
            assert_eq!(reply.usage, usage, "{name}");
        }
        (other, _) => panic!("{name}: {other:?}"),
    }
    assert_eq!(deltas, expected.deltas, "{name}");
}

fn expected(name: &str) -> Expected {
    let path = folder().join(format!("{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn every_recorded_stream_comes_to_the_message_beside_it() {
    for (name, bytes) in streams() {
        check(&name, play(&name, &[&bytes]), &expected(&name));
    }
}

#[test]
fn a_stream_may_be_cut_anywhere_and_comes_to_the_same() {
    for (name, bytes) in streams() {
        let expected = expected(&name);
        for at in 0..bytes.len() {
            check(&name, play(&name, &[&bytes[..at], &bytes[at..]]), &expected);
        }
        check(&name, play(&name, &bytes.chunks(1).collect::<Vec<_>>()), &expected);
    }
}

#[test]
fn line_ends_and_comments_do_not_matter() {
    for (name, bytes) in streams() {
        let expected = expected(&name);
        let text = String::from_utf8(bytes).unwrap();
        for other in [
            text.replace('\n', "\r\n"),
            text.replace('\n', "\r"),
            text.replace("\n\n", "\n\n: keep-alive\n\n"),
            text.replace("data: ", "data:"),
            format!("\u{feff}{text}"),
            text.lines().filter(|line| !line.starts_with("event:")).map(|line| format!("{line}\n")).collect(),
        ] {
            check(&name, play(&name, &[other.as_bytes()]), &expected);
        }
    }
}

#[test]
fn a_stream_that_ends_early_is_never_taken_for_an_answer() {
    for (name, bytes) in streams() {
        let expected = expected(&name);
        let wanted: Vec<&str> = expected.messages.iter().map(|message| message.get()).collect();
        for end in 0..bytes.len() {
            if let (Ok(reply), _) = play(&name, &[&bytes[..end]]) {
                let messages: Vec<String> = reply.messages.iter().map(raw).collect();
                assert_eq!(messages, wanted, "{name} cut at {end}");
                assert_eq!(format!("{:?}", reply.finish), expected.finish, "{name} cut at {end}");
            }
        }
    }
}

#[test]
fn bytes_that_are_no_text_or_no_json_are_an_error_and_no_panic() {
    for (name, bytes) in streams() {
        for at in (0..bytes.len()).step_by(7) {
            for byte in [0xFF, b'{', b'"', b'\n', 0] {
                let mut spoilt = bytes.clone();
                spoilt[at] = byte;
                drop(play(&name, &[&spoilt]));
            }
        }
    }
}
