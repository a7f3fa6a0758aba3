//! OpenAI Chat Completions, and the servers that speak it.

use async_trait::async_trait;

use super::call::{self, Protocol};
use super::chat_answer::ChatAnswer;
use super::client::{Dialect, Http};
use super::endpoint::Version;
use super::frame::{Frame, Stretches, json_text};
use super::listing;
use super::options::{CacheMarks, HttpOptions, SetupError};
use super::quirks::{Quirks, Sent};
use crate::formats::{Format, WireView};
use crate::provider::{ModelReply, ModelRequest, OnDelta, Provider, ProviderError};

/// The name under which the output limit is sent in Chat Completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputLimit {
    /// `max_completion_tokens` at `api.openai.com` and for models that know no other, else `max_tokens`; the other one
    /// after a refusal that names it.
    #[default]
    Auto,
    /// `max_tokens`.
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

/// An endpoint that speaks OpenAI Chat Completions.
///
/// ```
/// use foreshorten::provider::Provider;
/// use foreshorten::provider::http::{HttpOptions, OpenAiChat};
/// let local = OpenAiChat::new(HttpOptions::new().base_url("http://127.0.0.1:11434"))?;
/// assert_eq!(local.endpoint(), "http://127.0.0.1:11434/v1");
/// # Ok::<(), foreshorten::provider::http::SetupError>(())
/// ```
#[derive(Debug)]
pub struct OpenAiChat {
    http: Http,
    limit: OutputLimit,
    cache_key: Option<String>,
}

/// Breakpoints that a request may have beside the implicit one.
pub(super) const EXPLICIT_MARKS: usize = 3;
pub(super) const OPENAI: &str = "https://api.openai.com/v1";

impl OpenAiChat {
    /// An endpoint reached so. Default address: `https://api.openai.com/v1`.
    ///
    /// # Errors
    /// When the address or a header is none, or the machine has no root certificates for `https`.
    pub fn new(options: HttpOptions) -> Result<Self, SetupError> {
        let dialect =
            Dialect { base_url: OPENAI, path: "chat/completions", version: Version::WhenBare, key_header: None };
        Ok(Self { http: Http::new(options, dialect)?, limit: OutputLimit::Auto, cache_key: None })
    }

    /// The endpoint that the environment names: [`HttpOptions::from_openai_env`].
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_env() -> Result<Self, SetupError> {
        Self::new(HttpOptions::from_openai_env())
    }

    /// The name under which the output limit is sent.
    #[must_use]
    pub const fn output_limit(mut self, limit: OutputLimit) -> Self {
        self.limit = limit;
        self
    }

    /// A `prompt_cache_key`: requests that share one are sent where their prefix is cached. One per session is a good
    /// choice. Default: none.
    #[must_use]
    pub fn prompt_cache_key(mut self, key: impl Into<String>) -> Self {
        self.cache_key = Some(key.into());
        self
    }

    fn limit_name(&self, model: &str, quirks: Quirks) -> (&'static str, &'static str) {
        const NAMES: (&str, &str) = ("max_completion_tokens", "max_tokens");
        let newer = match self.limit {
            OutputLimit::MaxCompletionTokens => true,
            OutputLimit::MaxTokens => false,
            OutputLimit::Auto => (is_openai(&self.http) || reasons(model)) != quirks.other_limit,
        };
        if newer { NAMES } else { (NAMES.1, NAMES.0) }
    }
}

impl Protocol for OpenAiChat {
    const FORMAT: Format = Format::OpenAiChat;
    const VENDOR: &'static str = "openai";
    type Answer = ChatAnswer;

