//! One run of the pipeline, as a state machine that can be dropped between any two effects.

use alloc::{boxed::Box, format, string::String, vec, vec::Vec};

use super::{
    Effect, Outcome, RETRY_BELOW_PERCENT,
    depth::Depth,
    desk::{PassDesk, Tally},
    foreign::Draft,
    guard,
    summarizing::{Summarizing, SummaryFailure, SummaryReply},
};
use crate::{
    budget::{Mode, TokenBudget},
    config::{PipelineStage, Policy},
    digest::Digest,
    notice::CompactionNotice,
    plan::{Desk, Level, Proposal, StageContext},
    state::{Breaker, Guard, Ledger},
    text::push_number,
    transcript::{Columns, Transcript},
};

/// A pass in progress over a trial copy of the ledger.
#[derive(Debug)]
pub(super) struct Pass {
    pub(super) mode: Mode,
    pub(super) budget: TokenBudget,
    /// What the ladder of last resorts makes the view fit.
    pub(super) limit: u64,
    pub(super) trial: Ledger,
    pub(super) tail_start: usize,
    pub(super) schema_tokens: u64,
    pub(super) summarizer_window: u64,
    pub(super) can_summarize: bool,
    pub(super) tokens_before: u64,
    /// The view did not fit when the pass began.
    pub(super) pressed: bool,
    /// A stage asked for the pass although the view is below the trigger.
    pub(super) wanted: bool,
    pub(super) manual: bool,
    pub(super) stage: usize,
    /// A summary stage follows the one that runs, and somebody can write one.
    pub(super) summary_follows: bool,
    pub(super) phase: Phase,
    pub(super) depth: Depth,
    /// Places of stages that run elsewhere and failed: they are not called again in this pass.
    pub(super) failed: Vec<usize>,
    pub(super) tally: Tally,
    pub(super) reasons: Vec<String>,
    pub(super) notice: CompactionNotice,
    pub(super) archive: Vec<(usize, Digest)>,
    pub(super) archive_failures: u32,
}

#[derive(Debug)]
pub(super) enum Phase {
    Stages,
    Summarizing(Summarizing),
    External { draft: Option<Box<Draft>> },
    Ladder,
    Archiving { waiting: bool },
    Done,
}

/// A pass that is over.
pub(super) struct Concluded {
    pub(super) ledger: Ledger,
    pub(super) notice: CompactionNotice,
}

impl Pass {
    pub(super) const fn mode(&self) -> Mode {
        self.mode
    }

    pub(super) fn breaker(&self) -> &Breaker {
        self.trial.state().breaker()
    }

    pub(super) fn set_breaker(&mut self, breaker: Breaker) {
        self.trial.state.breaker = breaker;
    }

