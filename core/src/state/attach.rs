//! A stored state meets a record: what still describes it stays, what does not is dropped.

use alloc::vec::Vec;

use hashbrown::{HashMap, HashSet};

use super::{Action, CompactionState, Note, OffloadRecord, Place, Record, cover::count, judge::is_legal};
use crate::{
    digest::Digest,
    marker::{self, ClearReason, Counts},
    text,
    transcript::{Chain, Columns, EntryKind, Identity, Transcript, text_of},
};

/// How a record relates to the state it met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum History {
    /// The state knew no record yet.
    #[default]
    New,
    /// The known record, possibly with new entries at the end.
    Grown,
    /// The known record, edited, trimmed or rewound: what no longer describes it was dropped.
    Edited,
    /// Another conversation: the state does not apply and is left alone.
    Foreign,
    /// The beginning of the known record and nothing else, as title requests and regenerated answers send it. The
    /// decisions that apply are applied; the state is left alone.
    Beginning,
}

/// What attaching found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    /// How record and state relate.
    pub history: History,
    /// Decisions dropped because their place is gone or ambiguous.
    pub dropped: usize,
    /// Reduced results whose body is another than when it was reduced.
    pub changed_bodies: usize,
}

impl CompactionState {
    /// Fits the state to the record that `columns` describes.
    pub(crate) fn attach(&mut self, transcript: &dyn Transcript, columns: &Columns) -> Attachment {
        let known = self.anchors.len as usize;
        if known == 0 {
            // Decisions about a record that nobody has seen: no state of ours holds any.
            let dropped = self.records.len() + self.notes.len();
            self.records.clear();
            self.notes.clear();
            self.pins.clear();
            self.note_seen(columns);
            return Attachment { dropped, ..Attachment::default() };
        }
        let grown = known <= columns.len() && columns.chain(known - 1) == self.anchors.chain;
        if !grown && !self.recognises(columns) {
            return Attachment { history: History::Foreign, ..Attachment::default() };
        }
        let beginning = !grown && self.is_beginning(columns);
        let mut found = Attachment { history: History::Grown, ..Attachment::default() };
        let moved = self.place_again(transcript, columns, &mut found);
        self.check_bodies(transcript, columns, &mut found);
        if !grown || moved {
            // What counts in fingerprints may be as it was, and yet stand elsewhere: instructions were moved to the front.
            self.uncover_newest(columns, &mut found);
            self.restore_newest(columns, &mut found);
            self.recount(columns);
        }
        if !grown {
            found.history = History::Edited;
            self.forget_seen();
            self.last_view = super::LastView::default();
            self.measured.forget(u32::try_from(columns.len()).unwrap_or(u32::MAX));
        }
        if found.dropped > 0 {
            // What stands there again was no part of what was counted.
            self.measured.changed();
            found.history = History::Edited;
            self.epoch = self.epoch.saturating_add(1);
        }
        if beginning {
            found.history = History::Beginning;
        }
        self.note_seen(columns);
        found
    }

    /// Fits decisions that may be about another record to this one, as after an edit.
    pub(super) fn place_decisions(&mut self, transcript: &dyn Transcript, columns: &Columns) {
        let mut found = Attachment::default();
        self.place_again(transcript, columns, &mut found);
        self.check_bodies(transcript, columns, &mut found);
        self.uncover_newest(columns, &mut found);
        self.restore_newest(columns, &mut found);
        self.recount(columns);
    }

    /// Whether a record is known to be the first part of the known one, with nothing new in it.
    fn is_beginning(&self, columns: &Columns) -> bool {
        let body = (0..columns.len()).filter(|&index| columns.kind(index) != EntryKind::System).count();
        let Some(last) = columns.len().checked_sub(1) else { return false };
        body.is_power_of_two()
            && (body as u32) < self.anchors.body
            && self.anchors.steps.get(body.trailing_zeros() as usize) == Some(&columns.chain(last))
    }

