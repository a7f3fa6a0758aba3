//! States that meet each other, other records, and hostile bytes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use foreshorten_core::{
    CompactionState, Compactor, Policy, PolicyConfig, config,
    state::{History, StateError},
    transcript::{Entry, OwnedTranscript},
};
use foreshorten_testkit::{
    Answers, Reference, Script, Session, check_legal, damaged, entries, forged, materialize, meet,
};
use proptest::prelude::*;

fn cases(ordinary: u32) -> ProptestConfig {
    let cases = std::env::var("FORESHORTEN_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(ordinary);
    ProptestConfig { cases, max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default() }
}

fn policies() -> [Policy; 2] {
    let five = PolicyConfig { stages: config::five_stage_pipeline(), ..PolicyConfig::default() };
    [Policy::default(), five.build().unwrap()]
}

/// A session of some turns, and its record.
fn grown(script: &mut Script<'_>, policy: &Policy, turns: usize) -> (OwnedTranscript, CompactionState) {
    let answers = [Answers::NoSummarizer, Answers::Extractive][script.below(2)];
    let mut session = Session::new(policy, OwnedTranscript::default(), 6_000, answers);
    for turn in 0..turns {
        let mut new = Vec::new();
        entries(script, turn, &mut new);
        session.step(new);
    }
    (session.transcript.clone(), session.compactor.state().clone())
}

/// Three states of one session that went on apart from a common one: other windows, overflows, usage.
fn apart(script: &mut Script<'_>, policy: &Policy) -> (OwnedTranscript, [CompactionState; 3]) {
    let (record, state) = grown(script, policy, 14);
    let branch = |script: &mut Script<'_>| {
        let mut compactor = Compactor::resume(policy, state.clone());
        compactor.sync(&record);
        for _ in 0..script.below(3) {
            let tokens = compactor.tokens();
            let _ = compactor.handle_usage(tokens * (80 + script.below(60) as u64) / 100);
            compactor.begin(
                &record,
                foreshorten_core::Turn {
                    window: Some([3_000, 4_500, 9_000][script.below(3)]),
                    scope: ["a", "b"][script.below(2)],
                    overflow: script.one_in(3),
                    reported_window: script.one_in(3).then_some(2_500),
                    ..foreshorten_core::Turn::default()
                },
            );
            while !matches!(compactor.poll(&record), foreshorten_core::Step::Done(_)) {}
        }
        if script.one_in(6) {
            compactor.undo_all(&record);
        }
        compactor.set_label("host", ["x", "y"][script.below(2)]);
        compactor.state().clone()
    };
    let states = [branch(script), branch(script), branch(script)];
    (record, states)
}

