//! Claude Code sessions: JSON lines, one block of an assistant message a line, in a tree.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::json::{Json, Span};
use super::parsed::Parsed;
use super::session::{Conversation, Draft};
use super::{Format, anthropic};

/// A line that has a place in the tree.
#[derive(Clone, Copy, Debug)]
struct Record<'a> {
    line: Span,
    uuid: &'a str,
    parent: &'a str,
    logical_parent: &'a str,
    /// `""` in the main conversation.
    agent: &'a str,
    /// The message, when the line is one that was sent.
    message: Option<Message<'a>>,
}

#[derive(Clone, Copy, Debug)]
struct Message<'a> {
    /// `""` but for the model's own.
    id: &'a str,
    role: &'a str,
    content: Option<Json<'a>>,
    json: Json<'a>,
}

impl<'a> Message<'a> {
    /// The ids of the calls, or of the results, in the message.
    fn ids(self, of: &'static str, name: &'static str) -> impl Iterator<Item = &'a str> {
        self.content.into_iter().flat_map(Json::items).filter_map(move |block| {
            let [kind, id] = block.fields(["type", name]);
            kind.filter(|kind| kind.is(of)).and(id).and_then(|id| id.inner())
        })
    }

    fn calls(self) -> impl Iterator<Item = &'a str> {
        self.ids("tool_use", "id")
    }

    fn results(self) -> impl Iterator<Item = &'a str> {
        self.ids("tool_result", "tool_use_id")
    }
}

/// What was read before it is sorted.
#[derive(Debug, Default)]
struct Found<'a> {
    records: Vec<Record<'a>>,
    session: &'a str,
    skipped: BTreeMap<String, usize>,
}

/// Reads the main conversation and those of sub-agents.
pub(crate) fn read(text: &Arc<String>, parsed: &Parsed<'_>) -> Vec<Conversation> {
    let found = scan(parsed);
    // The main conversation first, then sub-agents in the order in which they began.
    let mut order: Vec<&str> = Vec::new();
    let mut by_agent: HashMap<&str, Vec<Record<'_>>> = HashMap::new();
    for record in found.records {
        by_agent
            .entry(record.agent)
            .or_insert_with(|| {
                order.push(record.agent);
                Vec::new()
            })
            .push(record);
    }
    order.sort_by_key(|agent| !agent.is_empty());
    let mut conversations = Vec::new();
    let mut skipped = found.skipped;
    for agent in order {
        let records = by_agent.remove(agent).unwrap_or_default();
        let name = if agent.is_empty() { found.session.to_owned() } else { format!("agent {agent}") };
        let mut draft = Draft::new(text, name);
        for (kind, count) in std::mem::take(&mut skipped) {
            draft.skip_many(&kind, count);
        }
        build(&mut draft, &records);
        conversations.push(draft.finish(Format::ClaudeCode));
    }
    // A file of noise alone is a session in which nothing was said yet.
    if conversations.is_empty() {
        conversations.push(Draft::new(text, found.session).finish(Format::ClaudeCode));
    }
    conversations
}

fn scan<'a>(parsed: &'a Parsed<'_>) -> Found<'a> {
    let mut found = Found::default();
    let mut seen = HashSet::new();
    let mut agent_of: HashMap<&str, &str> = HashMap::new();
    for value in parsed.values() {
        let [kind, subtype, uuid, parent, logical, side, agent, message, api_error, summary, unseen, session] = value
            .fields([
                "type",
                "subtype",
                "uuid",
                "parentUuid",
                "logicalParentUuid",
                "isSidechain",
                "agentId",
                "message",
                "isApiErrorMessage",
                "isCompactSummary",
                "isVisibleInTranscriptOnly",
                "sessionId",
            ]);
        let word = |field: Option<super::json::Field<'_>>| -> bool { field.is_some_and(|field| field.is_true()) };
        let kind = kind.and_then(|kind| kind.inner()).unwrap_or("line without type");
        let uuid = uuid.and_then(|uuid| uuid.value.inner()).unwrap_or_default();
        let parent = parent.and_then(|parent| parent.value.inner()).unwrap_or_default();
        if found.session.is_empty() {
            found.session = session.and_then(|session| session.value.inner()).unwrap_or_default();
        }
        if !uuid.is_empty() && !seen.insert(uuid) {
            *found.skipped.entry("line written twice".into()).or_default() += 1;
            continue;
        }
        let sent = matches!(kind, "user" | "assistant") && !word(api_error) && (!word(unseen) || word(summary));
        let message = message.filter(|message| sent && message.is_object()).map(|message| {
            let [id, role, content] = message.fields(["id", "role", "content"]);
            let role = role.and_then(|role| role.value.inner()).unwrap_or(kind);
            let id = id.and_then(|id| id.value.inner()).filter(|_| role == "assistant").unwrap_or_default();
            Message { id, role, content: content.map(|content| content.value), json: message.value }
        });
        if message.is_none() {
            let name = match subtype.and_then(|subtype| subtype.value.inner()) {
                _ if word(api_error) => "api error shown as a message".to_owned(),
                Some(subtype) => format!("{kind}/{subtype}"),
                None => kind.to_owned(),
            };
            *found.skipped.entry(name).or_default() += 1;
        }
        // Older versions do not name the sub-agent: its lines are then known by their root.
        let agent = match agent.and_then(|agent| agent.value.inner()) {
            _ if !word(side) => "",
            Some(agent) => agent,
            None => agent_of.get(parent).copied().unwrap_or(if uuid.is_empty() { "sidechain" } else { uuid }),
        };
        if word(side) && !uuid.is_empty() {
            agent_of.insert(uuid, agent);
        }
        if message.is_some() || !uuid.is_empty() {
            let logical_parent = logical.and_then(|logical| logical.value.inner()).unwrap_or_default();
            found.records.push(Record { line: value.span(), uuid, parent, logical_parent, agent, message });
        }
    }
    found
}