    /// Whether a record that is not a continuation is the same conversation, edited: it begins with the same
    /// entry, or the newest entries known stand in it in one run (the front was trimmed).
    fn recognises(&self, columns: &Columns) -> bool {
        let body = || (0..columns.len()).filter(|&index| columns.kind(index) != EntryKind::System);
        let Some(first) = body().next() else { return false };
        if columns.identity(first) == self.anchors.first {
            return true;
        }
        // Fewer than three entries in a row may be quoted by a title request or a sub-agent.
        let recent = &self.anchors.recent;
        if recent.len() < 3 {
            return false;
        }
        let mut matched = 0;
        for index in body() {
            let identity = columns.identity(index);
            if identity == recent[matched] {
                matched += 1;
                if matched == recent.len() {
                    return true;
                }
            } else {
                matched = usize::from(identity == recent[0]);
            }
        }
        false
    }

    /// Looks for the place of every decision; answers whether any stands elsewhere now.
    fn place_again(&mut self, transcript: &dyn Transcript, columns: &Columns, found: &mut Attachment) -> bool {
        let stands = |place: &Place| {
            let index = place.index as usize;
            index < columns.len() && columns.chain(index) == place.chain && columns.identity(index) == place.identity
        };
        let note_stands = |note: &Note| {
            let (from, to) = (note.from as usize, note.to as usize);
            to <= columns.len()
                && before(columns, from) == note.before
                && before(columns, to) == note.after
                && is_boundary(columns, from)
                && is_boundary(columns, to)
                && note.kept.iter().all(stands)
                && keeps_instructions(note, columns)
        };
        let settled = self.records.iter().all(|record| stands(&record.place))
            && self.pins.iter().all(stands)
            && self.notes.iter().all(note_stands);
        if settled {
            return false;
        }
        let finder = Finder::new(columns);
        let mut records = core::mem::take(&mut self.records);
        let total = records.len() + self.notes.len();
        let mut moved: Vec<Record> = Vec::new();
        records.retain_mut(|record| {
            let Some((index, known)) = finder.find(&record.place, columns) else { return false };
            record.place = Place::of(columns, index);
            // An equal call, of which the older was trimmed away, may have answered otherwise.
            if !known && same_content(transcript, index, &record.action) {
                moved.push(record.clone());
            }
            known
        });
        records.sort_unstable();
        // What an entry was decided to be stands before what came to it from an equal one that is gone.
        moved.retain(|record| records.binary_search_by_key(&record.place, |known| known.place).is_err());
        records.append(&mut moved);
        records.sort_unstable();
        records.dedup_by(|b, a| a.place == b.place);
        self.records = records;
        self.pins.retain_mut(|pin| finder.place(pin, columns));
        self.pins.sort_unstable();
        self.pins.dedup();
        self.notes.retain_mut(|note| {
            if note_stands(note) {
                return true;
            }
            let (Some(from), Some(to)) = (finder.boundary(note.before, columns), finder.boundary(note.after, columns))
            else {
                return false;
            };
            note.from = from;
            note.to = to;
            let all = from < to && note.kept.iter_mut().all(|place| finder.place(place, columns));
            // Entries may have changed places among themselves; instructions at the end of the stretch, which no
            // fingerprint tells of, stand behind it now.
            note.keep_inside();
            all && keeps_instructions(note, columns)
        });
        self.notes = super::join::maximal(self.notes.iter());
        found.dropped += total.saturating_sub(self.records.len() + self.notes.len());
        true
    }

    /// A record that was rewound may end under a note. What is newest now is shown whole: the newest user message and the newest
    /// group. That one stands under no note even where it is kept beside it, because it can grow behind the note's end.
    fn uncover_newest(&mut self, columns: &Columns, found: &mut Attachment) {
        let start_of = |group: usize| columns.group_start(group);
        let user = Some(columns.newest_user() as usize).filter(|&entry| entry < columns.len());
        let user = user.map(|entry| start_of(columns.group(entry)));
        let newest = columns.groups().checked_sub(1).map(start_of);
        let total = self.notes.len();
        self.notes.retain(|note| {
            user.is_none_or(|start| !note.covers(start) || note.keeps(start))
                && newest.is_none_or(|start| !note.covers(start))
        });
        found.dropped += total - self.notes.len();
    }

