//! Entries of a view to messages of rig, and turns of rig to entries of the record.

use std::collections::HashMap;

use foreshorten_core::transcript::{Entry, EntryKind, Part};
use rig_core::completion::CompletionResponse;
use rig_core::message::{
    AssistantContent, AssistantMessage, CallId, Document, DocumentMediaType, DocumentSourceKind, Image, ImageMediaType,
    Message, MimeType as _, Text, ToolCall, ToolFunction, ToolName, ToolResult, ToolResultContent, UserContent,
};

/// Wires that sign nothing but reasoning: a turn of theirs without any loses nothing when it is composed anew.
const PLAIN_WIRES: [&str; 2] = ["openai.chat", "anthropic.messages"];

/// A view as rig's history.
pub(crate) fn messages(entries: &[Entry]) -> Vec<Message> {
    let mut names = HashMap::new();
    let mut out = Vec::new();
    let together = |one: &Entry, next: &Entry| match one.kind {
        EntryKind::ToolResult => next.kind == EntryKind::ToolResult,
        kind => kind.is_assistant_side() && next.kind.is_assistant_side() && kept(next).is_none(),
    };
    for group in entries.chunk_by(together) {
        let calls = group.iter().filter(|entry| entry.kind == EntryKind::ToolCall);
        names.extend(calls.map(|call| (call.call_id.as_str(), call.name.as_str())));
        out.extend(match group {
            [entry, ..] if entry.kind == EntryKind::System => Some(Message::System { content: text_of(entry) }),
            [entry, ..] if entry.kind == EntryKind::User => Some(Message::User { content: said(entry) }),
            [entry, ..] if entry.kind == EntryKind::ToolResult => {
                let name = |entry: &Entry| names.get(entry.call_id.as_str()).copied().unwrap_or_default();
                let content = group.iter().filter_map(|entry| result(entry, name(entry))).collect();
                Some(Message::User { content })
            }
            turn => assistant(turn),
        });
    }
    out
}

