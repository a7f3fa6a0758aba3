//! Weaknesses of the reference system, group A: views and states that break what was promised.

use foreshorten_core::{
    CompactionState, Compactor, PolicyConfig,
    plan::Level,
    recall::Found,
    state::{FORMAT_VERSION, HALF_OPEN_AFTER_TURNS, History, StateError},
    transcript::{Entry, EntryKind, OwnedTranscript, Part},
    view::Piece,
};
use foreshorten_testkit::{
    Answers, Session,
    cases::{a, built, c, chat, filler, padded, pair, r, s, session, summary, t10, u},
    materialize,
};

/// The configuration with a window of 20,000.
fn twenty() -> PolicyConfig {
    PolicyConfig {
        context_window: Some(20_000),
        compact_at: PolicyConfig::default().compact_at,
        compact_to: PolicyConfig::default().compact_to,
        keep_recent_tokens: None,
        ..t10()
    }
}

fn resumed<'p>(
    session: &Session<'p>,
    entries: Vec<Entry>,
) -> (Compactor<&'p foreshorten_core::Policy>, OwnedTranscript, History) {
    let transcript = OwnedTranscript::from(entries);
    let mut compactor = Compactor::resume(session.policy(), session.state().clone());
    let history = compactor.sync(&transcript);
    (compactor, transcript, history)
}

#[test]
fn a1_the_only_request_stays_through_sixty_steps() {
    for answers in [Answers::Extractive, Answers::NoSummarizer, Answers::Failing] {
        let policy = built(twenty());
        let mut session = session(&policy, answers);
        session.turn.window = Some(20_000);
        session.step([s(100), u(200)]);
        for k in 0..60 {
            session.step(pair(&format!("t{k}"), 30, 900));
            assert!(session.is_verbatim(1), "the request is in every view, step {k}");
        }
        assert!(session.passes > 2);
    }
}

#[test]
fn a2_an_id_used_again_brings_no_cleared_result_back() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::NoSummarizer);
    let mut entries = vec![s(100), u(50)];
    (0..12).for_each(|k| entries.extend(pair(&format!("c{k}"), 20, 560)));
    session.step(entries);
    assert_eq!(session.level(3), Level::Cleared);
    let before = (session.outcome().tokens_after, session.view().to_vec());
    session.step(pair("c0", 20, 100));
    assert_eq!(session.level(3), Level::Cleared);
    assert_eq!(session.outcome().tokens_after, before.0 + 120);
    assert!(session.view()[..before.1.len()] == before.1, "the prefix holds");
}

#[test]
fn a3_a_server_that_reuses_one_id_can_be_compacted() {
    let policy = built(twenty());
    for overflow in [false, true] {
        let mut session = session(&policy, Answers::NoSummarizer);
        session.turn.window = Some(20_000);
        session.turn.overflow = overflow;
        let mut entries = vec![s(100), u(50)];
        (0..40).for_each(|_| entries.extend(pair("call_0", 20, 1_000)));
        session.step(entries);
        let outcome = session.outcome();
        assert!(outcome.tokens_before > 40_000 && outcome.tokens_after <= 18_000, "{}", outcome.tokens_after);
        assert!(!session.state().records().is_empty());
    }
}

#[test]
fn a4_a_rewritten_result_never_shows_the_old_preview() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::NoSummarizer);
    let mut entries = vec![s(100), u(50), c("big", 20), Entry::tool_result("big", padded("OLD OUTPUT ", 4_000))];
    (0..5).for_each(|k| entries.extend(pair(&format!("m{k}"), 20, 600)));
    session.step(entries.clone());
    assert_eq!(session.level(3), Level::Preview);
    assert!(session.view()[3].contains("OLD OUTPUT"));
    entries[3] = Entry::tool_result("big", padded("NEW OUTPUT ", 4_000));
    let (compactor, transcript, _) = resumed(&session, entries);
    assert_eq!(compactor.outcome().attachment.changed_bodies, 0);
    let view = materialize(compactor.view(), &transcript);
    assert!(!view.concat().contains("OLD OUTPUT"));
    let record = compactor.state().record(3).unwrap();
    let reference = record.reference(&transcript, compactor.columns()).unwrap();
    let found = foreshorten_core::recall::resolve(&reference, &transcript, compactor.columns(), compactor.ledger());
    assert!(matches!(found, Ok(Found::Entry { entry: 3, exact: true, .. })), "and its reference resolves: {found:?}");
}

