//! An answer of OpenAI Responses: items, kept as they came.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::call::Answer;
use super::frame::json_text;
use super::members::Members;
use super::reading::{failure, parsed, unreadable};
use crate::formats::Format;
use crate::provider::{Delta, FinishReason, ModelReply, OnDelta, ProviderError, Usage};
use crate::record::Message;
use foreshorten_core::transcript::Entry;

/// What has come of an answer.
#[derive(Debug, Default)]
pub(super) struct ResponsesAnswer {
    known: usize,
    /// Finished items by their place in the output.
    items: Vec<(u64, String)>,
    status: Option<String>,
    why_incomplete: Option<String>,
    usage: Option<Usage>,
    model: Option<String>,
}

#[derive(Deserialize)]
struct Done<'a> {
    output_index: Option<u64>,
    #[serde(borrow)]
    item: &'a RawValue,
}

#[derive(Deserialize)]
struct Ended<'a> {
    #[serde(borrow)]
    response: &'a RawValue,
}

#[derive(Deserialize)]
struct Response<'a> {
    status: Option<String>,
    model: Option<String>,
    #[serde(borrow, default)]
    output: Vec<&'a RawValue>,
    usage: Option<Value>,
    incomplete_details: Option<Value>,
}

impl Answer for ResponsesAnswer {
    fn new(known: usize) -> Self {
        Self { known, ..Self::default() }
    }

    fn event(&mut self, kind: &str, data: &str, on_delta: &OnDelta<'_>) -> Result<(), ProviderError> {
        if data.trim() == "[DONE]" {
            return Ok(());
        }
        let event = parsed(data)?;
        let kind = event.get("type").and_then(Value::as_str).unwrap_or(kind);
        let delta = || event.get("delta").and_then(Value::as_str).unwrap_or_default();
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => on_delta(Delta::Text(delta())),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                on_delta(Delta::Reasoning(delta()));
            }
            "response.output_item.added" => {
                let is_call = event.pointer("/item/type").and_then(Value::as_str).is_some_and(is_call);
                if let Some(name) = event.pointer("/item/name").and_then(Value::as_str).filter(|_| is_call) {
                    on_delta(Delta::ToolCall(name));
                }
            }
            "response.output_item.done" => {
                let done: Done<'_> = serde_json::from_str(data).map_err(|error| unreadable(&error, data))?;
                let place = done.output_index.unwrap_or(self.items.len() as u64);
                self.items.push((place, done.item.get().to_owned()));
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                let ended: Ended<'_> = serde_json::from_str(data).map_err(|error| unreadable(&error, data))?;
                self.ended(ended.response.get())?;
            }
            "response.failed" | "response.cancelled" | "error" => {
                let inside = event.pointer("/response/error").filter(|error| !error.is_null()).unwrap_or(&event);
                return Err(failure(inside, &inside.to_string()));
            }
            _ if event.get("error").is_some_and(|error| !error.is_null()) => return Err(failure(&event, data)),
            _ => {}
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.status.is_some()
    }

    fn whole(&mut self, json: &str, on_delta: &OnDelta<'_>) -> Result<(), ProviderError> {
        let head = parsed(json)?;
        if let Some(error) = head.get("error").filter(|error| !error.is_null()) {
            return Err(failure(error, json));
        }
        self.ended(json)?;
        for item in head.get("output").and_then(Value::as_array).into_iter().flatten() {
            let texts = item.get("content").and_then(Value::as_array).into_iter().flatten();
            for text in texts.filter_map(|part| part.get("text").and_then(Value::as_str)) {
                let reasoning = item.get("type").is_some_and(|kind| kind == "reasoning");
                on_delta(if reasoning { Delta::Reasoning(text) } else { Delta::Text(text) });
            }
            let is_call = item.get("type").and_then(Value::as_str).is_some_and(is_call);
            if let Some(name) = item.get("name").and_then(Value::as_str).filter(|_| is_call) {
                on_delta(Delta::ToolCall(name));
            }
        }
        Ok(())
    }

    fn reply(mut self) -> Result<ModelReply, ProviderError> {
        let finish = match (self.status.as_deref(), self.why_incomplete.as_deref()) {
            (None, _) => return Err(ProviderError::Garbled("the stream ended before the answer did".into())),
            (Some("incomplete"), Some("max_output_tokens" | "max_tokens")) => FinishReason::Length,
            (Some("incomplete"), Some("content_filter")) => FinishReason::Refused,
            (Some("incomplete"), Some(reason)) if reason.contains("context") => FinishReason::ContextWindow,
            (Some("incomplete"), reason) => FinishReason::Other(reason.unwrap_or("incomplete").to_owned()),
            _ => FinishReason::Stop,
        };
        self.items.sort_by_key(|(place, _)| *place);
        let mut messages = Vec::with_capacity(self.items.len());
        let (mut calls, mut refused) = (false, false);
        for (at, (_, json)) in self.items.into_iter().enumerate() {
            let item = Item::read(&json)?;
            calls |= is_call(&item.kind);
            refused |= item.refuses;
            messages.push(item.message(json, self.known + at)?);
        }
        let finish = match finish {
            FinishReason::Stop if calls => FinishReason::ToolCalls,
            FinishReason::Stop if refused => FinishReason::Refused,
            other => other,
        };
        Ok(ModelReply { usage: self.usage, model: self.model, ..ModelReply::new(messages, finish) })
    }
}

