//! The weight of one entry.

use alloc::boxed::Box;
use core::fmt;

use super::ByteEstimator;
use crate::transcript::{EntryKind, PartRef, Transcript};

/// An exact counter supplied by a provider.
///
/// It is asked for every text, markers, summaries and tool schemas included; where it answers `None`
/// the byte estimate is taken instead.
pub trait TokenEstimator {
    /// Tokens of `text`, or `None` when they cannot be counted.
    fn count(&self, text: &str) -> Option<u32>;
}

/// Weighs entries, markers and schemas with one rule.
pub struct Weigher {
    /// The byte rule, always at hand. Default: [`ByteEstimator::default`], for a model of which nothing is known.
    pub bytes: ByteEstimator,
    /// Flat cost of an image in tokens. Default 1,600: about what a full-size image costs at the large providers.
    pub image_tokens: u32,
    /// Flat cost of a file in tokens. Default 2,000.
    pub file_tokens: u32,
    /// Tokens of framing around every entry. Default 8, which errs a little high.
    pub entry_overhead: u32,
    /// An exact counter, asked first.
    pub exact: Option<Box<dyn TokenEstimator + Send + Sync>>,
}

impl Default for Weigher {
    fn default() -> Self {
        Self {
            bytes: ByteEstimator::default(),
            image_tokens: 1_600,
            file_tokens: 2_000,
            entry_overhead: 8,
            exact: None,
        }
    }
}

impl Weigher {
    /// Tokens of a bare text.
    #[must_use]
    pub fn text(&self, text: &str) -> u32 {
        self.exact.as_ref().and_then(|exact| exact.count(text)).unwrap_or_else(|| self.bytes.tokens(text))
    }

    /// Tokens of an entry whose whole content is `text`, framing included.
    #[must_use]
    pub fn framed(&self, text: &str) -> u32 {
        self.entry_overhead.saturating_add(self.text(text))
    }

    /// Tokens of the arguments of a call, as JSON.
    ///
    /// Providers put arguments into templates of their own, where line feeds and quotes are not escaped: over recorded
    /// sessions of four providers they cost an eighth less than the tables say of the JSON. The seeds' rule and an exact
    /// counter stay what they are.
    #[must_use]
    pub fn arguments(&self, json: &str) -> u32 {
        let tokens = self.text(json);
        if self.exact.is_some() || self.bytes == ByteEstimator::BytesPer4 { tokens } else { tokens - tokens / 8 }
    }

    /// Tokens of one part, of any entry but a call.
    #[must_use]
    pub fn part(&self, part: PartRef<'_>) -> u32 {
        match part {
            PartRef::Text(text) => self.text(text),
            PartRef::Image(_) => self.image_tokens,
            PartRef::File(_) => self.file_tokens,
            // Encrypted payloads are base64 (4 bytes for 3) of text that would cost a quarter of its bytes.
            PartRef::Opaque(data) => u32::try_from(data.len() / 16 * 3 + data.len() % 16 / 4).unwrap_or(u32::MAX),
        }
    }

    /// Tokens of the entry at `index`.
    #[must_use]
    pub fn entry(&self, transcript: &dyn Transcript, index: usize) -> u32 {
        let entry = transcript.entry(index);
        let name = if entry.name.is_empty() { 0 } else { self.text(entry.name) };
        let one = |part| match transcript.part(index, part) {
            PartRef::Text(text) if entry.kind == EntryKind::ToolCall => self.arguments(text),
            part => self.part(part),
        };
        (0..entry.parts as usize).map(one).fold(self.entry_overhead.saturating_add(name), u32::saturating_add)
    }
}

impl fmt::Debug for Weigher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Weigher")
            .field("bytes", &self.bytes)
            .field("image_tokens", &self.image_tokens)
            .field("file_tokens", &self.file_tokens)
            .field("entry_overhead", &self.entry_overhead)
            .field("exact", &self.exact.is_some())
            .finish()
    }
}
