//! Whether a view is one that a provider accepts.

use foreshorten_core::{
    transcript::{Columns, EntryKind, Transcript},
    view::Piece,
};

/// Checks I5 on the pieces of a view.
///
/// # Errors
/// A sentence about the first thing that is wrong.
pub fn check_legal<'v>(
    pieces: impl Iterator<Item = Piece<'v>>,
    transcript: &dyn Transcript,
    columns: &Columns,
) -> Result<(), String> {
    // Calls of the batch just shown that still need a result.
    let mut open: Vec<usize> = Vec::new();
    let mut shown: Vec<usize> = Vec::new();
    let mut in_message: Option<usize> = None;
    for piece in pieces {
        let (entry, text) = match piece {
            Piece::Entry { entry } => (Some(entry), None),
            Piece::Text { entry, text } | Piece::Elided { entry, text, .. } => (Some(entry), Some(text)),
            Piece::Arguments { entry, json } => (Some(entry), Some(json)),
            Piece::Note { text } => (None, Some(text)),
            Piece::StandIn { call, text } => {
                let Some(at) = open.iter().position(|&waiting| waiting == call) else {
                    return Err(format!("a stand-in for call {call}, which is not waiting"));
                };
                open.remove(at);
                if text.is_empty() {
                    return Err("an empty stand-in".into());
                }
                in_message = None;
                continue;
            }
        };
        if text.is_some_and(str::is_empty) {
            return Err(format!("an empty text in place of {entry:?}"));
        }
        let Some(entry) = entry else {
            if !open.is_empty() {
                return Err("a note between a call and its result".into());
            }
            in_message = None;
            continue;
        };
        if shown.contains(&entry) {
            return Err(format!("entry {entry} is shown twice"));
        }
        shown.push(entry);
        match transcript.entry(entry).kind {
            EntryKind::ToolResult => {
                let call = columns.pair(entry) as usize;
                let Some(at) = open.iter().position(|&waiting| waiting == call) else {
                    return Err(format!("result {entry} without its call before it"));
                };
                open.remove(at);
                in_message = None;
            }
            kind if kind.is_assistant_side() => {
                let group = columns.group(entry);
                if in_message != Some(group) {
                    if !open.is_empty() {
                        return Err(format!("assistant entry {entry} while results are missing"));
                    }
                    in_message = Some(group);
                }
                if kind == EntryKind::ToolCall {
                    open.push(entry);
                }
            }
            _ => {
                if !open.is_empty() {
                    return Err(format!("entry {entry} between calls and results"));
                }
                in_message = None;
            }
        }
    }
    // Only calls of the newest group may still wait at the end.
    if let Some(call) = open.iter().find(|&&call| !columns.is_pending(call)) {
        return Err(format!("call {call} has no result and is not pending"));
    }
    // An assistant message is whole or gone (reasoning may be left out by the stage for that).
    for &entry in &shown {
        for member in columns.members(columns.group(entry)) {
            let optional = columns.kind(member) == EntryKind::Reasoning || columns.is_orphan(member);
            if !optional && !shown.contains(&member) {
                return Err(format!("entry {entry} is shown without {member} of its group"));
            }
        }
    }
    Ok(())
}
