//! Adapters for the three wire protocols over HTTP, with streaming. Behind the feature `http`.
//!
//! | adapter | protocol | path | key |
//! |---|---|---|---|
//! | [`OpenAiChat`] | Chat Completions, and the many servers that speak it | `/chat/completions` | `Authorization: Bearer` |
//! | [`OpenAiResponses`] | Responses, stateless | `/responses` | `Authorization: Bearer` |
//! | [`AnthropicMessages`] | Messages | `/messages` | `x-api-key` |
//!
//! What they have in common:
//!
//! - Messages recorded in the adapter's protocol are sent as the bytes they came as. What an answer brings is recorded
//!   the same way.
//! - Half an answer is none. A stream that ends without its last event is
//!   [`Garbled`](super::ProviderError::Garbled).
//! - Transient failures are tried again within the bounds of [`HttpOptions`]. If something of the answer had been
//!   passed on, [`Delta::Restart`](super::Delta::Restart) says that it is void.
//! - A model that refuses the temperature, the name of the output limit, or another optional member is asked once more
//!   without, and then without from the start.
//! - A key goes to the origin of the base URL only, and shows up in no error, no `Debug` and no trace.
//!
//! ```no_run
//! use foreshorten::provider::http::AnthropicMessages;
//! use foreshorten::provider::{ModelRequest, Provider, Settings};
//! use foreshorten::record::{Message, Record};
//! use foreshorten::view::View;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let provider = AnthropicMessages::from_env()?;
//! let mut record: Record = [Message::user("What is view-only compaction?")].into_iter().collect();
//! let (view, settings) = (View::of(&record), Settings::default());
//! let request = ModelRequest::new("claude-sonnet-4-5", &record, &view, &settings);
//! let reply = provider.complete(&request, &|_| {}).await?;
//! reply.messages.into_iter().for_each(|message| record.push(message));
//! # Ok(())
//! # }
//! ```

mod anthropic;
mod anthropic_answer;
mod call;
mod chat;
mod chat_answer;
mod client;
mod endpoint;
mod frame;
mod listing;
mod members;
mod merge;
mod options;
#[cfg(test)]
mod played;
mod quirks;
mod reading;
mod responses;
mod responses_answer;
mod retry;
mod secret;
mod trace;

pub use anthropic::{AnthropicMessages, CacheTtl};
pub use chat::{OpenAiChat, OutputLimit};
pub use options::{CacheMarks, HttpOptions, SetupError};
pub use responses::OpenAiResponses;
pub use secret::Secret;
