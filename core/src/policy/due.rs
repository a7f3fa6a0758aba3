//! When a pass is due, and what room it has.

use alloc::{string::String, vec, vec::Vec};

use super::{
    Outcome, Turn,
    depth::{Depth, holding},
    desk::Tally,
    guard,
    pass::{Pass, Phase},
};
use crate::{
    budget::{Mode, TokenBudget, Watermark, tail_start},
    config::{PipelineStage, Policy},
    notice::CompactionNotice,
    render::RenderCache,
    state::{Guard, Ledger},
    text::push_number,
    transcript::{Columns, Transcript},
};

/// Lines stages may add to a notice.
const MAX_LINES: u32 = 32;

impl Pass {
    /// The pass that is due now, if one is; fills in the room.
    pub(super) fn due(
        policy: &Policy,
        transcript: &dyn Transcript,
        columns: &Columns,
        ledger: &Ledger,
        cache: &RenderCache,
        turn: Turn<'_>,
        outcome: &mut Outcome,
    ) -> Option<Self> {
        let tokens = outcome.tokens_before;
        let state = ledger.state();
        let known = policy.config().context_window.or(turn.window);
        let window = match (known, state.learned_window(turn.scope)) {
            (Some(known), Some(learned)) => Some(known.min(learned)),
            (known, learned) => known.or(learned),
        };
        let mode = if turn.overflow {
            Mode::Aggressive
        } else if turn.manual {
            Mode::Manual
        } else {
            Mode::Proactive
        };
        let (mut budget, mut limit) = match window {
            Some(window) => {
                let budget = policy.budget_for(window, mode, turn.output_tokens);
                (budget, budget.usable)
            }
            None if turn.overflow => (policy.budget_for(tokens.saturating_mul(2), mode, turn.output_tokens), tokens),
            None => return None,
        };
        if turn.overflow && (window.is_none() || tokens <= budget.usable) {
            // The window does not explain the rejection, so the rejected view itself is the measure: a
            // quarter of it is aimed at, and three quarters must be reached.
            let usable = tokens.max(1);
            budget = TokenBudget {
                usable,
                trigger: budget.trigger.min(usable),
                target: (usable / 4).max(1),
                tail: budget.tail.min((usable / 10).max(1)),
                ..budget
            };
            limit = usable / 4 * 3;
        }
        if mode == Mode::Manual {
            budget.target = budget.target.min(Watermark::BasisPoints(6_000).of(tokens.max(1)));
        }
        // Beside a large fixed head a tail of the usual size would fill what is left, and be shrunk a little on every
        // turn: it takes the share of the room that it would take of all that is usable.
        let fixed = state.calibration().ratio().scale(columns.system_weight() + turn.schema_tokens);
        let room = budget.usable.saturating_sub(fixed);
        if budget.tail > room / 2 {
            budget.tail = (u128::from(budget.tail) * u128::from(room) / u128::from(budget.usable)).max(1) as u64;
        }
        let mut depth = Depth::new(mode, &budget);
        if let (Mode::Proactive, Some(economy)) = (mode, &policy.config().economy) {
            (budget, depth.fold) = economy.applied(budget, holding(columns, ledger, fixed, tokens));
            depth.goal = budget.target;
        }
        if mode == Mode::Proactive && turn.cache_cold {
            // A cold cache makes a pass free: half way between target and trigger is full enough.
            budget.trigger = budget.target + (budget.trigger - budget.target).div_ceil(2);
        }
        outcome.budget = Some(budget);
        let wanted = mode == Mode::Proactive
            && policy
                .config()
                .stages
                .iter()
                .any(|stage| matches!(stage, PipelineStage::Plan(stage) if stage.wants_pass(cache.len())));
        if mode == Mode::Proactive && tokens < budget.trigger && !wanted {
            return None;
        }
        let guard = guard(policy, transcript, columns);
        let tail = tail_start(columns, state.calibration().raw_for(budget.tail), |group| {
            if ledger.note_over(columns, group).is_some() { u64::MAX } else { ledger.group_weight(&guard, group) }
        });
        let mut pass = Self {
            mode,
            budget,
            limit,
            trial: Ledger::default(),
            tail_start: tail,
            schema_tokens: turn.schema_tokens,
            summarizer_window: turn.summarizer_window.unwrap_or(budget.window),
            can_summarize: turn.can_summarize,
            tokens_before: tokens,
            pressed: tokens > budget.usable,
            wanted,
            manual: turn.manual,
            stage: 0,
            summary_follows: false,
            phase: Phase::Stages,
            depth,
            failed: Vec::new(),
            tally: Tally { lines_left: MAX_LINES, ..Tally::default() },
            reasons: Vec::new(),
            notice: CompactionNotice::default(),
            archive: Vec::new(),
            archive_failures: 0,
        };
        if mode == Mode::Proactive && tokens <= budget.usable {
            let stall = &state.stall;
            let same_evidence = stall.len == columns.len() as u64
                && stall.evidence == state.calibration().evidence()
                && stall.window == budget.window;
            let grown = ledger.view_raw() >= stall.raw.saturating_add(state.calibration().raw_for(budget.usable) / 20);
            if same_evidence || (stall.raw > 0 && !grown) {
                return None;
            }
            if !wanted && !pass.can_gain(policy, ledger, &guard) {
                pass.stalled(ledger, outcome);
                return None;
            }
        }
        pass.trial = ledger.clone();
        Some(pass)
    }

    /// Whether enough of the view could shrink for a proactive pass to be worth its price.
    fn can_gain(&self, policy: &Policy, ledger: &Ledger, guard: &Guard<'_>) -> bool {
        let columns = guard.columns;
        let mut open = 0u64;
        let mut group = ledger.next_open_group(columns, 0);
        while group < self.tail_start {
            open += ledger.group_weight(guard, group);
            group = ledger.next_open_group(columns, group + 1);
        }
        let notes: u64 = (0..ledger.state().notes().len()).map(|at| ledger.note_cost(at)).sum();
        let view = ledger.view_raw() + self.schema_tokens;
        (open + notes) * 100 >= view * u64::from(policy.config().min_gain_percent)
    }

    /// The target is out of reach: say so once, and remember at which size.
    pub(super) fn stalled(&self, ledger: &Ledger, outcome: &mut Outcome) {
        outcome.stalled = Some(ledger.view_raw());
        if !ledger.state().stall.said {
            let mut line = String::from("the target of ");
            push_number(&mut line, self.budget.target);
            line.push_str(" tokens is out of reach: too little of the view can shrink");
            outcome.notice = Some(CompactionNotice {
                tokens_before: outcome.tokens_before,
                tokens_after: outcome.tokens_before,
                detail: vec![line],
                prefix_kept_percent: 100,
                ..CompactionNotice::default()
            });
        }
    }
}
