//! Sessions of the three protocols: a body, a list of recorded requests, JSON lines, and the benchmark files that
//! wrap chats.

use std::sync::Arc;

use foreshorten_core::transcript::Transcript as _;

use super::error::FormatError;
use super::json::Json;
use super::parsed::Parsed;
use super::session::{Conversation, Draft};
use super::wire::WireTranscript;
use super::{Format, body, chat, detect};

/// Reads a document.
pub(crate) fn document(text: &Arc<String>, root: Json<'_>, format: Format) -> Result<Vec<Conversation>, FormatError> {
    let [requests, simulations, kwargs, answer, messages, input, role] =
        root.fields(["requests", "simulations", "kwargs", "answer_generation", "messages", "input", "role"]);
    if let Some(requests) = requests.filter(|list| list.is_array()) {
        return grown(text, requests.items());
    }
    if messages.is_none() && input.is_none() {
        if let Some(runs) = simulations {
            return runs.items().enumerate().map(|(at, run)| wrapped(text, run, "messages", at)).collect();
        }
        if let Some(kwargs) = kwargs {
            return Ok(vec![request(text, kwargs.value, Some(format))?.0.finish(format)]);
        }
        if let Some(lists) = answer.and_then(|answer| answer.get("train_messages")) {
            let mut runs = grown(text, lists.items())?;
            let tools = answer.and_then(|answer| answer.get("function"));
            for run in &mut runs {
                run.tools =
                    tools.map(|list| list.items().map(|tool| tool.raw().to_owned()).collect()).unwrap_or_default();
            }
            return Ok(runs);
        }
        if role.is_some() {
            let mut draft = Draft::new(text, "main");
            body::read_message(&mut draft.b, format, root)?;
            return Ok(vec![draft.finish(format)]);
        }
    }
    if root.items().next().is_some_and(|first| first.get("traj").is_some()) {
        return root.items().enumerate().map(|(at, run)| wrapped(text, run, "traj", at)).collect();
    }
    let (draft, found) = request(text, root, Some(format))?;
    Ok(vec![draft.finish(found)])
}

/// One run of a benchmark: a chat under `name`, beside an id of its task.
fn wrapped(text: &Arc<String>, run: Json<'_>, name: &str, at: usize) -> Result<Conversation, FormatError> {
    let [messages, task, id] = run.fields([name, "task_id", "id"]);
    let task = task
        .or(id)
        .map_or_else(|| at.to_string(), |task| task.string().unwrap_or_else(|| task.raw().into()).into_owned());
    let mut draft = Draft::new(text, format!("task {task} ({at})"));
    let Some(messages) = messages.filter(|list| list.is_array()) else {
        let expected = format!("a run with its chat as `{name}`");
        return Err(FormatError::here(text.as_bytes(), run.start(), expected));
    };
    for message in messages.items() {
        let entry = draft.b.len();
        chat::message(&mut draft.b, message)?;
        let [role, usage] = message.fields(["role", "usage"]);
        if role.is_some_and(|role| role.is("assistant")) {
            draft.used(entry, usage.map(|usage| usage.value));
        }
    }
    Ok(draft.finish(Format::OpenAiChat))
}

/// Reads a request with what was recorded beside it.
fn request(text: &Arc<String>, root: Json<'_>, format: Option<Format>) -> Result<(Draft, Format), FormatError> {
    let (body, b) = body::begin(text, root, format)?;
    let mut draft = Draft::from(b, "main");
    draft.model = body.model().map(str::to_owned);
    draft.tools = body.tools().into_iter().map(str::to_owned).collect();
    // A bare list is a record; a body is a call that was made, or is about to be.
    draft.asks = root.is_object();
    let entries = draft.b.len();
    let usage = root.fields(["response", "usage"]);
    let usage = usage[0].and_then(|response| response.get("usage")).or_else(|| usage[1].map(|usage| usage.value));
    draft.used(entries, usage);
    Ok((draft, body.format()))
}

/// Reads requests that were recorded one after the other. As long as each repeats and extends the one before, they
/// are one conversation; the answer to the last is its end.
fn grown<'a>(text: &Arc<String>, requests: impl Iterator<Item = Json<'a>>) -> Result<Vec<Conversation>, FormatError> {
    let mut open: Option<(Draft, Format, WireTranscript, Json<'a>)> = None;
    let mut done = Vec::new();
    for (at, root) in requests.enumerate() {
        let (mut draft, format) = request(text, root, None)?;
        draft.name = format!("request {at}");
        let now = draft.b.peek_all();
        if let Some((before, of, had, last)) = open.take() {
            if of == format && had.len() <= now.len() && (0..had.len()).all(|entry| had.same(entry, &now, entry)) {
                draft.name = before.name;
                draft.usage.splice(0..0, before.usage);
            } else {
                done.push(answered(before, of, last).finish(of));
            }
        }
        open = Some((draft, format, now, root));
    }
    if let Some((draft, format, _, root)) = open {
        done.push(answered(draft, format, root).finish(format));
    }
    Ok(done)
}

/// The draft with the answer that was recorded beside its request.
fn answered(mut draft: Draft, format: Format, root: Json<'_>) -> Draft {
    let [response, output, uri] = root.fields(["response", "output", "uri"]);
    // What the server's compaction returns is a new start of the conversation, not a turn of it.
    if uri.and_then(|uri| uri.inner()).is_some_and(|uri| uri.ends_with("/compact")) {
        draft.skip("answer of /responses/compact");
        draft.asks = false;
        return draft;
    }
    let message = match format {
        Format::OpenAiResponses => {
            let list =
                response.and_then(|response| response.get("output")).or_else(|| output.map(|output| output.value));
            for item in list.into_iter().flat_map(Json::items) {
                if body::read_message(&mut draft.b, format, item).is_err() {
                    draft.skip("item without type");
                }
            }
            None
        }
        Format::AnthropicMessages => response.map(|response| response.value),
        _ => response
            .and_then(|response| response.get("choices"))
            .and_then(|choices| choices.items().next())
            .and_then(|choice| choice.get("message")),
    };
    if let Some(message) = message
        && body::read_message(&mut draft.b, format, message).is_err()
    {
        draft.skip("answer without role");
    }
    draft
}

/// Reads JSON lines: messages or items one a line, or requests one a line.
pub(crate) fn lines(text: &Arc<String>, parsed: &Parsed<'_>, format: Format) -> Result<Vec<Conversation>, FormatError> {
    let values: Vec<Json<'_>> = parsed.values().collect();
    let is_request = |value: &Json<'_>| {
        value.is_array() || value.fields(["messages", "input", "requests"]).iter().any(Option::is_some)
    };
    if values.first().is_some_and(is_request) {
        let mut all = Vec::new();
        if values.iter().all(|value| value.get("requests").is_none()) {
            all = grown(text, values.into_iter())?;
        } else {
            for value in values {
                all.extend(document(text, value, format)?);
            }
        }
        return Ok(all);
    }
    let mut draft = Draft::new(text, "main");
    for value in values {
        let [role, kind] = value.fields(["role", "type"]);
        let known = role.is_some()
            || (format == Format::OpenAiResponses && kind.is_some() && detect::evidence(value).is_some());
        if known {
            body::read_message(&mut draft.b, format, value)?;
        } else {
            draft.skip(kind.and_then(|kind| kind.string()).as_deref().unwrap_or("line that is no message"));
        }
    }
    Ok(vec![draft.finish(format)])
}
