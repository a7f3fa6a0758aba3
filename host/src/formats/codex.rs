//! Codex rollouts: Responses items, each wrapped in a line (or, in the layout of 2025, bare).

use std::sync::Arc;

use foreshorten_core::transcript::EntryKind;

use super::json::Json;
use super::parsed::Parsed;
use super::session::{Conversation, Draft};
use super::{Format, parts, responses};

/// Reads a rollout.
pub(crate) fn read(text: &Arc<String>, parsed: &Parsed<'_>) -> Vec<Conversation> {
    let mut draft = Draft::new(text, "main");
    let mut headed = false;
    for value in parsed.values() {
        let [kind, payload, state] = value.fields(["type", "payload", "record_type"]);
        let kind = kind.and_then(|kind| kind.string());
        match (kind.as_deref(), payload) {
            (Some("session_meta"), Some(payload)) => header(&mut draft, &mut headed, value, payload.value),
            (Some("response_item"), Some(payload)) => item(&mut draft, value, payload.value),
            (Some("event_msg"), Some(payload)) => event(&mut draft, payload.value),
            (Some("turn_context"), Some(payload)) => {
                draft.by(payload.get("model"));
                draft.skip("turn_context");
            }
            (Some(kind), Some(_)) => draft.skip(kind),
            // The old layout: a bare header, bare items, and lines of state.
            (None, None) if state.is_none() && value.get("id").is_some() => {
                header(&mut draft, &mut headed, value, value)
            }
            (None, None) if value.get("role").is_none() => draft.skip("state"),
            _ => item(&mut draft, value, value),
        }
    }
    vec![draft.finish(Format::Codex)]
}

/// The session's id and system prompt. A resumed session has the header again.
fn header(draft: &mut Draft, headed: &mut bool, line: Json<'_>, meta: Json<'_>) {
    if std::mem::replace(headed, true) {
        draft.skip("session_meta");
        return;
    }
    let [id, instructions, base] = meta.fields(["id", "instructions", "base_instructions"]);
    if let Some(id) = id.and_then(|id| id.string()) {
        draft.name = id.into_owned();
    }
    let base = base.map(|base| base.get("text").unwrap_or(base.value));
    let prompt = base.or_else(|| instructions.map(|text| text.value)).filter(|text| text.is_string() && !text.is(""));
    match prompt {
        Some(prompt) => {
            draft.b.unit(line.span());
            draft.b.entry(EntryKind::System);
            parts::content(&mut draft.b, prompt);
        }
        None => draft.skip("session_meta"),
    }
}

fn item(draft: &mut Draft, line: Json<'_>, item: Json<'_>) {
    let [kind, role] = item.fields(["type", "role"]);
    let kind = kind.and_then(|kind| kind.string());
    match kind.as_deref().or_else(|| role.map(|_| "message")) {
        // Codex' own, for undo: never sent.
        Some("ghost_snapshot") => draft.skip("response_item/ghost_snapshot"),
        Some(kind) => {
            draft.b.unit(line.span());
            responses::body(&mut draft.b, kind, item);
        }
        None => draft.skip("item without type"),
    }
}

/// Events echo the items for the screen; only the count of tokens is news.
fn event(draft: &mut Draft, payload: Json<'_>) {
    let kind = payload.get("type").and_then(Json::string).unwrap_or_else(|| "event".into());
    if kind == "token_count" {
        // It comes after the answer it counts, so it belongs to the newest one.
        let entry = draft.b.len().saturating_sub(1);
        draft.used(entry, payload.path(&["info", "last_token_usage"]));
    }
    draft.skip(&format!("event_msg/{kind}"));
}
