//! Content that was hashed already: tools give the same answer again and again, and a digest is the dearest part of a decision.

use hashbrown::HashMap;

use crate::{
    digest::Digest,
    transcript::{PartRef, Transcript},
};

/// Digests of entries of one record as it stands: of content that is one text found again by content, of others by entry.
///
/// A decision's own digest is no source: the record may have been cut since it was made, and what the digest is of may be
/// gone. A key is a sample of the content and only says where to look: what is found is compared as a whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Hashed {
    by_sample: HashMap<u64, (u32, Digest)>,
    by_entry: HashMap<u32, Digest>,
}

impl Hashed {
    /// The digest of content equal to that of `entry`.
    pub(super) fn find(&self, transcript: &dyn Transcript, entry: usize) -> Option<Digest> {
        let Some(key) = sample(transcript, entry) else {
            return self.by_entry.get(&u32::try_from(entry).ok()?).copied();
        };
        let &(other, digest) = self.by_sample.get(&key)?;
        let same = other as usize == entry || text(transcript, entry) == text(transcript, other as usize);
        same.then_some(digest)
    }

    /// Remembers the digest of an entry's content as it stands. The first of a sample stays.
    pub(super) fn took(&mut self, transcript: &dyn Transcript, entry: usize, digest: Digest) {
        let Ok(at) = u32::try_from(entry) else { return };
        match sample(transcript, entry) {
            Some(key) => {
                self.by_sample.entry(key).or_insert((at, digest));
            }
            None => {
                self.by_entry.insert(at, digest);
            }
        }
    }
}

/// The content of an entry that is one text; others are rare.
fn text(transcript: &dyn Transcript, entry: usize) -> Option<&str> {
    match transcript.entry(entry).parts {
        1 => match transcript.part(entry, 0) {
            PartRef::Text(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// Length, beginning, middle and end. Samples that meet cost a hash, never a wrong digest.
fn sample(transcript: &dyn Transcript, entry: usize) -> Option<u64> {
    const TAKEN: usize = 32;
    let bytes = text(transcript, entry)?.as_bytes();
    let middle = bytes.len() / 2;
    let stretches = [
        &bytes[..bytes.len().min(TAKEN)],
        &bytes[middle..bytes.len().min(middle + TAKEN)],
        &bytes[bytes.len().saturating_sub(TAKEN)..],
    ];
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    Some(stretches.into_iter().flatten().fold(bytes.len() as u64 ^ 0xcbf2_9ce4_8422_2325, mix))
}

#[cfg(test)]
mod tests {
    use alloc::{string::String, vec};

    use super::*;
    use crate::transcript::{Entry, OwnedTranscript};

    #[test]
    fn only_equal_content_is_found_whatever_its_sample() {
        let long = |at: usize| {
            let mut text = String::from_utf8(vec![b'x'; 500]).unwrap();
            text.replace_range(at..=at, "y");
            text
        };
        // The second differs from the first where no sample is taken.
        let all = [long(100), long(101), long(100)].map(|text| Entry::tool_result("c", text));
        let record = OwnedTranscript::from(all.to_vec());
        let mut hashed = Hashed::default();
        hashed.took(&record, 0, Digest::of_entry(&record, 0));
        assert_eq!(sample(&record, 0), sample(&record, 1));
        assert_eq!(hashed.find(&record, 1), None);
        assert_eq!(hashed.find(&record, 2), Some(Digest::of_entry(&record, 2)));
    }
}
