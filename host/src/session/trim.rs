//! Stored tool outputs of older runs, shortened where they lie.

use std::sync::Arc;

use foreshorten_core::digest::Digest;
use foreshorten_core::marker::{MarkerStyle, trim_marker, trimmed};
use foreshorten_core::text::{has_chars, head_chars};
use foreshorten_core::transcript::{Entry, EntryKind, OwnedTranscript, Part, text_of};

use super::{CommitError, RewriteSessions, Segment, Version};
use crate::record::Message;
use crate::stores::{ResultStore, StoreError, Stored};

/// How much [`trim_tool_results`] leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Characters of each output that stay. Default 400, as in the seeds: what a preview shows.
    pub keep_chars: usize,
    /// Newest runs that stay whole. Default 1, as in the seeds: the run that is likely to go on.
    pub keep_runs: usize,
    /// How the marker after the rest brings the model back.
    pub style: MarkerStyle,
}

impl Default for Trim {
    fn default() -> Self {
        Self { keep_chars: 400, keep_runs: 1, style: MarkerStyle::default() }
    }
}

/// What [`trim_tool_results`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrimReport {
    /// The version of the session afterwards.
    pub version: Version,
    /// Outputs trimmed.
    pub trimmed: usize,
    /// Those among them that the store has whole.
    pub archived: usize,
    /// Bytes of content that went.
    pub bytes_freed: u64,
    /// Outputs that would have been trimmed, but stand in a message that can only be kept as it came: it holds
    /// something signed, or that only the provider can read.
    pub skipped: usize,
}

/// Shortens the stored tool outputs of older runs to their beginning and a marker. Offline, between runs: this, unlike
/// all else, changes the record. Nothing of it is done unless somebody asks.
///
/// With a store the whole outputs are kept there first, so that recall brings them back as before; when it does not take
/// one, nothing is trimmed. Without a store the rest is gone for good, and the marker says so, with the digest under
/// which some store may have it. Decisions of the session survive: the identity of a result leaves its body out. Images
/// and files go with the text, and count as bytes. Done again, nothing more happens.
///
/// A message that was kept as it came becomes a neutral one, which every protocol is written from; members of it that
/// are not known here go.
///
/// # Errors
/// When the session cannot be read or written. When somebody commits meanwhile it is begun anew, five times at most,
/// then it is a [`CommitError::Conflict`]. There is no half of it.
///
/// ```
/// use std::sync::Arc;
/// use foreshorten::record::Message;
/// use foreshorten::session::{Commit, MemorySessions, SessionStore, Trim, trim_tool_results};
/// use foreshorten::stores::MemoryStore;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let sessions = MemorySessions::new();
/// let output = [Arc::new(Message::result("c1", "x".repeat(10_000)))];
/// sessions.commit("s", Commit::new(0, "run1").appending(&output).ending()).await?;
/// sessions.commit("s", Commit::new(1, "run2").appending(&[Arc::new(Message::user("go on"))])).await?;
/// let store = MemoryStore::default();
/// let report = trim_tool_results(&sessions, "s", Trim::default(), Some(&store)).await?;
/// assert_eq!((report.trimmed, report.archived), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn trim_tool_results(
    sessions: &dyn RewriteSessions,
    session: &str,
    trim: Trim,
    store: Option<&dyn ResultStore>,
) -> Result<TrimReport, CommitError> {
    let mut tries = 5;
    loop {
        let Some(stored) = sessions.load(session).await? else {
            return Err(StoreError::new(format!("there is no session `{session}`")).into());
        };
        let mut report = TrimReport { version: stored.version, ..TrimReport::default() };
        let mut segments = stored.segments;
        let old = older(&segments, trim.keep_runs);
        for message in segments[..old].iter_mut().flat_map(|segment| &mut segment.messages) {
            if let Some(shorter) = shorten(message, trim, store, &mut report).await? {
                *message = Arc::new(shorter);
            }
        }
        if report.trimmed == 0 {
            return Ok(report);
        }
        match sessions.rewrite(session, stored.version, &segments).await {
            Ok(version) => return Ok(TrimReport { version, ..report }),
            Err(CommitError::Conflict(_)) if tries > 1 => tries -= 1,
            Err(error) => return Err(error),
        }
    }
}

/// Number of segments that are older than the newest `keep` runs.
fn older(segments: &[Segment], keep: usize) -> usize {
    let mut runs: Vec<&str> = Vec::new();
    for (at, segment) in segments.iter().enumerate().rev() {
        if !runs.contains(&segment.run.as_str()) {
            if runs.len() == keep {
                return at + 1;
            }
            runs.push(&segment.run);
        }
    }
    0
}

/// The message with its outputs trimmed; `None` when it stays as it is.
async fn shorten(
    message: &Message,
    trim: Trim,
    store: Option<&dyn ResultStore>,
    report: &mut TrimReport,
) -> Result<Option<Message>, StoreError> {
    let long = |entry: &Entry| entry.kind == EntryKind::ToolResult && plan(entry, trim, true).is_some();
    let count = message.entries().iter().filter(|entry| long(entry)).count();
    if count == 0 {
        return Ok(None);
    }
    if message.raw_json().is_some() && message.entries().iter().any(only_as_it_came) {
        report.skipped += count;
        return Ok(None);
    }
    let mut entries = message.entries().to_vec();
    let mut changed = false;
    for entry in entries.iter_mut().filter(|entry| long(entry)) {
        let whole = OwnedTranscript::from(vec![entry.clone()]);
        let digest = Digest::of_entry(&whole, 0);
        if let Some(store) = store {
            store.put(&digest, &Stored::of(&whole, 0)).await?;
        }
        let Some(cut) = plan(entry, trim, store.is_some()) else { continue };
        report.trimmed += 1;
        report.archived += usize::from(store.is_some());
        report.bytes_freed += cut.freed;
        entry.parts = vec![Part::Text(cut.text)];
        changed = true;
    }
    Ok(changed.then(|| Message::of(entries)))
}

/// What is not a result, and cannot be written anew from what was read of it.
fn only_as_it_came(entry: &Entry) -> bool {
    entry.kind != EntryKind::ToolResult
        && (entry.sealed || entry.parts.iter().any(|part| matches!(part, Part::Opaque(_))))
}

struct Cut {
    text: String,
    freed: u64,
}

/// The output as it will stand; `None` when that would not be shorter, or it is trimmed already.
fn plan(entry: &Entry, trim: Trim, stored: bool) -> Option<Cut> {
    let media = entry.parts.iter().any(|part| !matches!(part, Part::Text(_)));
    let whole = OwnedTranscript::from(vec![entry.clone()]);
    let text = text_of(&whole, 0);
    if !media && (!has_chars(&text, trim.keep_chars.saturating_add(1)) || trimmed(&text).is_some()) {
        return None;
    }
    let bytes = Stored::of(&whole, 0).content().len() as u64;
    let head = &text[..head_chars(&text, trim.keep_chars)];
    let mut kept = head.to_owned();
    if !kept.is_empty() {
        kept.push('\n');
    }
    kept.push_str(&trim_marker(trim.style, &Digest::of_entry(&whole, 0), bytes, media, stored));
    let freed = bytes.checked_sub(kept.len() as u64).filter(|&freed| freed > 0)?;
    Some(Cut { text: kept, freed })
}
