//! What a model can call.
//!
//! ```
//! use foreshorten::tool::{Tool, ToolCall, ToolOutput, ToolSpec};
//!
//! struct Clock;
//!
//! #[async_trait::async_trait]
//! impl Tool for Clock {
//!     fn spec(&self) -> ToolSpec {
//!         ToolSpec::new("clock", "Says what time it is.", serde_json::json!({"type": "object", "properties": {}}))
//!     }
//!
//!     async fn call(&self, _call: ToolCall<'_>) -> ToolOutput {
//!         ToolOutput::text(format!("{:?}", std::time::SystemTime::now()))
//!     }
//! }
//! ```

mod limit;
mod recall;

pub use limit::{LimitedTool, MAX_OUTPUT_CHARS, limit_output};
pub use recall::{RecallTool, make_recall_tool};

use std::sync::Arc;

use async_trait::async_trait;
use foreshorten_core::transcript::{Entry, EntryKind, Part};

use crate::formats::Format;
use crate::record::Record;

/// Name, description and parameters of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// The name by which it is called.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON schema of its arguments.
    pub parameters: serde_json::Value,
}

impl ToolSpec {
    /// A tool.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: serde_json::Value) -> Self {
        Self { name: name.into(), description: description.into(), parameters }
    }

    /// The element of the request's tool list in a protocol.
    #[must_use]
    pub fn to_json(&self, format: Format) -> serde_json::Value {
        use serde_json::json;
        let (name, description, parameters) = (&self.name, &self.description, &self.parameters);
        match format {
            Format::AnthropicMessages => {
                json!({"name": name, "description": description, "input_schema": parameters})
            }
            Format::OpenAiResponses => {
                json!({"type": "function", "name": name, "description": description, "parameters": parameters, "strict": false})
            }
            _ => json!({
                "type": "function",
                "function": {"name": name, "description": description, "parameters": parameters},
            }),
        }
    }
}

/// A call, as the model made it, and where it was made.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ToolCall<'a> {
    /// Its id.
    pub call_id: &'a str,
    /// The arguments, as the model wrote them: a JSON object, if it kept to the schema.
    pub arguments: &'a str,
    /// The session.
    pub session: &'a str,
    /// The record as it stood when the call was made.
    pub record: &'a Record,
    /// The decisions about it, encoded as the policy keeps them; empty when there are none.
    pub state: &'a [u8],
}

impl<'a> ToolCall<'a> {
    /// A call outside of any session.
    #[must_use]
    pub const fn new(call_id: &'a str, arguments: &'a str, record: &'a Record) -> Self {
        Self { call_id, arguments, session: "", record, state: &[] }
    }

    /// The same call within a session, beside the decisions about its record.
    #[must_use]
    pub const fn within(mut self, session: &'a str, state: &'a [u8]) -> Self {
        (self.session, self.state) = (session, state);
        self
    }
}

/// What a tool gives back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// Text, images, files.
    pub parts: Vec<Part>,
    /// It failed.
    pub is_error: bool,
}

impl ToolOutput {
    /// A text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::Text(text.into())], is_error: false }
    }

    /// A failure, told in words.
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// The result as an entry of the record.
    #[must_use]
    pub fn into_entry(self, call_id: &str) -> Entry {
        Entry {
            parts: self.parts,
            is_error: self.is_error,
            call_id: call_id.into(),
            ..Entry::text(EntryKind::ToolResult, "")
        }
    }
}

/// A tool. Calls of one batch run side by side.
///
/// The future may be dropped at any await, when the run is cancelled.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Name, description, parameters. Asked once per run; it should not change within a session, because the list of
    /// tools stands at the beginning of every prompt.
    fn spec(&self) -> ToolSpec;

    /// Carries out a call. What goes wrong is told to the model in the output.
    async fn call(&self, call: ToolCall<'_>) -> ToolOutput;
}

/// Tools, shared between runs.
pub type Tools = Vec<Arc<dyn Tool>>;
