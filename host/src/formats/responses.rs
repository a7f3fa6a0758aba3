//! OpenAI Responses items.

use foreshorten_core::transcript::EntryKind;

use super::anthropic::opaque;
use super::chat;
use super::error::FormatError;
use super::json::{Field, Json, Span};
use super::parts;
use super::wire::{Builder, Content, Slot, Str};

/// Reads one item into an entry.
pub(crate) fn item(b: &mut Builder, item: Json<'_>) -> Result<(), FormatError> {
    let [kind, role] = item.fields(["type", "role"]);
    let kind = kind.filter(|kind| kind.is_string()).or_else(|| role.filter(|role| role.is_string()));
    let Some(kind) = kind else {
        let bytes = item.source().as_bytes();
        return Err(FormatError::here(bytes, item.start(), "an item object with a `type` or a `role`"));
    };
    b.unit(item.span());
    let name =
        if role.is_some_and(|role| role.value.span() == kind.value.span()) { "message".into() } else { kind.word() };
    body(b, &name, item);
    Ok(())
}

/// Reads an item of type `kind` into an entry of the current unit.
pub(crate) fn body(b: &mut Builder, kind: &str, item: Json<'_>) {
    match kind {
        "message" => {
            let [role, content] = item.fields(["role", "content"]);
            b.entry(match role.and_then(|role| role.string()).as_deref() {
                Some("assistant") => EntryKind::Assistant,
                Some("system" | "developer") => EntryKind::System,
                _ => EntryKind::User,
            });
            if let Some(content) = content {
                parts::content(b, content.value);
            }
        }
        "function_call" | "custom_tool_call" => {
            let [id, name, arguments, input] = item.fields(["call_id", "name", "arguments", "input"]);
            let (call_id, name) = (b.str(id.map(|id| id.value)), b.str(name.map(|name| name.value)));
            chat::call(b, call_id, name, arguments.or(input).map(|text| text.value), Span::NONE);
        }
        "local_shell_call" => acting(b, item, "local_shell", "action"),
        "shell_call" => acting(b, item, "shell", "action"),
        "computer_call" => acting(b, item, "computer", "action"),
        "apply_patch_call" => acting(b, item, "apply_patch", "operation"),
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" | "apply_patch_call_output" => {
            output(b, item, Slot::String);
        }
        "shell_call_output" => output(b, item, Slot::Shell),
        "computer_call_output" => output(b, item, Slot::Screenshot),
        "reasoning" => reasoning(b, item),
        // Opaque state of the server's own compaction, and what asks for it: must stay.
        kind if kind.starts_with("compaction") || kind == "context_compaction" => {
            opaque(b, EntryKind::System, item);
            // The client asks, the server answers.
            b.last().sealed = kind != "compaction_trigger";
        }
        _ => opaque(b, EntryKind::Assistant, item),
    }
}

/// A call of a built-in tool that the client carries out. Its action has a schema of its own, so it is never clipped.
fn acting(b: &mut Builder, item: Json<'_>, name: &'static str, action: &str) {
    let [call_id, id, action, actions] = item.fields(["call_id", "id", action, "actions"]);
    let call_id = b.str(call_id.filter(|id| id.is_string()).or(id).map(|id| id.value));
    chat::call(b, call_id, Str::Fixed(name), action.or(actions).map(|action| action.value), Span::NONE);
    let entry = b.last();
    (entry.sealed, entry.slot) = (true, Slot::None);
}

fn output(b: &mut Builder, item: Json<'_>, slot: fn(Span) -> Slot) {
    let [call_id, id, value] = item.fields(["call_id", "id", "output"]);
    let call_id = b.str(call_id.filter(|id| id.is_string()).or(id).map(|id| id.value));
    let entry = b.entry(EntryKind::ToolResult);
    entry.call_id = call_id;
    entry.is_error = value.is_some_and(|value| failed(value.value));
    entry.slot = match value {
        Some(value) => slot(value.value.span()),
        None => chat::slot(None, item, "output"),
    };
    let Some(value) = value else { return };
    if matches!(entry.slot, Slot::Shell(_)) {
        for chunk in value.items() {
            let [stdout, stderr] = chunk.fields(["stdout", "stderr"]);
            for text in [stdout, stderr].into_iter().flatten().filter(|text| !text.is("")) {
                b.text(text.value, Span::NONE);
            }
        }
    } else {
        parts::content(b, value.value);
    }
}

/// Responses have no error flag; Codex writes the exit code into the output, as JSON or as its first line.
fn failed(output: Json<'_>) -> bool {
    if let Some(raw) = output.inner() {
        if let Some(code) = raw.strip_prefix("Exit code: ") {
            return !code.starts_with('0');
        }
        if raw.starts_with('{') && raw.contains("exit_code") {
            let text = output.string().unwrap_or_default();
            return super::scan::check(text.as_bytes(), 0, &mut Vec::new()).is_ok()
                && Json::at(&text, 0)
                    .path(&["metadata", "exit_code"])
                    .is_some_and(|code| !code.is_null() && code.integer() != Some(0));
        }
        return false;
    }
    output.items().any(|chunk| {
        chunk.path(&["outcome", "exit_code"]).is_some_and(|code| !code.is_null() && code.integer() != Some(0))
    })
}

fn reasoning(b: &mut Builder, item: Json<'_>) {
    let [summary, content, encrypted] = item.fields(["summary", "content", "encrypted_content"]);
    let encrypted: Option<Field<'_>> = encrypted.filter(|text| text.inner().is_some_and(|raw| !raw.is_empty()));
    b.entry(EntryKind::Reasoning).sealed = encrypted.is_some();
    for list in [summary, content].into_iter().flatten() {
        parts::content(b, list.value);
    }
    if let Some(encrypted) = encrypted {
        b.part(Content::Opaque(encrypted.value.inner_span()), Span::NONE);
    }
}
