//! The record of a session: messages that are only ever appended.
//!
//! A [`Message`] is what came at once: what the user said, what one model call answered, what one tool gave back. It
//! holds neutral [`Entry`]s, which the core plans over, and, when it came from a provider, the raw JSON it came as. A
//! view is written in any protocol: of messages recorded in that protocol the bytes are copied, the others are composed
//! ([`Record::write`]).
//!
//! ```
//! use foreshorten::formats::Format;
//! use foreshorten::record::{Message, Record};
//! use foreshorten::view::View;
//!
//! let mut record = Record::new();
//! record.push(Message::user("What is in a.txt?"));
//! let raw = r#"{"role":"assistant","content":null,"tool_calls":[
//!     {"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\": \"a.txt\"}"}}]}"#;
//! record.push(Message::raw(Format::OpenAiChat, raw)?);
//! record.push(Message::result("c1", "hello"));
//! // As it came for the protocol it came in …
//! let chat = record.write(&View::of(&record), Format::OpenAiChat)?;
//! assert!(chat.messages.contains(raw));
//! // … and composed for any other.
//! let composed = record.write(&View::of(&record), Format::AnthropicMessages)?;
//! assert!(composed.messages.contains(r#"{"type":"tool_result","tool_use_id":"c1","content":"hello"}"#));
//! # Ok::<(), foreshorten::formats::FormatError>(())
//! ```

mod lines;

pub use lines::LineError;

use std::sync::{Arc, Mutex, PoisonError};

use foreshorten_core::transcript::{Entry, EntryKind, EntryRef, Part, PartRef, Transcript};

use crate::formats::{Format, FormatError, Outgoing, WireView, parse_body};
use crate::view::View;

/// The JSON a message came as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawMessage {
    /// The protocol it is a message (Responses: an item) of.
    pub format: Format,
    /// The bytes, as they came.
    pub json: String,
}

/// What came at once: one or more entries, and the JSON they came as, if any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    entries: Vec<Entry>,
    raw: Option<RawMessage>,
}

impl Message {
    /// A message of entries that have no JSON of their own.
    #[must_use]
    pub const fn of(entries: Vec<Entry>) -> Self {
        Self { entries, raw: None }
    }

    /// Instructions of the operator.
    #[must_use]
    pub fn system(text: impl Into<String>) -> Self {
        Self::of(vec![Entry::system(text)])
    }

    /// What the user said.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::of(vec![Entry::user(text)])
    }

    /// A tool's answer.
    #[must_use]
    pub fn result(call_id: impl Into<String>, output: impl Into<String>) -> Self {
        Self::of(vec![Entry::tool_result(call_id, output)])
    }

    /// One message (Responses: one item) of a protocol, kept as it came.
    ///
    /// # Errors
    /// When the text is no such message.
    pub fn raw(format: Format, json: impl Into<String>) -> Result<Self, FormatError> {
        let json = json.into();
        let body = parse_body(format!("[{json}]").into_bytes(), Some(format))?;
        let read = body.transcript();
        let entries = (0..read.len()).map(|index| Entry::copy_of(read, index)).collect();
        Ok(Self { entries, raw: Some(RawMessage { format, json }) })
    }

    /// The entries, in order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The JSON it came as.
    #[must_use]
    pub const fn raw_json(&self) -> Option<&RawMessage> {
        self.raw.as_ref()
    }

    /// The text parts of all entries of a kind, joined by line feeds.
    #[must_use]
    pub fn text_of(&self, kind: EntryKind) -> String {
        let parts = self.entries.iter().filter(|entry| entry.kind == kind).flat_map(|entry| &entry.parts);
        let text = |part: &Part| match part {
            Part::Text(text) => Some(text.clone()),
            _ => None,
        };
        parts.filter_map(text).collect::<Vec<_>>().join("\n")
    }

    fn is_answer(&self) -> bool {
        !self.entries.is_empty() && self.entries.iter().all(|entry| entry.kind.is_assistant_side())
    }

    fn is_results(&self) -> bool {
        !self.entries.is_empty() && self.entries.iter().all(|entry| entry.kind == EntryKind::ToolResult)
    }
}

/// The record of one session. Messages are shared, so that a copy of a record costs a pointer a message.
#[derive(Debug, Default)]
pub struct Record {
    messages: Vec<Arc<Message>>,
    /// Entry → (message, number within it).
    index: Vec<(u32, u32)>,
    /// The record in the protocols it was written in so far.
    wires: Mutex<Vec<Wire>>,
}

#[derive(Debug)]
struct Wire {
    outgoing: Outgoing,
    messages: usize,
    /// The last message taken in was composed of several of this sort, to which more may come.
    open: Option<Joint>,
}

/// Messages of which a run is one message in some protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joint {
    /// Results.
    Results,
    /// Items of an answer in the Responses protocol: it has one for every call.
    Items,
}

impl Clone for Record {
    fn clone(&self) -> Self {
        Self { messages: self.messages.clone(), index: self.index.clone(), wires: Mutex::default() }
    }
}

