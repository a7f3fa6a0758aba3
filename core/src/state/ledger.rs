//! A state laid over a record: what the view weighs, and the one door through which decisions come in.

use alloc::{string::String, vec::Vec};

use super::{
    Action, CompactionState, Note,
    cover::note_cost,
    hashed::Hashed,
    judge::{cost, is_legal},
};
use crate::{
    estimate::Weigher,
    marker::{self, MarkerStyle},
    plan::{Level, Refusal, ToolRule},
    transcript::{Columns, EntryKind, NONE, Transcript},
};

/// Least saving of a decision in raw tokens: less would vanish in the rounding of a calibrated total.
pub(super) const MIN_SAVING: u64 = 4;

/// What a decision is checked against: the record and the rules that hold while a pass runs.
#[derive(Clone, Copy)]
pub struct Guard<'a> {
    /// The record.
    pub transcript: &'a dyn Transcript,
    /// Facts about it.
    pub columns: &'a Columns,
    /// The rule by which markers are weighed.
    pub weigher: &'a Weigher,
    /// Wording of markers.
    pub style: MarkerStyle,
    /// Text around a summary.
    pub summary_wrapper: &'a str,
    /// Rules per tool, sorted by name.
    pub tools: &'a [(String, ToolRule)],
    /// Plugins may put text of their own in place of results.
    pub may_condense: bool,
    /// First group of the tail.
    pub tail_start: usize,
    /// The ladder of last resorts is at work: results may be reduced in the tail.
    pub last_resort: bool,
}

impl core::fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Guard").field("tail_start", &self.tail_start).field("last_resort", &self.last_resort).finish()
    }
}

impl Guard<'_> {
    /// The rule for a tool.
    #[must_use]
    pub fn tool_rule(&self, name: &str) -> ToolRule {
        self.tools
            .binary_search_by(|(tool, _)| tool.as_str().cmp(name))
            .map_or(ToolRule::Ordinary, |at| self.tools[at].1)
    }

    fn stand_in_cost(&self) -> u64 {
        u64::from(self.weigher.framed(marker::STAND_IN))
    }
}

/// A state, and the sums that follow from it and a record.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub(crate) state: CompactionState,
    /// Cost of every record's replacement in raw tokens, beside `state.records`.
    pub(super) costs: Vec<u32>,
    /// Cost of every note, beside `state.notes`.
    pub(super) note_costs: Vec<u64>,
    pub(super) view_raw: u64,
    /// Where markers are put together to be weighed.
    pub(super) scratch: String,
    /// What was hashed over this record.
    pub(super) hashed: Hashed,
}

impl Ledger {
    /// Lays `state`, already attached, over the record in `guard`.
    #[must_use]
    pub fn new(mut state: CompactionState, guard: &Guard<'_>) -> Self {
        state.records.retain(|record| is_legal(record, guard.transcript, guard.columns));
        let mut ledger = Self { state, ..Self::default() };
        ledger.costs = ledger.state.records.iter().map(|record| cost(record, guard, &mut ledger.scratch)).collect();
        ledger.note_costs = ledger.state.notes.iter().map(|note| note_cost(note, guard)).collect();
        let mut raw: u64 = ledger.note_costs.iter().sum();
        let columns = guard.columns;
        let mut group = 0;
        while group < columns.groups() {
            match ledger.note_over(columns, group) {
                None => raw += ledger.group_weight(guard, group),
                Some(note) if note.keeps(columns.group_start(group)) => raw += ledger.group_weight(guard, group),
                Some(_) => {}
            }
            group += 1;
        }
        ledger.view_raw = raw;
        // What another host had reduced when it was pinned here is reduced: a pin holds from where it stands.
        let mut pins = core::mem::take(&mut ledger.state.pins);
        pins.retain(|pin| {
            let entry = pin.index as usize;
            entry < columns.len() && ledger.level(columns, entry) == Level::Verbatim
        });
        ledger.state.pins = pins;
        ledger
    }