    /// A record that was rewound may end in the middle of an assistant message: it can grow again, and be signed then.
    /// What the model wrote in the newest group stands verbatim.
    fn restore_newest(&mut self, columns: &Columns, found: &mut Attachment) {
        let Some(newest) = columns.groups().checked_sub(1) else { return };
        let total = self.records.len();
        self.records.retain(|record| {
            let entry = record.place.index as usize;
            !(columns.group(entry) == newest && columns.kind(entry).is_assistant_side())
        });
        found.dropped += total - self.records.len();
    }

    /// A late result stands behind the stretch in which it counts, and may be gone although the stretch is as it was. A
    /// note that counts what is not there any more is counted again.
    fn recount(&mut self, columns: &Columns) {
        for note in &mut self.notes {
            let mut counts = Counts::default();
            let mut group = columns.group(note.from as usize);
            while group < columns.groups() && columns.group_start(group) < note.to as usize {
                if !note.keeps(columns.group_start(group)) {
                    columns.members(group).for_each(|entry| count(&mut counts, columns.kind(entry)));
                }
                group += 1;
            }
            if !counts.holds(&note.counts) {
                note.counts = counts;
            }
        }
    }

    /// Looks whether each decision can still be about its entry, and whether previews can still be cut from the record.
    fn check_bodies(&mut self, transcript: &dyn Transcript, columns: &Columns, found: &mut Attachment) {
        let total = self.records.len();
        let mut changed = 0;
        let mut gone = false;
        self.records.retain_mut(|record| {
            // An edit may have made of an entry what nobody may reduce: what stood apart is one message with what is
            // signed now, or fewer parts are there than were left out.
            if !is_legal(record, transcript, columns) {
                return false;
            }
            let index = record.place.index as usize;
            match &record.action {
                Action::Clear { bytes, .. } => {
                    changed += usize::from(content_bytes(transcript, index) != *bytes);
                    true
                }
                Action::Offload(facts) => match check_preview(transcript, index, facts) {
                    Preview::Same => true,
                    Preview::Trimmed => {
                        changed += 1;
                        true
                    }
                    Preview::Gone => {
                        // The frozen preview cannot be made any more: one level up, over the body that is there.
                        changed += 1;
                        gone = true;
                        record.action = Action::Clear {
                            digest: Digest::of_entry(transcript, index),
                            bytes: content_bytes(transcript, index),
                            why: ClearReason::Space,
                            by_id: false,
                        };
                        true
                    }
                },
                _ => true,
            }
        });
        found.dropped += total - self.records.len();
        found.changed_bodies = changed;
        if gone {
            self.measured.changed();
        }
    }
}

/// Whether an entry holds what a decision replaced, or says itself that it was trimmed from that. That it begins alike is not
/// enough: so do the answers of equal calls.
fn same_content(transcript: &dyn Transcript, index: usize, action: &Action) -> bool {
    let Some(digest) = action.digest() else { return true };
    digest == Digest::of_entry(transcript, index)
        || marker::trimmed(&text_of(transcript, index)).is_some_and(|trimmed| trimmed.digest == digest)
}

enum Preview {
    Same,
    Trimmed,
    Gone,
}

fn check_preview(transcript: &dyn Transcript, index: usize, facts: &OffloadRecord) -> Preview {
    let body = text_of(transcript, index);
    let head = text::head(&body, facts.head as usize);
    let intact = head.len() == facts.head as usize && Digest::of(head.as_bytes()).short() == facts.head_digest;
    if content_bytes(transcript, index) == facts.bytes && intact {
        Preview::Same
    } else if intact && facts.tail == 0 {
        Preview::Trimmed
    } else {
        Preview::Gone
    }
}