impl Record {
    /// A record with nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a message.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) {
        let message = message.into();
        let at = u32::try_from(self.messages.len()).unwrap_or(u32::MAX);
        self.index.extend((0..message.entries.len()).map(|within| (at, within as u32)));
        self.messages.push(message);
    }

    /// The messages, oldest first.
    #[must_use]
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// The message an entry is part of.
    #[must_use]
    pub fn message_of(&self, entry: usize) -> Option<usize> {
        self.index.get(entry).map(|at| at.0 as usize)
    }

    /// The entry at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Entry> {
        let (message, within) = *self.index.get(index)?;
        self.messages.get(message as usize)?.entries.get(within as usize)
    }

    /// All entries, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.messages.iter().flat_map(|message| &message.entries)
    }

    /// Writes a view as the list of messages (Responses: items) of `format`.
    ///
    /// What was written is kept. While a view only grows, a call costs what is new: the messages before stay as they were
    /// written ([`WireView::kept`]), unless a view written earlier is still held.
    ///
    /// # Errors
    /// When a message cannot be read in the format it says it is in.
    pub fn write(&self, view: &View, format: Format) -> Result<WireView, FormatError> {
        let mut wires = self.wires.lock().unwrap_or_else(PoisonError::into_inner);
        let at = match wires.iter().position(|wire| wire.outgoing.format() == format) {
            Some(at) => at,
            None => {
                wires.push(Wire { outgoing: Outgoing::new(format), messages: 0, open: None });
                wires.len() - 1
            }
        };
        if let Err(error) = self.take_in(&mut wires[at]) {
            // Half of a record is of no use to anybody.
            wires.swap_remove(at);
            return Err(error);
        }
        Ok(wires[at].outgoing.write(view.owned()))
    }

    fn take_in(&self, wire: &mut Wire) -> Result<(), FormatError> {
        let format = wire.outgoing.format();
        let joint = |message: &Message| match &message.raw {
            Some(raw) if raw.format == format => None,
            _ if message.is_results() => Some(Joint::Results),
            Some(raw) if raw.format == Format::OpenAiResponses && message.is_answer() => Some(Joint::Items),
            _ => None,
        };
        if wire.open.is_some() && self.messages.get(wire.messages).and_then(|message| joint(message)) == wire.open {
            // Results of one batch, and its calls, belong into one message of some protocols, and more of them came.
            *wire = Wire { outgoing: Outgoing::new(format), messages: 0, open: None };
        }
        while let Some(message) = self.messages.get(wire.messages) {
            wire.open = joint(message);
            match message.raw.as_ref().filter(|raw| raw.format == format) {
                Some(raw) => {
                    wire.outgoing.push_raw(&raw.json, message.entries.len())?;
                    wire.messages += 1;
                }
                None if wire.open.is_some() => {
                    let more = self.messages[wire.messages..].iter();
                    let run = more.take_while(|message| joint(message) == wire.open).count();
                    let batch = &self.messages[wire.messages..wire.messages + run];
                    wire.outgoing.push(&batch.iter().flat_map(|message| &message.entries).collect::<Vec<_>>())?;
                    wire.messages += run;
                }
                None => {
                    wire.outgoing.push(&message.entries.iter().collect::<Vec<_>>())?;
                    wire.messages += 1;
                }
            }
        }
        Ok(())
    }
}

impl Transcript for Record {
    fn len(&self) -> usize {
        self.index.len()
    }

    fn entry(&self, index: usize) -> EntryRef<'_> {
        let (message, within) = self.index[index];
        self.messages[message as usize].entries[within as usize].facts()
    }

    fn part(&self, index: usize, part: usize) -> PartRef<'_> {
        let (message, within) = self.index[index];
        self.messages[message as usize].entries[within as usize].parts[part].lend()
    }
}

impl<M: Into<Arc<Message>>> FromIterator<M> for Record {
    fn from_iter<I: IntoIterator<Item = M>>(messages: I) -> Self {
        let mut record = Self::new();
        messages.into_iter().for_each(|message| record.push(message));
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_come_one_by_one_end_in_one_message_where_the_protocol_wants_it() {
        let mut record = Record::new();
        record.push(Message::user("go"));
        record.push(Message::of(vec![Entry::tool_call("a", "t", "{}"), Entry::tool_call("b", "t", "{}")]));
        record.push(Message::result("a", "1"));
        let write =
            |record: &Record| record.write(&View::of(record), Format::AnthropicMessages).unwrap().messages.clone();
        let before = write(&record);
        record.push(Message::result("b", "2"));
        let after = write(&record);
        assert_eq!(before.matches("\"role\":\"user\"").count(), 2);
        assert_eq!(after.matches("\"role\":\"user\"").count(), 2);
        assert_eq!(after, write(&record.clone()));
    }

    #[test]
    fn leading_instructions_stand_outside_the_list_where_the_protocol_has_a_place_for_them() {
        let record: Record =
            [Message::system("be brief"), Message::user("hi"), Message::system("late")].into_iter().collect();
        for (format, outside) in [(Format::OpenAiChat, 0), (Format::OpenAiResponses, 1), (Format::AnthropicMessages, 1)]
        {
            let written = record.write(&View::of(&record), format).unwrap();
            assert_eq!(written.system.len(), outside, "{format}");
            assert!(written.messages.contains("late"), "{format}");
            assert_eq!(written.starts.len(), 3 - outside, "{format}");
        }
    }
}
