//! The policy: every parameter, its default and why, checked when it is built.

use alloc::{boxed::Box, string::String, vec, vec::Vec};
use core::fmt;

use crate::{
    budget::{Economy, MAX_WINDOW, MIN_WINDOW, Mode, TokenBudget, Watermark},
    error::ConfigError,
    estimate::Weigher,
    marker::{MarkerStyle, SUMMARY_WRAPPER},
    plan::{
        AutoSummary, ClearToolResults, MiddleSnip, OffloadToolResults, ReactiveSummary, Stage, SummarizeHistory,
        ToolResultBudget, ToolResultRetention, ToolRule,
    },
};

/// One step of a pipeline.
#[non_exhaustive]
pub enum PipelineStage {
    /// A stage that plans in this process, built in or the embedder's own.
    Plan(Box<dyn Stage + Send + Sync>),
    /// The summary: needs the world, so it is asked for as an effect.
    Summarize(SummarizeHistory),
    /// A stage that runs elsewhere (a plugin): asked for as an effect under this name.
    External(String),
}

impl PipelineStage {
    /// A built-in or own stage.
    #[must_use]
    pub fn plan(stage: impl Stage + Send + Sync + 'static) -> Self {
        Self::Plan(Box::new(stage))
    }

    /// The name under which the stage is reported.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Plan(stage) => stage.name(),
            Self::Summarize(stage) => stage.name,
            Self::External(name) => name,
        }
    }
}

impl fmt::Debug for PipelineStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PipelineStage").field(&self.name()).finish()
    }
}

/// Every parameter of a compaction policy; [`build`](Self::build) checks them together.
#[derive(Debug)]
pub struct PolicyConfig {
    /// Context window in tokens; `None`: the host finds out. Valid: 256 to 20,000,000.
    pub context_window: Option<u64>,
    /// Trigger. Default 0.85 of usable (the seeds): late, because a pass breaks the prompt cache once.
    pub compact_at: Watermark,
    /// Target of a pass. Default 0.60 of usable (the seeds).
    pub compact_to: Watermark,
    /// Size of the protected tail in tokens. Default `None`: a fifth of usable.
    pub keep_recent_tokens: Option<u64>,
    /// Tokens kept free for the answer. Default `None`: 16,384, and no more than half the window.
    /// Given explicitly it must be below the window.
    pub reserve_output_tokens: Option<u64>,
    /// The pipeline. Default: the seeds' three stages.
    pub stages: Vec<PipelineStage>,
    /// How entries are weighed.
    pub weigher: Weigher,
    /// Wording of markers.
    pub style: MarkerStyle,
    /// Text around a summary; must contain `{summary}` once.
    pub summary_wrapper: String,
    /// Rules for single tools, by name.
    pub tools: Vec<(String, ToolRule)>,
    /// Let plugins put text of their own in place of results. Default false.
    pub may_condense: bool,
    /// Least gain of a proactive pass, in per cent of the view. Default 10: below it the cache is broken for
    /// too little. Not applied to a view that does not fit.
    pub min_gain_percent: u8,
    /// Triggers by the prices of a prompt cache, at or below `compact_at`. Default `None`: by the watermarks alone.
    pub economy: Option<Economy>,
    /// Lay a model-free note where the target stays out of reach and no summary was written. Default false: what fits
    /// stays, and such a note is laid when the view does not fit. True in [`steady`](Self::steady) and
    /// [`economy`](Self::economy), which are about going deep.
    pub fold_without_summary: bool,
    /// Ask the host to archive what was reduced before the decision is recorded. Default false: nothing is stored.
    pub archive: bool,
}

/// Default of `reserve_output_tokens`, from the seeds.
pub const DEFAULT_RESERVE: u64 = 16_384;

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            context_window: None,
            compact_at: Watermark::BasisPoints(8_500),
            compact_to: Watermark::BasisPoints(6_000),
            keep_recent_tokens: None,
            reserve_output_tokens: None,
            stages: default_pipeline(),
            weigher: Weigher::default(),
            style: MarkerStyle::default(),
            summary_wrapper: SUMMARY_WRAPPER.into(),
            tools: Vec::new(),
            may_condense: false,
            min_gain_percent: 10,
            economy: None,
            fold_without_summary: false,
            archive: false,
        }
    }
}

