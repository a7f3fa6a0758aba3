//! What went wrong with a call, as far as the caller can act on it.

use std::fmt;
use std::time::Duration;

use foreshorten_core::overflow::{ErrorClass, explain};

/// A prompt that the endpoint turned down for its size.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejection {
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// The window or input limit that the endpoint named.
    pub window: Option<u64>,
    /// The limit is on the input alone: no reserve need be subtracted from it again.
    pub input_limit: bool,
    /// Prompt and requested output together were too much; the prompt alone may fit.
    pub with_output: bool,
    /// There was no text to judge: it is an overflow only if the prompt was near the window.
    pub uncertain: bool,
    /// What the endpoint said, shortened.
    pub message: String,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderError {
    /// The prompt is too long: the one error that a smaller view answers.
    Overflow(Rejection),
    /// Too many requests or tokens for now, after all retries.
    RateLimited {
        /// How long the endpoint asks to wait.
        retry_after: Option<Duration>,
        /// What it said, shortened.
        message: String,
    },
    /// The key is missing, wrong, or may not use this model.
    Denied {
        /// The HTTP status.
        status: u16,
        /// What it said, shortened.
        message: String,
    },
    /// The endpoint turned the request down for another reason than its size. The same request will fail again.
    Invalid {
        /// The HTTP status.
        status: Option<u16>,
        /// What it said, shortened.
        message: String,
    },
    /// The endpoint failed or is overloaded, after all retries.
    Unavailable {
        /// The HTTP status.
        status: Option<u16>,
        /// What it said, shortened.
        message: String,
    },
    /// No answer in time, after all retries.
    TimedOut(Duration),
    /// No connection, or it broke, after all retries.
    Connection(String),
    /// The answer is not what the protocol says: cut off, or no JSON.
    Garbled(String),
}

/// Longest text of an endpoint that is kept, in bytes.
const MOST_KEPT: usize = 2_000;

impl ProviderError {
    /// The error that an HTTP status and body (or, without a status, an error event inside a stream) mean.
    ///
    /// ```
    /// use foreshorten::provider::ProviderError;
    /// let body = r#"{"error":{"message":"This model's maximum context length is 8192 tokens."}}"#;
    /// let ProviderError::Overflow(rejection) = ProviderError::from_answer(Some(400), body) else { panic!() };
    /// assert_eq!(rejection.window, Some(8_192));
    /// ```
    #[must_use]
    pub fn from_answer(status: Option<u16>, body: &str) -> Self {
        let found = explain(status, body);
        let message = shortened(body);
        match (found.class, status) {
            (ErrorClass::Overflow | ErrorClass::PromptPlusOutput, _) => Self::Overflow(Rejection {
                status,
                window: found.window,
                input_limit: found.input_limit,
                with_output: found.class == ErrorClass::PromptPlusOutput,
                uncertain: found.body_missing,
                message,
            }),
            (ErrorClass::Rate, _) | (_, Some(429)) => Self::RateLimited { retry_after: None, message },
            (_, Some(status @ (401 | 403))) => Self::Denied { status, message },
            (_, Some(408 | 409 | 425 | 500..=599)) => Self::Unavailable { status, message },
            (_, None) if overloaded(body) => Self::Unavailable { status, message },
            _ => Self::Invalid { status, message },
        }
    }

    /// Whether the same request may be answered a little later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. }
                | Self::Unavailable { .. }
                | Self::TimedOut(_)
                | Self::Connection(_)
                | Self::Garbled(_)
        )
    }
}

/// Error events inside a stream carry a type in place of a status.
fn overloaded(body: &str) -> bool {
    ["overloaded", "api_error", "server_error", "internal", "unavailable", "timeout"]
        .iter()
        .any(|word| body.contains(word))
}

/// The beginning of what an endpoint said, on one line.
pub(crate) fn shortened(text: &str) -> String {
    let cut = foreshorten_core::text::floor_boundary(text, MOST_KEPT);
    text[..cut].split_whitespace().collect::<Vec<_>>().join(" ")
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = |status: &Option<u16>| status.map_or_else(String::new, |status| format!(" ({status})"));
        match self {
            Self::Overflow(rejection) => {
                write!(f, "the prompt is too long{}: {}", status(&rejection.status), rejection.message)
            }
            Self::RateLimited { message, .. } => write!(f, "the rate limit is reached: {message}"),
            Self::Denied { status, message } => write!(f, "access was denied ({status}): {message}"),
            Self::Invalid { status: code, message } => {
                write!(f, "the request was turned down{}: {message}", status(code))
            }
            Self::Unavailable { status: code, message } => {
                write!(f, "the endpoint failed{}: {message}", status(code))
            }
            Self::TimedOut(after) => write!(f, "no answer within {after:?}"),
            Self::Connection(why) => write!(f, "the connection failed: {why}"),
            Self::Garbled(why) => write!(f, "the answer cannot be read: {why}"),
        }
    }
}

impl std::error::Error for ProviderError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_what_its_text_says_and_else_what_its_status_says() {
        let class = |status, body| match ProviderError::from_answer(status, body) {
            ProviderError::Overflow(_) => "overflow",
            ProviderError::RateLimited { .. } => "rate",
            ProviderError::Denied { .. } => "denied",
            ProviderError::Invalid { .. } => "invalid",
            ProviderError::Unavailable { .. } => "unavailable",
            _ => "other",
        };
        assert_eq!(class(Some(400), "prompt is too long: 214315 tokens > 204798 maximum"), "overflow");
        assert_eq!(class(Some(413), "Request too large on tokens per minute (TPM): Limit 8100"), "rate");
        assert_eq!(class(Some(401), "invalid x-api-key"), "denied");
        assert_eq!(class(Some(400), "messages: roles must alternate"), "invalid");
        assert_eq!(class(Some(529), r#"{"type":"overloaded_error"}"#), "unavailable");
        assert_eq!(class(None, r#"{"type":"error","error":{"type":"overloaded_error"}}"#), "unavailable");
    }
}
