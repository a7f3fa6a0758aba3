//! Counting: what one message, tool or block weighs, each looked at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::config::{Counting, Protocol};
use crate::digest::{self, Signer};

/// Tokens of a text by the o200k_base vocabulary.
pub(crate) fn tokens(text: &str) -> u64 {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len() as u64
}

/// Which part of a request an item stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Tool,
    System,
    Conversation,
}

/// A message, item, tool or system prompt, with all that is ever asked about it.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) value: Value,
    /// What the prompt cache can tell apart: the blocks of an Anthropic message, else one for the whole.
    pub(crate) segments: Vec<Segment>,
    /// What the recall tool is offered for in texts of users and tools.
    pub(crate) references: Vec<String>,
    /// Holds text of a user (and not only tool results).
    pub(crate) user_text: bool,
}

impl Item {
    pub(crate) fn tokens(&self) -> u64 {
        self.segments.iter().map(|segment| segment.tokens + segment.reasoning).sum()
    }
}

/// A piece of the prompt that is cached whole or not at all.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Hash of the content. Cache marks are no content.
    pub(crate) identity: u128,
    /// Bytes of its JSON.
    pub(crate) bytes: u64,
    /// Tokens, reasoning left out.
    pub(crate) tokens: u64,
    /// Tokens of reasoning.
    pub(crate) reasoning: u64,
    /// Ends in a `cache_control` mark.
    pub(crate) breakpoint: bool,
}

/// Remembers every item it has seen, by its bytes.
#[derive(Debug)]
pub(crate) struct Counter {
    counting: Counting,
    recall_call: String,
    signer: Signer,
    seen: Mutex<HashMap<(Protocol, Place, u128), Arc<Item>>>,
}

impl Counter {
    pub(crate) fn new(counting: Counting, recall_tool: &str, signer: Signer) -> Self {
        Self { counting, recall_call: format!("{recall_tool}(\""), signer, seen: Mutex::default() }
    }