#[test]
fn a5_a_rewrite_of_equal_length_is_noticed() {
    let policy = built(t10());
    let start = |task: &str, tool: &str, arguments: &str| {
        let call = Entry::tool_call("x", tool, arguments);
        let mut entries = vec![s(100), u(40), Entry::user(task), call, Entry::tool_result("x", "ok")];
        entries.extend(chat(20, 50, 300));
        entries
    };
    let mut session = session(&policy, Answers::By(|_| summary(200)));
    session.step(start("deploy to prod", "ls", "{\"p\":\"a\"}"));
    assert_eq!(session.state().notes().len(), 1);
    assert!(session.state().notes()[0].covers(3));
    for (task, tool, arguments) in [
        ("deploy to test", "ls", "{\"p\":\"a\"}"),
        ("deploy to prod", "rm", "{\"p\":\"a\"}"),
        ("deploy to prod", "ls", "{\"p\":\"b\"}"),
    ] {
        // Same length everywhere, another meaning; texts are made anew, so take the old ones for the rest.
        let mut entries = session.transcript.entries().to_vec();
        entries[2..4].clone_from_slice(&[Entry::user(task), Entry::tool_call("x", tool, arguments)]);
        let (compactor, _, history) = resumed(&session, entries);
        assert_eq!(history, History::Edited, "{task} {tool} {arguments}");
        assert!(compactor.state().notes().is_empty(), "no stale summary");
    }
    let (compactor, _, history) = resumed(&session, session.transcript.entries().to_vec());
    assert_eq!((history, compactor.state().notes().len()), (History::Grown, 1));
}

#[test]
fn a6_reasoning_stays_with_its_call() {
    let mut passes = 0;
    for tail in (200..4_000).step_by(90) {
        let policy = built(PolicyConfig { keep_recent_tokens: Some(tail), ..t10() });
        let mut session = session(&policy, Answers::By(|_| summary(150)));
        session.step([s(100), u(50)]);
        for k in 0..30 {
            let id = format!("t{k}");
            let thinking = Entry::reasoning(padded(&format!("thinking {k} "), 120)).sealed();
            session.step([thinking, c(&id, 30), r(&id, 200)]);
            let mut before = None;
            for piece in session.compactor.view().pieces() {
                let Piece::Entry { entry } = piece else { continue };
                let kind = session.transcript.entries()[entry].kind;
                if kind == EntryKind::ToolCall {
                    assert_eq!(before, Some(EntryKind::Reasoning), "a bare call at {entry}, tail {tail}");
                }
                before = Some(kind);
            }
        }
        passes += session.passes;
    }
    assert!(passes > 40);
}

#[test]
fn a7_orphans_and_dangling_calls_are_mended_and_said() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::NoSummarizer);
    session.step([s(20), u(20), r("nobody", 50), a(10), c("never", 20), u(20)]);
    let view = session.compactor.view();
    assert_eq!((view.orphans(), view.stand_ins()), (1, 1));
    let pieces: Vec<_> = view.pieces().collect();
    assert!(!pieces.contains(&Piece::Entry { entry: 2 }), "a result without a call is left out");
    assert!(matches!(pieces[4], Piece::StandIn { call: 4, .. }), "a call without a result gets one");
    // While it may still come, none is made up.
    session.step([c("coming", 20)]);
    assert_eq!(session.compactor.view().stand_ins(), 1);
    session.step([r("coming", 20), a(10)]);
    assert_eq!(session.compactor.view().stand_ins(), 1);
}

