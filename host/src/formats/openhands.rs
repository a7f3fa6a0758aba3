//! OpenHands events: actions and what was observed, linked by `cause`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foreshorten_core::transcript::EntryKind;

use super::error::FormatError;
use super::json::{Field, Json, Span};
use super::parsed::Parsed;
use super::session::{Conversation, Draft};
use super::wire::{Content, Str};
use super::{Format, chat, parts};

/// Reads a list of events, a run with its `history`, or runs one a line.
pub(crate) fn read(text: &Arc<String>, parsed: &Parsed<'_>) -> Result<Vec<Conversation>, FormatError> {
    parsed.values().enumerate().map(|(at, value)| run(text, value, at)).collect()
}

fn run(text: &Arc<String>, root: Json<'_>, at: usize) -> Result<Conversation, FormatError> {
    let [history, instance] = root.fields(["history", "instance_id"]);
    let name = instance.and_then(|id| id.string()).map_or_else(|| format!("run {at}"), std::borrow::Cow::into_owned);
    let list = if root.is_array() { Some(root) } else { history.map(|history| history.value) };
    let Some(list) = list.filter(|list| list.is_array()) else {
        return Err(FormatError::here(
            text.as_bytes(),
            root.start(),
            "a list of events, or a run with one as `history`",
        ));
    };
    let mut reader = Reader { draft: Draft::new(text, name), calls: HashMap::new(), answers: HashSet::new() };
    // Old files hold pairs of action and observation.
    let events: Vec<Json<'_>> =
        list.items().flat_map(|item| if item.is_array() { item.items().collect() } else { vec![item] }).collect();
    for at in in_order(&events) {
        reader.event(events[at]);
    }
    Ok(reader.draft.finish(Format::OpenHands))
}

/// Parallel calls are actions of one answer of the model, with observations in between; they stood together.
fn in_order(events: &[Json<'_>]) -> Vec<usize> {
    let mut clusters: Vec<Vec<usize>> = Vec::new();
    let mut by_answer: HashMap<&str, usize> = HashMap::new();
    for (at, event) in events.iter().enumerate() {
        let [action, meta] = event.fields(["action", "tool_call_metadata"]);
        let answer = action.and(meta).and_then(|meta| meta.path(&["model_response", "id"])).and_then(Json::inner);
        match answer.and_then(|answer| by_answer.get(answer)) {
            Some(&cluster) => clusters[cluster].push(at),
            None => {
                if let Some(answer) = answer.filter(|answer| !answer.is_empty()) {
                    by_answer.insert(answer, clusters.len());
                }
                clusters.push(vec![at]);
            }
        }
    }
    clusters.into_iter().flatten().collect()
}

struct Reader<'a> {
    draft: Draft,
    /// Call ids by event.
    calls: HashMap<&'a str, Str>,
    /// Answers whose text was read.
    answers: HashSet<&'a str>,
}

impl<'a> Reader<'a> {
    fn event(&mut self, event: Json<'a>) {
        let [action, observation] = event.fields(["action", "observation"]);
        if let Some(action) = action.and_then(|action| action.value.inner()) {
            self.action(action, event);
        } else if let Some(observation) = observation.and_then(|observation| observation.value.inner()) {
            self.observation(observation, event);
        } else {
            self.draft.skip("event of another kind");
        }
    }

    fn said(&mut self, kind: EntryKind, event: Json<'_>, content: Option<Json<'_>>) {
        self.draft.b.unit(event.span());
        self.draft.b.entry(kind);
        if let Some(content) = content {
            parts::content(&mut self.draft.b, content);
        }
    }

    fn action(&mut self, action: &str, event: Json<'a>) {
        let [id, source, args, message, meta] = event.fields(["id", "source", "args", "message", "tool_call_metadata"]);
        let by_user = source.is_some_and(|source| source.is("user"));
        let [content, images, thought, last, tools] = args
            .map(|args| args.fields(["content", "image_urls", "thought", "final_thought", "tools"]))
            .unwrap_or_default();
        match action {
            "system" => {
                self.said(EntryKind::System, event, content.map(|content| content.value));
                self.draft.tools =
                    tools.map(|list| list.items().map(|tool| tool.raw().to_owned()).collect()).unwrap_or_default();
            }
            "message" => {
                let kind = if by_user { EntryKind::User } else { EntryKind::Assistant };
                self.said(kind, event, content.map(|content| content.value));
                for url in images.into_iter().flat_map(|list| list.items()).filter(|url| url.is_string()) {
                    self.image(url);
                }
            }
            // The end of a run is what the agent has to say; no result will come.
            "finish" => {
                let text = [last, message, thought].into_iter().flatten().find(|text| !text.is("") && !text.is_null());
                self.said(EntryKind::Assistant, event, text.map(|text| text.value));
            }
            "recall"
            | "change_agent_state"
            | "null"
            | "condensation"
            | "condensation_request"
            | "summarize"
            | "pause"
            | "resume"
            | "stop" => self.draft.skip(&format!("action/{action}")),
            _ if by_user => self.draft.skip(&format!("action/{action} of the user")),
            _ => self.call(event, id, args, thought, meta),
        }
    }

