//! `compact` called once per turn of a growing session: decisions stick, and the account of every call is true.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

use crate::common::talk::{Protocol, Talk};
use crate::common::{Compacted, Room, common};
use foreshorten::{
    core::{Compactor, Policy, PolicyConfig, Turn, marker::RECALL_TOOL_DESCRIPTION, transcript::RECALL_TOOL},
    drive::{SummarizerKind, settle},
    formats::{ToolsEdit, parse_body, recall_tool_schema},
};

const WINDOW: u64 = 16_000;

/// Where the last message of a body ends: before the closing bracket of its list.
fn view_end(body: &[u8]) -> usize {
    let bracket = body.iter().rposition(|&byte| byte == b']').unwrap();
    bracket - body[..bracket].iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// What must hold between a view and the next.
fn check_step(talk: &Talk, before: &[u8], done: &Compacted) {
    let (after, kept) = (done.out(), done.number("prefix_bytes_kept") as usize);
    assert!(done.number("tokens_after") <= done.number("usable"));
    assert!(common(before, after) >= kept, "{} bytes are common, {kept} are claimed", common(before, after));
    if done.compacted() {
        assert!(done.number("tokens_before") >= done.number("trigger"), "{}", done.notice);
        let first = done.number("first_changed") as usize;
        let (old, new) = (talk.messages_in(before), talk.messages_in(after));
        assert_eq!(old[..first], new[..first]);
        assert_ne!(old.get(first), new.get(first));
        // Whatever the order of its keys.
        let there = serde_json::Deserializer::from_slice(&after[kept..]).into_iter::<serde_json::Value>().next();
        let there = there.and_then(Result::ok);
        assert_eq!(there.as_ref(), new.get(first), "the first changed message, {first}, starts there");
    } else {
        assert_eq!(done.notice["first_changed"], serde_json::Value::Null);
        assert_eq!(before[..view_end(before)], after[..view_end(before)], "the view before is a prefix");
        assert_eq!(kept, view_end(before));
    }
}

#[test]
fn while_nothing_is_decided_a_view_begins_with_the_one_before() {
    for protocol in Protocol::ALL {
        for more in [&[][..], &["--summarizer", "extractive"], &["--preset", "five-stage", "--max-entries", "30"]] {
            // Sizes of turns and the number of passes are by the seeds' rule.
            let more = &[more, &["--weigher", "bytes4"]].concat()[..];
            let (room, mut talk) = (Room::new(), Talk::new(protocol));
            let mut before = room.compact(WINDOW, &talk.body(), more).good().out().to_vec();
            let mut passes = 0;
            for turn in 0..40 {
                talk.turn(1_000 + turn % 5 * 700);
                if turn % 9 == 8 {
                    talk.user("Go on, please.");
                }
                let done = room.compact(WINDOW, &talk.body(), more).good();
                if more[0] != "--preset" {
                    check_step(&talk, &before, &done);
                }
                passes += usize::from(done.compacted());
                before = done.out().to_vec();
            }
            assert!((2..30).contains(&passes), "{protocol:?} {more:?}: {passes} passes");
        }
    }
}

#[test]
fn the_same_call_again_changes_nothing() {
    for protocol in Protocol::ALL {
        let (room, talk) = (Room::new(), Talk::new(protocol).turns(30, 2_500));
        let first = room.compact(WINDOW, &talk.body(), &[]).good();
        let again = room.compact(WINDOW, &talk.body(), &[]).good();
        assert!(first.compacted() && !again.compacted());
        assert!(first.out() == again.out(), "{protocol:?}");
    }
}

#[test]
fn the_program_called_once_per_turn_does_what_the_library_does() {
    let policy: Policy = PolicyConfig { context_window: Some(WINDOW), ..PolicyConfig::default() }.build().unwrap();
    for protocol in Protocol::ALL {
        let (room, mut talk) = (Room::new(), Talk::new(protocol));
        let mut compactor = Compactor::new(&policy);
        for turn in 0..40 {
            talk.turn(800 + turn % 7 * 500);
            let body = parse_body(talk.body(), None).unwrap();
            let schema = recall_tool_schema(body.format(), RECALL_TOOL, RECALL_TOOL_DESCRIPTION);
            let weigher = &policy.config().weigher;
            let schema_tokens =
                body.tools().into_iter().chain([schema.as_str()]).map(|tool| u64::from(weigher.framed(tool))).sum();
            compactor.sync(body.transcript());
            let scope = body.model().unwrap();
            let turn = Turn { scope, schema_tokens, can_summarize: true, ..Turn::default() };
            compactor.begin(body.transcript(), turn);
            settle(&mut compactor, body.transcript(), SummarizerKind::Extractive, None);
            let pieces: Vec<_> = compactor.view().pieces().collect();
            let expected = body.write(&pieces, ToolsEdit::Append { name: RECALL_TOOL, schema: &schema }).bytes;
            let done = room.compact(WINDOW, &talk.body(), &["--summarizer", "extractive"]).good();
            assert!(done.out() == expected, "{protocol:?} turn {}", talk.turns);
        }
    }
}

#[cfg(unix)]
#[test]
fn state_and_store_are_private_and_nothing_half_written_is_left() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (room, mut talk) = (Room::new(), Talk::new(Protocol::Chat).turns(30, 3_000));
    room.write("state", b"");
    for _ in 0..3 {
        room.compact_storing(WINDOW, &talk.body(), &[]).good();
        talk.turn(3_000);
        assert_eq!(room.names(), ["notice", "state", "store"]);
        assert_eq!(mode(&room.state()), 0o600);
    }
    assert_eq!(mode(&room.store()), 0o700);
    let mut files = 0;
    for folder in std::fs::read_dir(room.store()).unwrap().map(|entry| entry.unwrap().path()) {
        assert_eq!(mode(&folder), 0o700);
        for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            assert_eq!(mode(&file), 0o600);
            files += 1;
        }
    }
    assert!(files > 5, "{files}");
}

