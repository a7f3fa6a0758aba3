//! Refusals: why, and in which shape a provider says so.

use serde_json::{Value, json};

use crate::config::Protocol;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        /// Why a request was refused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// A short name in snake case.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }
        }
    };
}

reasons! {
    /// The key is wrong or missing.
    BadKey = "bad_key",
    /// There is nothing at this path, or not with this method.
    NoSuchPath = "no_such_path",
    /// The body is no JSON object.
    InvalidJson = "invalid_json",
    /// The body is longer than allowed.
    BodyTooLarge = "body_too_large",
    /// No such model.
    UnknownModel = "unknown_model",
    /// A field that must be there is not.
    MissingField = "missing_field",
    /// A field has a value of the wrong type or out of range.
    BadField = "bad_field",
    /// A field or block field that does not exist (Messages).
    ExtraField = "extra_field",
    /// A feature of the real endpoint that is not simulated, such as `previous_response_id`.
    NotServed = "not_served",
    /// A parameter that this model does not take.
    UnsupportedParameter = "unsupported_parameter",
    /// `temperature` for a model that refuses it.
    Temperature = "temperature",
    /// No messages, or an empty list of them.
    NoMessages = "no_messages",
    /// A role that does not exist, or not there.
    WrongRole = "wrong_role",
    /// The conversation does not begin with a user's message (Messages).
    FirstNotUser = "first_not_user",
    /// The conversation ends where it cannot (Messages).
    WrongEnd = "wrong_end",
    /// A message without content.
    EmptyContent = "empty_content",
    /// A text without text.
    EmptyText = "empty_text",
    /// A block, part or item of a type that does not exist, or not there.
    UnknownType = "unknown_type",
    /// An id of the wrong form.
    BadId = "bad_id",
    /// One id for two calls.
    RepeatedId = "repeated_id",
    /// A call has no result.
    CallWithoutResult = "call_without_result",
    /// A result has no call.
    ResultWithoutCall = "result_without_call",
    /// Two results for one call.
    RepeatedResult = "repeated_result",
    /// Something stands between a call and its result.
    ResultNotAdjacent = "result_not_adjacent",
    /// Arguments of a call in the history are no JSON object.
    BadArguments = "bad_arguments",
    /// A thinking block that this server has not signed.
    BadSignature = "bad_signature",
    /// The thinking of the newest answer with calls is missing or not in its place.
    MissingThinking = "missing_thinking",
    /// The thinking of the newest answer is not what was sent out.
    ChangedThinking = "changed_thinking",
    /// An encrypted reasoning that this server has not sealed.
    BadEncryptedContent = "bad_encrypted_content",
    /// A reasoning item without the item that followed it.
    ReasoningWithoutItem = "reasoning_without_item",
    /// An item without the reasoning that preceded it.
    ItemWithoutReasoning = "item_without_reasoning",
    /// More than four cache marks.
    TooManyBreakpoints = "too_many_breakpoints",
    /// A cache mark where none may be.
    BadBreakpoint = "bad_breakpoint",
    /// Tools that are no tools.
    BadTools = "bad_tools",
    /// Calls or results in the history, and no tools offered.
    NoTools = "no_tools",
    /// The prompt, or prompt and output, are longer than the window.
    Overflow = "overflow",
    /// The output asked for is larger than the model's.
    OutputCap = "output_cap",
    /// A misbehaviour stood in the way.
    Fault = "fault",
}

/// A refusal, not yet in any protocol's shape.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    pub(crate) status: u16,
    pub(crate) message: String,
    /// OpenAI's `param`.
    pub(crate) param: Option<String>,
    /// OpenAI's `code`.
    pub(crate) code: Option<&'static str>,
    /// A body of its own, in place of the protocol's shape; `Some(None)` is no body at all.
    pub(crate) body: Option<Option<Value>>,
}

impl Refusal {
    /// A 400 with these words.
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, status: 400, message: message.into(), param: None, code: None, body: None }
    }

    /// The same about one parameter.
    pub(crate) fn of(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    pub(crate) const fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(crate) const fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    pub(crate) fn body(mut self, body: Option<Value>) -> Self {
        self.body = Some(body);
        self
    }

    /// What is sent; `None` for an empty body.
    pub(crate) fn to_json(&self, protocol: Protocol, request_id: &str) -> Option<Value> {
        match &self.body {
            Some(body) => body.clone(),
            None => Some(error(protocol, self.status, &self.message, self.param.as_deref(), self.code, request_id)),
        }
    }
}

/// An error object of the protocol.
pub(crate) fn error(
    protocol: Protocol,
    status: u16,
    message: &str,
    param: Option<&str>,
    code: Option<&str>,
    request_id: &str,
) -> Value {
    match protocol {
        Protocol::Messages => {
            let error = json!({"type": anthropic_type(status), "message": message});
            json!({"type": "error", "error": error, "request_id": request_id})
        }
        Protocol::Chat | Protocol::Responses => {
            json!({"error": {"message": message, "type": openai_type(status, code), "param": param, "code": code}})
        }
    }
}

pub(crate) const fn anthropic_type(status: u16) -> &'static str {
    match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        _ => "api_error",
    }
}

fn openai_type(status: u16, code: Option<&str>) -> &'static str {
    match (status, code) {
        (429, Some("insufficient_quota")) => "insufficient_quota",
        (429, Some("rate_limit_exceeded")) => "tokens",
        (429, _) => "requests",
        (500.., _) => "server_error",
        _ => "invalid_request_error",
    }
}
