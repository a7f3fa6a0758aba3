//! Anthropic Messages.

use foreshorten_core::transcript::EntryKind;

use super::chat;
use super::error::FormatError;
use super::json::{Json, Span};
use super::parts;
use super::wire::{Builder, Content, Slot, Str};

/// Reads one message into entries.
pub(crate) fn message(b: &mut Builder, message: Json<'_>) -> Result<(), FormatError> {
    let [role, content] = message.fields(["role", "content"]);
    let Some(role) = role.filter(|role| role.is_string()) else {
        let bytes = message.source().as_bytes();
        return Err(FormatError::here(bytes, message.start(), "a message object with a `role`"));
    };
    b.unit(message.span());
    body(b, &role.word(), content.map(|content| content.value));
    Ok(())
}

/// Reads role and content into entries of the current unit.
pub(crate) fn body(b: &mut Builder, role: &str, content: Option<Json<'_>>) {
    let before = b.len();
    let kind = match role {
        "assistant" | "model" => EntryKind::Assistant,
        "system" | "developer" => EntryKind::System,
        _ => EntryKind::User,
    };
    match content {
        Some(list) if list.is_array() && kind == EntryKind::Assistant => assistant(b, list),
        Some(list) if list.is_array() && kind == EntryKind::User => user(b, list),
        Some(content) => {
            b.entry(kind);
            parts::content(b, content);
        }
        None => {}
    }
    if b.len() == before {
        b.entry(kind);
    }
}

/// Results first, each an entry; then all the user says or shows, as one.
fn user(b: &mut Builder, blocks: Json<'_>) {
    let is_result = |block: &Json<'_>| block.get("type").is_some_and(|kind| kind.is("tool_result"));
    let mut others = false;
    for block in blocks.items() {
        if is_result(&block) {
            tool_result(b, block);
        } else {
            others = true;
        }
    }
    if others {
        b.entry(EntryKind::User);
        for block in blocks.items().filter(|block| !is_result(block)) {
            parts::part(b, block);
        }
    }
}

/// A block that answers a call.
fn tool_result(b: &mut Builder, block: Json<'_>) {
    let [id, content, is_error] = block.fields(["tool_use_id", "content", "is_error"]);
    let call_id = b.str(id.map(|id| id.value));
    let entry = b.entry(EntryKind::ToolResult);
    entry.call_id = call_id;
    entry.is_error = is_error.is_some_and(|flag| flag.is_true());
    entry.item = block.span();
    entry.slot = chat::slot(content, block, "content");
    if let Some(content) = content {
        parts::content(b, content.value);
    }
}

fn assistant(b: &mut Builder, blocks: Json<'_>) {
    let mut in_text = false;
    for block in blocks.items() {
        let [kind, text, thinking, signature, id, name, input] =
            block.fields(["type", "text", "thinking", "signature", "id", "name", "input"]);
        let kind = kind.map(|kind| kind.word()).unwrap_or_default();
        let was_in_text = std::mem::replace(&mut in_text, kind == "text");
        match &*kind {
            "text" => {
                if !was_in_text {
                    b.entry(EntryKind::Assistant);
                }
                match text {
                    Some(text) => b.text(text.value, block.span()),
                    None => b.part(Content::Opaque(block.span()), block.span()),
                }
            }
            "thinking" => {
                let entry = b.entry(EntryKind::Reasoning);
                entry.sealed = signature.and_then(|signature| signature.inner()).is_some_and(|raw| !raw.is_empty());
                match thinking {
                    Some(thinking) => b.text(thinking.value, block.span()),
                    None => b.part(Content::Opaque(block.span()), block.span()),
                }
            }
            "redacted_thinking" => opaque(b, EntryKind::Reasoning, block),
            "tool_use" => {
                let (call_id, name) = (b.str(id.map(|id| id.value)), b.str(name.map(|name| name.value)));
                tool_use(b, call_id, name, input.map(|input| input.value), block.span());
            }
            // What the server compacted away is in here: it must stay.
            "compaction" => opaque(b, EntryKind::System, block),
            _ => opaque(b, EntryKind::Assistant, block),
        }
    }
}

fn tool_use(b: &mut Builder, call_id: Str, name: Str, input: Option<Json<'_>>, item: Span) {
    chat::call(b, call_id, name, input, item);
    // `input` is an object, never text: a replacement goes in as JSON even where a recorder wrote a string.
    if let Slot::String(span) = b.last().slot {
        b.last().slot = Slot::Json(span);
    }
}

/// A block only the provider can read, or of a type not known here: kept whole, and its message with it.
pub(crate) fn opaque(b: &mut Builder, kind: EntryKind, block: Json<'_>) {
    b.entry(kind).sealed = true;
    b.part(Content::Opaque(block.span()), block.span());
}
