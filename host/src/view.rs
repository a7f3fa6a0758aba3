//! What one model call is sent, in pieces that name entries of the record.

use std::collections::VecDeque;

use foreshorten_core::marker::STAND_IN;
use foreshorten_core::render::RenderCache;
use foreshorten_core::transcript::{Columns, Entry, EntryKind, Part, Transcript};
use foreshorten_core::view::Piece;

use crate::formats::Format;
use crate::record::Record;

/// One piece of a view, owning the little text that is not in the record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ViewPiece {
    /// The entry as it stands in the record.
    Entry(usize),
    /// A result of which all content is replaced by the text.
    Text(usize, String),
    /// An entry of which the media parts of these numbers are replaced by the text.
    Elided(usize, Vec<u32>, String),
    /// A call of which the arguments are replaced by this JSON object.
    Arguments(usize, String),
    /// A note, shown as a message of the user.
    Note(String),
    /// A result made up for the call at this index, which never got one.
    StandIn(usize, String),
}

impl ViewPiece {
    /// The piece as the core lends it.
    #[must_use]
    pub fn lend(&self) -> Piece<'_> {
        match self {
            Self::Entry(entry) => Piece::Entry { entry: *entry },
            Self::Text(entry, text) => Piece::Text { entry: *entry, text },
            Self::Elided(entry, parts, text) => Piece::Elided { entry: *entry, parts, text },
            Self::Arguments(entry, json) => Piece::Arguments { entry: *entry, json },
            Self::Note(text) => Piece::Note { text },
            Self::StandIn(call, text) => Piece::StandIn { call: *call, text },
        }
    }
}

/// A view: pieces, in the order in which the model reads them.
///
/// ```
/// use foreshorten::record::{Message, Record};
/// use foreshorten::view::{View, ViewPiece};
/// let record: Record = [Message::user("hi")].into_iter().collect();
/// assert_eq!(View::of(&record), View::new(vec![ViewPiece::Entry(0)]));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    pieces: Vec<ViewPiece>,
    head: usize,
    settled: usize,
}

impl View {
    /// A view of these pieces.
    #[must_use]
    pub const fn new(pieces: Vec<ViewPiece>) -> Self {
        Self { pieces, head: 0, settled: 0 }
    }

    /// The whole record.
    #[must_use]
    pub fn of(transcript: &dyn Transcript) -> Self {
        Self::new((0..transcript.len()).map(ViewPiece::Entry).collect())
    }

    /// The same view, with what will not change: the first `head` pieces are instructions before anything else, and no
    /// ordinary turn will change the first `settled`. Cache breakpoints are placed by these.
    #[must_use]
    pub const fn settled_at(mut self, head: usize, settled: usize) -> Self {
        (self.head, self.settled) = (head, settled);
        self
    }

