//! `recall`: every reference in a view brings back the exact original.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

use std::path::{Path, PathBuf};

use crate::common::talk::{Protocol, Talk, log, references};
use crate::common::{Room, Run, foreshorten, session};
use foreshorten::core::digest::Digest;
use foreshorten::core::transcript::{EntryKind, PartRef, Transcript as _, text_of};
use foreshorten::formats::read_session;
use serde_json::{Value, json};

const WINDOW: u64 = 16_000;
/// A picture of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/// A compacted session on disk: the whole body, and the view.
fn compacted(talk: &Talk, more: &[&str]) -> (Room, PathBuf, Vec<u8>) {
    let room = Room::new();
    let body = room.write("body.json", talk.body());
    let view = room.compact_storing(WINDOW, &talk.body(), more).good().run.out;
    (room, body, view)
}

fn from_store(room: &Room, transcript: &Path, reference: &str, more: &[&str]) -> Run {
    let store = room.store();
    let mut args = vec!["--store", store.to_str().unwrap()];
    args.extend(more);
    room.recall(transcript, reference, &args)
}

#[test]
fn every_reference_in_a_view_brings_back_the_exact_original() {
    for protocol in Protocol::ALL {
        let talk = Talk::new(protocol).turns(40, 5_000);
        let originals: Vec<String> = (0..40).map(|turn| log(turn, 5_000)).collect();
        for more in [&[][..], &["--summarizer", "extractive"], &["--stages", "clear"], &["--stages", "offload"]] {
            let (room, body, view) = compacted(&talk, more);
            let found = references(&view);
            assert!(!found.is_empty(), "{protocol:?} {more:?}");
            for reference in found {
                let done = room.recall(&body, &reference, &[]).good();
                if reference.starts_with("note:") {
                    // The entries as JSON lines, in the format of the session.
                    for line in done.text().lines() {
                        let message: Value = serde_json::from_str(line).unwrap();
                        assert!(talk.messages.contains(&message), "{protocol:?}: {line}");
                    }
                    assert!(done.text().lines().count() > 1);
                } else {
                    assert!(originals.iter().any(|text| text == done.text()), "{protocol:?} {more:?}: {reference}");
                }
            }
        }
    }
}

#[test]
fn a_note_yields_what_the_view_no_longer_shows() {
    for protocol in Protocol::ALL {
        let talk = Talk::new(protocol).turns(120, 1_500);
        let (room, body, view) = compacted(&talk, &["--stages", "middle_snip"]);
        let notes: Vec<String> =
            references(&view).into_iter().filter(|reference| reference.starts_with("note:")).collect();
        let lines: String = notes.iter().map(|note| room.recall(&body, note, &[]).good().text().to_owned()).collect();
        let covered: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let shown = talk.messages_in(&view);
        // Calls are never edited, so those that the view does not show are covered.
        let is_call = |message: &&Value| message["role"] == "assistant" || message["type"] == "function_call";
        let mut gone = talk.messages.iter().filter(is_call).filter(|message| !shown.contains(message));
        assert!(gone.clone().count() > 10, "{protocol:?}");
        assert!(gone.all(|message| covered.contains(message)), "{protocol:?}");
        let note = &notes[0];
        room.recall(&body, note, &["--part", "0"]).exits(2).says(&["--part"]);
    }
}

#[test]
fn an_unknown_reference_is_exit_5() {
    let (room, body, _) = compacted(&Talk::new(Protocol::Chat).turns(30, 3_000), &[]);
    for reference in ["nothing", "note:0000000000000000", "00112233445566778899aabbccddeeff", "", "call_", "--x"] {
        room.recall(&body, reference, &[]).exits(5).says(&["nothing is known"]);
    }
    let missing = room.path("missing.json");
    room.recall(&missing, "call_1", &[]).exits(3).says(&["missing.json"]);
    foreshorten(["recall", "--transcript", body.to_str().unwrap()], b"").exits(2);
}