#[cfg(unix)]
#[test]
fn a_state_that_is_a_link_stays_one() {
    let room = Room::new();
    std::os::unix::fs::symlink(room.path("elsewhere"), room.state()).unwrap();
    room.write("elsewhere", b"");
    room.compact(WINDOW, &Talk::new(Protocol::Chat).turns(2, 100).body(), &[]).good();
    assert!(std::fs::symlink_metadata(room.state()).unwrap().is_symlink());
    assert!(!std::fs::read(room.path("elsewhere")).unwrap().is_empty());
}

#[test]
fn a_state_that_cannot_be_written_fails_without_a_view_and_names_the_file() {
    let body = Talk::new(Protocol::Chat).turns(30, 3_000).body();
    let run = |state: &str, notice: &str| {
        let args = ["compact", "--window", "16000", "--state", state, "--notice", notice];
        crate::common::foreshorten(args, &body)
    };
    let room = Room::new();
    let (good, gone) = (room.path("good"), room.path("gone/file"));
    let under_file = room.write("file", b"").join("state");
    let (good, gone, under_file) = (good.to_str().unwrap(), gone.to_str().unwrap(), under_file.to_str().unwrap());
    run(gone, good).exits(1).says(&[gone, "cannot be written"]);
    assert!(!std::path::Path::new(good).exists(), "no notice of a view that was not written");
    run(good, gone).exits(1).says(&[gone, "cannot be written"]);
    assert!(!std::path::Path::new(good).exists(), "no state of a view that was not written");
    let code = run(under_file, good);
    assert!(matches!(code.code, 1 | 3), "{}", code.err);
    assert!(code.out.is_empty() && code.err.contains(under_file), "{}", code.err);
    let folder = room.path("folder");
    std::fs::create_dir(&folder).unwrap();
    run(folder.to_str().unwrap(), good).exits(3).says(&["folder"]);
}

#[cfg(unix)]
#[test]
fn a_read_only_folder_keeps_its_old_state() {
    use std::os::unix::fs::PermissionsExt as _;
    let room = Room::new();
    let folder = room.path("folder");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o500)).unwrap();
    if std::fs::write(folder.join("probe"), b"").is_ok() {
        crate::common::skip("this user may write into read-only folders");
        return;
    }
    let state = folder.join("state");
    let args = ["compact", "--window", "16000", "--state", state.to_str().unwrap()];
    crate::common::foreshorten(args, &Talk::new(Protocol::Chat).body()).exits(1).says(&["state", "cannot be written"]);
}

