//! The summary by a model.

use std::sync::Arc;

use async_trait::async_trait;
use foreshorten_core::Finish;
use foreshorten_core::summary::{REQUIRED_SECTIONS, SUMMARY_SYSTEM_PROMPT, has_sections, layer_prompt};
use foreshorten_core::transcript::{EntryKind, text_of};

use super::{Summarizer, Summary, SummaryAsk, SummaryError};
use crate::provider::{FinishReason, ModelRequest, Provider, ProviderError, Settings, Usage};
use crate::record::{Message, Record};
use crate::view::View;

/// How the model is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SummaryMode {
    /// On the warm prefix where the view and the answer fit the window together, else plain.
    #[default]
    Auto,
    /// The present view and one instruction, with the same tools: what the provider has cached is read, not paid anew.
    Warm,
    /// A prompt of its own: the span as text in a fence, without tools.
    Plain,
}

/// Asks a model: by default the run's own, at temperature 0.
///
/// ```
/// use foreshorten::summarizer::{LlmSummarizer, SummaryMode};
/// let summarizer = LlmSummarizer::new().mode(SummaryMode::Plain).prompt("Summarize for a pirate. …");
/// ```
#[derive(Clone)]
pub struct LlmSummarizer {
    provider: Option<Arc<dyn Provider>>,
    model: Option<String>,
    window: Option<u64>,
    mode: SummaryMode,
    prompt: String,
    sections: Vec<String>,
    settings: Option<Settings>,
}

impl Default for LlmSummarizer {
    fn default() -> Self {
        Self {
            provider: None,
            model: None,
            window: None,
            mode: SummaryMode::Auto,
            prompt: SUMMARY_SYSTEM_PROMPT.into(),
            sections: REQUIRED_SECTIONS.iter().map(|&section| section.into()).collect(),
            settings: None,
        }
    }
}

/// A tenth more than reckoned is kept free for what an estimate does not see.
const MARGIN_DIVISOR: u64 = 10;
/// Bytes of the first message after the span that are quoted to say where the span ends.
const QUOTED: usize = 160;

impl LlmSummarizer {
    /// On the run's own provider and model.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// On another provider and model, with a window of its own in tokens.
    #[must_use]
    pub fn on(mut self, provider: Arc<dyn Provider>, model: impl Into<String>, window: Option<u64>) -> Self {
        (self.provider, self.model, self.window) = (Some(provider), Some(model.into()), window);
        self
    }

    /// How the model is asked. On another provider or model it is always plain: nothing is cached there.
    #[must_use]
    pub const fn mode(mut self, mode: SummaryMode) -> Self {
        self.mode = mode;
        self
    }

