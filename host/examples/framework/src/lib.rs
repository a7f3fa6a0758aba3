//! Foreshorten over [rig](https://docs.rs/rig-core): every completion model of that framework as a [`Provider`].
//!
//! What crosses, and how:
//!
//! | Foreshorten | rig |
//! |---|---|
//! | system, user | `Message::System`, `Message::User`; images and PDFs too, of other files only the name |
//! | assistant text, tool calls (one turn) | one `Message::Assistant`; of arguments that are no object rig sends what it can read |
//! | tool results of one batch | one `Message::User` of `ToolResult`s, error flags included (OpenAI's wires have none) |
//! | reasoning | see below |
//! | `Settings::extra` | `additional_params`, which win over everything else |
//!
//! **Reasoning** is worth something only to the model that made it, with its signature. So a turn that holds reasoning,
//! or comes over a wire that signs other things too, is kept whole, as rig's own JSON, in a sealed entry before its
//! readable entries. When the view still shows the turn as it was, that JSON is what rig gets. Other reasoning is left
//! out: rig would show it to the model as something it had said.

mod turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use foreshorten::provider::{Delta, FinishReason, ModelReply, ModelRequest, OnDelta, Provider, ProviderError, Usage};
use foreshorten::record::Message;
use futures_util::StreamExt as _;
use rig_core::DynModel;
use rig_core::completion::{CompletionRequest, CompletionResponse, FinishReason as Finish, ToolDefinition};
use rig_core::message::{Message as RigMessage, ToolChoice, ToolName};
use rig_core::operation::Completion;
use rig_core::streaming::{Item, StreamEvent};

/// The pause before the first further try; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// An endpoint that asks for a longer pause is not waited for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A model of rig.
#[derive(Clone, Debug)]
pub struct RigProvider {
    model: DynModel<Completion>,
    endpoint: String,
    retries: u32,
    patience: Duration,
    /// The endpoint turned a temperature down: reasoning models do.
    no_temperature: Arc<AtomicBool>,
}

impl RigProvider {
    /// A model, and what tells its endpoint from others: the base URL, without any secret. rig does not give it away.
    #[must_use]
    pub fn new(model: impl Into<DynModel<Completion>>, endpoint: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            endpoint: endpoint.into(),
            retries: 2,
            patience: Duration::from_secs(600),
            no_temperature: Arc::default(),
        }
    }

    /// The same with other bounds: further tries after transient failures (default 2; rig makes none), and the longest
    /// time for one try (default ten minutes).
    #[must_use]
    pub const fn bounds(mut self, retries: u32, patience: Duration) -> Self {
        (self.retries, self.patience) = (retries, patience);
        self
    }

    async fn ask(&self, question: CompletionRequest, on_delta: &OnDelta<'_>) -> Result<ModelReply, ProviderError> {
        let mut answer = self.model.stream(question).map_err(|error| failure(&error))?;
        while let Some(item) = answer.next().await {
            match item.map_err(|error| failure(&error))? {
                Item::Event(StreamEvent::Text { text, .. }) => on_delta(Delta::Text(&text)),
                Item::Event(StreamEvent::Reasoning { text, .. }) => on_delta(Delta::Reasoning(&text)),
                Item::Event(StreamEvent::Start { name: Some(name), .. }) => on_delta(Delta::ToolCall(&name)),
                _ => {}
            }
        }
        answer.finish().await.map(|response| reply(&response)).map_err(|error| failure(&error))
    }
}

#[async_trait]
impl Provider for RigProvider {
    fn endpoint(&self) -> &str {
        &self.endpoint
    }

    async fn complete(&self, request: &ModelRequest<'_>, on_delta: &OnDelta<'_>) -> Result<ModelReply, ProviderError> {
        let mut question = question(request)?;
        let told = AtomicBool::new(false);
        let telling = |delta: Delta<'_>| {
            told.store(true, Ordering::Relaxed);
            on_delta(delta);
        };
        let (mut attempts, mut pause) = (0, FIRST_PAUSE);
        loop {
            attempts += 1;
            if self.no_temperature.load(Ordering::Relaxed) {
                question.temperature = None;
            }
            let error = match tokio::time::timeout(self.patience, self.ask(question.clone(), &telling)).await {
                Ok(Ok(mut reply)) => {
                    reply.attempts = attempts;
                    return Ok(reply);
                }
                Ok(Err(error)) => error,
                Err(_) => ProviderError::TimedOut(self.patience),
            };
            if question.temperature.is_some() && about_temperature(&error) {
                self.no_temperature.store(true, Ordering::Relaxed);
                continue;
            }
            let wait = match &error {
                ProviderError::RateLimited { retry_after: Some(wait), .. } => *wait,
                _ => pause,
            };
            if !error.is_transient() || attempts > self.retries || wait > LONGEST_PAUSE {
                return Err(error);
            }
            tokio::time::sleep(wait).await;
            pause *= 2;
            if told.swap(false, Ordering::Relaxed) {
                on_delta(Delta::Restart);
            }
        }
    }
}

