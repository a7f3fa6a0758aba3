//! Anthropic Messages.

use std::collections::HashSet;

use serde_json::Value;

use super::{Check, Issued, is_name};
use crate::config::Strictness;
use crate::digest::Signer;
use crate::refusal::{Reason, Refusal};
use crate::request::{List, Request};

fn no(reason: Reason, message: impl Into<String>) -> Check {
    Err(Refusal::new(reason, message))
}

pub(super) fn check(request: &Request, strict: &Strictness, signer: &Signer, issued: &Issued) -> Check {
    parameters(request)?;
    match request.list {
        List::Missing => return no(Reason::NoMessages, "messages: Field required"),
        List::Text | List::Wrong => return no(Reason::BadField, "messages: Input should be a valid list"),
        List::Array if request.items.is_empty() => {
            return no(Reason::NoMessages, "messages: at least one message is required");
        }
        List::Array => {}
    }
    system(request, strict)?;
    tools(request)?;
    let mut checker = Checker { strict, signer, marks: 0 };
    for (number, item) in request.items.iter().enumerate() {
        checker.message(&item.value, number, number + 1 == request.items.len())?;
    }
    let elsewhere = request.tools.iter().chain(&request.system).flat_map(|item| &item.segments);
    let marks = checker.marks
        + elsewhere.filter(|segment| segment.breakpoint).count()
        + usize::from(!request.field("cache_control").is_null());
    if marks > 4 {
        let message = format!("A maximum of 4 blocks with cache_control may be provided. Found {marks}.");
        return no(Reason::TooManyBreakpoints, message);
    }
    turns(request, issued)
}

fn parameters(request: &Request) -> Check {
    match request.field("max_tokens") {
        Value::Null => return no(Reason::MissingField, "max_tokens: Field required"),
        value if value.as_u64().is_none_or(|most| most == 0) => {
            return no(Reason::BadField, "max_tokens: Input should be greater than or equal to 1");
        }
        _ => {}
    }
    for name in ["temperature", "top_p"] {
        let value = request.field(name);
        if !(value.is_null() || value.as_f64().is_some_and(|number| (0.0..=1.0).contains(&number))) {
            return no(Reason::BadField, format!("{name}: Input should be less than or equal to 1"));
        }
    }
    for name in ["thread", "container", "context_management", "compaction"] {
        if !request.field(name).is_null() {
            return no(Reason::NotServed, format!("{name}: Extra inputs are not permitted"));
        }
    }
    let thinking = request.field("thinking");
    match thinking["type"].as_str() {
        None if thinking.is_null() => return Ok(()),
        Some("disabled") => return Ok(()),
        Some("adaptive") => {}
        Some("enabled") => {
            let Some(budget) = thinking["budget_tokens"].as_u64() else {
                return no(Reason::MissingField, "thinking.enabled.budget_tokens: Field required");
            };
            if budget < 1_024 {
                let message =
                    "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024".to_owned();
                return no(Reason::BadField, message);
            }
            if request.max_output().is_some_and(|most| most <= budget) {
                let message = "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our \
                               documentation";
                return no(Reason::BadField, message);
            }
        }
        _ => return no(Reason::BadField, "thinking: Input tag found using 'type' does not match"),
    }
    if request.field("temperature").as_f64().is_some_and(|number| number != 1.0) {
        return no(Reason::Temperature, "`temperature` may only be set to 1 when thinking is enabled.");
    }
    if matches!(request.field("tool_choice")["type"].as_str(), Some("any" | "tool")) {
        return no(Reason::BadField, "Thinking may not be enabled when tool_choice forces tool use.");
    }
    Ok(())
}

fn system(request: &Request, strict: &Strictness) -> Check {
    let Some(system) = &request.system else { return Ok(()) };
    match &system.value {
        Value::String(_) => Ok(()),
        Value::Array(blocks) => {
            for (number, block) in blocks.iter().enumerate() {
                let at = format!("system.{number}");
                if block["type"] != "text" {
                    return no(Reason::UnknownType, format!("{at}.type: Input should be 'text'"));
                }
                text(block, &at, false)?;
                fields(block, &at, &["type", "text", "cache_control", "citations"], strict)?;
                mark(block, &at)?;
            }
            Ok(())
        }
        _ => no(Reason::BadField, "system: Input should be a valid string or list"),
    }
}

