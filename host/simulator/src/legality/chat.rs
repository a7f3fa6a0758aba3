//! Chat Completions.

use serde_json::Value;

use super::{Check, arguments, content, invalid, is_name, openai_tools, sampling};
use crate::config::Strictness;
use crate::refusal::{Reason, Refusal};
use crate::request::{List, Request};

pub(super) fn check(request: &Request, strict: &Strictness) -> Check {
    let refuse = |reason, message: &str, param: &str| Err(Refusal::new(reason, message).of(param));
    match request.list {
        List::Missing => return Err(super::missing(request.protocol, "messages")),
        List::Text | List::Wrong => {
            return refuse(Reason::BadField, "Invalid type for 'messages': expected an array of objects.", "messages");
        }
        List::Array if request.items.is_empty() => {
            let message = "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty \
                           array instead.";
            return Err(Refusal::new(Reason::NoMessages, message).of("messages").code("empty_array"));
        }
        List::Array => {}
    }
    sampling(request)?;
    if request.is_reasoning_model() && !request.field("max_tokens").is_null() {
        let message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                       'max_completion_tokens' instead.";
        let refusal = Refusal::new(Reason::UnsupportedParameter, message).of("max_tokens");
        return Err(refusal.code("unsupported_parameter"));
    }
    for name in ["max_tokens", "max_completion_tokens"] {
        let value = request.field(name);
        if !(value.is_null() || value.as_u64().is_some_and(|most| most > 0)) {
            return Err(invalid(Reason::BadField, name, "an integer of at least 1", value));
        }
    }
    if !request.field("stream_options").is_null() && !request.stream {
        let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        return refuse(Reason::BadField, message, "stream_options");
    }
    openai_tools(request)?;
    conversation(request, strict)
}

fn conversation(request: &Request, strict: &Strictness) -> Check {
    // Calls of the newest assistant message, and whether each has its result.
    let mut open: Vec<(&str, bool)> = Vec::new();
    for (number, item) in request.items.iter().enumerate() {
        let message = &item.value;
        let at = format!("messages[{number}]");
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            result(message, &at, &mut open)?;
        } else {
            answered(&open, Some(number))?;
            open.clear();
        }
        let calls = &message["tool_calls"];
        match role {
            "system" | "developer" => content(&message["content"], &format!("{at}.content"), &["text"], strict)?,
            "tool" => content(&message["content"], &format!("{at}.content"), &["text"], strict)?,
            "user" => {
                let types = ["text", "image_url", "input_audio", "file"];
                content(&message["content"], &format!("{at}.content"), &types, strict)?;
            }
            "assistant" => {
                let has_calls = !calls.is_null() || !message["function_call"].is_null();
                if !(message["content"].is_null() && (has_calls || message["refusal"].is_string())) {
                    let text = &message["content"];
                    // Beside calls, an empty text is no text.
                    if !(has_calls && *text == "") {
                        content(text, &format!("{at}.content"), &["text", "refusal"], strict)?;
                    }
                }
                open = self::calls(calls, &at, strict)?;
            }
            _ => {
                let message = format!(
                    "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'tool', and \
                     'developer'."
                );
                let refusal = Refusal::new(Reason::WrongRole, message).of(format!("{at}.role"));
                return Err(refusal.code("invalid_value"));
            }
        }
        if role != "assistant" && !calls.is_null() {
            let message = format!("Unexpected 'tool_calls' in a message with role '{role}'.");
            return Err(Refusal::new(Reason::WrongRole, message).of(format!("{at}.tool_calls")));
        }
    }
    answered(&open, None)
}

/// The calls of an assistant message.
fn calls<'a>(calls: &'a Value, at: &str, strict: &Strictness) -> Result<Vec<(&'a str, bool)>, Refusal> {
    let at = format!("{at}.tool_calls");
    let list = match calls {
        Value::Null => return Ok(Vec::new()),
        Value::Array(list) if !list.is_empty() => list,
        _ => {
            let message = format!("Invalid '{at}': empty array. Expected an array with minimum length 1.");
            return Err(Refusal::new(Reason::EmptyContent, message).of(at).code("empty_array"));
        }
    };
    let mut open: Vec<(&str, bool)> = Vec::new();
    for (number, call) in list.iter().enumerate() {
        let at = format!("{at}[{number}]");
        let Some(id) = call["id"].as_str().filter(|id| !id.is_empty()) else {
            return Err(invalid(Reason::BadId, &format!("{at}.id"), "a string", &call["id"]));
        };
        if call["type"] != "function" && call["type"] != "custom" {
            return Err(invalid(Reason::UnknownType, &format!("{at}.type"), "'function'", &call["type"]));
        }
        if call["type"] == "function" {
            if !is_name(&call["function"]["name"], 64) {
                let at = format!("{at}.function.name");
                return Err(invalid(Reason::BadField, &at, "a function's name", &call["function"]["name"]));
            }
            arguments(&call["function"]["arguments"], &format!("{at}.function.arguments"), strict)?;
        }
        if open.iter().any(|(known, _)| *known == id) {
            let message = format!("Duplicate value for 'tool_call_id' of '{id}' in one message.");
            return Err(Refusal::new(Reason::RepeatedId, message).of(format!("{at}.id")));
        }
        open.push((id, false));
    }
    Ok(open)
}

fn result(message: &Value, at: &str, open: &mut [(&str, bool)]) -> Check {
    let param = format!("{at}.tool_call_id");
    let Some(id) = message["tool_call_id"].as_str() else {
        return Err(super::missing(crate::Protocol::Chat, &param));
    };
    match open.iter_mut().find(|(known, _)| *known == id) {
        Some((_, done)) if *done => {
            let message = format!("Duplicate value for 'tool_call_id' of '{id}': the call has its result already.");
            Err(Refusal::new(Reason::RepeatedResult, message).of(param))
        }
        Some((_, done)) => {
            *done = true;
            Ok(())
        }
        None => {
            let message = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with \
                           'tool_calls'.";
            Err(Refusal::new(Reason::ResultWithoutCall, message).of(format!("{at}.role")))
        }
    }
}

/// All calls of a message have their results when anything else comes. `next` is the message that came too early.
fn answered(open: &[(&str, bool)], next: Option<usize>) -> Check {
    let waiting: Vec<&str> = open.iter().filter(|(_, done)| !done).map(|(id, _)| *id).collect();
    if waiting.is_empty() {
        return Ok(());
    }
    let message = format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. \
         The following tool_call_ids did not have response messages: {}",
        waiting.join(", ")
    );
    let param = next.map_or_else(|| "messages".to_owned(), |number| format!("messages[{number}].role"));
    Err(Refusal::new(Reason::CallWithoutResult, message).of(param))
}
