//! A run: turns until the model is done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foreshorten_core::transcript::{EntryKind, Part};
use foreshorten_core::view::Piece;
use tracing::Instrument as _;

use super::truncation::{Sent, look};
use super::{Agent, ContextCompacted, Event, RunError, RunOutcome, Runner, Session, Stopped};
use crate::context::{CompactionRequest, ContextPolicy, ContextResult, Occasion, scope};
use crate::provider::{Delta, FinishReason, ModelReply, ModelRequest, ProviderError, Rejection, Settings};
use crate::record::Message;
use crate::tool::{ToolSpec, Tools};
use crate::window::{KnownWindow, WindowSource};

/// Everything that stays the same during a run.
pub(super) struct Posture<'a> {
    pub(super) agent: &'a Agent,
    pub(super) policy: &'a Arc<dyn ContextPolicy>,
    pub(super) tools: Tools,
    pub(super) specs: Vec<ToolSpec>,
    /// Everything but the view that a count depends on.
    counted_with: String,
}

impl<'a> Posture<'a> {
    pub(super) fn new(agent: &'a Agent, policy: Option<&'a Arc<dyn ContextPolicy>>) -> Self {
        let policy = policy.unwrap_or(&agent.policy);
        let (tools, specs) = agent.toolbox(&**policy);
        let counted_with = format!("{} {specs:?} {:?}", scope(&*agent.provider, &agent.model), agent.settings.extra);
        Self { agent, policy, tools, specs, counted_with }
    }
}

impl Runner {
    /// Takes in what the user says and lets the agent work until it is done.
    ///
    /// # Errors
    /// Why the run gave up. What was recorded stays; [`resume`](Self::resume) goes on with it.
    pub async fn run(&self, agent: &Agent, session: &mut Session, input: Message) -> Result<RunOutcome, RunError> {
        self.run_with(agent, session, Some(input), None).await
    }

