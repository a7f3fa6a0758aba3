//! The window: is a prompt too long, and in which words is that said.

use serde_json::json;

use crate::config::{Dialect, Protocol, Window};
use crate::refusal::{Reason, Refusal};
use crate::request::Request;

impl Window {
    /// Tokens enforced at a POST request.
    pub(crate) fn at(&self, request: u64) -> u64 {
        self.changes
            .iter()
            .filter(|(from, _)| *from <= request)
            .max_by_key(|(from, _)| *from)
            .map_or(self.tokens, |(_, tokens)| *tokens)
    }

    /// Tokens named by the listing before a POST request.
    pub(crate) fn announced_at(&self, request: u64) -> u64 {
        self.announced.unwrap_or_else(|| self.at(request))
    }

    /// The output that counts against the window.
    pub(crate) fn counted_output(&self, request: &Request) -> u64 {
        let counted = self.count_output.unwrap_or(request.protocol != Protocol::Responses);
        if counted { request.max_output().unwrap_or(0) } else { 0 }
    }
}

/// An overflow: the prompt and the output asked for, against the window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Excess {
    pub(crate) window: u64,
    pub(crate) prompt: u64,
    pub(crate) output: u64,
}

impl Excess {
    /// The refusal in a dialect.
    pub(crate) fn refusal(self, dialect: Dialect, protocol: Protocol) -> Refusal {
        let Self { window, prompt, output } = self;
        let total = prompt + output;
        let openai =
            |message: String| Refusal::new(Reason::Overflow, message).of("messages").code("context_length_exceeded");
        let plain = |message: String| Refusal::new(Reason::Overflow, message);
        match dialect {
            Dialect::Native => match protocol {
                Protocol::Chat if output == 0 || prompt > window => openai(format!(
                    "This model's maximum context length is {window} tokens. However, your messages resulted in \
                     {prompt} tokens. Please reduce the length of the messages."
                )),
                Protocol::Chat => Self::refusal(self, Dialect::Requested, protocol),
                Protocol::Responses => openai(
                    "Your input exceeds the context window of this model. Please adjust your input and try again."
                        .to_owned(),
                )
                .of("input"),
                Protocol::Messages if prompt > window => {
                    plain(format!("prompt is too long: {prompt} tokens > {window} maximum"))
                }
                Protocol::Messages => plain(format!(
                    "input length and `max_tokens` exceed context limit: {prompt} + {output} > {window}, decrease \
                     input length or `max_tokens` and try again"
                )),
            },
            Dialect::Requested => openai(format!(
                "This model's maximum context length is {window} tokens. However, you requested {total} tokens \
                 ({prompt} in the messages, {output} in the completion). Please reduce the length of the messages or \
                 completion."
            )),
            Dialect::Azure => openai(format!(
                "Input tokens exceed the configured limit of {window} tokens. Your messages resulted in {prompt} \
                 tokens. Please reduce the length of the messages."
            )),
            Dialect::Vllm => {
                let room = (window + 1).saturating_sub(output);
                let message = format!(
                    "This model's maximum context length is {window} tokens. However, you requested {output} output \
                     tokens and your prompt contains at least {room} input tokens, for a total of at least {} \
                     tokens. Please reduce the length of the input prompt or the number of requested output tokens. \
                     (parameter=input_tokens, value={room})",
                    room + output
                );
                let error =
                    json!({"message": message, "type": "BadRequestError", "param": "input_tokens", "code": 400});
                plain(message).body(Some(json!({"error": error})))
            }
            Dialect::LlamaCpp => {
                let message = format!(
                    "request ({prompt} tokens) exceeds the available context size ({window} tokens), try increasing it"
                );
                let error = json!({"code": 400, "message": message, "type": "exceed_context_size_error",
                    "n_prompt_tokens": prompt, "n_ctx": window});
                plain(message).body(Some(json!({"error": error})))
            }
            Dialect::Sglang => {
                let message = format!(
                    "Requested token count exceeds the model's maximum context length of {window} tokens. You \
                     requested a total of {total} tokens: {prompt} tokens from the input messages and {output} tokens \
                     for the completion. Please reduce the number of tokens in the input messages or the completion \
                     to fit within the limit."
                );
                let body = json!({"object": "error", "message": message, "type": "BadRequestError", "param": null,
                    "code": 400});
                plain(message).body(Some(body))
            }
            Dialect::OpenRouter => {
                let message = format!(
                    "This endpoint's maximum context length is {window} tokens. However, you requested about {total} \
                     tokens ({prompt} of text input, {output} in the output). Please reduce the length of either one, \
                     or use the \"middle-out\" transform to compress your prompt automatically."
                );
                let error = json!({"message": message, "code": 400, "metadata": {"provider_name": null}});
                plain(message).body(Some(json!({"error": error})))
            }
            Dialect::Mistral => {
                let message = format!(
                    "Prompt contains {prompt} tokens, too large for model with {window} maximum context length"
                );
                let body = json!({"object": "error", "message": message, "type": "invalid_request_prompt",
                    "param": null, "code": "3051"});
                plain(message).body(Some(body))
            }
            Dialect::LmStudio => {
                let message = format!("Cannot truncate prompt with n_keep ({prompt}) >= n_ctx ({window})");
                plain(message.clone()).body(Some(json!({"error": message})))
            }
            Dialect::Bedrock => plain("Input is too long for requested model.".to_owned()),
            Dialect::Groq => openai("Please reduce the length of the messages or completion.".to_owned()),
            Dialect::Zai => {
                let message = "Prompt exceeds max length".to_owned();
                plain(message.clone()).body(Some(json!({"error": {"code": "1261", "message": message}})))
            }
            Dialect::NoBody => plain(String::new()).status(413).body(None),
        }
    }
}

/// The refusal of an output request above the model's cap. No overflow.
pub(crate) fn output_cap(protocol: Protocol, asked: u64, cap: u64, model: &str) -> Refusal {
    match protocol {
        Protocol::Messages => Refusal::new(
            Reason::OutputCap,
            format!(
                "max_tokens: {asked} > {cap}, which is the maximum allowed number of output tokens for {model}"
            ),
        ),
        Protocol::Chat => Refusal::new(
            Reason::OutputCap,
            format!(
                "max_tokens is too large: {asked}. This model supports at most {cap} completion tokens, whereas you \
                 provided {asked}."
            ),
        )
        .of("max_tokens")
        .code("invalid_value"),
        Protocol::Responses => Refusal::new(
            Reason::OutputCap,
            format!("Invalid 'max_output_tokens': integer above maximum value. Expected a value <= {cap}, but got {asked} instead."),
        )
        .of("max_output_tokens")
        .code("integer_above_max_value"),
    }
}
