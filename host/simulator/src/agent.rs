//! The model: what it answers, out of the seed and the number of answers given so far.

use std::collections::HashMap;

use serde_json::Value;

use crate::arguments::{arguments, recall_arguments};
use crate::config::{Agent, Protocol, Summary};
use crate::count::{Item, tokens};
use crate::log::{Call, Stop};
use crate::prose::Dice;
use crate::request::Request;
use crate::summary;

/// An answer, not yet in any protocol's shape.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) reasoning: Option<String>,
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) stop: Stop,
    pub(crate) reasoning_tokens: u64,
    /// All of it, reasoning included.
    pub(crate) output_tokens: u64,
}

impl Answer {
    pub(crate) fn new(reasoning: Option<String>, text: String, calls: Vec<Call>, stop: Stop) -> Self {
        let mut answer = Self { reasoning, text, calls, stop, reasoning_tokens: 0, output_tokens: 0 };
        answer.weigh();
        answer
    }

    pub(crate) const fn empty() -> Self {
        Self {
            reasoning: None,
            text: String::new(),
            calls: Vec::new(),
            stop: Stop::End,
            reasoning_tokens: 0,
            output_tokens: 0,
        }
    }

    fn weigh(&mut self) {
        self.reasoning_tokens = self.reasoning.as_deref().map_or(0, tokens);
        let calls: u64 = self.calls.iter().map(|call| tokens(&call.name) + tokens(&call.arguments) + 8).sum();
        self.output_tokens = self.reasoning_tokens + tokens(&self.text) + calls + 1;
    }

    /// Stops the answer at a limit: calls that do not fit are not made, the text ends where the room does.
    pub(crate) fn limit(mut self, limit: Option<u64>) -> Self {
        let Some(limit) = limit.filter(|limit| *limit < self.output_tokens) else { return self };
        self.stop = Stop::Length;
        self.calls.clear();
        if self.reasoning_tokens >= limit {
            // All of the room went into reasoning.
            self.reasoning = self.reasoning.map(|text| beginning(&text, limit));
            self.text.clear();
        } else {
            self.text = beginning(&self.text, limit - self.reasoning_tokens);
        }
        self.weigh();
        self.output_tokens = self.output_tokens.min(limit);
        self.reasoning_tokens = self.reasoning_tokens.min(limit);
        self
    }
}

/// The beginning of a text, at most so many tokens of it.
pub(crate) fn beginning(text: &str, limit: u64) -> String {
    let (mut low, mut high) = (0, text.len());
    while low < high {
        let middle = text.ceil_char_boundary(usize::midpoint(low, high) + 1);
        if tokens(&text[..middle]) <= limit {
            low = middle;
        } else {
            high = text.floor_char_boundary(middle.saturating_sub(1)).max(low);
        }
    }
    text[..low].to_owned()
}

/// How far the model is. Sessions are told apart by the header `x-simulator-session`.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    sessions: HashMap<String, Session>,
    summaries: u64,
    /// Answers made, delivered or not: ids are never given out twice.
    made: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Session {
    turn: u64,
    rounds: u64,
}

impl Progress {
    /// What the model says to a request. Nothing is remembered until [`Progress::delivered`].
    pub(crate) fn answer(&mut self, agent: &Agent, seed: u64, session: &str, request: &Request) -> Answer {
        self.made += 1;
        let Session { turn, rounds } = self.sessions.get(session).copied().unwrap_or_default();
        let reasons = request.reasons();
        let tools: Vec<Tool<'_>> = request.tools.iter().filter_map(|item| Tool::read(item)).collect();
        let ordinary: Vec<&Tool<'_>> = tools.iter().filter(|tool| tool.name != agent.recall_tool).collect();
        let fresh = request.items.last().is_some_and(|item| item.user_text);
        let rounds = if fresh { 0 } else { rounds };
        let choice = request.field("tool_choice");
        let forbidden = choice == "none" || choice["type"] == "none";
        let may_call = !ordinary.is_empty() && rounds < agent.rounds && !forbidden;

        let mut dice = Dice::new(seed, turn, 1);
        let mut calls = Vec::new();
        if may_call {
            let alone = request.field("parallel_tool_calls") == false || choice["disable_parallel_tool_use"] == true;
            let most = if alone { 1 } else { agent.max_parallel.max(1) };
            let count = 1 + dice.below(most);
            for number in 0..count {
                let mut dice = Dice::new(seed, turn, 100 + number);
                let Some(tool) = dice.pick(&ordinary) else { break };
                calls.push((tool.name.to_owned(), arguments(tool.schema, &mut dice).to_string()));
            }
            if let Some(tool) = tools.iter().find(|tool| tool.name == agent.recall_tool) {
                recall(agent, Dice::new(seed, turn, 2), request, tool, &mut calls);
            }
        }
        let mut dice = Dice::new(seed, turn, 3);
        let text = if calls.is_empty() || dice.percent(agent.text_percent) {
            let count = if calls.is_empty() { 3 + dice.below(4) } else { 1 + dice.below(2) };
            dice.sentences(count)
        } else {
            String::new()
        };
        let mut dice = Dice::new(seed, turn, 4);
        let must = request.protocol == Protocol::Messages && !calls.is_empty();
        let thinks = dice.percent(agent.reasoning_percent) || must;
        let count = 1 + dice.below(agent.reasoning_sentences.max(1));
        let reasoning = (reasons && thinks).then(|| dice.sentences(count));
        let calls = calls.into_iter().zip(0..).map(|((name, arguments), number)| {
            let id = self.call_id(agent, seed, request.protocol, number);
            Call { id, name, arguments }
        });
        let calls: Vec<Call> = calls.collect();
        let stop = if calls.is_empty() { Stop::End } else { Stop::Calls };
        Answer::new(reasoning, text, calls, stop)
    }