    /// Goes on with a run that was dropped or gave up, without new input.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub async fn resume(&self, agent: &Agent, session: &mut Session) -> Result<RunOutcome, RunError> {
        self.run_with(agent, session, None, None).await
    }

    /// A run with another context policy than the agent's.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub async fn run_with(
        &self,
        agent: &Agent,
        session: &mut Session,
        input: Option<Message>,
        policy: Option<&Arc<dyn ContextPolicy>>,
    ) -> Result<RunOutcome, RunError> {
        let span = tracing::info_span!(
            "invoke_agent",
            gen_ai.operation.name = "invoke_agent",
            gen_ai.conversation.id = %session.id,
            gen_ai.request.model = %agent.model,
        );
        let posture = Posture::new(agent, policy);
        self.work(&posture, session, input).instrument(span).await
    }

    async fn work(
        &self,
        posture: &Posture<'_>,
        session: &mut Session,
        input: Option<Message>,
    ) -> Result<RunOutcome, RunError> {
        self.reopen(session).await?;
        session.set_system(posture.agent.system.as_deref());
        session.run = run_id();
        session.joined = 0;
        let mut outcome = RunOutcome::default();
        if let Some(input) = input {
            self.step(session, &**posture.policy, vec![Arc::new(input)], false).await?;
        }
        while outcome.rounds < posture.agent.max_rounds {
            outcome.rounds += 1;
            let reply = self.turn(posture, session, &mut outcome).await?;
            let messages: Vec<Arc<Message>> = reply.messages.into_iter().map(Arc::new).collect();
            let texts = messages.iter().map(|message| message.text_of(EntryKind::Assistant));
            outcome.text = texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
            self.step(session, &**posture.policy, messages.clone(), false).await?;
            let called = self.call_tools(posture, session, &messages).await?;
            if !called && reply.finish != FinishReason::Paused {
                outcome.stopped = Stopped::Finished(reply.finish);
                break;
            }
        }
        self.step(session, &**posture.policy, Vec::new(), true).await?;
        outcome.joined = session.joined;
        Ok(outcome)
    }

    /// One model call, with as many views as it takes.
    async fn turn(
        &self,
        posture: &Posture<'_>,
        session: &mut Session,
        outcome: &mut RunOutcome,
    ) -> Result<ModelReply, RunError> {
        let agent = posture.agent;
        let cold = session.idle().is_some_and(|idle| idle > self.cache_lifetime);
        // Twice in a row a prompt seems to have been cut: the next view is made smaller, as after a rejection.
        let pressed = session.truncated >= 2;
        let mut ask = Ask { overflow: pressed, reported: None, cold };
        let (mut retries, mut shrinks) = (agent.overflow_retries, agent.shrink_retries);
        if pressed {
            session.truncated = 0;
        }
        let mut result = self.view(posture, session, outcome, &ask).await?;
        let mut output_cap = None;
        loop {
            let settings = settings_for(&agent.settings, &result, output_cap);
            let grown_from = session.last_count.filter(|_| grew(session, posture, &result));
            let sent = Sent {
                estimated: result.tokens_after.unwrap_or_default(),
                grown_from,
                max_tokens: settings.max_tokens,
                flat: has_media(session, &result),
            };
            session.called();
            let answer = {
                let request = ModelRequest::new(&agent.model, &session.record, &result.view, &settings)
                    .with_tools(&posture.specs);
                agent.provider.complete(&request, &|delta| self.tell_delta(&session.id, delta)).await
            };
            let rejection = match answer {
                Ok(reply) => {
                    self.take_in(posture, session, outcome, &reply, &result, sent);
                    session.last_view = result.view;
                    return Ok(reply);
                }
                Err(ProviderError::Overflow(rejection)) if believed(&rejection, &result) => rejection,
                Err(error) => return Err(error.into()),
            };
            outcome.rejections += 1;
            let assumed = result.window;
            let smaller = match (rejection.window, assumed) {
                (Some(named), Some(assumed)) => named < assumed,
                (Some(_), None) => true,
                _ => false,
            };
            match (rejection.window, result.tokens_after) {
                (Some(named), _) => {
                    self.windows.learn(agent.provider.endpoint(), &agent.model, named);
                    self.know(session, KnownWindow { tokens: named, source: WindowSource::Named });
                }
                // It names nothing. What is known is that a prompt of this size does not fit.
                (None, Some(tokens)) if !rejection.uncertain => {
                    let output = settings.max_tokens.filter(|_| rejection.with_output).unwrap_or_default();
                    session.refused_at(&scope(&*agent.provider, &agent.model), tokens.saturating_add(output));
                }
                _ => {}
            }
            ask = Ask { overflow: true, reported: rejection.window, cold: ask.cold };
            let before = result.tokens_after;
            result = self.view(posture, session, outcome, &ask).await?;
            // What was learned and decided is kept, whatever comes of the next try.
            self.step(session, &**posture.policy, Vec::new(), false).await?;
            let worth = match (result.retry, before, result.tokens_after) {
                (Some(retry), ..) => retry,
                (None, Some(before), Some(after)) => {
                    after.saturating_mul(100) < before.saturating_mul(foreshorten_core::policy::RETRY_BELOW_PERCENT)
                }
                _ => result.compacted,
            };
            // The window that was named explains the rejection, and by it the view fits now, be it by little.
            let explained = match (rejection.window, before, result.tokens_after, result.usable) {
                (Some(_), Some(before), Some(after), Some(usable)) => before > usable && after <= usable,
                _ => false,
            };
            // The prompt alone fits: what has to give way is the room that was asked for the answer.
            let capped = cap_output(&settings, &result, &rejection);
            output_cap = capped.or(output_cap);
            let worth = worth || explained || capped.is_some();
            let allowed = retries > 0 || (smaller && shrinks > 0);
            let retrying = worth && allowed;
            self.tell(Event::PromptRejected { session: session.id.clone(), rejection: rejection.clone(), retrying });
            if !retrying {
                return Err(RunError::Provider(ProviderError::Overflow(rejection)));
            }
            match retries {
                0 => shrinks -= 1,
                _ => retries -= 1,
            }
        }
    }

    /// Asks the policy for a view, and tells what it did.
    async fn view(
        &self,
        posture: &Posture<'_>,
        session: &mut Session,
        outcome: &mut RunOutcome,
        ask: &Ask,
    ) -> Result<ContextResult, RunError> {
        let agent = posture.agent;
        let window = self.known_window(posture, session).await;
        match window {
            Some(window) => self.know(session, window),
            None if posture.policy.wants_window() && !session.said_unknown => {
                session.said_unknown = true;
                tracing::warn!(session = %session.id, "no context window is known: views shrink only after a rejection");
                self.tell(Event::WindowUnknown { session: session.id.clone() });
            }
            None => {}
        }
        let request = CompactionRequest {
            record: &session.record,
            provider: &agent.provider,
            model: &agent.model,
            tools: &posture.specs,
            settings: &agent.settings,
            session: &session.id,
            run: &session.run,
            window: window.map(|window| window.tokens),
            last_input_tokens: session.fresh_count.take().filter(|_| !ask.overflow),
            overflow: ask.overflow,
            reported_window: ask.reported,
            cache_cold: ask.cold,
            occasion: Occasion::Turn,
            scratch: &mut session.scratch,
            usage: &mut outcome.policy_usage,
        };
        let mut result = posture.policy.compact(request).await?;
        result.view = result.view.answered(&session.record);
        self.tell_result(session, outcome, &result).await;
        if let Some(named) = result.named_window {
            self.windows.learn(agent.provider.endpoint(), &agent.model, named);
            self.know(session, KnownWindow { tokens: named, source: WindowSource::Named });
        }
        if result.compacted {
            // A summary was paid for: it is kept before anything else can go wrong.
            self.step(session, &**posture.policy, Vec::new(), false).await?;
        }
        Ok(result)
    }

    /// The window to reckon with: what is known, and no more than a prompt that was refused.
    pub(super) async fn known_window(&self, posture: &Posture<'_>, session: &Session) -> Option<KnownWindow> {
        if !posture.policy.wants_window() {
            return None;
        }
        let agent = posture.agent;
        let window = self.windows.resolve(&*agent.provider, &agent.model).await;
        match (window, session.refused(&scope(&*agent.provider, &agent.model))) {
            (Some(window), Some(refused)) if window.tokens <= refused => Some(window),
            (_, Some(refused)) => Some(KnownWindow { tokens: refused, source: WindowSource::Refused }),
            (window, None) => window,
        }
    }

    pub(super) async fn tell_result(&self, session: &mut Session, outcome: &mut RunOutcome, result: &ContextResult) {
        outcome.plugins.join(&result.plugins);
        let id = || session.id.clone();
        for why in &result.summary_failures {
            self.tell(Event::SummaryFailed { session: id(), why: why.clone() });
        }
        if result.archive_failures > 0 {
            outcome.store_failures += result.archive_failures;
            self.tell(Event::StoreFailed { session: id(), contents: result.archive_failures });
        }
        if let Some(what) = result.cannot_fit {
            self.tell(Event::CannotFit { session: id(), what });
        }
        let Some(notice) = &result.notice else { return };
        if !result.compacted {
            self.tell(Event::TargetOutOfReach { session: id(), notice: notice.clone() });
            return;
        }
        tracing::info!(
            session = %session.id,
            reason = result.reason.as_deref().unwrap_or_default(),
            tokens_before = notice.tokens_before,
            tokens_after = notice.tokens_after,
            "context compacted"
        );
        let event = Arc::new(ContextCompacted {
            session: id(),
            run: session.run.clone(),
            reason: result.reason.clone(),
            reactive: notice.aggressive,
            notice: notice.clone(),
            archive: result.archive.clone(),
            pieces_before: session.last_view.len(),
            pieces_after: result.view.len(),
            epoch: result.epoch,
            record: session.record.clone(),
            before: session.last_view.clone(),
            after: result.view.clone(),
        });
        outcome.notices.push(notice.clone());
        session.note(notice);
        self.tell(Event::ContextCompacted(Arc::clone(&event)));
        if let Some(callback) = &self.on_compacted {
            callback(event).await;
        }
    }

    /// Counts an answer, calibrates with it, and looks whether it betrays a truncated prompt.
    fn take_in(
        &self,
        posture: &Posture<'_>,
        session: &mut Session,
        outcome: &mut RunOutcome,
        reply: &ModelReply,
        result: &ContextResult,
        sent: Sent,
    ) {
        if let Some(usage) = reply.usage {
            outcome.usage += usage;
            outcome.last_input_tokens = Some(usage.input_tokens).filter(|&tokens| tokens > 0);
        }
        self.tell(Event::Answered { session: session.id.clone(), usage: reply.usage, estimated: result.tokens_after });
        if let Some(what) = look(reply, sent) {
            tracing::warn!(session = %session.id, %what, "the prompt was probably truncated");
            session.truncated += 1;
            session.last_count = None;
            session.fresh_count = None;
            outcome.truncations.push(what);
            self.tell(Event::Truncated { session: session.id.clone(), what });
            return;
        }
        session.truncated = 0;
        let counted = reply.usage.map(|usage| usage.input_tokens).filter(|&tokens| tokens > 0);
        session.last_count = counted;
        session.fresh_count = counted;
        session.counted_with.clone_from(&posture.counted_with);
        if let Some(tokens) = counted {
            session.accepted(&scope(&*posture.agent.provider, &posture.agent.model), tokens);
            posture.policy.observe(&session.record, &mut session.scratch, tokens);
        }
    }

    fn know(&self, session: &mut Session, window: KnownWindow) {
        if session.window != Some(window) {
            session.window = Some(window);
            self.tell(Event::Window { session: session.id.clone(), window });
        }
    }

    fn tell_delta(&self, session: &str, delta: Delta<'_>) {
        if self.events.receiver_count() == 0 {
            return;
        }
        let session = session.to_owned();
        match delta {
            Delta::Text(text) => self.tell(Event::Text { session, text: text.into() }),
            Delta::Reasoning(text) => self.tell(Event::Reasoning { session, text: text.into() }),
            Delta::Restart => self.tell(Event::Restarted { session }),
            Delta::ToolCall(_) => {}
        }
    }
}

