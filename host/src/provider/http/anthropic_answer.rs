//! An answer of Anthropic Messages, put together block by block.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::call::Answer;
use super::frame::json_text;
use super::members::{Members, arguments};
use super::reading::{failure, parsed, unreadable};
use crate::formats::Format;
use crate::provider::{Delta, FinishReason, ModelReply, OnDelta, ProviderError, Usage};
use crate::record::Message;

/// What has come of an answer.
#[derive(Debug, Default)]
pub(super) struct AnthropicAnswer {
    known: usize,
    blocks: Vec<Block>,
    /// The content as it came, when it came whole and needs no mending.
    raw: Option<String>,
    stop: Option<String>,
    usage: Counts,
    model: Option<String>,
    over: bool,
}

/// A content block: how it began, and what was added.
#[derive(Debug)]
struct Block {
    index: u64,
    start: Members,
    kind: String,
    /// Text added to members, by their names.
    added: Vec<(String, String)>,
    /// Elements added to `citations`.
    citations: Vec<Value>,
}

#[derive(Deserialize)]
struct Start {
    index: u64,
    content_block: Members,
}

#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    model: Option<String>,
    stop_reason: Option<String>,
    usage: Option<Value>,
}

impl Answer for AnthropicAnswer {
    fn new(known: usize) -> Self {
        Self { known, ..Self::default() }
    }