    /// What the model says to a request for a summary.
    pub(crate) fn summary(&mut self, seed: u64, mode: Summary, request: &Request) -> Answer {
        self.made += 1;
        let mut dice = Dice::new(seed, self.summaries, 5);
        let reasoning = request.reasons().then(|| dice.sentence());
        if mode == Summary::CallsTool
            && let Some(tool) = request.tools.iter().find_map(|item| Tool::read(item))
        {
            let arguments = arguments(tool.schema, &mut dice).to_string();
            let id = self.call_id(&Agent::default(), seed, request.protocol, 0);
            let call = Call { id, name: tool.name.to_owned(), arguments };
            return Answer::new(reasoning, String::new(), vec![call], Stop::Calls);
        }
        let (text, stop) = summary::write(mode, &mut dice);
        Answer::new(reasoning, text, Vec::new(), stop)
    }

    /// Number of summaries delivered so far.
    pub(crate) const fn summaries(&self) -> u64 {
        self.summaries
    }

    /// The answer has been sent whole: the next request gets the next one.
    pub(crate) fn delivered(&mut self, session: &str, request: &Request, answer: &Answer, is_summary: bool) {
        if is_summary {
            self.summaries += 1;
            return;
        }
        // A request without tools (a title, a classification) is none of the agent's turns.
        if request.tools.is_empty() {
            return;
        }
        let session = self.sessions.entry(session.to_owned()).or_default();
        session.turn += 1;
        let fresh = request.items.last().is_some_and(|item| item.user_text);
        session.rounds = match (answer.stop, fresh) {
            (Stop::Calls, true) => 1,
            (Stop::Calls, false) => session.rounds + 1,
            _ => 0,
        };
    }

    fn call_id(&self, agent: &Agent, seed: u64, protocol: Protocol, number: u64) -> String {
        // Anthropic refuses an id that occurs twice, so there no server repeats them.
        if agent.repeat_call_ids && protocol != Protocol::Messages {
            return format!("call_{number}");
        }
        format!("{}{}", if protocol == Protocol::Messages { "toolu_01" } else { "call_" }, self.id(seed, number))
    }

    /// An id for the newest answer or a part of it.
    pub(crate) fn id(&self, seed: u64, part: u64) -> String {
        let mut dice = Dice::new(seed, self.made, 1_000 + part);
        format!("{:016x}{:08x}", dice.next(), dice.next() & 0xffff_ffff)
    }
}

/// Replaces the last call by a recall of something the view offers, now and then.
fn recall(agent: &Agent, mut dice: Dice, request: &Request, tool: &Tool<'_>, calls: &mut [(String, String)]) {
    let wanted = dice.percent(agent.recall_percent);
    let offered: Vec<&String> = request.items.iter().flat_map(|item| &item.references).collect();
    if let (true, Some(reference), Some(last)) = (wanted, dice.pick(&offered), calls.last_mut()) {
        *last = (tool.name.to_owned(), recall_arguments(tool.schema, reference).to_string());
    }
}

/// A tool that can be called.
struct Tool<'a> {
    name: &'a str,
    schema: &'a Value,
}

impl<'a> Tool<'a> {
    /// Reads a tool of any protocol. Hosted tools have no name or schema and are none of ours.
    fn read(item: &'a Item) -> Option<Self> {
        let value = &item.value;
        let function = if value["function"].is_object() { &value["function"] } else { value };
        let schema = if function["input_schema"].is_object() {
            &function["input_schema"]
        } else if function["parameters"].is_object() || value["type"] == "function" {
            &function["parameters"]
        } else {
            return None;
        };
        Some(Self { name: function["name"].as_str()?, schema })
    }
}
