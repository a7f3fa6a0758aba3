//! The default policy: view-only compaction.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use foreshorten_core::{
    CompactionState, Compactor, ConfigError, Policy, PolicyConfig, Turn,
    budget::{Economy, Watermark},
    estimate::{ByteEstimator, Weigher},
    plan::ToolRule,
};

use super::background::{Background, Prepared};
use super::effects::Effects;
use super::recipe::{Made, Recipe, StageSpec, WeigherChoice};
use super::{
    CompactionRequest, ContextPolicy, ContextResult, ManualAct, Occasion, PolicyError, PolicyUsage, STATE_KEY, Scratch,
};
use crate::formats::Format;
use crate::plugin::{Reloading, Required, StagePlugin};
use crate::provider::{Provider, Settings};
use crate::record::Record;
use crate::stores::{ArchiveContext, CompactionArchive, ResultStore};
use crate::summarizer::{LlmSummarizer, Summarizer};
use crate::tool::{ToolSpec, Tools, make_recall_tool};
use crate::view::View;

/// View-only compaction: the record is kept whole, the view shrinks in cheap-first stages.
///
/// Built with the seeds' parameters; what is not said keeps its default. One instance serves any number of sessions
/// and models: everything about a session is in its scratch.
///
/// ```
/// use foreshorten::context::Compaction;
/// let policy = Compaction::new().context_window(200_000).compact_at(0.85).compact_to(0.60).build()?;
/// # Ok::<(), foreshorten_core::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Compaction {
    recipe: Recipe,
    made: Arc<Made>,
    summarizer: Option<Arc<dyn Summarizer>>,
    store: Option<Arc<dyn ResultStore>>,
    archive: Option<Arc<dyn CompactionArchive>>,
    background: Option<Background>,
}

impl Default for Compaction {
    fn default() -> Self {
        Self {
            recipe: Recipe::default(),
            made: Arc::default(),
            summarizer: Some(Arc::new(LlmSummarizer::new())),
            store: None,
            archive: None,
            background: None,
        }
    }
}

impl std::fmt::Debug for Compaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compaction")
            .field("recipe", &self.recipe)
            .field("summarizer", &self.summarizer.is_some())
            .field("store", &self.store.is_some())
            .field("archive", &self.archive.is_some())
            .field("background", &self.background)
            .finish()
    }
}

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

    /// Who writes summaries. Default: [`LlmSummarizer`], on the run's own provider.
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

    fn policy(&self, provider: &dyn Provider, model: &str, scratch: &mut Scratch) -> Result<Arc<Policy>, PolicyError> {
        self.made.policy(&self.recipe, provider, model, begun(scratch)).map_err(PolicyError::Config)
    }

    /// The compactor of a session: the one kept live, or one resumed from the stored state.
    fn open(&self, policy: Arc<Policy>, record: &Record, scratch: &mut Scratch) -> Live {
        let live = scratch.take_live::<Live>().filter(|live| {
            Arc::ptr_eq(&live.policy, &policy)
                && live.compactor.columns().len() <= foreshorten_core::transcript::Transcript::len(record)
        });
        let mut live = live.unwrap_or_else(|| Live::resume(policy, scratch));
        live.compactor.sync(record);
        live
    }

    /// Who answers what the core asks for.
    #[expect(clippy::too_many_arguments, reason = "what a summarizer may look at, each by its name")]
    pub(super) fn effects<'a>(
        &'a self,
        record: &'a Record,
        provider: &'a Arc<dyn Provider>,
        model: &'a str,
        tools: &'a [ToolSpec],
        settings: &'a Settings,
        context: ArchiveContext<'a>,
        usage: &'a mut PolicyUsage,
    ) -> Effects<'a> {
        Effects {
            record,
            provider,
            model,
            tools,
            settings,
            window: None,
            focus: None,
            summarizer: self.summarizer.as_deref(),
            extractive: self.recipe.extractive_fallback,
            max_failures: self.recipe.max_failures(),
            plugins: self.recipe.plugins(),
            account: Mutex::default(),
            store: self.store.as_deref(),
            archive: self.archive.as_deref(),
            context,
            usage,
            summary_failures: Vec::new(),
            archive_failures: 0,
            overflows: 0,
            named_window: None,
        }
    }

    fn close(live: Live, scratch: &mut Scratch) {
        scratch.meta.0.insert(STATE_KEY.into(), live.compactor.state().encode());
        scratch.put_live(live);
    }
}

