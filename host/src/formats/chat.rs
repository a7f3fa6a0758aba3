//! OpenAI Chat Completions messages, and the dialects recorded under that name.

use foreshorten_core::transcript::EntryKind;

use super::error::FormatError;
use super::json::{Field, Json, Span};
use super::parts;
use super::wire::{Builder, Content, Slot, Str};

/// Reads one message into entries: an assistant message into reasoning, text and calls, any other into one.
pub(crate) fn message(b: &mut Builder, message: Json<'_>) -> Result<(), FormatError> {
    let [role, content, calls, call_id, call, reasoning_content, reasoning, refusal, id, error, call_ids, requestor] =
        message.fields([
            "role",
            "content",
            "tool_calls",
            "tool_call_id",
            "function_call",
            "reasoning_content",
            "reasoning",
            "refusal",
            "id",
            "error",
            "tool_call_ids",
            "requestor",
        ]);
    let Some(role) = role.filter(|role| role.is_string()) else {
        let bytes = message.source().as_bytes();
        return Err(FormatError::here(bytes, message.start(), "a message object with a `role`"));
    };
    b.unit(message.span());
    let by_user = requestor.is_some_and(|who| who.is("user"));
    match &*role.word() {
        "system" | "developer" => said(b, EntryKind::System, content),
        "assistant" | "model" => {
            let before = b.len();
            sealed_reasoning(b, message);
            for thought in [reasoning_content, reasoning].into_iter().flatten() {
                // Some servers send the same thought under both names; a second copy is a second item of one entry.
                if thought.inner().is_some_and(|text| !text.is_empty()) {
                    b.entry(EntryKind::Reasoning);
                    b.text(thought.value, thought.item());
                    break;
                }
            }
            assistant_text(b, content, refusal);
            if let Some(calls) = calls {
                calls.items().for_each(|call| tool_call(b, call));
            }
            if let Some(call) = call.filter(|call| call.is_object()) {
                let [name, arguments] = call.fields(["name", "arguments"]);
                function(b, None, name, arguments, call.item());
            }
            if b.len() == before {
                said(b, EntryKind::Assistant, content);
            }
        }
        "tool" if !by_user => {
            let id = call_id.or(id).map(|id| id.value).or_else(|| call_ids.and_then(|ids| ids.items().next()));
            let call_id = b.str(id);
            result(b, content, message);
            let entry = b.last();
            entry.call_id = call_id;
            entry.is_error = error.is_some_and(|error| error.is_true() || error.is_object() || error.is_string());
        }
        "function" => result(b, content, message),
        _ => said(b, EntryKind::User, content),
    }
    Ok(())
}

/// An entry with all of a message's content.
fn said(b: &mut Builder, kind: EntryKind, content: Option<Field<'_>>) {
    b.entry(kind);
    if let Some(content) = content {
        parts::content(b, content.value);
    }
}

/// The text an assistant wrote, if any, with a refusal as one more part.
fn assistant_text(b: &mut Builder, content: Option<Field<'_>>, refusal: Option<Field<'_>>) {
    let content = content.filter(|content| {
        !(content.is_null() || content.is("") || content.items().next().is_none() && content.is_array())
    });
    let refusal = refusal.filter(|refusal| refusal.inner().is_some_and(|text| !text.is_empty()));
    if content.is_none() && refusal.is_none() {
        return;
    }
    let entry = b.entry(EntryKind::Assistant);
    if let Some(content) = content {
        (entry.item, entry.slot) = (content.item(), Slot::String(content.value.span()));
        parts::content(b, content.value);
    }
    if let Some(refusal) = refusal {
        b.text(refusal.value, refusal.item());
    }
}

/// Reasoning that comes signed or encrypted beside the message, as gateways in front of other providers send it.
fn sealed_reasoning(b: &mut Builder, message: Json<'_>) {
    for field in message.fields(["thinking_blocks", "reasoning_details", "reasoning_opaque", "encrypted_content"]) {
        let Some(field) = field else { continue };
        if field.is_null() || (field.is_array() && field.items().next().is_none()) {
            continue;
        }
        b.entry(EntryKind::Reasoning).sealed = true;
        b.part(Content::Opaque(field.value.span()), field.item());
    }
}

fn tool_call(b: &mut Builder, call: Json<'_>) {
    let [id, function_field, name, arguments, custom, extra] =
        call.fields(["id", "function", "name", "arguments", "custom", "extra_content"]);
    let inside = function_field.or(custom).filter(|inside| inside.is_object());
    let [inner_name, inner_arguments, input] =
        inside.map(|inside| inside.fields(["name", "arguments", "input"])).unwrap_or_default();
    function(b, id, inner_name.or(name), inner_arguments.or(input).or(arguments), call.span());
    // Gemini's thought signatures ride on the call.
    b.last().sealed = extra.is_some_and(|extra| extra.is_object());
}

fn function(b: &mut Builder, id: Option<Field<'_>>, name: Option<Field<'_>>, arguments: Option<Field<'_>>, item: Span) {
    let (call_id, name) = (b.str(id.map(|id| id.value)), b.str(name.map(|name| name.value)));
    let arguments = arguments.map(|arguments| arguments.value);
    call(b, call_id, name, arguments, item);
}

/// A call whose arguments are JSON text in a string, or a JSON value.
pub(crate) fn call(b: &mut Builder, call_id: Str, name: Str, arguments: Option<Json<'_>>, item: Span) {
    let entry = b.entry(EntryKind::ToolCall);
    (entry.call_id, entry.name, entry.item) = (call_id, name, item);
    match arguments.filter(|arguments| !arguments.is_null()) {
        Some(arguments) => {
            entry.slot =
                if arguments.is_string() { Slot::String(arguments.span()) } else { Slot::Json(arguments.span()) };
            b.text(arguments, Span::NONE);
        }
        None => b.part(Content::Text(Str::Empty), Span::NONE),
    }
}

fn result(b: &mut Builder, content: Option<Field<'_>>, message: Json<'_>) {
    b.entry(EntryKind::ToolResult).slot = slot(content, message, "content");
    if let Some(content) = content {
        parts::content(b, content.value);
    }
}

/// Where a result's replacement goes: its content, or a new member after the last.
pub(crate) fn slot(content: Option<Field<'_>>, object: Json<'_>, name: &'static str) -> Slot {
    match content {
        Some(content) => Slot::String(content.value.span()),
        None => object.members().last().map_or(Slot::None, |last| Slot::After(last.item(), name)),
    }
}
