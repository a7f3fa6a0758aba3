//! What is written for one call is kept for the next: the same bytes as from nothing, for the price of what is new.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use foreshorten::drive::{SummarizerKind, settle};
use foreshorten::formats::{Format, read_session};
use foreshorten::record::{Message, Record};
use foreshorten::view::{View, ViewPiece};
use foreshorten_core::transcript::{Entry, EntryKind, Transcript as _};
use foreshorten_core::view::Piece;
use foreshorten_core::{Compactor, Policy, PolicyConfig, Turn};
use proptest::prelude::*;

const PROTOCOLS: [Format; 3] = [Format::OpenAiChat, Format::OpenAiResponses, Format::AnthropicMessages];

fn owned(piece: Piece<'_>) -> ViewPiece {
    match piece {
        Piece::Entry { entry } => ViewPiece::Entry(entry),
        Piece::Text { entry, text } => ViewPiece::Text(entry, text.into()),
        Piece::Elided { entry, parts, text } => ViewPiece::Elided(entry, parts.into(), text.into()),
        Piece::Arguments { entry, json } => ViewPiece::Arguments(entry, json.into()),
        Piece::Note { text } => ViewPiece::Note(text.into()),
        Piece::StandIn { call, text } => ViewPiece::StandIn(call, text.into()),
    }
}

/// Writes a view and compares it with what is written from nothing; answers (bytes, bytes kept).
fn compare(record: &Record, view: &View, format: Format) -> (usize, usize) {
    let kept = record.write(view, format).unwrap();
    // A copy of a record has written nothing yet.
    let fresh = record.clone().write(view, format).unwrap();
    assert_eq!(fresh.kept(), 1, "only the bracket");
    assert_eq!(kept.messages, fresh.messages, "{format}");
    assert_eq!(kept, fresh, "{format}");
    (kept.messages.len(), kept.kept())
}