#[test]
fn a_call_id_that_was_used_again_is_ambiguous_and_the_digests_tell_apart() {
    for protocol in Protocol::ALL {
        let mut talk = Talk::new(protocol);
        for turn in 0..3 {
            talk.call("call_0", "read_log", json!({"n": turn}));
            talk.result("call_0", log(turn, 300));
        }
        let room = Room::new();
        let body = room.write("body.json", talk.body());
        let refused = room.recall(&body, "call_0", &[]).exits(6);
        let digests: Vec<&str> = refused.err.rsplit("one of ").next().unwrap().trim().split(", ").collect();
        assert_eq!(digests.len(), 3, "{}", refused.err);
        for (turn, digest) in digests.into_iter().enumerate() {
            assert_eq!(room.recall(&body, digest, &[]).good().text(), log(turn, 300), "{protocol:?}");
        }
    }
}

#[test]
fn a_call_id_used_again_for_the_same_content_is_not_ambiguous() {
    let mut talk = Talk::new(Protocol::Chat);
    for _ in 0..2 {
        talk.call("call_0", "read_log", json!({}));
        talk.result("call_0", "the same");
    }
    let room = Room::new();
    let body = room.write("body.json", talk.body());
    assert_eq!(room.recall(&body, "call_0", &[]).good().text(), "the same");
}

#[test]
fn parts_are_written_one_by_one_and_pictures_as_their_bytes() {
    let png: &[u8] = b"\x89PNG\r\n\x1a\n";
    for protocol in Protocol::ALL {
        let mut talk = Talk::new(protocol);
        talk.call("shot", "screenshot", json!({}));
        let parts = json!([talk.text_part("first"), talk.picture(PIXEL), talk.text_part("läst\r\n")]);
        talk.result("shot", parts);
        let talk = talk.turns(30, 3_000);
        let (room, body, _) = compacted(&talk, &["--stages", "clear,drop-old-images"]);
        assert_eq!(room.recall(&body, "shot", &[]).good().text(), "first\nläst\r\n", "{protocol:?}");
        assert_eq!(room.recall(&body, "shot", &["--part", "0"]).good().out, b"first");
        assert_eq!(room.recall(&body, "shot", &["--part", "2"]).good().text(), "läst\r\n");
        let picture = room.recall(&body, "shot", &["--part", "1"]).good();
        assert!(picture.out.starts_with(png) && picture.out.len() == 70, "{protocol:?}: {:?}", picture.out);
        room.recall(&body, "shot", &["--part", "3"]).exits(5).says(&["there are 3"]);
    }
}

