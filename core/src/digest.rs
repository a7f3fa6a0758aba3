//! Content digests: the keys under which content can be found again.

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest as _, Sha256};

use crate::transcript::{PartRef, Transcript};

/// The first 128 bits of the SHA-256 of some content.
///
/// For text this is what `sha256sum | cut -c1-32` prints. 128 bits keep references short (about 19
/// tokens as hexadecimal, half of the full digest) while two different contents meeting under one
/// key stays out of reach.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 16]);

impl Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::finish(Sha256::new_with_prefix(bytes))
    }

    /// The digest of an entry's content: its text parts joined by a line feed, then every other part's
    /// payload, each after a NUL. For an entry of text alone this is the digest of what recall prints.
    #[must_use]
    pub fn of_entry(transcript: &dyn Transcript, index: usize) -> Self {
        let mut hash = Sha256::new();
        let parts = transcript.entry(index).parts as usize;
        let mut seen = false;
        for part in 0..parts {
            if let PartRef::Text(text) = transcript.part(index, part) {
                if seen {
                    hash.update(b"\n");
                }
                seen = true;
                hash.update(text.as_bytes());
            }
        }
        for part in 0..parts {
            let data = match transcript.part(index, part) {
                PartRef::Text(_) => continue,
                PartRef::Image(media) | PartRef::File(media) => media.data,
                PartRef::Opaque(data) => data,
            };
            hash.update([0]);
            hash.update(data);
        }
        Self::finish(hash)
    }

    fn finish(hash: Sha256) -> Self {
        let full: [u8; 32] = hash.finalize().into();
        let mut first = [0; 16];
        first.copy_from_slice(&full[..16]);
        Self(first)
    }

    /// Reads 32 lower-case hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() != 32 {
            return None;
        }
        let digit = |b: u8| match b {
            b'0'..=b'9' => Some(b - b'0'),
            b'a'..=b'f' => Some(b - b'a' + 10),
            _ => None,
        };
        let mut out = [0; 16];
        for (slot, pair) in out.iter_mut().zip(bytes.chunks_exact(2)) {
            *slot = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(out))
    }

    /// The first eight bytes as a number, for ordering and short references.
    #[must_use]
    pub fn short(&self) -> u64 {
        let mut first = [0; 8];
        first.copy_from_slice(&self.0[..8]);
        u64::from_be_bytes(first)
    }

    /// Appends the 32 hexadecimal digits to `out`.
    pub fn push_hex(&self, out: &mut String) {
        out.extend(self.hex().map(char::from));
    }

    /// The 32 hexadecimal digits.
    pub(crate) fn hex(&self) -> [u8; 32] {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut out = [0; 32];
        for (pair, byte) in out.chunks_exact_mut(2).zip(self.0) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 15)];
        }
        out
    }
}

impl Serialize for Digest {
    /// 32 hexadecimal digits for people, sixteen bytes for machines.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { serializer.collect_str(self) } else { self.0.serialize(serializer) }
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            Self::parse(&text).ok_or_else(|| D::Error::custom("expected 32 lower-case hexadecimal digits"))
        } else {
            <[u8; 16]>::deserialize(deserializer).map(Self)
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}
