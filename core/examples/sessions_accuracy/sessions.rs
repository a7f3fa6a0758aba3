//! Recorded sessions whose files hold what the provider counted, and the traps in reading them.

use std::collections::{BTreeMap, HashMap, HashSet};

use foreshorten_core::transcript::{Entry, Part};
use serde_json::Value;

/// A conversation, in the order in which the model met it.
pub(crate) struct Session {
    pub(crate) name: String,
    pub(crate) model: String,
    pub(crate) events: Vec<Event>,
}

pub(crate) enum Event {
    Entry(Entry),
    /// A model call over everything before, and the prompt tokens that the provider counted.
    Call(u64),
    /// A compaction whose view is known: a summary, then all entries from this one on.
    Compacted {
        summary: String,
        kept_from: usize,
    },
    /// A compaction whose view is not in the file: what follows is read as another session.
    Restart,
}

/// The text at a key, or nothing.
fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn lines(file: &str) -> impl Iterator<Item = Value> {
    file.lines().filter_map(|line| serde_json::from_str(line).ok())
}

fn said(text: impl Into<String>, images: usize) -> Event {
    Event::Entry(with_images(Entry::user(text), images))
}

fn result(id: &str, text: impl Into<String>, images: usize) -> Event {
    Event::Entry(with_images(Entry::tool_result(id, text), images))
}

fn with_images(entry: Entry, images: usize) -> Entry {
    (0..images).fold(entry, |entry, _| entry.with(Part::Image(String::new(), Vec::new())))
}

fn call(id: &str, name: &str, arguments: &Value) -> Event {
    let json = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
    Event::Entry(Entry::tool_call(id, name, json))
}

/// The text of a content that is a text or a list of blocks, and its images.
fn content(value: &Value) -> (String, usize) {
    if let Some(text) = value.as_str() {
        return (text.to_owned(), 0);
    }
    let texts: Vec<&str> = items(value).iter().filter_map(|block| block["text"].as_str()).collect();
    (texts.join("\n"), items(value).iter().filter(|block| text(block, "type") == "image").count())
}

fn tokens(usage: &Value, keys: &[&str]) -> u64 {
    keys.iter().filter_map(|key| usage[*key].as_u64()).sum()
}

/// The sessions in a file of the format whose folder it lies in.
pub(crate) fn read(format: &str, stem: &str, file: &str) -> Vec<Session> {
    let one = |(model, events)| vec![Session { name: format!("{format}/{stem}"), model, events }];
    match format {
        "claude-code" => claude_code(stem, file),
        "pi" => one(pi(file)),
        "trae" => one(trae(file)),
        "codex" => one(codex(file)),
        "gemini-cli" => one(gemini(file)),
        _ => Vec::new(),
    }
}

/// Claude Code: an answer is spread over several lines that repeat its id and its usage, results between them; every chain
/// of side-chain lines is a conversation of its own. Thinking is left out: what is kept of it is not what was billed.
fn claude_code(stem: &str, file: &str) -> Vec<Session> {
    let mut streams: BTreeMap<String, Session> = BTreeMap::new();
    let (mut roots, mut met) = (HashMap::new(), HashSet::new());
    for line in lines(file) {
        let stream = if line["isSidechain"] == true {
            let own = text(&line, "uuid").to_owned();
            let root: String = roots.get(text(&line, "parentUuid")).cloned().unwrap_or_else(|| own.clone());
            roots.insert(own, root.clone());
            root.chars().take(6).collect()
        } else {
            String::new()
        };
        let kind = text(&line, "type");
        if !matches!(kind, "user" | "assistant") {
            continue;
        }
        let name =
            if stream.is_empty() { format!("claude-code/{stem}") } else { format!("claude-code/{stem}/{stream}") };
        let session =
            streams.entry(stream.clone()).or_insert_with(|| Session { name, model: String::new(), events: Vec::new() });
        let message = &line["message"];
        if kind == "assistant" {
            if text(message, "model") == "<synthetic>" {
                continue;
            }
            if met.insert((stream, text(message, "id").to_owned())) {
                let keys = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
                session.events.push(Event::Call(tokens(&message["usage"], &keys)));
            }
            if session.model.is_empty() {
                session.model = text(message, "model").into();
            }
            for block in items(&message["content"]) {
                match text(block, "type") {
                    "text" => session.events.push(Event::Entry(Entry::assistant(text(block, "text")))),
                    "tool_use" => session.events.push(call(text(block, "id"), text(block, "name"), &block["input"])),
                    _ => {}
                }
            }
            continue;
        }
        if line["isCompactSummary"] == true {
            session.events.push(Event::Restart);
        }
        if let Some(text) = message["content"].as_str() {
            session.events.push(said(text, 0));
        }
        for block in items(&message["content"]) {
            match text(block, "type") {
                "text" => session.events.push(said(text(block, "text"), 0)),
                "image" => session.events.push(said("", 1)),
                "tool_result" => {
                    let (body, images) = content(&block["content"]);
                    session.events.push(result(text(block, "tool_use_id"), body, images));
                }
                _ => {}
            }
        }
    }
    streams.into_values().collect()
}

