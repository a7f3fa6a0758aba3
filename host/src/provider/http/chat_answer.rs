//! An answer of Chat Completions, put together into the assistant message that goes into the record.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::call::Answer;
use super::frame::json_text;
use super::members::{arguments, is_object};
use super::merge::merge;
use super::reading::{failure, parsed, unreadable};
use crate::formats::Format;
use crate::provider::{Delta, FinishReason, ModelReply, OnDelta, ProviderError, Usage};
use crate::record::Message;

/// What has come of an answer.
#[derive(Debug, Default)]
pub(super) struct ChatAnswer {
    known: usize,
    content: String,
    refusal: String,
    /// Members not known here, in the order in which they first came.
    others: Vec<(String, Value)>,
    calls: Vec<Call>,
    /// The message as it came, when it came whole and needs no mending.
    raw: Option<String>,
    finish: Option<String>,
    usage: Option<Usage>,
    model: Option<String>,
    over: bool,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    kind: String,
    name: String,
    arguments: String,
    told: bool,
    others: Map<String, Value>,
}

/// The answer that comes at once, as far as it is read.
#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow, default)]
    choices: Vec<WholeChoice<'a>>,
    model: Option<String>,
    usage: Option<Value>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct WholeChoice<'a> {
    #[serde(borrow)]
    message: &'a RawValue,
    finish_reason: Option<String>,
}

impl Answer for ChatAnswer {
    fn new(known: usize) -> Self {
        Self { known, ..Self::default() }
    }

    fn event(&mut self, kind: &str, data: &str, on_delta: &OnDelta<'_>) -> Result<(), ProviderError> {
        if data.trim() == "[DONE]" {
            self.over = true;
            return Ok(());
        }
        let mut chunk = parsed(data)?;
        if kind == "error" || chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(failure(&chunk, data));
        }
        self.about(chunk.get("model"), chunk.get("usage"));
        let choices = chunk.get_mut("choices").and_then(Value::as_array_mut);
        // Of several answers to one question only the first is the conversation.
        let first = |choice: &&mut Value| choice.get("index").and_then(Value::as_u64).unwrap_or_default() == 0;
        for choice in choices.into_iter().flatten().filter(first) {
            if let Some(Value::Object(delta)) = choice.get_mut("delta").map(Value::take) {
                self.delta(delta, on_delta);
            }
            if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
                self.finish = Some(reason.to_owned());
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn is_whole(&self) -> bool {
        self.finish.is_some()
    }

    fn whole(&mut self, json: &str, on_delta: &OnDelta<'_>) -> Result<(), ProviderError> {
        let whole: Whole<'_> = serde_json::from_str(json).map_err(|error| unreadable(&error, json))?;
        if let Some(error) = whole.error.as_ref().filter(|error| !error.is_null()) {
            return Err(failure(&Value::Object(Map::from_iter([("error".to_owned(), error.clone())])), json));
        }
        self.about(whole.model.map(Value::from).as_ref(), whole.usage.as_ref());
        let Some(choice) = whole.choices.into_iter().next() else {
            return Err(ProviderError::Garbled("it has no choice".into()));
        };
        if let Value::Object(message) = parsed(choice.message.get())? {
            self.delta(message, on_delta);
        }
        if self.is_sound() {
            self.raw = Some(choice.message.get().to_owned());
        }
        self.finish = choice.finish_reason.or_else(|| Some("stop".into()));
        self.over = true;
        Ok(())
    }

    fn reply(mut self) -> Result<ModelReply, ProviderError> {
        if self.finish.is_none() && !(self.over && self.has_something()) {
            return Err(ProviderError::Garbled("the stream ended before the answer did".into()));
        }
        let finish = self.reason();
        let messages = if self.has_something() {
            let json = self.raw.take().unwrap_or_else(|| self.message());
            let message = Message::raw(Format::OpenAiChat, json);
            vec![message.map_err(|error| ProviderError::Garbled(format!("it is no message: {error}")))?]
        } else {
            Vec::new()
        };
        Ok(ModelReply { usage: self.usage, model: self.model, ..ModelReply::new(messages, finish) })
    }
}

impl ChatAnswer {
    fn about(&mut self, model: Option<&Value>, usage: Option<&Value>) {
        if let Some(model) = model.and_then(Value::as_str).filter(|model| !model.is_empty()) {
            self.model = Some(model.to_owned());
        }
        self.usage = usage.and_then(counted).or(self.usage);
    }

