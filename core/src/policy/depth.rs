//! How deep a pass goes. What it costs is what stands behind the first place it changes, so the earlier that is, the more
//! is worth doing in one go.

use super::pass::Pass;
use crate::{
    budget::{Holding, Mode, TokenBudget},
    config::Policy,
    state::Ledger,
    transcript::{Columns, Transcript},
};

/// The levels to which the parts of a pass go, in calibrated tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Depth {
    /// Where stages stop: the target, or deeper in a second round.
    pub(super) goal: u64,
    /// To where a summary or a model-free note folds.
    pub(super) fold: u64,
    /// The stages run once more.
    pub(super) again: bool,
}

/// A pass that changes something in the first third of the view goes deeper.
const EARLY_DIVISOR: u64 = 3;

impl Depth {
    /// A proactive pass folds to half of its target. After a rejection the target is deep already, and a user who asks
    /// gets what was asked for.
    pub(super) fn new(mode: Mode, budget: &TokenBudget) -> Self {
        let fold = if mode == Mode::Proactive { (budget.target / 2).max(1) } else { budget.target };
        Self { goal: budget.target, fold, again: false }
    }
}

/// What prices are applied to.
pub(super) fn holding(columns: &Columns, ledger: &Ledger, fixed: u64, view: u64) -> Holding {
    let scale = |raw: u64| ledger.state().calibration().ratio().scale(raw);
    let notes: u64 = (0..ledger.state().notes().len()).map(|at| ledger.note_cost(at)).sum();
    Holding {
        fixed,
        notes: scale(notes.max(super::summarizing::EXPECTED)),
        body: scale(columns.total_weight().saturating_sub(columns.system_weight())),
        turns: columns.turns(),
        view,
    }
}

impl Pass {
    /// Whether the stages run once more, down to three quarters of the target: the pass has met it, without a summary, and
    /// has changed something in the first third of the view. Almost all is sent anew then, and what is left out now is
    /// sent in no later pass. A summary is not asked for again.
    pub(super) fn goes_deeper(
        &mut self,
        policy: &Policy,
        transcript: &dyn Transcript,
        columns: &Columns,
        committed: &Ledger,
    ) -> bool {
        let once = self.mode == Mode::Proactive && !self.depth.again && self.notice.summary_calls == 0;
        if !once || self.tokens() > self.budget.target {
            return false;
        }
        let Some(from) = super::difference::first_difference(committed.state(), self.trial.state(), columns) else {
            return false;
        };
        let guard = self.guard(policy, transcript, columns);
        let shown = (0..from).filter(|&group| committed.is_shown(columns, group));
        let notes = committed.state().notes().iter().enumerate();
        let notes = notes.filter(|(_, note)| columns.group(note.from as usize) < from);
        let kept: u64 = shown.map(|group| committed.group_weight(&guard, group)).sum::<u64>()
            + notes.map(|(at, _)| committed.note_cost(at)).sum::<u64>();
        if kept >= committed.view_raw() / EARLY_DIVISOR {
            return false;
        }
        self.depth.again = true;
        self.depth.goal = self.budget.target / 4 * 3;
        self.stage = 0;
        true
    }
}
