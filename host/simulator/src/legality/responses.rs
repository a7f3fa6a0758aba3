//! OpenAI Responses.

use std::collections::HashSet;

use serde_json::Value;

use super::{Check, Issued, arguments, content, invalid, is_name, missing, openai_tools, sampling};
use crate::config::{Protocol, Strictness};
use crate::digest::Signer;
use crate::refusal::{Reason, Refusal};
use crate::request::{List, Request};

pub(super) fn check(request: &Request, strict: &Strictness, signer: &Signer, issued: &Issued) -> Check {
    if !request.field("messages").is_null() {
        let message = "Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'.";
        let refusal = Refusal::new(Reason::UnsupportedParameter, message).of("messages");
        return Err(refusal.code("unsupported_parameter"));
    }
    for name in ["max_tokens", "max_completion_tokens"] {
        if !request.field(name).is_null() {
            let message = format!(
                "Unsupported parameter: '{name}'. In the Responses API, this parameter has moved to 'max_output_tokens'."
            );
            let refusal = Refusal::new(Reason::UnsupportedParameter, message).of(name);
            return Err(refusal.code("unsupported_parameter"));
        }
    }
    if !request.field("previous_response_id").is_null() {
        let message = format!("Previous response with id {} not found.", request.field("previous_response_id"));
        let refusal = Refusal::new(Reason::NotServed, message).of("previous_response_id");
        return Err(refusal.code("previous_response_not_found"));
    }
    for name in ["conversation", "context_management"] {
        if !request.field(name).is_null() {
            return Err(Refusal::new(Reason::NotServed, format!("Unknown parameter: '{name}'.")).of(name));
        }
    }
    match request.list {
        List::Missing => return Err(missing(Protocol::Responses, "input")),
        List::Wrong => return Err(invalid(Reason::BadField, "input", "a string or an array", &Value::Null)),
        _ if request.items.is_empty() => {
            let message = "Invalid 'input': empty array. Expected an array with minimum length 1.";
            return Err(Refusal::new(Reason::NoMessages, message).of("input").code("empty_array"));
        }
        List::Text | List::Array => {}
    }
    sampling(request)?;
    let most = request.field("max_output_tokens");
    if !(most.is_null() || most.as_u64().is_some_and(|most| most >= 16)) {
        let message = "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16.".to_owned();
        let refusal = Refusal::new(Reason::BadField, message).of("max_output_tokens");
        return Err(refusal.code("integer_below_min_value"));
    }
    openai_tools(request)?;
    let mut ids = HashSet::new();
    for (number, item) in request.items.iter().enumerate() {
        self::item(&item.value, &format!("input[{number}]"), request, strict, signer)?;
        if let Some(id) = item.value["id"].as_str().filter(|id| !ids.insert(*id)) {
            let message =
                format!("Duplicate item found with id {id}. Remove duplicate items from your input and try again.");
            return Err(Refusal::new(Reason::RepeatedId, message).of("input"));
        }
    }
    reasoning(request, issued)?;
    pairs(request, strict)
}

/// The type of an item; messages may leave theirs out.
fn kind(item: &Value) -> &str {
    match item["type"].as_str() {
        Some(kind) => kind,
        None if item["role"].is_string() => "message",
        None => "",
    }
}

fn item(item: &Value, at: &str, request: &Request, strict: &Strictness, signer: &Signer) -> Check {
    let id = |prefix: &str| -> Check {
        match item["id"].as_str() {
            Some(id) if !id.starts_with(prefix) => {
                let message = format!(
                    "Invalid '{at}.id': '{id}'. Expected an ID that begins with '{}'.",
                    &prefix[..prefix.len() - 1]
                );
                Err(Refusal::new(Reason::BadId, message).of(format!("{at}.id")).code("invalid_value"))
            }
            _ => Ok(()),
        }
    };
    match kind(item) {
        "message" => {
            let types: &[&str] = match item["role"].as_str() {
                Some("user" | "system" | "developer") => &["input_text", "input_image", "input_file"],
                Some("assistant") => &["output_text", "refusal"],
                _ => {
                    let expected = "one of 'assistant', 'system', 'developer', and 'user'";
                    return Err(invalid(Reason::WrongRole, &format!("{at}.role"), expected, &item["role"]));
                }
            };
            id("msg_")?;
            content(&item["content"], &format!("{at}.content"), types, strict)
        }
        "function_call" => {
            id("fc_")?;
            if !item["call_id"].as_str().is_some_and(|id| (1..=64).contains(&id.len())) {
                return Err(invalid(Reason::BadId, &format!("{at}.call_id"), "a string", &item["call_id"]));
            }
            if !is_name(&item["name"], 64) {
                return Err(invalid(Reason::BadField, &format!("{at}.name"), "a function's name", &item["name"]));
            }
            arguments(&item["arguments"], &format!("{at}.arguments"), strict)
        }
        "function_call_output" => {
            if !item["call_id"].is_string() {
                return Err(invalid(Reason::BadId, &format!("{at}.call_id"), "a string", &item["call_id"]));
            }
            let output = &item["output"];
            // A result may be empty.
            if output.is_string() {
                return Ok(());
            }
            content(output, &format!("{at}.output"), &["input_text", "input_image", "input_file"], strict)
        }
        "reasoning" => {
            id("rs_")?;
            if !item["id"].is_string() {
                return Err(missing(Protocol::Responses, &format!("{at}.id")));
            }
            if !item["summary"].is_array() {
                return Err(missing(Protocol::Responses, &format!("{at}.summary")));
            }
            match item["encrypted_content"].as_str() {
                Some(sealed) if signer.unseal(sealed).is_none() => {
                    let message = format!(
                        "The encrypted content for item {} could not be verified. Reason: Encrypted content could not be \
                         decrypted or parsed.",
                        item["id"].as_str().unwrap_or_default()
                    );
                    let refusal = Refusal::new(Reason::BadEncryptedContent, message);
                    Err(refusal.of(at).code("invalid_encrypted_content"))
                }
                None if request.field("store") == false => {
                    let message = format!(
                        "Item with id {} not found. Items are not persisted when `store` is set to false. Try again with \
                         `store` set to true, or remove this item from your input.",
                        item["id"]
                    );
                    Err(Refusal::new(Reason::BadEncryptedContent, message).status(404).of("input"))
                }
                _ => Ok(()),
            }
        }
        // Free text in, free text out: let through, and paired like the others.
        "custom_tool_call" | "custom_tool_call_output" => Ok(()),
        "item_reference" => Err(Refusal::new(Reason::NotServed, format!("Item with id {} not found.", item["id"]))
            .status(404)
            .of("input")),
        other => {
            let message = format!(
                "Invalid value: '{other}'. Supported values are: 'custom_tool_call', 'custom_tool_call_output', \
                 'function_call', 'function_call_output', 'item_reference', 'message', and 'reasoning'."
            );
            let refusal = Refusal::new(Reason::UnknownType, message).of(format!("{at}.type"));
            Err(refusal.code("invalid_value"))
        }
    }
}

