//! The costlier oracles: the second opinion, the floor, recall.

use foreshorten_core::{
    CompactionState, PipelineStage,
    estimate::ByteEstimator,
    plan::Level,
    recall::{self, Found},
    transcript::{EntryKind, Transcript, text_of},
};

use super::Session;
use crate::{PassFacts, Reference};

/// Raw tokens that may remain above the floor: what weighs less than a note over it would.
const NOT_WORTH_A_NOTE: u64 = 8;

/// Records up to this length are compared with the second opinion on every turn.
const COMPARED_UP_TO: usize = 300;

impl<T: Transcript> Session<'_, T> {
    /// Asks for a second opinion: on a long record after passes only, for it is slow.
    pub(super) fn compare(&self, met: &CompactionState) {
        let (outcome, ledger) = (self.compactor.outcome(), self.compactor.ledger());
        if self.transcript.len() > COMPARED_UP_TO && !outcome.compacted {
            return;
        }
        let reference = Reference::read(&self.transcript, self.policy.config());
        let state = ledger.state();
        let (view, raw) = (reference.view(state), reference.raw(state));
        if let Some(at) = (0..view.len().max(self.view.len())).find(|&at| view.get(at) != self.view.get(at)) {
            panic!("second opinion: piece {at} is {:?} and should be {:?}", self.view.get(at), view.get(at));
        }
        assert_eq!(ledger.view_raw(), raw, "second opinion: the view weighs something else");
        assert_eq!(self.levels, reference.levels(state), "second opinion: other levels");
        if let Some(budget) = outcome.budget.filter(|budget| outcome.tokens_after > budget.usable) {
            let floor = reference.floor(state) + self.turn.schema_tokens;
            let least = state.calibration().tokens(floor + NOT_WORTH_A_NOTE);
            assert!(
                least > budget.usable,
                "I8: {} tokens do not fit into {} although {least} would be possible: {outcome:?} {:?}",
                outcome.tokens_after,
                budget.usable,
                self.view.iter().map(|piece| piece.chars().take(60).collect::<String>()).collect::<Vec<_>>()
            );
        }
        if let (true, Some(budget), Some(notice)) = (outcome.compacted, outcome.budget, &outcome.notice) {
            let tail = met.calibration().raw_for(budget.tail);
            let facts = PassFacts { last_resort: notice.last_resort, tail, edited: self.edited };
            if let Err(wrong) = reference.judge(met, state, facts) {
                panic!("second opinion on the pass: {wrong}; {notice:?}");
            }
        } else {
            assert_eq!((met.records(), met.notes()), (state.records(), state.notes()), "a decision without a pass");
        }
    }

    /// Summarizer calls that the stages of the policy may make in one pass.
    pub(super) fn calls_allowed(&self) -> usize {
        let stages = self.policy.config().stages.iter();
        stages
            .filter_map(|stage| match stage {
                PipelineStage::Summarize(stage) => Some(stage.max_calls as usize),
                _ => None,
            })
            .sum()
    }

    pub(super) fn policy_counts_entries(&self) -> bool {
        self.policy
            .config()
            .stages
            .iter()
            .any(|stage| matches!(stage, PipelineStage::Plan(stage) if stage.wants_pass(usize::MAX)))
    }

    /// What may remain in a view that does not fit, because the longest marker would hardly be smaller: markers are full of
    /// digits, of which the tables say twice what the seeds' rule says.
    fn not_worth_a_marker(&self) -> u64 {
        if self.policy.config().weigher.bytes == ByteEstimator::BytesPer4 { 80 } else { 160 }
    }

    /// When a view does not fit, nothing that could still shrink is left.
    pub(super) fn check_floor(&self, levels: &[Level]) {
        let columns = self.compactor.columns();
        let ledger = self.compactor.ledger();
        let newest = columns.groups().saturating_sub(1);
        let little = self.not_worth_a_marker();
        for (entry, level) in levels.iter().enumerate() {
            if *level == Level::Covered || columns.is_orphan(entry) {
                continue;
            }
            let group = columns.group(entry);
            let pinned = columns.members(group).any(|member| ledger.is_pinned(columns, member));
            // A group kept beside a note although it is not pinned any more waits for the note to be rewritten,
            // and so does one that is smaller than the shortest note over it.
            let kept = ledger.note_over(columns, group).is_some();
            let small = ledger.group_weight(&self.compactor.guard(&self.transcript), group) < little;
            assert!(
                pinned || kept || small || group == newest,
                "I8: does not fit, and group {group} of {newest} is still there; weights {:?} notes {:?} outcome {:?}",
                (0..=newest)
                    .map(|g| (
                        g,
                        ledger.is_shown(columns, g),
                        ledger.group_weight(&self.compactor.guard(&self.transcript), g)
                    ))
                    .collect::<Vec<_>>(),
                ledger.state().notes(),
                self.compactor.outcome()
            );
            if group == newest && columns.kind(entry) == EntryKind::ToolResult && !ledger.is_pinned(columns, entry) {
                assert!(
                    *level == Level::Cleared
                        || u64::from(columns.weight(entry)) < little
                        || ledger.view_weight(columns, entry) < little,
                    "I8: does not fit, and result {entry} of the newest group is {level:?}"
                );
            }
        }
    }

    pub(super) fn check_recall(&self) {
        let columns = self.compactor.columns();
        let ledger = self.compactor.ledger();
        let resolve = |reference: &str| recall::resolve(reference, &self.transcript, columns, ledger);
        for record in ledger.state().records() {
            let entry = record.place.index as usize;
            let Some(reference) = record.reference(&self.transcript, columns) else { continue };
            if columns.is_recall(entry) {
                continue; // refers to what was recalled
            }
            match resolve(&reference) {
                Ok(Found::Entry { entry: found, exact, .. }) => {
                    assert!(exact || self.bodies_lost, "I10: {reference} is not exact");
                    assert!(
                        self.bodies_lost || text_of(&self.transcript, found) == text_of(&self.transcript, entry),
                        "I10: {reference} brings back something else"
                    );
                }
                other => panic!("I10: {reference} brings back {other:?}"),
            }
        }
        for note in ledger.state().notes() {
            assert!(matches!(resolve(&note.reference()), Ok(Found::Note { .. })), "I10: a note that leads nowhere");
        }
    }
}
