//! A state laid over a record: what the view weighs, and the one door through which decisions come in.

use alloc::{string::String, vec::Vec};

use super::{
    Action, CompactionState, Note, NoteKind, OffloadRecord, Place, Record, SummaryState,
    attach::{before, content_bytes},
    record::is_plain_id,
};
use crate::{
    digest::Digest,
    estimate::Weigher,
    marker::{self, ClearReason, Counts, MarkerStyle},
    plan::{Level, Proposal, Refusal, ToolRule},
    text,
    transcript::{Chain, Columns, EntryKind, NONE, PartRef, Transcript, text_of},
};

/// Least saving of a decision in raw tokens: less would vanish in the rounding of a calibrated total.
const MIN_SAVING: u64 = 4;

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
    costs: Vec<u32>,
    /// Cost of every note, beside `state.notes`.
    note_costs: Vec<u64>,
    view_raw: u64,
}

impl Ledger {
    /// Lays `state`, already attached, over the record in `guard`.
    #[must_use]
    pub fn new(mut state: CompactionState, guard: &Guard<'_>) -> Self {
        state.records.retain(|record| is_legal(record, guard));
        let mut ledger = Self { state, ..Self::default() };
        ledger.costs = ledger.state.records.iter().map(|record| cost(record, guard)).collect();
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
        ledger
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
            let end = note.to as usize;
            group = if end >= columns.len() { columns.groups() } else { columns.group(end) };
        }
        columns.groups()
    }

    /// The first group after the stretch of `note`; under a later note that overlaps it, that note's own first
    /// group that is not covered by `note`.
    #[must_use]
    pub(crate) fn next_open_after(&self, columns: &Columns, note: &Note) -> usize {
        let end = note.to as usize;
        if end >= columns.len() { columns.groups() } else { columns.group(end) }
    }

    fn record_at(&self, entry: usize) -> Option<usize> {
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

    fn entry_weight(&self, columns: &Columns, entry: usize) -> u64 {
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

    /// Checks a proposal about one entry: the decision it becomes, its cost, and what it saves.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn judge(&self, guard: &Guard<'_>, proposal: &Proposal) -> Result<(Record, u32, u64), Refusal> {
        let columns = guard.columns;
        let entry = proposal.entry().filter(|&entry| entry < columns.len()).ok_or(Refusal::OutOfRange)?;
        match self.protection(guard, entry) {
            Some(Refusal::Tail) if guard.last_resort && columns.kind(entry) == EntryKind::ToolResult => {}
            Some(refusal) => return Err(refusal),
            None => {}
        }
        let level = self.level(columns, entry);
        if level == Level::Covered {
            return Err(Refusal::Covered);
        }
        if columns.note_blocks(entry, self) {
            return Err(Refusal::Covered);
        }
        let action = self.action_of(guard, entry, proposal)?;
        let rising = match (&action, self.record_at(entry).map(|at| &self.state.records[at].action)) {
            (Action::Elide { parts, .. }, Some(Action::Elide { parts: had, .. })) => {
                had.iter().all(|part| parts.contains(part)) && parts.len() > had.len()
            }
            _ => action.level() > level,
        };
        if !rising {
            return Err(Refusal::NotRising);
        }
        let record = Record::new(columns, entry, action);
        let cost = cost(&record, guard);
        let now = self.entry_weight(columns, entry);
        if u64::from(cost) + MIN_SAVING > now {
            return Err(Refusal::NotSmaller);
        }
        Ok((record, cost, now - u64::from(cost)))
    }

    fn action_of(&self, guard: &Guard<'_>, entry: usize, proposal: &Proposal) -> Result<Action, Refusal> {
        let (transcript, columns) = (guard.transcript, guard.columns);
        let kind = columns.kind(entry);
        let result = || {
            if kind != EntryKind::ToolResult || columns.is_orphan(entry) {
                return Err(Refusal::WrongKind);
            }
            let tool = transcript.entry(columns.pair(entry) as usize).name;
            if guard.tool_rule(tool) == ToolRule::Never && !guard.last_resort {
                return Err(Refusal::Exempt);
            }
            Ok(())
        };
        let clear = |why| {
            let id = transcript.entry(entry).call_id;
            Action::Clear {
                digest: Digest::of_entry(transcript, entry),
                bytes: content_bytes(transcript, entry),
                why: if guard.last_resort { ClearReason::LastResort } else { why },
                by_id: is_plain_id(id) && columns.is_unique_id(id),
            }
        };
        match *proposal {
            Proposal::Clear { .. } => result().map(|()| clear(ClearReason::Space)),
            Proposal::ClearSuperseded { .. } => result().map(|()| clear(ClearReason::Superseded)),
            Proposal::Offload { head, tail, .. } => self.preview(guard, entry, head, tail, false, result()),
            Proposal::Persist { head, .. } => self.preview(guard, entry, head, 0, true, result()),
            Proposal::Condense { ref by, ref text, .. } => {
                result()?;
                if !guard.may_condense {
                    return Err(Refusal::NotGranted);
                }
                if columns.is_recall(entry) {
                    return Err(Refusal::Exempt);
                }
                let clean = by.len() <= 64 && by.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\');
                if !clean || text.trim().is_empty() {
                    return Err(Refusal::WrongKind);
                }
                let digest = Digest::of_entry(transcript, entry);
                Ok(Action::Condense { digest, by: by.clone(), text: text.clone() })
            }
            Proposal::ElideMedia { ref parts, .. } => {
                if !matches!(kind, EntryKind::User | EntryKind::ToolResult) || columns.is_orphan(entry) {
                    return Err(Refusal::WrongKind);
                }
                let is_media =
                    |part: u32| matches!(transcript.part(entry, part as usize), PartRef::Image(_) | PartRef::File(_));
                let count = transcript.entry(entry).parts;
                let mut parts = match parts {
                    None => (0..count).filter(|&part| is_media(part)).collect(),
                    Some(parts) if parts.iter().any(|&part| part >= count) => return Err(Refusal::OutOfRange),
                    Some(parts) if parts.iter().any(|&part| !is_media(part)) => return Err(Refusal::WrongKind),
                    Some(parts) => parts.clone(),
                };
                if let Some(at) = self.record_at(entry)
                    && let Action::Elide { parts: had, .. } = &self.state.records[at].action
                {
                    parts.extend_from_slice(had);
                }
                parts.sort_unstable();
                parts.dedup();
                if parts.is_empty() {
                    return Err(Refusal::WrongKind);
                }
                Ok(Action::Elide { digest: Digest::of_entry(transcript, entry), parts })
            }
            Proposal::ClipArguments { .. } => {
                if kind != EntryKind::ToolCall {
                    return Err(Refusal::WrongKind);
                }
                if columns.pair(entry) == NONE && columns.is_pending(entry) {
                    return Err(Refusal::Pending);
                }
                if is_sealed(columns, entry) {
                    return Err(Refusal::Sealed);
                }
                let rule = guard.tool_rule(transcript.entry(entry).name);
                if matches!(rule, ToolRule::Never | ToolRule::KeepArguments) || columns.is_recall(entry) {
                    return Err(Refusal::Exempt);
                }
                Ok(Action::Clip {
                    digest: Digest::of_entry(transcript, entry),
                    bytes: content_bytes(transcript, entry),
                })
            }
            Proposal::OmitReasoning { .. } => {
                if kind != EntryKind::Reasoning {
                    return Err(Refusal::WrongKind);
                }
                if is_sealed(columns, entry) {
                    return Err(Refusal::Sealed);
                }
                // An assistant message of nothing but reasoning would become empty.
                let alone = columns
                    .members(columns.group(entry))
                    .all(|member| member == entry || columns.kind(member) == EntryKind::Reasoning);
                if alone { Err(Refusal::WrongKind) } else { Ok(Action::Omit) }
            }
            Proposal::Snip { .. } => Err(Refusal::OutOfRange),
        }
    }

    fn preview(
        &self,
        guard: &Guard<'_>,
        entry: usize,
        head: u32,
        tail: u32,
        persisted: bool,
        allowed: Result<(), Refusal>,
    ) -> Result<Action, Refusal> {
        allowed?;
        if guard.columns.is_recall(entry) && !guard.last_resort {
            return Err(Refusal::Exempt);
        }
        let body = text_of(guard.transcript, entry);
        let head = text::head(&body, head as usize);
        let tail = text::tail(&body[head.len()..], tail as usize);
        Ok(Action::Offload(OffloadRecord {
            digest: Digest::of_entry(guard.transcript, entry),
            bytes: content_bytes(guard.transcript, entry),
            head: u32::try_from(head.len()).unwrap_or(u32::MAX),
            tail: u32::try_from(tail.len()).unwrap_or(u32::MAX),
            head_digest: Digest::of(head.as_bytes()).short(),
            persisted,
            last_resort: guard.last_resort,
        }))
    }

    /// Takes a proposal about one entry; answers the raw tokens saved.
    pub(crate) fn accept(&mut self, guard: &Guard<'_>, proposal: &Proposal) -> Result<u64, Refusal> {
        let (record, cost, saved) = self.judge(guard, proposal)?;
        let entry = record.place.index as usize;
        match self.record_at(entry) {
            Some(at) => {
                self.state.records[at] = record;
                self.costs[at] = cost;
            }
            None => {
                let at = self.state.records.partition_point(|other| (other.place.index as usize) < entry);
                self.state.records.insert(at, record);
                self.costs.insert(at, cost);
            }
        }
        self.view_raw = self.view_raw.saturating_sub(saved);
        Ok(saved)
    }

    /// Drafts a note over the groups `from..to`; pinned groups among them stay beside it.
    ///
    /// # Errors
    /// Why no note may stand there.
    pub fn draft_note(
        &self,
        guard: &Guard<'_>,
        from: usize,
        to: usize,
        summary: Option<&str>,
    ) -> Result<Note, Refusal> {
        let columns = guard.columns;
        if from >= to || to > columns.groups() {
            return Err(Refusal::OutOfRange);
        }
        if to > guard.tail_start {
            return Err(Refusal::Tail);
        }
        // A note that begins here already is carried on from where it ends, so that covering more costs what is new.
        let first = columns.group_start(from);
        let end_of = |note: &Note| self.next_open_after(columns, note);
        let held = self.state.notes.iter().find(|note| note.from as usize == first && end_of(note) <= to);
        let mut counts = held.map_or_else(Counts::default, |note| note.counts);
        let mut span = Chain(held.map_or(0, |note| note.span));
        let mut kept = Vec::new();
        let is_pinned = |group: usize| columns.members(group).any(|entry| self.is_pinned(columns, entry));
        for place in held.into_iter().flat_map(|note| &note.kept) {
            let group = columns.group(place.index as usize);
            if is_pinned(group) {
                kept.push(*place);
            } else {
                columns.members(group).for_each(|entry| count(&mut counts, columns.kind(entry)));
            }
        }
        for group in held.map_or(from, end_of)..to {
            let pinned = is_pinned(group);
            if pinned {
                kept.push(Place::of(columns, columns.group_start(group)));
            }
            for entry in columns.members(group) {
                if columns.is_pending(entry) {
                    return Err(Refusal::Pending);
                }
                if columns.kind(entry) != EntryKind::System {
                    span = span.then(columns.identity(entry));
                }
                if !pinned {
                    count(&mut counts, columns.kind(entry));
                }
            }
        }
        let (start, end) = (columns.group_start(from), columns.group_start(to));
        Ok(Note {
            from: u32::try_from(start).unwrap_or(u32::MAX),
            to: u32::try_from(end).unwrap_or(u32::MAX),
            revision: 0,
            kind: if summary.is_some() { NoteKind::Summary } else { NoteKind::Snip },
            before: before(columns, start),
            after: before(columns, end),
            span: span.0,
            counts,
            shortest: false,
            summary: SummaryState { text: summary.unwrap_or_default().into() },
            kept,
        })
    }

    /// What a note would change: raw tokens of the view with it in place.
    ///
    /// # Errors
    /// The view would not get smaller, or coverage would shrink.
    pub fn judge_note(&self, guard: &Guard<'_>, note: &Note) -> Result<u64, Refusal> {
        let columns = guard.columns;
        let mut raw = self.view_raw;
        for (held, cost) in self.state.notes.iter().zip(&self.note_costs) {
            let overlaps = note.from < held.to && held.from < note.to;
            if note.contains(held) {
                raw = raw.saturating_sub(*cost);
            } else if overlaps {
                return Err(Refusal::Covered);
            }
        }
        // Only what is shown now can go: open groups, and what the notes in the way keep beside them.
        let first = columns.group(note.from as usize);
        let end = self.next_open_after(columns, note);
        let goes = |group: usize| !note.keeps(columns.group_start(group));
        let mut group = self.next_open_group(columns, first);
        while group < end {
            if goes(group) {
                raw = raw.saturating_sub(self.group_weight(guard, group));
            }
            group = self.next_open_group(columns, group + 1);
        }
        for held in self.state.notes.iter().filter(|held| note.contains(held)) {
            for place in &held.kept {
                let group = columns.group(place.index as usize);
                if goes(group) && self.is_shown(columns, group) {
                    raw = raw.saturating_sub(self.group_weight(guard, group));
                }
            }
        }
        for place in &note.kept {
            let group = columns.group(place.index as usize);
            if !self.is_shown(columns, group) {
                raw += self.group_weight(guard, group);
            }
        }
        raw += note_cost(note, guard);
        if raw + MIN_SAVING <= self.view_raw { Ok(raw) } else { Err(Refusal::NotSmaller) }
    }

    /// Puts a note in place; notes it contains and records under it go. Answers the raw tokens saved.
    pub(crate) fn accept_note(&mut self, guard: &Guard<'_>, note: Note) -> Result<u64, Refusal> {
        let raw = self.judge_note(guard, &note)?;
        let saved = self.view_raw - raw;
        let mut at = 0;
        while at < self.state.notes.len() {
            if note.contains(&self.state.notes[at]) {
                self.state.notes.remove(at);
                self.note_costs.remove(at);
            } else {
                at += 1;
            }
        }
        let at = self.state.notes.partition_point(|held| (held.from, held.to) < (note.from, note.to));
        self.note_costs.insert(at, note_cost(&note, guard));
        self.state.notes.insert(at, note);
        self.view_raw = raw;
        // Records under a note are not needed any more; those of kept groups are.
        let columns = guard.columns;
        let mut records = core::mem::take(&mut self.state.records);
        let mut costs = core::mem::take(&mut self.costs).into_iter();
        let mut left = Vec::with_capacity(costs.len());
        records.retain(|record| {
            let cost = costs.next().unwrap_or_default();
            let shown = self.is_shown(columns, columns.group(record.place.index as usize));
            if shown {
                left.push(cost);
            }
            shown
        });
        self.state.records = records;
        self.costs = left;
        Ok(saved)
    }

    /// Shortens a note (the last rung of the ladder). Answers the raw tokens saved.
    pub(crate) fn shorten_note(&mut self, guard: &Guard<'_>, at: usize, summary_bytes: usize) -> u64 {
        let note = &self.state.notes[at];
        let mut shorter = note.clone();
        shorter.revision = note.revision.saturating_add(1);
        if summary_bytes == 0 {
            shorter.shortest = true;
            shorter.summary.text.clear();
        } else {
            let cut = text::head(&note.summary.text, summary_bytes).len();
            shorter.summary.text.truncate(cut);
        }
        let cost = note_cost(&shorter, guard);
        let Some(saved) = self.note_costs[at].checked_sub(cost).filter(|&saved| saved > 0) else { return 0 };
        self.state.notes[at] = shorter;
        self.note_costs[at] = cost;
        self.view_raw = self.view_raw.saturating_sub(saved);
        saved
    }

    /// Cost of the note at `at` in raw tokens.
    #[must_use]
    pub fn note_cost(&self, at: usize) -> u64 {
        self.note_costs[at]
    }
}