/// What a view is asked for with.
struct Ask {
    overflow: bool,
    reported: Option<u64>,
    cold: bool,
}

/// Whether the view only grew from the one that was counted last, by the same counter and beside the same tools. Some
/// providers stop counting reasoning once the user says something: with that in it, a count may fall.
fn grew(session: &Session, posture: &Posture<'_>, result: &ContextResult) -> bool {
    let before = session.last_view.pieces();
    let reasons = |piece: Piece<'_>| match piece {
        Piece::Entry { entry } => session.record.get(entry).is_some_and(|entry| entry.kind == EntryKind::Reasoning),
        _ => false,
    };
    !result.compacted
        && session.counted_with == posture.counted_with
        && !session.last_view.pieces().any(reasons)
        && result.view.len() >= before.len()
        && before.zip(result.view.pieces()).all(|(before, now)| before == now)
}

/// Whether anything in the view is weighed by a flat figure, which may be many times too much.
fn has_media(session: &Session, result: &ContextResult) -> bool {
    let media = |piece: Piece<'_>| match piece {
        Piece::Entry { entry } => {
            let entry = session.record.get(entry);
            entry.is_some_and(|entry| entry.parts.iter().any(|part| !matches!(part, Part::Text(_))))
        }
        _ => false,
    };
    result.view.pieces().any(media)
}

