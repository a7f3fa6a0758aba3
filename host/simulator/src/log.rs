//! What the simulator writes down of every request.

use crate::config::Protocol;
use crate::refusal::Reason;

/// One POST request.
#[derive(Debug, Clone)]
pub struct Record {
    /// Number of the POST request, from 1.
    pub number: u64,
    /// Protocol of the path.
    pub protocol: Protocol,
    /// The header `x-simulator-session`; empty where there is none.
    pub session: String,
    /// The body as it came, if [`crate::Config::keep_bodies`] says so.
    pub body: Option<Vec<u8>>,
    /// The `model` asked for.
    pub model: String,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// Whether a key was sent. Its value is never kept.
    pub key_seen: bool,
    /// Whether the request asked for a summary.
    pub summary: bool,
    /// Bytes of the body.
    pub bytes: u64,
    /// Of the prompt's pieces (messages, blocks, tools, system), the bytes from the first one on that no earlier
    /// request of the same model began with. Measures prefix stability, whatever the provider's cache rules.
    pub uncached_bytes: u64,
    /// Messages or items in the conversation.
    pub items: u64,
    /// Tools offered.
    pub tools: u64,
    /// `max_tokens` and its sisters.
    pub max_output: Option<u64>,
    /// The true tokens of the prompt, whatever the usage said.
    pub prompt_tokens: u64,
    /// Tokens that were read: fewer when the prompt was truncated.
    pub read_tokens: u64,
    /// Of these, tokens that came from the prompt cache.
    pub cached_tokens: u64,
    /// Of these, tokens written to the prompt cache (Messages).
    pub cache_written_tokens: u64,
    /// Tokens of the answer, reasoning included; 0 for a refusal.
    pub output_tokens: u64,
    /// Of these, tokens of reasoning.
    pub reasoning_tokens: u64,
    /// The window in force.
    pub window: u64,
    /// Status of the answer. 0 where the connection ended before there was one.
    pub status: u16,
    /// What came of it.
    pub verdict: Verdict,
    /// The misbehaviour that was played, by [`crate::Fault::name`].
    pub fault: Option<&'static str>,
    /// Why the model stopped, in words common to the protocols.
    pub stop: Option<Stop>,
    /// The calls of the answer.
    pub calls: Vec<Call>,
    /// The text of the answer.
    pub text: String,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Answered by the model, even if a misbehaviour then spoiled the answer on its way.
    Answered,
    /// Refused, with the words that were sent.
    Refused(Reason, String),
    /// A misbehaviour stood in place of any answer.
    Faulted,
}

impl Verdict {
    /// The reason, if it is a refusal.
    #[must_use]
    pub const fn refused(&self) -> Option<Reason> {
        match self {
            Self::Refused(reason, _) => Some(*reason),
            Self::Answered | Self::Faulted => None,
        }
    }
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It was done.
    End,
    /// It calls tools.
    Calls,
    /// The output limit.
    Length,
    /// The window (silent truncation that says so).
    Window,
    /// It declined.
    Refusal,
}

/// A call the model made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, as JSON.
    pub arguments: String,
}

/// Sums over the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// POST requests.
    pub requests: u64,
    /// Answered ones, those of summaries included.
    pub answered: u64,
    /// Refused for their length.
    pub overflows: u64,
    /// Refused for anything else.
    pub refusals: u64,
    /// Requests with a misbehaviour.
    pub faults: u64,
    /// Requests for a summary.
    pub summaries: u64,
    /// Requests to the models listing.
    pub listings: u64,
    /// Requests without a key, or with a wrong one, listings included.
    pub unauthorized: u64,
    /// Prompt tokens of answered requests, as read.
    pub prompt_tokens: u64,
    /// Of these, from the prompt cache.
    pub cached_tokens: u64,
    /// Tokens of answers.
    pub output_tokens: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Bytes of prompts that no earlier request began with.
    pub uncached_bytes: u64,
    /// Calls of the recall tool made.
    pub recalls: u64,
}