    fn event(&mut self, kind: &str, data: &str, on_delta: &OnDelta<'_>) -> Result<(), ProviderError> {
        let event = parsed(data)?;
        // Not every gateway repeats the event's name on its own line.
        let kind = event.get("type").and_then(Value::as_str).unwrap_or(kind);
        match kind {
            "message_start" => {
                let message = event.get("message").unwrap_or(&Value::Null);
                self.model = message.get("model").and_then(Value::as_str).map(str::to_owned);
                self.usage.take(message.get("usage"));
            }
            "content_block_start" => {
                let start: Start = serde_json::from_str(data).map_err(|error| unreadable(&error, data))?;
                let block = Block::new(start.index, start.content_block);
                block.tell(on_delta);
                self.blocks.push(block);
            }
            "content_block_delta" => {
                let index = event.get("index").and_then(Value::as_u64);
                let block = self.blocks.iter_mut().rfind(|block| Some(block.index) == index);
                let (Some(block), Some(delta)) = (block, event.get("delta")) else {
                    return Err(ProviderError::Garbled("a piece of a block that never began".into()));
                };
                block.add(delta, on_delta);
            }
            "message_delta" => {
                if let Some(reason) = event.pointer("/delta/stop_reason").and_then(Value::as_str) {
                    self.stop = Some(reason.to_owned());
                }
                self.usage.take(event.get("usage"));
            }
            "message_stop" => self.over = true,
            "error" => return Err(failure(&event, data)),
            // `ping`, `content_block_stop`, and what is yet to come.
            _ => {}
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn whole(&mut self, json: &str, on_delta: &OnDelta<'_>) -> Result<(), ProviderError> {
        let head = parsed(json)?;
        if head.get("type").is_some_and(|kind| kind == "error") || head.get("error").is_some_and(|e| !e.is_null()) {
            return Err(failure(&head, json));
        }
        let whole: Whole<'_> = serde_json::from_str(json).map_err(|error| unreadable(&error, json))?;
        let Some(content) = whole.content else { return Err(ProviderError::Garbled("it has no content".into())) };
        let blocks: Vec<Members> =
            serde_json::from_str(content.get()).map_err(|error| unreadable(&error, content.get()))?;
        for (index, start) in blocks.into_iter().enumerate() {
            let block = Block::new(index as u64, start);
            block.tell(on_delta);
            self.blocks.push(block);
        }
        if self.blocks.iter().all(|block| !block.is_blank() && !block.lacks_id()) {
            self.raw = Some(content.get().to_owned());
        }
        self.model = whole.model;
        self.stop = whole.stop_reason.or_else(|| Some("end_turn".into()));
        self.usage.take(whole.usage.as_ref());
        self.over = true;
        Ok(())
    }

    fn reply(self) -> Result<ModelReply, ProviderError> {
        if !(self.over && self.stop.is_some()) {
            return Err(ProviderError::Garbled("the stream ended before the answer did".into()));
        }
        let calls = self.blocks.iter().any(|block| block.kind == "tool_use");
        let finish = match self.stop.as_deref().unwrap_or_default() {
            "end_turn" | "stop_sequence" | "tool_use" if calls => FinishReason::ToolCalls,
            "end_turn" | "stop_sequence" | "tool_use" => FinishReason::Stop,
            "max_tokens" => FinishReason::Length,
            "model_context_window_exceeded" => FinishReason::ContextWindow,
            "pause_turn" => FinishReason::Paused,
            "refusal" => FinishReason::Refused,
            other => FinishReason::Other(other.to_owned()),
        };
        // Neither an empty text nor an empty message may be sent back.
        let blocks = self.blocks.iter().filter(|block| !block.is_blank()).enumerate();
        let blocks: Vec<String> = blocks.map(|(at, block)| block.json(self.known + at)).collect();
        let messages = if blocks.is_empty() {
            Vec::new()
        } else {
            let content = self.raw.unwrap_or_else(|| format!("[{}]", blocks.join(",")));
            let json = format!(r#"{{"role":"assistant","content":{content}}}"#);
            let message = Message::raw(Format::AnthropicMessages, json);
            vec![message.map_err(|error| ProviderError::Garbled(format!("it is no message: {error}")))?]
        };
        Ok(ModelReply { usage: self.usage.usage(), model: self.model, ..ModelReply::new(messages, finish) })
    }
}

impl Block {
    fn new(index: u64, start: Members) -> Self {
        let kind = start.text("type").unwrap_or_default();
        Self { index, start, kind, added: Vec::new(), citations: Vec::new() }
    }

    /// Passes on what the block began with.
    fn tell(&self, on_delta: &OnDelta<'_>) {
        let text = |name: &str| self.start.text(name).filter(|text| !text.is_empty());
        match self.kind.as_str() {
            "text" => text("text").iter().for_each(|text| on_delta(Delta::Text(text))),
            "thinking" => text("thinking").iter().for_each(|text| on_delta(Delta::Reasoning(text))),
            "tool_use" => text("name").iter().for_each(|name| on_delta(Delta::ToolCall(name))),
            _ => {}
        }
    }

    fn add(&mut self, delta: &Value, on_delta: &OnDelta<'_>) {
        let Value::Object(delta) = delta else { return };
        if let Some(citation) = delta.get("citation") {
            self.citations.push(citation.clone());
        }
        for (name, value) in delta {
            // The protocol's own deltas name the member they add to; the arguments of a call are the exception.
            let (name, Value::String(text)) = (if name == "partial_json" { "input" } else { name }, value) else {
                continue;
            };
            match name {
                "type" => continue,
                "text" => on_delta(Delta::Text(text)),
                "thinking" => on_delta(Delta::Reasoning(text)),
                _ => {}
            }
            match self.added.iter_mut().find(|(added, _)| added == name) {
                Some((_, all)) => all.push_str(text),
                None => self.added.push((name.to_owned(), text.clone())),
            }
        }
    }

    /// A text that says nothing: no server takes it back.
    fn is_blank(&self) -> bool {
        let added = self.added.iter().find(|(name, _)| name == "text").map_or("", |(_, text)| text.as_str());
        self.kind == "text" && (self.start.text("text").unwrap_or_default() + added).trim().is_empty()
    }

    fn lacks_id(&self) -> bool {
        self.kind == "tool_use" && self.start.text("id").is_none_or(|id| id.is_empty())
    }

    fn json(&self, number: usize) -> String {
        let mut changes = Vec::new();
        for (name, text) in &self.added {
            let value = if name == "input" {
                // Some servers begin with the whole input and add nothing.
                let none = text.trim().is_empty();
                self.start.get("input").filter(|_| none).map_or_else(|| arguments(text), str::to_owned)
            } else {
                json_text(&(self.start.text(name).unwrap_or_default() + text))
            };
            changes.push((name.clone(), value));
        }
        if !self.citations.is_empty() {
            let first: Vec<Value> =
                self.start.get("citations").and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
            changes.push(("citations".into(), Value::from([first, self.citations.clone()].concat()).to_string()));
        }
        if self.kind == "tool_use" {
            let input = self.start.get("input").filter(|input| *input != "null");
            if input.is_none() && !changes.iter().any(|(name, _)| name == "input") {
                changes.push(("input".into(), "{}".into()));
            }
            if self.lacks_id() {
                changes.push(("id".into(), json_text(&format!("call_{number}"))));
            }
        }
        self.start.with(&changes)
    }
}

/// Counts come at the beginning and, corrected, at the end.
#[derive(Debug, Default)]
struct Counts {
    seen: bool,
    fresh: u64,
    read: u64,
    written: u64,
    output: u64,
    reasoning: u64,
}

impl Counts {
    fn take(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage.filter(|usage| usage.is_object()) else { return };
        self.seen = true;
        // A gateway that does not know yet says 0 or nothing.
        let update = |field: &mut u64, path: &str| {
            if let Some(count) = usage.pointer(path).and_then(Value::as_u64).filter(|&count| count > 0) {
                *field = count;
            }
        };
        update(&mut self.fresh, "/input_tokens");
        update(&mut self.read, "/cache_read_input_tokens");
        update(&mut self.written, "/cache_creation_input_tokens");
        update(&mut self.output, "/output_tokens");
        update(&mut self.reasoning, "/output_tokens_details/thinking_tokens");
        update(&mut self.reasoning, "/output_tokens_details/reasoning_tokens");
    }

    /// The protocol counts what was not cached apart; the prompt is all three.
    fn usage(&self) -> Option<Usage> {
        self.seen.then(|| Usage {
            input_tokens: self.fresh.saturating_add(self.read).saturating_add(self.written),
            cache_read_tokens: self.read,
            cache_write_tokens: self.written,
            output_tokens: self.output,
            reasoning_tokens: self.reasoning,
        })
    }
}
