//! A record as messages of one protocol, grown message by message, and views of it written as a request's list.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foreshorten_core::transcript::{Entry, EntryKind, Part, Transcript as _};
use foreshorten_core::view::Piece;

use super::body::Body;
use super::compose::{anthropic_id, compose};
use super::error::FormatError;
use super::written::{WireList, WireView};
use super::{Format, Written};
use crate::view::ViewPiece;

/// Where an entry of the record stands in the wire's own numbering; `NONE` when this protocol cannot show it.
const NONE: u32 = u32::MAX;

/// The messages of a record in one protocol.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    body: Body,
    /// Entry of the record → entry of the body.
    map: Vec<u32>,
    /// Text of the instructions that stand before everything else, where the protocol has a place of its own for them.
    system: Vec<String>,
    started: bool,
    ids: CallIds,
    /// The pieces that were written last, and what they came to.
    pieces: Vec<ViewPiece>,
    list: Arc<WireList>,
}

/// Ids of calls, each used once: Anthropic turns a conversation down in which one comes twice, and other servers begin
/// with `call_0` in every answer.
#[derive(Clone, Debug, Default)]
struct CallIds {
    used: HashSet<String>,
    /// Id in the record → messages and ids given there, of calls without a result, oldest first.
    open: HashMap<String, Vec<(u64, String)>>,
    message: u64,
}

impl CallIds {
    fn took(&mut self, id: &str, given: String) {
        self.used.insert(given.clone());
        self.open.entry(id.into()).or_default().push((self.message, given));
    }

    fn call(&mut self, id: &str) -> String {
        let plain = anthropic_id(id);
        let base = if plain.is_empty() { "call".into() } else { plain };
        let numbered = (2u64..).map(|number| format!("{base}_{number}"));
        let given = std::iter::once(base.clone()).chain(numbered).find(|id| !self.used.contains(id));
        let given = given.unwrap_or(base);
        self.took(id, given.clone());
        given
    }

    /// The id of the call that a result answers: the first that waits in the newest message that has one.
    fn result(&mut self, id: &str) -> Option<String> {
        let open = self.open.get_mut(id)?;
        let newest = open.last()?.0;
        let at = open.iter().position(|(message, _)| *message == newest)?;
        Some(open.remove(at).1)
    }

    fn named<'e>(&mut self, entry: &'e Entry) -> Cow<'e, Entry> {
        let given = match entry.kind {
            EntryKind::ToolCall => Some(self.call(&entry.call_id)),
            EntryKind::ToolResult => self.result(&entry.call_id),
            _ => None,
        };
        match given {
            Some(given) if given != entry.call_id => Cow::Owned(Entry { call_id: given, ..entry.clone() }),
            _ => Cow::Borrowed(entry),
        }
    }
}

