//! The view, and what it weighs, piece by piece.

use foreshorten_core::{
    estimate::ByteEstimator,
    marker,
    state::{Action, CompactionState, Note, NoteKind, Record},
    text,
    transcript::{EntryKind, PartRef, text_of},
};

use super::Reference;

/// A piece of the naive view.
enum Shown {
    Entry(usize),
    Text(usize, String),
    Elided(usize, Vec<u32>, String),
    Arguments(usize, String),
    Note(String),
    StandIn(usize),
}

impl Reference<'_> {
    /// The view as [`materialize`](crate::materialize) writes it.
    #[must_use]
    pub fn view(&self, state: &CompactionState) -> Vec<String> {
        self.shown(state).iter().map(|piece| self.print(piece)).collect()
    }

    /// What the view weighs, schemas not included.
    #[must_use]
    pub fn raw(&self, state: &CompactionState) -> u64 {
        self.shown(state).iter().map(|piece| self.weigh(piece)).sum()
    }

    fn shown(&self, state: &CompactionState) -> Vec<Shown> {
        let mut out = Vec::new();
        for group in 0..self.groups.len() {
            for note in state.notes().iter().filter(|note| note.from as usize == self.start(group)) {
                out.push(Shown::Note(self.note_text(note)));
                for kept in 0..self.groups.len() {
                    let mine = self.note_over(state, kept) == Some(note);
                    if mine && !self.is_hidden(state, kept) {
                        self.show_group(state, kept, &mut out);
                    }
                }
            }
            if self.note_over(state, group).is_none() {
                self.show_group(state, group, &mut out);
            }
        }
        out
    }

    /// The assistant message with all its results, and stand-ins for calls that were given up.
    fn show_group(&self, state: &CompactionState, group: usize, out: &mut Vec<Shown>) {
        for &index in &self.groups[group] {
            if self.is_orphan(index) {
                continue;
            }
            let Some(record) = state.records().iter().find(|record| record.place.index as usize == index) else {
                out.push(Shown::Entry(index));
                continue;
            };
            let text = self.marker(record);
            match &record.action {
                Action::Omit => {}
                Action::Elide { parts, .. } => out.push(Shown::Elided(index, parts.clone(), text)),
                Action::Clip { .. } => out.push(Shown::Arguments(index, text)),
                _ => out.push(Shown::Text(index, text)),
            }
        }
        if group != self.newest_group() {
            let given_up = self.groups[group].iter().filter(|&&index| self.is_unanswered(index));
            out.extend(given_up.map(|&call| Shown::StandIn(call)));
        }
    }

    /// How a decision's original is called: by its id if the decision says so, else by its digest; a recalled text by
    /// what it was recalled from.
    pub(super) fn name_of(&self, record: &Record) -> String {
        let index = record.place.index as usize;
        if self.kind(index) == EntryKind::ToolResult
            && self.is_recall(index)
            && let Some(call) = self.pair[index]
            && let Some(original) = text::json_string_field(&text_of(self.transcript, call), "ref")
        {
            return original.into();
        }
        match &record.action {
            Action::Clear { by_id: true, .. } => self.transcript.entry(index).call_id.into(),
            action => {
                let digest = action.digest().unwrap_or_default();
                digest.0.iter().map(|byte| format!("{byte:02x}")).collect()
            }
        }
    }

    pub(super) fn marker(&self, record: &Record) -> String {
        let index = record.place.index as usize;
        let (style, name) = (self.config.style, self.name_of(record));
        let is_error = self.transcript.entry(index).is_error;
        match &record.action {
            Action::Elide { .. } => marker::media_marker(style, &name),
            Action::Clip { bytes, .. } => marker::arguments_marker(style, &name, *bytes),
            Action::Condense { by, text, .. } => marker::condensed_marker(style, &name, by, text),
            Action::Clear { bytes, why, .. } => {
                let parts = 0..self.transcript.entry(index).parts as usize;
                let is_media = |part| matches!(self.transcript.part(index, part), PartRef::Image(_) | PartRef::File(_));
                marker::clear_marker(style, &name, is_error, *bytes, parts.into_iter().any(is_media), *why)
            }
            Action::Offload(facts) => {
                let whole = text_of(self.transcript, index);
                let mut head = (facts.head as usize).min(whole.len());
                while !whole.is_char_boundary(head) {
                    head -= 1;
                }
                let mut tail = whole.len().saturating_sub(facts.tail as usize).max(head);
                while !whole.is_char_boundary(tail) {
                    tail += 1;
                }
                let (head, tail) = (&whole[..head], &whole[tail..]);
                if facts.persisted {
                    marker::persisted_marker(style, &name, is_error, facts.bytes, head)
                } else {
                    marker::offload_marker(style, &name, is_error, facts.bytes, head, tail, facts.last_resort)
                }
            }
            _ => String::new(),
        }
    }

    pub(super) fn note_text(&self, note: &Note) -> String {
        let style = self.config.style;
        let name = format!("note:{:016x}", note.span);
        match note.kind {
            _ if note.shortest => marker::shortest_note(style, &name),
            NoteKind::Summary => marker::summary_entry(style, &self.config.summary_wrapper, &note.summary.text, &name),
            NoteKind::Snip => marker::snip_note(style, &name, &note.counts),
        }
    }

    fn print(&self, piece: &Shown) -> String {
        let content = |index: usize| {
            let entry = self.transcript.entry(index);
            let text = text_of(self.transcript, index);
            format!("{:?} {} {} {} {text}", entry.kind, entry.call_id, entry.name, entry.is_error)
        };
        match piece {
            Shown::Entry(index) => format!("{index} {}", content(*index)),
            Shown::Text(index, text) => format!("{index} text {text}"),
            Shown::Elided(index, parts, text) => format!("{index} elided {parts:?} {text} {}", content(*index)),
            Shown::Arguments(index, json) => format!("{index} arguments {json}"),
            Shown::Note(text) => format!("note {text}"),
            Shown::StandIn(call) => format!("stand-in {call} {}", marker::STAND_IN),
        }
    }

    fn weigh(&self, piece: &Shown) -> u64 {
        let weigher = &self.config.weigher;
        let frame = u64::from(weigher.entry_overhead);
        let text = |text: &str| u64::from(weigher.text(text));
        let name = |index: usize| match self.transcript.entry(index).name {
            "" => 0,
            name => text(name),
        };
        match piece {
            Shown::Entry(index) => {
                let part = |part: PartRef<'_>| u64::from(weigher.part(part));
                // By the tables, a text of a call's arguments costs an eighth less than it would anywhere else.
                let by_table = weigher.exact.is_none() && weigher.bytes != ByteEstimator::BytesPer4;
                let call = self.transcript.entry(*index).kind == EntryKind::ToolCall;
                let part = |one: PartRef<'_>| match one {
                    PartRef::Text(_) if call && by_table => part(one) - part(one) / 8,
                    one => part(one),
                };
                frame + name(*index) + self.parts(*index).map(part).sum::<u64>()
            }
            Shown::Text(_, marker) | Shown::Note(marker) => frame + text(marker),
            Shown::Arguments(index, json) => frame + name(*index) + text(json),
            Shown::StandIn(_) => frame + text(marker::STAND_IN),
            Shown::Elided(index, gone, marker) => {
                let part = |(at, part): (usize, PartRef<'_>)| match gone.contains(&(at as u32)) {
                    true => text(marker),
                    false => u64::from(weigher.part(part)),
                };
                frame + name(*index) + self.parts(*index).enumerate().map(part).sum::<u64>()
            }
        }
    }

    /// What a decision leaves of its entry, in raw tokens.
    pub(super) fn weight_under(&self, record: Option<&Record>, index: usize) -> u64 {
        let Some(record) = record else { return self.weigh(&Shown::Entry(index)) };
        let text = self.marker(record);
        match &record.action {
            Action::Omit => 0,
            Action::Elide { parts, .. } => self.weigh(&Shown::Elided(index, parts.clone(), text)),
            Action::Clip { .. } => self.weigh(&Shown::Arguments(index, text)),
            _ => self.weigh(&Shown::Text(index, text)),
        }
    }

    /// What a group weighs when no note covers it.
    pub(super) fn group_weight(&self, state: &CompactionState, group: usize) -> u64 {
        let mut shown = Vec::new();
        self.show_group(state, group, &mut shown);
        shown.iter().map(|piece| self.weigh(piece)).sum()
    }

    /// The floor of I8 in raw tokens: instructions, pins, the newest group with its results as markers, and one note
    /// in its shortest form over all the rest. Schemas are not included.
    #[must_use]
    pub fn floor(&self, state: &CompactionState) -> u64 {
        let mut floor = 0;
        let mut others = false;
        for group in 0..self.groups.len() {
            let pinned = self.groups[group].iter().any(|&index| self.is_pinned(state, index));
            if pinned || group == self.newest_group() {
                floor += self.group_weight(state, group);
            } else {
                others = true;
            }
            if group == self.newest_group() {
                for &index in self.groups[group].iter().filter(|&&index| self.kind(index) == EntryKind::ToolResult) {
                    floor -= self.clearing_saves(state, index);
                }
            }
        }
        if others {
            let note = marker::shortest_note(self.config.style, "note:0123456789abcdef");
            floor += self.weigh(&Shown::Note(note));
        }
        floor
    }

    /// What clearing a result would save.
    fn clearing_saves(&self, state: &CompactionState, index: usize) -> u64 {
        if self.is_orphan(index) || self.is_pinned(state, index) {
            return 0;
        }
        let record = state.records().iter().find(|record| record.place.index as usize == index);
        // Named by digest, which is about as long as any id that may stand in a marker, and recalled texts by what they hold.
        let name = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        let marker =
            marker::clear_marker(self.config.style, name, true, 1_000_000, true, marker::ClearReason::LastResort);
        self.weight_under(record, index).saturating_sub(self.weigh(&Shown::Text(index, marker)))
    }
}