#[test]
fn instructions_that_changed_places_under_a_note_are_shown_in_their_new_order() {
    use foreshorten_testkit::cases::{a, built, filler, s, session, t10, u};
    let policy = built(t10());
    let mut session = session(&policy, Answers::NoSummarizer);
    session.transcript.extend([u(50), a(200)]);
    session.transcript.push(s(20));
    session.transcript.extend(filler(2_000));
    session.transcript.push(s(20));
    session.transcript.extend(filler(9_000));
    session.run();
    let state = session.state().clone();
    let kept: Vec<usize> = state.notes()[0].kept.iter().map(|place| place.index as usize).collect();
    assert_eq!(kept.len(), 2);
    let mut entries = session.transcript.entries().to_vec();
    entries.swap(kept[0], kept[1]);
    let record = OwnedTranscript::from(entries);
    let mut compactor = Compactor::resume(&policy, state);
    compactor.sync(&record);
    let shown: Vec<usize> = (0..record.entries().len()).filter(|entry| kept.contains(entry)).collect();
    let pieces = compactor.view().pieces().filter_map(|piece| match piece {
        foreshorten_core::view::Piece::Entry { entry } => Some(entry),
        _ => None,
    });
    assert_eq!(pieces.filter(|entry| kept.contains(entry)).collect::<Vec<_>>(), shown);
    check_legal(compactor.view().pieces(), &record, compactor.columns()).unwrap();
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn joining_commutes_associates_and_is_idempotent(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let mut script = Script::new(&bytes);
        let [policy, five] = policies();
        let policy = if script.one_in(3) { five } else { policy };
        let (record, [a, b, c]) = apart(&mut script, &policy);
        let ab = a.clone().join(&b);
        prop_assert_eq!(&ab, &b.clone().join(&a), "I12: does not commute");
        prop_assert_eq!(&ab.clone().join(&c), &a.clone().join(&b.clone().join(&c)), "I12: does not associate");
        prop_assert_eq!(&a.clone().join(&a), &a, "I12: is not idempotent");
        prop_assert_eq!(&ab.clone().join(&b), &ab, "I12: joining again changes something");

        // Monotonic: no entry stands higher in the joint view than in either, within one epoch.
        let level = |state: &CompactionState| {
            let mut compactor = Compactor::resume(&policy, state.clone());
            compactor.sync(&record);
            let reference = Reference::read(&record, policy.config());
            assert_eq!(materialize(compactor.view(), &record), reference.view(compactor.state()), "second opinion");
            assert_eq!(compactor.ledger().view_raw(), reference.raw(compactor.state()), "second opinion");
            let view: Vec<_> = compactor.view().pieces().collect();
            check_legal(view.iter().copied(), &record, compactor.columns()).unwrap();
            let columns = compactor.columns();
            (0..columns.len()).map(|entry| compactor.ledger().level(columns, entry)).collect::<Vec<_>>()
        };
        let (la, lb, lab) = (level(&a), level(&b), level(&ab));
        if a.epoch() == b.epoch() {
            for entry in 0..lab.len() {
                // What one side keeps beside its note the other may have covered with its own.
                let kept = |state: &CompactionState| {
                    state.notes().iter().any(|note| note.covers(entry) && !note.kept.is_empty())
                };
                if !kept(&a) && !kept(&b) {
                    prop_assert!(lab[entry] >= la[entry].max(lb[entry]), "I12: entry {} fell", entry);
                }
            }
        }
    }

    #[test]
    fn any_bytes_decode_to_a_state_or_a_named_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = CompactionState::decode(&bytes);
    }

    /// The checksum keeps accidents out, not attackers: a payload of any bytes under a right checksum.
    #[test]
    fn a_forged_state_never_breaks_a_view(
        payload in proptest::collection::vec(any::<u8>(), 0..400),
        script in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        if let Ok(state) = CompactionState::decode(&forged(&payload)) {
            survive(&state, &script);
        }
    }

    /// A true state with some bytes of its payload changed, under a right checksum, meets its own record.
    #[test]
    fn a_damaged_state_never_breaks_a_view(
        script in proptest::collection::vec(any::<u8>(), 0..400),
        damage in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..6),
    ) {
        let policy = Policy::default();
        let (record, state) = grown(&mut Script::new(&script), &policy, 14);
        if let Ok(state) = CompactionState::decode(&damaged(&state, &damage)) {
            meet(&state, &record);
        }
    }

    #[test]
    fn a_state_that_meets_an_edited_record_keeps_only_what_describes_it(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        edit in 0u8..5,
        at in any::<u16>(),
    ) {
        let policy = Policy::default();
        let (record, state) = grown(&mut Script::new(&bytes), &policy, 16);
        let mut entries = record.entries().to_vec();
        if entries.is_empty() {
            return Ok(());
        }
        let at = usize::from(at) % entries.len();
        match edit {
            0 => entries.truncate(at),
            1 => drop(entries.drain(..at)),
            2 => entries[at] = Entry::user("another text"),
            3 => entries.insert(at, Entry::assistant("inserted")),
            _ => for entry in &mut entries {
                if let Some(foreshorten_core::transcript::Part::Text(text)) = entry.parts.first_mut()
                    && entry.kind == foreshorten_core::transcript::EntryKind::ToolResult
                    && text.is_ascii()
                {
                    text.truncate(420);
                }
            },
        }
        meet(&state, &OwnedTranscript::from(entries));
    }
}