fn text_of(entry: &Entry) -> String {
    let texts = entry.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn said(entry: &Entry) -> Vec<UserContent> {
    let part = |part: &Part| match part {
        Part::Text(text) => Some(UserContent::Text(Text::new(text))),
        Part::Image(kind, data) => Some(UserContent::Image(image(kind, data))),
        Part::File(kind, _, data) if kind == "application/pdf" => Some(UserContent::Document(Document {
            data: source(kind, data),
            media_type: Some(DocumentMediaType::PDF),
            additional_params: None,
        })),
        Part::File(kind, name, _) => Some(UserContent::Text(Text::new(format!("[file {name} {kind}]")))),
        _ => None,
    };
    let content: Vec<UserContent> = entry.parts.iter().filter_map(part).collect();
    // rig refuses a message of no parts.
    if content.is_empty() { vec![UserContent::Text(Text::new(""))] } else { content }
}

fn result(entry: &Entry, name: &str) -> Option<UserContent> {
    let part = |part: &Part| match part {
        Part::Text(text) => Some(ToolResultContent::Text(Text::new(text))),
        Part::Image(kind, data) => Some(ToolResultContent::Image(image(kind, data))),
        Part::File(kind, name, _) => Some(ToolResultContent::Text(Text::new(format!("[file {name} {kind}]")))),
        _ => None,
    };
    let mut content: Vec<ToolResultContent> = entry.parts.iter().filter_map(part).collect();
    if content.is_empty() {
        content.push(ToolResultContent::Text(Text::new("")));
    }
    let (call, is_error) = (call_id(entry), entry.is_error);
    Some(UserContent::ToolResult(ToolResult { call, name: tool_name(name)?, content, is_error }))
}

/// One turn of the model: as rig kept it where nothing of it changed, and else composed.
fn assistant(turn: &[Entry]) -> Option<Message> {
    if let [seal, shown @ ..] = turn
        && let Some(whole) = kept(seal)
        && entries(&whole.content) == shown
    {
        return Some(Message::Assistant(whole));
    }
    let mut content = Vec::new();
    for entry in turn {
        match entry.kind {
            EntryKind::ToolCall => {
                let function = ToolFunction::parse(tool_name(&entry.name)?, &text_of(entry));
                content.push(AssistantContent::ToolCall(ToolCall::new(call_id(entry), function)));
            }
            EntryKind::Assistant => content.extend(entry.parts.iter().filter_map(|part| match part {
                Part::Text(text) => Some(AssistantContent::Text(Text::new(text))),
                Part::Image(kind, data) => Some(AssistantContent::Image(image(kind, data))),
                _ => None,
            })),
            _ => {}
        }
    }
    (!content.is_empty()).then(|| Message::Assistant(AssistantMessage::new(content)))
}

/// The turn in a sealed entry. Sealed entries of other origin hold something else, and are left out.
fn kept(entry: &Entry) -> Option<AssistantMessage> {
    match entry.parts.as_slice() {
        [Part::Opaque(json)] if entry.sealed => serde_json::from_slice(json).ok(),
        _ => None,
    }
}

/// An id, never empty: rig would make up one for the call and another for its result.
fn call_id(entry: &Entry) -> CallId {
    CallId::from_wire(if entry.call_id.is_empty() { "call" } else { &entry.call_id })
}

fn tool_name(name: &str) -> Option<ToolName> {
    ToolName::new(if name.is_empty() { "unknown" } else { name }).ok()
}

/// A payload without a media type is a URL, or the id of an upload.
fn source(kind: &str, data: &[u8]) -> DocumentSourceKind {
    // Some encoders escape slashes, and payloads are kept as they came.
    let data = String::from_utf8_lossy(data).replace('\\', "");
    match kind {
        "" if data.contains("://") => DocumentSourceKind::Url(data),
        "" => DocumentSourceKind::FileId(data),
        _ => DocumentSourceKind::Base64(data),
    }
}

fn image(kind: &str, data: &[u8]) -> Image {
    Image { data: source(kind, data), media_type: ImageMediaType::from_mime_type(kind), ..Image::default() }
}

/// What to record of an answer.
pub(crate) fn recorded(response: &CompletionResponse) -> Vec<Entry> {
    seal(response).into_iter().chain(entries(&response.choice)).collect()
}

fn seal(response: &CompletionResponse) -> Option<Entry> {
    let Some(Message::Assistant(turn)) = response.message() else { return None };
    let hidden =
        |block: &AssistantContent| matches!(block, AssistantContent::Reasoning(_) | AssistantContent::Opaque(_));
    let plain = PLAIN_WIRES.contains(&response.origin.api.as_str()) && !turn.content.iter().any(hidden);
    // rig sends a failed turn to no model; what is readable of it is worth showing.
    if plain || response.stop().is_failure() {
        return None;
    }
    let json = serde_json::to_vec(&turn).ok()?;
    Some(Entry { parts: vec![Part::Opaque(json)], ..Entry::reasoning("").sealed() })
}

/// What is readable of a turn.
fn entries(content: &[AssistantContent]) -> Vec<Entry> {
    let entry = |block: &AssistantContent| match block {
        AssistantContent::Text(text) if !text.text.is_empty() => Some(Entry::assistant(&text.text)),
        AssistantContent::Reasoning(thought) if !thought.text.is_empty() => Some(Entry::reasoning(&thought.text)),
        AssistantContent::ToolCall(ToolCall { id, function, .. }) => {
            let written = function.invalid_arguments.clone();
            let arguments = written.unwrap_or_else(|| function.arguments_value().to_string());
            Some(Entry::tool_call(id.wire(), function.name.as_str(), arguments))
        }
        AssistantContent::Image(Image { data: DocumentSourceKind::Base64(data), media_type: Some(kind), .. }) => {
            let part = Part::Image(kind.to_mime_type().into(), data.as_bytes().into());
            Some(Entry { parts: vec![part], ..Entry::assistant("") })
        }
        _ => None,
    };
    content.iter().filter_map(entry).collect()
}
