//! Who writes summaries of old stretches.

mod extractive;
mod llm;

pub use extractive::ExtractiveSummarizer;
pub use llm::{LlmSummarizer, SummaryMode};

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use foreshorten_core::{Finish, SummaryRequest};

use crate::plugin::Account;
use crate::provider::{Provider, ProviderError, Settings, Usage};
use crate::record::Record;
use crate::tool::ToolSpec;
use crate::view::View;

/// A summary that is asked for, and what a summarizer may look at.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct SummaryAsk<'a> {
    /// The span, its text bounded and ready for a prompt, the summary so far, and what the answer must be.
    pub request: &'a SummaryRequest,
    /// What the user wants looked at especially.
    pub focus: Option<&'a str>,
    /// The record.
    pub record: &'a Record,
    /// The view as it was sent last (or would be now): what the provider's cache is warm for.
    pub view: &'a View,
    /// The run's own provider.
    pub provider: &'a Arc<dyn Provider>,
    /// The run's own model.
    pub model: &'a str,
    /// The tools that the run offers.
    pub tools: &'a [ToolSpec],
    /// The run's settings.
    pub settings: &'a Settings,
    /// The run's window, where known.
    pub window: Option<u64>,
    /// Calibrated tokens of `view`.
    pub view_tokens: u64,
    /// Calls of this pass so far that were too long for the model.
    pub overflows: u32,
    /// Where a plugin adds what it did.
    pub account: &'a Mutex<Account>,
}

/// A summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Its text, without reasoning.
    pub text: String,
    /// How it ended.
    pub finish: Finish,
    /// What it cost.
    pub usage: Usage,
}

/// Why there is no summary.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SummaryError {
    /// The prompt was too long for the summarizer's model: a smaller piece is tried. When it was the run's own model,
    /// this is the window that its endpoint named.
    Overflow(Option<u64>),
    /// The call failed.
    Provider(ProviderError),
    /// Another reason, in words.
    Other(String),
}

impl std::fmt::Display for SummaryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Overflow(_) => f.write_str("the prompt was too long for the summarizer's model"),
            Self::Provider(error) => error.fmt(f),
            Self::Other(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for SummaryError {}

/// Writes summaries.
///
/// What comes back is checked by the core: sections with substance, length, and that the view gets smaller. So a
/// summarizer cannot break a view; it can only be refused.
///
/// ```
/// use foreshorten::summarizer::{Summarizer, Summary, SummaryAsk, SummaryError};
///
/// /// Counts, and says so under every heading.
/// struct Counts;
///
/// #[async_trait::async_trait]
/// impl Summarizer for Counts {
///     async fn summarize(&self, ask: SummaryAsk<'_>) -> Result<Summary, SummaryError> {
///         let said = format!("{} entries were here.", ask.request.entries.len());
///         let text = ask.request.sections.iter().map(|section| format!("## {section}\n{said}\n")).collect();
///         Ok(Summary { text, ..Summary::default() })
///     }
/// }
///
/// # use std::sync::Arc;
/// let policy = foreshorten::context::Compaction::new().summarizer(Arc::new(Counts)).build()?;
/// # Ok::<(), foreshorten_core::ConfigError>(())
/// ```
#[async_trait]
pub trait Summarizer: Send + Sync {
    /// Window of the summarizer's own model, when it is not the run's. Chunks are cut to fit half of it.
    fn window(&self) -> Option<u64> {
        None
    }

    /// Writes the summary asked for.
    ///
    /// # Errors
    /// Why there is none; [`SummaryError::Overflow`] makes the core ask again for a smaller piece.
    async fn summarize(&self, ask: SummaryAsk<'_>) -> Result<Summary, SummaryError>;
}