fn tools(request: &Request) -> Check {
    if !request.field("tools").is_null() {
        return no(Reason::BadTools, "tools: Input should be a valid list");
    }
    let mut names = HashSet::new();
    for (number, tool) in request.tools.iter().enumerate() {
        let tool = &tool.value;
        if !is_name(&tool["name"], 128) {
            let message = format!("tools.{number}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'");
            return no(Reason::BadTools, message);
        }
        // Tools with another type are Anthropic's own; they have no schema.
        if tool["type"].is_null() || tool["type"] == "custom" {
            if !tool["input_schema"].is_object() {
                return no(Reason::BadTools, format!("tools.{number}.custom.input_schema: Field required"));
            }
            if tool["input_schema"]["type"] != "object" {
                let message = format!("tools.{number}.custom.input_schema.type: Input should be 'object'");
                return no(Reason::BadTools, message);
            }
        }
        mark(tool, &format!("tools.{number}"))?;
        if !names.insert(tool["name"].as_str()) {
            return no(Reason::BadTools, "tools: Tool names must be unique.");
        }
    }
    Ok(())
}

/// Checks messages one by one.
struct Checker<'a> {
    strict: &'a Strictness,
    signer: &'a Signer,
    marks: usize,
}

impl Checker<'_> {
    fn message(&mut self, message: &Value, number: usize, last: bool) -> Check {
        let at = format!("messages.{number}");
        let role = message["role"].as_str().unwrap_or_default();
        if role == "system" {
            let message = "messages: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, \
                           not \"system\" as an input message role.";
            return no(Reason::WrongRole, message);
        }
        if role != "user" && role != "assistant" {
            let message = format!("messages: Unexpected role \"{role}\". Allowed roles are \"user\" or \"assistant\"");
            return no(Reason::WrongRole, message);
        }
        fields(message, &at, &["role", "content"], self.strict)?;
        let empty = "all messages must have non-empty content except for the optional final assistant message";
        let may_be_empty = last && role == "assistant";
        match &message["content"] {
            Value::String(text) if text.is_empty() && !may_be_empty => {
                no(Reason::EmptyContent, format!("{at}: {empty}"))
            }
            Value::String(text) if text.trim().is_empty() && !may_be_empty => {
                no(Reason::EmptyText, format!("{at}: text content blocks must contain non-whitespace text"))
            }
            Value::String(_) => Ok(()),
            Value::Array(blocks) if blocks.is_empty() && !may_be_empty => {
                no(Reason::EmptyContent, format!("{at}: {empty}"))
            }
            Value::Array(blocks) => {
                for (place, block) in blocks.iter().enumerate() {
                    self.block(block, role, &format!("{at}.content.{place}"))?;
                }
                Ok(())
            }
            Value::Null => no(Reason::EmptyContent, format!("{at}.content: Field required")),
            _ => no(Reason::BadField, format!("{at}.content: Input should be a valid string or list")),
        }
    }

    fn block(&mut self, block: &Value, role: &str, at: &str) -> Check {
        let kind = block["type"].as_str().unwrap_or_default();
        let by_user = ["text", "image", "document", "search_result", "tool_result"];
        let by_model = ["text", "thinking", "redacted_thinking", "tool_use"];
        if by_user.contains(&kind) && !(role == "user" || kind == "text") {
            return no(Reason::WrongRole, format!("{at}: `{kind}` blocks can only be in `user` messages"));
        }
        if by_model.contains(&kind) && !(role == "assistant" || kind == "text") {
            return no(Reason::WrongRole, format!("{at}: `{kind}` blocks can only be in `assistant` messages"));
        }
        match kind {
            "text" => {
                text(block, at, true)?;
                fields(block, at, &["type", "text", "cache_control", "citations"], self.strict)?;
            }
            "thinking" => {
                fields(block, at, &["type", "thinking", "signature"], self.strict)?;
                let (text, signature) = (block["thinking"].as_str(), block["signature"].as_str());
                let (Some(text), Some(signature)) = (text, signature) else {
                    return no(Reason::BadSignature, format!("{at}.thinking.signature: Field required"));
                };
                if !self.signer.signed(text, signature) {
                    return no(Reason::BadSignature, format!("{at}: Invalid `signature` in `thinking` block"));
                }
            }
            "redacted_thinking" => {
                // This server never sends one.
                return no(Reason::BadSignature, format!("{at}: Invalid `data` in `redacted_thinking` block"));
            }
            "tool_use" => {
                fields(block, at, &["type", "id", "name", "input", "cache_control", "caller"], self.strict)?;
                if !is_name(&block["id"], 256) {
                    let message = format!("{at}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'");
                    return no(Reason::BadId, message);
                }
                if !is_name(&block["name"], 200) {
                    let message = format!("{at}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,200}}$'");
                    return no(Reason::BadField, message);
                }
                if !block["input"].is_object() {
                    return no(
                        Reason::BadArguments,
                        format!("{at}.tool_use.input: Input should be a valid dictionary"),
                    );
                }
            }
            "tool_result" => {
                fields(block, at, &["type", "tool_use_id", "content", "is_error", "cache_control"], self.strict)?;
                if !block["tool_use_id"].is_string() {
                    return no(Reason::BadId, format!("{at}.tool_result.tool_use_id: Field required"));
                }
                self.result(&block["content"], at)?;
                if !(block["is_error"].is_null() || block["is_error"].is_boolean()) {
                    return no(Reason::BadField, format!("{at}.tool_result.is_error: Input should be a valid boolean"));
                }
            }
            "image" | "document" | "search_result" => {
                if !block["source"].is_object() && kind != "search_result" {
                    return no(Reason::MissingField, format!("{at}.{kind}.source: Field required"));
                }
            }
            _ => {
                let message = format!(
                    "{at}: Input tag '{kind}' found using 'type' does not match any of the expected tags: 'document', \
                     'image', 'redacted_thinking', 'search_result', 'text', 'thinking', 'tool_result', 'tool_use'"
                );
                return no(Reason::UnknownType, message);
            }
        }
        mark(block, at)?;
        self.marks += usize::from(!block["cache_control"].is_null());
        Ok(())
    }

    fn result(&mut self, content: &Value, at: &str) -> Check {
        match content {
            // A result may be empty, or missing.
            Value::Null | Value::String(_) => Ok(()),
            Value::Array(parts) => {
                for (number, part) in parts.iter().enumerate() {
                    let at = format!("{at}.tool_result.content.{number}");
                    match part["type"].as_str().unwrap_or_default() {
                        "text" => text(part, &at, false)?,
                        "image" | "document" | "search_result" => {}
                        kind => {
                            let message = format!("{at}: Input tag '{kind}' does not match any of the expected tags");
                            return no(Reason::UnknownType, message);
                        }
                    }
                    mark(part, &at)?;
                    self.marks += usize::from(!part["cache_control"].is_null());
                }
                Ok(())
            }
            _ => no(Reason::BadField, format!("{at}.tool_result.content: Input should be a valid string or list")),
        }
    }
}

