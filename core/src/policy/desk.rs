//! The desk at which stages hand in proposals during a pass.

use alloc::{string::String, vec::Vec};
use core::ops::Range;

use crate::{
    notice::Decided,
    plan::{Desk, Level, Proposal, Refusal, ToolRule},
    state::{Guard, Ledger},
    view::Piece,
};

/// A trial ledger, the rules of the moment, and the running account.
pub(super) struct PassDesk<'a> {
    pub(super) ledger: &'a mut Ledger,
    pub(super) guard: Guard<'a>,
    pub(super) schema_tokens: u64,
    pub(super) tally: &'a mut Tally,
    /// Calibrated tokens that all pins together may weigh when a stage pins.
    pub(super) pin_tokens: u64,
    /// A summary stage follows, and somebody can write one.
    pub(super) summary_follows: bool,
}

/// What a pass did so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) decided: Decided,
    pub(super) refused: u32,
    pub(super) lines: Vec<String>,
    /// Lines a stage may still add; a chatty plugin must not fill memory.
    pub(super) lines_left: u32,
    /// A stage asked for a summary of the groups before this one.
    pub(super) summary_to: Option<usize>,
}

impl Desk for PassDesk<'_> {
    fn level(&self, entry: usize) -> Level {
        self.ledger.level(self.guard.columns, entry)
    }

    fn view_weight(&self, entry: usize) -> u64 {
        self.ledger.view_weight(self.guard.columns, entry)
    }

    fn view_tokens(&self) -> u64 {
        self.ledger.state().calibration().tokens(self.ledger.view_raw() + self.schema_tokens)
    }

    fn protection(&self, entry: usize) -> Option<Refusal> {
        self.ledger.protection(&self.guard, entry)
    }

    fn saving(&self, proposal: &Proposal) -> Result<u64, Refusal> {
        if let Proposal::Snip { from, to } = *proposal {
            let note = self.ledger.draft_note(&self.guard, from, to, None)?;
            let raw = self.ledger.judge_note(&self.guard, &note)?;
            return Ok(self.ledger.view_raw() - raw);
        }
        self.ledger.judge(&self.guard, proposal).map(|(_, _, saved)| saved)
    }

    fn propose(&mut self, proposal: Proposal) -> Result<u64, Refusal> {
        let result = if let Proposal::Snip { from, to } = proposal {
            self.ledger.draft_note(&self.guard, from, to, None).and_then(|note| {
                let held = self.ledger.state().notes().iter().filter(|held| note.contains(held));
                let before: u32 = held.map(|held| held.counts.total()).sum();
                // Where notes overlap, both count what they share.
                let covered = note.counts.total().saturating_sub(before).max(1);
                let saved = self.ledger.accept_note(&self.guard, note)?;
                self.tally.decided.covered = self.tally.decided.covered.saturating_add(covered);
                Ok(saved)
            })
        } else {
            self.ledger.accept(&self.guard, &proposal)
        };
        match &result {
            Ok(_) => {
                let decided = &mut self.tally.decided;
                match proposal {
                    Proposal::Clear { .. } | Proposal::ClearSuperseded { .. } | Proposal::OmitReasoning { .. } => {
                        decided.cleared += 1;
                    }
                    Proposal::Offload { .. } | Proposal::Persist { .. } => decided.offloaded += 1,
                    Proposal::ElideMedia { .. } | Proposal::ClipArguments { .. } => decided.elided += 1,
                    Proposal::Condense { .. } => decided.condensed += 1,
                    Proposal::Snip { .. } => {}
                }
            }
            Err(_) => self.tally.refused = self.tally.refused.saturating_add(1),
        }
        result
    }

    fn tool_rule(&self, name: &str) -> ToolRule {
        self.guard.tool_rule(name)
    }

    fn has_tool_rules(&self) -> bool {
        !self.guard.tools.is_empty()
    }

    fn next_open_group(&self, group: usize) -> usize {
        self.ledger.next_open_group(self.guard.columns, group)
    }

    fn explain(&mut self, mut line: String) {
        if let Some(left) = self.tally.lines_left.checked_sub(1) {
            self.tally.lines_left = left;
            let cut = crate::text::floor_boundary(&line, 500);
            line.truncate(cut);
            self.tally.lines.push(line);
        }
    }

    fn raw_for(&self, tokens: u64) -> u64 {
        self.ledger.state().calibration().raw_for(tokens)
    }

    fn has_notes(&self) -> bool {
        !self.ledger.state().notes().is_empty()
    }

    fn levels(&self, entries: Range<usize>) -> Vec<Level> {
        self.ledger.levels(self.guard.columns, entries)
    }

    fn view_weights(&self, entries: Range<usize>) -> Vec<u64> {
        self.ledger.view_weights(self.guard.columns, entries)
    }

    fn protections(&self, entries: Range<usize>) -> Vec<bool> {
        self.ledger.protections(self.guard.columns, self.guard.tail_start, entries)
    }

    fn pin(&mut self, entry: usize) -> Result<(), Refusal> {
        let result = self.judge_pin(entry);
        match result {
            Ok(()) => self.ledger.pin(self.guard.columns, entry),
            Err(_) => self.tally.refused = self.tally.refused.saturating_add(1),
        }
        result
    }

    fn request_summary(&mut self, end: usize) -> Result<(), Refusal> {
        let first = self.next_open_group(super::ladder::body_start(self.guard.columns));
        let result = if !self.summary_follows {
            Err(Refusal::NotGranted)
        } else if end > self.guard.columns.groups() {
            Err(Refusal::OutOfRange)
        } else if end > self.guard.tail_start {
            Err(Refusal::Tail)
        } else if first >= end {
            Err(Refusal::Covered)
        } else {
            Ok(())
        };
        match result {
            Ok(()) => self.tally.summary_to = self.tally.summary_to.max(Some(end)),
            Err(_) => self.tally.refused = self.tally.refused.saturating_add(1),
        }
        result
    }
}

impl PassDesk<'_> {
    fn judge_pin(&self, entry: usize) -> Result<(), Refusal> {
        let columns = self.guard.columns;
        if entry >= columns.len() {
            return Err(Refusal::OutOfRange);
        }
        if self.ledger.is_pinned(columns, entry) {
            return Ok(());
        }
        if self.ledger.level(columns, entry) > Level::Verbatim {
            return Err(Refusal::NotRising);
        }
        let pins = self.ledger.state().pins().iter().map(|pin| u64::from(columns.weight(pin.index as usize)));
        let raw = pins.sum::<u64>() + u64::from(columns.weight(entry));
        let tokens = self.ledger.state().calibration().ratio().scale(raw);
        if tokens > self.pin_tokens { Err(Refusal::NoBudget) } else { Ok(()) }
    }
}

/// Raw tokens of one piece.
pub(super) fn piece_raw(ledger: &Ledger, guard: &Guard<'_>, piece: Piece<'_>) -> u64 {
    match piece {
        Piece::Entry { entry } => u64::from(guard.columns.weight(entry)),
        Piece::Text { entry, .. } | Piece::Elided { entry, .. } | Piece::Arguments { entry, .. } => {
            ledger.view_weight(guard.columns, entry)
        }
        Piece::Note { text } | Piece::StandIn { text, .. } => u64::from(guard.weigher.framed(text)),
    }
}