    fn delta(&mut self, delta: Map<String, Value>, on_delta: &OnDelta<'_>) {
        for (name, value) in delta {
            match (name.as_str(), value) {
                ("role" | "index", _) | (_, Value::Null) => {}
                ("content", Value::String(text)) => {
                    if !text.is_empty() {
                        on_delta(Delta::Text(&text));
                    }
                    self.content.push_str(&text);
                }
                // Parts in place of text (Mistral): the text of them is the text, the rest are thoughts.
                ("content", Value::Array(parts)) => self.parts(&parts, on_delta),
                ("refusal", Value::String(text)) => self.refusal.push_str(&text),
                ("tool_calls", Value::Array(calls)) => {
                    for call in calls {
                        self.call(call, on_delta);
                    }
                }
                (_, value) => {
                    if let ("reasoning_content" | "reasoning", Value::String(text)) = (name.as_str(), &value)
                        && !text.is_empty()
                    {
                        on_delta(Delta::Reasoning(text));
                    }
                    self.other(name, value);
                }
            }
        }
    }

    fn other(&mut self, name: String, value: Value) {
        match self.others.iter_mut().find(|(other, _)| *other == name) {
            Some((_, old)) => merge(old, value),
            None => self.others.push((name, value)),
        }
    }

    fn parts(&mut self, parts: &[Value], on_delta: &OnDelta<'_>) {
        for part in parts {
            if let Some(text) = part.get("text").and_then(Value::as_str) {
                on_delta(Delta::Text(text));
                self.content.push_str(text);
            } else if let Some(thoughts) = part.get("thinking").and_then(Value::as_array) {
                for text in thoughts.iter().filter_map(|thought| thought.get("text").and_then(Value::as_str)) {
                    on_delta(Delta::Reasoning(text));
                    self.other("reasoning_content".into(), text.into());
                }
            }
        }
    }

    fn call(&mut self, piece: Value, on_delta: &OnDelta<'_>) {
        let Value::Object(mut piece) = piece else { return };
        let text = |value: Option<Value>| match value {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let index = piece.remove("index").and_then(|index| index.as_u64());
        let id = text(piece.remove("id"));
        let kind = text(piece.remove("type"));
        let mut function = piece.remove("function").unwrap_or_default();
        let name = text(function.get_mut("name").map(Value::take));
        let arguments = match function.get_mut("arguments").map(Value::take) {
            // A server that sends an object means the same.
            Some(object @ Value::Object(_)) => object.to_string(),
            other => text(other),
        };
        let at = self.place_of(index, &id, &name);
        let call = &mut self.calls[at];
        call.index = call.index.or(index);
        if !id.is_empty() {
            call.id = id;
        }
        if !kind.is_empty() {
            call.kind = kind;
        }
        // Some servers repeat the whole name, some send it in pieces.
        if call.name != name {
            call.name.push_str(&name);
        }
        call.arguments.push_str(&arguments);
        for (name, value) in piece {
            match call.others.get_mut(&name) {
                Some(old) => merge(old, value),
                None => drop(call.others.insert(name, value)),
            }
        }
        if !call.told && !call.name.is_empty() {
            call.told = true;
            on_delta(Delta::ToolCall(&call.name));
        }
    }

    /// Which call a piece belongs to. The index says it, where there is one; some servers give none, or 0 to all.
    fn place_of(&mut self, index: Option<u64>, id: &str, name: &str) -> usize {
        let begins = !id.is_empty() && !name.is_empty();
        let found = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None if !id.is_empty() => self.calls.iter().rposition(|call| call.id == id),
            None if name.is_empty() => self.calls.len().checked_sub(1),
            None => None,
        };
        let other = |call: &Call| begins && !call.id.is_empty() && call.id != id;
        match found.filter(|&at| !other(&self.calls[at])) {
            Some(at) => at,
            None => {
                self.calls.push(Call::default());
                self.calls.len() - 1
            }
        }
    }