#[test]
fn a_picture_that_is_only_named_is_written_as_its_address() {
    let mut talk = Talk::new(Protocol::Chat);
    talk.call("shot", "screenshot", json!({}));
    talk.result("shot", json!([{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]));
    let room = Room::new();
    let body = room.write("body.json", talk.body());
    assert_eq!(room.recall(&body, "shot", &["--part", "0"]).good().text(), "https://example.org/a.png");
}

#[test]
fn pages_cover_the_content_exactly() {
    let mut talk = Talk::new(Protocol::Chat);
    let original = "añb漢字 🙂👩‍👩‍👧 e\u{301}\r\nend\u{0}\n".repeat(3);
    talk.call("c", "read_log", json!({}));
    talk.result("c", original.as_str());
    let room = Room::new();
    let body = room.write("body.json", talk.body());
    for limit in ["1", "7", "40", "100000"] {
        let (mut whole, mut offset) = (String::new(), "0".to_owned());
        loop {
            let page = room.recall(&body, "c", &["--offset", &offset, "--limit", limit]).good();
            whole.push_str(page.text());
            match page.err.split_once("--offset ") {
                Some((_, next)) => offset = next.trim().to_owned(),
                None => break,
            }
            if limit == "1" && whole.len() > 60 {
                whole.push_str(&original[whole.len()..]);
                break;
            }
        }
        assert_eq!(whole, original, "limit {limit}");
    }
    assert_eq!(room.recall(&body, "c", &["--offset", "2"]).good().text(), &original[1..], "back to a boundary");
    assert_eq!(room.recall(&body, "c", &["--offset", "99999"]).good().text(), "");
}

#[test]
fn search_lists_what_is_no_longer_verbatim_and_nothing_else() {
    let mut talk = Talk::new(Protocol::Chat);
    talk.call("old", "read_log", json!({}));
    talk.result("old", format!("{}The GANGWAY of Ærø is stuck.\n{}", log(900, 2_000), log(901, 2_000)));
    let mut talk = talk.turns(30, 3_000);
    talk.call("new", "read_log", json!({}));
    talk.result("new", "the gangway is fine");
    let (room, body, _) = compacted(&talk, &[]);
    let search = |more: &[&str]| {
        let state = room.state();
        let mut args = vec!["recall", "--transcript", body.to_str().unwrap(), "--state", state.to_str().unwrap()];
        args.extend(more);
        foreshorten(args, b"").good()
    };
    assert_eq!(search(&["--search", "gangway"]).text(), "", "letter case counts, and the new one is in view");
    let found = search(&["--search", "gangway of ærø", "--ignore-case"]);
    let lines: Vec<&str> = found.text().lines().collect();
    assert_eq!(lines.len(), 1, "{}", found.text());
    let fields: Vec<&str> = lines[0].split('\t').collect();
    assert!(fields[2].contains("The GANGWAY of Ærø is stuck."), "{lines:?}");
    let whole = room.recall(&body, fields[0], &[]).good();
    assert!(whole.text()[fields[1].parse().unwrap()..].starts_with("GANGWAY"), "{lines:?}");
    let both = ["recall", "--transcript", body.to_str().unwrap(), "--search", "x", "old"];
    foreshorten(both, b"").exits(2);
}

/// The session with the body of every result cut down to `[trimmed]`, as agents do offline.
fn trimmed(talk: &Talk) -> Talk {
    let mut talk = talk.clone();
    for message in &mut talk.messages {
        let cut = match talk.protocol {
            Protocol::Chat if message["role"] == "tool" => &mut message["content"],
            Protocol::Responses if message["type"] == "function_call_output" => &mut message["output"],
            Protocol::Anthropic if message["content"][0]["type"] == "tool_result" => {
                &mut message["content"][0]["content"]
            }
            _ => continue,
        };
        *cut = json!("[trimmed]");
    }
    talk
}

#[test]
fn a_trimmed_transcript_and_the_store_give_the_original() {
    for protocol in Protocol::ALL {
        let mut talk = Talk::new(protocol);
        talk.call("shot", "screenshot", json!({}));
        let parts = json!([talk.picture(PIXEL), talk.text_part(&log(900, 4_500)), talk.text_part("end")]);
        talk.result("shot", parts);
        let talk = talk.turns(30, 3_000);
        let (room, body, view) = compacted(&talk, &["--stages", "clear", "--clear-keep-last", "1"]);
        let originals: Vec<Vec<u8>> =
            references(&view).iter().map(|it| room.recall(&body, it, &[]).good().out).collect();
        let cut = room.write("cut.json", trimmed(&talk).body());
        for (reference, original) in references(&view).iter().zip(originals) {
            assert!(from_store(&room, &cut, reference, &[]).good().out == original, "{protocol:?}: {reference}");
            room.recall(&cut, reference, &[]).exits(5).says(&["no longer holds"]);
        }
        let shot = from_store(&room, &cut, "shot", &["--part", "0"]).good();
        assert!(shot.out.starts_with(b"\x89PNG"), "{protocol:?}");
        assert_eq!(from_store(&room, &cut, "shot", &["--part", "2"]).good().out, b"end");
        from_store(&room, &cut, "shot", &["--part", "3"]).exits(5);
    }
}

#[test]
fn content_that_fell_off_the_front_is_found_in_the_store_by_its_digest() {
    let mut short = Talk::new(Protocol::Chat).turns(30, 5_000);
    // Room enough that previews fit: they name their content by digest.
    let room = Room::new();
    let more = ["--stages", "offload", "--weigher", "bytes4"];
    let view = room.compact_storing(40_000, &short.body(), &more).good().run.out;
    let digest = references(&view).into_iter().find(|reference| reference.len() == 32).unwrap();
    short.messages.drain(..50);
    let short = room.write("short.json", short.body());
    let found = from_store(&room, &short, &digest, &[]).good();
    assert!((0..30).any(|turn| log(turn, 5_000) == found.text()));
    room.recall(&short, &digest, &[]).exits(5);
}

#[test]
fn a_stored_file_that_was_tampered_with_is_not_found() {
    let talk = Talk::new(Protocol::Chat).turns(30, 3_000);
    let (room, _, view) = compacted(&talk, &[]);
    let cut = room.write("cut.json", trimmed(&talk).body());
    for folder in std::fs::read_dir(room.store()).unwrap().map(|entry| entry.unwrap().path()) {
        for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let mut content = std::fs::read(&file).unwrap();
            content[0] ^= 1;
            std::fs::write(file, content).unwrap();
        }
    }
    for reference in references(&view) {
        from_store(&room, &cut, &reference, &[]).exits(5);
    }
}

