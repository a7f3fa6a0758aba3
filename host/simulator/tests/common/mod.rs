//! A small agent for each protocol: keeps the whole conversation, answers the model's calls.

#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, reason = "helpers of tests; a failure here is a failed test")]

use std::time::Duration;

use foreshorten_simulator::{Config, Protocol, Simulator};
use reqwest::{Client, Response};
use serde_json::{Value, json};

pub(crate) const PROTOCOLS: [Protocol; 3] = [Protocol::Chat, Protocol::Responses, Protocol::Messages];

pub(crate) fn start(change: impl FnOnce(&mut Config)) -> Simulator {
    let mut config = Config::default();
    change(&mut config);
    Simulator::start(config).unwrap()
}

pub(crate) fn path(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Chat => "/v1/chat/completions",
        Protocol::Responses => "/v1/responses",
        Protocol::Messages => "/v1/messages",
    }
}

/// A client's builder, however the rest of the workspace has reqwest built.
pub(crate) fn builder() -> reqwest::ClientBuilder {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
}

pub(crate) async fn try_post(simulator: &Simulator, protocol: Protocol, body: &Value) -> reqwest::Result<Response> {
    let client = builder().timeout(Duration::from_secs(20)).build()?;
    let request = client.post(simulator.base_url() + path(protocol)).json(body);
    let request = match protocol {
        Protocol::Messages => request.header("x-api-key", Config::KEY).header("anthropic-version", "2023-06-01"),
        _ => request.bearer_auth(Config::KEY),
    };
    request.send().await
}

pub(crate) async fn post(simulator: &Simulator, protocol: Protocol, body: &Value) -> (u16, Value) {
    let response = try_post(simulator, protocol, body).await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_slice(&response.bytes().await.unwrap()).unwrap())
}

/// The events of a stream: name and data, `[DONE]` as a string.
pub(crate) fn events(text: &str) -> Vec<(String, Value)> {
    let event = |block: &str| {
        let field = |key: &str| block.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim();
        let data = field("data:");
        let data = if data == "[DONE]" { json!(data) } else { serde_json::from_str(data).unwrap() };
        (field("event:").to_owned(), data)
    };
    text.split("\n\n").filter(|block| !block.trim().is_empty()).map(event).collect()
}

pub(crate) async fn stream(simulator: &Simulator, protocol: Protocol, body: &Value) -> Vec<(String, Value)> {
    let mut body = body.clone();
    body["stream"] = json!(true);
    let response = try_post(simulator, protocol, &body).await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream"));
    events(&response.text().await.unwrap())
}

/// An agent's side of a conversation.
pub(crate) struct Talk {
    pub(crate) protocol: Protocol,
    pub(crate) body: Value,
}

pub(crate) const TOOLS: [(&str, &str, &str); 4] = [
    ("read_file", "path", "Reads a file"),
    ("grep", "pattern", "Searches the files"),
    ("run", "command", "Runs a command"),
    ("recall_tool_result", "reference", "Gives back an earlier result"),
];

pub(crate) fn tools(protocol: Protocol) -> Value {
    TOOLS
        .iter()
        .map(|(name, property, about)| {
            let schema =
                json!({"type": "object", "properties": {*property: {"type": "string"}}, "required": [property]});
            match protocol {
                Protocol::Chat => json!({"type": "function",
                    "function": {"name": name, "description": about, "parameters": schema}}),
                Protocol::Responses => {
                    json!({"type": "function", "name": name, "description": about, "parameters": schema})
                }
                Protocol::Messages => json!({"name": name, "description": about, "input_schema": schema}),
            }
        })
        .collect()
}

impl Talk {
    pub(crate) fn new(protocol: Protocol) -> Self {
        let tools = tools(protocol);
        let system = "You audit a small code base.";
        let body = match protocol {
            Protocol::Chat => json!({"model": "sim-1", "tools": tools,
                "messages": [{"role": "system", "content": system}]}),
            Protocol::Responses => json!({"model": "sim-1", "tools": tools, "instructions": system, "input": [],
                "store": false, "include": ["reasoning.encrypted_content"], "reasoning": {"effort": "low"}}),
            Protocol::Messages => json!({"model": "sim-1", "tools": tools, "system": system, "messages": [],
                "max_tokens": 4_000, "thinking": {"type": "enabled", "budget_tokens": 2_000}}),
        };
        Self { protocol, body }
    }