/// pi: a compaction names the line from which on everything was kept.
fn pi(file: &str) -> (String, Vec<Event>) {
    let (mut model, mut events, mut entries) = (String::new(), Vec::new(), 0usize);
    // Entries before each line.
    let mut before = Vec::new();
    for line in lines(file) {
        before.push(entries);
        let message = &line["message"];
        let known = events.len();
        match (text(&line, "type"), text(message, "role")) {
            ("compaction", _) => {
                let kept = line["firstKeptEntryIndex"].as_u64().and_then(|at| before.get(at as usize).copied());
                let summary = text(&line, "summary").to_owned();
                events.push(kept.map_or(Event::Restart, |kept_from| Event::Compacted { summary, kept_from }));
            }
            ("message", "assistant") => {
                if model.is_empty() {
                    model = text(message, "model").into();
                }
                events.push(Event::Call(tokens(&message["usage"], &["input", "cacheRead", "cacheWrite"])));
                for block in items(&message["content"]) {
                    match text(block, "type") {
                        "text" => events.push(Event::Entry(Entry::assistant(text(block, "text")))),
                        "toolCall" => events.push(call(text(block, "id"), text(block, "name"), &block["arguments"])),
                        _ => {}
                    }
                }
            }
            ("message", "bashExecution") => {
                let ran = format!("Ran `{}`\n```\n{}\n```", text(message, "command"), text(message, "output"));
                events.push(said(ran, 0));
            }
            ("message", role) => {
                let (body, images) = content(&message["content"]);
                events.push(match role {
                    "toolResult" => result(text(message, "toolCallId"), body, images),
                    _ => said(body, images),
                });
            }
            _ => {}
        }
        entries += events[known..].iter().filter(|event| matches!(event, Event::Entry(_))).count();
    }
    (model, events)
}

/// trae: the messages that came in since the call before, then the answer.
fn trae(file: &str) -> (String, Vec<Event>) {
    let file: Value = serde_json::from_str(file).unwrap_or_default();
    let mut events = Vec::new();
    for step in items(&file["llm_interactions"]) {
        for message in items(&step["input_messages"]) {
            let answer = &message["tool_result"];
            if answer.is_object() {
                let body = format!("{}{}", text(answer, "result"), text(answer, "error"));
                events.push(result(text(answer, "call_id"), body, 0));
            } else {
                events.push(said(text(message, "content"), 0));
            }
        }
        let response = &step["response"];
        events.push(Event::Call(tokens(&response["usage"], &["input_tokens"])));
        if !text(response, "content").is_empty() {
            events.push(Event::Entry(Entry::assistant(text(response, "content"))));
        }
        for one in items(&response["tool_calls"]) {
            events.push(call(text(one, "call_id"), text(one, "name"), &one["arguments"]));
        }
    }
    (text(&file, "model").into(), events)
}

/// Codex: the count of a call stands behind the call's own answer and even behind the outputs.
fn codex(file: &str) -> (String, Vec<Event>) {
    let (mut model, mut events, mut answer) = (String::new(), Vec::new(), None);
    for line in lines(file) {
        let payload = &line["payload"];
        match (text(&line, "type"), text(payload, "type")) {
            ("turn_context", _) => {
                answer = None;
                if model.is_empty() {
                    model = text(payload, "model").into();
                }
            }
            ("response_item", kind) => {
                let assistant = kind == "function_call" || text(payload, "role") == "assistant";
                if assistant && answer.is_none() {
                    answer = Some(events.len());
                }
                match kind {
                    "message" if assistant => {
                        events.push(Event::Entry(Entry::assistant(content(&payload["content"]).0)));
                    }
                    "message" => events.push(said(content(&payload["content"]).0, 0)),
                    "function_call" => {
                        events.push(call(text(payload, "call_id"), text(payload, "name"), &payload["arguments"]));
                    }
                    "function_call_output" => {
                        let body =
                            payload["output"].as_str().map_or_else(|| payload["output"].to_string(), str::to_owned);
                        events.push(result(text(payload, "call_id"), body, 0));
                    }
                    _ => {}
                }
            }
            ("event_msg", "token_count") => {
                let counted = tokens(&payload["info"]["last_token_usage"], &["input_tokens"]);
                events.insert(answer.take().unwrap_or(events.len()), Event::Call(counted));
            }
            _ => {}
        }
    }
    (model, events)
}

/// Gemini CLI: answers hold their calls, and the calls their results.
fn gemini(file: &str) -> (String, Vec<Event>) {
    let file: Value = serde_json::from_str(file).unwrap_or_default();
    let (mut model, mut events) = (String::new(), Vec::new());
    for message in items(&file["messages"]) {
        if text(message, "type") == "user" {
            events.push(said(text(message, "content"), 0));
            continue;
        }
        if model.is_empty() {
            model = text(message, "model").into();
        }
        if message["tokens"].is_object() {
            events.push(Event::Call(tokens(&message["tokens"], &["input"])));
        }
        if !text(message, "content").is_empty() {
            events.push(Event::Entry(Entry::assistant(text(message, "content"))));
        }
        for one in items(&message["toolCalls"]) {
            events.push(call(text(one, "id"), text(one, "name"), &one["args"]));
            for part in items(&one["result"]) {
                let body = &part["functionResponse"]["response"];
                events.push(result(text(one, "id"), body.to_string(), 0));
            }
        }
    }
    (model, events)
}
