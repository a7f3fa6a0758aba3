//! Who answers: one model call against one endpoint.
//!
//! A [`Provider`] gets a [`ModelRequest`] (a record, the view of it to send, tools, settings) and gives back messages to
//! append to the record, with what was counted. The adapters for the three wire protocols are behind the feature `http`;
//! any other client is a few lines:
//!
//! ```
//! use foreshorten::provider::{Delta, FinishReason, ModelReply, ModelRequest, OnDelta, Provider, ProviderError};
//! use foreshorten::record::Message;
//! use foreshorten_core::transcript::Entry;
//!
//! /// Says what it was told last.
//! struct Echo;
//!
//! #[async_trait::async_trait]
//! impl Provider for Echo {
//!     fn endpoint(&self) -> &str {
//!         "echo"
//!     }
//!
//!     async fn complete(
//!         &self,
//!         request: &ModelRequest<'_>,
//!         on_delta: &OnDelta<'_>,
//!     ) -> Result<ModelReply, ProviderError> {
//!         let said = request.view.entries(request.record).pop();
//!         let text = format!("{:?}", said.map(|entry| entry.parts));
//!         on_delta(Delta::Text(&text));
//!         Ok(ModelReply::new(vec![Message::of(vec![Entry::assistant(text)])], FinishReason::Stop))
//!     }
//! }
//! ```

mod error;
#[cfg(feature = "http")]
pub mod http;

pub use error::{ProviderError, Rejection};

use std::sync::Arc;

use async_trait::async_trait;
use foreshorten_core::estimate::TokenEstimator;
use serde::{Deserialize, Serialize};

use crate::formats::Format;
use crate::record::{Message, Record};
use crate::tool::ToolSpec;
use crate::view::View;

/// What a call is for: providers and simulators treat them alike, usage is counted apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Purpose {
    /// A turn of the conversation.
    #[default]
    Turn,
    /// A summary for the context policy.
    Summary,
}

/// Settings of a call that are not the conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Most tokens the answer may have. `None`: the provider's own default (Anthropic needs one: the adapter's).
    pub max_tokens: Option<u64>,
    /// Sampling temperature. Left out for models that refuse it.
    pub temperature: Option<f32>,
    /// Further members of the request body, as they are to be sent; they win over the adapter's own.
    pub extra: serde_json::Map<String, serde_json::Value>,
}

/// One model call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ModelRequest<'a> {
    /// The model asked for.
    pub model: &'a str,
    /// The record, for reading.
    pub record: &'a Record,
    /// What of it is sent.
    pub view: &'a View,
    /// A message after the view that is not in the record: the instruction of a summary call.
    pub instruction: Option<&'a str>,
    /// Tools offered.
    pub tools: &'a [ToolSpec],
    /// The model may not call tools, although they are listed (so that the prefix stays the same).
    pub forbid_tools: bool,
    /// Settings.
    pub settings: &'a Settings,
    /// What the call is for.
    pub purpose: Purpose,
}

impl<'a> ModelRequest<'a> {
    /// A turn: `view` of `record`, without tools.
    #[must_use]
    pub fn new(model: &'a str, record: &'a Record, view: &'a View, settings: &'a Settings) -> Self {
        Self {
            model,
            record,
            view,
            instruction: None,
            tools: &[],
            forbid_tools: false,
            settings,
            purpose: Purpose::Turn,
        }
    }

    /// The same request with tools.
    #[must_use]
    pub const fn with_tools(mut self, tools: &'a [ToolSpec]) -> Self {
        self.tools = tools;
        self
    }

    /// The same request for a summary, with the instruction that asks for it.
    #[must_use]
    pub const fn for_summary(mut self, instruction: Option<&'a str>) -> Self {
        self.instruction = instruction;
        self.forbid_tools = true;
        self.purpose = Purpose::Summary;
        self
    }
}

/// A piece of an answer while it comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta<'a> {
    /// Text of the answer.
    Text(&'a str),
    /// Readable reasoning.
    Reasoning(&'a str),
    /// A tool call begins: its name.
    ToolCall(&'a str),
    /// The answer broke off and is asked for again: what came so far is void.
    Restart,
}

/// Who is told of pieces while they come in.
pub type OnDelta<'a> = dyn Fn(Delta<'_>) + Send + Sync + 'a;

/// What a provider counted. What it does not say is `None` or 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the whole prompt, cached ones included: what fills the window.
    pub input_tokens: u64,
    /// Prompt tokens read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Prompt tokens written to it.
    pub cache_write_tokens: u64,
    /// Tokens of the answer, reasoning included.
    pub output_tokens: u64,
    /// Tokens of reasoning among them.
    pub reasoning_tokens: u64,
}

impl Usage {
    /// Prompt and answer together: what is billed for. Never compare it with a window; that is
    /// [`input_tokens`](Self::input_tokens).
    #[must_use]
    pub const fn total_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(other.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(other.reasoning_tokens);
    }
}

/// Why a model stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// It was done.
    #[default]
    Stop,
    /// It wants tools.
    ToolCalls,
    /// The output limit of the request.
    Length,
    /// The context window was full while it wrote: the prompt left too little room, or was truncated.
    ContextWindow,
    /// A filter, or a refusal.
    Refused,
    /// The server paused a long turn; it goes on when the conversation is sent again.
    Paused,
    /// Another reason, in the provider's words.
    Other(String),
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelReply {
    /// Messages (Responses: items) to append to the record, raw where they came in one of the three protocols.
    pub messages: Vec<Message>,
    /// What was counted for exactly this request; `None` when nothing was said.
    pub usage: Option<Usage>,
    /// Why the model stopped.
    pub finish: FinishReason,
    /// The model that answered, where said.
    pub model: Option<String>,
    /// Tries that this answer took, rate limits and transient failures included.
    pub attempts: u32,
}

impl ModelReply {
    /// An answer of these messages.
    #[must_use]
    pub fn new(messages: Vec<Message>, finish: FinishReason) -> Self {
        Self { messages, finish, attempts: 1, ..Self::default() }
    }

    /// The same answer with what was counted.
    #[must_use]
    pub fn counted(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }
}

/// An endpoint that completes conversations.
#[async_trait]
pub trait Provider: Send + Sync {
    /// What tells this endpoint from others: its base URL. With the model it is the scope of what is learned. It is
    /// written to states and logs, so it must hold no secret.
    fn endpoint(&self) -> &str;

    /// The wire protocol whose raw messages it takes and gives, if it is one of the three.
    fn format(&self) -> Option<Format> {
        None
    }

    /// Makes one call. Transient failures are the provider's to retry, within bounds.
    ///
    /// # Errors
    /// What happened, classified; see [`ProviderError`]. An error means that nothing of the answer is kept.
    async fn complete(&self, request: &ModelRequest<'_>, on_delta: &OnDelta<'_>) -> Result<ModelReply, ProviderError>;

    /// The context window that the endpoint's listing names for `model`, in tokens: asked by the caller at most once
    /// in a while, with a time-out. `Ok(None)`: it answers, and names none.
    ///
    /// # Errors
    /// When it could not be asked.
    async fn listed_window(&self, model: &str) -> Result<Option<u64>, ProviderError> {
        let _ = model;
        Ok(None)
    }

    /// Counts text as this provider's tokenizer does, if it can.
    fn estimator(&self) -> Option<Arc<dyn TokenEstimator + Send + Sync>> {
        None
    }
}
