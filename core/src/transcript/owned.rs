//! A transcript that owns its content, for embedders who have no record of their own.

use alloc::{string::String, vec, vec::Vec};

use super::{EntryKind, EntryRef, Media, PartRef, Transcript};

/// One owned part of an [`Entry`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// Text.
    Text(String),
    /// An image: media type and payload.
    Image(String, Vec<u8>),
    /// A file: media type, name and payload.
    File(String, String, Vec<u8>),
    /// Opaque provider payload.
    Opaque(Vec<u8>),
}

impl Part {
    /// The part as a [`Transcript`] lends it.
    #[must_use]
    pub fn lend(&self) -> PartRef<'_> {
        match self {
            Self::Text(text) => PartRef::Text(text),
            Self::Image(media_type, data) => PartRef::Image(Media { media_type, name: "", data }),
            Self::File(media_type, name, data) => PartRef::File(Media { media_type, name, data }),
            Self::Opaque(data) => PartRef::Opaque(data),
        }
    }
}

impl From<PartRef<'_>> for Part {
    fn from(part: PartRef<'_>) -> Self {
        match part {
            PartRef::Text(text) => Self::Text(text.into()),
            PartRef::Image(media) => Self::Image(media.media_type.into(), media.data.into()),
            PartRef::File(media) => Self::File(media.media_type.into(), media.name.into(), media.data.into()),
            PartRef::Opaque(data) => Self::Opaque(data.into()),
        }
    }
}

/// One owned entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What kind of entry this is.
    pub kind: EntryKind,
    /// The id linking call and result.
    pub call_id: String,
    /// The tool's name, on calls.
    pub name: String,
    /// The tool failed, on results.
    pub is_error: bool,
    /// Signed or encrypted: never edited.
    pub sealed: bool,
    /// Content.
    pub parts: Vec<Part>,
}

impl Entry {
    /// An entry of one text part.
    #[must_use]
    pub fn text(kind: EntryKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            call_id: String::new(),
            name: String::new(),
            is_error: false,
            sealed: false,
            parts: vec![Part::Text(text.into())],
        }
    }

    /// A copy of the entry at `index` of `transcript`.
    ///
    /// # Panics
    /// When there is no such entry.
    #[must_use]
    pub fn copy_of(transcript: &dyn Transcript, index: usize) -> Self {
        let facts = transcript.entry(index);
        Self {
            kind: facts.kind,
            call_id: facts.call_id.into(),
            name: facts.name.into(),
            is_error: facts.is_error,
            sealed: facts.sealed,
            parts: (0..facts.parts as usize).map(|part| transcript.part(index, part).into()).collect(),
        }
    }

    /// A system instruction.
    #[must_use]
    pub fn system(text: impl Into<String>) -> Self {
        Self::text(EntryKind::System, text)
    }

    /// A user message.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::text(EntryKind::User, text)
    }

    /// Text the model wrote.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::text(EntryKind::Assistant, text)
    }

    /// Readable, unsigned reasoning.
    #[must_use]
    pub fn reasoning(text: impl Into<String>) -> Self {
        Self::text(EntryKind::Reasoning, text)
    }

    /// A tool call; `arguments` is the raw JSON text.
    #[must_use]
    pub fn tool_call(call_id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { call_id: call_id.into(), name: name.into(), ..Self::text(EntryKind::ToolCall, arguments) }
    }

    /// A successful tool result.
    #[must_use]
    pub fn tool_result(call_id: impl Into<String>, output: impl Into<String>) -> Self {
        Self { call_id: call_id.into(), ..Self::text(EntryKind::ToolResult, output) }
    }

    /// The same result, flagged as an error.
    #[must_use]
    pub fn failed(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// The same entry, signed.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.sealed = true;
        self
    }

    /// The facts of the entry, as a [`Transcript`] lends them.
    #[must_use]
    pub fn facts(&self) -> EntryRef<'_> {
        EntryRef {
            kind: self.kind,
            call_id: &self.call_id,
            name: &self.name,
            is_error: self.is_error,
            sealed: self.sealed,
            parts: u32::try_from(self.parts.len()).unwrap_or(u32::MAX),
        }
    }

    /// The same entry with one more part.
    #[must_use]
    pub fn with(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }
}

/// A transcript that owns its entries.
///
/// ```
/// use foreshorten_core::transcript::{Entry, OwnedTranscript, Transcript};
/// let mut transcript = OwnedTranscript::default();
/// transcript.push(Entry::user("hello"));
/// assert_eq!(transcript.len(), 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedTranscript {
    entries: Vec<Entry>,
}

impl OwnedTranscript {
    /// Appends an entry.
    pub fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// The entries, oldest first.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

impl From<Vec<Entry>> for OwnedTranscript {
    fn from(entries: Vec<Entry>) -> Self {
        Self { entries }
    }
}

impl Extend<Entry> for OwnedTranscript {
    fn extend<I: IntoIterator<Item = Entry>>(&mut self, entries: I) {
        self.entries.extend(entries);
    }
}

impl Transcript for OwnedTranscript {
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn entry(&self, index: usize) -> EntryRef<'_> {
        self.entries[index].facts()
    }

    fn part(&self, index: usize, part: usize) -> PartRef<'_> {
        self.entries[index].parts[part].lend()
    }
}
