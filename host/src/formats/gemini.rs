//! Gemini CLI chats: one JSON document, or the same messages one a line.

use std::collections::HashMap;
use std::sync::Arc;

use foreshorten_core::transcript::EntryKind;

use super::chat;
use super::error::FormatError;
use super::json::{Field, Json, Span};
use super::parsed::Parsed;
use super::session::{Conversation, Draft};
use super::wire::{Builder, Content};
use super::{Format, parts};

/// Reads a chat.
pub(crate) fn read(text: &Arc<String>, parsed: &Parsed<'_>) -> Result<Vec<Conversation>, FormatError> {
    let mut draft = Draft::new(text, "main");
    if parsed.is_lines() {
        read_lines(&mut draft, parsed);
    } else {
        let root = parsed.root();
        let [session, messages] = root.fields(["sessionId", "messages"]);
        name(&mut draft, session);
        let Some(messages) = messages.filter(|list| list.is_array()) else {
            return Err(FormatError::here(
                text.as_bytes(),
                root.start(),
                "a Gemini CLI chat with a list of `messages`",
            ));
        };
        messages.items().for_each(|item| message(&mut draft, item));
    }
    Ok(vec![draft.finish(Format::GeminiCli)])
}

fn name(draft: &mut Draft, session: Option<Field<'_>>) {
    if let Some(session) = session.and_then(|session| session.string()) {
        draft.name = session.into_owned();
    }
}

/// A message is written again when it changes: the last of an id counts, at the place of the first.
fn read_lines(draft: &mut Draft, parsed: &Parsed<'_>) {
    let mut messages: Vec<Json<'_>> = Vec::new();
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    for value in parsed.values() {
        let [kind, id, session] = value.fields(["type", "id", "sessionId"]);
        if kind.is_none() {
            name(draft, session);
            draft.skip("line without type");
            continue;
        }
        match id.and_then(|id| id.value.inner()) {
            Some(id) => match by_id.get(id) {
                Some(&at) => messages[at] = value,
                None => {
                    by_id.insert(id, messages.len());
                    messages.push(value);
                }
            },
            None => messages.push(value),
        }
    }
    messages.into_iter().for_each(|item| message(draft, item));
}

fn message(draft: &mut Draft, item: Json<'_>) {
    let [kind, content, calls, thoughts, tokens, model] =
        item.fields(["type", "content", "toolCalls", "thoughts", "tokens", "model"]);
    match kind.and_then(|kind| kind.string()).as_deref().unwrap_or("message without type") {
        "user" => {
            draft.b.unit(item.span());
            draft.b.entry(EntryKind::User);
            if let Some(content) = content {
                parts::content(&mut draft.b, content.value);
            }
        }
        "gemini" => {
            draft.b.unit(item.span());
            let entry = draft.b.len();
            answer(&mut draft.b, content, calls, thoughts);
            draft.by(model.map(|model| model.value));
            if let Some(tokens) = tokens.and_then(|tokens| tokens.get("input")).and_then(Json::integer) {
                draft.usage.push((entry, tokens));
            }
        }
        other => draft.skip(other),
    }
}

/// Calls and results sit in one object; in the record the results follow all calls.
fn answer(b: &mut Builder, content: Option<Field<'_>>, calls: Option<Field<'_>>, thoughts: Option<Field<'_>>) {
    let before = b.len();
    if let Some(thoughts) = thoughts.filter(|list| list.items().next().is_some()) {
        b.entry(EntryKind::Reasoning);
        for thought in thoughts.items() {
            for text in thought.fields(["subject", "description"]).into_iter().flatten() {
                b.text(text.value, thought.span());
            }
        }
    }
    let empty = |content: &Field<'_>| {
        content.is("") || content.is_null() || (content.is_array() && content.items().next().is_none())
    };
    if let Some(content) = content.filter(|content| !empty(content)) {
        b.entry(EntryKind::Assistant);
        parts::content(b, content.value);
    }
    let calls = calls.map(|calls| calls.value);
    for call in calls.into_iter().flat_map(Json::items) {
        let [id, name, args] = call.fields(["id", "name", "args"]);
        let (call_id, name) = (b.str(id.map(|id| id.value)), b.str(name.map(|name| name.value)));
        chat::call(b, call_id, name, args.map(|args| args.value), call.span());
    }
    if b.len() == before {
        b.entry(EntryKind::Assistant);
    }
    for call in calls.into_iter().flat_map(Json::items) {
        let [id, status, results] = call.fields(["id", "status", "result"]);
        let Some(results) = results.filter(|list| list.items().next().is_some()) else { continue };
        let call_id = b.str(id.map(|id| id.value));
        let entry = b.entry(EntryKind::ToolResult);
        entry.call_id = call_id;
        entry.is_error = status.is_some_and(|status| status.is("error"));
        for part in results.items() {
            result(b, part);
        }
    }
}

fn result(b: &mut Builder, part: Json<'_>) {
    let Some(answer) = part.get("functionResponse") else { return parts::part(b, part) };
    let [response, more] = answer.fields(["response", "parts"]);
    if let Some(response) = response {
        let [output, error] = response.fields(["output", "error"]);
        b.last().is_error |= error.is_some_and(|error| !error.is_null());
        b.text(output.or(error).map_or(response.value, |text| text.value), Span::NONE);
    } else {
        b.part(Content::Opaque(answer.span()), Span::NONE);
    }
    for part in more.into_iter().flat_map(|more| more.items()) {
        parts::part(b, part);
    }
}