/// What is kept between turns so that a turn costs what is new.
pub(super) struct Live {
    pub(super) policy: Arc<Policy>,
    pub(super) compactor: Compactor<Arc<Policy>>,
    pub(super) prepared: Option<Prepared>,
    /// How much of what happened to reloading plugins this session was told, by name.
    told: Option<HashMap<String, u64>>,
}

/// All of what happened to a plugin so far.
fn heard(plugin: &Reloading<StagePlugin>) -> (String, u64) {
    (plugin.name().to_owned(), plugin.happened())
}

impl Live {
    /// What is stored may be damaged or from another version: that means a new beginning, never an error.
    fn resume(policy: Arc<Policy>, scratch: &Scratch) -> Self {
        let compactor = match stored(scratch) {
            Some(state) => Compactor::resume(Arc::clone(&policy), state),
            None => Compactor::new(Arc::clone(&policy)),
        };
        Self { policy, compactor, prepared: None, told: None }
    }
}

/// The rule by which a session that has begun was weighed.
fn begun(scratch: &mut Scratch) -> Option<ByteEstimator> {
    match scratch.take_live::<Live>() {
        Some(live) => {
            let begun = live.compactor.state().estimator();
            scratch.put_live(live);
            begun
        }
        None => stored(scratch)?.estimator(),
    }
}

/// The state as it was stored last, unless it is damaged or from another version.
fn stored(scratch: &Scratch) -> Option<CompactionState> {
    scratch.meta.0.get(STATE_KEY).and_then(|bytes| CompactionState::decode(bytes).ok())
}

/// Where the state before the last pass is kept.
const BEFORE_KEY: &str = "context_before";

/// The (endpoint, model) that windows are learned for.
pub(crate) fn scope(provider: &dyn Provider, model: &str) -> String {
    format!("{} {model}", provider.endpoint())
}

/// Tokens of tool schemas: what the request carries besides the conversation.
fn schema_tokens(weigher: &Weigher, tools: &[ToolSpec], format: Option<Format>) -> u64 {
    let format = format.unwrap_or(Format::OpenAiChat);
    tools.iter().map(|tool| u64::from(weigher.framed(&tool.to_json(format).to_string()))).sum()
}

#[async_trait]
impl ContextPolicy for Compaction {
    async fn compact(&self, request: CompactionRequest<'_>) -> Result<ContextResult, PolicyError> {
        let CompactionRequest { record, provider, model, scratch, usage, .. } = request;
        let policy = self.policy(&**provider, model, scratch)?;
        let config = policy.config();
        let scope = scope(&**provider, model);
        let turn = Turn {
            window: request.window,
            scope: &scope,
            schema_tokens: schema_tokens(&config.weigher, request.tools, provider.format()),
            overflow: request.overflow,
            reported_window: request.reported_window,
            cache_cold: request.cache_cold,
            manual: request.occasion != Occasion::Turn,
            summarizer_window: self.summarizer.as_ref().and_then(|summarizer| summarizer.window()),
            can_summarize: self.summarizer.is_some() || self.recipe.extractive_fallback,
            output_tokens: request.settings.max_tokens,
        };
        let context = ArchiveContext::new(request.session, request.run);
        if request.occasion != Occasion::DryRun {
            self.recipe.reloading().for_each(|plugin| drop(plugin.at_turn()));
        }
        let mut effects = self.effects(record, provider, model, request.tools, request.settings, context, usage);
        effects.window = config.context_window.or(request.window);
        if let Occasion::Manual(focus) = request.occasion {
            effects.focus = focus;
        }
        if request.occasion == Occasion::DryRun {
            // On a copy, and with nobody asked: what a model would write is stood in for by an extract.
            let mut live = self.open(Arc::clone(&policy), record, scratch);
            let mut copy = Compactor::resume(Arc::clone(&policy), live.compactor.state().clone());
            scratch.put_live(std::mem::replace(&mut live, Live::resume(Arc::clone(&policy), &Scratch::default())));
            copy.sync(record);
            copy.begin(record, Turn { can_summarize: true, ..turn });
            effects.nobody_asked();
            effects.settle(&mut copy).await.map_err(required)?;
            return Ok(effects.result(&copy, None));
        }
        let mut live = self.open(Arc::clone(&policy), record, scratch);
        let told = live.told.get_or_insert_with(|| self.recipe.reloading().map(heard).collect());
        let (news, told) = self.recipe.news(told);
        if let Some(tokens) = request.last_input_tokens {
            // Refused when it was taken in already, or cannot be a count of that view.
            let _ = live.compactor.handle_usage(tokens);
        }
        let adopted = match &self.background {
            Some(background) => background.adopt(&mut live, record, &turn, effects.usage, &effects.account).await,
            None => None,
        };
        live.compactor.begin(record, turn);
        if let Err(failed) = effects.settle(&mut live.compactor).await {
            // The breaker remembers, and the next turn begins anew.
            Self::close(live, scratch);
            return Err(required(failed));
        }
        let mut result = effects.result(&live.compactor, adopted);
        if let Some(notice) = result.notice.as_mut().filter(|_| result.compacted) {
            // Said with the next pass, since that is when people look.
            notice.detail.extend(news.iter().cloned());
            result.detail.extend(news);
            live.told = Some(told);
        }
        if result.compacted
            && let Some(archive) = &self.archive
        {
            let reason = result.reason.as_deref().unwrap_or_default();
            match archive.save_transcript(record, ArchiveContext::new(request.session, request.run), reason).await {
                Ok(at) => result.archive = Some(at),
                Err(error) => {
                    tracing::warn!(%error, "the transcript could not be archived");
                    result.archive_failures += 1;
                }
            }
        }
        if let Some(named) = result.named_window {
            live.compactor.learn_window(&scope, named);
        }
        if let Some(background) = &self.background {
            let settings = request.settings;
            background.prepare(self, &mut live, record, provider, model, request.tools, settings, context, turn);
        }
        if result.compacted {
            // What the state was before this pass: where undoing it leads to.
            let before = scratch.meta.0.get(STATE_KEY).cloned().unwrap_or_default();
            scratch.meta.0.insert(BEFORE_KEY.into(), before);
        }
        Self::close(live, scratch);
        Ok(result)
    }

