//! Every real session of the listed formats is read, and what is counted agrees with the corpus' own manifest.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use foreshorten::formats::{Conversation, Format, ToolsEdit, detect, parse_body, read_session};
use foreshorten_core::transcript::{Columns, EntryKind, PartRef, Transcript};
use foreshorten_core::view::Piece;

/// The corpus is not part of the project: absent, its tests say so and pass.
fn corpus() -> Option<PathBuf> {
    let folder = std::env::var_os("FORESHORTEN_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from)
        .join("transcripts");
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(std::env::var_os("CI").is_none(), "skipped in CI: the shared folder is not there");
    eprintln!(
        "SKIPPED: there is no {}; set FORESHORTEN_SHARED to the folder that holds `transcripts`",
        folder.display()
    );
    None
}

fn files(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for kind in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        let name = kind.file_name().unwrap().to_str().unwrap().to_owned();
        if name != "LICENSES" {
            let inside = std::fs::read_dir(&kind).unwrap().map(|entry| entry.unwrap().path());
            found.extend(inside.map(|path| (name.clone(), path)));
        }
    }
    found.sort();
    found
}

/// Columns of the manifest by file: calls, results, errors, results without call.
fn manifest(folder: &Path) -> HashMap<String, [usize; 4]> {
    let text = std::fs::read_to_string(folder.join("MANIFEST.md")).unwrap();
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let (calls, results) = cells.get(5)?.split_once('/')?;
        let (orphans, _) = cells.get(9)?.split_once('/')?;
        Some((cells[1].to_owned(), [calls, results, cells[6], orphans].map(|cell| cell.parse().unwrap())))
    });
    rows.collect()
}

fn counted(conversations: &[Conversation]) -> [usize; 4] {
    let mut counts = [0; 4];
    for conversation in conversations {
        let transcript = &conversation.transcript;
        let mut columns = Columns::new();
        for index in 0..transcript.len() {
            columns.push(transcript, 1);
            let entry = transcript.entry(index);
            counts[0] += usize::from(entry.kind == EntryKind::ToolCall);
            counts[1] += usize::from(entry.kind == EntryKind::ToolResult);
            counts[2] += usize::from(entry.is_error);
        }
        counts[3] += columns.orphans().len();
    }
    counts
}

fn images(conversations: &[Conversation]) -> usize {
    let image = |transcript: &foreshorten::formats::WireTranscript, index: usize| {
        (0..transcript.entry(index).parts as usize)
            .filter(|&part| matches!(transcript.part(index, part), PartRef::Image(_)))
            .count()
    };
    conversations
        .iter()
        .map(|of| (0..of.transcript.len()).map(|index| image(&of.transcript, index)).sum::<usize>())
        .sum()
}

/// Where the manifest counts other things than what the model was sent, what is right instead.
const OTHERWISE: [(&str, [usize; 4]); 7] = [
    // Without function calling an action is text and its output a user's message.
    ("swe-agent/ctf-forensics-hex.traj", [0, 0, 0, 0]),
    ("swe-agent/ctf-web.traj", [0, 0, 0, 0]),
    ("swe-agent/marshmallow-xml.traj", [0, 0, 0, 0]),
    // The manifest counts every recorded request and answer as a conversation; here growing ones are one.
    ("anthropic-messages/image-in-tool-result.json", [3, 3, 0, 0]),
    ("openai-responses/image-in-function-output.json", [2, 2, 0, 0]),
    ("openai-responses/thinking-tools-compact.json", [1, 1, 0, 0]),
    // The manifest counts hosted tools as call and result; here they are one opaque entry.
    ("codex/schema-zoo-dup-ids.jsonl", [4, 5, 0, 1]),
];

