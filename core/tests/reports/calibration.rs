//! Reported: estimates that leave something out, and counts that are believed although they cannot be true.

use foreshorten_core::{
    CompactionState, Compactor, PolicyConfig,
    budget::{Mode, tail_start},
    estimate::{ByteEstimator, Ratio, Refused},
    transcript::{Columns, Entry, OwnedTranscript},
};
use foreshorten_testkit::{
    Answers,
    cases::{TRIGGER, a, built, filler, padded, r, s, session, summary, t10, u},
};

#[test]
fn b16_a_tail_is_measured_in_bytes_not_characters() {
    let bytes4 = ByteEstimator::BytesPer4;
    for n in [1, 3, 100, 1_001] {
        assert_eq!(bytes4.tokens(&"漢".repeat(n)) as usize, (3 * n).div_ceil(4));
        assert_eq!(bytes4.tokens(&"🙂".repeat(n)) as usize, n);
    }
    let message = |k: usize| match k % 2 {
        0 => Entry::user("漢字".repeat(50)),
        _ => Entry::assistant("かな".repeat(50)),
    };
    let transcript = OwnedTranscript::from((0..100).map(message).collect::<Vec<_>>());
    let policy = built(t10());
    let mut columns = Columns::new();
    for index in 0..100 {
        columns.push(&transcript, policy.config().weigher.entry(&transcript, index));
    }
    let tail = policy.budget(10_000, Mode::Proactive).tail;
    let start = tail_start(&columns, tail, |group| u64::from(columns.weight(columns.group_start(group))));
    assert_eq!(100 - start, 21, "1,600 tokens hold 21 messages of 75, and the one that crosses the line is left out");
    // And so it is in a session: all but the tail is covered when the target asks for it.
    let policy = built(PolicyConfig { compact_to: foreshorten_core::budget::Watermark::Tokens(1), ..t10() });
    let mut session = session(&policy, Answers::By(|_| summary(100)));
    session.step((0..100).map(message));
    assert_eq!(session.compactor.view().len(), 22, "a note and 21 messages");
}

#[test]
fn b19_arguments_and_schemas_are_counted() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::By(|_| summary(200)));
    session.turn.schema_tokens = 500;
    let arguments = padded("{\"content\":\"", 7_499);
    session.step([u(20), a(10), Entry::tool_call("w", "edit", arguments), r("w", 10)]);
    assert_eq!(session.outcome().tokens_after, 500 + 20 + 10 + 7_500 + 10, "30,000 bytes of arguments");
    session.turn.schema_tokens = 3_000;
    session.step([a(20)]);
    // Above usable now. Arguments cannot be cleared: what helps is a note over the pair once it is old.
    assert_eq!(session.outcome().tokens_before, 3_000 + 20 + 10 + 7_500 + 10 + 20, "schemas are added, as they stand");
    assert!(session.outcome().tokens_after < TRIGGER && !session.is_verbatim(2) && session.calls == 1);
    assert!(session.state().records().is_empty());
}

#[test]
fn b20_schemas_are_added_and_not_learned_as_a_factor() {
    let policy = built(PolicyConfig {
        context_window: Some(32_000),
        reserve_output_tokens: Some(2_000),
        weigher: t10().weigher,
        ..PolicyConfig::default()
    });
    let mut session = session(&policy, Answers::By(|_| summary(300)));
    session.turn.window = Some(32_000);
    session.turn.schema_tokens = 6_000;
    let (low, high) = (Ratio::of(95, 100), Ratio::of(105, 100));
    session.step([u(500)]);
    for turn in 0..80 {
        // The provider counts exactly: what the view weighs, and the schemas.
        let body: usize = session.compactor.ledger().view_raw() as usize;
        assert_eq!(session.compactor.handle_usage(body as u64 + 6_000), Ok(()));
        let ratio = session.state().calibration().ratio();
        assert!(ratio >= low && ratio <= high, "{ratio:?} at turn {turn}");
        session.step([u(100), a(387)]);
    }
    assert!(session.passes > 0);
}

#[test]
fn b20_a_stored_ratio_is_clamped_when_it_is_loaded() {
    let policy = built(t10());
    let mut seen = session(&policy, Answers::NoSummarizer);
    seen.step([s(1_000), u(1_000)]);
    seen.compactor.handle_usage(2_400).unwrap();
    let json = serde_json::to_value(seen.state()).unwrap();
    for bits in [0u64, 1, u64::from(u32::MAX), 50 << 16] {
        let mut stored = json.clone();
        stored["calibration"]["ratio"] = bits.into();
        let state: CompactionState = serde_json::from_value(stored).unwrap();
        let mut resumed = Compactor::resume(&policy, state);
        resumed.sync(&seen.transcript);
        let ratio = resumed.state().calibration().ratio();
        assert!(ratio >= Ratio::MIN && ratio <= Ratio::MAX, "{bits}: {ratio:?}");
        assert!((1_000..=5_000).contains(&resumed.tokens()), "{}", resumed.tokens());
    }
    for wrong in [serde_json::json!(-1), serde_json::json!(1.5), serde_json::json!("NaN"), serde_json::Value::Null] {
        let mut stored = json.clone();
        stored["calibration"]["ratio"] = wrong;
        assert!(serde_json::from_value::<CompactionState>(stored).is_err(), "what is no ratio is an error, no panic");
    }
}

#[test]
fn b23_a_count_after_a_silent_cut_teaches_nothing() {
    let policy = built(PolicyConfig { context_window: None, ..t10() });
    let mut blind = session(&policy, Answers::By(|_| summary(200)));
    blind.turn.window = None;
    blind.step(filler(12_000));
    for _ in 0..10 {
        assert_eq!(blind.compactor.handle_usage(5_001), Err(Refused::Truncated));
        assert_eq!(blind.state().calibration().ratio(), Ratio::ONE);
        let before = blind.compactor.tokens();
        blind.step([u(20)]);
        assert_eq!(blind.compactor.tokens(), before + 20, "never below the bytes");
    }
    let policy = built(t10());
    let mut known = session(&policy, Answers::By(|_| summary(200)));
    for _ in 0..12 {
        known.step(filler(1_000));
        assert!(known.outcome().tokens_after <= 8_000, "with a window there is nothing to cut");
    }
}
