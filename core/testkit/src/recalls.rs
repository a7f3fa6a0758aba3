//! From every marker of a view back to the original, and from anything else to nothing.

use foreshorten_core::{
    Policy, PolicyConfig,
    digest::Digest,
    marker::MarkerStyle,
    recall::{self, Found, RecallError},
    transcript::{OwnedTranscript, RECALL_TOOL, Transcript as _},
    view::Piece,
};

use crate::{Answers, Script, Session, cases, entries};

/// The reference that a marker's text names: what follows the first (in a note: the last) call of the recall tool.
fn named(text: &str, last: bool) -> Option<String> {
    // Arguments are JSON, in which the quotes are escaped.
    let text = text.replace("\\\"", "\"");
    let call = format!("{RECALL_TOOL}(\"");
    let at = |start: &str| if last { text.rfind(start) } else { text.find(start) };
    let (at, start) = [call.as_str(), "Reference: \""]
        .into_iter()
        .filter_map(|start| Some((at(start)?, start)))
        .min_by_key(|&(at, _)| if last { usize::MAX - at } else { at })?;
    let rest = &text[at + start.len()..];
    Some(rest[..rest.find('"')?].into())
}

/// A session whose view is read as a model reads it: every reference in it brings back the exact original. Then any
/// reference at all: a true answer or none.
///
/// # Panics
/// When I10 does not hold.
pub fn recall_refs(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let length = script.below(48);
    let asked = String::from_utf8_lossy(script.take(length)).into_owned();
    let flags = script.byte();
    let style = MarkerStyle { recall_tool: flags & 1 == 0 };
    let policy: Policy = cases::built(PolicyConfig { style, may_condense: true, ..PolicyConfig::default() });
    let answers = if flags & 2 > 0 { Answers::Extractive } else { Answers::NoSummarizer };
    let mut session = Session::new(&policy, OwnedTranscript::default(), [600, 2_000, 6_000][script.below(3)], answers);
    session.stride = usize::MAX;
    let mut turn = 0;
    while !script.is_done() && turn < 30 {
        let mut new = Vec::new();
        entries(&mut script, turn, &mut new);
        session.turn.overflow = script.one_in(11);
        session.step(new);
        turn += 1;
    }
    let record = &session.transcript;
    let mut references = Vec::new();
    for piece in session.compactor.view().pieces() {
        match piece {
            Piece::Text { entry, text }
            | Piece::Elided { entry, text, .. }
            | Piece::Arguments { entry, json: text } => {
                let reference = named(text, false).unwrap_or_else(|| panic!("I10: no way back from {text:?}"));
                if !session.compactor.columns().is_recall(entry) {
                    leads_to(&session, &reference, entry);
                }
                references.push(reference);
            }
            Piece::Note { text } => {
                let reference = named(text, true).unwrap_or_else(|| panic!("I10: no way back from {text:?}"));
                let found = session.recall(&reference);
                let Ok(Found::Note { entries }) = found else { panic!("I10: {reference} brings back {found:?}") };
                assert!(!entries.is_empty() && entries.iter().all(|&entry| entry < record.len()));
                references.push(reference);
            }
            _ => {}
        }
    }
    // What is covered can be recalled through its note, every entry of it.
    for entry in 0..record.len() {
        if session.level(entry) == foreshorten_core::plan::Level::Covered {
            let covered = session.state().notes().iter().any(|note| {
                matches!(session.recall(&note.reference()), Ok(Found::Note { entries }) if entries.contains(&entry))
            });
            assert!(covered, "I10: entry {entry} is covered and no note brings it back: {:?}", session.state().notes());
        }
    }
    anything(&session, &asked);
    for reference in references {
        anything(&session, &reference);
        anything(&session, &reference.to_uppercase());
        anything(&session, &format!("{reference} "));
        anything(&session, foreshorten_core::text::head(&reference, reference.len().saturating_sub(1)));
        anything(&session, &format!("note:{reference}"));
    }
}

/// A marker in place of `entry` leads to content equal to it, byte for byte.
fn leads_to(session: &Session<'_>, reference: &str, entry: usize) {
    let record = &session.transcript;
    match session.recall(reference) {
        Ok(Found::Entry { entry: found, digest, exact }) => {
            assert!(exact && digest == Digest::of_entry(record, entry), "I10: {reference} is not exact");
            let parts = record.entry(entry).parts as usize;
            assert_eq!(record.entry(found).parts as usize, parts, "I10: {reference} has other parts");
            for part in 0..parts {
                assert_eq!(
                    recall::part_bytes(record, found, part),
                    recall::part_bytes(record, entry, part),
                    "I10: {reference} brings back something else"
                );
            }
        }
        other => panic!("I10: {reference} in place of {entry} brings back {other:?}"),
    }
}

/// Any reference: what is found is there, and `exact` is the truth.
fn anything(session: &Session<'_>, reference: &str) {
    let record = &session.transcript;
    match session.recall(reference) {
        Ok(Found::Entry { entry, digest, exact }) => {
            assert!(entry < record.len());
            assert_eq!(exact, Digest::of_entry(record, entry) == digest, "I10: exact or not?");
            for part in 0..=record.entry(entry).parts as usize {
                let _ = recall::part_bytes(record, entry, part);
            }
        }
        Ok(Found::Note { entries }) => assert!(entries.iter().all(|&entry| entry < record.len())),
        Ok(other) => panic!("a thing this kit does not know: {other:?}"),
        Err(RecallError::Ambiguous(entries)) => assert!(reference.is_empty() || entries.len() > 1),
        Err(_) => {}
    }
    assert!(recall::part_bytes(record, usize::MAX, 0).is_none());
}