fn survive(state: &CompactionState, script: &[u8]) {
    let mut script = Script::new(script);
    let mut all = Vec::new();
    for turn in 0..10 {
        entries(&mut script, turn, &mut all);
    }
    meet(state, &OwnedTranscript::from(all));
}

#[test]
fn wrong_bytes_are_named() {
    assert_eq!(CompactionState::decode(b""), Err(StateError::NotAState));
    assert_eq!(CompactionState::decode(b"{\"version\":3}"), Err(StateError::NotAState));
    let good = CompactionState::new().encode();
    assert_eq!(CompactionState::decode(&good[..good.len() - 1]), Err(StateError::Corrupt));
    let mut other = good.clone();
    other[4] = 9;
    assert_eq!(CompactionState::decode(&other), Err(StateError::Version { found: 9 }));
    let mut longer = good;
    longer.push(0);
    assert_eq!(CompactionState::decode(&longer), Err(StateError::Corrupt));
}

#[test]
fn people_can_read_a_state() {
    let mut state = CompactionState::new();
    state.learn_window("endpoint/model", 32_768);
    let text = serde_json::to_string(&state).unwrap();
    assert!(text.contains("endpoint/model") && text.contains("32768"), "{text}");
    assert_eq!(serde_json::from_str::<CompactionState>(&text).unwrap(), state);
}

#[test]
fn the_beginning_of_a_session_alone_does_not_undo_it() {
    let policy = Policy::default();
    let mut session = Session::new(&policy, OwnedTranscript::default(), 6_000, Answers::Extractive);
    for turn in 0..30 {
        let id = format!("c{turn}");
        session.step([
            Entry::user(format!("question {turn}")),
            Entry::tool_call(id.clone(), "read", format!("{{\"n\":{turn}}}")),
            Entry::tool_result(id, "x ".repeat(900)),
        ]);
    }
    let state = session.compactor.state().clone();
    assert!(!state.notes().is_empty());
    // A request for a title: the first message once more, nothing else.
    let first = OwnedTranscript::from(session.transcript.entries()[..1].to_vec());
    let mut side = Compactor::resume(&policy, state.clone());
    assert_eq!(side.sync(&first), History::Beginning);
    assert_eq!(side.view().len(), 1);
    assert_eq!(side.state(), &state, "the session's state is left alone");
    // Rewound for good: the conversation goes on from there.
    let mut again = session.transcript.entries()[..1].to_vec();
    again.push(Entry::assistant("another answer"));
    side.sync(&OwnedTranscript::from(again));
    assert!(side.state().notes().is_empty());
}

/// A state from outside may say anything; a counter at its end stays there.
#[test]
fn counters_at_their_end_overflow_nowhere() {
    let policy = Policy::default();
    let mut session = Session::new(&policy, OwnedTranscript::default(), 6_000, Answers::Failing);
    for turn in 0..30 {
        session.step([Entry::user(format!("question {turn}")), Entry::assistant("x ".repeat(900))]);
    }
    let mut forged = serde_json::to_value(session.state()).unwrap();
    for counter in ["/epoch", "/turn", "/calibration/evidence", "/breaker/evidence", "/breaker/failed_at"] {
        *forged.pointer_mut(counter).unwrap() = u64::MAX.into();
    }
    let forged: CompactionState = serde_json::from_value(forged).unwrap();
    meet(&forged, &session.transcript);
    meet(&forged, &OwnedTranscript::from(session.transcript.entries()[..40].to_vec()));
    let mut compactor = Compactor::resume(&policy, forged);
    compactor.sync(&session.transcript);
    assert!(compactor.undo_all(&session.transcript));
    compactor.begin(
        &session.transcript,
        foreshorten_core::Turn { window: Some(6_000), can_summarize: true, ..Default::default() },
    );
    while let foreshorten_core::Step::Effect(_) = compactor.poll(&session.transcript) {
        compactor.handle_summary(&session.transcript, Err(Default::default()));
    }
    let _ = compactor.handle_usage(compactor.tokens());
}