/// A text block has text.
fn text(block: &Value, at: &str, visible: bool) -> Check {
    let Some(text) = block["text"].as_str() else {
        return no(Reason::MissingField, format!("{at}.text.text: Field required"));
    };
    if text.is_empty() {
        let reason = if block["cache_control"].is_null() { Reason::EmptyText } else { Reason::BadBreakpoint };
        let message = match reason {
            Reason::EmptyText => "text content blocks must be non-empty".to_owned(),
            _ => format!("{at}.text: cache_control cannot be set for empty text blocks"),
        };
        return no(reason, format!("messages: {message}"));
    }
    if visible && text.trim().is_empty() {
        return no(Reason::EmptyText, "messages: text content blocks must contain non-whitespace text");
    }
    Ok(())
}

/// No fields but these.
fn fields(value: &Value, at: &str, known: &[&str], strict: &Strictness) -> Check {
    let extra = value.as_object().into_iter().flatten().find(|(key, _)| !known.contains(&key.as_str()));
    match extra {
        Some((key, _)) if strict.no_extra_fields => {
            no(Reason::ExtraField, format!("{at}.{key}: Extra inputs are not permitted"))
        }
        _ => Ok(()),
    }
}

/// A cache mark is a cache mark.
fn mark(block: &Value, at: &str) -> Check {
    let mark = &block["cache_control"];
    if mark.is_null() {
        return Ok(());
    }
    let lives = mark["ttl"].is_null() || mark["ttl"] == "5m" || mark["ttl"] == "1h";
    if mark["type"] != "ephemeral" || !lives {
        return no(Reason::BadBreakpoint, format!("{at}.cache_control: Input tag does not match 'ephemeral'"));
    }
    Ok(())
}

