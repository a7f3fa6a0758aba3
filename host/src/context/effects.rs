//! The async loop around the core: answers what it asks for.

use std::sync::{Arc, Mutex, PoisonError};

use foreshorten_core::{
    Compactor, Effect, Outcome, Policy, Step, SummaryFailure, SummaryReply, SummaryRequest, digest::Digest,
    notice::CompactionNotice, summary::extractive_summary,
};

use super::compaction::view_of;
use super::{ContextResult, PolicyUsage};
use crate::drive::EXTRACT_CHARS;
use crate::plugin::{Account, Metrics, Required, Stages};
use crate::provider::{Provider, Settings};
use crate::record::Record;
use crate::stores::{ArchiveContext, CompactionArchive, ResultStore, Stored};
use crate::summarizer::{Summarizer, SummaryAsk, SummaryError};
use crate::tool::ToolSpec;

/// Who answers effects, and what came of it.
pub(super) struct Effects<'a> {
    pub(super) record: &'a Record,
    pub(super) provider: &'a Arc<dyn Provider>,
    pub(super) model: &'a str,
    pub(super) tools: &'a [ToolSpec],
    pub(super) settings: &'a Settings,
    pub(super) window: Option<u64>,
    pub(super) focus: Option<&'a str>,
    pub(super) summarizer: Option<&'a dyn Summarizer>,
    pub(super) extractive: bool,
    pub(super) max_failures: u32,
    /// Stages of others, as they were when the turn began.
    pub(super) plugins: Stages,
    /// What plugins did.
    pub(super) account: Mutex<Account>,
    pub(super) store: Option<&'a dyn ResultStore>,
    pub(super) archive: Option<&'a dyn CompactionArchive>,
    pub(super) context: ArchiveContext<'a>,
    pub(super) usage: &'a mut PolicyUsage,
    pub(super) summary_failures: Vec<String>,
    pub(super) archive_failures: u32,
    pub(super) overflows: u32,
    pub(super) named_window: Option<u64>,
}