    fn request(&self, request: &ModelRequest<'_>, wire: &WireView, quirks: Quirks) -> (String, Sent) {
        let (settings, options) = (request.settings, &self.http.options);
        let mut sent = Sent::default();
        let mut frame = Frame::default();
        frame.text("model", request.model);
        let named = |name: &str| settings.extra.contains_key(name);
        if let Some(most) = settings.max_tokens
            && !named("max_tokens")
            && !named("max_completion_tokens")
        {
            let (name, other) = self.limit_name(request.model, quirks);
            frame.put(name, most.to_string());
            sent.limit = (self.limit == OutputLimit::Auto).then_some((name, other));
        }
        sent.temperature = put_temperature(&mut frame, request, quirks);
        frame.put("stream", options.stream.to_string());
        if options.stream && !quirks.no_stream_options {
            frame.put("stream_options", r#"{"include_usage":true}"#);
            sent.stream_options = true;
        }
        if let Some(key) = &self.cache_key {
            frame.text("prompt_cache_key", key);
        }
        put_tools(&mut frame, request, Format::OpenAiChat);
        frame.extra(&settings.extra, "messages");
        if request.forbid_tools && frame.has("tools") {
            frame.put("tool_choice", r#""none""#);
        }
        let mut list = Stretches(vec![wire.messages.as_str().into()]);
        if marks(&self.http, request.model, quirks) {
            // The protocol's own implicit breakpoint is the end of the view.
            let places: Vec<usize> =
                [wire.settled_message(request.view), wire.head_message(request.view)].into_iter().flatten().collect();
            let room = EXPLICIT_MARKS.saturating_sub(wire.own_marks());
            (list.0, sent.marks) = wire.marked(Format::OpenAiChat, "", &places, room);
        }
        if let Some(text) = request.instruction {
            list.append(&format!(r#"{{"role":"user","content":{}}}"#, json_text(text)));
        }
        (frame.body("messages", &list), sent)
    }
}

#[async_trait]
impl Provider for OpenAiChat {
    fn endpoint(&self) -> &str {
        self.http.endpoint.shown()
    }

    fn format(&self) -> Option<Format> {
        Some(Format::OpenAiChat)
    }

    async fn complete(&self, request: &ModelRequest<'_>, on_delta: &OnDelta<'_>) -> Result<ModelReply, ProviderError> {
        call::complete(&self.http, self, request, on_delta).await
    }

    async fn listed_window(&self, model: &str) -> Result<Option<u64>, ProviderError> {
        listing::window(&self.http, model).await
    }
}

pub(super) fn is_openai(http: &Http) -> bool {
    http.endpoint.host() == "api.openai.com"
}

/// OpenAI's reasoning models: they take no temperature, and an output limit by its newer name only.
pub(super) fn reasons(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let generation = gpt(name).is_some_and(|(major, _)| major >= 5) && !name.contains("chat");
    generation || name.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Generation and minor version of a GPT: `gpt-5.6-mini` is (5, 6).
fn gpt(name: &str) -> Option<(u32, u32)> {
    let rest = name.strip_prefix("gpt-")?;
    let version: &str = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
    let mut numbers = version.split('.').map(str::parse);
    let major = numbers.next()?.ok()?;
    Some((major, numbers.next().and_then(Result::ok).unwrap_or_default()))
}

/// Whether breakpoints are placed. `gpt-5.6` and later match a cached prefix only at a breakpoint, and take up to four,
/// one of which is the implicit one at the end (<https://developers.openai.com/api/docs/guides/prompt-caching>).
pub(super) fn marks(http: &Http, model: &str, quirks: Quirks) -> bool {
    match http.options.cache_marks {
        _ if quirks.no_marks => false,
        CacheMarks::On => true,
        CacheMarks::Off => false,
        CacheMarks::Auto => is_openai(http) && gpt(model).is_some_and(|version| version >= (5, 6)),
    }
}

/// Puts the temperature where the model takes one. `true`: it was sent.
pub(super) fn put_temperature(frame: &mut Frame, request: &ModelRequest<'_>, quirks: Quirks) -> bool {
    let wanted = request.settings.temperature.filter(|degree| degree.is_finite());
    let Some(degree) = wanted.filter(|_| !quirks.no_temperature && !reasons(request.model)) else { return false };
    // As the shortest decimal that means this f32.
    frame.put("temperature", degree.to_string());
    true
}

/// Puts the list of tools.
pub(super) fn put_tools(frame: &mut Frame, request: &ModelRequest<'_>, format: Format) {
    if !request.tools.is_empty() {
        let tools: Vec<String> = request.tools.iter().map(|tool| tool.to_json(format).to_string()).collect();
        frame.put("tools", format!("[{}]", tools.join(",")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_told_apart_by_name() {
        for model in ["gpt-5", "gpt-5.6-mini", "o1", "o3-pro", "openai/o4-mini", "gpt-6-sol", "gpt-10"] {
            assert!(reasons(model), "{model}");
        }
        for model in ["gpt-4o", "gpt-4.1", "gpt-5-chat-latest", "olmo", "claude-opus-4-5", "gpt-oss-120b", ""] {
            assert!(!reasons(model), "{model}");
        }
        assert_eq!(gpt("gpt-5.6-sol"), Some((5, 6)));
        assert_eq!((gpt("gpt-4o"), gpt("gpt-"), gpt("gpt-9999999999999")), (Some((4, 0)), None, None));
    }
}