/// Which records lead to the newest: edits and rewinds leave branches that are no longer the conversation.
fn current(records: &[Record<'_>]) -> Vec<bool> {
    let by_uuid: HashMap<&str, usize> = records
        .iter()
        .enumerate()
        .filter(|(_, record)| !record.uuid.is_empty())
        .map(|(at, record)| (record.uuid, at))
        .collect();
    let mut keep = vec![false; records.len()];
    let mut lowest = records.len();
    // Where a chain ends (a parent that is not in the file, or none), the record goes on with what was written before.
    while let Some(leaf) = records[..lowest].iter().rposition(|record| record.message.is_some()) {
        let mut next = Some(leaf);
        lowest = leaf;
        while let Some(at) = next.filter(|&at| !keep[at]) {
            keep[at] = true;
            lowest = lowest.min(at);
            let record = &records[at];
            next = by_uuid.get(record.parent).or_else(|| by_uuid.get(record.logical_parent)).copied();
        }
    }
    if keep.iter().all(|&kept| kept) {
        return keep;
    }
    // Parallel calls make branches too: the blocks of one message, and their results, all belong to it.
    let kept = |keep: &[bool]| -> Vec<Message<'_>> {
        records.iter().zip(keep).filter(|(_, keep)| **keep).filter_map(|(record, _)| record.message).collect()
    };
    let ids: HashSet<&str> = kept(&keep).iter().map(|message| message.id).filter(|id| !id.is_empty()).collect();
    for (at, record) in records.iter().enumerate() {
        keep[at] |= record.message.is_some_and(|message| ids.contains(message.id));
    }
    let mut open: HashSet<&str> = HashSet::new();
    for message in kept(&keep) {
        open.extend(message.calls());
    }
    for message in kept(&keep) {
        message.results().for_each(|id| {
            open.remove(id);
        });
    }
    for (at, record) in records.iter().enumerate() {
        if let Some(message) = record.message.filter(|_| !keep[at]) {
            keep[at] = message.results().any(|id| open.remove(id));
        }
    }
    keep
}

fn build(draft: &mut Draft, records: &[Record<'_>]) {
    let keep = current(records);
    let mut abandoned = 0;
    let mut clusters: Vec<Vec<(Span, Message<'_>)>> = Vec::new();
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    for (record, keep) in records.iter().zip(keep) {
        let Some(message) = record.message else { continue };
        if !keep {
            abandoned += 1;
            continue;
        }
        let at = match by_id.get(message.id) {
            Some(&at) if !message.id.is_empty() => at,
            _ => {
                by_id.insert(message.id, clusters.len());
                clusters.push(Vec::new());
                clusters.len() - 1
            }
        };
        clusters[at].push((record.line, message));
    }
    draft.skip_many("abandoned branch", abandoned);
    for at in in_order(&clusters) {
        for (line, message) in &clusters[at] {
            let entry = draft.b.len();
            draft.b.unit(*line);
            anthropic::body(&mut draft.b, message.role, message.content);
            if message.role == "assistant" {
                let [usage, model] = message.json.fields(["usage", "model"]);
                draft.used(entry, usage.map(|usage| usage.value));
                draft.by(model.map(|model| model.value));
            }
        }
    }
}

/// The order of messages, with a result that was written before its call put right after it.
fn in_order(clusters: &[Vec<(Span, Message<'_>)>]) -> Vec<usize> {
    let mut first_call: HashMap<&str, usize> = HashMap::new();
    for (at, cluster) in clusters.iter().enumerate() {
        for id in cluster.iter().flat_map(|(_, message)| message.calls()) {
            first_call.entry(id).or_insert(at);
        }
    }
    let mut after: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut order = Vec::with_capacity(clusters.len());
    for (at, cluster) in clusters.iter().enumerate() {
        let calls = cluster.iter().flat_map(|(_, message)| message.results()).filter_map(|id| first_call.get(id));
        match calls.max() {
            Some(&call) if call > at => after.entry(call).or_default().push(at),
            _ => {
                order.push(at);
                order.extend(after.remove(&at).unwrap_or_default());
            }
        }
    }
    order
}
