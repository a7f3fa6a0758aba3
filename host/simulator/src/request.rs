//! A request body, taken apart far enough to count, check and answer it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::config::Protocol;
use crate::count::{Counter, Item, Place, Segment};
use crate::refusal::{Reason, Refusal};

/// What stood where the conversation belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Missing,
    /// A string: fine in Responses only.
    Text,
    Array,
    Wrong,
}

/// A request body.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) protocol: Protocol,
    pub(crate) model: String,
    pub(crate) stream: bool,
    /// All other fields.
    pub(crate) fields: Map<String, Value>,
    pub(crate) list: List,
    /// `tools` was given and is an array.
    pub(crate) has_tools: bool,
    pub(crate) tools: Vec<Arc<Item>>,
    pub(crate) system: Option<Arc<Item>>,
    pub(crate) items: Vec<Arc<Item>>,
}

impl Request {
    pub(crate) fn read(protocol: Protocol, body: &[u8], counter: &Counter) -> Result<Self, Refusal> {
        let invalid = || Refusal::new(Reason::InvalidJson, invalid_json(protocol));
        let text = std::str::from_utf8(body).map_err(|_| invalid())?;
        let raw: BTreeMap<String, &RawValue> = serde_json::from_str(text).map_err(|_| invalid())?;
        let (list_key, system_key) = match protocol {
            Protocol::Chat => ("messages", None),
            Protocol::Responses => ("input", Some("instructions")),
            Protocol::Messages => ("messages", Some("system")),
        };
        let mut request = Self {
            protocol,
            model: String::new(),
            stream: false,
            fields: Map::new(),
            list: List::Missing,
            has_tools: false,
            tools: Vec::new(),
            system: None,
            items: Vec::new(),
        };
        let each = |json: &RawValue, place| -> Option<Vec<Arc<Item>>> {
            let list: Vec<&RawValue> = serde_json::from_str(json.get()).ok()?;
            Some(list.into_iter().map(|item| counter.item(protocol, place, item.get())).collect())
        };
        for (key, json) in raw {
            if key == list_key {
                request.list = match json.get().as_bytes().first() {
                    Some(b'[') => List::Array,
                    Some(b'"') => List::Text,
                    _ => List::Wrong,
                };
                if request.list == List::Text && protocol == Protocol::Responses {
                    let message = format!(r#"{{"type":"message","role":"user","content":{}}}"#, json.get());
                    request.items.push(counter.item(protocol, Place::Conversation, &message));
                }
                request.items.extend(each(json, Place::Conversation).unwrap_or_default());
            } else if key == "tools" && json.get().starts_with('[') {
                request.has_tools = true;
                request.tools = each(json, Place::Tool).unwrap_or_default();
            } else if Some(key.as_str()) == system_key && json.get() != "null" {
                request.system = Some(counter.item(protocol, Place::System, json.get()));
            } else {
                request.fields.insert(key, serde_json::from_str(json.get()).map_err(|_| invalid())?);
            }
        }
        request.model = request.fields.get("model").and_then(Value::as_str).unwrap_or_default().to_owned();
        request.stream = request.fields.get("stream").and_then(Value::as_bool).unwrap_or_default();
        Ok(request)
    }

    /// A top-level field; `null` where there is none.
    pub(crate) fn field(&self, key: &str) -> &Value {
        self.fields.get(key).unwrap_or(&Value::Null)
    }

    /// The output asked for.
    pub(crate) fn max_output(&self) -> Option<u64> {
        let keys: &[&str] = match self.protocol {
            Protocol::Chat => &["max_completion_tokens", "max_tokens"],
            Protocol::Responses => &["max_output_tokens"],
            Protocol::Messages => &["max_tokens"],
        };
        keys.iter().find_map(|key| self.field(key).as_u64())
    }

    /// Whether the model is one that reasons and takes no temperature: `gpt-5…`, `o1…`, `o3…`, `o4…`.
    pub(crate) fn is_reasoning_model(&self) -> bool {
        let name = self.model.rsplit('/').next().unwrap_or_default();
        name.starts_with("gpt-5")
            || name.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    }

    /// Whether the answer may hold reasoning.
    pub(crate) fn reasons(&self) -> bool {
        match self.protocol {
            Protocol::Messages => self.thinking(),
            Protocol::Chat => self.is_reasoning_model() || self.field("reasoning_effort").is_string(),
            Protocol::Responses => self.is_reasoning_model() || self.field("reasoning").is_object(),
        }
    }

    /// Whether thinking is on (Messages).
    pub(crate) fn thinking(&self) -> bool {
        matches!(self.field("thinking")["type"].as_str(), Some("enabled" | "adaptive"))
    }

    /// Number of the newest item with text of a user.
    fn newest_user_text(&self) -> usize {
        self.items.iter().rposition(|item| item.user_text).unwrap_or(0)
    }

    /// Every piece of the prompt in the order in which it is cached, with its tokens: tools, system, conversation
    /// without its first `dropped` items.
    pub(crate) fn pieces(&self, dropped: usize, old_reasoning: bool) -> Vec<(&Segment, u64)> {
        let newest = self.newest_user_text();
        let whole = |item: &'_ Arc<Item>| item.segments.len();
        let mut pieces = Vec::with_capacity(self.items.iter().map(whole).sum::<usize>() + self.tools.len() + 1);
        for item in self.tools.iter().chain(&self.system) {
            pieces.extend(item.segments.iter().map(|segment| (segment, segment.tokens + segment.reasoning)));
        }
        for (at, item) in self.items.iter().enumerate() {
            if at < dropped && !is_head(item) {
                continue;
            }
            let reasoning = old_reasoning || at > newest;
            let weight = |segment: &Segment| segment.tokens + if reasoning { segment.reasoning } else { 0 };
            pieces.extend(item.segments.iter().map(|segment| (segment, weight(segment))));
        }
        pieces
    }

    /// How many items must go from the front so that the rest weighs at most `room`.
    pub(crate) fn truncate(&self, total: u64, room: u64) -> usize {
        let (mut dropped, mut left) = (0, total);
        for item in self.items.iter().take(self.items.len().saturating_sub(1)) {
            if left <= room {
                break;
            }
            dropped += 1;
            if !is_head(item) {
                left = left.saturating_sub(item.tokens());
            }
        }
        dropped
    }

    /// The text that may be an instruction: the system prompts, and the newest text if it is no tool's.
    pub(crate) fn instructions(&self) -> Vec<&str> {
        let mut found = Vec::new();
        if let Some(system) = &self.system {
            texts(&system.value, &mut found);
        }
        for item in self.items.iter().filter(|item| is_head(item)) {
            texts(&item.value["content"], &mut found);
        }
        if let Some(last) = self.items.last().filter(|item| item.user_text) {
            let mut newest = Vec::new();
            texts(&last.value["content"], &mut newest);
            found.extend(newest.last());
        }
        found
    }
}

/// A system prompt inside the conversation.
fn is_head(item: &Arc<Item>) -> bool {
    matches!(item.value["role"].as_str(), Some("system" | "developer"))
}

/// The texts of a content: a string, or the `text` of its parts.
fn texts<'a>(content: &'a Value, found: &mut Vec<&'a str>) {
    match content {
        Value::String(text) => found.push(text),
        Value::Array(parts) => found.extend(parts.iter().filter_map(|part| part["text"].as_str())),
        _ => {}
    }
}

fn invalid_json(protocol: Protocol) -> String {
    match protocol {
        Protocol::Messages => "The request body is not valid JSON".to_owned(),
        Protocol::Chat | Protocol::Responses => {
            "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP \
             library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)"
                .to_owned()
        }
    }
}
