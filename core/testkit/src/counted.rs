//! A transcript that counts what is read of it.

use std::cell::Cell;

use foreshorten_core::transcript::{EntryRef, OwnedTranscript, PartRef, Transcript};

/// Lends the first `len` entries of a transcript and counts how often a part is asked for.
#[derive(Debug)]
pub struct Counted<'a> {
    whole: &'a OwnedTranscript,
    len: usize,
    parts: Cell<u64>,
}

impl<'a> Counted<'a> {
    /// Lends the first `len` entries of `whole`.
    #[must_use]
    pub const fn new(whole: &'a OwnedTranscript, len: usize) -> Self {
        Self { whole, len, parts: Cell::new(0) }
    }

    /// Lends `more` entries more.
    pub fn grow(&mut self, more: usize) {
        self.len = (self.len + more).min(self.whole.len());
    }

    /// How often a part was asked for since this was last asked.
    #[must_use]
    pub fn take(&self) -> u64 {
        self.parts.take()
    }
}

impl Transcript for Counted<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn entry(&self, index: usize) -> EntryRef<'_> {
        self.whole.entry(index)
    }

    fn part(&self, index: usize, part: usize) -> PartRef<'_> {
        self.parts.set(self.parts.get() + 1);
        self.whole.part(index, part)
    }
}