    fn call(
        &mut self,
        event: Json<'a>,
        id: Option<Field<'a>>,
        args: Option<Field<'a>>,
        thought: Option<Field<'a>>,
        meta: Option<Field<'a>>,
    ) {
        let b = &mut self.draft.b;
        b.unit(event.span());
        let entry = b.len();
        let [name, call_id, answer] =
            meta.map(|meta| meta.fields(["function_name", "tool_call_id", "model_response"])).unwrap_or_default();
        let mut text = thought.map(|thought| thought.value);
        let mut arguments = args.map(|args| args.value);
        let mut usage = None;
        if let Some(answer) = answer.filter(|answer| answer.is_object()) {
            let [answer_id, choices, used, model] = answer.fields(["id", "choices", "usage", "model"]);
            usage = used.map(|used| used.value);
            let message = choices.and_then(|choices| choices.items().next()).and_then(|choice| choice.get("message"));
            let [said, calls] = message.map(|message| message.fields(["content", "tool_calls"])).unwrap_or_default();
            let answer_id = answer_id.and_then(|id| id.value.inner()).unwrap_or_default();
            let first = answer_id.is_empty() || self.answers.insert(answer_id);
            text = said.map(|said| said.value).filter(|_| first);
            let same = |call: &Json<'_>| call.get("id").map(Json::raw) == call_id.map(|id| id.value.raw());
            let sent =
                calls.and_then(|calls| calls.items().find(same)).and_then(|call| call.path(&["function", "arguments"]));
            arguments = sent.or(arguments);
            self.draft.by(model.map(|model| model.value));
        }
        let b = &mut self.draft.b;
        if let Some(text) = text.filter(|text| !text.is("") && !text.is_null()) {
            b.entry(EntryKind::Assistant);
            parts::content(b, text);
        }
        let id = id.map(|id| id.value);
        let call_id = match call_id.filter(|id| id.is_string()) {
            Some(call_id) => b.str(Some(call_id.value)),
            None => id.map_or(Str::Empty, |id| b.str_or_raw(id)),
        };
        let name = match name.filter(|name| name.is_string()) {
            Some(name) => b.str(Some(name.value)),
            None => b.str(event.get("action")),
        };
        chat::call(b, call_id, name, arguments, Span::NONE);
        if let Some(id) = id {
            self.calls.insert(id.raw(), call_id);
        }
        self.draft.used(entry, usage);
    }

    fn observation(&mut self, observation: &str, event: Json<'a>) {
        if matches!(observation, "agent_state_changed" | "null" | "recall" | "condense" | "agent_condensation") {
            self.draft.skip(&format!("observation/{observation}"));
            return;
        }
        let [cause, content, extras, meta] = event.fields(["cause", "content", "extras", "tool_call_metadata"]);
        let by_cause = cause.and_then(|cause| self.calls.get(cause.value.raw())).copied();
        let call_id = by_cause.unwrap_or_else(|| self.draft.b.str(meta.and_then(|meta| meta.get("tool_call_id"))));
        let b = &mut self.draft.b;
        b.unit(event.span());
        let entry = b.entry(EntryKind::ToolResult);
        entry.call_id = call_id;
        let [metadata, code, error, screenshot] =
            extras.map(|extras| extras.fields(["metadata", "exit_code", "error", "screenshot"])).unwrap_or_default();
        let code = metadata.and_then(|metadata| metadata.get("exit_code")).or_else(|| code.map(|code| code.value));
        let failed = code.is_some_and(|code| !code.is_null() && code.integer() != Some(0));
        entry.is_error = failed || observation == "error" || error.is_some_and(|error| error.is_true());
        if let Some(content) = content {
            parts::content(b, content.value);
        }
        if let Some(shot) = screenshot.filter(|shot| shot.inner().is_some_and(|data| !data.is_empty())) {
            self.image(shot.value);
        }
    }

    fn image(&mut self, url: Json<'_>) {
        let media = parts::media(&mut self.draft.b, url, Str::Empty);
        self.draft.b.part(Content::Image(media), url.span());
    }
}
