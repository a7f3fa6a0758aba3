//! Conversations in the three protocols, grown turn by turn.

use serde_json::{Value, json};

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Chat,
    Responses,
    Anthropic,
}

use Protocol::{Anthropic, Chat, Responses};

impl Protocol {
    pub(crate) const ALL: [Self; 3] = [Chat, Responses, Anthropic];

    /// Its name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Chat => "openai-chat",
            Responses => "openai-responses",
            Anthropic => "anthropic-messages",
        }
    }

    /// Where the conversation stands in a body.
    pub(crate) const fn list(self) -> &'static str {
        if matches!(self, Responses) { "input" } else { "messages" }
    }

    /// A tool's schema in the shape of this protocol.
    pub(crate) fn tool(self, name: &str) -> Value {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        match self {
            Chat => json!({"type": "function", "function": {"name": name, "parameters": schema}}),
            Responses => json!({"type": "function", "name": name, "parameters": schema}),
            Anthropic => json!({"name": name, "input_schema": schema}),
        }
    }

    /// The name in a tool's schema.
    pub(crate) fn tool_name(self, tool: &Value) -> &str {
        let at = if self == Chat { &tool["function"]["name"] } else { &tool["name"] };
        at.as_str().unwrap()
    }
}

/// A conversation that is sent again and again, each time a little longer.
#[derive(Clone, Debug)]
pub(crate) struct Talk {
    pub(crate) protocol: Protocol,
    pub(crate) system: String,
    pub(crate) messages: Vec<Value>,
    pub(crate) model: &'static str,
    pub(crate) turns: usize,
}

impl Talk {
    /// Instructions and one request.
    pub(crate) fn new(protocol: Protocol) -> Self {
        let mut talk = Self {
            protocol,
            system: "You mend the ferry timetable.".into(),
            messages: Vec::new(),
            model: "model-x",
            turns: 0,
        };
        talk.user("Please find out why the 07:40 sails late.");
        talk
    }

    pub(crate) fn user(&mut self, text: &str) {
        self.messages.push(json!({"role": "user", "content": text}));
    }

    pub(crate) fn call(&mut self, id: &str, name: &str, arguments: Value) {
        let text = arguments.to_string();
        self.messages.push(match self.protocol {
            Chat => json!({"role": "assistant", "content": null,
                "tool_calls": [{"id": id, "type": "function", "function": {"name": name, "arguments": text}}]}),
            Responses => json!({"type": "function_call", "call_id": id, "name": name, "arguments": text}),
            Anthropic => json!({"role": "assistant",
                "content": [{"type": "tool_use", "id": id, "name": name, "input": arguments}]}),
        });
    }

    /// A result: a text, or a list of parts in the shape of the protocol.
    pub(crate) fn result(&mut self, id: &str, content: impl Into<Value>) {
        let content = content.into();
        self.messages.push(match self.protocol {
            Chat => json!({"role": "tool", "tool_call_id": id, "content": content}),
            Responses => json!({"type": "function_call_output", "call_id": id, "output": content}),
            Anthropic => json!({"role": "user",
                "content": [{"type": "tool_result", "tool_use_id": id, "content": content}]}),
        });
    }

    /// A picture part for a result.
    pub(crate) fn picture(&self, base64: &str) -> Value {
        match self.protocol {
            Chat => json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{base64}")}}),
            Responses => json!({"type": "input_image", "image_url": format!("data:image/png;base64,{base64}")}),
            Anthropic => json!({"type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": base64}}),
        }
    }

    /// A text part for a result.
    pub(crate) fn text_part(&self, text: &str) -> Value {
        json!({"type": if self.protocol == Responses { "input_text" } else { "text" }, "text": text})
    }

    /// One more turn: a call and a result of about `bytes` bytes.
    pub(crate) fn turn(&mut self, bytes: usize) {
        let id = format!("call_{}", self.turns);
        self.call(&id, "read_log", json!({"n": self.turns}));
        self.result(&id, log(self.turns, bytes));
        self.turns += 1;
    }

    pub(crate) fn turns(mut self, count: usize, bytes: usize) -> Self {
        for _ in 0..count {
            self.turn(bytes);
        }
        self
    }

    /// The request body of the next call.
    pub(crate) fn body(&self) -> Vec<u8> {
        // Written by hand: what stands before the conversation must not change from call to call.
        let (list, messages) = (self.protocol.list(), self.listed());
        let system = Value::from(self.system.as_str());
        let head = match self.protocol {
            Chat => String::new(),
            Responses => format!(r#""instructions": {system}, "#),
            Anthropic => format!(r#""max_tokens": 512, "system": {system}, "#),
        };
        let tool = self.protocol.tool("read_log");
        let model = self.model;
        format!(r#"{{"model": "{model}", {head}"tools": [{tool}], "{list}": {messages}, "temperature": 1.50}}"#).into()
    }

    /// The conversation alone.
    pub(crate) fn bare(&self) -> Vec<u8> {
        self.listed().into()
    }

    fn listed(&self) -> String {
        let system = json!({"role": "system", "content": self.system});
        let head = (self.protocol == Chat).then_some(&system);
        let lines: Vec<String> = head.into_iter().chain(&self.messages).map(Value::to_string).collect();
        format!("[\n  {}\n]", lines.join(",\n  "))
    }

    /// The messages of a body of this protocol.
    pub(crate) fn messages_in(&self, body: &[u8]) -> Vec<Value> {
        let body: Value = serde_json::from_slice(body).unwrap();
        body[self.protocol.list()].as_array().unwrap().clone()
    }
}

/// A log of about `bytes` bytes that no other turn prints.
pub(crate) fn log(turn: usize, bytes: usize) -> String {
    let mut text = String::new();
    for line in 0.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&format!(
            "{turn:04} {line:05} berth {} ready – déjà {}\n",
            (line * 7 + turn) % 23,
            line * 31 % 97
        ));
    }
    text
}

/// Every reference that a marker, preview or note of a view names.
pub(crate) fn references(view: &[u8]) -> Vec<String> {
    let view: Value = serde_json::from_slice(view).unwrap();
    let mut found = Vec::new();
    each_string(&view, &mut |text| {
        let mut rest = text;
        while let Some((_, after)) = rest.split_once("recall_tool_result(\"") {
            let (reference, after) = after.split_once('"').unwrap();
            found.push(reference.to_owned());
            rest = after;
        }
    });
    found
}

pub(crate) fn each_string(value: &Value, see: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(list) => list.iter().for_each(|item| each_string(item, see)),
        Value::Object(fields) => fields.values().for_each(|item| each_string(item, see)),
        _ => {}
    }
}
