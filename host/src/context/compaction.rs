//! The default policy: view-only compaction.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use foreshorten_core::{
    CompactionState, Compactor, Policy, Turn,
    estimate::{ByteEstimator, Weigher},
};

use super::background::{Background, Prepared};
use super::effects::Effects;
use super::recipe::{Made, Recipe};
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
    pub(super) recipe: Recipe,
    pub(super) made: Arc<Made>,
    pub(super) summarizer: Option<Arc<dyn Summarizer>>,
    pub(super) store: Option<Arc<dyn ResultStore>>,
    pub(super) archive: Option<Arc<dyn CompactionArchive>>,
    pub(super) background: Option<Background>,
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

impl Compaction {
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
