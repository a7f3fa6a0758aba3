//! Anthropic Messages.

use async_trait::async_trait;
use serde_json::Value;

use super::anthropic_answer::AnthropicAnswer;
use super::call::{self, Protocol};
use super::client::{Dialect, Http};
use super::endpoint::Version;
use super::frame::{Frame, Stretches, json_text};
use super::listing;
use super::options::{CacheMarks, HttpOptions, SetupError};
use super::quirks::{Quirks, Sent};
use crate::formats::{Format, WireView};
use crate::provider::{ModelReply, ModelRequest, OnDelta, Provider, ProviderError};

/// How long the endpoint keeps what is cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheTtl {
    /// Five minutes from the last use. Writing costs 1.25 times the input.
    #[default]
    FiveMinutes,
    /// One hour. Writing costs twice the input: for agents that wait for people.
    OneHour,
}

/// An endpoint that speaks Anthropic Messages.
///
/// ```
/// use foreshorten::provider::Provider;
/// use foreshorten::provider::http::{AnthropicMessages, HttpOptions};
/// let provider = AnthropicMessages::new(HttpOptions::new().base_url("http://127.0.0.1:1").key("sk-ant-…"))?
///     .max_tokens(32_000)
///     .beta("context-1m-2025-08-07")?;
/// assert_eq!(provider.endpoint(), "http://127.0.0.1:1/v1");
/// # Ok::<(), foreshorten::provider::http::SetupError>(())
/// ```
#[derive(Debug)]
pub struct AnthropicMessages {
    http: Http,
    max_tokens: u64,
    ttl: CacheTtl,
    betas: Vec<String>,
}

/// The protocol's version that is spoken (<https://docs.anthropic.com/en/api/versioning>).
const VERSION: &str = "2023-06-01";
/// Breakpoints that one request may have.
const MOST_MARKS: usize = 4;

impl AnthropicMessages {
    /// An endpoint reached so. Default address: `https://api.anthropic.com`.
    ///
    /// # Errors
    /// When the address or a header is none, or the machine has no root certificates for `https`.
    pub fn new(options: HttpOptions) -> Result<Self, SetupError> {
        let dialect = Dialect {
            base_url: "https://api.anthropic.com",
            path: "messages",
            version: Version::Always,
            key_header: Some("x-api-key"),
        };
        let mut http = Http::new(options, dialect)?;
        http.default_header("anthropic-version", VERSION)?;
        Ok(Self { http, max_tokens: 8_192, ttl: CacheTtl::default(), betas: Vec::new() })
    }

    /// The endpoint that the environment names: [`HttpOptions::from_anthropic_env`].
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_env() -> Result<Self, SetupError> {
        Self::new(HttpOptions::from_anthropic_env())
    }

