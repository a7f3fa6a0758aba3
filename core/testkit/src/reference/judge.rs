//! What a pass may have decided, from first principles.

use foreshorten_core::{
    digest::Digest,
    marker::Counts,
    plan::{Level, ToolRule},
    state::{Action, CompactionState, Note, NoteKind, Record},
    transcript::{Chain, EntryKind, Identity, PartRef, identity_of, text_of},
};

use super::Reference;

/// What is known of a pass from outside.
#[derive(Clone, Copy, Debug)]
pub struct PassFacts {
    /// The notice says that the ladder of last resorts was used.
    pub last_resort: bool,
    /// Raw tokens of the protected tail.
    pub tail: u64,
    /// The record was edited since the session began. The name of a note that is carried on may then be that of what was
    /// there before: a late result that counts in its stretch and stands behind it may be gone.
    pub edited: bool,
}

/// Above this many entries fingerprints of the whole record are not made again.
const FINGERPRINTS_UP_TO: usize = 300;

impl Reference<'_> {
    /// Looks at the difference that a pass made to a state.
    ///
    /// # Errors
    /// A sentence about the first decision that should not be there.
    pub fn judge(&self, before: &CompactionState, after: &CompactionState, facts: PassFacts) -> Result<(), String> {
        if before.epoch() != after.epoch() {
            return Err("a pass began a new epoch".into());
        }
        let (was, is) = (self.levels(before), self.levels(after));
        if let Some(entry) = (0..is.len()).find(|&entry| is[entry] < was[entry]) {
            return Err(format!("I3: entry {entry} fell from {:?} to {:?}", was[entry], is[entry]));
        }
        for record in after.records() {
            let index = record.place.index as usize;
            let had = before.records().iter().find(|had| had.place == record.place);
            // One that a join or an edit brought under a note waits for the next note to be made.
            let waits = was[index] == Level::Covered && had == Some(record);
            if is[index] == Level::Covered && !waits {
                return Err(format!("a decision about entry {index} is kept although a note covers it"));
            }
            if had != Some(record) {
                let before_and_after = (was[index], before, after);
                self.judge_record(record, had, before_and_after, facts)
                    .map_err(|wrong| format!("{wrong}: {record:?} instead of {had:?}"))?;
            }
        }
        for had in before.records() {
            let index = had.place.index as usize;
            if is[index] != Level::Covered && after.records().iter().all(|record| record.place != had.place) {
                return Err(format!("the decision about entry {index} is gone"));
            }
        }
        for note in after.notes() {
            let same = |had: &&Note| (had.from, had.to) == (note.from, note.to);
            let had = before.notes().iter().find(same);
            if had != Some(note) {
                self.judge_note(note, had, after, facts).map_err(|wrong| format!("{wrong}: {note:?}"))?;
            }
        }
        for had in before.notes() {
            if !after.notes().iter().any(|note| note.from <= had.from && had.to <= note.to) {
                return Err(format!("I3: the stretch {}..{} is covered no more", had.from, had.to));
            }
        }
        let (raw_before, raw_after) = (self.raw(before), self.raw(after));
        if raw_after >= raw_before {
            return Err(format!("I7: the view weighed {raw_before} and weighs {raw_after}"));
        }
        Ok(())
    }

    /// First group of the tail: the newest, and older ones while all of it fits.
    fn tail_start(&self, state: &CompactionState, tail: u64) -> usize {
        let mut start = self.newest_group();
        while start > 0 && self.note_over(state, start - 1).is_none() {
            let weight: u64 = (start - 1..self.groups.len()).map(|group| self.group_weight(state, group)).sum();
            if weight > tail {
                break;
            }
            start -= 1;
        }
        start
    }

    fn judge_record(
        &self,
        record: &Record,
        had: Option<&Record>,
        (was, before, after): (Level, &CompactionState, &CompactionState),
        facts: PassFacts,
    ) -> Result<(), String> {
        let index = record.place.index as usize;
        let (kind, group) = (self.kind(index), self.group[index]);
        let no = |wrong: &str| Err(wrong.to_string());
        // What it is about.
        let result = kind == EntryKind::ToolResult && !self.is_orphan(index);
        let more_parts = match (&record.action, had.map(|had| &had.action)) {
            (Action::Elide { parts, .. }, Some(Action::Elide { parts: old, .. })) => {
                parts.len() > old.len() && old.iter().all(|part| parts.contains(part))
            }
            _ => false,
        };
        if record.action.level() <= was && !more_parts {
            return no("I3: the level did not rise");
        }
        if was == Level::Covered || self.note_over(before, group).is_some() {
            return no("I3: under a note already");
        }
        if self.is_pinned(after, index) {
            return no("I6: pinned");
        }
        if group >= self.tail_start(before, facts.tail) && !(facts.last_resort && result) {
            return no("I6: in the tail");
        }
        if self.weight_under(Some(record), index) >= self.weight_under(had, index) {
            return no("I7: not smaller");
        }
        // What it says of the content.
        if record.action.digest().is_some_and(|digest| digest != self.digest(index)) {
            return no("I10: another digest than the content's");
        }
        let bytes = self.bytes(index);
        let tool = self.pair[index].filter(|_| kind == EntryKind::ToolResult).unwrap_or(index);
        let name = self.transcript.entry(tool).name;
        let rule = self.config.tools.iter().find(|(tool, _)| tool == name).map_or(ToolRule::Ordinary, |rule| rule.1);
        let sealed = self.groups[group]
            .iter()
            .any(|&member| self.kind(member).is_assistant_side() && self.transcript.entry(member).sealed);
        match &record.action {
            Action::Elide { parts, .. } => {
                let is_media = |part: &u32| {
                    matches!(self.parts(index).nth(*part as usize), Some(PartRef::Image(_) | PartRef::File(_)))
                };
                let ascending = parts.windows(2).all(|pair| pair[0] < pair[1]);
                if !(result || kind == EntryKind::User) || parts.is_empty() || !parts.iter().all(is_media) || !ascending
                {
                    return no("these parts are not media of a message or result");
                }
            }
            Action::Clip { bytes: said, .. } => {
                if kind != EntryKind::ToolCall || self.is_recall(index) {
                    return no("not the arguments of an ordinary call");
                }
                if sealed {
                    return no("I5: arguments of a sealed message clipped");
                }
                if self.is_unanswered(index) && group == self.newest_group() {
                    return no("I5: a pending call clipped");
                }
                if *said != bytes {
                    return no("another size than the content's");
                }
                if matches!(rule, ToolRule::Never | ToolRule::KeepArguments) {
                    return no("the tool's rule keeps arguments");
                }
            }
            Action::Omit => {
                if kind != EntryKind::Reasoning {
                    return no("not reasoning");
                }
                if sealed {
                    return no("I5: reasoning of a sealed message left out");
                }
                if self.groups[group].iter().all(|&member| self.kind(member) == EntryKind::Reasoning) {
                    return no("I5: a message of nothing but reasoning left out");
                }
            }
            _ if !result => return no("not a result that answers a call"),
            _ if rule == ToolRule::Never && !facts.last_resort => return no("the tool's rule keeps results"),
            Action::Condense { text, .. } => {
                if !self.config.may_condense || self.is_recall(index) || text.is_empty() {
                    return no("condensed without a grant");
                }
            }
            Action::Offload(preview) => {
                let whole = text_of(self.transcript, index);
                let (head, tail) = (preview.head as usize, preview.tail as usize);
                if preview.bytes != bytes || head + tail > whole.len() {
                    return no("another size than the content's");
                }
                if !whole.is_char_boundary(head) || !whole.is_char_boundary(whole.len() - tail) {
                    return no("a preview cut within a character");
                }
                if Digest::of(&whole.as_bytes()[..head]).short() != preview.head_digest {
                    return no("another digest than the preview's");
                }
                if self.is_recall(index) && !preview.last_resort {
                    return no("a recalled result offloaded");
                }
                if preview.last_resort && !facts.last_resort {
                    return no("I16: cut as a last resort, and the notice does not say so");
                }
            }
            Action::Clear { bytes: said, by_id, .. } => {
                if *said != bytes {
                    return no("another size than the content's");
                }
                if *by_id && !self.is_good_id(self.transcript.entry(index).call_id) {
                    return no("I10: named by an id that is reused or cannot stand in a marker");
                }
            }
            _ => return no("an action this judge does not know"),
        }
        Ok(())
    }

    fn judge_note(
        &self,
        note: &Note,
        had: Option<&Note>,
        after: &CompactionState,
        facts: PassFacts,
    ) -> Result<(), String> {
        let no = |wrong: &str| Err(wrong.to_string());
        // What was decided before is not decided again: after a rewind an older note may end with the record, beside the
        // newest group that it keeps.
        if let Some(had) = had
            && note.revision > had.revision
            && (note.span, note.counts, &note.kept) == (had.span, had.counts, &had.kept)
        {
            let begins = had.summary.text.starts_with(&note.summary.text);
            let shortened = facts.last_resort && begins && self.note_text(note).len() < self.note_text(had).len();
            return if shortened { Ok(()) } else { no("a note revised that was not shortened") };
        }
        let group_at = |index: u32| (0..self.groups.len()).find(|&group| self.start(group) == index as usize);
        let Some(from) = group_at(note.from) else { return no("I5: a note begins within a group") };
        // The newest group stays, so a note ends where a group begins.
        let Some(to) = group_at(note.to) else { return no("I6: a note that covers the newest group") };
        if from >= to {
            return no("a note over nothing");
        }
        if self.kind(self.start(from)) == EntryKind::System {
            return no("I4: a note before instructions");
        }
        let released = had.is_some_and(|had| had.revision + 1 == note.revision && had.summary == note.summary);
        if note.revision > 0 && !facts.last_resort && !released {
            return no("a shortened note without a last resort");
        }
        let mut counts = Counts::default();
        let mut kept = Vec::new();
        for group in from..to {
            if self.groups[group].iter().any(|&index| self.is_pinned(after, index)) {
                kept.push(self.start(group) as u32);
                continue;
            }
            for &index in &self.groups[group] {
                match self.kind(index) {
                    EntryKind::System => return no("instructions covered"),
                    EntryKind::User => counts.user += 1,
                    EntryKind::Assistant | EntryKind::Reasoning => counts.assistant += 1,
                    EntryKind::ToolCall => counts.calls += 1,
                    EntryKind::ToolResult => counts.results += 1,
                }
            }
        }
        if note.kept.iter().map(|place| place.index).ne(kept.iter().copied()) {
            return Err(format!("I6: kept beside a note should be {kept:?}"));
        }
        if note.counts != counts {
            return Err(format!("I16: a note should count {counts:?}"));
        }
        let empty = note.summary.text.is_empty();
        if (note.kind == NoteKind::Snip && !empty) || (note.kind == NoteKind::Summary && empty && !note.shortest) {
            return no("a note without its text");
        }
        if self.group.len() <= FINGERPRINTS_UP_TO {
            let identities = self.identities();
            let body = |index: &usize| self.kind(*index) != EntryKind::System;
            let fold = |indices: &mut dyn Iterator<Item = usize>| {
                indices.filter(body).fold(Chain::default(), |chain, index| chain.then(identities[index]))
            };
            if fold(&mut (0..note.from as usize)) != note.before || fold(&mut (0..note.to as usize)) != note.after {
                return no("I11: a note that does not find its place again");
            }
            let span = fold(&mut (from..to).flat_map(|group| self.groups[group].iter().copied())).0;
            if span != note.span && !facts.edited {
                return no("I10: a note with another fingerprint than its stretch");
            }
        }
        Ok(())
    }

    fn identities(&self) -> Vec<Identity> {
        let mut out: Vec<Identity> = Vec::new();
        for index in 0..self.group.len() {
            let call = self.pair[index].filter(|&call| call < index).map(|call| out[call]);
            out.push(identity_of(self.transcript, index, call));
        }
        out
    }

    /// Whether an id can stand in a marker for the result it belongs to.
    fn is_good_id(&self, id: &str) -> bool {
        let calls = (0..self.group.len()).filter(|&index| self.kind(index) == EntryKind::ToolCall);
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
        let is_digest = id.len() == 32 && id.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c));
        calls.filter(|&call| self.transcript.entry(call).call_id == id).count() == 1
            && (1..=64).contains(&id.len())
            && id.chars().all(plain)
            && !id.starts_with("note:")
            && !is_digest
    }

    /// The content as it is digested: texts joined by a line feed, then every other payload after a NUL.
    fn digest(&self, index: usize) -> Digest {
        let mut bytes = text_of(self.transcript, index).as_bytes().to_vec();
        for part in self.parts(index) {
            if let Some(data) = payload(part) {
                bytes.push(0);
                bytes.extend_from_slice(data);
            }
        }
        Digest::of(&bytes)
    }

    /// Bytes of the text and of every payload.
    fn bytes(&self, index: usize) -> u64 {
        let data: usize = self.parts(index).filter_map(payload).map(<[u8]>::len).sum();
        (text_of(self.transcript, index).len() + data) as u64
    }
}

const fn payload(part: PartRef<'_>) -> Option<&[u8]> {
    match part {
        PartRef::Text(_) => None,
        PartRef::Image(media) | PartRef::File(media) => Some(media.data),
        PartRef::Opaque(data) => Some(data),
    }
}