    fn has_something(&self) -> bool {
        let text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
        !self.content.is_empty()
            || !self.refusal.is_empty()
            || !self.calls.is_empty()
            || self.others.iter().any(|(_, value)| {
                text(value) || value.is_object() || value.is_array() && *value != Value::Array(Vec::new())
            })
    }

    /// Whether a message that came whole can be kept as it is.
    fn is_sound(&self) -> bool {
        let sound = |call: &Call| !call.id.is_empty() && is_object(&call.arguments);
        self.calls.iter().all(sound)
    }

    fn reason(&self) -> FinishReason {
        match self.finish.as_deref() {
            _ if !self.refusal.is_empty() => FinishReason::Refused,
            // Several servers say `stop` of an answer that calls tools.
            Some("stop" | "tool_calls" | "function_call" | "eos") | None if !self.calls.is_empty() => {
                FinishReason::ToolCalls
            }
            Some("stop" | "eos" | "tool_calls" | "function_call" | "") | None => FinishReason::Stop,
            Some("length" | "max_tokens") => FinishReason::Length,
            Some("content_filter" | "refusal" | "safety" | "sensitive") => FinishReason::Refused,
            Some("model_context_window_exceeded" | "context_length_exceeded") => FinishReason::ContextWindow,
            Some(other) => FinishReason::Other(other.to_owned()),
        }
    }

    /// The assistant message, members in the order in which the protocol's own documentation has them.
    fn message(&mut self) -> String {
        // Calls whose pieces came mixed are put in the order of their numbers.
        self.calls.sort_by_key(|call| call.index);
        let content = if self.content.is_empty() { "null".to_owned() } else { json_text(&self.content) };
        let mut out = format!(r#"{{"role":"assistant","content":{content}"#);
        if !self.refusal.is_empty() {
            out.push_str(&format!(r#","refusal":{}"#, json_text(&self.refusal)));
        }
        for (name, value) in &self.others {
            out.push_str(&format!(",{}:{value}", json_text(name)));
        }
        if !self.calls.is_empty() {
            let known = self.known;
            let calls: Vec<String> = self.calls.iter().enumerate().map(|(at, call)| call.json(known + at)).collect();
            out.push_str(&format!(r#","tool_calls":[{}]"#, calls.join(",")));
        }
        out.push('}');
        out
    }
}

impl Call {
    fn json(&self, number: usize) -> String {
        let id = if self.id.is_empty() { format!("call_{number}") } else { self.id.clone() };
        let kind = if self.kind.is_empty() { "function" } else { &self.kind };
        let (id, kind, name) = (json_text(&id), json_text(kind), json_text(&self.name));
        let arguments = json_text(&arguments(&self.arguments));
        let mut out = format!(r#"{{"id":{id},"type":{kind},"function":{{"name":{name},"arguments":{arguments}}}"#);
        for (name, value) in &self.others {
            out.push_str(&format!(",{}:{value}", json_text(name)));
        }
        out.push('}');
        out
    }
}

/// What was counted, if anything was.
fn counted(usage: &Value) -> Option<Usage> {
    let at = |path: &str| usage.pointer(path).and_then(Value::as_u64);
    let input_tokens = at("/prompt_tokens").or_else(|| at("/input_tokens"))?;
    Some(Usage {
        input_tokens,
        cache_read_tokens: at("/prompt_tokens_details/cached_tokens")
            .or_else(|| at("/prompt_cache_hit_tokens"))
            .unwrap_or_default(),
        cache_write_tokens: at("/prompt_tokens_details/cache_write_tokens").unwrap_or_default(),
        output_tokens: at("/completion_tokens").or_else(|| at("/output_tokens")).unwrap_or_default(),
        reasoning_tokens: at("/completion_tokens_details/reasoning_tokens").unwrap_or_default(),
    })
}