#[test]
fn a8_instructions_in_the_middle_are_never_summarized() {
    for answers in [Answers::By(|_| summary(200)), Answers::NoSummarizer] {
        let policy = built(t10());
        let mut session = session(&policy, answers);
        session.step([vec![s(100), u(50)], filler(2_000)].concat());
        let middle = session.transcript.entries().len();
        session.step([Entry::system(padded("from now on answer in French ", 60))]);
        for _ in 0..12 {
            session.step(filler(1_000));
            assert!(session.is_verbatim(middle), "pinned where it stands, or beside the note");
        }
        assert!(session.passes > 0);
        assert!(session.requests.iter().all(|request| !request.text.contains("answer in French")));
    }
}

#[test]
fn a9_another_version_of_the_state_is_named_not_silently_dropped() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::By(|_| summary(200)));
    session.step([vec![s(100), u(50)], filler(7_000)].concat());
    let bytes = session.state().encode();
    let mut newer = bytes.clone();
    newer[4] += 1;
    assert_eq!(CompactionState::decode(&newer), Err(StateError::Version { found: FORMAT_VERSION + 1 }));
    assert_eq!(CompactionState::decode(&bytes).as_ref(), Ok(session.state()));
    // Fields that a newer writer of the JSON form leaves out have their defaults; the rest is kept.
    let mut json = serde_json::to_value(session.state()).unwrap();
    json.as_object_mut().unwrap().remove("breaker");
    json["unknown"] = 1.into();
    let read: CompactionState = serde_json::from_value(json).unwrap();
    assert_eq!(read.notes(), session.state().notes());
}

#[test]
fn a10_a_reference_to_a_trimmed_result_still_says_what_it_was() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::NoSummarizer);
    let big = padded("BIG OUTPUT ", 2_600);
    let mut entries = vec![s(100), u(50), c("big", 20), Entry::tool_result("big", &big)];
    (0..7).for_each(|k| entries.extend(pair(&format!("m{k}"), 20, 600)));
    session.step(entries.clone());
    let record = session.state().record(3).unwrap();
    let marker = record.reference(&session.transcript, session.compactor.columns()).unwrap();
    let Ok(Found::Entry { digest, exact: true, .. }) = session.recall(&marker) else { panic!("{marker}") };
    // The host trims the stored output; no store holds the original.
    entries[3] = Entry::tool_result("big", &big[..400]);
    let (compactor, transcript, _) = resumed(&session, entries);
    let resolve = |reference: &str| {
        foreshorten_core::recall::resolve(reference, &transcript, compactor.columns(), compactor.ledger())
    };
    let truncated = Ok(Found::Entry { entry: 3, digest, exact: false });
    assert_eq!(resolve(&marker), truncated, "found, and said to be truncated; the digest is the key a store may know");
    assert!(matches!(resolve("big"), Ok(Found::Entry { entry: 3, .. })), "by its call id too");
}

#[test]
fn a12_the_breaker_lives_in_the_state_and_half_opens() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::Failing);
    session.step([vec![s(100), u(50)], filler(6_700)].concat());
    while session.state().breaker().failures() < 3 {
        session.step(filler(500));
    }
    let failures = session.state().breaker().failures();
    session.restart();
    session.run();
    assert_eq!(session.state().breaker().failures(), failures, "a restart closes nothing");
    let turn = session.state().turn();
    assert!(!session.state().breaker().allows(turn, 3));
    assert!(session.state().breaker().allows(turn + HALF_OPEN_AFTER_TURNS, 3));
}

#[test]
fn a7_an_image_of_an_orphan_is_not_sent_either() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::NoSummarizer);
    let orphan = r("gone", 10).with(Part::Image("image/png".into(), vec![1; 64]));
    session.step([u(20), orphan, a(10)]);
    assert_eq!(session.outcome().tokens_after, 30);
}
