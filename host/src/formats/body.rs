//! Request bodies.

use std::sync::Arc;

use super::error::FormatError;
use super::json::{Json, Span};
use super::parsed::Parsed;
use super::wire::{Builder, WireTranscript};
use super::{Format, anthropic, chat, detect, parts, responses};

/// A request body (an object), or a bare list of messages or items, with everything that is not the conversation
/// kept as it came.
#[derive(Clone, Debug)]
pub struct Body {
    pub(crate) format: Format,
    pub(crate) transcript: WireTranscript,
    pub(crate) root: Span,
    /// The list (or, in Responses, the one string) that holds the conversation; none when a partial body has none.
    pub(crate) conversation: Span,
    reason: String,
    tools: Vec<Span>,
    model: Option<String>,
    max_tokens: Option<u64>,
    partial: Option<String>,
}

impl Body {
    /// The protocol.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// How the protocol was recognised: "looks like … because …".
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The conversation.
    #[must_use]
    pub const fn transcript(&self) -> &WireTranscript {
        &self.transcript
    }

    /// The raw schemas of the tools the request offers.
    #[must_use]
    pub fn tools(&self) -> Vec<&str> {
        self.tools.iter().map(|tool| tool.of(self.transcript.source())).collect()
    }

    /// The model asked for.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// The largest answer the request allows, in tokens.
    #[must_use]
    pub const fn max_tokens(&self) -> Option<u64> {
        self.max_tokens
    }

    /// Why the body is only the end of a conversation whose start the server holds. Such a body must be sent on
    /// untouched ([`bytes`](Self::bytes)).
    #[must_use]
    pub fn partial(&self) -> Option<&str> {
        self.partial.as_deref()
    }

    /// The body as it came.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.transcript.source().as_bytes()
    }

    /// Reads what stands around the conversation, and finds it.
    fn head<'a>(&mut self, b: &mut Builder, root: Json<'a>) -> Option<Json<'a>> {
        let [messages, input, tools, functions, model, system, instructions] =
            root.fields(["messages", "input", "tools", "functions", "model", "system", "instructions"]);
        let tools = tools.filter(|tools| tools.is_array()).or(functions);
        self.tools = tools.map(|tools| tools.items().map(Json::span).collect()).unwrap_or_default();
        self.model = model.and_then(|model| model.string()).map(std::borrow::Cow::into_owned);
        let limits = root.fields(["max_completion_tokens", "max_output_tokens", "max_tokens"]);
        self.max_tokens = limits.into_iter().flatten().find_map(|limit| limit.integer());
        self.partial = continues(root);
        let (conversation, prompt) = match self.format {
            Format::OpenAiResponses => (input, instructions),
            Format::AnthropicMessages => (messages, system),
            _ => (messages, None),
        };
        if let Some(prompt) = prompt.filter(|prompt| !prompt.is_null() && !prompt.is("")) {
            b.outside();
            b.entry(foreshorten_core::transcript::EntryKind::System);
            parts::content(b, prompt.value);
        }
        conversation.map(|conversation| conversation.value)
    }

    /// Whether [`write`](Self::write) appends a tool of this name: the body has a place for tools and none is called so.
    #[must_use]
    pub fn takes_tool(&self, name: &str) -> bool {
        self.tools_edit(super::ToolsEdit::Append { name, schema: "{}" }).is_some()
    }

    /// Whether the body is a bare list, which has no place for tools.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.conversation == self.root
    }
}

/// Input text that is known to be UTF-8 and within size.
pub(crate) fn text_of(bytes: Vec<u8>) -> Result<Arc<String>, FormatError> {
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        return Err(FormatError::at(&bytes, 0, "UTF-8 text", "a UTF-16 byte order mark"));
    }
    if u32::try_from(bytes.len()).is_err() {
        return Err(FormatError::at(&[], 0, "at most 4 GiB", format!("{} bytes", bytes.len())));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Arc::new(text)),
        Err(error) => {
            let offset = error.utf8_error().valid_up_to();
            let found = format!("byte 0x{:02x}", error.as_bytes()[offset]);
            Err(FormatError::at(error.as_bytes(), offset, "UTF-8 text", found))
        }
    }
}