    /// The item with this JSON, which must be valid.
    pub(crate) fn item(&self, protocol: Protocol, place: Place, json: &str) -> Arc<Item> {
        let key = (protocol, place, digest::hash(&[json.as_bytes()]));
        if let Some(item) = self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Arc::clone(item);
        }
        let value = serde_json::from_str(json).unwrap_or(Value::Null);
        let item = Arc::new(self.weigh(protocol, place, value));
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(key, Arc::clone(&item));
        item
    }

    fn weigh(&self, protocol: Protocol, place: Place, value: Value) -> Item {
        let mut references = Vec::new();
        let role = value["role"].as_str().unwrap_or_default();
        let from_model = role == "assistant" || place != Place::Conversation;
        if !from_model && !matches!(value["type"].as_str(), Some("function_call" | "reasoning")) {
            find_references(&value, &self.recall_call, &mut references);
        }
        let user_text = place == Place::Conversation && role == "user" && !only_results(&value["content"]);
        // Anthropic caches by block; a system prompt is cut the same way.
        let list = if place == Place::System { &value } else { &value["content"] };
        let segments = match (protocol, list.as_array()) {
            (Protocol::Messages, Some(blocks)) if place != Place::Tool && !blocks.is_empty() => {
                let mut first = true;
                blocks.iter().map(|block| self.segment(protocol, role, block, !std::mem::take(&mut first))).collect()
            }
            _ => vec![self.segment(protocol, role, &value, false)],
        };
        Item { value, segments, references, user_text }
    }

    fn segment(&self, protocol: Protocol, role: &str, value: &Value, continues: bool) -> Segment {
        let mut weight = Weight::default();
        self.add(value, &mut weight);
        weight.tokens += if continues { 1 } else { 4 };
        let scale = |count: u64| match protocol {
            Protocol::Messages => (count * self.counting.messages_permille).div_ceil(1_000),
            Protocol::Chat | Protocol::Responses => count,
        };
        let mut bare = value.clone();
        let breakpoint = strip_marks(&mut bare);
        Segment {
            identity: digest::hash(&[role.as_bytes(), bare.to_string().as_bytes()]),
            bytes: value.to_string().len() as u64,
            tokens: scale(weight.tokens) + weight.flat,
            reasoning: scale(weight.reasoning),
            breakpoint,
        }
    }

    /// Adds up what a value holds. Strings are counted as they are read, structure by what stands around them in a
    /// rendered prompt; ids and marks are not shown to a model.
    fn add(&self, value: &Value, weight: &mut Weight) {
        match value {
            Value::String(text) => weight.tokens += tokens(text),
            Value::Array(list) => list.iter().for_each(|value| self.add(value, weight)),
            Value::Object(object) => {
                match object.get("type").and_then(Value::as_str) {
                    Some("thinking") => {
                        weight.reasoning += object.get("thinking").and_then(Value::as_str).map_or(0, tokens);
                        return;
                    }
                    Some("redacted_thinking") => {
                        weight.reasoning += 100;
                        return;
                    }
                    Some("reasoning") => {
                        let sealed = object.get("encrypted_content").and_then(Value::as_str);
                        weight.reasoning += sealed.and_then(|sealed| self.signer.unseal(sealed)).unwrap_or(0);
                        return;
                    }
                    Some(
                        "image" | "image_url" | "input_image" | "document" | "input_file" | "file" | "input_audio",
                    ) => {
                        weight.flat += self.counting.image;
                        return;
                    }
                    Some("tool_use" | "tool_result" | "function" | "function_call" | "function_call_output") => {
                        weight.tokens += 5;
                    }
                    _ => {}
                }
                for (key, value) in object {
                    match key.as_str() {
                        // Schemas and arguments are shown as JSON.
                        "parameters" | "input_schema" | "input" => weight.tokens += tokens(&value.to_string()),
                        "type" | "id" | "role" | "status" | "cache_control" | "signature" | "call_id"
                        | "tool_call_id" | "tool_use_id" | "is_error" | "strict" | "reasoning_content"
                        | "reasoning" | "annotations" | "logprobs" => {}
                        _ => self.add(value, weight),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[derive(Default)]
struct Weight {
    tokens: u64,
    reasoning: u64,
    flat: u64,
}

/// Takes all cache marks out and tells whether there was one.
fn strip_marks(value: &mut Value) -> bool {
    match value {
        Value::Array(list) => list.iter_mut().fold(false, |found, value| strip_marks(value) | found),
        Value::Object(object) => {
            let own = object.remove("cache_control").is_some_and(|mark| !mark.is_null());
            // What a tool is called with is not looked into.
            object
                .iter_mut()
                .filter(|(key, _)| *key == "content")
                .fold(own, |found, (_, value)| strip_marks(value) | found)
        }
        _ => false,
    }
}

/// Whether a message's content is tool results and nothing else.
fn only_results(content: &Value) -> bool {
    content.as_array().is_some_and(|blocks| !blocks.is_empty() && blocks.iter().all(|b| b["type"] == "tool_result"))
}

/// Collects `REF` of every `recall_tool_result("REF")` in the texts of a value, in order, each once.
fn find_references(value: &Value, call: &str, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            for (at, _) in text.match_indices(call) {
                let rest = &text[at + call.len()..];
                if let Some(end) = rest.find("\")")
                    && (1..=200).contains(&end)
                    && !found.iter().any(|known| known == &rest[..end])
                {
                    found.push(rest[..end].to_owned());
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| find_references(value, call, found)),
        Value::Object(object) => object.values().for_each(|value| find_references(value, call, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter() -> Counter {
        Counter::new(Counting::default(), "recall_tool_result", Signer::new(1))
    }

    #[test]
    fn a_text_weighs_its_tokens_and_a_little_more() {
        let text = "The quick brown fox jumps over the lazy dog.";
        let item = counter().item(
            Protocol::Chat,
            Place::Conversation,
            &serde_json::json!({"role": "user", "content": text}).to_string(),
        );
        assert_eq!(item.tokens(), tokens(text) + 4);
        assert!(item.user_text);
    }

    #[test]
    fn a_moved_cache_mark_changes_no_identity() {
        let counter = counter();
        let item = |mark: &str| {
            let json = format!(r#"{{"role":"user","content":[{{"type":"text","text":"hello"{mark}}}]}}"#);
            counter.item(Protocol::Messages, Place::Conversation, &json)
        };
        let (plain, marked) = (item(""), item(r#","cache_control":{"type":"ephemeral"}"#));
        assert_eq!(plain.segments[0].identity, marked.segments[0].identity);
        assert!(marked.segments[0].breakpoint && !plain.segments[0].breakpoint);
    }

    #[test]
    fn references_are_found_in_results_and_not_in_what_the_model_said() {
        let counter = counter();
        let json = |role: &str| {
            serde_json::json!({"role": role, "content": "x recall_tool_result(\"call_1\") y recall_tool_result(\"b\")"})
                .to_string()
        };
        let references = |role| counter.item(Protocol::Chat, Place::Conversation, &json(role)).references.clone();
        assert_eq!(references("tool"), ["call_1", "b"]);
        assert!(references("assistant").is_empty());
    }
}