    pub(super) fn guard<'a>(
        &self,
        policy: &'a Policy,
        transcript: &'a dyn Transcript,
        columns: &'a Columns,
    ) -> Guard<'a> {
        Guard { tail_start: self.tail_start, ..guard(policy, transcript, columns) }
    }

    fn desk<'a>(&'a mut self, guard: Guard<'a>) -> PassDesk<'a> {
        let (pin_tokens, summary_follows) = (self.pin_tokens(), self.summary_follows);
        PassDesk {
            ledger: &mut self.trial,
            guard,
            schema_tokens: self.schema_tokens,
            tally: &mut self.tally,
            pin_tokens,
            summary_follows,
        }
    }

    /// Tokens that pins may weigh when a stage pins.
    pub(super) const fn pin_tokens(&self) -> u64 {
        self.budget.usable / 10
    }

    pub(super) fn tokens(&self) -> u64 {
        self.trial.state().calibration().tokens(self.trial.view_raw() + self.schema_tokens)
    }

    /// Goes on until the host is needed; `None` when the pass is over.
    pub(super) fn advance(
        &mut self,
        policy: &Policy,
        transcript: &dyn Transcript,
        columns: &Columns,
        committed: &Ledger,
    ) -> Option<Effect> {
        loop {
            match &mut self.phase {
                Phase::Stages => {
                    let Some(stage) = policy.config().stages.get(self.stage) else {
                        if self.goes_deeper(policy, transcript, columns, committed) {
                            continue;
                        }
                        self.phase = Phase::Ladder;
                        continue;
                    };
                    // Stages that limit entries have a say of their own; all others stop at the target.
                    let counts = matches!(stage, PipelineStage::Plan(stage) if stage.wants_pass(usize::MAX));
                    let asked = matches!(stage, PipelineStage::Summarize(_)) && self.tally.summary_to.is_some();
                    let met = self.tokens() <= self.depth.goal;
                    let plans = !matches!(stage, PipelineStage::Summarize(_)) && !self.failed.contains(&self.stage);
                    if (met && !counts && !asked) || (self.depth.again && (met || !plans)) {
                        self.stage += 1;
                        continue;
                    }
                    let rest = policy.config().stages.get(self.stage + 1..).unwrap_or_default();
                    self.summary_follows = self.can_summarize
                        && !self.depth.again
                        && rest.iter().any(|next| matches!(next, PipelineStage::Summarize(_)));
                    match stage {
                        PipelineStage::Plan(stage) => {
                            self.run(policy, transcript, columns, stage.name(), |context| stage.plan(context));
                            self.stage += 1;
                        }
                        PipelineStage::Summarize(stage) => {
                            let until = self.tally.summary_to.take();
                            let window = self.summarizer_window;
                            let task = self.can_summarize.then(|| Summarizing::new(*stage, window, until));
                            match task {
                                Some(task) => self.phase = Phase::Summarizing(task),
                                None => self.stage += 1,
                            }
                        }
                        PipelineStage::External(name) => {
                            let name = name.clone();
                            self.phase = Phase::External { draft: None };
                            return Some(Effect::RunStage { name });
                        }
                    }
                }
                Phase::Summarizing(task) => {
                    let guard = Guard { tail_start: self.tail_start, ..guard(policy, transcript, columns) };
                    let request =
                        task.next(&self.trial, &guard, &self.budget, self.depth.fold, self.mode, self.schema_tokens);
                    if let Some(request) = request {
                        self.notice.summary_calls = task.calls();
                        return Some(Effect::Summarize(request));
                    }
                    self.phase = Phase::Stages;
                    self.stage += 1;
                }
                // The host polls again without having answered: take it as no proposals.
                Phase::External { .. } => {
                    self.phase = Phase::Stages;
                    self.stage += 1;
                }
                Phase::Ladder => {
                    self.fold(policy, transcript, columns);
                    self.climb(policy, transcript, columns);
                    let archive = policy.config().archive && self.is_kept(policy, committed);
                    self.archive = if archive { self.to_archive(committed) } else { Vec::new() };
                    self.archive.reverse();
                    self.phase = Phase::Archiving { waiting: false };
                }
                Phase::Archiving { waiting } => {
                    if *waiting {
                        self.archive.pop();
                    }
                    let Some(&(entry, digest)) = self.archive.last() else {
                        self.phase = Phase::Done;
                        continue;
                    };
                    *waiting = true;
                    return Some(Effect::Archive { entry, digest });
                }
                Phase::Done => return None,
            }
        }
    }

    /// Runs one step over the desk and notes its name when anything came of it.
    fn run(
        &mut self,
        policy: &Policy,
        transcript: &dyn Transcript,
        columns: &Columns,
        name: &str,
        step: impl FnOnce(&mut StageContext<'_>),
    ) {
        let guard = self.guard(policy, transcript, columns);
        let budget = TokenBudget { target: self.depth.goal, ..self.budget };
        let (aggressive, tail) = (self.mode == Mode::Aggressive, self.tail_start);
        let before = (self.trial.view_raw(), self.tokens());
        let mut desk = self.desk(guard);
        step(&mut StageContext::new(transcript, columns, budget, aggressive, tail, &mut desk));
        // Whatever is accepted makes the view smaller; notes laid together decide about no entry that was open.
        if self.trial.view_raw() != before.0 {
            self.ran(name, before.1);
        }
    }

    /// Notes what a step freed.
    pub(super) fn ran(&mut self, name: &str, tokens_before: u64) {
        let mut line = String::from(name);
        line.push_str(": ");
        push_number(&mut line, tokens_before.saturating_sub(self.tokens()));
        line.push_str(" tokens freed");
        self.tally.lines.push(line);
        if self.reasons.last().is_none_or(|last| last != name) {
            self.reasons.push(name.into());
        }
    }

    /// Lays a note without a model where the policy wants depth and nobody wrote a summary.
    fn fold(&mut self, policy: &Policy, transcript: &dyn Transcript, columns: &Columns) {
        let wanted = policy.config().fold_without_summary && self.mode == Mode::Proactive;
        let target = self.budget.target;
        if !wanted || self.tokens() <= target || self.tally.decided.covered > 0 {
            return;
        }
        let before = self.tokens();
        let guard = self.guard(policy, transcript, columns);
        let fold = self.depth.fold;
        super::ladder::snip_down(&mut self.desk(guard), fold, target);
        if self.tally.decided.covered > 0 {
            self.ran("middle_snip", before);
        }
    }

    fn climb(&mut self, policy: &Policy, transcript: &dyn Transcript, columns: &Columns) {
        // A view that did not fit, and of which the stages left so much that the next turn starts another pass,
        // gets a note although it fits now: passes are rare and deep.
        let enough = if self.pressed { self.limit.min(self.budget.trigger - 1) } else { self.limit };
        if self.tokens() <= enough {
            return;
        }
        let guard = self.guard(policy, transcript, columns);
        let (fold, limit) = (self.depth.fold, self.limit);
        let mut desk = self.desk(guard);
        let rungs = super::ladder::climb(&mut desk, fold, enough, limit);
        for (name, freed, last_resort) in rungs {
            let mut line = String::from(name);
            line.push_str(": ");
            push_number(&mut line, freed);
            line.push_str(" raw tokens freed");
            self.tally.lines.push(line);
            self.reasons.push(name.into());
            self.notice.last_resort |= last_resort;
        }
    }

    /// New decisions about single entries whose content a store may keep.
    fn to_archive(&self, committed: &Ledger) -> Vec<(usize, Digest)> {
        let fresh = self.trial.state().records().iter().filter(|record| {
            let before = committed.state().record(record.place.index as usize);
            before.is_none_or(|before| before.action.digest() != record.action.digest())
        });
        fresh.filter_map(|record| Some((record.place.index as usize, record.action.digest()?))).collect()
    }

    pub(super) fn handle_summary(
        &mut self,
        policy: &Policy,
        transcript: &dyn Transcript,
        columns: &Columns,
        reply: Result<SummaryReply, SummaryFailure>,
    ) {
        let before = self.tokens();
        let guard = Guard { tail_start: self.tail_start, ..guard(policy, transcript, columns) };
        let Phase::Summarizing(task) = &mut self.phase else { return };
        let name = task.name();
        match task.answer(&mut self.trial, &guard, &self.budget, reply) {
            Ok(covered) => {
                self.tally.decided.covered = self.tally.decided.covered.saturating_add(covered);
                self.ran(name, before);
            }
            Err(why) => self.tally.lines.push(format!("{name}: {why}")),
        }
    }

    pub(super) fn handle_archived(&mut self, stored: bool) {
        if let Phase::Archiving { waiting } = &mut self.phase
            && *waiting
        {
            *waiting = false;
            self.archive.pop();
            self.archive_failures += u32::from(!stored);
        }
    }

    pub(super) fn handle_proposals(
        &mut self,
        policy: &Policy,
        transcript: &dyn Transcript,
        columns: &Columns,
        proposals: Vec<Proposal>,
    ) {
        if !matches!(self.phase, Phase::External { .. }) {
            return;
        }
        let name = policy.config().stages.get(self.stage).map_or_else(String::new, |stage| stage.name().into());
        self.run(policy, transcript, columns, &name, |context| {
            for proposal in proposals {
                let _ = context.propose(proposal);
            }
        });
        self.phase = Phase::Stages;
        self.stage += 1;
    }

    /// Whether what was decided is recorded: it makes the view smaller, and by enough where the view fits anyway.
    fn is_kept(&self, policy: &Policy, committed: &Ledger) -> bool {
        let (before, after) = (self.tokens_before, self.tokens());
        let gain = before.saturating_sub(after);
        let enough = self.pressed
            || match self.mode {
                Mode::Proactive => self.wanted || gain * 100 >= before * u64::from(policy.config().min_gain_percent),
                // What is not enough for a second try only costs the view something.
                Mode::Aggressive => after * 100 < before * RETRY_BELOW_PERCENT,
                Mode::Manual => true,
            };
        let changed = self.trial.state().records() != committed.state().records()
            || self.trial.state().notes() != committed.state().notes();
        changed && enough && after < before
    }

    /// What the pass came to; `None` when it gained too little to be recorded.
    pub(super) fn conclude(self, policy: &Policy, committed: &mut Ledger, outcome: &mut Outcome) -> Option<Concluded> {
        outcome.refused = self.tally.refused;
        outcome.archive_failures = self.archive_failures;
        let (before, after) = (outcome.tokens_before, self.tokens());
        if !self.is_kept(policy, committed) {
            self.stalled(committed, outcome);
            if let Some(notice) = &mut outcome.notice {
                notice.detail.extend(self.tally.lines);
                notice.summary_calls = self.notice.summary_calls;
                notice.aggressive = self.mode == Mode::Aggressive;
            }
            committed.knows_hashes_of(self.trial);
            return None;
        }
        let mut first = String::from("the view held ");
        push_number(&mut first, before);
        first.push_str(" of ");
        push_number(&mut first, self.budget.usable);
        first.push_str(" usable tokens");
        let mut detail = vec![first];
        detail.extend(self.tally.lines);
        let mut reasons = self.reasons;
        if self.manual {
            reasons.insert(0, "manual_summary".into());
        }
        let summary = self
            .trial
            .state()
            .notes()
            .iter()
            .rev()
            .find(|note| !note.summary.text.is_empty() && !committed.state().notes().contains(note));
        let notice = CompactionNotice {
            reasons,
            aggressive: self.mode == Mode::Aggressive,
            manual: self.manual,
            tokens_before: before,
            tokens_after: after,
            detail,
            decided: self.tally.decided,
            summary: summary.map(|note| note.summary.text.clone()),
            ..self.notice
        };
        let mut ledger = self.trial;
        // A target that is still out of reach was said; it is said again once it has been reached in between.
        let said = ledger.state.stall.said && after > self.budget.target;
        ledger.state.stall = crate::state::Stall { said, ..crate::state::Stall::default() };
        Some(Concluded { ledger, notice })
    }
}

impl PassDesk<'_> {
    /// Whether an entry stands in the view in any form.
    pub(super) fn is_shown(&self, entry: usize) -> bool {
        self.level(entry) < Level::Covered
    }
}