impl ResponsesAnswer {
    fn ended(&mut self, json: &str) -> Result<(), ProviderError> {
        let response: Response<'_> = serde_json::from_str(json).map_err(|error| unreadable(&error, json))?;
        // What was cut off is in the whole list only.
        if response.output.len() > self.items.len() {
            let items = response.output.iter().enumerate();
            self.items = items.map(|(at, item)| (at as u64, item.get().to_owned())).collect();
        }
        let reason = response.incomplete_details.as_ref().and_then(|details| details.get("reason"));
        self.why_incomplete = reason.and_then(Value::as_str).map(str::to_owned);
        self.usage = response.usage.as_ref().and_then(counted);
        self.model = response.model;
        let status = response.status.unwrap_or_else(|| "completed".into());
        match status.as_str() {
            "queued" | "in_progress" => return Err(ProviderError::Garbled(format!("it is still {status}"))),
            "failed" | "cancelled" => return Err(failure(&parsed(json)?, json)),
            _ => self.status = Some(status),
        }
        Ok(())
    }
}

/// What has to be known of an item.
struct Item {
    members: Members,
    kind: String,
    refuses: bool,
    /// Reasoning that only the server's own store could bring back, and what can be read of it.
    stored_reasoning: Option<String>,
    lacks_id: bool,
}

impl Item {
    fn read(json: &str) -> Result<Self, ProviderError> {
        let members: Members = serde_json::from_str(json).map_err(|error| unreadable(&error, json))?;
        let value = parsed(json)?;
        let kind = value.get("type").and_then(Value::as_str).unwrap_or("message").to_owned();
        let list = |name: &str| value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let filled = |name: &str| value.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
        let refuses = list("content").iter().any(|part| part.get("type").is_some_and(|kind| kind == "refusal"));
        // We ask nobody to store anything: an item without its content would name what is not there.
        let lost = kind == "reasoning" && !filled("encrypted_content") && list("content").is_empty();
        let summary = || {
            let texts = list("summary").iter().filter_map(|part| part.get("text").and_then(Value::as_str));
            texts.collect::<Vec<_>>().join("\n")
        };
        Ok(Self {
            stored_reasoning: lost.then(summary),
            lacks_id: matches!(kind.as_str(), "function_call" | "custom_tool_call") && !filled("call_id"),
            members,
            kind,
            refuses,
        })
    }

    fn message(self, json: String, number: usize) -> Result<Message, ProviderError> {
        if let Some(summary) = self.stored_reasoning {
            return Ok(Message::of(vec![Entry::reasoning(summary)]));
        }
        let json = if self.lacks_id {
            self.members.with(&[("call_id".into(), json_text(&format!("call_{number}")))])
        } else {
            json
        };
        let message = Message::raw(Format::OpenAiResponses, json);
        message.map_err(|error| ProviderError::Garbled(format!("it is no item: {error}")))
    }
}

/// Calls that the client is to carry out.
fn is_call(kind: &str) -> bool {
    matches!(
        kind,
        "function_call" | "custom_tool_call" | "local_shell_call" | "shell_call" | "computer_call" | "apply_patch_call"
    )
}

fn counted(usage: &Value) -> Option<Usage> {
    let at = |path: &str| usage.pointer(path).and_then(Value::as_u64);
    Some(Usage {
        input_tokens: at("/input_tokens")?,
        cache_read_tokens: at("/input_tokens_details/cached_tokens").unwrap_or_default(),
        cache_write_tokens: at("/input_tokens_details/cache_write_tokens").unwrap_or_default(),
        output_tokens: at("/output_tokens").unwrap_or_default(),
        reasoning_tokens: at("/output_tokens_details/reasoning_tokens").unwrap_or_default(),
    })
}