/// Summaries are asked for at temperature 0, which reasoning models turn down.
fn about_temperature(error: &ProviderError) -> bool {
    matches!(error, ProviderError::Invalid { message, .. } if message.contains("temperature"))
}

/// A request as rig wants it.
fn question(request: &ModelRequest<'_>) -> Result<CompletionRequest, ProviderError> {
    let mut history = turns::messages(&request.view.entries(request.record));
    history.extend(request.instruction.map(RigMessage::user));
    let mut tools = Vec::with_capacity(request.tools.len());
    for tool in request.tools {
        let name = ToolName::new(&tool.name)
            .map_err(|error| ProviderError::Invalid { status: None, message: error.to_string() })?;
        tools.push(ToolDefinition::new(name, &tool.description, tool.parameters.clone()));
    }
    let forbidden = request.forbid_tools && !tools.is_empty();
    let settings = request.settings;
    // By way of its digits: 0.7 stays 0.7, where a cast makes it 0.699999988.
    let temperature = settings.temperature.and_then(|temperature| temperature.to_string().parse::<f64>().ok());
    let mut question = CompletionRequest::from(history)
        .model::<&str>(Some(request.model))
        .tools(tools)
        .max_tokens(settings.max_tokens)
        .temperature(temperature);
    if forbidden {
        question = question.tool_choice(ToolChoice::None);
    }
    if !settings.extra.is_empty() {
        question = question.additional_params(serde_json::Value::Object(settings.extra.clone()));
    }
    Ok(question)
}

fn reply(response: &CompletionResponse) -> ModelReply {
    let entries = turns::recorded(response);
    let messages = if entries.is_empty() { Vec::new() } else { vec![Message::of(entries)] };
    let mut reply = ModelReply::new(messages, finish(response));
    reply.model = response.model().map(Into::into);
    let used = response.usage;
    reply.usage = used.input_tokens.map(|input_tokens| Usage {
        input_tokens,
        cache_read_tokens: used.cached_input_tokens.unwrap_or_default(),
        cache_write_tokens: used.cache_creation_input_tokens.unwrap_or_default(),
        output_tokens: used.output_tokens.unwrap_or_default(),
        reasoning_tokens: used.reasoning_tokens.unwrap_or_default(),
    });
    reply
}

fn finish(response: &CompletionResponse) -> FinishReason {
    // Two reasons of Anthropic's that rig folds into others.
    match response.raw.get("stop_reason").and_then(serde_json::Value::as_str) {
        Some("pause_turn") => return FinishReason::Paused,
        Some("model_context_window_exceeded") => return FinishReason::ContextWindow,
        _ => {}
    }
    match response.finish_reason() {
        Some(Finish::Length) => FinishReason::Length,
        Some(Finish::ToolCalls) => FinishReason::ToolCalls,
        Some(Finish::ContentFilter) => FinishReason::Refused,
        Some(Finish::Stop) | None if response.error.is_some() => FinishReason::Refused,
        Some(Finish::Stop) | None if response.tool_calls().next().is_some() => FinishReason::ToolCalls,
        Some(Finish::Stop) | None => FinishReason::Stop,
        Some(Finish::Other(reason)) => FinishReason::Other(reason),
        Some(other) => FinishReason::Other(format!("{other:?}")),
    }
}

/// What went wrong. rig keeps status and body of what an endpoint said, so that an overflow is told from the rest here.
fn failure(error: &rig_core::ProviderError) -> ProviderError {
    use rig_core::ProviderError as Rig;
    if let Some(said) = error.provider_response() {
        // An error inside a stream that began well has no status of its own.
        let status = said.status.filter(|status| !status.is_success()).map(|status| status.as_u16());
        let header = said.headers.as_ref().and_then(|headers| headers.get("retry-after"));
        let seconds = header.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        return match ProviderError::from_answer(status, &said.body) {
            ProviderError::RateLimited { message, .. } => {
                ProviderError::RateLimited { retry_after: seconds.map(Duration::from_secs), message }
            }
            other => other,
        };
    }
    let message = error.to_string();
    match error {
        Rig::Http(_) => ProviderError::Connection(message),
        Rig::Truncated | Rig::Json(_) | Rig::Response(_) => ProviderError::Garbled(message),
        Rig::Provider(said) => ProviderError::from_answer(None, said),
        Rig::Relayed(report) => ProviderError::from_answer(report.http_status, &report.message),
        _ => ProviderError::Invalid { status: None, message },
    }
}
