//! The parameters of [`Compaction`], one method each.

use std::sync::Arc;

use foreshorten_core::{
    ConfigError, PolicyConfig,
    budget::{Economy, Watermark},
    estimate::ByteEstimator,
    plan::ToolRule,
};

use super::Compaction;
use super::background::Background;
use super::recipe::{Recipe, StageSpec, WeigherChoice};
use crate::stores::{CompactionArchive, ResultStore};
use crate::summarizer::Summarizer;

/// A level as people write it: a fraction of the usable window, or tokens.
///
/// ```
/// use foreshorten::context::IntoWatermark;
/// use foreshorten_core::budget::Watermark;
/// assert_eq!(0.85.into_watermark(), Watermark::BasisPoints(8_500));
/// assert_eq!(150_000_u64.into_watermark(), Watermark::Tokens(150_000));
/// ```
pub trait IntoWatermark {
    /// The watermark.
    fn into_watermark(self) -> Watermark;
}

impl IntoWatermark for f64 {
    fn into_watermark(self) -> Watermark {
        let points = (self * 10_000.0).round();
        // What is no fraction is refused when the policy is built, by its name.
        Watermark::BasisPoints(if (1.0..=10_000.0).contains(&points) { points as u16 } else { 0 })
    }
}

impl IntoWatermark for u64 {
    fn into_watermark(self) -> Watermark {
        Watermark::Tokens(self)
    }
}

impl IntoWatermark for Watermark {
    fn into_watermark(self) -> Watermark {
        self
    }
}