    pub(crate) fn rendered(cache: &RenderCache, columns: &Columns) -> Self {
        let piece = |piece: Piece<'_>| match piece {
            Piece::Entry { entry } => ViewPiece::Entry(entry),
            Piece::Text { entry, text } => ViewPiece::Text(entry, text.into()),
            Piece::Elided { entry, parts, text } => ViewPiece::Elided(entry, parts.into(), text.into()),
            Piece::Arguments { entry, json } => ViewPiece::Arguments(entry, json.into()),
            Piece::Note { text } => ViewPiece::Note(text.into()),
            Piece::StandIn { call, text } => ViewPiece::StandIn(call, text.into()),
        };
        let pieces = cache.pieces().map(piece).collect();
        Self { pieces, head: cache.head(columns), settled: cache.settled() }
    }

    /// Number of pieces.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Number of leading pieces that are instructions before anything else.
    #[must_use]
    pub const fn head(&self) -> usize {
        self.head
    }

    /// Number of leading pieces that no ordinary turn will change.
    #[must_use]
    pub const fn settled(&self) -> usize {
        self.settled
    }

    /// The pieces, in order.
    pub fn pieces(&self) -> impl ExactSizeIterator<Item = Piece<'_>> {
        self.pieces.iter().map(ViewPiece::lend)
    }

    pub(crate) fn owned(&self) -> &[ViewPiece] {
        &self.pieces
    }

    /// The same view with every call answered right behind its batch, as every provider wants it: a result that stands
    /// further on is moved up, and a call that has none (a run broke off, or another runner is at work on it) is given a
    /// stand-in. Nothing is changed where nothing is amiss, and the record never is.
    #[must_use]
    pub fn answered(self, record: &Record) -> Self {
        let kind = |piece: &ViewPiece| match piece {
            ViewPiece::Entry(at) | ViewPiece::Text(at, _) | ViewPiece::Elided(at, ..) | ViewPiece::Arguments(at, _) => {
                record.get(*at).map(|entry| (entry, *at))
            }
            ViewPiece::Note(_) | ViewPiece::StandIn(..) => None,
        };
        // Responses has an item for every call of a batch; elsewhere a batch is one message.
        let batch = |at: usize| {
            let message = record.message_of(at)?;
            let raw = record.messages().get(message)?.raw_json();
            (raw.map(|raw| raw.format) != Some(Format::OpenAiResponses)).then_some(message)
        };
        let mut rest: VecDeque<Option<ViewPiece>> = self.pieces.into_iter().map(Some).collect();
        let mut pieces = Vec::with_capacity(rest.len());
        let mut open: Vec<usize> = Vec::new();
        let mut answering = false;
        loop {
            let next = rest.pop_front();
            let piece = match next {
                Some(Some(piece)) => Some(piece),
                // It was moved up.
                Some(None) => continue,
                None => None,
            };
            let now = piece.as_ref().and_then(kind);
            let answers = |call: &usize, entry: &Entry| record.get(*call).is_some_and(|it| it.call_id == entry.call_id);
            match (&piece, now) {
                (Some(ViewPiece::StandIn(call, _)), _) => {
                    open.retain(|at| at != call);
                    answering = true;
                }
                (_, Some((entry, _))) if entry.kind == EntryKind::ToolResult => {
                    if let Some(at) = open.iter().position(|call| answers(call, entry)) {
                        open.remove(at);
                    }
                    answering = true;
                }
                (_, Some((entry, at)))
                    if entry.kind.is_assistant_side()
                        && !answering
                        && open.last().is_none_or(|call| batch(*call) == batch(at)) => {}
                _ => {
                    for call in std::mem::take(&mut open) {
                        let is_result = |piece: &Option<ViewPiece>| {
                            piece.as_ref().and_then(kind).is_some_and(|(entry, at)| {
                                entry.kind == EntryKind::ToolResult && at > call && answers(&call, entry)
                            })
                        };
                        let again = |piece: &Option<ViewPiece>| {
                            piece.as_ref().and_then(kind).is_some_and(|(entry, at)| {
                                entry.kind == EntryKind::ToolCall && at > call && answers(&call, entry)
                            })
                        };
                        let until = rest.iter().position(again).unwrap_or(rest.len());
                        // Where answers stand side by side in the record, the policy has its stand-in behind all of them.
                        let made_up =
                            |piece: &Option<ViewPiece>| matches!(piece, Some(ViewPiece::StandIn(at, _)) if *at == call);
                        let found = rest.iter().take(until).position(is_result);
                        let found = found.or_else(|| rest.iter().position(made_up));
                        let found = found.and_then(|at| rest[at].take());
                        pieces.push(found.unwrap_or_else(|| ViewPiece::StandIn(call, STAND_IN.into())));
                    }
                    answering = false;
                }
            }
            let Some(piece) = piece else { break };
            if let Some((entry, at)) = now
                && entry.kind == EntryKind::ToolCall
            {
                open.push(at);
            }
            pieces.push(piece);
        }
        Self { pieces, ..self }
    }

    /// The view as entries of its own, for providers that take messages of another shape than the three protocols.
    #[must_use]
    pub fn entries(&self, transcript: &dyn Transcript) -> Vec<Entry> {
        let shown = |piece: Piece<'_>| match piece {
            Piece::Entry { entry } => Entry::copy_of(transcript, entry),
            Piece::Text { entry, text } => {
                Entry { parts: vec![Part::Text(text.into())], ..Entry::copy_of(transcript, entry) }
            }
            Piece::Elided { entry, parts, text } => {
                let mut shown = Entry::copy_of(transcript, entry);
                for at in parts {
                    if let Some(part) = shown.parts.get_mut(*at as usize) {
                        *part = Part::Text(text.into());
                    }
                }
                shown
            }
            Piece::Arguments { entry, json } => {
                Entry { parts: vec![Part::Text(json.into())], ..Entry::copy_of(transcript, entry) }
            }
            Piece::Note { text } => Entry::text(EntryKind::User, text),
            Piece::StandIn { call, text } => Entry::tool_result(transcript.entry(call).call_id, text).failed(),
        };
        self.pieces().map(shown).collect()
    }
}