/// Reasoning stands right before the item that it led to.
fn reasoning(request: &Request, issued: &Issued) -> Check {
    let mut before: Option<&Value> = None;
    for (number, item) in request.items.iter().enumerate() {
        let item = &item.value;
        let id = item["id"].as_str().unwrap_or_default();
        if let Some(reasoning) = issued.reasoning_of.get(id)
            && before.is_none_or(|before| before["id"] != reasoning.as_str())
        {
            let message = format!(
                "Item '{id}' of type '{}' was provided without its required 'reasoning' item: '{reasoning}'.",
                kind(item)
            );
            return Err(Refusal::new(Reason::ItemWithoutReasoning, message).of("input"));
        }
        if kind(item) == "reasoning" {
            let next = request.items.get(number + 1).map(|item| &item.value);
            let follows = |next: &Value| match issued.after_reasoning.get(id) {
                Some((expected, call)) => {
                    kind(next) == *expected && call.as_ref().is_none_or(|call| next["call_id"] == call.as_str())
                }
                None => true,
            };
            let any = |next: &Value| {
                matches!(kind(next), "function_call" | "custom_tool_call" | "reasoning")
                    || (kind(next) == "message" && next["role"] == "assistant")
            };
            if !next.is_some_and(|next| any(next) && follows(next)) {
                let message =
                    format!("Item '{id}' of type 'reasoning' was provided without its required following item.");
                return Err(Refusal::new(Reason::ReasoningWithoutItem, message).of("input"));
            }
        }
        before = Some(item);
    }
    Ok(())
}

/// Every call has one result after it, every result a call before it. Some servers use an id again in a later turn, so
/// ids are compared among open calls only.
fn pairs(request: &Request, strict: &Strictness) -> Check {
    let (mut open, mut done): (Vec<&str>, HashSet<&str>) = (Vec::new(), HashSet::new());
    let mut stray = false;
    for item in &request.items {
        let item = &item.value;
        let id = item["call_id"].as_str().unwrap_or_default();
        match kind(item) {
            "function_call" | "custom_tool_call" => {
                if open.contains(&id) {
                    let message = format!("Duplicate call_id {id} among calls without output.");
                    return Err(Refusal::new(Reason::RepeatedId, message).of("input"));
                }
                open.push(id);
            }
            "function_call_output" | "custom_tool_call_output" => {
                let Some(at) = open.iter().position(|known| *known == id) else {
                    let (reason, message) = if done.contains(id) {
                        (Reason::RepeatedResult, format!("Duplicate output for function call with call_id {id}."))
                    } else {
                        let message = format!("No tool call found for function call output with call_id {id}.");
                        (Reason::ResultWithoutCall, message)
                    };
                    return Err(Refusal::new(reason, message).of("input"));
                };
                if stray && strict.results_adjacent {
                    let message = format!("The output with call_id {id} does not directly follow its function call.");
                    return Err(Refusal::new(Reason::ResultNotAdjacent, message).of("input"));
                }
                open.remove(at);
                done.insert(id);
            }
            "reasoning" => {}
            _ => stray = true,
        }
        if open.is_empty() {
            stray = false;
        }
    }
    match open.first() {
        Some(id) => {
            let message = format!("No tool output found for function call {id}.");
            Err(Refusal::new(Reason::CallWithoutResult, message).of("input"))
        }
        None => Ok(()),
    }
}
