//! Wire formats: other people's JSON in, the same bytes out.
//!
//! Every format is read into a [`WireTranscript`], which lends entries to the core and keeps the raw JSON they came
//! from. Of a request ([`parse_body`]) a view is written by copying the bytes of every message that is whole, and
//! by changing inside the others only the values that a decision changed ([`Body::write`]). What was not decided on
//! is therefore sent exactly as it came: unknown fields, signatures, key order, number formats, white space.
//!
//! ```
//! use foreshorten::formats::{ToolsEdit, parse_body};
//! use foreshorten_core::transcript::Transcript;
//! use foreshorten_core::view::Piece;
//!
//! let request = br#"{"messages": [{"role": "user", "content": "hi", "x": 1.50}]}"#.to_vec();
//! let body = parse_body(request, None)?;
//! let pieces: Vec<_> = (0..body.transcript().len()).map(|entry| Piece::Entry { entry }).collect();
//! assert_eq!(body.write(&pieces, ToolsEdit::Keep).bytes, body.bytes());
//! # Ok::<(), foreshorten::formats::FormatError>(())
//! ```
//!
//! Recorded sessions of eight kinds are read by [`read_session`]; [`detect`] says which kind a file is, and why.

mod anthropic;
mod body;
mod capture;
mod chat;
mod claude_code;
mod codex;
mod compose;
mod detect;
mod edit;
mod error;
mod escape;
mod gemini;
mod json;
mod made;
mod marks;
mod openhands;
mod outgoing;
mod parsed;
mod parts;
mod responses;
mod scan;
mod session;
mod swe_agent;
mod wire;
mod write;
mod written;

use std::fmt;
use std::str::FromStr;

pub use body::{Body, parse_body};
pub use detect::{Detected, detect};
pub use error::FormatError;
pub use made::recall_tool_schema;
pub use marks::{count_cache_marks, place_cache_marks};
pub(crate) use outgoing::Outgoing;
pub use parts::decode_media;
pub use session::{Conversation, read_session};
pub use wire::WireTranscript;
pub use write::{ToolsEdit, Written};
pub use written::{WireList, WireView};

/// A kind of file or request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// OpenAI Chat Completions messages.
    OpenAiChat,
    /// OpenAI Responses items.
    OpenAiResponses,
    /// Anthropic Messages.
    AnthropicMessages,
    /// A Claude Code session (JSONL).
    ClaudeCode,
    /// A Codex rollout (JSONL).
    Codex,
    /// A Gemini CLI chat.
    GeminiCli,
    /// A SWE-agent trajectory.
    SweAgent,
    /// OpenHands events.
    OpenHands,
    /// Messages, items or requests of one of the first three, one a line. A container: what is read names the
    /// protocol it found inside.
    Jsonl,
}

impl Format {
    /// All formats, in the order in which they are listed to people.
    pub const ALL: [Self; 9] = [
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::AnthropicMessages,
        Self::ClaudeCode,
        Self::Codex,
        Self::GeminiCli,
        Self::SweAgent,
        Self::OpenHands,
        Self::Jsonl,
    ];

    /// The name by which the format is chosen and shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::AnthropicMessages => "anthropic-messages",
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::SweAgent => "swe-agent",
            Self::OpenHands => "openhands",
            Self::Jsonl => "jsonl",
        }
    }

    /// Whether request bodies are read and written in this format.
    #[must_use]
    pub const fn is_protocol(self) -> bool {
        matches!(self, Self::OpenAiChat | Self::OpenAiResponses | Self::AnthropicMessages)
    }

    /// The names of all formats, for messages to people.
    pub(crate) fn list() -> String {
        let names: Vec<_> = Self::ALL.iter().map(|format| format.name()).collect();
        names.join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == name)
            .ok_or_else(|| format!("`{name}` is no format; there are: {}", Self::list()))
    }
}
