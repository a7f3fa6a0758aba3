//! What one model call is sent, in pieces that name entries of the record.

use foreshorten_core::render::RenderCache;
use foreshorten_core::transcript::{Columns, Entry, EntryKind, Part, Transcript};
use foreshorten_core::view::Piece;

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
        self.pieces.iter().map(|piece| match piece {
            ViewPiece::Entry(entry) => Piece::Entry { entry: *entry },
            ViewPiece::Text(entry, text) => Piece::Text { entry: *entry, text },
            ViewPiece::Elided(entry, parts, text) => Piece::Elided { entry: *entry, parts, text },
            ViewPiece::Arguments(entry, json) => Piece::Arguments { entry: *entry, json },
            ViewPiece::Note(text) => Piece::Note { text },
            ViewPiece::StandIn(call, text) => Piece::StandIn { call: *call, text },
        })
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