/// The seeds' three stages: offload, clear, summarize.
#[must_use]
pub fn default_pipeline() -> Vec<PipelineStage> {
    vec![
        PipelineStage::plan(OffloadToolResults::default()),
        PipelineStage::plan(ClearToolResults::default()),
        PipelineStage::Summarize(SummarizeHistory::default()),
    ]
}

/// The five stages of the earlier proposal, cheap first.
#[must_use]
pub fn five_stage_pipeline() -> Vec<PipelineStage> {
    vec![
        PipelineStage::plan(ToolResultBudget::default()),
        PipelineStage::plan(MiddleSnip::default()),
        PipelineStage::plan(ToolResultRetention::default()),
        PipelineStage::Summarize(AutoSummary::default().into()),
        PipelineStage::Summarize(ReactiveSummary::default().into()),
    ]
}

impl PolicyConfig {
    /// The preset `steady`: passes are rare and deep, from 0.88 of usable to 0.25. The prompt cache is broken half as often
    /// as by default; more of the past stands in notes.
    #[must_use]
    pub fn steady() -> Self {
        Self {
            compact_at: Watermark::BasisPoints(8_800),
            compact_to: Watermark::BasisPoints(2_500),
            fold_without_summary: true,
            ..Self::default()
        }
    }

    /// The preset `economy`: the lowest bill by `economy.price`, above `economy.floor_tokens` of the newest groups.
    ///
    /// ```
    /// use foreshorten_core::{PolicyConfig, budget::{CachePrice, Economy}};
    /// let price = CachePrice { write: 10_000, read: 200, output: 20_000 };
    /// let policy = PolicyConfig::economy(Economy { price, ..Economy::default() }).build().unwrap();
    /// assert_eq!(policy.config().economy.unwrap().floor_tokens, 6_000);
    /// ```
    #[must_use]
    pub fn economy(economy: Economy) -> Self {
        Self { economy: Some(economy), fold_without_summary: true, ..Self::default() }
    }

