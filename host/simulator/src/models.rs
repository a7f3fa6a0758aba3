//! The models listing.

use serde_json::{Map, Value, json};

use crate::config::{Config, Protocol};
use crate::refusal::{Reason, Refusal};
use crate::reply::{Reply, Step};

/// Answers a listing request. `listing` is its number, `next` that of the next POST request, whose window is named.
pub(crate) fn list(config: &Config, protocol: Protocol, id: Option<&str>, listing: u64, next: u64) -> Reply {
    let models = &config.models;
    let refuse = |refusal: &Refusal| {
        let body = refusal.to_json(protocol, "req_models").unwrap_or_default();
        Reply::json(refusal.status, &body)
    };
    let window = config.window.announced_at(next);
    let reply = if listing <= models.fail_first {
        refuse(&Refusal::new(Reason::Fault, "The listing is not available.").status(models.fail_status))
    } else if let Some(id) = id {
        if models.ids.iter().any(|known| known == id) {
            Reply::json(200, &model(config, protocol, id, window))
        } else {
            let message = match protocol {
                Protocol::Messages => format!("model: {id}"),
                _ => format!("The model '{id}' does not exist"),
            };
            refuse(&Refusal::new(Reason::UnknownModel, message).status(404).code("model_not_found"))
        }
    } else {
        let data: Vec<Value> = models.ids.iter().map(|id| model(config, protocol, id, window)).collect();
        let body = match protocol {
            Protocol::Messages => json!({"data": data, "has_more": false,
                "first_id": models.ids.first(), "last_id": models.ids.last()}),
            _ => json!({"object": "list", "data": data}),
        };
        Reply::json(200, &body)
    };
    match models.hang {
        // The pause stands before the headers: the server waits for the first step.
        Some(pause) => {
            let mut reply = reply;
            reply.steps.push_front(Step::Wait(pause));
            reply
        }
        None => reply,
    }
}

fn model(config: &Config, protocol: Protocol, id: &str, window: u64) -> Value {
    let mut model = match protocol {
        Protocol::Messages => {
            json!({"type": "model", "id": id, "display_name": id, "created_at": "2025-01-01T00:00:00Z"})
        }
        _ => json!({"id": id, "object": "model", "created": 1_760_000_000, "owned_by": "simulator"}),
    };
    if let (Some(path), Some(object)) = (&config.models.window_field, model.as_object_mut()) {
        insert(object, path, window);
    }
    model
}

/// Puts a number under a path of keys.
fn insert(object: &mut Map<String, Value>, path: &str, number: u64) {
    match path.split_once('.') {
        Some((key, rest)) => {
            let inner = object.entry(key).or_insert_with(|| json!({}));
            if let Some(inner) = inner.as_object_mut() {
                insert(inner, rest, number);
            }
        }
        None => {
            object.insert(path.to_owned(), json!(number));
        }
    }
}