    pub(crate) fn items(&mut self) -> &mut Vec<Value> {
        let key = if self.protocol == Protocol::Responses { "input" } else { "messages" };
        self.body[key].as_array_mut().unwrap()
    }

    pub(crate) fn say(mut self, text: &str) -> Self {
        self.items().push(json!({"role": "user", "content": text}));
        self
    }

    /// Sends it and takes the answer into the conversation.
    pub(crate) async fn ask(&mut self, simulator: &Simulator) -> Value {
        let (status, answer) = post(simulator, self.protocol, &self.body).await;
        assert_eq!(status, 200, "{answer}");
        self.take(&answer);
        answer
    }

    pub(crate) fn take(&mut self, answer: &Value) {
        match self.protocol {
            Protocol::Chat => {
                let mut message = answer["choices"][0]["message"].clone();
                message.as_object_mut().unwrap().remove("annotations");
                self.items().push(message);
            }
            Protocol::Responses => self.items().extend(answer["output"].as_array().unwrap().clone()),
            Protocol::Messages => {
                let message = json!({"role": "assistant", "content": answer["content"]});
                self.items().push(message);
            }
        }
    }

    /// Ids of the calls that an answer makes.
    pub(crate) fn calls(&self, answer: &Value) -> Vec<String> {
        let (list, kind, key) = match self.protocol {
            Protocol::Chat => (&answer["choices"][0]["message"]["tool_calls"], "function", "id"),
            Protocol::Responses => (&answer["output"], "function_call", "call_id"),
            Protocol::Messages => (&answer["content"], "tool_use", "id"),
        };
        let calls = list.as_array().into_iter().flatten().filter(|item| item["type"] == kind);
        calls.map(|call| call[key].as_str().unwrap().to_owned()).collect()
    }

    /// Answers the calls.
    pub(crate) fn results(&mut self, ids: &[String], text: &str) {
        let result = |id: &String| match self.protocol {
            Protocol::Chat => json!({"role": "tool", "tool_call_id": id, "content": text}),
            Protocol::Responses => json!({"type": "function_call_output", "call_id": id, "output": text}),
            Protocol::Messages => json!({"type": "tool_result", "tool_use_id": id, "content": text}),
        };
        let results: Vec<Value> = ids.iter().map(result).collect();
        match self.protocol {
            Protocol::Messages => self.items().push(json!({"role": "user", "content": results})),
            _ => self.items().extend(results),
        }
    }

    /// Goes on until the model makes no more calls. How many requests that took, and the last answer.
    pub(crate) async fn run(&mut self, simulator: &Simulator, text: &str) -> (usize, Value) {
        for number in 1.. {
            let answer = self.ask(simulator).await;
            let ids = self.calls(&answer);
            if ids.is_empty() {
                return (number, answer);
            }
            self.results(&ids, &format!("result {number}\n{text}"));
        }
        unreachable!()
    }
}

/// The prompt tokens an answer reports, cached ones included, and the cached ones.
pub(crate) fn prompt_and_cached(protocol: Protocol, answer: &Value) -> (u64, u64) {
    let usage = &answer["usage"];
    let number = |value: &Value| value.as_u64().unwrap();
    match protocol {
        Protocol::Chat => (number(&usage["prompt_tokens"]), number(&usage["prompt_tokens_details"]["cached_tokens"])),
        Protocol::Responses => {
            (number(&usage["input_tokens"]), number(&usage["input_tokens_details"]["cached_tokens"]))
        }
        Protocol::Messages => {
            let cached = number(&usage["cache_read_input_tokens"]);
            (number(&usage["input_tokens"]) + number(&usage["cache_creation_input_tokens"]) + cached, cached)
        }
    }
}
