//! One decision about one entry.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use super::Place;
use crate::{
    digest::Digest,
    marker::{self, ClearReason, MarkerStyle},
    plan::Level,
    text,
    transcript::{Columns, EntryKind, Transcript, text_of},
};

/// A decision: which entry, and what stands in its place. Frozen when made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Record {
    /// The entry.
    pub place: Place,
    /// What stands in its place.
    pub action: Action,
}

/// The facts of a preview, from which its text is made again at any time.
///
/// The text itself is not stored: it is cut anew from the record, and `head_digest` tells whether the record
/// still begins as it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OffloadRecord {
    /// Digest of the whole content.
    pub digest: Digest,
    /// Bytes of the whole content.
    pub bytes: u64,
    /// Bytes kept from the beginning.
    pub head: u32,
    /// Bytes kept from the end.
    pub tail: u32,
    /// First eight bytes of the digest of the kept beginning.
    pub head_digest: u64,
    /// The persisted-result form of the earlier proposal instead of the bracketed one.
    pub persisted: bool,
    /// Made by the ladder of last resorts.
    pub last_resort: bool,
}

/// What a decision does.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Action {
    /// The listed media parts are replaced by a marker.
    Elide {
        /// Digest of the entry's content.
        digest: Digest,
        /// Part numbers, ascending.
        parts: Vec<u32>,
    },
    /// The call's arguments are replaced by valid JSON that says so.
    Clip {
        /// Digest of the arguments.
        digest: Digest,
        /// Bytes of the arguments.
        bytes: u64,
    },
    /// A plugin's text stands in place of the result.
    Condense {
        /// Digest of the content.
        digest: Digest,
        /// The plugin.
        by: String,
        /// Its text.
        text: String,
    },
    /// A preview stands in place of the result.
    Offload(OffloadRecord),
    /// A marker stands in place of the result.
    Clear {
        /// Digest of the content.
        digest: Digest,
        /// Bytes of the content.
        bytes: u64,
        /// Why.
        why: ClearReason,
        /// The marker refers to the call id (unique when this was decided) instead of the digest.
        by_id: bool,
    },
    /// The reasoning is left out.
    Omit,
}

impl Action {
    /// The level this amounts to.
    #[must_use]
    pub const fn level(&self) -> Level {
        match self {
            Self::Elide { .. } | Self::Clip { .. } => Level::Elided,
            Self::Condense { .. } => Level::Condensed,
            Self::Offload(_) => Level::Preview,
            Self::Clear { .. } | Self::Omit => Level::Cleared,
        }
    }

    /// Digest of what was replaced; `None` for omitted reasoning.
    #[must_use]
    pub const fn digest(&self) -> Option<Digest> {
        match self {
            Self::Elide { digest, .. }
            | Self::Clip { digest, .. }
            | Self::Condense { digest, .. }
            | Self::Offload(OffloadRecord { digest, .. })
            | Self::Clear { digest, .. } => Some(*digest),
            Self::Omit => None,
        }
    }
}

impl Record {
    /// The text that stands in the entry's place (for elided media: in place of each part); `None` for
    /// reasoning that is left out.
    #[must_use]
    pub fn marker(&self, transcript: &dyn Transcript, columns: &Columns, style: MarkerStyle) -> Option<String> {
        let mut out = String::new();
        self.push_marker(transcript, columns, style, &mut out).then_some(out)
    }

    /// Writes the marker behind what is there; `false` where there is none. Allocates only what `out` grows by.
    pub(crate) fn push_marker(
        &self,
        transcript: &dyn Transcript,
        columns: &Columns,
        style: MarkerStyle,
        out: &mut String,
    ) -> bool {
        let entry = self.place.index as usize;
        let is_error = columns.is_error(entry);
        let Some(digest) = self.action.digest() else { return false };
        let hex = digest.hex();
        let recalled;
        let reference = match self.original(transcript, columns) {
            Some(original) => {
                recalled = original;
                recalled.as_str()
            }
            None if self.by_id() => transcript.entry(entry).call_id,
            // The digits of a digest are ASCII.
            None => core::str::from_utf8(&hex).unwrap_or_default(),
        };
        match &self.action {
            Action::Elide { .. } => out.push_str(&marker::media_marker(style, reference)),
            Action::Clip { bytes, .. } => out.push_str(&marker::arguments_marker(style, reference, *bytes)),
            Action::Condense { by, text, .. } => out.push_str(&marker::condensed_marker(style, reference, by, text)),
            Action::Offload(facts) => {
                let whole = text_of(transcript, entry);
                let head = text::head(&whole, facts.head as usize);
                let tail = text::tail(&whole[head.len()..], facts.tail as usize);
                if facts.persisted {
                    out.push_str(&marker::persisted_marker(style, reference, is_error, facts.bytes, head));
                } else {
                    marker::push_offload_marker(
                        out,
                        style,
                        reference,
                        is_error,
                        facts.bytes,
                        head,
                        tail,
                        facts.last_resort,
                    );
                }
            }
            Action::Clear { bytes, why, .. } => {
                marker::push_clear_marker(out, style, reference, is_error, *bytes, columns.has_media(entry), *why);
            }
            Action::Omit => return false,
        }
        true
    }

    /// The reference by which the original is recalled; `None` for reasoning that is left out.
    ///
    /// A cleared recall result refers to what was recalled, not to itself.
    #[must_use]
    pub fn reference(&self, transcript: &dyn Transcript, columns: &Columns) -> Option<String> {
        let digest = self.action.digest()?;
        Some(self.original(transcript, columns).unwrap_or_else(|| match self.by_id() {
            true => transcript.entry(self.place.index as usize).call_id.into(),
            false => marker::digest_reference(&digest),
        }))
    }

    const fn by_id(&self) -> bool {
        matches!(self.action, Action::Clear { by_id: true, .. })
    }

    /// What a recall result recalled.
    fn original(&self, transcript: &dyn Transcript, columns: &Columns) -> Option<String> {
        let entry = self.place.index as usize;
        if !columns.is_recall(entry) || columns.kind(entry) != EntryKind::ToolResult {
            return None;
        }
        let arguments = text_of(transcript, columns.pair(entry) as usize);
        text::json_string_field(&arguments, "ref").map(Into::into)
    }
}

/// Whether a call id can stand in a marker: short, plain, and not to be mistaken for another kind of reference.
#[must_use]
pub(super) fn is_plain_id(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 64
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.:".contains(&b))
        && !id.starts_with("note:")
        && Digest::parse(id).is_none()
}
