//! What a provider refuses. The table in the crate's documentation lists it.

mod chat;
mod messages;
mod responses;

use std::collections::HashMap;

use serde_json::Value;

use crate::agent::Answer;
use crate::config::{Config, Protocol, Strictness};
use crate::digest::Signer;
use crate::refusal::{Reason, Refusal};
use crate::request::Request;
use crate::wire::Frame;

type Check = Result<(), Refusal>;

/// What this server has sent out and must get back as it was.
#[derive(Debug, Default)]
pub(crate) struct Issued {
    /// Of a `tool_use` id: the thinking before it.
    thinking: HashMap<String, Option<String>>,
    /// Of an item's id: the id of the reasoning right before it.
    reasoning_of: HashMap<String, String>,
    /// Of a reasoning's id: the type of the item right after it, and the call id if it is a call.
    after_reasoning: HashMap<String, (&'static str, Option<String>)>,
}

impl Issued {
    pub(crate) fn remember(&mut self, frame: &Frame<'_>, answer: &Answer) {
        match frame.protocol {
            Protocol::Chat => {}
            Protocol::Messages => {
                for call in &answer.calls {
                    self.thinking.insert(call.id.clone(), answer.reasoning.clone());
                }
            }
            Protocol::Responses if answer.reasoning.is_none() => {}
            Protocol::Responses => {
                let mut ids = frame.item_ids(answer).into_iter();
                if let (Some(reasoning), Some(next)) = (ids.next(), ids.next()) {
                    let call = answer.calls.first().filter(|_| answer.text.is_empty());
                    let kind = if call.is_some() { "function_call" } else { "message" };
                    self.after_reasoning.insert(reasoning.clone(), (kind, call.map(|call| call.id.clone())));
                    self.reasoning_of.insert(next, reasoning);
                }
            }
        }
    }
}

/// Refuses what the real endpoint would refuse, the window left aside.
pub(crate) fn check(request: &Request, version: bool, config: &Config, signer: &Signer, issued: &Issued) -> Check {
    let strict = &config.strictness;
    if !request.field("model").is_string() {
        return Err(missing(request.protocol, "model"));
    }
    if !strict.known_models.is_empty() && !strict.known_models.contains(&request.model) {
        let message = match request.protocol {
            Protocol::Messages => format!("model: {}", request.model),
            _ => format!("The model `{}` does not exist or you do not have access to it.", request.model),
        };
        return Err(Refusal::new(Reason::UnknownModel, message).status(404).code("model_not_found"));
    }
    match request.protocol {
        Protocol::Chat => chat::check(request, strict),
        Protocol::Responses => responses::check(request, strict, signer, issued),
        Protocol::Messages if !version => {
            Err(Refusal::new(Reason::MissingField, "anthropic-version: header is required"))
        }
        Protocol::Messages => messages::check(request, strict, signer, issued),
    }
}

fn missing(protocol: Protocol, field: &str) -> Refusal {
    match protocol {
        Protocol::Messages => Refusal::new(Reason::MissingField, format!("{field}: Field required")),
        _ => Refusal::new(Reason::MissingField, format!("Missing required parameter: '{field}'."))
            .of(field)
            .code("missing_required_parameter"),
    }
}

/// OpenAI's way of saying that a value is wrong.
fn invalid(reason: Reason, param: &str, expected: &str, got: &Value) -> Refusal {
    let got = match got {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "a boolean".to_owned(),
        Value::Number(_) => "a number".to_owned(),
        Value::String(text) if text.is_empty() => "an empty string".to_owned(),
        Value::String(text) => format!("'{}'", text.chars().take(60).collect::<String>()),
        Value::Array(list) if list.is_empty() => "an empty array".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    Refusal::new(reason, format!("Invalid value for '{param}': expected {expected}, but got {got} instead."))
        .of(param)
        .code("invalid_value")
}

/// Temperature and the like, for models that take none (Chat and Responses).
fn sampling(request: &Request) -> Check {
    for (name, range) in [("temperature", 0.0..=2.0), ("top_p", 0.0..=1.0)] {
        let value = request.field(name);
        let Some(number) = value.as_f64() else {
            if value.is_null() {
                continue;
            }
            return Err(invalid(Reason::BadField, name, "a number", value));
        };
        if request.is_reasoning_model() && (request.protocol == Protocol::Responses || number != 1.0) {
            let refusal = match request.protocol {
                Protocol::Responses => Refusal::new(
                    Reason::Temperature,
                    format!("Unsupported parameter: '{name}' is not supported with this model."),
                )
                .code("unsupported_parameter"),
                _ => Refusal::new(
                    Reason::Temperature,
                    format!(
                        "Unsupported value: '{name}' does not support {number} with this model. Only the default (1) \
                         value is supported."
                    ),
                )
                .code("unsupported_value"),
            };
            return Err(refusal.of(name));
        }
        if !range.contains(&number) {
            return Err(invalid(Reason::BadField, name, "a number in range", value));
        }
    }
    Ok(())
}

/// A function's name: letters, digits, `_`, `-`, at most `most` of them.
fn is_name(value: &Value, most: usize) -> bool {
    value.as_str().is_some_and(|name| {
        (1..=most).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    })
}

/// Arguments as they stand in OpenAI's histories: a string that holds a JSON object.
fn arguments(value: &Value, at: &str, strict: &Strictness) -> Check {
    let Some(text) = value.as_str() else {
        return Err(invalid(Reason::BadArguments, at, "a string", value));
    };
    if strict.arguments_are_objects && !serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object()) {
        let message = format!("Invalid '{at}': the arguments of a function call must be a JSON object.");
        return Err(Refusal::new(Reason::BadArguments, message).of(at).code("invalid_value"));
    }
    Ok(())
}

/// Content in OpenAI's protocols: a string, or parts of the given types.
fn content(value: &Value, at: &str, types: &[&str], strict: &Strictness) -> Check {
    let texts: Vec<(&str, String)> = match value {
        Value::String(text) => vec![(text, at.to_owned())],
        Value::Array(parts) if parts.is_empty() => {
            let message = format!("Invalid '{at}': empty array. Expected an array with minimum length 1.");
            return Err(Refusal::new(Reason::EmptyContent, message).of(at).code("empty_array"));
        }
        Value::Array(parts) => {
            let mut texts = Vec::new();
            for (number, part) in parts.iter().enumerate() {
                let at = format!("{at}[{number}]");
                let kind = part["type"].as_str().unwrap_or_default();
                if !types.contains(&kind) {
                    let known = types.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
                    let message = format!("Invalid value: '{kind}'. Supported values are: {known}.");
                    let refusal = Refusal::new(Reason::UnknownType, message).of(format!("{at}.type"));
                    return Err(refusal.code("invalid_value"));
                }
                if kind.ends_with("text") {
                    let text = part["text"].as_str();
                    let text = text.ok_or_else(|| missing(Protocol::Chat, &format!("{at}.text")))?;
                    texts.push((text, format!("{at}.text")));
                }
            }
            texts
        }
        _ => return Err(invalid(Reason::EmptyContent, at, "a string or an array", value)),
    };
    match texts.iter().find(|(text, _)| strict.no_empty_text && text.is_empty()) {
        Some((_, at)) => {
            Err(Refusal::new(Reason::EmptyText, format!("Invalid '{at}': text content is empty")).of(at.as_str()))
        }
        None => Ok(()),
    }
}

/// Tools of OpenAI's protocols: functions with names of their own.
fn openai_tools(request: &Request) -> Check {
    let param = "tools";
    if request.has_tools && request.tools.is_empty() && request.protocol == Protocol::Chat {
        let message = "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array \
                       instead.";
        return Err(Refusal::new(Reason::BadTools, message).of(param).code("empty_array"));
    }
    if !request.field(param).is_null() {
        return Err(invalid(Reason::BadTools, param, "an array", request.field(param)));
    }
    let mut names = Vec::new();
    for (number, tool) in request.tools.iter().enumerate() {
        let tool = &tool.value;
        let at = format!("tools[{number}]");
        if !tool["type"].is_string() {
            return Err(Refusal { reason: Reason::BadTools, ..missing(Protocol::Chat, &format!("{at}.type")) });
        }
        if tool["type"] != "function" {
            // Hosted and custom tools are let through and never called.
            continue;
        }
        let (function, at) = match request.protocol {
            Protocol::Chat => (&tool["function"], format!("{at}.function")),
            _ => (tool, at),
        };
        if !is_name(&function["name"], 64) {
            return Err(Refusal { reason: Reason::BadTools, ..missing(Protocol::Chat, &format!("{at}.name")) });
        }
        let schema = &function["parameters"];
        if !(schema.is_null() || schema.is_object() && schema["type"] == "object") {
            let message = format!(
                "Invalid schema for function {}: schema must be a JSON Schema of 'type: \"object\"'.",
                function["name"]
            );
            let refusal = Refusal::new(Reason::BadTools, message).of(format!("{at}.parameters"));
            return Err(refusal.code("invalid_function_parameters"));
        }
        if names.contains(&&function["name"]) {
            let message = format!("Function names must be unique: {} occurs twice.", function["name"]);
            return Err(Refusal::new(Reason::BadTools, message).of(at).code("invalid_value"));
        }
        names.push(&function["name"]);
    }
    if request.tools.is_empty() && request.protocol == Protocol::Chat {
        for name in ["tool_choice", "parallel_tool_calls"] {
            if !request.field(name).is_null() {
                let message =
                    format!("Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified.");
                return Err(Refusal::new(Reason::BadTools, message).of(name));
            }
        }
    }
    Ok(())
}