    fn tools(&self) -> Tools {
        if self.recipe.recall_tool { vec![make_recall_tool(self.store.clone())] } else { Tools::new() }
    }

    fn wants_window(&self) -> bool {
        self.recipe.context_window.is_none()
    }

    fn observe(&self, record: &Record, scratch: &mut Scratch, input_tokens: u64) {
        let Some(mut live) = scratch.take_live::<Live>() else { return };
        if live.compactor.handle_usage(input_tokens).is_err() {
            tracing::debug!(input_tokens, "a usage figure that cannot be a count of the last view was not taken");
        }
        live.compactor.sync(record);
        Self::close(live, scratch);
    }

    fn act(&self, record: &Record, scratch: &mut Scratch, act: ManualAct) -> Result<(), PolicyError> {
        let mut live = match scratch.take_live::<Live>() {
            Some(live) => live,
            // No model is known here; the session goes on as it was weighed.
            None => {
                let bytes = begun(scratch).unwrap_or_default();
                let policy = self.recipe.build(bytes, None).map_err(PolicyError::Config)?;
                Live::resume(Arc::new(policy), scratch)
            }
        };
        live.compactor.sync(record);
        let done = match act {
            ManualAct::Pin(entry) => live
                .compactor
                .pin(entry)
                .map_err(|why| PolicyError::Other(format!("entry {entry} cannot be pinned: {why}"))),
            ManualAct::Unpin(entry) => {
                live.compactor.unpin(entry);
                Ok(())
            }
            ManualAct::Undo => {
                let before = scratch.meta.0.remove(BEFORE_KEY);
                let before = before.and_then(|bytes| CompactionState::decode(&bytes).ok()).unwrap_or_default();
                live.compactor.undo_to(record, &before);
                Ok(())
            }
            ManualAct::UndoAll => {
                scratch.meta.0.remove(BEFORE_KEY);
                live.compactor.undo_all(record);
                Ok(())
            }
        };
        Self::close(live, scratch);
        done
    }
}

/// A turn that a required plugin does not let go on.
fn required(failed: Required) -> PolicyError {
    PolicyError::Other(failed.to_string())
}

/// The view as the compactor has it now.
pub(super) fn view_of(compactor: &Compactor<Arc<Policy>>) -> View {
    View::rendered(compactor.view(), compactor.columns())
}
