//! From a reference to where its content lies, by record and state alone.

use foreshorten_core::digest::Digest;
use foreshorten_core::marker::trimmed;
use foreshorten_core::recall::{self, Found, RecallError};
use foreshorten_core::transcript::{Columns, EntryKind, NONE, PartRef, RECALL_TOOL, Transcript as _, text_of};
use foreshorten_core::{CompactionState, Compactor, Policy};

use super::words;
use crate::record::Record;
use crate::tool::ToolCall;

/// Where content lies.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// An entry, of which the whole content has this digest.
    Entry {
        entry: usize,
        digest: Digest,
        /// The record holds exactly that.
        exact: bool,
        /// A decision or a trimmed output names the digest: a store may have it.
        stored: bool,
    },
    /// The text of what a note covers.
    Note(String),
    /// Content that the record does not hold.
    Content(Digest),
    /// Several: lines that tell them apart, and how many more there are.
    Ambiguous(Vec<String>, usize),
    /// Nothing.
    Unknown,
}

/// A record with the decisions about it.
pub(super) struct Session<'a> {
    record: &'a Record,
    compactor: Compactor,
}

/// Most results that an ambiguous id lists.
const LISTED: usize = 20;
/// Most characters of a call that are shown beside a result.
const SHOWN: usize = 60;

impl<'a> Session<'a> {
    /// The session in which a call was made. Reads all of the record; a state that cannot be read counts as none.
    pub(super) fn of(call: &ToolCall<'a>) -> Self {
        let policy = Policy::default();
        let mut compactor = match CompactionState::decode(call.state) {
            Ok(state) => Compactor::resume(policy, state),
            Err(_) => Compactor::new(policy),
        };
        compactor.sync(call.record);
        Self { record: call.record, compactor }
    }

    /// Looks a reference up. `widened`: a digest that nothing in the session names is content all the same.
    pub(super) fn find(&self, reference: &str, widened: bool) -> Target {
        let (columns, ledger) = (self.compactor.columns(), self.compactor.ledger());
        match recall::resolve(reference, self.record, columns, ledger) {
            Ok(Found::Entry { entry, digest, exact }) => self.entry(entry, digest, exact),
            Ok(Found::Note { entries }) => Target::Note(self.note(&entries)),
            Err(RecallError::Ambiguous(entries)) => self.ambiguous(&entries),
            Ok(_) | Err(_) => match Digest::parse(reference) {
                Some(digest) => self.trimmed_entry(digest).unwrap_or(match widened {
                    true => Target::Content(digest),
                    false => Target::Unknown,
                }),
                None => Target::Unknown,
            },
        }
    }

    /// Where a text occurs in everything that was removed: at most `max` lines, and whether there is more.
    pub(super) fn search(&self, needle: &str, max: usize) -> (Vec<String>, bool) {
        let (columns, ledger) = (self.compactor.columns(), self.compactor.ledger());
        let mut hits = recall::search(needle, true, max + 1, self.record, columns, ledger);
        let more = hits.len() > max;
        hits.truncate(max);
        let mut last: Option<(usize, Digest)> = None;
        let line = |hit: recall::Hit| {
            let digest = match last {
                Some((entry, digest)) if entry == hit.entry => digest,
                _ => Digest::of_entry(self.record, hit.entry),
            };
            last = Some((hit.entry, digest));
            format!("\"{digest}\" offset {}: {}", hit.offset, hit.excerpt)
        };
        (hits.into_iter().map(line).collect(), more)
    }

    /// An entry; what a trimmed output was comes before what is left of it.
    fn entry(&self, entry: usize, digest: Digest, exact: bool) -> Target {
        let decided = self.compactor.ledger().state().record(entry).is_some();
        match trimmed(&text_of(self.record, entry)) {
            Some(trimmed) if exact => Target::Entry { entry, digest: trimmed.digest, exact: false, stored: true },
            _ => Target::Entry { entry, digest, exact, stored: decided || !exact },
        }
    }

    /// The entry that says it was trimmed from content of this digest.
    fn trimmed_entry(&self, digest: Digest) -> Option<Target> {
        let entry = (0..self.record.len()).find(|&entry| {
            self.record.entry(entry).kind == EntryKind::ToolResult
                && trimmed(&text_of(self.record, entry)).is_some_and(|trimmed| trimmed.digest == digest)
        })?;
        Some(Target::Entry { entry, digest, exact: false, stored: true })
    }

    fn ambiguous(&self, entries: &[usize]) -> Target {
        let mut digests: Vec<(usize, Digest)> = Vec::new();
        for &entry in entries {
            let digest = Digest::of_entry(self.record, entry);
            if !digests.iter().any(|known| known.1 == digest) {
                digests.push((entry, digest));
            }
        }
        match digests.as_slice() {
            // Several that say the same are one.
            &[(entry, digest)] => self.entry(entry, digest, true),
            [] => Target::Unknown,
            several => {
                let left_out = several.len().saturating_sub(LISTED);
                let line = |&(entry, digest): &(usize, Digest)| {
                    let bytes = words::number(text_of(self.record, entry).len());
                    format!("\"{digest}\": {bytes} bytes, {}", self.call_of(entry))
                };
                Target::Ambiguous(several[left_out..].iter().map(line).collect(), left_out)
            }
        }
    }

    /// The call that a result answers, in short.
    fn call_of(&self, entry: usize) -> String {
        let columns: &Columns = self.compactor.columns();
        let call = columns.pair(entry);
        if call == NONE {
            return "of no known call".into();
        }
        let arguments = text_of(self.record, call as usize);
        let shown: String = arguments.chars().take(SHOWN).collect();
        let more = if shown.len() < arguments.len() { "…" } else { "" };
        format!("answer to {} {shown}{more}", self.record.entry(call as usize).name)
    }

    /// The text of entries, each under a line that says what it is.
    fn note(&self, entries: &[usize]) -> String {
        let mut out = String::new();
        for &entry in entries {
            let facts = self.record.entry(entry);
            if !out.is_empty() {
                out.push_str("\n\n");
            }
            out.push('[');
            out.push_str(facts.kind.as_str());
            for word in [facts.name, facts.call_id] {
                if !word.is_empty() {
                    out.push(' ');
                    out.push_str(word);
                }
            }
            out.push_str(if facts.is_error { ", failed]\n" } else { "]\n" });
            out.push_str(&text_of(self.record, entry));
            let media = (0..facts.parts as usize)
                .filter(|&part| matches!(self.record.part(entry, part), PartRef::Image(_) | PartRef::File(_)));
            let media = media.count();
            if media > 0 {
                let digest = Digest::of_entry(self.record, entry);
                out.push_str(&format!("\n[{media} images or files: {RECALL_TOOL}(\"{digest}\")]"));
            }
        }
        out
    }
}
