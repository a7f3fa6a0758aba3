//! Identity of entries and of prefixes.

use sha2::{Digest as _, Sha256};

use super::{EntryKind, PartRef, Transcript};

/// What an entry is, independent of where it stands: kind, tool name, call id, arguments and text.
///
/// The body of a tool result is left out, so that trimming stored outputs does not change who they are;
/// a result's identity is that of the call it answers. Cache marks and unknown fields do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Identity(pub u64);

/// Fingerprint of everything up to and including an entry: equal chains mean equal prefixes.
///
/// System entries are left out of the chain: agents rewrite their system prompt (dates, version lines)
/// without meaning to start another conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Chain(pub u64);

impl Chain {
    /// The chain after one more entry.
    #[must_use]
    pub fn then(self, identity: Identity) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0.to_le_bytes());
        hash.update(identity.0.to_le_bytes());
        Self(first_eight(hash))
    }
}

/// The identity of the entry at `index`; `call` is the identity of the call a result answers.
#[must_use]
pub fn identity_of(transcript: &dyn Transcript, index: usize, call: Option<Identity>) -> Identity {
    let entry = transcript.entry(index);
    let mut hash = Sha256::new();
    hash.update([entry.kind as u8]);
    let mut field = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    field(entry.call_id.as_bytes());
    field(entry.name.as_bytes());
    if entry.kind == EntryKind::ToolResult {
        field(&call.unwrap_or_default().0.to_le_bytes());
    } else {
        for part in 0..entry.parts as usize {
            match transcript.part(index, part) {
                PartRef::Text(text) => field(text.as_bytes()),
                PartRef::Image(media) | PartRef::File(media) => {
                    field(media.media_type.as_bytes());
                    field(media.data);
                }
                PartRef::Opaque(data) => field(data),
            }
        }
    }
    Identity(first_eight(hash))
}

fn first_eight(hash: Sha256) -> u64 {
    let full: [u8; 32] = hash.finalize().into();
    let mut first = [0; 8];
    first.copy_from_slice(&full[..8]);
    u64::from_le_bytes(first)
}
