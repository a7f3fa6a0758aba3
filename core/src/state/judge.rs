//! The one door for decisions about single entries: what a proposal becomes, or why it is refused.

use alloc::string::String;

use super::{
    Action, OffloadRecord, Record,
    attach::content_bytes,
    ledger::{Guard, Ledger, MIN_SAVING},
    record::is_plain_id,
};
use crate::{
    digest::Digest,
    marker::ClearReason,
    plan::{Level, Proposal, Refusal, ToolRule},
    text,
    transcript::{Columns, EntryKind, NONE, PartRef, Transcript, text_of},
};

impl Ledger {
    /// Checks a proposal about one entry: the decision it becomes, its cost, and what it saves.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn judge(&self, guard: &Guard<'_>, proposal: &Proposal) -> Result<(Record, u32, u64), Refusal> {
        self.judge_with(guard, proposal, &mut String::new())
    }

    /// `scratch` is for the marker that is weighed.
    fn judge_with(
        &self,
        guard: &Guard<'_>,
        proposal: &Proposal,
        scratch: &mut String,
    ) -> Result<(Record, u32, u64), Refusal> {
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
        // A group kept beside a note is frozen until a pass rewrites the note.
        if self.note_over(columns, columns.group(entry)).is_some() {
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
        let cost = cost(&record, guard, scratch);
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
            let tool = || transcript.entry(columns.pair(entry) as usize).name;
            if !guard.tools.is_empty() && guard.tool_rule(tool()) == ToolRule::Never && !guard.last_resort {
                return Err(Refusal::Exempt);
            }
            Ok(())
        };
        let clear = |why| {
            let id = transcript.entry(entry).call_id;
            Action::Clear {
                digest: self.digest_of(guard, entry),
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
                let digest = self.digest_of(guard, entry);
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
                Ok(Action::Elide { digest: self.digest_of(guard, entry), parts })
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
                Ok(Action::Clip { digest: self.digest_of(guard, entry), bytes: content_bytes(transcript, entry) })
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

    /// The digest of an entry's content as it stands. What was hashed, for this entry or for another, is not hashed again.
    fn digest_of(&self, guard: &Guard<'_>, entry: usize) -> Digest {
        self.hashed.find(guard.transcript, entry).unwrap_or_else(|| Digest::of_entry(guard.transcript, entry))
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
            digest: self.digest_of(guard, entry),
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
        let mut scratch = core::mem::take(&mut self.scratch);
        let judged = self.judge_with(guard, proposal, &mut scratch);
        self.scratch = scratch;
        let (record, cost, saved) = judged?;
        let entry = record.place.index as usize;
        let raw_before = self.view_raw;
        // What stands in the place of an entry takes over its ratio, but for markers, which have their own.
        let comes = self.priced(entry, Some(&record.action), cost.into());
        let marker = matches!(record.action, Action::Clear { .. });
        let at = self.record_at(entry);
        let stood = at.map(|at| &self.state.records[at].action);
        let leaves = self.priced(entry, stood, saved + u64::from(cost));
        if let Some(digest) = record.action.digest() {
            self.hashed.took(guard.transcript, entry, digest);
        }
        match at {
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
        if leaves == (0, 0) {
            self.state.measured.replaced(u32::try_from(saved).unwrap_or(u32::MAX).saturating_add(cost));
        }
        if self.shrank(raw_before, leaves, comes) && marker {
            self.state.measured.marked(cost);
        } else {
            self.state.measured.replaced(cost);
        }
        Ok(saved)
    }
}

/// Whether an entry's assistant message is signed or encrypted.
fn is_sealed(columns: &Columns, entry: usize) -> bool {
    columns
        .members(columns.group(entry))
        .any(|member| columns.kind(member).is_assistant_side() && columns.is_sealed(member))
}

/// Whether a stored decision can be about the entry it names.
pub(super) fn is_legal(record: &Record, transcript: &dyn Transcript, columns: &Columns) -> bool {
    let entry = record.place.index as usize;
    if entry >= columns.len() {
        return false;
    }
    let kind = columns.kind(entry);
    match &record.action {
        Action::Elide { parts, .. } => {
            let count = transcript.entry(entry).parts;
            matches!(kind, EntryKind::User | EntryKind::ToolResult)
                && !parts.is_empty()
                && parts.iter().all(|&part| {
                    part < count
                        && matches!(transcript.part(entry, part as usize), PartRef::Image(_) | PartRef::File(_))
                })
        }
        Action::Clip { .. } => kind == EntryKind::ToolCall && !is_sealed(columns, entry),
        Action::Omit => kind == EntryKind::Reasoning && !is_sealed(columns, entry),
        Action::Condense { .. } | Action::Offload(_) | Action::Clear { .. } => {
            kind == EntryKind::ToolResult && !columns.is_orphan(entry)
        }
    }
}

/// Raw tokens of what stands in an entry's place.
pub(super) fn cost(record: &Record, guard: &Guard<'_>, scratch: &mut String) -> u32 {
    let entry = record.place.index as usize;
    scratch.clear();
    if !record.push_marker(guard.transcript, guard.columns, guard.style, scratch) {
        return 0;
    }
    let marker = scratch.as_str();
    match &record.action {
        Action::Elide { parts, .. } => {
            let gone: u32 = parts
                .iter()
                .map(|&part| guard.weigher.part(guard.transcript.part(entry, part as usize)))
                .fold(0, u32::saturating_add);
            let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
            let markers = guard.weigher.text(marker).saturating_mul(count);
            guard.columns.weight(entry).saturating_sub(gone).saturating_add(markers)
        }
        Action::Clip { .. } => {
            guard.weigher.framed(marker).saturating_add(guard.weigher.text(guard.transcript.entry(entry).name))
        }
        _ => guard.weigher.framed(marker),
    }
}