/// Who speaks when, and that calls and results belong together. Neighbours of one role are one turn.
fn turns(request: &Request, issued: &Issued) -> Check {
    let mut turns: Vec<(&str, Vec<&Value>, usize)> = Vec::new();
    for (number, item) in request.items.iter().enumerate() {
        let role = item.value["role"].as_str().unwrap_or_default();
        let content = &item.value["content"];
        // A string is a block of text, for all that matters here.
        let blocks = content.as_array().map_or_else(|| vec![content], |blocks| blocks.iter().collect());
        match turns.last_mut() {
            Some((same, all, _)) if *same == role => all.extend(blocks),
            _ => turns.push((role, blocks, number)),
        }
    }
    if turns.first().is_some_and(|(role, ..)| *role != "user") {
        return no(Reason::FirstNotUser, "messages: first message must use the \"user\" role");
    }
    let (mut seen, mut wanted) = (HashSet::new(), Vec::new());
    for (role, blocks, number) in &turns {
        let kind = |block: &Value| block["type"].as_str().unwrap_or("text").to_owned();
        if *role == "assistant" {
            wanted = ids(blocks, "tool_use", "id");
            if let Some(id) = wanted.iter().find(|id| !seen.insert(**id)) {
                let message = format!("messages.{number}.content: `tool_use` ids must be unique ({id})");
                return no(Reason::RepeatedId, message);
            }
            continue;
        }
        let got = ids(blocks, "tool_result", "tool_use_id");
        if let Some(id) = got.iter().find(|id| !wanted.contains(*id)) {
            let message = format!(
                "messages.{number}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
                 `tool_result` block must have a corresponding `tool_use` block in the previous message."
            );
            return no(Reason::ResultWithoutCall, message);
        }
        let missing: Vec<&str> = wanted.iter().filter(|id| !got.contains(*id)).copied().collect();
        if !missing.is_empty() {
            return unanswered(number.saturating_sub(1), &missing);
        }
        if got.len() > wanted.len() {
            let message = format!(
                "messages.{number}.content: each tool_use must have a single result. Found multiple `tool_result` \
                 blocks"
            );
            return no(Reason::RepeatedResult, message);
        }
        if blocks.iter().take(got.len()).any(|block| kind(block) != "tool_result") {
            let message = format!(
                "messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. \
                 `tool_result` blocks must come first.",
                wanted.join(", ")
            );
            return no(Reason::ResultNotAdjacent, message);
        }
        wanted.clear();
    }
    if !seen.is_empty() && request.tools.is_empty() {
        let message = "Requests which include `tool_use` or `tool_result` blocks must define tools";
        return no(Reason::NoTools, message);
    }
    if let Some(("assistant", blocks, number)) = turns.last().map(|(role, blocks, number)| (*role, blocks, number)) {
        if !wanted.is_empty() {
            return unanswered(*number, &wanted);
        }
        if request.thinking() {
            let message = "This model does not support assistant message prefill when thinking is enabled. The \
                           conversation must end with a user message.";
            return no(Reason::WrongEnd, message);
        }
        let text = blocks.last().and_then(|block| block.as_str().or_else(|| block["text"].as_str()));
        if text.is_some_and(|text| text.ends_with(char::is_whitespace)) {
            let message = "messages: final assistant content cannot end with trailing whitespace";
            return no(Reason::WrongEnd, message);
        }
    }
    let newest = turns.iter().rfind(|(role, ..)| *role == "assistant");
    newest.map_or(Ok(()), |(_, blocks, number)| thinking(request, issued, blocks, *number))
}

fn ids<'a>(blocks: &[&'a Value], kind: &str, key: &str) -> Vec<&'a str> {
    blocks.iter().filter(|block| block["type"] == kind).filter_map(|block| block[key].as_str()).collect()
}

fn unanswered(number: usize, missing: &[&str]) -> Check {
    let message = format!(
        "messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` \
         block must have a corresponding `tool_result` block in the next message.",
        missing.join(", ")
    );
    no(Reason::CallWithoutResult, message)
}

/// The thinking of the newest turn of the assistant, if it calls tools and thinking is on.
fn thinking(request: &Request, issued: &Issued, blocks: &[&Value], number: usize) -> Check {
    let uses = ids(blocks, "tool_use", "id");
    let Some(first) = uses.first().filter(|_| request.thinking()) else { return Ok(()) };
    let kind = blocks.first().and_then(|block| block["type"].as_str()).unwrap_or("text");
    let sent = issued.thinking.get(*first);
    let expected = match sent {
        Some(thinking) => thinking.is_some(),
        None => request.field("thinking")["type"] == "enabled",
    };
    if expected && kind != "thinking" {
        let message = format!(
            "messages.{number}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. When \
             `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost \
             set of `tool_use` and `tool_result` blocks). To avoid this requirement, disable `thinking`."
        );
        return no(Reason::MissingThinking, message);
    }
    if let Some(Some(sent)) = sent {
        let thoughts: Vec<&str> =
            blocks.iter().filter(|b| b["type"] == "thinking").filter_map(|b| b["thinking"].as_str()).collect();
        if thoughts != [sent.as_str()] {
            let message = format!(
                "messages.{number}.content: `thinking` or `redacted_thinking` blocks in the latest assistant message \
                 cannot be modified. These blocks must remain as they were in the original response."
            );
            return no(Reason::ChangedThinking, message);
        }
    }
    Ok(())
}