impl Outgoing {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            body: Body::growing(format),
            map: Vec::new(),
            system: Vec::new(),
            started: false,
            ids: CallIds::default(),
            pieces: Vec::new(),
            list: Arc::default(),
        }
    }

    pub(crate) const fn format(&self) -> Format {
        self.body.format()
    }

    /// Appends a message as it came. `entries` is how many entries of the record it is.
    pub(crate) fn push_raw(&mut self, raw: &str, entries: usize) -> Result<(), FormatError> {
        let from = self.body.transcript.entries.len();
        self.body.push(raw)?;
        let read = self.body.transcript.entries.len() - from;
        if self.body.format() == Format::AnthropicMessages {
            self.ids.message += 1;
            for at in from..from + read {
                let entry = self.body.transcript.entry(at);
                let id = entry.call_id.to_owned();
                match entry.kind {
                    EntryKind::ToolCall => self.ids.took(&id, id.clone()),
                    EntryKind::ToolResult => drop(self.ids.result(&id)),
                    _ => {}
                }
            }
        }
        self.started = true;
        self.map.extend((0..entries).map(|at| if at < read { number(from + at) } else { NONE }));
        Ok(())
    }

    /// Appends entries that have no raw JSON of this protocol: those of one message, or a run of results.
    pub(crate) fn push(&mut self, entries: &[&Entry]) -> Result<(), FormatError> {
        let aside = self.body.format() != Format::OpenAiChat;
        let mut rest = entries;
        while let Some((first, others)) = rest.split_first()
            && aside
            && !self.started
            && first.kind == EntryKind::System
        {
            self.system.push(text(first));
            self.map.push(NONE);
            rest = others;
        }
        self.started |= !rest.is_empty();
        let base = self.map.len();
        self.map.extend(rest.iter().map(|_| NONE));
        let named: Vec<Cow<'_, Entry>> = match self.body.format() {
            Format::AnthropicMessages => {
                self.ids.message += 1;
                rest.iter().map(|entry| self.ids.named(entry)).collect()
            }
            _ => rest.iter().map(|entry| Cow::Borrowed(*entry)).collect(),
        };
        let named: Vec<&Entry> = named.iter().map(AsRef::as_ref).collect();
        for made in compose(self.body.format(), &named) {
            let from = self.body.transcript.entries.len();
            self.body.push(&made.json)?;
            for (at, entry) in made.entries.iter().enumerate() {
                self.map[base + entry] = number(from + at);
            }
        }
        Ok(())
    }

    /// Writes a view of the record. What the view shares with the one written before stays as it was written; only the
    /// messages from the first batch on that is not the same are written anew.
    pub(crate) fn write(&mut self, pieces: &[ViewPiece]) -> WireView {
        let common = self.pieces.iter().zip(pieces).take_while(|(before, now)| before == now).count();
        let (from, message) = self.resume(pieces, common);
        // The piece in the wire's numbering, and which piece of the view it was.
        let mut mapped: Vec<(usize, Piece<'_>)> = Vec::new();
        for (at, piece) in pieces.iter().enumerate().skip(from) {
            mapped.extend(self.in_wire(piece).map(|piece| (at, piece)));
        }
        self.in_order(&mut mapped);
        let only: Vec<Piece<'_>> = mapped.iter().map(|(_, piece)| *piece).collect();

        // Copied only while a view written before is still held by somebody.
        let list = Arc::make_mut(&mut self.list);
        list.cut(from, message);
        let kept = list.messages.len();
        let mut written = Written::default();
        self.body.write_messages(&only, message, &mut list.messages, &mut written);
        list.messages.push(']');
        list.message_of_piece.resize(pieces.len(), None);
        for ((at, _), message) in mapped.iter().zip(written.message_of_piece) {
            list.message_of_piece[*at] = message;
        }
        list.grew(self.body.format(), message, written.message_starts);
        if list.system != self.system {
            list.system.clone_from(&self.system);
        }
        self.pieces.truncate(from);
        self.pieces.extend_from_slice(&pieces[from..]);
        WireView::new(Arc::clone(&self.list), kept)
    }

    fn wire(&self, entry: usize) -> Option<usize> {
        self.map.get(entry).copied().filter(|&at| at != NONE).map(|at| at as usize)
    }

    fn in_wire<'p>(&self, piece: &'p ViewPiece) -> Option<Piece<'p>> {
        Some(match piece.lend() {
            Piece::Entry { entry } => Piece::Entry { entry: self.wire(entry)? },
            Piece::Text { entry, text } => Piece::Text { entry: self.wire(entry)?, text },
            Piece::Elided { entry, parts, text } => Piece::Elided { entry: self.wire(entry)?, parts, text },
            Piece::Arguments { entry, json } => Piece::Arguments { entry: self.wire(entry)?, json },
            Piece::StandIn { call, text } => Piece::StandIn { call: self.wire(call)?, text },
            note @ Piece::Note { .. } => note,
        })
    }

    /// The piece from which on a view has to be written, and the number of the message it begins. The first `common`
    /// pieces are those of the view written last.
    fn resume(&self, pieces: &[ViewPiece], common: usize) -> (usize, usize) {
        for at in (1..=common).rev() {
            // What was written last must have had a message begin here, too, or end here.
            if self.begins(pieces, at) && self.begins(&self.pieces, at) {
                return (at, self.messages_before(at));
            }
        }
        (0, 0)
    }

    /// Whether the pieces from one on go into none of the messages before, whatever they are: there are none, or the first of
    /// them that this protocol shows is no answer to a call, and of another message than what precedes it.
    fn begins(&self, pieces: &[ViewPiece], at: usize) -> bool {
        let unit = |piece: &ViewPiece| self.unit(piece).map(|(unit, _)| unit);
        let is_shown = |piece: &&ViewPiece| {
            matches!(piece, ViewPiece::Note(_) | ViewPiece::StandIn(..)) || self.unit(piece).is_some()
        };
        match pieces.iter().skip(at).find(is_shown) {
            None | Some(ViewPiece::Note(_)) => true,
            Some(piece) => {
                let Some((own, kind)) = self.unit(piece) else { return false };
                let mut before = pieces[..at].iter().rev();
                let before = before.find(|piece| matches!(piece, ViewPiece::Note(_)) || unit(piece).is_some());
                kind != EntryKind::ToolResult && before.is_none_or(|before| unit(before) != Some(own))
            }
        }
    }

    /// The message of the wire an entry's piece is part of; `None` for notes, stand-ins, and what stands outside the list.
    fn unit(&self, piece: &ViewPiece) -> Option<(u32, EntryKind)> {
        let (ViewPiece::Entry(entry)
        | ViewPiece::Text(entry, _)
        | ViewPiece::Elided(entry, ..)
        | ViewPiece::Arguments(entry, _)) = piece
        else {
            return None;
        };
        let meta = self.body.transcript.entries.get(self.wire(*entry)?)?;
        (meta.unit != super::wire::OUTSIDE).then_some((meta.unit, meta.kind))
    }

    /// How many messages the first pieces were written as, where the next one begins a message.
    fn messages_before(&self, pieces: usize) -> usize {
        // Stand-ins may have gone into an earlier message than the results around them, but not into one before that of
        // the calls they answer.
        let mut most = None;
        for (piece, message) in self.pieces[..pieces].iter().zip(&self.list.message_of_piece[..pieces]).rev() {
            most = most.max(*message);
            let is_note = matches!(piece, ViewPiece::Note(_));
            let ends = is_note || self.unit(piece).is_some_and(|(_, kind)| kind != EntryKind::ToolResult);
            if ends && message.is_some() {
                break;
            }
        }
        most.map_or(0, |message| message + 1)
    }

    /// Within a message that was composed, its entries may stand in another order than in the record.
    fn in_order(&self, pieces: &mut [(usize, Piece<'_>)]) {
        let place = |piece: &Piece<'_>| match *piece {
            Piece::Entry { entry } | Piece::Arguments { entry, .. } => {
                let meta = self.body.transcript.entries.get(entry)?;
                meta.kind.is_assistant_side().then_some((meta.unit, entry))
            }
            _ => None,
        };
        let mut at = 0;
        while at < pieces.len() {
            let unit = place(&pieces[at].1).map(|place| place.0);
            let same = |piece: &(usize, Piece<'_>)| unit.is_some() && place(&piece.1).map(|place| place.0) == unit;
            let run = pieces[at..].iter().take_while(|piece| same(piece)).count().max(1);
            pieces[at..at + run].sort_by_key(|(_, piece)| place(piece));
            at += run;
        }
    }
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(NONE)
}

fn text(entry: &Entry) -> String {
    let text = |part: &Part| match part {
        Part::Text(text) => Some(text.clone()),
        _ => None,
    };
    entry.parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}