/// Bytes of an entry's content: its texts joined by a line feed, and its media payloads.
pub(super) fn content_bytes(transcript: &dyn Transcript, index: usize) -> u64 {
    use crate::transcript::PartRef;
    let (mut bytes, mut texts) = (0u64, 0u64);
    for part in 0..transcript.entry(index).parts as usize {
        bytes += match transcript.part(index, part) {
            PartRef::Text(text) => {
                texts += 1;
                text.len() as u64
            }
            PartRef::Image(media) | PartRef::File(media) => media.data.len() as u64,
            PartRef::Opaque(data) => data.len() as u64,
        };
    }
    bytes + texts.saturating_sub(1)
}

/// The chain before entry `index`.
pub(super) fn before(columns: &Columns, index: usize) -> Chain {
    index.checked_sub(1).map(|last| columns.chain(last)).unwrap_or_default()
}

/// Whether a note shows all instructions in its stretch: they do not count in fingerprints, and may have come into it.
fn keeps_instructions(note: &Note, columns: &Columns) -> bool {
    (note.from as usize..note.to as usize)
        .filter(|&entry| columns.kind(entry) == EntryKind::System)
        .all(|entry| note.kept.iter().any(|place| place.index as usize == entry))
}

fn is_boundary(columns: &Columns, index: usize) -> bool {
    index == columns.len() || columns.group_start(columns.group(index)) == index
}

/// Finds places again: by the fingerprint of the whole prefix where it is unchanged, else by what the entry
/// is, if that is unique.
struct Finder {
    by_chain: HashMap<Chain, u32>,
    by_identity: HashMap<Identity, u32>,
    ambiguous: HashSet<Identity>,
}

impl Finder {
    fn new(columns: &Columns) -> Self {
        let mut finder = Self {
            by_chain: HashMap::with_capacity(columns.len()),
            by_identity: HashMap::with_capacity(columns.len()),
            ambiguous: HashSet::new(),
        };
        for index in 0..columns.len() {
            let at = u32::try_from(index).unwrap_or(u32::MAX);
            if columns.kind(index) != EntryKind::System {
                finder.by_chain.insert(columns.chain(index), at);
            }
            if finder.by_identity.insert(columns.identity(index), at).is_some() {
                finder.ambiguous.insert(columns.identity(index));
            }
        }
        finder
    }

    /// Where the entry stands now, and whether all before it is as it was.
    fn find(&self, place: &Place, columns: &Columns) -> Option<(usize, bool)> {
        let by_chain = self
            .by_chain
            .get(&place.chain)
            .copied()
            .filter(|&index| columns.identity(index as usize) == place.identity);
        let by_identity = || {
            (!self.ambiguous.contains(&place.identity))
                .then(|| self.by_identity.get(&place.identity).copied())
                .flatten()
        };
        by_chain.map(|index| (index as usize, true)).or_else(|| by_identity().map(|index| (index as usize, false)))
    }

    fn place(&self, place: &mut Place, columns: &Columns) -> bool {
        let Some((index, _)) = self.find(place, columns) else { return false };
        *place = Place::of(columns, index);
        true
    }

    /// Start of the group that follows the prefix with this fingerprint.
    fn boundary(&self, chain: Chain, columns: &Columns) -> Option<u32> {
        let mut index = if chain == Chain::default() { 0 } else { *self.by_chain.get(&chain)? as usize + 1 };
        // A note never begins with the fixed head.
        if chain == Chain::default() {
            while index < columns.len() && columns.kind(index) == EntryKind::System {
                index += 1;
            }
        }
        is_boundary(columns, index).then(|| u32::try_from(index).ok()).flatten()
    }
}

impl Record {
    pub(super) fn new(columns: &Columns, index: usize, action: Action) -> Self {
        Self { place: Place::of(columns, index), action }
    }
}
