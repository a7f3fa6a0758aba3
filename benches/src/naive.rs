//! The policy one would write first: at every turn weigh all, plan over all, copy the view.

use foreshorten_core::{
    estimate::Weigher,
    marker::{ClearReason, MarkerStyle, clear_marker},
    transcript::{Entry, EntryKind, OwnedTranscript, Part, Transcript as _},
};

/// Makes the view of a turn from nothing: results older than the newest `keep` give way to a marker once the whole weighs
/// more than `trigger`, and every entry that stays is copied.
#[must_use]
pub fn view(record: &OwnedTranscript, weigher: &Weigher, trigger: u64, keep: usize) -> (u64, Vec<Entry>) {
    let weights: Vec<u32> = (0..record.len()).map(|entry| weigher.entry(record, entry)).collect();
    let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
    let is_result = |entry: &&Entry| entry.kind == EntryKind::ToolResult;
    let clear = match total > trigger {
        true => record.entries().iter().filter(is_result).count().saturating_sub(keep),
        false => 0,
    };
    let mut results = 0;
    let shown = |entry: &Entry| {
        if entry.kind != EntryKind::ToolResult {
            return entry.clone();
        }
        results += 1;
        if results > clear {
            return entry.clone();
        }
        let bytes =
            entry.parts.iter().map(|part| if let Part::Text(text) = part { text.len() as u64 } else { 0 }).sum();
        let marker =
            clear_marker(MarkerStyle::default(), &entry.call_id, entry.is_error, bytes, false, ClearReason::Space);
        Entry { parts: vec![Part::Text(marker)], ..entry.clone() }
    };
    (total, record.entries().iter().map(shown).collect())
}
