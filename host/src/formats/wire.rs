//! The record as it came: raw input held once, and integer facts about where its entries stand.

use std::sync::Arc;

use foreshorten_core::transcript::{EntryKind, EntryRef, Media, PartRef, Transcript};

use super::escape::unescape;
use super::json::{Json, Span};

/// Text in the record: where it stands in the source, or, when its JSON has escapes, where it was decoded to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Str {
    /// Nothing.
    #[default]
    Empty,
    /// A stretch of the source.
    Raw(Span),
    /// A stretch of the decoded text.
    Decoded(Span),
    /// A word of ours.
    Fixed(&'static str),
}

/// An image's or file's facts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MediaMeta {
    pub(crate) media_type: Str,
    pub(crate) name: Str,
    pub(crate) data: Span,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    Text(Str),
    Image(MediaMeta),
    File(MediaMeta),
    Opaque(Span),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PartMeta {
    pub(crate) content: Content,
    /// The element or member that goes when the part goes; none when the part is the slot itself.
    pub(crate) item: Span,
}

/// How a replacement is written into an entry's slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Slot {
    /// There is nowhere to write to.
    #[default]
    None,
    /// The value becomes a JSON string.
    String(Span),
    /// The value becomes the JSON itself.
    Json(Span),
    /// There is no such member: it is added after this one.
    After(Span, &'static str),
    /// A screenshot, which the protocol lets be nothing but an image.
    Screenshot(Span),
    /// The chunks of a shell call's output.
    Shell(Span),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryMeta {
    pub(crate) kind: EntryKind,
    pub(crate) is_error: bool,
    pub(crate) sealed: bool,
    pub(crate) call_id: Str,
    pub(crate) name: Str,
    /// First part, and one past the last.
    pub(crate) parts: (u32, u32),
    /// The message, item or line the entry is part of; [`OUTSIDE`] when it stands outside the conversation.
    pub(crate) unit: u32,
    /// The element or member that goes when the entry goes; none when its parts go one by one.
    pub(crate) item: Span,
    /// Where a replacement for all of its content, or of a call's arguments, is written.
    pub(crate) slot: Slot,
}

/// The unit of entries that no view touches: a top-level system prompt.
pub(crate) const OUTSIDE: u32 = u32::MAX;

/// A conversation whose entries lie in JSON text that is kept as it came.
///
/// It implements the core's [`Transcript`]. Text is borrowed from the input, or from one buffer of
/// decoded text when its JSON has escapes; images and files are always borrowed raw.
#[derive(Clone, Debug)]
pub struct WireTranscript {
    source: Arc<String>,
    decoded: String,
    pub(crate) entries: Vec<EntryMeta>,
    pub(crate) parts: Vec<PartMeta>,
    pub(crate) units: Vec<Span>,
}

impl WireTranscript {
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    pub(crate) fn take_source(&mut self) -> Arc<String> {
        std::mem::take(&mut self.source)
    }

    fn str(&self, text: Str) -> &str {
        match text {
            Str::Empty => "",
            Str::Raw(span) => span.of(&self.source),
            Str::Decoded(span) => span.of(&self.decoded),
            Str::Fixed(word) => word,
        }
    }

    /// Entries of a message stand side by side; this is the message's number, counted from 0. `None` for a
    /// system prompt that stands outside the conversation, or an index out of range.
    #[must_use]
    pub fn message_of(&self, entry: usize) -> Option<usize> {
        self.entries.get(entry).filter(|entry| entry.unit != OUTSIDE).map(|entry| entry.unit as usize)
    }

    /// Number of messages (items, lines) the entries come from.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.units.len()
    }

    /// The raw JSON of a message.
    #[must_use]
    pub fn message(&self, message: usize) -> &str {
        self.units.get(message).map_or("", |span| span.of(&self.source))
    }

    /// The raw JSON of the messages the entries belong to, each once, in the order asked for and on one line each:
    /// JSON lines in the format of the session.
    #[must_use]
    pub fn entries_as_json(&self, entries: &[usize]) -> Vec<String> {
        let mut seen = std::collections::HashSet::new();
        entries
            .iter()
            .filter_map(|&entry| self.message_of(entry))
            .filter(|&message| seen.insert(message))
            // Raw line breaks can stand in JSON only between tokens.
            .map(|message| self.message(message).replace(['\n', '\r'], " "))
            .collect()
    }

    /// The raw source of one part where the part is an element of its own, e.g. an image block.
    #[must_use]
    pub fn raw_part(&self, entry: usize, part: usize) -> Option<&str> {
        let entry = self.entries.get(entry)?;
        let part = self.parts.get(entry.parts.0 as usize..entry.parts.1 as usize)?.get(part)?;
        Some(part.item).filter(|item| !item.is_none()).map(|item| item.of(&self.source))
    }

    /// Whether two entries say the same, wherever they stand.
    pub(crate) fn same(&self, index: usize, other: &Self, at: usize) -> bool {
        let (a, b) = (self.entry(index), other.entry(at));
        a == b && (0..a.parts as usize).all(|part| self.part(index, part) == other.part(at, part))
    }

    /// Bytes held besides the input itself.
    #[must_use]
    pub fn overhead(&self) -> usize {
        self.decoded.len()
            + self.entries.len() * size_of::<EntryMeta>()
            + self.parts.len() * size_of::<PartMeta>()
            + self.units.len() * size_of::<Span>()
    }
}

impl Transcript for WireTranscript {
    fn len(&self) -> usize {
        self.entries.len()
    }