#[test]
fn every_session_of_the_listed_formats_is_read_and_counted_right() {
    let Some(folder) = corpus() else { return };
    let manifest = manifest(&folder);
    let mut read = 0;
    for (kind, path) in files(&folder) {
        let Ok(format) = kind.parse::<Format>() else { continue };
        let name = format!("{kind}/{}", path.file_name().unwrap().to_str().unwrap());
        let bytes = std::fs::read(&path).unwrap();
        let found = detect(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found.format, format, "{name}: {}", found.reason);
        let conversations = read_session(bytes.clone(), None).unwrap_or_else(|error| panic!("{name}: {error}"));
        let expected =
            OTHERWISE.iter().find(|(of, _)| *of == name).map_or_else(|| manifest[&name], |(_, counts)| *counts);
        assert_eq!(counted(&conversations), expected, "{name}: calls, results, errors, orphans");
        for conversation in &conversations {
            let transcript = &conversation.transcript;
            assert_eq!(conversation.usage.len(), conversation.calls.len(), "{name}");
            assert!(
                conversation.calls.is_sorted_by(|a, b| a < b)
                    && conversation.calls.iter().all(|&at| at <= transcript.len())
            );
            // Entries of a message stand together, and every message has one.
            let messages: Vec<_> = (0..transcript.len()).filter_map(|entry| transcript.message_of(entry)).collect();
            assert!(messages.is_sorted(), "{name}");
            let distinct = messages.iter().collect::<std::collections::BTreeSet<_>>().len();
            assert_eq!(distinct, transcript.messages(), "{name}");
            for line in transcript.entries_as_json(&(0..transcript.len()).collect::<Vec<_>>()) {
                serde_json::from_str::<serde::de::IgnoredAny>(&line).unwrap();
            }
        }
        // Asking for the format by name, or for lines, gives the same.
        let again = read_session(bytes, Some(format)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(counted(&again), expected, "{name}");
        read += 1;
    }
    assert!(read >= 30, "only {read} files were read");
}

#[test]
fn images_are_seen_wherever_they_hide() {
    let Some(folder) = corpus() else { return };
    for (name, expected) in [
        ("claude-code/image-result.jsonl", 1),
        ("anthropic-messages/image-in-tool-result.json", 2),
        ("openai-responses/image-in-function-output.json", 2),
    ] {
        let conversations = read_session(std::fs::read(folder.join(name)).unwrap(), None).unwrap();
        assert_eq!(images(&conversations), expected, "{name}");
    }
}

#[test]
fn usage_of_the_provider_is_found_for_every_call() {
    let Some(folder) = corpus() else { return };
    for name in [
        "claude-code/go-cli-long-2compactions.jsonl",
        "codex/derived-gpt5-vllm-19d98e0c.jsonl",
        "gemini-cli/session-13-calls.json",
    ] {
        let conversations = read_session(std::fs::read(folder.join(name)).unwrap(), None).unwrap();
        assert!(conversations.iter().all(|of| !of.calls.is_empty() && of.usage.iter().all(Option::is_some)), "{name}");
        assert!(conversations.iter().all(|of| of.model.is_some()), "{name}");
    }
}

#[test]
fn files_of_other_kinds_are_refused_with_the_list_of_what_is_read() {
    let Some(folder) = corpus() else { return };
    let mut refused = 0;
    for (kind, path) in files(&folder).into_iter().filter(|(kind, _)| kind.parse::<Format>().is_err()) {
        let bytes = std::fs::read(&path).unwrap();
        let error = read_session(bytes.clone(), None).expect_err(&kind);
        assert!(
            error.expected.contains("openai-chat, openai-responses, anthropic-messages, claude-code"),
            "{kind}: {error}"
        );
        assert!(parse_body(bytes, None).is_err(), "{kind}");
        refused += 1;
    }
    assert!(refused >= 15, "only {refused} files were refused");
}

/// Every recorded request, cut out of its file, comes out of an identity view as it went in.
#[test]
fn recorded_requests_survive_a_view_without_decisions() {
    let Some(folder) = corpus() else { return };
    let mut bodies: Vec<Vec<u8>> = Vec::new();
    for name in [
        "anthropic-messages/compaction-and-thinking.json",
        "anthropic-messages/image-in-tool-result.json",
        "openai-responses/image-in-function-output.json",
        "openai-responses/thinking-tools-compact.json",
    ] {
        #[derive(serde::Deserialize)]
        struct File<'a> {
            #[serde(borrow)]
            requests: Vec<&'a serde_json::value::RawValue>,
        }
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let file: File<'_> = serde_json::from_str(&text).unwrap();
        bodies.extend(file.requests.iter().map(|request| request.get().as_bytes().to_vec()));
    }
    for name in ["openai-chat/litellm-request-sonnet4.json", "openai-chat/mini-swe-agent-github-issue.traj.json"] {
        bodies.push(std::fs::read(folder.join(name)).unwrap());
    }
    assert!(bodies.len() > 30);
    for bytes in bodies {
        let body = parse_body(bytes, None).unwrap();
        let pieces: Vec<_> = (0..body.transcript().len()).map(|entry| Piece::Entry { entry }).collect();
        assert!(body.write(&pieces, ToolsEdit::Keep).bytes == body.bytes());
    }
}
