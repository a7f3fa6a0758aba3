//! From a reference back to the exact original.
//!
//! A reference is what stands in a marker, preview or note: a call id, the digest of some content (32
//! hexadecimal digits) or `note:` and sixteen. It is looked up among the decisions first, so that an id a
//! server used twice brings back what its marker stood for; then in the record.

use alloc::{string::String, vec::Vec};
use core::fmt;

use crate::{
    digest::Digest,
    plan::Level,
    state::Ledger,
    text,
    transcript::{Columns, EntryKind, PartRef, Transcript, text_of},
};

/// What a reference stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found {
    /// The content of one entry.
    Entry {
        /// The entry.
        entry: usize,
        /// Digest of what was replaced: the key under which a store may hold it.
        digest: Digest,
        /// Whether the record still holds exactly that. If not, only a store can give it back.
        exact: bool,
    },
    /// The entries a note covers, in order.
    Note {
        /// The entries.
        entries: Vec<usize>,
    },
}

/// Why a reference brings nothing back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecallError {
    /// Nothing of that name is known.
    NotFound,
    /// Several entries go by that id and no marker says which; their digests tell them apart.
    Ambiguous(Vec<usize>),
}

impl fmt::Display for RecallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("nothing is known under this reference"),
            Self::Ambiguous(entries) => write!(f, "{} results go by this id", entries.len()),
        }
    }
}

impl core::error::Error for RecallError {}

/// Looks a reference up.
///
/// # Errors
/// [`RecallError::NotFound`] and [`RecallError::Ambiguous`]; never a guess.
pub fn resolve(
    reference: &str,
    transcript: &dyn Transcript,
    columns: &Columns,
    ledger: &Ledger,
) -> Result<Found, RecallError> {
    let state = ledger.state();
    if reference.starts_with("note:") {
        // Stretches that are equal but for what their tools answered go by one reference: all of them come back.
        let mut entries: Vec<usize> = Vec::new();
        for note in state.notes().iter().filter(|note| note.reference() == reference) {
            let groups = columns.group_from(note.from as usize)..columns.group_from(note.to as usize);
            entries.extend(groups.flat_map(|group| columns.members(group)));
        }
        if entries.is_empty() {
            return Err(RecallError::NotFound);
        }
        return Ok(Found::Note { entries });
    }
    let entry = |entry: usize, digest: Digest| Found::Entry {
        entry,
        digest,
        exact: Digest::of_entry(transcript, entry) == digest,
    };
    if let Some(wanted) = Digest::parse(reference) {
        if let Some(record) = state.records().iter().find(|record| record.action.digest() == Some(wanted)) {
            return Ok(entry(record.place.index as usize, wanted));
        }
        // Equal content is equal, whichever entry holds it.
        let holder = (0..columns.len())
            .find(|&index| columns.kind(index) != EntryKind::System && Digest::of_entry(transcript, index) == wanted);
        return holder.map(|index| entry(index, wanted)).ok_or(RecallError::NotFound);
    }
    let named = state.records().iter().find(|record| {
        record.reference(transcript, columns).as_deref() == Some(reference)
            && transcript.entry(record.place.index as usize).call_id == reference
    });
    if let Some(record) = named
        && let Some(digest) = record.action.digest()
    {
        return Ok(entry(record.place.index as usize, digest));
    }
    let mut answers = (0..columns.len())
        .filter(|&index| columns.kind(index) == EntryKind::ToolResult && transcript.entry(index).call_id == reference);
    let first = answers.next().ok_or(RecallError::NotFound)?;
    let rest: Vec<usize> = answers.collect();
    if reference.is_empty() || !rest.is_empty() {
        let mut all = alloc::vec![first];
        all.extend(rest);
        return Err(RecallError::Ambiguous(all));
    }
    Ok(entry(first, Digest::of_entry(transcript, first)))
}

/// A stretch of a text, cut on character boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<'a> {
    /// The text.
    pub text: &'a str,
    /// Where it begins, in bytes: the offset asked for, moved back to a character boundary.
    pub offset: usize,
    /// Where the next page begins; `None` at the end.
    pub next: Option<usize>,
    /// Bytes in all.
    pub total: usize,
}

/// The page of `text` from byte `offset` of at most `limit` bytes, but of one character at least.
///
/// ```
/// use foreshorten_core::recall::page;
/// let first = page("añb", 0, 2);
/// assert_eq!((first.text, first.next), ("a", Some(1)));
/// assert_eq!(page("añb", 1, 1).text, "ñ");
/// ```
#[must_use]
pub fn page(text: &str, offset: usize, limit: usize) -> Page<'_> {
    let start = text::floor_boundary(text, offset);
    let mut end = text::floor_boundary(text, start.saturating_add(limit));
    if end <= start {
        end = text[start..].chars().next().map_or(start, |c| start + c.len_utf8());
    }
    Page { text: &text[start..end], offset: start, next: (end < text.len()).then_some(end), total: text.len() }
}

