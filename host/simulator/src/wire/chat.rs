//! Chat Completions.

use serde_json::{Map, Value, json};

use super::{Event, Frame, Usage};
use crate::agent::Answer;
use crate::log::Stop;

pub(super) fn whole(frame: &Frame<'_>, answer: &Answer) -> Value {
    let mut message = json!({"role": "assistant", "content": answer.text, "refusal": null, "annotations": []});
    if answer.stop == Stop::Refusal {
        message["content"] = Value::Null;
        message["refusal"] = json!(answer.text);
    }
    if let Some(reasoning) = answer.reasoning.as_ref().filter(|_| frame.reasoning_content) {
        message["reasoning_content"] = json!(reasoning);
    }
    if !answer.calls.is_empty() {
        if answer.text.is_empty() {
            message["content"] = Value::Null;
        }
        let call = |call: &crate::Call| {
            json!({"id": call.id, "type": "function",
                "function": {"name": call.name, "arguments": call.arguments}})
        };
        message["tool_calls"] = answer.calls.iter().map(call).collect();
    }
    let mut body = json!({
        "id": id(frame), "object": "chat.completion", "created": frame.created(), "model": frame.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish(answer.stop)}],
        "service_tier": "default", "system_fingerprint": "fp_simulated",
    });
    if let Some(told) = frame.usage {
        body["usage"] = usage(told);
    }
    body
}

pub(super) fn stream(frame: &Frame<'_>, answer: &Answer) -> Vec<Event> {
    let chunk = |choices: Value| {
        let mut chunk = Map::new();
        chunk.insert("id".into(), json!(id(frame)));
        chunk.insert("object".into(), json!("chat.completion.chunk"));
        chunk.insert("created".into(), json!(frame.created()));
        chunk.insert("model".into(), json!(frame.model));
        chunk.insert("system_fingerprint".into(), json!("fp_simulated"));
        chunk.insert("choices".into(), choices);
        if frame.include_usage {
            chunk.insert("usage".into(), Value::Null);
        }
        Value::Object(chunk)
    };
    let delta = |delta: Value, finish: Option<&str>| {
        Event::unnamed(&chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}])))
    };
    let content = if answer.calls.is_empty() || !answer.text.is_empty() { json!("") } else { Value::Null };
    let mut events = vec![delta(json!({"role": "assistant", "content": content, "refusal": null}), None)];
    if let Some(reasoning) = answer.reasoning.as_ref().filter(|_| frame.reasoning_content) {
        events.extend(frame.pieces(reasoning).iter().map(|piece| delta(json!({"reasoning_content": piece}), None)));
    }
    let key = if answer.stop == Stop::Refusal { "refusal" } else { "content" };
    events.extend(frame.pieces(&answer.text).iter().map(|piece| delta(json!({key: piece}), None)));
    for (index, call) in answer.calls.iter().enumerate() {
        let head = json!({"index": index, "id": call.id, "type": "function",
            "function": {"name": call.name, "arguments": ""}});
        events.push(delta(json!({"tool_calls": [head]}), None));
        for piece in frame.pieces(&call.arguments) {
            let part = json!({"index": index, "function": {"arguments": piece}});
            events.push(delta(json!({"tool_calls": [part]}), None));
        }
    }
    events.push(delta(json!({}), Some(finish(answer.stop))).terminal());
    if let Some(told) = frame.usage.filter(|_| frame.include_usage) {
        let mut last = chunk(json!([]));
        last["usage"] = usage(told);
        events.push(Event::unnamed(&last).terminal());
    }
    events.push(Event { name: None, data: "[DONE]".to_owned(), terminal: true });
    events
}

pub(super) fn error_event(message: &str, code: &str) -> Event {
    Event::unnamed(&json!({"error": {"message": message, "type": "server_error", "param": null, "code": code}}))
}

fn id(frame: &Frame<'_>) -> String {
    format!("chatcmpl-{}", frame.id)
}

const fn finish(stop: Stop) -> &'static str {
    match stop {
        Stop::End | Stop::Refusal => "stop",
        Stop::Calls => "tool_calls",
        Stop::Length | Stop::Window => "length",
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt, "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0},
    })
}
