//! What a policy is made of, so that it can be made for each model's own way of counting.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use foreshorten_core::{
    ConfigError, PipelineStage, Policy, PolicyConfig,
    budget::{Economy, Watermark},
    estimate::{ByteEstimator, TokenEstimator, Weigher},
    marker::{MarkerStyle, SUMMARY_WRAPPER},
    plan::{ClearToolResults, OffloadToolResults, Stage, StageContext, SummarizeHistory, ToolRule},
};

use crate::plugin::{Reloading, StagePlugin, Stages};
use crate::provider::Provider;

/// A stage that several policies share.
#[derive(Clone)]
pub struct SharedStage(pub Arc<dyn Stage + Send + Sync>);

impl Stage for SharedStage {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn plan(&self, ctx: &mut StageContext<'_>) {
        self.0.plan(ctx);
    }

    fn wants_pass(&self, entries: usize) -> bool {
        self.0.wants_pass(entries)
    }
}

/// One step of a pipeline.
#[derive(Clone)]
#[non_exhaustive]
pub enum StageSpec {
    /// A stage that plans in this process, built in or your own.
    Plan(SharedStage),
    /// The summary.
    Summarize(SummarizeHistory),
    /// A plugin. Two of one name in a pipeline are one.
    External(Arc<StagePlugin>),
    /// A plugin that is loaded again when its file changes: at the boundary of a turn, and the notice of the next pass
    /// says so.
    Reloading(Reloading<StagePlugin>),
}

impl StageSpec {
    /// A stage, built in or your own.
    #[must_use]
    pub fn plan(stage: impl Stage + Send + Sync + 'static) -> Self {
        Self::Plan(SharedStage(Arc::new(stage)))
    }

    /// The seeds' three: offload, clear, summarize.
    #[must_use]
    pub fn default_pipeline() -> Vec<Self> {
        vec![
            Self::plan(OffloadToolResults::default()),
            Self::plan(ClearToolResults::default()),
            Self::Summarize(SummarizeHistory::default()),
        ]
    }

    fn build(&self, max_failures: Option<u32>) -> PipelineStage {
        match self {
            Self::Plan(stage) => PipelineStage::plan(stage.clone()),
            Self::External(plugin) => PipelineStage::External(plugin.name().into()),
            Self::Reloading(plugin) => PipelineStage::External(plugin.name().into()),
            Self::Summarize(stage) => PipelineStage::Summarize(SummarizeHistory {
                max_failures: max_failures.unwrap_or(stage.max_failures),
                ..*stage
            }),
        }
    }
}

impl fmt::Debug for StageSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(stage) => f.debug_tuple("Plan").field(&stage.name()).finish(),
            Self::Summarize(stage) => stage.fmt(f),
            Self::External(plugin) => plugin.fmt(f),
            Self::Reloading(plugin) => plugin.active().fmt(f),
        }
    }
}

/// How text is weighed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WeigherChoice {
    /// The provider's own estimator where it has one, else the table of the tokenizer family of the model that a session
    /// begins with. A session keeps it when its model changes: its decisions are measured by one rule, and the first
    /// count of the new model says more than another table.
    #[default]
    Auto,
    /// One rule for all models, by name: `bytes4`, or a family.
    Named(ByteEstimator),
}

/// All parameters of a policy but how it counts.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    pub(super) context_window: Option<u64>,
    pub(super) compact_at: Watermark,
    pub(super) compact_to: Watermark,
    pub(super) keep_recent_tokens: Option<u64>,
    pub(super) economy: Option<Economy>,
    pub(super) fold_without_summary: bool,
    pub(super) reserve_output_tokens: Option<u64>,
    pub(super) stages: Vec<StageSpec>,
    pub(super) image_tokens: u32,
    pub(super) weigher: WeigherChoice,
    pub(super) summary_wrapper: String,
    pub(super) tools: Vec<(String, ToolRule)>,
    pub(super) min_gain_percent: u8,
    pub(super) recall_tool: bool,
    pub(super) archive: bool,
    /// The extract stands in when the breaker is open, so the core must go on asking.
    pub(super) extractive_fallback: bool,
}

impl Default for Recipe {
    fn default() -> Self {
        let seeds = PolicyConfig::default();
        Self {
            context_window: None,
            compact_at: seeds.compact_at,
            compact_to: seeds.compact_to,
            keep_recent_tokens: None,
            economy: None,
            fold_without_summary: seeds.fold_without_summary,
            reserve_output_tokens: None,
            stages: StageSpec::default_pipeline(),
            image_tokens: seeds.weigher.image_tokens,
            weigher: WeigherChoice::Auto,
            summary_wrapper: SUMMARY_WRAPPER.into(),
            tools: Vec::new(),
            min_gain_percent: seeds.min_gain_percent,
            recall_tool: true,
            archive: false,
            extractive_fallback: false,
        }
    }
}