impl Columns {
    /// Whether an entry is shown beside a note although its group is covered. Such a group is frozen until a
    /// pass rewrites the note.
    fn note_blocks(&self, entry: usize, ledger: &Ledger) -> bool {
        ledger.note_over(self, self.group(entry)).is_some()
    }
}

fn count(counts: &mut Counts, kind: EntryKind) {
    let slot = match kind {
        EntryKind::System => return,
        EntryKind::User => &mut counts.user,
        EntryKind::Assistant | EntryKind::Reasoning => &mut counts.assistant,
        EntryKind::ToolCall => &mut counts.calls,
        EntryKind::ToolResult => &mut counts.results,
    };
    *slot = slot.saturating_add(1);
}

/// Calls of a group that have no result.
pub(crate) fn unanswered(columns: &Columns, group: usize) -> usize {
    columns
        .members(group)
        .filter(|&entry| columns.kind(entry) == EntryKind::ToolCall && columns.pair(entry) == NONE)
        .count()
}

/// Whether an entry's assistant message is signed or encrypted.
fn is_sealed(columns: &Columns, entry: usize) -> bool {
    columns
        .members(columns.group(entry))
        .any(|member| columns.kind(member).is_assistant_side() && columns.is_sealed(member))
}

/// Whether a stored decision can be about the entry it names.
fn is_legal(record: &Record, guard: &Guard<'_>) -> bool {
    let entry = record.place.index as usize;
    if entry >= guard.columns.len() {
        return false;
    }
    let kind = guard.columns.kind(entry);
    match &record.action {
        Action::Elide { parts, .. } => {
            let count = guard.transcript.entry(entry).parts;
            matches!(kind, EntryKind::User | EntryKind::ToolResult)
                && !parts.is_empty()
                && parts.iter().all(|&part| {
                    part < count
                        && matches!(guard.transcript.part(entry, part as usize), PartRef::Image(_) | PartRef::File(_))
                })
        }
        Action::Clip { .. } => kind == EntryKind::ToolCall && !is_sealed(guard.columns, entry),
        Action::Omit => kind == EntryKind::Reasoning && !is_sealed(guard.columns, entry),
        Action::Condense { .. } | Action::Offload(_) | Action::Clear { .. } => {
            kind == EntryKind::ToolResult && !guard.columns.is_orphan(entry)
        }
    }
}

