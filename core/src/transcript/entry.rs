//! What one entry is.

/// The kinds of entry a transcript holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum EntryKind {
    /// Instructions of the developer or operator (roles `system` and `developer`). Never reduced, never covered.
    System = 0,
    /// Something the user said, text and media.
    User = 1,
    /// Text the model wrote, or anything else on the assistant's side that the core cannot look into.
    Assistant = 2,
    /// The model's reasoning, readable or opaque.
    Reasoning = 3,
    /// A call of a tool: its only part is the raw argument text.
    ToolCall = 4,
    /// The answer to a call.
    ToolResult = 5,
}

impl EntryKind {
    /// All kinds, in the order of their codes.
    pub const ALL: [Self; 6] =
        [Self::System, Self::User, Self::Assistant, Self::Reasoning, Self::ToolCall, Self::ToolResult];

    /// Whether entries of this kind are written by the model and stand together in one assistant message.
    #[must_use]
    pub const fn is_assistant_side(self) -> bool {
        matches!(self, Self::Assistant | Self::Reasoning | Self::ToolCall)
    }

    /// The word used for this kind in notices and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Reasoning => "reasoning",
            Self::ToolCall => "tool_call",
            Self::ToolResult => "tool_result",
        }
    }
}

/// The facts of one entry; its content is asked for part by part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryRef<'a> {
    /// What kind of entry this is.
    pub kind: EntryKind,
    /// The id that links a call and its result; `""` where the format has none, and for other kinds.
    pub call_id: &'a str,
    /// The tool's name on a call; `""` elsewhere.
    pub name: &'a str,
    /// On a result: the tool reported a failure.
    pub is_error: bool,
    /// The entry carries a signature or encrypted payload, so nothing in its assistant message may be edited.
    pub sealed: bool,
    /// Number of parts.
    pub parts: u32,
}

impl EntryRef<'_> {
    /// An entry of `kind` with `parts` parts and nothing else set.
    #[must_use]
    pub const fn new(kind: EntryKind, parts: u32) -> Self {
        Self { kind, call_id: "", name: "", is_error: false, sealed: false, parts }
    }
}

/// One part of an entry's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartRef<'a> {
    /// Decoded text.
    Text(&'a str),
    /// An image; costs a flat number of tokens.
    Image(Media<'a>),
    /// A file or document; costs a flat number of tokens.
    File(Media<'a>),
    /// Bytes that only the provider can read (encrypted reasoning, an item of an unknown type).
    Opaque(&'a [u8]),
}

/// An image or file as it stands in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Media<'a> {
    /// Media type such as `image/png`, or `""` when unknown.
    pub media_type: &'a str,
    /// File name, or `""`.
    pub name: &'a str,
    /// The payload as recorded: base64 text, a URL or raw bytes. Used for identity only.
    pub data: &'a [u8],
}