/// The provider's estimator as the core takes it.
struct Counter(Arc<dyn TokenEstimator + Send + Sync>);

impl TokenEstimator for Counter {
    fn count(&self, text: &str) -> Option<u32> {
        self.0.count(text)
    }
}

impl Recipe {
    pub(super) fn build(
        &self,
        bytes: ByteEstimator,
        exact: Option<Arc<dyn TokenEstimator + Send + Sync>>,
    ) -> Result<Policy, ConfigError> {
        let defaults = Weigher::default();
        let max_failures = self.extractive_fallback.then_some(u32::MAX);
        PolicyConfig {
            context_window: self.context_window,
            compact_at: self.compact_at,
            compact_to: self.compact_to,
            keep_recent_tokens: self.keep_recent_tokens,
            economy: self.economy,
            fold_without_summary: self.fold_without_summary,
            reserve_output_tokens: self.reserve_output_tokens,
            stages: self.stages.iter().map(|stage| stage.build(max_failures)).collect(),
            weigher: Weigher {
                bytes,
                image_tokens: self.image_tokens,
                exact: exact.map(|counter| Box::new(Counter(counter)) as _),
                ..defaults
            },
            style: MarkerStyle { recall_tool: self.recall_tool },
            summary_wrapper: self.summary_wrapper.clone(),
            tools: self.tools.clone(),
            may_condense: self.stages.iter().any(|stage| match stage {
                StageSpec::External(plugin) => plugin.may_condense(),
                StageSpec::Reloading(plugin) => plugin.may_condense(),
                StageSpec::Plan(_) | StageSpec::Summarize(_) => false,
            }),
            min_gain_percent: self.min_gain_percent,
            archive: self.archive,
        }
        .build()
    }

    /// Failures in a row after which the summarizer is left alone for a while.
    pub(super) fn max_failures(&self) -> u32 {
        let own = |stage: &StageSpec| match stage {
            StageSpec::Summarize(stage) => Some(stage.max_failures),
            StageSpec::Plan(_) | StageSpec::External(_) | StageSpec::Reloading(_) => None,
        };
        self.stages.iter().find_map(own).unwrap_or(u32::MAX)
    }

    /// The plugins of the pipeline as they are now: a turn uses these, whatever is loaded meanwhile.
    pub(super) fn plugins(&self) -> Stages {
        let own = |stage: &StageSpec| match stage {
            StageSpec::External(plugin) => Some(Arc::clone(plugin)),
            StageSpec::Reloading(plugin) => Some(plugin.active()),
            StageSpec::Plan(_) | StageSpec::Summarize(_) => None,
        };
        self.stages.iter().filter_map(own).collect()
    }

    /// Lines about what happened to them since a session was last told, and what it will have been told with these.
    pub(super) fn news(&self, told: &HashMap<String, u64>) -> (Vec<String>, HashMap<String, u64>) {
        let mut lines = Vec::new();
        let mut now = HashMap::new();
        for plugin in self.reloading() {
            let since = told.get(plugin.name()).copied().unwrap_or_else(|| plugin.happened());
            let (new, happened) = plugin.news(since);
            lines.extend(new);
            now.insert(plugin.name().to_owned(), happened);
        }
        (lines, now)
    }

    /// Those that are loaded again when their files change.
    pub(super) fn reloading(&self) -> impl Iterator<Item = &Reloading<StagePlugin>> {
        self.stages.iter().filter_map(|stage| match stage {
            StageSpec::Reloading(plugin) => Some(plugin),
            _ => None,
        })
    }
}

/// The policies made from one recipe, one for each way of counting.
#[derive(Debug, Default)]
pub(super) struct Made(Mutex<HashMap<(String, u8), Arc<Policy>>>);

impl Made {
    /// The policy for a model at a provider, for a session that was weighed by `begun` so far. Policies of one recipe and
    /// one way of counting are one.
    pub(super) fn policy(
        &self,
        recipe: &Recipe,
        provider: &dyn Provider,
        model: &str,
        begun: Option<ByteEstimator>,
    ) -> Result<Arc<Policy>, ConfigError> {
        let (bytes, exact) = match recipe.weigher {
            WeigherChoice::Named(bytes) => (bytes, None),
            WeigherChoice::Auto => (begun.unwrap_or_else(|| ByteEstimator::for_model(model)), provider.estimator()),
        };
        let whose = if exact.is_some() { provider.endpoint().to_owned() } else { String::new() };
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(policy) = made.get(&(whose.clone(), bytes.id())) {
            return Ok(Arc::clone(policy));
        }
        let policy = Arc::new(recipe.build(bytes, exact)?);
        made.insert((whose, bytes.id()), Arc::clone(&policy));
        Ok(policy)
    }
}