    /// Takes over what was hashed for `trial`, a copy of this ledger whose decisions are not recorded: the next pass decides about
    /// the same content.
    pub(crate) fn knows_hashes_of(&mut self, trial: Self) {
        self.hashed = trial.hashed;
    }

    /// The state.
    #[must_use]
    pub const fn state(&self) -> &CompactionState {
        &self.state
    }

    /// Raw tokens of the view, schemas not included.
    #[must_use]
    pub const fn view_raw(&self) -> u64 {
        self.view_raw
    }

    /// Takes in the entry just pushed. Answers the group from which the view changed, when that is not the end.
    pub(crate) fn pushed(&mut self, guard: &Guard<'_>) -> Option<usize> {
        let columns = guard.columns;
        let entry = columns.len() - 1;
        let group = columns.group(entry);
        if group + 1 == columns.groups() {
            if columns.group_start(group) == entry && group > 0 {
                // The group before is closed now: calls of it that still wait get a stand-in.
                let waiting = unanswered(columns, group - 1) as u64;
                if waiting > 0 && self.is_shown(columns, group - 1) {
                    self.view_raw += waiting * guard.stand_in_cost();
                }
            }
            if !columns.is_orphan(entry) {
                self.view_raw += u64::from(columns.weight(entry));
            }
            return None;
        }
        if self.is_shown(columns, group) {
            self.view_raw += u64::from(columns.weight(entry));
            self.view_raw = self.view_raw.saturating_sub(guard.stand_in_cost());
        }
        Some(group)
    }

    /// A decision was taken, by which one known part left the view and another came: of both, what was estimated, and what
    /// they weigh. Answers whether that was taken over.
    pub(super) fn shrank(&mut self, raw_before: u64, leaves: (u64, u64), comes: (u64, u64)) -> bool {
        // No decision makes a view larger: where what stands in the place is thought to weigh more than what left was
        // measured to, the estimate alone decides.
        self.state.calibration.exchange(raw_before.saturating_sub(self.view_raw), leaves, comes)
    }

    /// What is estimated of text that stands for an entry, at `cost`, and what it weighs, as far as that is known: a marker
    /// by what markers weigh, anything else by the ratio of the entry.
    pub(super) fn priced(&self, entry: usize, action: Option<&Action>, cost: u64) -> (u64, u64) {
        let ratio = match action {
            Some(Action::Clear { .. }) => Some(self.state.measured.of_markers(&self.state.calibration)),
            _ => self.state.measured.ratio(entry),
        };
        ratio.map_or((0, 0), |ratio| (cost, ratio.scale_to_nearest(cost)))
    }

    /// What was estimated of a group as shown when no note covers it, and what it weighed, as far as it stands verbatim and
    /// was measured, or stands in the place of what was.
    pub(super) fn measured_group(&self, columns: &Columns, group: usize) -> (u64, u64) {
        let (mut raw, mut real) = (0u64, 0u64);
        for entry in columns.members(group).filter(|&entry| !columns.is_orphan(entry)) {
            let known = match self.record_at(entry) {
                None => {
                    let weight = u64::from(columns.weight(entry));
                    self.state.measured.weight(entry, weight).map(|measured| (weight, measured))
                }
                Some(at) => Some(self.priced(entry, Some(&self.state.records[at].action), self.costs[at].into())),
            };
            if let Some(known) = known {
                raw = raw.saturating_add(known.0);
                real = real.saturating_add(known.1);
            }
        }
        (raw, real)
    }

    /// The note that covers a group.
    #[must_use]
    pub fn note_over(&self, columns: &Columns, group: usize) -> Option<&Note> {
        let start = columns.group_start(group);
        let at = self.state.notes.partition_point(|note| note.from as usize <= start);
        self.state.notes[..at].last().filter(|note| note.covers(start))
    }

    /// Whether any of a group stands in the view: it is not covered, or kept beside the note.
    #[must_use]
    pub fn is_shown(&self, columns: &Columns, group: usize) -> bool {
        self.note_over(columns, group).is_none_or(|note| note.keeps(columns.group_start(group)))
    }

