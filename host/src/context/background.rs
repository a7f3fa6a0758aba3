//! A pass prepared ahead of need.
//!
//! A task runs the pass on a copy of the decisions, summaries included, while the conversation goes on. What it gives
//! is a state; at the turn at which a pass is due it is joined into the session's, at once and whole, or it is dropped
//! when the session's decisions changed in the meantime. Only one is prepared at a time, and a session that goes away
//! takes it along.

use std::sync::{Arc, Mutex, PoisonError};

use foreshorten_core::state::Place;
use foreshorten_core::{
    CompactionNotice, CompactionState, Compactor, Policy, Turn, budget::Mode, transcript::Transcript as _,
};
use tokio::task::JoinHandle;

use super::PolicyUsage;
use super::compaction::{Compaction, Live};
use crate::plugin::Account;
use crate::provider::{Provider, Settings};
use crate::record::Record;
use crate::stores::ArchiveContext;
use crate::tool::ToolSpec;

/// When to prepare.
#[derive(Clone, Copy, Debug)]
pub(super) struct Background {
    /// Share of the trigger, in basis points.
    share: u64,
}

/// A pass that is being prepared, and the decisions it started from.
pub(super) struct Prepared {
    task: JoinHandle<Done>,
    base: Fingerprint,
}

impl Drop for Prepared {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the task gives.
struct Done {
    state: CompactionState,
    notice: Option<CompactionNotice>,
    usage: PolicyUsage,
    account: Account,
}

/// Decisions as far as it takes to see that there were others since, and the pins, which forbid some.
type Fingerprint = (u64, usize, usize, Vec<Place>);

fn fingerprint(state: &CompactionState) -> Fingerprint {
    (state.epoch(), state.records().len(), state.notes().len(), state.pins().to_vec())
}

/// The size of view at which a pass is due, where the window is known.
fn trigger(live: &Live, turn: &Turn<'_>) -> Option<u64> {
    let known = live.policy.config().context_window.or(turn.window);
    let learned = live.compactor.state().learned_window(turn.scope);
    let window = match (known, learned) {
        (Some(known), Some(learned)) => Some(known.min(learned)),
        (known, learned) => known.or(learned),
    }?;
    Some(live.policy.budget_for(window, Mode::Proactive, turn.output_tokens).trigger)
}

impl Background {
    pub(super) fn new(share_of_trigger: f64) -> Self {
        Self { share: (share_of_trigger * 10_000.0).clamp(1.0, 10_000.0) as u64 }
    }

    /// Takes the prepared pass in when one is due now, and waits for it when it is nearly there: a second summary of the
    /// same stretch would cost more than the wait.
    pub(super) async fn adopt(
        self,
        live: &mut Live,
        record: &Record,
        turn: &Turn<'_>,
        usage: &mut PolicyUsage,
        account: &Mutex<Account>,
    ) -> Option<CompactionNotice> {
        let spent = |done: &Done| account.lock().unwrap_or_else(PoisonError::into_inner).join(&done.account);
        let prepared = live.prepared.as_ref()?;
        if prepared.base != fingerprint(live.compactor.state()) {
            // It does not apply any more; what it cost was spent all the same.
            let mut dropped = live.prepared.take()?;
            if dropped.task.is_finished()
                && let Ok(done) = (&mut dropped.task).await
            {
                *usage += done.usage;
                spent(&done);
            }
            return None;
        }
        let tokens = live.compactor.tokens();
        let due = turn.overflow || turn.cache_cold || trigger(live, turn).is_some_and(|trigger| tokens >= trigger);
        if !due {
            return None;
        }
        let mut prepared = live.prepared.take()?;
        let done = (&mut prepared.task).await.ok()?;
        *usage += done.usage;
        spent(&done);
        let mut notice = done.notice?;
        let joined = live.compactor.state().clone().join(&done.state);
        live.compactor = Compactor::resume(Arc::clone(&live.policy), joined);
        live.compactor.sync(record);
        notice.tokens_before = tokens;
        notice.detail.push("prepared in the background".into());
        Some(notice)
    }

    /// Starts to prepare a pass when one will be due soon.
    #[expect(clippy::too_many_arguments, reason = "a task of its own takes everything along")]
    pub(super) fn prepare(
        self,
        policy: &Compaction,
        live: &mut Live,
        record: &Record,
        provider: &Arc<dyn Provider>,
        model: &str,
        tools: &[ToolSpec],
        settings: &Settings,
        context: ArchiveContext<'_>,
        turn: Turn<'_>,
    ) {
        let compactor = &live.compactor;
        let Some(trigger) = trigger(live, &turn) else { return };
        let soon = compactor.tokens().saturating_mul(10_000) >= trigger.saturating_mul(self.share);
        let steady = !compactor.outcome().compacted && !turn.overflow && compactor.tokens() < trigger;
        let base = fingerprint(compactor.state());
        if live.prepared.is_some() || !soon || !steady || record.is_empty() {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let job = Job {
            policy: Arc::clone(&live.policy),
            compaction: policy.clone(),
            state: compactor.state().clone(),
            record: record.clone(),
            provider: Arc::clone(provider),
            model: model.into(),
            tools: tools.into(),
            settings: settings.clone(),
            scope: turn.scope.into(),
            window: turn.window,
            schema_tokens: turn.schema_tokens,
            summarizer_window: turn.summarizer_window,
            can_summarize: turn.can_summarize,
            session: context.session.into(),
            run: context.run.into(),
        };
        live.prepared = Some(Prepared { task: runtime.spawn(job.prepare()), base });
    }
}

/// Everything a pass needs, owned.
struct Job {
    policy: Arc<Policy>,
    compaction: Compaction,
    state: CompactionState,
    record: Record,
    provider: Arc<dyn Provider>,
    model: String,
    tools: Vec<ToolSpec>,
    settings: Settings,
    scope: String,
    window: Option<u64>,
    schema_tokens: u64,
    summarizer_window: Option<u64>,
    can_summarize: bool,
    session: String,
    run: String,
}

impl Job {
    async fn prepare(self) -> Done {
        let mut usage = PolicyUsage::default();
        let mut compactor = Compactor::resume(Arc::clone(&self.policy), self.state);
        compactor.sync(&self.record);
        // As if the cache were cold: that lowers the trigger to half way between target and trigger.
        let turn = Turn {
            window: self.window,
            scope: &self.scope,
            schema_tokens: self.schema_tokens,
            cache_cold: true,
            summarizer_window: self.summarizer_window,
            can_summarize: self.can_summarize,
            output_tokens: self.settings.max_tokens,
            ..Turn::default()
        };
        compactor.begin(&self.record, turn);
        let context = ArchiveContext::new(&self.session, &self.run);
        let (compaction, settings) = (&self.compaction, &self.settings);
        let mut effects =
            compaction.effects(&self.record, &self.provider, &self.model, &self.tools, settings, context, &mut usage);
        effects.window = self.policy.config().context_window.or(self.window);
        if effects.settle(&mut compactor).await.is_err() {
            // A required plugin failed: nothing was prepared, and the turn will find out for itself.
            let account = effects.plugins_account();
            return Done { state: compactor.state().clone(), notice: None, usage, account };
        }
        let notice = compactor.outcome().compacted.then(|| compactor.outcome().notice.clone()).flatten();
        let account = effects.plugins_account();
        Done { state: compactor.state().clone(), notice, usage, account }
    }
}