/// Reads a request body, or a bare list of messages or items.
///
/// Without a `format` the protocol is recognised by its shape; what fits more than one is read as chat.
///
/// # Errors
/// When the bytes are no JSON, no request, or not what `format` asks for.
pub fn parse_body(bytes: Vec<u8>, format: Option<Format>) -> Result<Body, FormatError> {
    let text = text_of(bytes)?;
    let parsed = Parsed::document(&text)?;
    let (mut body, b) = begin(&text, parsed.root(), format)?;
    body.transcript = b.finish();
    if body.partial.is_none() && refers(&body) {
        body.partial = Some("item_reference: items the server holds".into());
    }
    Ok(body)
}

/// The body that `root` is, with its conversation still in the builder.
pub(crate) fn begin(
    text: &Arc<String>,
    root: Json<'_>,
    format: Option<Format>,
) -> Result<(Body, Builder), FormatError> {
    let format = format.filter(|format| *format != Format::Jsonl);
    if let Some(format) = format.filter(|format| !format.is_protocol()) {
        let protocols = "a request body of openai-chat, openai-responses or anthropic-messages";
        return Err(FormatError::at(text.as_bytes(), root.start(), protocols, format!("the format {format}")));
    }
    let (format, reason) = match format {
        Some(format) => (format, format!("read as {format} because it was asked for")),
        None => detect::protocol(root)?,
    };
    let mut b = Builder::new(text);
    let mut body = Body {
        format,
        transcript: Builder::new(text).finish(),
        root: root.span(),
        conversation: Span::NONE,
        reason,
        tools: Vec::new(),
        model: None,
        max_tokens: None,
        partial: None,
    };
    let conversation = if root.is_object() { body.head(&mut b, root) } else { Some(root) };
    let name = if format == Format::OpenAiResponses { "input" } else { "messages" };
    match conversation {
        Some(list) if list.is_array() => {
            for message in list.items() {
                read_message(&mut b, format, message)?;
            }
            body.conversation = list.span();
        }
        Some(said) if said.is_string() && format == Format::OpenAiResponses && root.is_object() => {
            b.unit(said.span());
            b.entry(foreshorten_core::transcript::EntryKind::User);
            b.text(said, Span::NONE);
            body.conversation = said.span();
        }
        Some(other) if !other.is_null() => {
            let expected =
                if root.is_object() { format!("a list as `{name}`") } else { "a request body or a list".into() };
            return Err(FormatError::here(text.as_bytes(), other.start(), expected));
        }
        _ if body.partial.is_some() => {}
        _ => {
            let expected = format!("`{name}` with the conversation");
            return Err(FormatError::at(text.as_bytes(), root.start(), expected, "a body without it"));
        }
    }
    Ok((body, b))
}

/// Reads one message or item of a protocol.
pub(crate) fn read_message(b: &mut Builder, format: Format, message: Json<'_>) -> Result<(), FormatError> {
    match format {
        Format::OpenAiResponses => responses::item(b, message),
        Format::AnthropicMessages => anthropic::message(b, message),
        _ => chat::message(b, message),
    }
}

/// Whether the request continues state that the server holds.
fn continues(root: Json<'_>) -> Option<String> {
    let [previous, conversation, thread] = root.fields(["previous_response_id", "conversation", "thread"]);
    if previous.is_some_and(|id| !id.is_null()) {
        return Some("previous_response_id: the server holds what came before".into());
    }
    if conversation.is_some_and(|id| !id.is_null()) {
        return Some("conversation: the server holds the conversation".into());
    }
    // A thread that is only being created comes with its whole history.
    let thread = thread.filter(|thread| !thread.is_null() && !thread.get("type").is_some_and(|kind| kind.is("create")));
    thread.map(|_| "thread: the server holds what came before".into())
}

/// Whether items are only named, not given.
fn refers(body: &Body) -> bool {
    let source = body.transcript.source();
    body.format == Format::OpenAiResponses
        && body.transcript.units.iter().any(|unit| {
            unit.of(source).contains("item_reference")
                && Json::spanning(source, *unit).get("type").is_some_and(|kind| kind.is("item_reference"))
        })
}
