//! OpenAI Responses.

use serde_json::{Value, json};

use super::{Event, Frame, Usage};
use crate::agent::Answer;
use crate::log::Stop;

pub(super) fn whole(frame: &Frame<'_>, answer: &Answer) -> Value {
    response(frame, status(answer.stop), json!(output(frame, answer)), true)
}

/// The output items of an answer.
pub(super) fn output(frame: &Frame<'_>, answer: &Answer) -> Vec<Value> {
    let mut items = Vec::new();
    if let Some(reasoning) = &answer.reasoning {
        let summary = json!([{"type": "summary_text", "text": reasoning}]);
        let mut item = json!({"id": format!("rs_{}", frame.id), "type": "reasoning", "summary": summary});
        if frame.sealed {
            item["encrypted_content"] = json!(frame.signer.seal(reasoning, answer.reasoning_tokens));
        }
        items.push(item);
    }
    let done = if matches!(answer.stop, Stop::Length | Stop::Window) { "incomplete" } else { "completed" };
    if !answer.text.is_empty() {
        let part = if answer.stop == Stop::Refusal {
            json!({"type": "refusal", "refusal": answer.text})
        } else {
            json!({"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []})
        };
        items.push(json!({"id": format!("msg_{}", frame.id), "type": "message", "status": done,
            "role": "assistant", "content": [part]}));
    }
    for (number, call) in answer.calls.iter().enumerate() {
        items.push(json!({"id": format!("fc_{}{number:02}", frame.id), "type": "function_call",
            "status": "completed", "call_id": call.id, "name": call.name, "arguments": call.arguments}));
    }
    items
}

pub(super) fn stream(frame: &Frame<'_>, answer: &Answer) -> Vec<Event> {
    let mut events = Stream::default();
    let begun = response(frame, "in_progress", json!([]), false);
    events.push("response.created", json!({"response": begun}));
    events.push("response.in_progress", json!({"response": begun}));
    for (index, item) in output(frame, answer).into_iter().enumerate() {
        let id = &item["id"];
        let place = |mut data: Value| {
            data["item_id"] = id.clone();
            data["output_index"] = json!(index);
            data
        };
        let mut begun = item.clone();
        match item["type"].as_str() {
            Some("reasoning") => {
                begun["summary"] = json!([]);
                events.push("response.output_item.added", json!({"output_index": index, "item": begun}));
                let text = item["summary"][0]["text"].as_str().unwrap_or_default();
                let part = |text| json!({"type": "summary_text", "text": text});
                events.push(
                    "response.reasoning_summary_part.added",
                    place(json!({"summary_index": 0, "part": part("")})),
                );
                for piece in frame.pieces(text) {
                    let data = place(json!({"summary_index": 0, "delta": piece}));
                    events.push("response.reasoning_summary_text.delta", data);
                }
                let data = place(json!({"summary_index": 0, "text": text}));
                events.push("response.reasoning_summary_text.done", data);
                let data = place(json!({"summary_index": 0, "part": part(text)}));
                events.push("response.reasoning_summary_part.done", data);
            }
            Some("message") => {
                begun["content"] = json!([]);
                begun["status"] = json!("in_progress");
                events.push("response.output_item.added", json!({"output_index": index, "item": begun}));
                let part = &item["content"][0];
                let refused = part["type"] == "refusal";
                let key = if refused { "refusal" } else { "text" };
                let mut empty = part.clone();
                empty[key] = json!("");
                events.push("response.content_part.added", place(json!({"content_index": 0, "part": empty})));
                let names = if refused {
                    ["response.refusal.delta", "response.refusal.done"]
                } else {
                    ["response.output_text.delta", "response.output_text.done"]
                };
                let text = part[key].as_str().unwrap_or_default();
                for piece in frame.pieces(text) {
                    events.push(names[0], place(json!({"content_index": 0, "delta": piece, "logprobs": []})));
                }
                events.push(names[1], place(json!({"content_index": 0, key: text, "logprobs": []})));
                events.push("response.content_part.done", place(json!({"content_index": 0, "part": part})));
            }
            _ => {
                begun["arguments"] = json!("");
                begun["status"] = json!("in_progress");
                events.push("response.output_item.added", json!({"output_index": index, "item": begun}));
                let arguments = item["arguments"].as_str().unwrap_or_default();
                for piece in frame.pieces(arguments) {
                    events.push("response.function_call_arguments.delta", place(json!({"delta": piece})));
                }
                let data = place(json!({"arguments": arguments, "name": item["name"]}));
                events.push("response.function_call_arguments.done", data);
            }
        }
        events.push("response.output_item.done", json!({"output_index": index, "item": item}));
    }
    let name = if status(answer.stop) == "completed" { "response.completed" } else { "response.incomplete" };
    events.push(name, json!({"response": whole(frame, answer)}));
    let mut events = events.events;
    if let Some(last) = events.last_mut() {
        last.terminal = true;
    }
    events
}

/// The event with which a response fails.
pub(super) fn failed(frame: &Frame<'_>, message: &str, code: &str) -> Event {
    let mut response = response(frame, "failed", json!([]), false);
    response["error"] = json!({"code": code, "message": message});
    Event::named("response.failed", &json!({"type": "response.failed", "sequence_number": 2, "response": response}))
}

#[derive(Default)]
struct Stream {
    events: Vec<Event>,
}

impl Stream {
    fn push(&mut self, name: &'static str, mut data: Value) {
        data["type"] = json!(name);
        data["sequence_number"] = json!(self.events.len());
        self.events.push(Event::named(name, &data));
    }
}

fn response(frame: &Frame<'_>, status: &str, output: Value, with_usage: bool) -> Value {
    let incomplete = if status == "incomplete" { json!({"reason": "max_output_tokens"}) } else { Value::Null };
    let mut body = json!({
        "id": format!("resp_{}", frame.id), "object": "response", "created_at": frame.created(), "status": status,
        "background": false, "error": null, "incomplete_details": incomplete, "instructions": null,
        "max_output_tokens": null, "model": frame.model, "output": output, "parallel_tool_calls": true,
        "previous_response_id": null, "reasoning": {"effort": null, "summary": null}, "store": false,
        "temperature": 1.0, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "truncation": "disabled", "usage": null, "user": null, "metadata": {},
    });
    if let Some(told) = frame.usage.filter(|_| with_usage) {
        body["usage"] = usage(told);
    }
    body
}

const fn status(stop: Stop) -> &'static str {
    match stop {
        Stop::End | Stop::Calls | Stop::Refusal => "completed",
        Stop::Length | Stop::Window => "incomplete",
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.prompt, "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.output,
    })
}
