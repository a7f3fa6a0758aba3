//! A record as it was earlier.

use super::{EntryRef, PartRef, Transcript};

/// The first entries of a record: what existed when a call was made.
///
/// ```
/// use foreshorten_core::transcript::{Entry, OwnedTranscript, Transcript as _, Until};
///
/// let record = OwnedTranscript::from(vec![Entry::user("hello"), Entry::assistant("hi")]);
/// assert_eq!(Until { whole: &record, len: 1 }.len(), 1);
/// ```
#[derive(Debug)]
pub struct Until<'a, T: ?Sized> {
    /// All of it.
    pub whole: &'a T,
    /// How many entries there are yet; no more than `whole` has.
    pub len: usize,
}

impl<T: Transcript + ?Sized> Transcript for Until<'_, T> {
    fn len(&self) -> usize {
        self.len
    }

    fn entry(&self, index: usize) -> EntryRef<'_> {
        self.whole.entry(index)
    }

    fn part(&self, index: usize, part: usize) -> PartRef<'_> {
        self.whole.part(index, part)
    }
}