impl Effects<'_> {
    /// From here on no model is asked and nothing is stored.
    pub(super) const fn nobody_asked(&mut self) {
        (self.summarizer, self.store, self.archive) = (None, None, None);
        self.extractive = true;
    }

    /// Polls until the view is ready.
    ///
    /// # Errors
    /// A plugin failed that is required.
    pub(super) async fn settle(&mut self, compactor: &mut Compactor<Arc<Policy>>) -> Result<(), Required> {
        loop {
            let effect = match compactor.poll(self.record) {
                Step::Done(_) => return Ok(()),
                Step::Effect(effect) => effect,
            };
            match effect {
                Effect::Summarize(request) => self.summarize(compactor, &request).await,
                Effect::Archive { entry, digest } => {
                    let stored = self.keep(entry, digest).await;
                    compactor.handle_archived(stored);
                }
                Effect::RunStage { name } => match self.plugins.get(&name) {
                    Some(plugin) => {
                        let mut call = Metrics::default();
                        let ran = plugin.run_async_counted(compactor, self.record, &mut call).await;
                        self.account.lock().unwrap_or_else(PoisonError::into_inner).add(&name, &call);
                        ran?;
                    }
                    None => compactor.abandon_stage(&format!("{name}: there is no such plugin; left out")),
                },
                _ => compactor.handle_proposals(self.record, Vec::new()),
            }
        }
    }

    async fn summarize(&mut self, compactor: &mut Compactor<Arc<Policy>>, request: &SummaryRequest) {
        let state = compactor.state();
        let closed = state.breaker().allows(state.turn(), self.max_failures) || request.aggressive;
        let (Some(summarizer), true) = (self.summarizer, closed) else {
            if self.extractive {
                let most = (request.max_chars as usize).min(EXTRACT_CHARS);
                let guard = compactor.guard(self.record);
                let text = extractive_summary(&guard, &request.entries, request.prior.as_deref(), most);
                compactor.handle_extract(self.record, text);
            } else {
                compactor.handle_summary(self.record, Err(SummaryFailure::Failed));
            }
            return;
        };
        let view = view_of(compactor);
        let ask = SummaryAsk {
            request,
            focus: self.focus,
            record: self.record,
            view: &view,
            provider: self.provider,
            model: self.model,
            tools: self.tools,
            settings: self.settings,
            window: self.window,
            view_tokens: compactor.tokens(),
            overflows: self.overflows,
            account: &self.account,
        };
        self.usage.calls += 1;
        let reply = match summarizer.summarize(ask).await {
            Ok(summary) => {
                self.usage.tokens += summary.usage;
                Ok(SummaryReply { text: summary.text, finish: summary.finish })
            }
            Err(error) => {
                self.usage.failed += 1;
                tracing::warn!(%error, "a summary failed");
                self.summary_failures.push(error.to_string());
                Err(match error {
                    SummaryError::Overflow(named) => {
                        self.overflows += 1;
                        self.named_window = named.or(self.named_window);
                        SummaryFailure::Overflow
                    }
                    _ => SummaryFailure::Failed,
                })
            }
        };
        compactor.handle_summary(self.record, reply);
    }

    /// Keeps the content of an entry; a store that fails is said, and never blocks a turn.
    async fn keep(&mut self, entry: usize, digest: Digest) -> bool {
        let content = Stored::of(self.record, entry);
        let mut kept = true;
        if let Some(store) = self.store
            && let Err(error) = store.put(&digest, &content).await
        {
            tracing::warn!(%error, %digest, "a result could not be stored");
            kept = false;
        }
        if let Some(archive) = self.archive {
            let call_id = self.record.get(entry).map_or("", |entry| entry.call_id.as_str());
            if let Err(error) = archive.save_tool_result(&content, call_id, self.context).await {
                tracing::warn!(%error, call_id, "a result could not be archived");
                kept = false;
            }
        }
        self.archive_failures += u32::from(!kept);
        kept
    }

    /// What the turn came to, as policies say it. `adopted` is the notice of a pass that was prepared ahead.
    pub(super) fn result(
        &mut self,
        compactor: &Compactor<Arc<Policy>>,
        adopted: Option<CompactionNotice>,
    ) -> ContextResult {
        let outcome = compactor.outcome();
        let view = view_of(compactor);
        let whole = view
            .pieces()
            .enumerate()
            .all(|(at, piece)| matches!(piece, foreshorten_core::view::Piece::Entry { entry } if entry == at))
            && view.len() == compactor.columns().len();
        let compacted = outcome.compacted || adopted.is_some();
        let notice = joined(adopted, outcome);
        let reason = match &notice {
            Some(notice) if compacted => {
                let before = if notice.aggressive { "reactive_" } else { "" };
                Some(format!("{before}{}", notice.reasons.join("+")))
            }
            _ => (!whole).then(|| "sticky_replay".into()),
        };
        ContextResult {
            view,
            changed: !whole,
            compacted,
            reason,
            summary: notice.as_ref().and_then(|notice| notice.summary.clone()),
            detail: notice.as_ref().map(|notice| notice.detail.clone()).unwrap_or_default(),
            tokens_before: Some(notice.as_ref().map_or(outcome.tokens_before, |notice| notice.tokens_before)),
            tokens_after: Some(outcome.tokens_after),
            notice,
            calibrated: compactor.state().calibration().evidence() > 0,
            retry: outcome.retry,
            cannot_fit: outcome.cannot_fit,
            window: outcome.budget.map(|budget| budget.window),
            usable: outcome.budget.map(|budget| budget.usable),
            history: Some(outcome.attachment.history),
            epoch: compactor.state().epoch(),
            archive: None,
            archive_failures: self.archive_failures,
            summary_failures: std::mem::take(&mut self.summary_failures),
            named_window: self.named_window,
            plugins: self.plugins_account(),
        }
    }

    /// What plugins did since it was last asked.
    pub(super) fn plugins_account(&mut self) -> Account {
        std::mem::take(self.account.get_mut().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One notice for what was prepared ahead and what was decided on top of it.
fn joined(adopted: Option<CompactionNotice>, outcome: &Outcome) -> Option<CompactionNotice> {
    let Some(mut first) = adopted else { return outcome.notice.clone() };
    if let Some(second) = &outcome.notice {
        for reason in &second.reasons {
            if !first.reasons.contains(reason) {
                first.reasons.push(reason.clone());
            }
        }
        first.aggressive |= second.aggressive;
        first.last_resort |= second.last_resort;
        first.resent_tokens = first.resent_tokens.max(second.resent_tokens);
        first.detail.extend(second.detail.iter().cloned());
        first.first_changed = first.first_changed.min(second.first_changed);
        first.prefix_kept_percent = first.prefix_kept_percent.min(second.prefix_kept_percent);
        (first.verbatim_tokens, first.verbatim_percent) = (second.verbatim_tokens, second.verbatim_percent);
        first.summary = second.summary.clone().or(first.summary);
        first.summary_calls += second.summary_calls;
        let (a, b) = (&mut first.decided, second.decided);
        a.elided += b.elided;
        a.condensed += b.condensed;
        a.offloaded += b.offloaded;
        a.cleared += b.cleared;
        a.covered += b.covered;
        a.shortened += b.shortened;
    }
    first.tokens_after = outcome.tokens_after;
    Some(first)
}