    fn entry(&self, index: usize) -> EntryRef<'_> {
        let entry = &self.entries[index];
        EntryRef {
            kind: entry.kind,
            call_id: self.str(entry.call_id),
            name: self.str(entry.name),
            is_error: entry.is_error,
            sealed: entry.sealed,
            parts: entry.parts.1 - entry.parts.0,
        }
    }

    fn part(&self, index: usize, part: usize) -> PartRef<'_> {
        let media = |media: &MediaMeta| {
            let (media_type, name) = (self.str(media.media_type), self.str(media.name));
            (media_type, name, media.data)
        };
        match &self.parts[self.entries[index].parts.0 as usize + part].content {
            Content::Text(text) => PartRef::Text(self.str(*text)),
            Content::Opaque(span) => PartRef::Opaque(span.of(&self.source).as_bytes()),
            Content::Image(meta) => {
                let (media_type, name, data) = media(meta);
                PartRef::Image(Media { media_type, name, data: data.of(&self.source).as_bytes() })
            }
            Content::File(meta) => {
                let (media_type, name, data) = media(meta);
                PartRef::File(Media { media_type, name, data: data.of(&self.source).as_bytes() })
            }
        }
    }
}

/// Builds a [`WireTranscript`] entry by entry. Parts and facts go to the entry begun last.
#[derive(Debug)]
pub(crate) struct Builder {
    wire: WireTranscript,
    /// What was decoded here: behind what the record that is gone on with had decoded already.
    decoded: Vec<u8>,
    scratch: EntryMeta,
}

impl Builder {
    pub(crate) fn new(source: &Arc<String>) -> Self {
        let wire = WireTranscript {
            source: Arc::clone(source),
            decoded: String::new(),
            entries: Vec::new(),
            parts: Vec::new(),
            units: Vec::new(),
        };
        let scratch = EntryMeta {
            kind: EntryKind::User,
            is_error: false,
            sealed: false,
            call_id: Str::Empty,
            name: Str::Empty,
            parts: (0, 0),
            unit: OUTSIDE,
            item: Span::NONE,
            slot: Slot::None,
        };
        Self { wire, decoded: Vec::new(), scratch }
    }

    /// Goes on with a record whose source has grown to `source`.
    pub(crate) fn extending(mut wire: WireTranscript, source: Arc<String>) -> Self {
        wire.source = source;
        Self { wire, ..Self::new(&Arc::default()) }
    }

    /// Number of entries so far.
    pub(crate) fn len(&self) -> usize {
        self.wire.entries.len()
    }

    /// A message (item, line) begins; the entries that follow are its.
    pub(crate) fn unit(&mut self, span: Span) {
        self.scratch.unit = u32::try_from(self.wire.units.len()).unwrap_or(OUTSIDE);
        self.wire.units.push(span);
    }

    /// The entries that follow stand outside the conversation.
    pub(crate) fn outside(&mut self) {
        self.scratch.unit = OUTSIDE;
    }

    /// An entry begins.
    pub(crate) fn entry(&mut self, kind: EntryKind) -> &mut EntryMeta {
        let at = u32::try_from(self.wire.parts.len()).unwrap_or(u32::MAX);
        self.wire.entries.push(EntryMeta { kind, parts: (at, at), ..self.scratch });
        self.last()
    }

    /// The entry begun last.
    pub(crate) fn last(&mut self) -> &mut EntryMeta {
        self.wire.entries.last_mut().unwrap_or(&mut self.scratch)
    }

    pub(crate) fn part(&mut self, content: Content, item: Span) {
        self.wire.parts.push(PartMeta { content, item });
        let end = u32::try_from(self.wire.parts.len()).unwrap_or(u32::MAX);
        self.last().parts.1 = end;
    }

    /// A text part: a string decoded, anything else as the JSON it is.
    pub(crate) fn text(&mut self, value: Json<'_>, item: Span) {
        let text = self.str_or_raw(value);
        self.part(Content::Text(text), item);
    }

    /// The decoded text of a string; empty for other values.
    pub(crate) fn str(&mut self, value: Option<Json<'_>>) -> Str {
        value
            .filter(|value| value.is_string())
            .map_or(Str::Empty, |value| self.str_at(value.source(), value.inner_span()))
    }

    pub(crate) fn str_or_raw(&mut self, value: Json<'_>) -> Str {
        if value.is_string() { self.str_at(value.source(), value.inner_span()) } else { Str::Raw(value.span()) }
    }

    /// The decoded text of a stretch inside a string.
    pub(crate) fn str_at(&mut self, source: &str, span: Span) -> Str {
        let raw = span.of(source);
        if raw.is_empty() {
            Str::Empty
        } else if memchr::memchr(b'\\', raw.as_bytes()).is_none() {
            Str::Raw(span)
        } else {
            let before = self.wire.decoded.len();
            let from = before + self.decoded.len();
            unescape(raw, &mut self.decoded);
            Str::Decoded(Span::new(from, before + self.decoded.len()))
        }
    }

    /// What was built so far.
    pub(crate) fn peek_all(&self) -> WireTranscript {
        let mut wire = self.wire.clone();
        take_in(&mut wire.decoded, self.decoded.clone());
        wire
    }

    /// What was built. Costs what is new.
    pub(crate) fn finish(mut self) -> WireTranscript {
        take_in(&mut self.wire.decoded, self.decoded);
        self.wire
    }
}

/// Decoded bytes are UTF-8: they were, but for escapes, which decode to whole characters.
fn take_in(text: &mut String, bytes: Vec<u8>) {
    let fresh = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    if text.is_empty() { *text = fresh } else { text.push_str(&fresh) }
}
