//! 1. The append-only record, as the core sees it.
//!
//! The core never owns content. A host lends entries through [`Transcript`]; the core keeps integer
//! columns about them ([`Columns`]) and, for everything it decides, an identity ([`Identity`]).
//! Entries are counted oldest first, everywhere.

mod columns;
mod entry;
mod fingerprint;
mod owned;
mod until;

pub use columns::{Columns, NONE, RECALL_TOOL};
pub use entry::{EntryKind, EntryRef, Media, PartRef};
pub use fingerprint::{Chain, Identity, identity_of};
pub use owned::{Entry, OwnedTranscript, Part};
pub use until::Until;

/// Lends the entries of one conversation, oldest first.
///
/// The record is append-only: what was lent under an index must not change while a
/// [`Compactor`](crate::Compactor) reads it. A host whose user edited history starts a new
/// `Compactor` from the saved state, which then keeps exactly what still describes the record.
pub trait Transcript {
    /// Number of entries.
    fn len(&self) -> usize;

    /// The facts of the entry at `index`.
    ///
    /// # Panics
    /// May panic when `index >= len()`; the core never asks for such an entry.
    fn entry(&self, index: usize) -> EntryRef<'_>;

    /// Part `part` of the entry at `index`.
    ///
    /// # Panics
    /// May panic when `part >= entry(index).parts`; the core never asks for such a part.
    fn part(&self, index: usize, part: usize) -> PartRef<'_>;

    /// Whether there are no entries.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Transcript + ?Sized> Transcript for &T {
    fn len(&self) -> usize {
        (**self).len()
    }
    fn entry(&self, index: usize) -> EntryRef<'_> {
        (**self).entry(index)
    }
    fn part(&self, index: usize, part: usize) -> PartRef<'_> {
        (**self).part(index, part)
    }
}

/// All text parts of an entry, joined by a line feed: the form in which recall answers.
#[must_use]
pub fn text_of(transcript: &dyn Transcript, index: usize) -> alloc::borrow::Cow<'_, str> {
    let mut whole = alloc::borrow::Cow::Borrowed("");
    let mut seen = false;
    for part in 0..transcript.entry(index).parts as usize {
        if let PartRef::Text(text) = transcript.part(index, part) {
            if seen {
                let owned = whole.to_mut();
                owned.push('\n');
                owned.push_str(text);
            } else {
                whole = alloc::borrow::Cow::Borrowed(text);
                seen = true;
            }
        }
    }
    whole
}