/// A rejection without any text may be a plain bad request: it is an overflow only near the window.
fn believed(rejection: &Rejection, result: &ContextResult) -> bool {
    if !rejection.uncertain {
        return true;
    }
    match (result.window, result.tokens_after) {
        (Some(window), Some(tokens)) => tokens.saturating_mul(10) >= window.saturating_mul(8),
        _ => true,
    }
}

/// An answer of fewer tokens is none, and some endpoints take no lower limit than 16.
const LEAST_OUTPUT: u64 = 256;

/// The lowest output limit that makes sense: above a budget for thinking, where one is set, or the endpoint refuses it.
fn least_output(settings: &Settings) -> u64 {
    let thinking = settings.extra.get("thinking").and_then(|thinking| thinking.get("budget_tokens"));
    thinking.and_then(serde_json::Value::as_u64).unwrap_or_default().saturating_add(LEAST_OUTPUT)
}

/// The settings with an output limit that fits beside the view, where the window is known.
fn settings_for(settings: &Settings, result: &ContextResult, cap: Option<u64>) -> Settings {
    let mut settings = settings.clone();
    if let (Some(asked), Some(window), Some(tokens)) = (settings.max_tokens, result.window, result.tokens_after) {
        // Before the first count an estimate may be off by a third.
        let margin = if result.calibrated { tokens / 64 } else { tokens / 3 } + 64;
        let room = window.saturating_sub(tokens.saturating_add(margin));
        settings.max_tokens = Some(asked.min(room.max(least_output(&settings))));
    }
    if let (Some(asked), Some(cap)) = (settings.max_tokens, cap) {
        settings.max_tokens = Some(asked.min(cap.max(least_output(&settings))));
    }
    settings
}

/// Half of the output limit that was asked for, when it is that which did not fit.
fn cap_output(asked: &Settings, result: &ContextResult, rejection: &Rejection) -> Option<u64> {
    let (asked, window, tokens) = (asked.max_tokens?, result.window?, result.tokens_after?);
    let fits_alone = tokens.saturating_add(tokens / 3) < window;
    let at_fault = rejection.with_output || tokens.saturating_add(asked) >= window / 2;
    (fits_alone && at_fault && asked > 256).then_some(asked / 2)
}

/// Runs of one session have different ids: when, in which process, and a number within it.
pub(super) fn run_id() -> String {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{:012x}-{:04x}-{}", now.as_micros(), std::process::id() & 0xFFFF, RUNS.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_limit_is_never_lowered_below_a_budget_for_thinking() {
        let mut settings = Settings { max_tokens: Some(4_000), ..Settings::default() };
        let mut result = ContextResult::default();
        (result.window, result.tokens_after, result.calibrated) = (Some(10_000), Some(9_000), true);
        let fitted = |settings: &Settings| settings_for(settings, &result, None).max_tokens;
        assert!(fitted(&settings).is_some_and(|most| most < 1_000));
        settings.extra.insert("thinking".into(), serde_json::json!({"type": "enabled", "budget_tokens": 1_024}));
        assert!(fitted(&settings).is_some_and(|most| most > 1_024));
    }
}