    /// What the model is told. Default: [`SUMMARY_SYSTEM_PROMPT`].
    #[must_use]
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = prompt.into();
        self
    }

    /// Headings an answer must have, each with something under it; asked for once more when one is missing. Default:
    /// [`REQUIRED_SECTIONS`]. The pipeline's summary stage has a check of its own, `require_sections`: switch it off for
    /// other headings.
    #[must_use]
    pub fn required_sections(mut self, sections: Vec<String>) -> Self {
        self.sections = sections;
        self
    }

    /// Settings of the call. Default: the run's own, at temperature 0 and with the output limit that the view leaves.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Whether it is the run's own model that is asked.
    const fn is_own(&self) -> bool {
        self.provider.is_none() && self.model.is_none()
    }

    fn settings_for(&self, ask: &SummaryAsk<'_>) -> Settings {
        let limit = ask.request.max_output_tokens.max(1);
        let mut settings = self.settings.clone().unwrap_or_else(|| Settings {
            temperature: Some(0.0),
            max_tokens: None,
            extra: ask.settings.extra.clone(),
        });
        settings.max_tokens = Some(settings.max_tokens.unwrap_or(limit).min(limit));
        settings
    }

    /// Whether the call rides the warm prefix.
    fn warm(&self, ask: &SummaryAsk<'_>) -> bool {
        let room = ask.window.is_none_or(|window| {
            let needed = ask.view_tokens.saturating_add(ask.request.max_output_tokens);
            needed.saturating_add(window / MARGIN_DIVISOR) <= window
        });
        self.is_own()
            && !ask.request.aggressive
            && ask.overflows == 0
            && match self.mode {
                SummaryMode::Auto => room && ask.window.is_some(),
                SummaryMode::Warm => room,
                SummaryMode::Plain => false,
            }
    }

    /// The instruction after the view: what to cover, and how to write.
    fn instruction(&self, ask: &SummaryAsk<'_>) -> String {
        let last = ask.request.entries.last().copied().unwrap_or_default();
        let next = (last + 1..ask.record.entries().count()).find(|&at| {
            matches!(ask.record.get(at).map(|entry| entry.kind), Some(EntryKind::User | EntryKind::Assistant))
        });
        let mut out = String::from("Stop here and write a summary of the conversation so far. Do not call tools.\n\n");
        out.push_str(&self.prompt);
        if let Some(next) = next {
            let text = text_of(ask.record, next);
            let cut = foreshorten_core::text::floor_boundary(&text, QUOTED);
            if !text[..cut].trim().is_empty() {
                out.push_str(
                    "\n\nThe summary ends before the message that begins so; what comes from there on stays:\n",
                );
                let fence = foreshorten_core::summary::fence(&[&text[..cut]]);
                out.push_str(&format!("{fence}\n{}\n{fence}", &text[..cut]));
            }
        }
        if ask.request.earlier.is_some() {
            out.push_str(
                "\n\nThe notes at the beginning stay: write about what comes after them alone, and do not say again what they say.",
            );
        }
        if let Some(focus) = ask.focus {
            out.push_str("\n\nPay special attention to: ");
            out.push_str(focus);
        }
        out
    }

    async fn ask(&self, ask: &SummaryAsk<'_>, more: Option<&str>) -> Result<Summary, SummaryError> {
        let settings = self.settings_for(ask);
        let provider = self.provider.as_ref().unwrap_or(ask.provider);
        let model = self.model.as_deref().unwrap_or(ask.model);
        let reply = if self.warm(ask) {
            let mut instruction = self.instruction(ask);
            if let Some(more) = more {
                instruction.push_str("\n\n");
                instruction.push_str(more);
            }
            let view = ask.view.clone().answered(ask.record);
            let request = ModelRequest::new(model, ask.record, &view, &settings).with_tools(ask.tools);
            provider.complete(&request.for_summary(Some(&instruction)), &|_| {}).await
        } else {
            let asked = ask.request;
            let mut prompt = layer_prompt(asked.earlier.as_deref(), asked.prior.as_deref(), &asked.text, ask.focus);
            if let Some(more) = more {
                prompt.push_str("\n\n");
                prompt.push_str(more);
            }
            let record: Record = [Message::system(self.prompt.as_str()), Message::user(prompt)].into_iter().collect();
            let view = View::of(&record).settled_at(1, 1);
            let request = ModelRequest::new(model, &record, &view, &settings);
            provider.complete(&request.for_summary(None), &|_| {}).await
        };
        let reply = reply.map_err(|error| match error {
            ProviderError::Overflow(rejection) => SummaryError::Overflow(rejection.window.filter(|_| self.is_own())),
            other => SummaryError::Provider(other),
        })?;
        let text: Vec<String> = reply.messages.iter().map(|message| message.text_of(EntryKind::Assistant)).collect();
        let finish = match reply.finish {
            FinishReason::Stop | FinishReason::Other(_) => Finish::Complete,
            FinishReason::Refused => return Err(SummaryError::Other("the model refused to summarize".into())),
            FinishReason::ToolCalls => return Err(SummaryError::Other("the model called a tool instead".into())),
            _ => Finish::Cut,
        };
        let text = text.join("\n").trim().to_owned();
        Ok(Summary { text, finish, usage: reply.usage.unwrap_or_default() })
    }
}

#[async_trait]
impl Summarizer for LlmSummarizer {
    fn window(&self) -> Option<u64> {
        self.window
    }

    async fn summarize(&self, ask: SummaryAsk<'_>) -> Result<Summary, SummaryError> {
        let first = self.ask(&ask, None).await?;
        let sections: Vec<&str> = self.sections.iter().map(String::as_str).collect();
        if first.finish == Finish::Cut || first.text.is_empty() || has_sections(&first.text, &sections) {
            return Ok(first);
        }
        // One more try, that says what was missing; models that fail twice fail again.
        let more = format!(
            "An earlier answer lacked something under one of these headings: {}. Write all of them, each with at least one \
             line under it.",
            sections.join(", ")
        );
        let mut second = self.ask(&ask, Some(&more)).await?;
        let mut usage: Usage = first.usage;
        usage += second.usage;
        second.usage = usage;
        Ok(second)
    }
}
