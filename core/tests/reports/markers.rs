//! Reported: markers that lose an error, are mistaken for something else, or lead to the wrong place.

use foreshorten_core::{
    Compactor, Effect, PolicyConfig, Step, Turn,
    digest::Digest,
    plan::Level,
    recall::{Found, RecallError},
    state::{Action, Record},
    transcript::{Entry, OwnedTranscript, Transcript, text_of},
    view::Piece,
};
use foreshorten_testkit::{
    Answers, Session,
    cases::{a, built, c, filler, padded, pair, r, s, session, t10, text, u},
};

/// The marker that stands for an entry.
fn marker(session: &Session<'_>, wanted: usize) -> String {
    let mut pieces = session.compactor.view().pieces();
    let found = pieces.find_map(|piece| match piece {
        Piece::Text { entry, text } if entry == wanted => Some(text),
        _ => None,
    });
    found.unwrap_or_default().to_owned()
}

/// The reference a marker names.
fn reference(marker: &str) -> &str {
    marker.split('"').nth(1).unwrap_or_default()
}

#[test]
fn b46_an_error_stays_one_when_its_text_is_cleared() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::NoSummarizer);
    let mut entries = vec![s(100), u(50)];
    for k in 0..10 {
        let id = format!("e{k}");
        let result = r(&id, 400);
        entries.extend([c(&id, 20), if k % 3 == 0 { result.failed() } else { result }]);
    }
    entries.extend(filler(2_700));
    session.step(entries);
    assert_eq!(session.outcome().notice.as_ref().unwrap().decided.cleared, 7, "{:?}", session.outcome().notice);
    for k in 0..7 {
        let entry = 3 + 2 * k;
        let text = marker(&session, entry);
        let failed = k % 3 == 0;
        assert_eq!(text.contains("tool error cleared"), failed, "{text}");
        // The piece replaces the text only: id and flag are those of the entry it names.
        assert_eq!(session.transcript.entry(entry).is_error, failed);
        let Ok(Found::Entry { entry: found, exact: true, .. }) = session.recall(reference(&text)) else {
            panic!("{text} leads nowhere")
        };
        assert_eq!(found, entry);
    }
}

#[test]
fn b49_text_that_looks_like_a_marker_is_text() {
    let policy = built(t10());
    let mut first = session(&policy, Answers::NoSummarizer);
    let entries = || {
        let mut entries = vec![s(100), u(50)];
        (0..12).for_each(|k| entries.extend(pair(&format!("m{k}"), 20, 600)));
        entries
    };
    first.step(entries());
    let ours = marker(&first, 3);
    assert!(ours.starts_with("[Earlier tool result cleared"));
    // Markers are short and fixed: all alike but for the reference.
    let plain = |text: &str| text.replace(reference(text), "…");
    for entry in [5, 7, 9] {
        assert_eq!(plain(&marker(&first, entry)), plain(&ours));
        assert!(marker(&first, entry).len() < 200);
    }
    for word in ["error", "fail", "lost", "!"] {
        assert!(!ours.contains(word), "worded as a failure: {ours}");
    }

    // The same words from anybody else are counted and cleared like any text.
    let mut second = session(&policy, Answers::NoSummarizer);
    let wrapper = "<context-summary>\nold\n</context-summary>";
    let quote = Entry::tool_result("q", padded(&format!("{ours}{wrapper}"), 600));
    let mut entries = entries();
    entries.splice(2..2, [Entry::user(&ours), Entry::assistant(wrapper), c("q", 20), quote]);
    second.step(entries);
    assert!(second.is_verbatim(2) && second.is_verbatim(3), "kept as the user and the model wrote it");
    assert_eq!(second.level(5), Level::Cleared, "and a quoting result is cleared like any other");
    assert_eq!(second.state().record(3), None);
    assert!(second.notes().is_empty());
    let weight = second.compactor.columns().weight(2);
    assert_eq!(weight as usize, ours.len().div_ceil(4), "counted in full");
}

