//! An answer in the shape of each protocol, whole and as a stream.

mod chat;
mod messages;
mod responses;

use serde_json::Value;

use crate::agent::Answer;
use crate::config::Protocol;
use crate::digest::Signer;
use crate::fault::UsageLie;
use crate::prose::Dice;

/// What stands around an answer.
pub(crate) struct Frame<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) model: &'a str,
    /// An id without its prefix; parts append to it.
    pub(crate) id: String,
    pub(crate) usage: Option<Usage>,
    /// The stream asked for a usage chunk (Chat).
    pub(crate) include_usage: bool,
    /// Reasoning is sent as `reasoning_content` (Chat).
    pub(crate) reasoning_content: bool,
    /// Reasoning is sent sealed (Responses).
    pub(crate) sealed: bool,
    pub(crate) signer: &'a Signer,
    pub(crate) number: u64,
}

/// The figures of an answer, as they are told.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    /// The prompt as read, cached and written parts included.
    pub(crate) prompt: u64,
    pub(crate) cached: u64,
    pub(crate) written: u64,
    pub(crate) output: u64,
    pub(crate) reasoning: u64,
}

impl Usage {
    /// What is told by a server that is wrong about it.
    pub(crate) fn told(self, lie: Option<UsageLie>) -> Option<Self> {
        match lie {
            None => Some(self),
            Some(UsageLie::Zero) => Some(Self::default()),
            Some(UsageLie::Missing) => None,
            Some(UsageLie::Huge) => Some(Self { prompt: self.prompt.saturating_mul(1_000), ..self }),
            Some(UsageLie::OutputAsInput) => Some(Self { prompt: self.prompt + self.output, ..self }),
        }
    }
}

/// A server-sent event.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) name: Option<&'static str>,
    pub(crate) data: String,
    /// Belongs to what tells that the answer is complete.
    pub(crate) terminal: bool,
}

impl Event {
    fn unnamed(data: &Value) -> Self {
        Self { name: None, data: data.to_string(), terminal: false }
    }

    fn named(name: &'static str, data: &Value) -> Self {
        Self { name: Some(name), data: data.to_string(), terminal: false }
    }

    fn terminal(mut self) -> Self {
        self.terminal = true;
        self
    }

    /// The event as bytes of a stream.
    pub(crate) fn to_text(&self) -> String {
        match self.name {
            Some(name) => format!("event: {name}\ndata: {}\n\n", self.data),
            None => format!("data: {}\n\n", self.data),
        }
    }
}

impl Frame<'_> {
    /// The answer as one JSON object.
    pub(crate) fn whole(&self, answer: &Answer) -> Value {
        match self.protocol {
            Protocol::Chat => chat::whole(self, answer),
            Protocol::Responses => responses::whole(self, answer),
            Protocol::Messages => messages::whole(self, answer),
        }
    }

    /// The answer as a stream.
    pub(crate) fn stream(&self, answer: &Answer) -> Vec<Event> {
        match self.protocol {
            Protocol::Chat => chat::stream(self, answer),
            Protocol::Responses => responses::stream(self, answer),
            Protocol::Messages => messages::stream(self, answer),
        }
    }

    /// The event in which an error arrives in the middle of a stream.
    pub(crate) fn error_event(&self, message: &str, code: &str, status: u16) -> Event {
        match self.protocol {
            Protocol::Chat => chat::error_event(message, code),
            Protocol::Responses => responses::failed(self, message, code),
            Protocol::Messages => messages::error_event(message, status),
        }
    }

    /// Ids of the output items (Responses): of the reasoning, of the message, of each call.
    pub(crate) fn item_ids(&self, answer: &Answer) -> Vec<String> {
        responses::output(self, answer).iter().filter_map(|item| Some(item["id"].as_str()?.to_owned())).collect()
    }

    /// Seconds of the epoch. No clock: the same run gives the same bytes.
    const fn created(&self) -> u64 {
        1_760_000_000 + self.number
    }

    /// A text in pieces, as it arrives in deltas. Their sizes vary.
    fn pieces<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut dice = Dice::new(text.len() as u64, self.number, 6);
        let (mut rest, mut pieces) = (text, Vec::new());
        while !rest.is_empty() {
            let length = usize::try_from(8 + dice.below(60)).unwrap_or(8).min(rest.len());
            let (piece, after) = rest.split_at(rest.ceil_char_boundary(length));
            pieces.push(piece);
            rest = after;
        }
        pieces
    }
}