/// One message of a session that goes on: what is picked goes by the number.
fn next(record: &Record, pick: u8, at: usize) -> Vec<Message> {
    let open: Vec<String> = {
        let answered = |id: &str| record.entries().any(|e| e.kind == EntryKind::ToolResult && e.call_id == id);
        let calls = record.entries().filter(|e| e.kind == EntryKind::ToolCall && !answered(&e.call_id));
        calls.map(|call| call.call_id.clone()).collect()
    };
    let raw = |format, json: String| Message::raw(format, json).unwrap();
    match pick % 10 {
        0 => vec![Message::user(format!("what about \"{at}\"?"))],
        1 => vec![Message::of(vec![
            Entry::assistant(format!("say {at}")),
            Entry::tool_call(format!("a{at}"), "run", "{}"),
        ])],
        2 => vec![Message::of(vec![
            Entry::tool_call(format!("b{at}"), "read", r#"{"path":"a\\b"}"#),
            Entry::tool_call(format!("c{at}"), "read", "{}"),
        ])],
        3 => open.first().map(|id| Message::result(id, format!("line\n{at}"))).into_iter().collect(),
        4 => open.iter().rev().map(|id| Message::result(id, "x".repeat(at % 50))).collect(),
        5 => vec![raw(
            Format::OpenAiChat,
            format!(
                r#"{{"role":"assistant", "content":"chat {at}","tool_calls":[{{"id":"d{at}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}}"#
            ),
        )],
        6 => vec![raw(
            Format::AnthropicMessages,
            format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"anth {at}"}},{{"type":"tool_use","id":"e{at}","name":"f","input":{{"k":1.50}}}}]}}"#
            ),
        )],
        7 => vec![
            raw(
                Format::OpenAiResponses,
                format!(r#"{{"type":"reasoning","id":"rs_{at}","summary":[],"encrypted_content":"x"}}"#),
            ),
            raw(
                Format::OpenAiResponses,
                format!(r#"{{"type":"function_call","call_id":"f{at}","name":"f","arguments":"{{}}"}}"#),
            ),
        ],
        8 => {
            // A message of results that the user adds a word to.
            let results = open
                .iter()
                .take(2)
                .map(|id| format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"r{at}","cache_control":{{"type":"ephemeral"}}}}"#));
            let blocks = results.chain([format!(r#"{{"type":"text","text":"and {at}"}}"#)]);
            vec![raw(
                Format::AnthropicMessages,
                format!(r#"{{"role":"user","content":[{}]}}"#, blocks.collect::<Vec<_>>().join(", ")),
            )]
        }
        _ => vec![Message::system(format!("rule {at}"))],
    }
}

/// A view of the record, of which the first part goes by `choices` alone, so that consecutive views share a beginning.
fn view(record: &Record, choices: &[u8], cut: usize) -> View {
    let mut pieces = Vec::new();
    for entry in 0..record.len() {
        match (choices[entry % choices.len()], record.entry(entry).kind) {
            (0, EntryKind::ToolResult) => pieces.push(ViewPiece::Text(entry, format!("[cleared {entry}]"))),
            (1, _) => pieces.push(ViewPiece::Note(format!("note \"{entry}\""))),
            (2, EntryKind::ToolCall) => pieces.push(ViewPiece::Arguments(entry, "{}".into())),
            (3, EntryKind::ToolCall) => {
                pieces.extend([ViewPiece::Entry(entry), ViewPiece::StandIn(entry, "none".into())]);
            }
            (4, _) => {}
            _ => pieces.push(ViewPiece::Entry(entry)),
        }
    }
    pieces.truncate(pieces.len().saturating_sub(cut));
    View::new(pieces)
}

/// Found by chance: an item that the protocol does not show stood where the view was cut, and what had followed it stayed.
#[test]
fn a_view_cut_within_a_message_is_written_without_the_rest_of_it() {
    let mut record = Record::new();
    record.push(Message::user("go"));
    (0..2).flat_map(|at| next(&record, 7, at)).collect::<Vec<_>>().into_iter().for_each(|item| record.push(item));
    let whole = View::of(&record);
    let cut = View::new((0..record.len() - 1).map(ViewPiece::Entry).collect());
    for format in PROTOCOLS {
        compare(&record, &whole, format);
        compare(&record, &cut, format);
        compare(&record, &whole, format);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_view_written_on_top_of_another_is_the_view_written_from_nothing(
        steps in proptest::collection::vec((any::<u8>(), 0usize..4, any::<u8>()), 1..24),
        mut choices in proptest::collection::vec(0u8..24, 17),
        format in proptest::sample::select(PROTOCOLS.to_vec()),
        answered in any::<bool>(),
    ) {
        let mut record = Record::new();
        record.push(Message::user("go"));
        for (at, (pick, cut, change)) in steps.into_iter().enumerate() {
            next(&record, pick, at).into_iter().for_each(|message| record.push(message));
            // Now and then something in the middle is decided.
            if change % 4 == 0 {
                let place = usize::from(change) % choices.len();
                choices[place] = change % 5;
            }
            let view = view(&record, &choices, if cut == 3 { 0 } else { cut });
            compare(&record, &if answered { view.answered(&record) } else { view }, format);
        }
    }
}

/// The record of a conversation: what the assistant said at once is one message, everything else its own.
fn messages(transcript: &dyn foreshorten_core::transcript::Transcript, until: usize, from: usize) -> Vec<Message> {
    let mut out: Vec<Vec<Entry>> = Vec::new();
    for at in from..until {
        let entry = Entry::copy_of(transcript, at);
        match out.last_mut() {
            Some(last) if entry.kind.is_assistant_side() && last[0].kind.is_assistant_side() => last.push(entry),
            _ => out.push(vec![entry]),
        }
    }
    out.into_iter().map(Message::of).collect()
}

#[test]
fn over_whole_sessions_the_bytes_are_those_from_nothing_and_calm_turns_cost_what_is_new() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/sessions");
    let mut calm_turns = 0;
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    for path in files {
        let Ok(all) = read_session(std::fs::read(&path).unwrap(), None) else { continue };
        for (conversation, format) in all.iter().flat_map(|one| PROTOCOLS.map(|format| (one, format))) {
            for window in [8_000, 2_000_000] {
                let policy: Policy =
                    PolicyConfig { context_window: Some(window), ..PolicyConfig::default() }.build().unwrap();
                let mut compactor = Compactor::new(&policy);
                let mut record = Record::new();
                let (mut last, mut turn) = (0, 0);
                for &len in &conversation.calls {
                    let new = messages(&conversation.transcript, len, record.len());
                    let said: usize = new.iter().flat_map(|m| m.entries()).map(json_bytes).sum();
                    new.into_iter().for_each(|message| record.push(message));
                    compactor.sync(&record);
                    compactor.begin(&record, Turn::default());
                    settle(&mut compactor, &record, SummarizerKind::None, None);
                    let view = View::new(compactor.view().pieces().map(owned).collect());
                    // From nothing it takes long, so not every time.
                    turn += 1;
                    let (bytes, kept) = if turn % 5 == 0 || compactor.outcome().compacted {
                        compare(&record, &view, format)
                    } else {
                        let written = record.write(&view, format).unwrap();
                        (written.messages.len(), written.kept())
                    };
                    let outcome = compactor.outcome();
                    if !outcome.compacted && outcome.first_changed.is_none() && last > 0 {
                        calm_turns += 1;
                        assert!(kept + 1 >= last, "{}: {kept} of {last} bytes kept in a calm turn", path.display());
                        let fresh = bytes - kept;
                        assert!(fresh <= said, "{}: {fresh} bytes written for {said} that are new", path.display());
                    }
                    last = bytes;
                }
            }
        }
    }
    assert!(calm_turns > 500, "{calm_turns} calm turns");
}

/// Bytes that an entry may take as JSON: its text escaped, and what stands around it.
fn json_bytes(entry: &Entry) -> usize {
    let part = |part: &foreshorten_core::transcript::Part| match part {
        foreshorten_core::transcript::Part::Text(text) => serde_json::to_string(text).unwrap().len() * 2,
        foreshorten_core::transcript::Part::Image(_, data) | foreshorten_core::transcript::Part::File(_, _, data) => {
            data.len()
        }
        _ => 0,
    };
    entry.parts.iter().map(part).sum::<usize>() + entry.name.len() + entry.call_id.len() + 256
}