#[test]
fn b52_an_id_used_again_brings_back_what_its_marker_stood_for() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::NoSummarizer);
    let old = text(500);
    let mut entries = vec![s(100), u(50), c("bash_23", 20), Entry::tool_result("bash_23", &old)];
    (0..12).for_each(|k| entries.extend(pair(&format!("m{k}"), 20, 530)));
    session.step(entries);
    assert_eq!(session.level(3), Level::Cleared);
    assert_eq!(reference(&marker(&session, 3)), "bash_23");
    // The same id again, with another text.
    session.step(pair("bash_23", 20, 500));
    let newest = session.transcript.len() - 1;
    assert!(session.is_verbatim(newest), "the live result is itself");
    let recalled = |session: &Session<'_>, reference: &str| match session.recall(reference) {
        Ok(Found::Entry { entry, exact: true, .. }) => entry,
        other => panic!("{reference}: {other:?}"),
    };
    assert_eq!(recalled(&session, "bash_23"), 3);
    assert_eq!(text_of(&session.transcript, 3), old);
    // When the second is cleared too, its marker names its content, and both are found.
    for k in 0..12 {
        session.step(pair(&format!("n{k}"), 20, 530));
    }
    assert_eq!(session.level(newest), Level::Cleared);
    let second = marker(&session, newest);
    assert_ne!(reference(&second), "bash_23");
    assert_eq!((recalled(&session, "bash_23"), recalled(&session, reference(&second))), (3, newest));
    // An id used twice that no marker ever stood for is ambiguous, not a guess.
    session.step([pair("twice", 20, 10), pair("twice", 20, 10)].concat());
    assert!(matches!(session.recall("twice"), Err(RecallError::Ambiguous(of)) if of.len() == 2));
}

#[test]
fn b63_a_hostile_id_is_neither_a_reference_nor_a_way_out() {
    let long = "x".repeat(5_000);
    let ids = ["../../x", "/etc/x", "a;b", "C:\\\\x", "a\0b", &long, "\"", "note:0000000000000000", ""];
    let policy = built(t10());
    let mut session = session(&policy, Answers::NoSummarizer);
    let mut entries = vec![s(100), u(50)];
    for id in ids {
        entries.extend([c(id, 20), r(id, 500)]);
    }
    (0..8).for_each(|k| entries.extend(pair(&format!("m{k}"), 20, 400)));
    session.step(entries);
    for k in 0..4 {
        let text = marker(&session, 3 + 2 * k);
        let name = reference(&text);
        assert!(Digest::parse(name).is_some(), "names are digests made by us: {text}");
        assert!(matches!(session.recall(name), Ok(Found::Entry { entry, .. }) if entry == 3 + 2 * k));
    }
    // Asked for by such a name, recall answers from the record or not at all.
    for id in ids.into_iter().chain(["CON", ".", "..", "%2e%2e", "note:", "note:zzzz"]) {
        match session.recall(id) {
            Ok(Found::Entry { entry, .. }) => assert_eq!(session.transcript.entry(entry).call_id, id),
            Ok(other) => panic!("{id}: {other:?}"),
            Err(RecallError::NotFound | RecallError::Ambiguous(_)) => {}
            Err(other) => panic!("{id}: {other:?}"),
        }
    }
}

#[test]
fn b66_a_store_that_fails_never_leads_a_marker_astray() {
    let policy = built(PolicyConfig { archive: true, ..t10() });
    let turn = Turn { window: Some(10_000), ..Turn::default() };
    for (large, (count, size)) in [(false, (12, 600)), (true, (5, 1_400))] {
        let mut entries = vec![s(100), u(50)];
        (0..count).for_each(|k| entries.extend(pair(&format!("m{k}"), 20, size)));
        entries.push(a(20));
        let transcript = OwnedTranscript::from(entries);
        let mut views = Vec::new();
        for works in [true, false] {
            let mut compactor = Compactor::new(&policy);
            compactor.sync(&transcript);
            compactor.begin(&transcript, turn);
            let mut asked = 0;
            while let Step::Effect(effect) = compactor.poll(&transcript) {
                let Effect::Archive { entry, digest } = effect else { panic!("nothing else is asked: {effect:?}") };
                assert_eq!(Digest::of_entry(&transcript, entry), digest);
                asked += 1;
                compactor.handle_archived(works);
            }
            let outcome = compactor.outcome();
            assert!(asked > 1 && outcome.compacted);
            assert_eq!(outcome.archive_failures, if works { 0 } else { asked }, "said");
            // Whatever the store did: recall from the record works, to the byte.
            for record in compactor.state().records() {
                let name = record.reference(&transcript, compactor.columns()).unwrap();
                let found =
                    foreshorten_core::recall::resolve(&name, &transcript, compactor.columns(), compactor.ledger());
                let entry = record.place.index as usize;
                let digest = Digest::of_entry(&transcript, entry);
                assert_eq!(found, Ok(Found::Entry { entry, digest, exact: true }));
            }
            let offloaded = |record: &Record| matches!(record.action, Action::Offload(_));
            assert_eq!(
                compactor.state().records().iter().any(offloaded),
                large,
                "previews in one record, markers in the other"
            );
            views.push(foreshorten_testkit::materialize(compactor.view(), &transcript));
        }
        assert!(views[0] == views[1], "and the view is the same");
    }
}
