//! What a user does by hand: compact now, ask what that would do, undo, pin.

use super::turn::Posture;
use super::{Agent, RunError, RunOutcome, Runner, Session};
use crate::context::{CompactionRequest, ContextResult, ManualAct, Occasion};

impl Runner {
    /// Compacts the session's view now. `focus` is what a summary should look at especially.
    ///
    /// # Errors
    /// When the policy cannot, or the session cannot be written.
    pub async fn compact_now(
        &self,
        agent: &Agent,
        session: &mut Session,
        focus: Option<&str>,
    ) -> Result<ContextResult, RunError> {
        let (result, mut outcome) = self.by_hand(agent, session, Occasion::Manual(focus)).await?;
        self.tell_result(session, &mut outcome, &result).await;
        self.step(session, &*agent.policy, Vec::new(), false).await?;
        Ok(result)
    }

    /// What compacting now would decide. Nothing is decided, stored or asked of a model; an extract stands in for a
    /// summary, so the figures with a real one may differ by its length.
    ///
    /// # Errors
    /// When the policy cannot.
    pub async fn dry_run(&self, agent: &Agent, session: &mut Session) -> Result<ContextResult, RunError> {
        Ok(self.by_hand(agent, session, Occasion::DryRun).await?.0)
    }

    /// Takes back what the last pass decided: a new epoch. No proactive pass is made before there is new content. A second
    /// undo, with no pass in between, takes back everything.
    ///
    /// # Errors
    /// When the policy cannot, or the session cannot be written.
    pub async fn undo(&self, agent: &Agent, session: &mut Session) -> Result<(), RunError> {
        self.act(agent, session, ManualAct::Undo).await
    }

    /// Takes back everything that was decided: a new epoch.
    ///
    /// # Errors
    /// When the policy cannot, or the session cannot be written.
    pub async fn undo_all(&self, agent: &Agent, session: &mut Session) -> Result<(), RunError> {
        self.act(agent, session, ManualAct::UndoAll).await
    }

    /// Keeps an entry (its index in [`Session::record`]) verbatim wherever it stands.
    ///
    /// # Errors
    /// When it was reduced already, or the session cannot be written.
    pub async fn pin(&self, agent: &Agent, session: &mut Session, entry: usize) -> Result<(), RunError> {
        self.act(agent, session, ManualAct::Pin(entry)).await
    }

    /// Takes a pin back.
    ///
    /// # Errors
    /// When the policy knows no pins, or the session cannot be written.
    pub async fn unpin(&self, agent: &Agent, session: &mut Session, entry: usize) -> Result<(), RunError> {
        self.act(agent, session, ManualAct::Unpin(entry)).await
    }

    async fn act(&self, agent: &Agent, session: &mut Session, act: ManualAct) -> Result<(), RunError> {
        self.begin(agent, session).await?;
        agent.policy.act(&session.record, &mut session.scratch, act)?;
        self.step(session, &*agent.policy, Vec::new(), false).await
    }

    /// The session as the store has it, with the agent's instructions at its head, and a run to write under.
    async fn begin(&self, agent: &Agent, session: &mut Session) -> Result<(), RunError> {
        self.reopen(session).await?;
        session.set_system(agent.system.as_deref());
        if session.run.is_empty() {
            session.run = super::turn::run_id();
        }
        Ok(())
    }

    async fn by_hand(
        &self,
        agent: &Agent,
        session: &mut Session,
        occasion: Occasion<'_>,
    ) -> Result<(ContextResult, RunOutcome), RunError> {
        self.begin(agent, session).await?;
        let posture = Posture::new(agent, None);
        let mut outcome = RunOutcome::default();
        let window = self.known_window(&posture, session).await;
        let request = CompactionRequest {
            record: &session.record,
            provider: &agent.provider,
            model: &agent.model,
            tools: &posture.specs,
            settings: &agent.settings,
            session: &session.id,
            run: &session.run,
            window: window.map(|window| window.tokens),
            last_input_tokens: if occasion == Occasion::DryRun { None } else { session.fresh_count.take() },
            overflow: false,
            reported_window: None,
            cache_cold: false,
            occasion,
            scratch: &mut session.scratch,
            usage: &mut outcome.policy_usage,
        };
        let result = agent.policy.compact(request).await?;
        if let Some(named) = result.named_window {
            self.windows.learn(agent.provider.endpoint(), &agent.model, named);
        }
        Ok((result, outcome))
    }
}