#[test]
fn a_notice_may_go_to_a_device() {
    let args = ["compact", "--window", "16000", "--notice", "/dev/null"];
    if std::path::Path::new("/dev/null").exists() {
        crate::common::foreshorten(args, &Talk::new(Protocol::Chat).body()).good();
    }
}

#[test]
fn what_is_no_state_is_said_and_a_new_one_started() {
    let body = Talk::new(Protocol::Chat).turns(30, 3_000).body();
    let fresh = Room::new().compact(WINDOW, &body, &[]).good();
    let good = {
        let room = Room::new();
        room.compact(WINDOW, &body, &[]).good();
        room.state_bytes().unwrap()
    };
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let mut version = good.clone();
    version[4] = 99;
    for bytes in [&b"hello"[..], &good[..good.len() - 3], &good[..5], &flipped, &version, &[0xff; 4_000]] {
        let room = Room::new();
        room.write("state", bytes);
        let done = room.compact(WINDOW, &body, &[]).good();
        assert!(done.notice["state_reset"].as_str().unwrap().contains("new state"), "{}", done.notice);
        assert!(done.run.err.contains("new state"), "{}", done.run.err);
        assert!(done.out() == fresh.out(), "as without a state");
        let next = room.compact(WINDOW, &body, &[]).good();
        assert!(next.notice["state_reset"].is_null() && next.out() == fresh.out());
    }
}

#[test]
fn an_empty_conversation_leaves_a_session_as_it_was() {
    let (room, mut talk) = (Room::new(), Talk::new(Protocol::Chat).turns(30, 3_000));
    let view = room.compact(WINDOW, &talk.body(), &[]).good().out().to_vec();
    room.compact(WINDOW, b"[]", &[]).good();
    talk.turn(100);
    let next = room.compact(WINDOW, &talk.body(), &[]).good();
    assert!(next.notice["history"].is_null() && !next.compacted(), "{}", next.notice);
    assert!(common(&view, next.out()) >= view_end(&view));
}

#[test]
fn the_shipped_sessions_grown_message_by_message_are_accounted_for_truly() {
    use serde_json::value::RawValue;
    #[derive(serde::Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        messages: Option<Vec<&'a RawValue>>,
        #[serde(borrow)]
        input: Option<Vec<&'a RawValue>>,
    }
    for (name, protocol) in [
        ("support.openai-chat.json", Protocol::Chat),
        ("research.openai-responses.json", Protocol::Responses),
        ("mixed.anthropic-messages.json", Protocol::Anthropic),
        ("orphans.anthropic-messages.json", Protocol::Anthropic),
        ("huge-result.openai-chat.json", Protocol::Chat),
    ] {
        let text = std::fs::read_to_string(crate::common::session(name)).unwrap();
        let body: Body<'_> = serde_json::from_str(&text).unwrap();
        let messages: Vec<&str> = body.messages.or(body.input).unwrap().into_iter().map(RawValue::get).collect();
        for window in [3_000, 12_000] {
            let (room, mut before, mut passes) = (Room::new(), Vec::new(), 0);
            for upto in 1..=messages.len() {
                let body = format!(r#"{{"model":"m","{}":[{}]}}"#, protocol.list(), messages[..upto].join(",\n"));
                let done = room.compact(window, body.as_bytes(), &["--format", protocol.name()]);
                let done = if done.run.code == 4 { done.exits(4) } else { done.good() };
                let kept = done.number("prefix_bytes_kept") as usize;
                let common = common(&before, done.out());
                assert!(common >= kept, "{name} {window} {upto}: {common} are common, {kept} are claimed");
                // A stand-in for a call that was given up goes into the message with its neighbours' results.
                let repaired = &done.notice["repaired"]["calls_without_result"] != 0;
                if !done.compacted() && done.notice["history"].is_null() && !before.is_empty() && !repaired {
                    assert_eq!(kept, view_end(&before), "{name} {window} {upto}: {}", done.notice);
                }
                passes += usize::from(done.compacted());
                before = done.out().to_vec();
                // The closing bracket of the tools comes after the conversation; cut it off.
                before.truncate(before.len() - before.iter().rev().take_while(|&&byte| byte != b'[').count());
                before.truncate(before.iter().rposition(|&byte| byte == b']').map_or(before.len(), |at| at + 1));
            }
            assert!(passes > 0 || window > 3_000 || name.starts_with("orphans"), "{name} {window}");
        }
    }
}
