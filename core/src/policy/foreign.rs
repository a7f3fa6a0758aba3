//! What a stage that runs elsewhere may see and do in the middle of a pass.
//!
//! Its decisions go into a draft: a copy of the trial ledger. The draft is taken as a whole, or dropped as a whole.

use alloc::{borrow::ToOwned as _, boxed::Box, string::String};
use core::borrow::Borrow;

use super::{
    Compactor,
    desk::{PassDesk, Tally},
    pass::{Pass, Phase},
};
use crate::{
    budget::{Mode, TokenBudget},
    config::Policy,
    plan::StageContext,
    state::Ledger,
    text,
    transcript::{Columns, Transcript},
};

/// Decisions of a stage that are not taken yet.
#[derive(Debug)]
pub(super) struct Draft {
    ledger: Ledger,
    tally: Tally,
}

impl<P: Borrow<Policy>> Compactor<P> {
    /// The stage that [`Effect::RunStage`](super::Effect::RunStage) asked for and that has not been answered.
    #[must_use]
    pub fn pending_stage(&self) -> Option<&str> {
        let pass = self.pass.as_ref().filter(|pass| matches!(pass.phase, Phase::External { .. }))?;
        Some(self.policy.borrow().config().stages.get(pass.stage)?.name())
    }

    /// Why the pass that is under way runs; `None` between passes.
    #[must_use]
    pub fn pass_mode(&self) -> Option<Mode> {
        self.pass.as_ref().map(Pass::mode)
    }

    /// Lets the pending stage look and propose, as often as it likes; `None` when no stage is pending.
    ///
    /// It sees the record, the room and every level and weight as the pass left them, its own decisions included.
    /// Each proposal is checked at once, as any stage's. Nothing is taken before [`commit_stage`](Self::commit_stage);
    /// a host that stops here, or polls again, has dropped the decisions.
    pub fn with_stage<R>(
        &mut self,
        transcript: &dyn Transcript,
        look: impl FnOnce(&mut StageContext<'_>) -> R,
    ) -> Option<R> {
        self.pass.as_mut()?.with_draft(self.policy.borrow(), transcript, &self.columns, look)
    }

    /// Takes what the pending stage proposed and goes on. Answers the calibrated tokens it freed.
    pub fn commit_stage(&mut self) -> u64 {
        let policy = self.policy.borrow();
        self.pass.as_mut().map_or(0, |pass| pass.commit_draft(policy))
    }

    /// Drops what the pending stage proposed and goes on without it; `why` is a line for the notice.
    pub fn abandon_stage(&mut self, why: &str) {
        if let Some(pass) = &mut self.pass {
            pass.drop_draft(why);
        }
    }

    /// Drops what the pending stage proposed so far; the stage stays pending, for another to take its place. `why` is a
    /// line for the notice.
    pub fn restart_stage(&mut self, why: &str) {
        if let Some(pass) = &mut self.pass
            && let Phase::External { draft } = &mut pass.phase
        {
            *draft = None;
            pass.failed.push(pass.stage);
            pass.say(why);
        }
    }
}

impl Pass {
    fn with_draft<R>(
        &mut self,
        policy: &Policy,
        transcript: &dyn Transcript,
        columns: &Columns,
        look: impl FnOnce(&mut StageContext<'_>) -> R,
    ) -> Option<R> {
        if !matches!(self.phase, Phase::External { .. }) {
            return None;
        }
        let guard = self.guard(policy, transcript, columns);
        // In a second round the target is deeper, for those that run elsewhere as well.
        let budget = TokenBudget { target: self.depth.goal, ..self.budget };
        let (tail, pin_tokens) = (self.tail_start, self.pin_tokens());
        let (schema_tokens, summary_follows) = (self.schema_tokens, self.summary_follows);
        let aggressive = self.mode() == Mode::Aggressive;
        let Phase::External { draft } = &mut self.phase else { return None };
        let draft =
            draft.get_or_insert_with(|| Box::new(Draft { ledger: self.trial.clone(), tally: self.tally.clone() }));
        let mut desk = PassDesk {
            ledger: &mut draft.ledger,
            guard,
            schema_tokens,
            tally: &mut draft.tally,
            pin_tokens,
            summary_follows,
        };
        Some(look(&mut StageContext::new(transcript, columns, budget, aggressive, tail, &mut desk)))
    }

    fn commit_draft(&mut self, policy: &Policy) -> u64 {
        let Phase::External { draft } = &mut self.phase else { return 0 };
        let draft = draft.take();
        let before = self.tokens();
        let name = policy.config().stages.get(self.stage).map_or_else(String::new, |stage| stage.name().to_owned());
        self.next_stage();
        let Some(draft) = draft else { return 0 };
        let raw = self.trial.view_raw();
        (self.trial, self.tally) = (draft.ledger, draft.tally);
        if self.trial.view_raw() != raw {
            self.ran(&name, before);
        }
        before.saturating_sub(self.tokens())
    }

    fn drop_draft(&mut self, why: &str) {
        if matches!(self.phase, Phase::External { .. }) {
            self.failed.push(self.stage);
            self.next_stage();
            self.say(why);
        }
    }

    /// A fact set in the middle of a pass holds whether or not the pass comes to anything.
    pub(super) fn set_label(&mut self, key: &str, value: &str) {
        self.trial.state.set_label(key, value);
        if let Phase::External { draft: Some(draft) } = &mut self.phase {
            draft.ledger.state.set_label(key, value);
        }
    }

    fn next_stage(&mut self) {
        self.phase = Phase::Stages;
        self.stage += 1;
    }

    /// A line for the notice that counts against nobody's share.
    fn say(&mut self, why: &str) {
        self.tally.lines.push(why[..text::floor_boundary(why, 500)].to_owned());
    }
}