    /// Most tokens of an answer when the request does not say: this protocol needs a number. Default 8,192, the most
    /// that every model since Claude 3.5 allows (the vendor's overview of models).
    #[must_use]
    pub const fn max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = tokens;
        self
    }

    /// How long cached prefixes are kept. Default five minutes.
    #[must_use]
    pub const fn cache_ttl(mut self, ttl: CacheTtl) -> Self {
        self.ttl = ttl;
        self
    }

    /// Another `anthropic-version`. Default `2023-06-01`, the only one since.
    ///
    /// # Errors
    /// When it cannot be a header's value.
    pub fn version(mut self, version: &str) -> Result<Self, SetupError> {
        self.http.set_header("anthropic-version", version)?;
        Ok(self)
    }

    /// One more name for `anthropic-beta`.
    ///
    /// # Errors
    /// When it cannot be a header's value.
    pub fn beta(mut self, name: &str) -> Result<Self, SetupError> {
        self.betas.push(name.to_owned());
        self.http.set_header("anthropic-beta", &self.betas.join(","))?;
        Ok(self)
    }

    fn mark(&self) -> &'static str {
        match self.ttl {
            CacheTtl::FiveMinutes => r#"{"type":"ephemeral"}"#,
            CacheTtl::OneHour => r#"{"type":"ephemeral","ttl":"1h"}"#,
        }
    }

    fn system(&self, wire: &WireView, marked: bool) -> Option<String> {
        let texts: Vec<&String> = wire.system.iter().filter(|text| !text.trim().is_empty()).collect();
        let block = |(at, text): (usize, &&String)| {
            let mark = match marked && at + 1 == texts.len() {
                true => format!(r#","cache_control":{}"#, self.mark()),
                false => String::new(),
            };
            format!(r#"{{"type":"text","text":{}{mark}}}"#, json_text(text))
        };
        let blocks: Vec<String> = texts.iter().enumerate().map(block).collect();
        (!blocks.is_empty()).then(|| format!("[{}]", blocks.join(",")))
    }

    fn tools(&self, request: &ModelRequest<'_>, marked: bool) -> Option<String> {
        let tool = |(at, tool): (usize, &crate::tool::ToolSpec)| {
            let json = tool.to_json(Format::AnthropicMessages).to_string();
            match json.strip_suffix('}') {
                Some(open) if marked && at + 1 == request.tools.len() => {
                    format!(r#"{open},"cache_control":{}}}"#, self.mark())
                }
                _ => json,
            }
        };
        let tools: Vec<String> = request.tools.iter().enumerate().map(tool).collect();
        (!tools.is_empty()).then(|| format!("[{}]", tools.join(",")))
    }
}

impl Protocol for AnthropicMessages {
    const FORMAT: Format = Format::AnthropicMessages;
    const VENDOR: &'static str = "anthropic";
    type Answer = AnthropicAnswer;

    fn request(&self, request: &ModelRequest<'_>, wire: &WireView, quirks: Quirks) -> (String, Sent) {
        let (settings, options) = (request.settings, &self.http.options);
        let mut sent = Sent::default();
        let wanted = options.cache_marks != CacheMarks::Off && !quirks.no_marks;
        let in_extra: usize = settings.extra.iter().map(|(name, value)| marks_in(name, value)).sum();
        let own = in_extra + wire.own_marks();
        let mut room = if wanted { MOST_MARKS.saturating_sub(own) } else { 0 };
        // The end of the view is what the next turn reads; what the last pass left outlives it; the head outlives both.
        // A fourth costs nothing: it stands where the call before wrote, for turns longer than the 20 blocks that the
        // endpoint looks back.
        let last = wire.starts.len().checked_sub(1);
        let mut places: Vec<usize> = [last, wire.settled_message(request.view)].into_iter().flatten().collect();
        places.dedup();
        let marked_head = room > places.len();
        places.extend(wire.answered_message());
        let theirs = |name: &str| settings.extra.contains_key(name);
        let system = self.system(wire, marked_head).filter(|_| !theirs("system"));
        let tools = self.tools(request, marked_head && system.is_none()).filter(|_| !theirs("tools"));
        sent.marks = marked_head && (system.is_some() || tools.is_some());
        room -= usize::from(sent.marks);

        let mut frame = Frame::default();
        frame.text("model", request.model);
        frame.put("max_tokens", settings.max_tokens.unwrap_or(self.max_tokens).to_string());
        if let Some(degree) = settings.temperature.filter(|degree| degree.is_finite() && !quirks.no_temperature) {
            frame.put("temperature", degree.to_string());
            sent.temperature = true;
        }
        frame.put("stream", options.stream.to_string());
        tools.into_iter().for_each(|tools| frame.put("tools", tools));
        system.into_iter().for_each(|system| frame.put("system", system));
        frame.extra(&settings.extra, "messages");
        if request.forbid_tools && frame.has("tools") {
            frame.put("tool_choice", r#"{"type":"none"}"#);
        }
        let (list, placed) = wire.marked(Format::AnthropicMessages, self.mark(), &places, room);
        sent.marks |= placed;
        let mut list = Stretches(list);
        if let Some(text) = request.instruction {
            list.append(&format!(r#"{{"role":"user","content":{}}}"#, json_text(text)));
        }
        (frame.body("messages", &list), sent)
    }
}

/// The caller's own breakpoints in a member of the request.
fn marks_in(name: &str, value: &Value) -> usize {
    let here = usize::from(name == "cache_control" && !value.is_null());
    here + match value {
        Value::Array(list) => list.iter().map(|value| marks_in("", value)).sum(),
        Value::Object(members) if here == 0 => members.iter().map(|(name, value)| marks_in(name, value)).sum(),
        _ => 0,
    }
}

#[async_trait]
impl Provider for AnthropicMessages {
    fn endpoint(&self) -> &str {
        self.http.endpoint.shown()
    }

    fn format(&self) -> Option<Format> {
        Some(Format::AnthropicMessages)
    }

    async fn complete(&self, request: &ModelRequest<'_>, on_delta: &OnDelta<'_>) -> Result<ModelReply, ProviderError> {
        call::complete(&self.http, self, request, on_delta).await
    }

    async fn listed_window(&self, model: &str) -> Result<Option<u64>, ProviderError> {
        listing::window(&self.http, model).await
    }
}
