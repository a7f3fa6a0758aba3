//! A view as it was written, kept so that the next one costs what is new.

use std::ops::Deref;
use std::sync::Arc;

use super::Format;
use super::marks::count_in_message;

/// A view as one protocol's list of messages or items. A copy is a pointer.
///
/// While one is held, the record keeps it as it is, and has to copy the list to write the next view. Who only sends it and
/// lets it go makes the next view cost what is new.
#[derive(Clone, Debug, Default)]
pub struct WireView {
    list: Arc<WireList>,
    kept: usize,
}

/// What a view was written as.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireList {
    /// The JSON list.
    pub messages: String,
    /// Byte at which each message begins in `messages`.
    pub starts: Vec<usize>,
    /// For every piece of the view the index of its message; `None` for one that stands outside the list.
    pub message_of_piece: Vec<Option<usize>>,
    /// Instructions that this protocol carries outside of the list (Anthropic's `system`, Responses' `instructions`).
    pub system: Vec<String>,
    /// Messages in which cache breakpoints of the caller's stand, and how many.
    pub(crate) marked: Vec<(usize, usize)>,
}

impl WireView {
    pub(crate) const fn new(list: Arc<WireList>, kept: usize) -> Self {
        Self { list, kept }
    }

    /// Leading bytes of `messages` that were not written for this view, but stand as they were written for the one before.
    #[must_use]
    pub const fn kept(&self) -> usize {
        self.kept
    }

    /// The cache breakpoints that stand in the list already.
    #[must_use]
    pub fn own_marks(&self) -> usize {
        self.marked.iter().map(|(_, marks)| marks).sum()
    }
}

impl Deref for WireView {
    type Target = WireList;

    fn deref(&self) -> &WireList {
        &self.list
    }
}

impl From<WireList> for WireView {
    fn from(list: WireList) -> Self {
        Self { list: Arc::new(list), kept: 0 }
    }
}

impl PartialEq for WireView {
    /// Whether the same is sent, however it was come by.
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl Eq for WireView {}

impl WireList {
    /// Goes back to the first `pieces` pieces, which are the first `messages` messages, with the list left open.
    pub(super) fn cut(&mut self, pieces: usize, messages: usize) {
        if messages == 0 {
            self.messages.clear();
            self.messages.push('[');
        } else {
            // The comma before the message goes, or the closing bracket.
            let end = self.starts.get(messages).map_or(self.messages.len(), |start| *start);
            self.messages.truncate(end.saturating_sub(1));
        }
        self.starts.truncate(messages);
        self.message_of_piece.truncate(pieces);
        let kept = self.marked.partition_point(|(message, _)| *message < messages);
        self.marked.truncate(kept);
    }

    /// Takes in the messages that were written after the first `before`.
    pub(super) fn grew(&mut self, format: Format, before: usize, starts: Vec<usize>) {
        self.starts.extend(starts);
        let fresh = self.starts.iter().enumerate().skip(before);
        let ends = self.starts.iter().skip(before + 1).copied().chain([self.messages.len()]);
        for ((message, start), end) in fresh.zip(ends) {
            let marks = count_in_message(format, &self.messages[*start..end - 1]);
            if marks > 0 {
                self.marked.push((message, marks));
            }
        }
    }
}