impl Compaction {
    /// The seeds' defaults: three stages, trigger 0.85, target 0.60 of the usable window, an LLM summary on the run's own
    /// provider, no store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn with(mut self, change: impl FnOnce(&mut Recipe)) -> Self {
        change(&mut self.recipe);
        self.made = Arc::default();
        self
    }

    /// The context window in tokens. Default: what the runner finds out; a window that the endpoint names caps it.
    #[must_use]
    pub fn context_window(self, tokens: u64) -> Self {
        self.with(|recipe| recipe.context_window = Some(tokens))
    }

    /// Trigger: a fraction of the usable window (`0.85`) or tokens (`150_000_u64`). Default 0.85.
    #[must_use]
    pub fn compact_at(self, level: impl IntoWatermark) -> Self {
        self.with(|recipe| recipe.compact_at = level.into_watermark())
    }

    /// Target of a pass, likewise. Default 0.60.
    #[must_use]
    pub fn compact_to(self, level: impl IntoWatermark) -> Self {
        self.with(|recipe| recipe.compact_to = level.into_watermark())
    }

    /// The preset `steady`: passes are rare and deep, from 0.88 of usable to 0.25. The prompt cache is broken half as often
    /// as by default; more of the past stands in notes.
    #[must_use]
    pub fn steady(self) -> Self {
        let steady = PolicyConfig::steady();
        self.with(|recipe| {
            (recipe.compact_at, recipe.compact_to) = (steady.compact_at, steady.compact_to);
            recipe.fold_without_summary = steady.fold_without_summary;
        })
    }

    /// The preset `economy`: the lowest bill by prices of the prompt cache, above a floor of what stays verbatim.
    ///
    /// ```
    /// use foreshorten::context::Compaction;
    /// use foreshorten_core::budget::{CachePrice, Economy};
    /// # fn main() -> Result<(), foreshorten_core::ConfigError> {
    /// let price = CachePrice { write: 12_500, read: 1_000, output: 50_000 };
    /// let policy = Compaction::new().economy(Economy { price, ..Economy::default() }).build()?;
    /// # let _ = policy;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn economy(self, economy: Economy) -> Self {
        self.with(|recipe| {
            recipe.economy = Some(economy);
            recipe.fold_without_summary = true;
        })
    }

    /// Size of the protected tail in tokens. Default: a fifth of the usable window.
    #[must_use]
    pub fn keep_recent_tokens(self, tokens: u64) -> Self {
        self.with(|recipe| recipe.keep_recent_tokens = Some(tokens))
    }

    /// Tokens kept free for the answer. Default: the request's `max_tokens`, else 16,384; never more than half the window.
    #[must_use]
    pub fn reserve_output_tokens(self, tokens: u64) -> Self {
        self.with(|recipe| recipe.reserve_output_tokens = Some(tokens))
    }

    /// Your own pipeline. Default: [`StageSpec::default_pipeline`].
    #[must_use]
    pub fn stages(self, stages: Vec<StageSpec>) -> Self {
        self.with(|recipe| recipe.stages = stages)
    }

    /// One stage more, before the first summary: a plugin ([`StageSpec::External`]), or any other. For another order
    /// give [`stages`](Self::stages).
    #[must_use]
    pub fn stage(self, stage: StageSpec) -> Self {
        self.with(|recipe| {
            let is_summary = |stage: &StageSpec| matches!(stage, StageSpec::Summarize(_));
            let at = recipe.stages.iter().position(is_summary).unwrap_or(recipe.stages.len());
            recipe.stages.insert(at, stage);
        })
    }

    /// Flat estimate of an image part in tokens. Default 1,600.
    #[must_use]
    pub fn image_tokens(self, tokens: u32) -> Self {
        self.with(|recipe| recipe.image_tokens = tokens)
    }

    /// How text is weighed. Default: by the model's name.
    #[must_use]
    pub fn weigher(self, weigher: WeigherChoice) -> Self {
        self.with(|recipe| recipe.weigher = weigher)
    }

    /// Rules for single tools, by name.
    #[must_use]
    pub fn tool_rules(self, rules: Vec<(String, ToolRule)>) -> Self {
        self.with(|recipe| recipe.tools = rules)
    }

    /// Text around a summary; it must contain `{summary}` once. Default: [`foreshorten_core::marker::SUMMARY_WRAPPER`].
    #[must_use]
    pub fn summary_wrapper(self, wrapper: impl Into<String>) -> Self {
        self.with(|recipe| recipe.summary_wrapper = wrapper.into())
    }

    /// Least gain of a proactive pass, in per cent of the view. Default 10.
    #[must_use]
    pub fn min_gain_percent(self, percent: u8) -> Self {
        self.with(|recipe| recipe.min_gain_percent = percent)
    }

    /// Contribute `recall_tool_result`, and have markers tell the model to call it. Default true.
    #[must_use]
    pub fn recall_tool(self, given: bool) -> Self {
        self.with(|recipe| recipe.recall_tool = given)
    }

    /// Who writes summaries. Default: [`LlmSummarizer`](crate::summarizer::LlmSummarizer), on the run's own provider.
    #[must_use]
    pub fn summarizer(mut self, summarizer: Arc<dyn Summarizer>) -> Self {
        self.summarizer = Some(summarizer);
        self
    }

    /// No summaries by a model: old stretches give way to a note that says what was left out.
    #[must_use]
    pub fn without_summarizer(mut self) -> Self {
        self.summarizer = None;
        self
    }

    /// Take an extract, made without a model, in place of a summary when no summarizer is configured or its breaker is
    /// open. Default false.
    #[must_use]
    pub fn extractive_fallback(self, on: bool) -> Self {
        self.with(|recipe| recipe.extractive_fallback = on)
    }

    /// Where reduced results are kept, should they outlast the record.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn ResultStore>) -> Self {
        self.store = Some(store);
        self.with(|recipe| recipe.archive = true)
    }

    /// Where the transcript, and reduced results, are kept for people before a pass is recorded.
    #[must_use]
    pub fn archive(mut self, archive: Arc<dyn CompactionArchive>) -> Self {
        self.archive = Some(archive);
        self.with(|recipe| recipe.archive = true)
    }

    /// Prepare the next pass ahead of need, in the background, once the view reaches this share of the trigger (0.9 is a
    /// good one). It is committed at the turn at which a pass is due, or dropped when it does not apply any more.
    /// Default: off. With [`economy`](Self::economy) passes are mostly due before that, and run in their turn.
    #[must_use]
    pub fn background(mut self, share_of_trigger: f64) -> Self {
        self.background = Some(Background::new(share_of_trigger));
        self
    }

    /// Checks all parameters together.
    ///
    /// # Errors
    /// The first one that cannot be meant, by name.
    pub fn build(self) -> Result<Self, ConfigError> {
        self.recipe.build(ByteEstimator::default(), None)?;
        Ok(self)
    }
}