#[test]
fn a_store_that_fails_costs_a_word_and_no_view() {
    let talk = Talk::new(Protocol::Chat).turns(30, 3_000);
    let room = Room::new();
    std::fs::create_dir(room.store()).unwrap();
    // Where the folders of digests would be, files stand.
    for byte in 0..=255u8 {
        std::fs::write(room.store().join(format!("{byte:02x}")), b"").unwrap();
    }
    let done = room.compact_storing(WINDOW, &talk.body(), &[]).good();
    assert!(done.compacted() && done.number("archive_failures") > 0);
    assert!(done.run.err.contains("could not be stored"), "{}", done.run.err);
}

#[test]
fn recorded_sessions_of_every_format_are_recalled_from() {
    let files = [
        "coding-agent.claude-code.jsonl",
        "codex.jsonl",
        "gemini-cli.json",
        "openhands.json",
        "swe-agent.traj",
        "research.openai-responses.json",
        "support.openai-chat.json",
        "mixed.anthropic-messages.json",
    ];
    for name in files {
        let path = session(name);
        let conversations = read_session(std::fs::read(&path).unwrap(), None).unwrap();
        let mut recalled = 0;
        for conversation in &conversations {
            let record = &conversation.transcript;
            let results: Vec<usize> =
                (0..record.len()).filter(|&entry| record.entry(entry).kind == EntryKind::ToolResult).collect();
            for &entry in results.iter().take(12) {
                let id = record.entry(entry).call_id;
                let unique =
                    !id.is_empty() && results.iter().filter(|&&at| record.entry(at).call_id == id).count() == 1;
                let digest = Digest::of_entry(record, entry).to_string();
                let reference = if unique && conversations.len() == 1 { id } else { &digest };
                let recall = |more: &[&str]| {
                    let args = [&["recall", "--transcript", path.to_str().unwrap()], more, &["--", reference]];
                    foreshorten(args.concat(), b"").good()
                };
                assert_eq!(recall(&[]).text(), text_of(record, entry), "{name}: {reference}");
                for part in 0..record.entry(entry).parts as usize {
                    let out = recall(&["--part", &part.to_string()]).out;
                    if let PartRef::Text(text) = record.part(entry, part) {
                        assert_eq!(out, text.as_bytes(), "{name}: {reference}");
                    }
                }
                recalled += 1;
            }
        }
        assert!(recalled > 0, "{name}: nothing to recall");
    }
}

#[test]
fn a_reference_is_looked_up_first_in_the_conversation_that_the_state_belongs_to() {
    // Two conversations in one file use the same call id.
    let (one, mut two) = (Talk::new(Protocol::Chat).turns(2, 200), Talk::new(Protocol::Chat));
    two.messages.clear();
    two.user("Something else entirely.");
    two.call("call_0", "read_log", json!({"n": 70}));
    two.result("call_0", log(70, 200));
    two.turn(100);
    let lines = format!(
        "{}\n{}\n",
        String::from_utf8(one.body()).unwrap().replace('\n', " "),
        String::from_utf8(two.body()).unwrap().replace('\n', " ")
    );
    let room = Room::new();
    let file = room.write("both.jsonl", lines);
    room.recall(&file, "call_0", &[]).exits(6);
    room.compact(WINDOW, &two.body(), &[]).good();
    assert_eq!(room.recall(&file, "call_0", &[]).exits(6).out, b"", "the id is used twice in that conversation too");
    let room = Room::new();
    room.compact(WINDOW, &one.body(), &[]).good();
    assert_eq!(room.recall(&file, "call_0", &[]).good().text(), log(0, 200));
}
