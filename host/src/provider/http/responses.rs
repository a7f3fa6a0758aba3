//! OpenAI Responses, without state on the server.

use async_trait::async_trait;

use super::call::{self, Protocol};
use super::chat::{EXPLICIT_MARKS, OPENAI, marks, put_temperature, put_tools};
use super::client::{Dialect, Http};
use super::endpoint::Version;
use super::frame::{Frame, Stretches, json_text};
use super::listing;
use super::options::{HttpOptions, SetupError};
use super::quirks::{Quirks, Sent};
use super::responses_answer::ResponsesAnswer;
use crate::formats::{Format, WireView};
use crate::provider::{ModelReply, ModelRequest, OnDelta, Provider, ProviderError};

/// An endpoint that speaks OpenAI Responses. Nothing is stored there: reasoning comes encrypted and goes back with the
/// items it belongs to.
///
/// ```
/// use foreshorten::provider::Provider;
/// use foreshorten::provider::http::{HttpOptions, OpenAiResponses};
/// let provider = OpenAiResponses::new(HttpOptions::new().base_url("http://127.0.0.1:1/v1").key("sk-…")) ?;
/// assert_eq!(provider.endpoint(), "http://127.0.0.1:1/v1");
/// # Ok::<(), foreshorten::provider::http::SetupError>(())
/// ```
#[derive(Debug)]
pub struct OpenAiResponses {
    http: Http,
    cache_key: Option<String>,
}

impl OpenAiResponses {
    /// An endpoint reached so. Default address: `https://api.openai.com/v1`.
    ///
    /// # Errors
    /// When the address or a header is none, or the machine has no root certificates for `https`.
    pub fn new(options: HttpOptions) -> Result<Self, SetupError> {
        let dialect = Dialect { base_url: OPENAI, path: "responses", version: Version::WhenBare, key_header: None };
        Ok(Self { http: Http::new(options, dialect)?, cache_key: None })
    }

    /// The endpoint that the environment names: [`HttpOptions::from_openai_env`].
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_env() -> Result<Self, SetupError> {
        Self::new(HttpOptions::from_openai_env())
    }

    /// A `prompt_cache_key`: requests that share one are sent where their prefix is cached. One per session is a good
    /// choice. Default: none.
    #[must_use]
    pub fn prompt_cache_key(mut self, key: impl Into<String>) -> Self {
        self.cache_key = Some(key.into());
        self
    }
}

impl Protocol for OpenAiResponses {
    const FORMAT: Format = Format::OpenAiResponses;
    const VENDOR: &'static str = "openai";
    type Answer = ResponsesAnswer;

    fn request(&self, request: &ModelRequest<'_>, wire: &WireView, quirks: Quirks) -> (String, Sent) {
        let settings = request.settings;
        let mut sent = Sent::default();
        let mut frame = Frame::default();
        frame.text("model", request.model);
        if let Some(most) = settings.max_tokens {
            frame.put("max_output_tokens", most.to_string());
        }
        sent.temperature = put_temperature(&mut frame, request, quirks);
        frame.put("stream", self.http.options.stream.to_string());
        frame.put("store", "false");
        if !quirks.no_encrypted_reasoning {
            frame.put("include", r#"["reasoning.encrypted_content"]"#);
            sent.encrypted_reasoning = true;
        }
        if let Some(key) = &self.cache_key {
            frame.text("prompt_cache_key", key);
        }
        put_tools(&mut frame, request, Format::OpenAiResponses);
        let explicit = marks(&self.http, request.model, quirks);
        let system: Vec<&str> = wire.system.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
        let system = system.join("\n\n");
        if !system.is_empty() && !explicit {
            frame.text("instructions", &system);
        }
        frame.extra(&settings.extra, "input");
        if request.forbid_tools && frame.has("tools") {
            frame.put("tool_choice", r#""none""#);
        }
        let mut list = Stretches(vec![wire.messages.as_str().into()]);
        if explicit {
            // The protocol's own implicit breakpoint is the end of the view.
            let settled: Vec<usize> = wire.settled_message(request.view).into_iter().collect();
            let head = !system.is_empty() && !frame.has("instructions");
            let room = EXPLICIT_MARKS.saturating_sub(wire.own_marks() + usize::from(head));
            (list.0, sent.marks) = wire.marked(Format::OpenAiResponses, "", &settled, room);
            if head {
                // `instructions` has no place for a mark; a message of the developer reads the same.
                let text = json_text(&system);
                let part =
                    format!(r#"{{"type":"input_text","text":{text},"prompt_cache_breakpoint":{{"mode":"explicit"}}}}"#);
                list.prepend(&format!(r#"{{"type":"message","role":"developer","content":[{part}]}}"#));
                sent.marks = true;
            }
        }
        if let Some(text) = request.instruction {
            let part = format!(r#"{{"type":"input_text","text":{}}}"#, json_text(text));
            list.append(&format!(r#"{{"type":"message","role":"user","content":[{part}]}}"#));
        }
        (frame.body("input", &list), sent)
    }
}

#[async_trait]
impl Provider for OpenAiResponses {
    fn endpoint(&self) -> &str {
        self.http.endpoint.shown()
    }

    fn format(&self) -> Option<Format> {
        Some(Format::OpenAiResponses)
    }

    async fn complete(&self, request: &ModelRequest<'_>, on_delta: &OnDelta<'_>) -> Result<ModelReply, ProviderError> {
        call::complete(&self.http, self, request, on_delta).await
    }

    async fn listed_window(&self, model: &str) -> Result<Option<u64>, ProviderError> {
        listing::window(&self.http, model).await
    }
}