    /// The first group at or after `group` that no note covers.
    #[must_use]
    pub fn next_open_group(&self, columns: &Columns, mut group: usize) -> usize {
        while group < columns.groups() {
            let Some(note) = self.note_over(columns, group) else { return group };
            group = self.next_open_after(columns, note);
        }
        columns.groups()
    }

    /// The first group after the stretch of `note`; under a later note that overlaps it, that note's own first
    /// group that is not covered by `note`.
    #[must_use]
    pub(crate) fn next_open_after(&self, columns: &Columns, note: &Note) -> usize {
        columns.group_from(note.to as usize)
    }

    pub(super) fn record_at(&self, entry: usize) -> Option<usize> {
        let at = self.state.records.partition_point(|record| (record.place.index as usize) < entry);
        self.state.records.get(at).is_some_and(|record| record.place.index as usize == entry).then_some(at)
    }

    /// Level of an entry.
    #[must_use]
    pub fn level(&self, columns: &Columns, entry: usize) -> Level {
        if !self.is_shown(columns, columns.group(entry)) {
            return Level::Covered;
        }
        self.record_at(entry).map_or(Level::Verbatim, |at| self.state.records[at].action.level())
    }

    /// Raw tokens of an entry in the view.
    #[must_use]
    pub fn view_weight(&self, columns: &Columns, entry: usize) -> u64 {
        if columns.is_orphan(entry) || !self.is_shown(columns, columns.group(entry)) {
            return 0;
        }
        self.entry_weight(columns, entry)
    }

    pub(super) fn entry_weight(&self, columns: &Columns, entry: usize) -> u64 {
        u64::from(self.record_at(entry).map_or_else(|| columns.weight(entry), |at| self.costs[at]))
    }

    /// Raw tokens of a group as shown when no note covers it, stand-ins included.
    #[must_use]
    pub fn group_weight(&self, guard: &Guard<'_>, group: usize) -> u64 {
        let columns = guard.columns;
        let closed = group + 1 < columns.groups();
        let mut raw = 0;
        for entry in columns.members(group) {
            if columns.is_orphan(entry) {
                continue;
            }
            raw += self.entry_weight(columns, entry);
            if closed && columns.kind(entry) == EntryKind::ToolCall && columns.pair(entry) == NONE {
                raw += guard.stand_in_cost();
            }
        }
        raw
    }

    /// Why an entry may not be reduced now, if so.
    #[must_use]
    pub fn protection(&self, guard: &Guard<'_>, entry: usize) -> Option<Refusal> {
        if self.is_pinned(guard.columns, entry) {
            return Some(Refusal::Pinned);
        }
        (guard.columns.group(entry) >= guard.tail_start).then_some(Refusal::Tail)
    }

    /// Whether an entry stays verbatim wherever it stands: instructions, the newest user text, the user's pins.
    #[must_use]
    pub fn is_pinned(&self, columns: &Columns, entry: usize) -> bool {
        columns.kind(entry) == EntryKind::System
            || columns.newest_user() as usize == entry
            || self.state.pins.iter().any(|pin| pin.index as usize == entry)
    }

    /// Pins an entry.
    pub(crate) fn pin(&mut self, columns: &Columns, entry: usize) {
        let place = super::Place::of(columns, entry);
        if let Err(at) = self.state.pins.binary_search(&place) {
            self.state.pins.insert(at, place);
        }
    }

    /// Cost of the note at `at` in raw tokens.
    #[must_use]
    pub fn note_cost(&self, at: usize) -> u64 {
        self.note_costs[at]
    }
}

/// Calls of a group that have no result.
pub(crate) fn unanswered(columns: &Columns, group: usize) -> usize {
    columns
        .members(group)
        .filter(|&entry| columns.kind(entry) == EntryKind::ToolCall && columns.pair(entry) == NONE)
        .count()
}