/// Raw tokens of what stands in an entry's place.
fn cost(record: &Record, guard: &Guard<'_>) -> u32 {
    let entry = record.place.index as usize;
    let Some(marker) = record.marker(guard.transcript, guard.columns, guard.style) else { return 0 };
    match &record.action {
        Action::Elide { parts, .. } => {
            let gone: u32 = parts
                .iter()
                .map(|&part| guard.weigher.part(guard.transcript.part(entry, part as usize)))
                .fold(0, u32::saturating_add);
            let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
            let markers = guard.weigher.text(&marker).saturating_mul(count);
            guard.columns.weight(entry).saturating_sub(gone).saturating_add(markers)
        }
        Action::Clip { .. } => {
            guard.weigher.framed(&marker).saturating_add(guard.weigher.text(guard.transcript.entry(entry).name))
        }
        _ => guard.weigher.framed(&marker),
    }
}

fn note_cost(note: &Note, guard: &Guard<'_>) -> u64 {
    u64::from(guard.weigher.framed(&note.text(guard.style, guard.summary_wrapper)))
}

impl Note {
    /// The whole text of the note as a view shows it.
    #[must_use]
    pub fn text(&self, style: MarkerStyle, wrapper: &str) -> String {
        let reference = self.reference();
        if self.shortest {
            marker::shortest_note(style, &reference)
        } else if self.kind == NoteKind::Summary {
            marker::summary_entry(style, wrapper, &self.summary.text, &reference)
        } else {
            marker::snip_note(style, &reference, &self.counts)
        }
    }
}
