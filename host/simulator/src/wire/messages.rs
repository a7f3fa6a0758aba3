//! Anthropic Messages.

use serde_json::{Value, json};

use super::{Event, Frame, Usage};
use crate::agent::Answer;
use crate::log::Stop;
use crate::refusal::anthropic_type;

pub(super) fn whole(frame: &Frame<'_>, answer: &Answer) -> Value {
    let mut content = Vec::new();
    if let Some(reasoning) = &answer.reasoning {
        content.push(json!({"type": "thinking", "thinking": reasoning, "signature": frame.signer.sign(reasoning)}));
    }
    if !answer.text.is_empty() {
        content.push(json!({"type": "text", "text": answer.text}));
    }
    for call in &answer.calls {
        let input: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        content.push(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input}));
    }
    let mut body = message(frame, json!(content), json!(stop_reason(answer.stop)));
    if let Some(told) = frame.usage {
        body["usage"] = usage(told);
    }
    body
}

pub(super) fn stream(frame: &Frame<'_>, answer: &Answer) -> Vec<Event> {
    let mut head = message(frame, json!([]), Value::Null);
    if let Some(told) = frame.usage {
        head["usage"] = usage(Usage { output: 1, ..told });
    }
    let mut events = vec![event("message_start", json!({"message": head}))];
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        events.push(event("content_block_start", json!({"index": index, "content_block": start})));
        if index == 0 {
            events.push(event("ping", json!({})));
        }
        let delta = |delta| event("content_block_delta", json!({"index": index, "delta": delta}));
        events.extend(deltas.into_iter().map(delta));
        events.push(event("content_block_stop", json!({"index": index})));
        index += 1;
    };
    if let Some(reasoning) = &answer.reasoning {
        let piece = |piece: &&str| json!({"type": "thinking_delta", "thinking": piece});
        let mut deltas: Vec<Value> = frame.pieces(reasoning).iter().map(piece).collect();
        deltas.push(json!({"type": "signature_delta", "signature": frame.signer.sign(reasoning)}));
        block(json!({"type": "thinking", "thinking": "", "signature": ""}), deltas);
    }
    if !answer.text.is_empty() {
        let piece = |piece: &&str| json!({"type": "text_delta", "text": piece});
        block(json!({"type": "text", "text": ""}), frame.pieces(&answer.text).iter().map(piece).collect());
    }
    for call in &answer.calls {
        let piece = |piece: &&str| json!({"type": "input_json_delta", "partial_json": piece});
        let mut deltas = vec![json!({"type": "input_json_delta", "partial_json": ""})];
        if call.arguments != "{}" {
            deltas.extend(frame.pieces(&call.arguments).iter().map(piece));
        }
        block(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}}), deltas);
    }
    let mut end = json!({"delta": {"stop_reason": stop_reason(answer.stop), "stop_sequence": null}});
    if let Some(told) = frame.usage {
        end["usage"] = json!({"input_tokens": input_tokens(told), "cache_creation_input_tokens": told.written,
            "cache_read_input_tokens": told.cached, "output_tokens": told.output});
    }
    events.push(event("message_delta", end).terminal());
    events.push(event("message_stop", json!({})).terminal());
    events
}

pub(super) fn error_event(message: &str, status: u16) -> Event {
    event("error", json!({"error": {"type": anthropic_type(status), "message": message}}))
}

fn event(name: &'static str, mut data: Value) -> Event {
    data["type"] = json!(name);
    Event::named(name, &data)
}

fn message(frame: &Frame<'_>, content: Value, stop_reason: Value) -> Value {
    json!({"id": format!("msg_01{}", frame.id), "type": "message", "role": "assistant", "model": frame.model,
        "content": content, "stop_reason": stop_reason, "stop_sequence": null})
}

const fn stop_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::End => "end_turn",
        Stop::Calls => "tool_use",
        Stop::Length => "max_tokens",
        Stop::Window => "model_context_window_exceeded",
        Stop::Refusal => "refusal",
    }
}

/// What neither came from the cache nor was written to it.
const fn input_tokens(usage: Usage) -> u64 {
    usage.prompt.saturating_sub(usage.cached + usage.written)
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": input_tokens(usage), "cache_creation_input_tokens": usage.written,
        "cache_read_input_tokens": usage.cached,
        "cache_creation": {"ephemeral_5m_input_tokens": usage.written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": usage.output, "service_tier": "standard",
    })
}