    /// Checks every parameter and builds the policy.
    ///
    /// # Errors
    /// The first parameter that cannot be meant, by name.
    ///
    /// ```
    /// use foreshorten_core::{PolicyConfig, budget::Watermark};
    /// let wrong = PolicyConfig { compact_to: Watermark::BasisPoints(9_000), ..PolicyConfig::default() };
    /// assert_eq!(wrong.build().unwrap_err().field, "compact_to");
    /// ```
    pub fn build(mut self) -> Result<Policy, ConfigError> {
        let check = |good: bool, field, expected| if good { Ok(()) } else { Err(ConfigError::new(field, expected)) };
        let window = self.context_window;
        check(
            window.is_none_or(|w| (MIN_WINDOW..=MAX_WINDOW).contains(&w)),
            "context_window",
            "between 256 and 20,000,000 tokens",
        )?;
        check(self.compact_at.is_valid(), "compact_at", "a fraction in (0, 1] or a number of tokens, 1 or more")?;
        check(self.compact_to.is_valid(), "compact_to", "a fraction in (0, 1] or a number of tokens, 1 or more")?;
        let ordered = match (self.compact_at, self.compact_to) {
            (Watermark::BasisPoints(at), Watermark::BasisPoints(to)) => to < at,
            (Watermark::Tokens(at), Watermark::Tokens(to)) => to < at,
            _ => true,
        };
        check(ordered, "compact_to", "below `compact_at`")?;
        check(self.keep_recent_tokens != Some(0), "keep_recent_tokens", "1 or more tokens")?;
        check(self.weigher.image_tokens > 0, "image_tokens", "1 or more tokens")?;
        check(self.min_gain_percent < 100, "min_gain_percent", "below 100")?;
        if let Some(window) = window {
            check(
                self.reserve_output_tokens.is_none_or(|reserve| reserve < window),
                "reserve_output_tokens",
                "below `context_window`",
            )?;
            let usable = self.budget(window, Mode::Proactive, None).usable;
            if let Watermark::Tokens(at) = self.compact_at {
                check(at <= usable, "compact_at", "no more than the usable window (window minus reserve)")?;
            }
            check(self.compact_to.of(usable) < self.compact_at.of(usable), "compact_to", "below `compact_at`")?;
            check(
                self.keep_recent_tokens.is_none_or(|tail| tail < usable),
                "keep_recent_tokens",
                "below the usable window (window minus reserve)",
            )?;
        }
        if let Some(economy) = &self.economy {
            check(economy.floor_tokens > 0, "floor_tokens", "1 or more tokens")?;
            check(economy.growth_tokens != Some(0), "growth_tokens", "1 or more tokens")?;
            check(economy.price.read <= economy.price.write, "price", "reading no dearer than writing")?;
        }
        check(
            self.summary_wrapper.matches("{summary}").count() == 1,
            "summary_wrapper",
            "a text that contains {summary} once",
        )?;
        check(!self.stages.is_empty(), "stages", "at least one stage")?;
        for stage in &self.stages {
            if let PipelineStage::Summarize(summary) = stage {
                check(summary.min_savings_percent < 100, "min_savings_ratio", "in [0, 1)")?;
                check(summary.max_failures > 0, "max_failures", "1 or more")?;
                check(summary.max_summary_chars > 0, "max_summary_chars", "1 or more")?;
                check(summary.max_calls > 0, "max_calls", "1 or more")?;
                check(summary.layers_percent <= 50, "layers_percent", "50 or less")?;
            }
        }
        self.tools.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        check(self.tools.windows(2).all(|pair| pair[0].0 != pair[1].0), "tools", "one rule per tool")?;
        Ok(Policy { config: self })
    }

    fn budget(&self, window: u64, mode: Mode, output_tokens: Option<u64>) -> TokenBudget {
        let reserve = match (self.reserve_output_tokens, output_tokens) {
            (Some(reserve), asked) => reserve.max(asked.unwrap_or(0)),
            (None, asked) => asked.unwrap_or(DEFAULT_RESERVE),
        };
        let mut budget =
            TokenBudget::new(window, reserve, self.compact_at, self.compact_to, self.keep_recent_tokens, mode);
        if let (Some(economy), None) = (&self.economy, self.keep_recent_tokens) {
            budget.tail = budget.tail.min(economy.floor_tokens.max(1));
        }
        budget
    }
}

/// A checked policy. It holds nothing of any session and can serve many.
#[derive(Debug)]
pub struct Policy {
    config: PolicyConfig,
}

impl Policy {
    /// The parameters.
    #[must_use]
    pub const fn config(&self) -> &PolicyConfig {
        &self.config
    }

    /// The room in a window.
    #[must_use]
    pub fn budget(&self, window: u64, mode: Mode) -> TokenBudget {
        self.config.budget(window, mode, None)
    }

    /// The room in a window for a request that asks for up to `output_tokens` of output: the larger of that and an
    /// explicit `reserve_output_tokens` is kept free, and no more than half the window.
    ///
    /// ```
    /// use foreshorten_core::{Policy, budget::Mode};
    /// let policy = Policy::default();
    /// assert_eq!(policy.budget_for(200_000, Mode::Proactive, Some(64_000)).usable, 136_000);
    /// assert_eq!(policy.budget_for(200_000, Mode::Proactive, Some(1_000)).usable, 199_000);
    /// ```
    #[must_use]
    pub fn budget_for(&self, window: u64, mode: Mode, output_tokens: Option<u64>) -> TokenBudget {
        self.config.budget(window, mode, output_tokens)
    }
}

impl Default for Policy {
    /// The seeds' defaults.
    fn default() -> Self {
        Self { config: PolicyConfig::default() }
    }
}
