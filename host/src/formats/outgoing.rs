//! A record as messages of one protocol, grown message by message, and views of it written as a request's list.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use foreshorten_core::transcript::{Entry, EntryKind, Part, Transcript as _};
use foreshorten_core::view::Piece;

use super::body::Body;
use super::compose::{anthropic_id, compose};
use super::error::FormatError;
use super::{Format, ToolsEdit};

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

/// A view as one protocol's list of messages or items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireView {
    /// The JSON list.
    pub messages: String,
    /// Byte at which each message begins in `messages`.
    pub starts: Vec<usize>,
    /// For every piece of the view the index of its message; `None` for one that stands outside the list.
    pub message_of_piece: Vec<Option<usize>>,
    /// Instructions that this protocol carries outside of the list (Anthropic's `system`, Responses' `instructions`).
    pub system: Vec<String>,
}

impl Outgoing {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            body: Body::growing(format),
            map: Vec::new(),
            system: Vec::new(),
            started: false,
            ids: CallIds::default(),
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

    /// Writes a view of the record.
    pub(crate) fn write<'p>(&self, pieces: impl Iterator<Item = Piece<'p>>) -> WireView {
        let wire = |entry: usize| self.map.get(entry).copied().filter(|&at| at != NONE).map(|at| at as usize);
        // The piece in the wire's numbering, and which piece of the view it was.
        let mut mapped: Vec<(usize, Piece<'p>)> = Vec::new();
        let mut count = 0;
        for (at, piece) in pieces.enumerate() {
            count = at + 1;
            let piece = match piece {
                Piece::Entry { entry } => wire(entry).map(|entry| Piece::Entry { entry }),
                Piece::Text { entry, text } => wire(entry).map(|entry| Piece::Text { entry, text }),
                Piece::Elided { entry, parts, text } => wire(entry).map(|entry| Piece::Elided { entry, parts, text }),
                Piece::Arguments { entry, json } => wire(entry).map(|entry| Piece::Arguments { entry, json }),
                Piece::StandIn { call, text } => wire(call).map(|call| Piece::StandIn { call, text }),
                note @ Piece::Note { .. } => Some(note),
            };
            mapped.extend(piece.map(|piece| (at, piece)));
        }
        self.in_order(&mut mapped);
        let only: Vec<Piece<'p>> = mapped.iter().map(|(_, piece)| *piece).collect();
        let written = self.body.write(&only, ToolsEdit::Keep);
        let mut message_of_piece = vec![None; count];
        for ((at, _), message) in mapped.iter().zip(&written.message_of_piece) {
            message_of_piece[*at] = *message;
        }
        WireView {
            messages: String::from_utf8(written.bytes).unwrap_or_default(),
            starts: written.message_starts,
            message_of_piece,
            system: self.system.clone(),
        }
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
