//! 7. What one model call is sent, as borrowed pieces.

/// One piece of a view, in the order in which the model reads them.
///
/// Pieces of one assistant message, and the results that follow it, always stand together; a wire format
/// puts them back into messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'v> {
    /// The entry as it stands in the record.
    Entry {
        /// Index of the entry.
        entry: usize,
    },
    /// All content of the entry (a tool result) is replaced by `text`; call id and error flag stay.
    Text {
        /// Index of the entry.
        entry: usize,
        /// What stands there instead.
        text: &'v str,
    },
    /// The listed media parts of the entry are each replaced by `text`; its other parts stay.
    Elided {
        /// Index of the entry.
        entry: usize,
        /// Part numbers, ascending.
        parts: &'v [u32],
        /// What stands in the place of each.
        text: &'v str,
    },
    /// The arguments of the entry (a tool call) are replaced by `json`, a valid JSON object.
    Arguments {
        /// Index of the entry.
        entry: usize,
        /// The JSON object.
        json: &'v str,
    },
    /// A note that covers a stretch of the conversation; shown as a message of the user.
    Note {
        /// The whole text, wrapper included.
        text: &'v str,
    },
    /// A result made up for a call that never got one; shown as a tool result flagged as an error.
    StandIn {
        /// Index of the call.
        call: usize,
        /// The text of the result.
        text: &'v str,
    },
}