/// A place where a text occurs in what a view no longer shows verbatim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The entry.
    pub entry: usize,
    /// Byte at which the text occurs in the entry's text.
    pub offset: usize,
    /// The text around it, on one line.
    pub excerpt: String,
}

/// Bytes shown on either side of a hit.
const AROUND: usize = 60;

/// Lists where `needle` occurs in everything that is reduced or covered, at most `max` places, oldest first.
#[must_use]
pub fn search(
    needle: &str,
    ignore_case: bool,
    max: usize,
    transcript: &dyn Transcript,
    columns: &Columns,
    ledger: &Ledger,
) -> Vec<Hit> {
    let mut hits = Vec::new();
    if needle.is_empty() {
        return hits;
    }
    for entry in 0..columns.len() {
        if ledger.level(columns, entry) == Level::Verbatim {
            continue;
        }
        let places = occurrences(&text_of(transcript, entry), needle, ignore_case, max - hits.len());
        hits.extend(places.into_iter().map(|(offset, excerpt)| Hit { entry, offset, excerpt }));
        if hits.len() >= max {
            break;
        }
    }
    hits
}

/// Lists where `needle` occurs in `text`, at most `max` places: the byte, and the text around it on one line.
///
/// ```
/// use foreshorten_core::recall::occurrences;
/// assert_eq!(occurrences("one\ntwo", "TWO", true, 9), [(4, "one two".into())]);
/// ```
#[must_use]
pub fn occurrences(text: &str, needle: &str, ignore_case: bool, max: usize) -> Vec<(usize, String)> {
    let mut places = Vec::new();
    let mut from = 0;
    while places.len() < max
        && !needle.is_empty()
        && let Some((at, len)) = find(text, from, needle, ignore_case)
    {
        let start = text::floor_boundary(text, at.saturating_sub(AROUND));
        let end = text::floor_boundary(text, at + len + AROUND);
        places.push((at, text[start..end].split_whitespace().collect::<Vec<_>>().join(" ")));
        from = at + len.max(1);
    }
    places
}

/// First place at or after `from` where `needle` occurs, and how many bytes it takes there.
fn find(text: &str, from: usize, needle: &str, ignore_case: bool) -> Option<(usize, usize)> {
    if !ignore_case {
        return text.get(from..)?.find(needle).map(|at| (from + at, needle.len()));
    }
    let first = needle.chars().flat_map(char::to_lowercase).next()?;
    for (at, c) in text.get(from..)?.char_indices() {
        if c.to_lowercase().next() != Some(first) {
            continue;
        }
        let mut wanted = needle.chars().flat_map(char::to_lowercase).peekable();
        let mut len = 0;
        for c in text[from + at..].chars() {
            if wanted.peek().is_none() {
                break;
            }
            if !c.to_lowercase().all(|lower| wanted.next() == Some(lower)) {
                len = 0;
                break;
            }
            len += c.len_utf8();
        }
        if len > 0 && wanted.peek().is_none() {
            return Some((from + at, len));
        }
    }
    None
}

/// A media or opaque part of an entry, as recorded.
#[must_use]
pub fn part_bytes(transcript: &dyn Transcript, entry: usize, part: usize) -> Option<Vec<u8>> {
    if entry >= transcript.len() || part >= transcript.entry(entry).parts as usize {
        return None;
    }
    Some(match transcript.part(entry, part) {
        PartRef::Text(text) => text.as_bytes().to_vec(),
        PartRef::Image(media) | PartRef::File(media) => media.data.to_vec(),
        PartRef::Opaque(data) => data.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_cover_a_text_exactly() {
        let text = "héllo 漢字 🙂 end";
        for limit in 1..8 {
            let (mut at, mut whole) = (0, String::new());
            loop {
                let page = page(text, at, limit);
                whole.push_str(page.text);
                match page.next {
                    Some(next) => at = next,
                    None => break,
                }
            }
            assert_eq!(whole, text);
        }
    }

    #[test]
    fn search_ignores_case_beyond_ascii() {
        assert_eq!(find("Straße ÄRGER", 0, "ärger", true), Some((8, 6)));
        assert_eq!(find("abcABC", 1, "abc", true), Some((3, 3)));
        assert_eq!(find("abcABC", 1, "abc", false), None);
    }
}
