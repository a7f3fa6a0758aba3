//! The earlier proposal's policy, with its own names.

use std::sync::Arc;

use foreshorten_core::ConfigError;
use foreshorten_core::budget::Watermark;
use foreshorten_core::plan::{AutoSummary, MiddleSnip, ReactiveSummary, ToolResultBudget, ToolResultRetention};

use super::{Compaction, StageSpec};
use crate::stores::CompactionArchive;
use crate::summarizer::Summarizer;

/// The five-stage pipeline of the earlier proposal (`001…` of the seeds): result budget, middle snip, result retention,
/// automatic summary, reactive summary. Its parameters keep their names and defaults; names from before that are
/// accepted with a deprecation notice.
///
/// ```
/// use foreshorten::context::CompactingContextPolicy;
/// let policy = CompactingContextPolicy { max_entries: Some(60), ..Default::default() }.build()?;
/// # Ok::<(), foreshorten_core::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct CompactingContextPolicy {
    /// Context window in tokens. Default: found out.
    pub context_window_tokens: Option<u64>,
    /// Trigger, as a fraction of the usable window. Default 0.8.
    pub trigger_ratio: f64,
    /// Most entries of a view; `None` for no limit. Default 80.
    pub max_entries: Option<u32>,
    /// Entries kept at the beginning. Default 3.
    pub keep_initial_entries: u32,
    /// Entries kept at the end. Default 40.
    pub keep_recent_entries: u32,
    /// Entries kept at the end after a rejection. Default 8.
    pub reactive_keep_recent_entries: u32,
    /// Newest tool results kept. Default 3.
    pub keep_recent_tool_results: u32,
    /// Characters that the results of one batch may have. Default 200,000.
    pub tool_result_budget_chars: u32,
    /// Characters that one result may have. Default 20,000.
    pub large_tool_result_chars: u32,
    /// Length of the preview in characters. Default 2,000.
    pub tool_result_preview_chars: u32,
    /// Who writes summaries. Default: an LLM summary on the run's own provider.
    pub summarizer: Option<Arc<dyn Summarizer>>,
    /// Where transcripts and results are kept. Default: nowhere; recall from the record still works.
    pub archive: Option<Arc<dyn CompactionArchive>>,
    /// Failures in a row after which no summary is tried for a while. Default 3.
    pub max_summary_failures: u32,
}

impl Default for CompactingContextPolicy {
    fn default() -> Self {
        let (budget, snip) = (ToolResultBudget::default(), MiddleSnip::default());
        Self {
            context_window_tokens: None,
            trigger_ratio: 0.8,
            max_entries: snip.max_entries,
            keep_initial_entries: snip.keep_initial_entries,
            keep_recent_entries: snip.keep_recent_entries,
            reactive_keep_recent_entries: ReactiveSummary::default().reactive_keep_recent_entries,
            keep_recent_tool_results: ToolResultRetention::default().keep_recent_tool_results,
            tool_result_budget_chars: budget.tool_result_budget_chars,
            large_tool_result_chars: budget.large_tool_result_chars,
            tool_result_preview_chars: budget.tool_result_preview_chars,
            summarizer: None,
            archive: None,
            max_summary_failures: AutoSummary::default().max_summary_failures,
        }
    }
}

impl CompactingContextPolicy {
    /// The old name of [`context_window_tokens`](Self::context_window_tokens).
    #[deprecated(note = "renamed: set `context_window_tokens`")]
    #[must_use]
    pub const fn max_tokens(mut self, tokens: u64) -> Self {
        self.context_window_tokens = Some(tokens);
        self
    }

    /// The old name of [`trigger_ratio`](Self::trigger_ratio).
    #[deprecated(note = "renamed: set `trigger_ratio`")]
    #[must_use]
    pub const fn compact_at_ratio(mut self, ratio: f64) -> Self {
        self.trigger_ratio = ratio;
        self
    }

    /// The old name of [`keep_recent_entries`](Self::keep_recent_entries).
    #[deprecated(note = "renamed: set `keep_recent_entries`")]
    #[must_use]
    pub const fn keep_recent_messages(mut self, entries: u32) -> Self {
        self.keep_recent_entries = entries;
        self
    }

    /// The old name of [`reactive_keep_recent_entries`](Self::reactive_keep_recent_entries).
    #[deprecated(note = "renamed: set `reactive_keep_recent_entries`")]
    #[must_use]
    pub const fn reactive_keep_recent_messages(mut self, entries: u32) -> Self {
        self.reactive_keep_recent_entries = entries;
        self
    }

    /// Builds the policy.
    ///
    /// # Errors
    /// The first parameter that cannot be meant, by name.
    pub fn build(self) -> Result<Compaction, ConfigError> {
        let stages = vec![
            StageSpec::plan(ToolResultBudget {
                tool_result_budget_chars: self.tool_result_budget_chars,
                large_tool_result_chars: self.large_tool_result_chars,
                tool_result_preview_chars: self.tool_result_preview_chars,
            }),
            StageSpec::plan(MiddleSnip {
                max_entries: self.max_entries,
                keep_initial_entries: self.keep_initial_entries,
                keep_recent_entries: self.keep_recent_entries,
            }),
            StageSpec::plan(ToolResultRetention { keep_recent_tool_results: self.keep_recent_tool_results }),
            StageSpec::Summarize(AutoSummary { max_summary_failures: self.max_summary_failures }.into()),
            StageSpec::Summarize(
                ReactiveSummary { reactive_keep_recent_entries: self.reactive_keep_recent_entries }.into(),
            ),
        ];
        // The proposal has no second watermark: what is above the trigger goes down to the seeds' share of it.
        let target = Watermark::BasisPoints(((self.trigger_ratio * 7_500.0) as u16).max(1));
        let mut policy = Compaction::new().stages(stages).compact_at(self.trigger_ratio).compact_to(target);
        if let Some(tokens) = self.context_window_tokens {
            policy = policy.context_window(tokens);
        }
        if let Some(summarizer) = self.summarizer {
            policy = policy.summarizer(summarizer);
        }
        if let Some(archive) = self.archive {
            policy = policy.archive(archive);
        }
        policy.build()
    }
}
