//! What holds for any bytes in any format: used by property tests and by the fuzz target of the same name.

use foreshorten::formats::{Format, ToolsEdit, detect, parse_body, read_session, recall_tool_schema};
use foreshorten_core::transcript::{Columns, Transcript};
use foreshorten_core::view::Piece;

/// Asks a transcript everything.
pub(crate) fn walk(transcript: &dyn Transcript) {
    let mut columns = Columns::new();
    for index in 0..transcript.len() {
        columns.push(transcript, 1);
        for part in 0..transcript.entry(index).parts as usize {
            let _ = transcript.part(index, part);
        }
    }
}

/// Reads `bytes` in every format; what is accepted comes out as it went in.
///
/// # Panics
/// When reading does, when an entry is not JSON, or when a body without decisions is not the body that came.
pub(crate) fn try_all(bytes: &[u8]) {
    let _ = detect(bytes);
    for format in std::iter::once(None).chain(Format::ALL.into_iter().map(Some)) {
        for conversation in read_session(bytes.to_vec(), format).into_iter().flatten() {
            walk(&conversation.transcript);
            let entries: Vec<_> = (0..conversation.transcript.len()).collect();
            for line in conversation.transcript.entries_as_json(&entries) {
                assert!(serde_json::from_str::<serde::de::IgnoredAny>(&line).is_ok());
            }
        }
        let Ok(body) = parse_body(bytes.to_vec(), format) else { continue };
        walk(body.transcript());
        let pieces: Vec<_> = (0..body.transcript().len()).map(|entry| Piece::Entry { entry }).collect();
        assert_eq!(body.write(&pieces, ToolsEdit::Keep).bytes, bytes);
        assert_eq!(body.bytes(), bytes, "I1: the record is what it was");
    }
}

/// Something a planner, or a hostile one, could ask of an entry.
#[must_use]
pub(crate) fn asked(entry: usize, choice: u8) -> Option<Piece<'static>> {
    Some(match choice {
        0..=3 => Piece::Entry { entry },
        4 => Piece::Text { entry, text: "[cleared]\n\"x\"" },
        5 => Piece::Elided { entry, parts: &[0, 1, 7], text: "[image]" },
        6 => Piece::Arguments { entry, json: "{\"clipped\":true}" },
        7 => Piece::Note { text: "a note" },
        8 => Piece::StandIn { call: entry, text: "no result" },
        _ => return None,
    })
}

/// Bytes in every format; and of what is accepted as a body, any view at all is JSON.
///
/// # Panics
/// When one of these does not hold.
#[allow(dead_code, reason = "property tests bring their own views")]
pub(crate) fn formats(bytes: &[u8]) {
    try_all(bytes);
    for format in Format::ALL {
        let Ok(body) = parse_body(bytes.to_vec(), Some(format)) else { continue };
        let len = body.transcript().len();
        let seed = bytes.iter().fold(7usize, |sum, &byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
        let pieces: Vec<_> = (0..len).filter_map(|entry| asked(entry, ((seed >> (entry % 40)) % 11) as u8)).collect();
        let schema = recall_tool_schema(format, "recall_tool_result", "d");
        let written = body.write(&pieces, ToolsEdit::Append { name: "recall_tool_result", schema: &schema });
        // What came with a byte order mark goes out with it; serde_json takes none.
        let mark = "\u{FEFF}".as_bytes();
        assert_eq!(written.bytes.starts_with(mark), bytes.starts_with(mark));
        let view = written.bytes.strip_prefix(mark).unwrap_or(&written.bytes);
        assert!(serde_json::from_slice::<serde::de::IgnoredAny>(view).is_ok(), "{format}: a view is no JSON");
        assert_eq!(written.message_of_piece.len(), pieces.len());
        for message in written.message_of_piece.iter().flatten() {
            assert!(*message < written.message_starts.len(), "{format}: a piece in a message that is not there");
        }
        assert!(written.message_starts.iter().all(|&start| start < written.bytes.len()));
        assert_eq!(body.bytes(), bytes, "I1: the record is what it was");
    }
}
