//! Weaknesses of the reference system, group B: planning and the reactive path.

use foreshorten_core::{
    PipelineStage, Policy, PolicyConfig,
    budget::{Mode, Watermark},
    overflow::{ErrorClass, explain},
    plan::{ClipToolArguments, DropOldImages, Level, OffloadToolResults},
    state::HALF_OPEN_AFTER_TURNS,
    transcript::{Entry, Part},
};
use foreshorten_testkit::{
    Answers, Session,
    cases::{a, built, c, chat, filler, padded, pair, r, s, session, summary, summary_text, t10, u},
};

/// The seeds' watermarks in a window of that size.
fn window(window: u64, reserve: u64) -> PolicyConfig {
    PolicyConfig {
        context_window: Some(window),
        reserve_output_tokens: Some(reserve),
        compact_at: PolicyConfig::default().compact_at,
        compact_to: PolicyConfig::default().compact_to,
        keep_recent_tokens: None,
        ..t10()
    }
}

fn in_window(policy: &Policy, answers: Answers, tokens: u64) -> Session<'_> {
    let mut session = session(policy, answers);
    session.turn.window = Some(tokens);
    session
}

#[test]
fn b1_the_window_a_rejection_names_is_the_budget_at_once_and_for_good() {
    let policy = built(window(400_000, 16_384));
    let mut session = in_window(&policy, Answers::By(|_| summary(400)), 400_000);
    session.step([vec![s(500), u(200)], filler(256_000)].concat());
    session.turn.overflow = true;
    session.turn.reported_window = Some(32_768);
    session.run();
    assert!(session.outcome().tokens_after <= 16_384, "{}", session.outcome().tokens_after);
    assert_eq!(session.outcome().retry, Some(true));
    // Even when the pass never ends, the fact is in the state.
    let mut cut = in_window(&policy, Answers::NoSummarizer, 400_000);
    cut.step(filler(256_000));
    let turn =
        foreshorten_core::Turn { overflow: true, reported_window: Some(32_768), can_summarize: true, ..cut.turn };
    cut.compactor.sync(&cut.transcript);
    cut.compactor.begin(&cut.transcript, turn);
    assert_eq!(cut.state().learned_window("test/model"), Some(32_768));
}

#[test]
fn b2_a_parallel_batch_that_is_too_large_is_cut_and_the_request_stays() {
    for overflow in [false, true] {
        let policy = built(window(64_000, 16_000));
        let mut session = in_window(&policy, Answers::By(|_| summary(300)), 64_000);
        session.step([vec![s(500)], filler(4_000)].concat());
        let request = session.transcript.entries().len();
        let mut batch = vec![u(300)];
        batch.extend((0..5).map(|k| c(&format!("p{k}"), 30)));
        batch.extend((0..5).map(|k| r(&format!("p{k}"), 40_000)));
        session.turn.overflow = overflow;
        session.step(batch);
        assert!(session.outcome().tokens_after <= 48_000 && session.outcome().tokens_before > 200_000);
        assert!(session.is_verbatim(request));
        // All five are cut alike, and each still shows its beginning and end.
        for k in 0..5 {
            assert_eq!(session.level(request + 6 + k), Level::Preview);
        }
    }
}

#[test]
fn b2_what_did_not_help_is_rolled_back() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::By(|_| summary(100)));
    session.step([vec![s(6_000), u(40)], chat(2, 60, 60), vec![u(30)]].concat());
    let before = session.view().to_vec();
    session.turn.overflow = true;
    session.run();
    assert_eq!(session.outcome().retry, Some(false));
    assert!(session.view() == before && session.state().notes().is_empty());
}

#[test]
fn b3_clearing_never_grows_a_view() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::NoSummarizer);
    let mut entries = vec![s(100), u(50)];
    (0..400).for_each(|k| entries.extend([c(&format!("k{k}"), 12), Entry::tool_result(format!("k{k}"), "ok")]));
    session.turn.overflow = true;
    session.step(entries);
    assert!(session.outcome().tokens_after < session.outcome().tokens_before);
    assert!(session.state().records().is_empty(), "a marker is longer than two characters");
}

#[test]
fn b4_a_summary_longer_than_what_it_covers_is_refused() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::By(|_| summary(1_990)));
    session.turn.overflow = true;
    session.step([vec![s(100), u(50)], chat(10, 40, 40)].concat());
    assert!(session.calls > 0);
    assert!(session.outcome().tokens_after <= session.outcome().tokens_before);
    assert!(session.state().notes().iter().all(|note| note.summary.text.is_empty()));
}

#[test]
fn b5_a_preview_larger_than_the_result_is_refused() {
    let offload = OffloadToolResults { min_chars: 4_000, keep_last: 0, preview_chars: 10_000 };
    let policy = built(PolicyConfig { stages: vec![PipelineStage::plan(offload)], ..t10() });
    let mut session = session(&policy, Answers::NoSummarizer);
    let mut entries = vec![s(100), u(50)];
    (0..7).for_each(|k| entries.extend(pair(&format!("m{k}"), 20, 1_020)));
    session.step(entries);
    assert!(session.outcome().tokens_before > 6_800 && session.outcome().refused > 0);
    assert!(session.state().records().is_empty());
    assert_eq!(session.outcome().tokens_after, session.outcome().tokens_before);
}

#[test]
fn b6_three_failures_are_not_the_end_of_summaries() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::Failing);
    session.step([vec![s(100), u(50)], filler(6_700)].concat());
    for _ in 0..20 {
        session.step(filler(250));
        assert!(session.outcome().tokens_after <= 8_000, "and the view fits all the while");
    }
    assert!(session.state().breaker().failures() >= 3);
    session.answer(Answers::By(|_| summary(300)));
    let mut turns = 0;
    while session.state().breaker().failures() > 0 {
        session.step(filler(500));
        turns += 1;
        assert!(turns <= 2 * HALF_OPEN_AFTER_TURNS, "the summarizer is well again, and is asked again");
    }
    assert!(session.state().notes().iter().any(|note| !note.summary.text.is_empty()));
}

#[test]
fn b7_a_giant_user_message_is_named_while_it_is_the_newest_and_gives_way_when_it_is_old() {
    for answers in [Answers::Failing, Answers::NoSummarizer, Answers::By(|_| summary(400))] {
        let policy = built(window(32_000, 16_000));
        let mut session = in_window(&policy, answers, 32_000);
        session.step([s(200), u(100_000)]);
        let cannot = session.outcome().cannot_fit.unwrap();
        assert_eq!(cannot.largest(), "the newest messages", "{cannot:?}");
        assert_eq!(session.calls, 0);
        session.step([a(50), u(50)]);
        for _ in 0..5 {
            assert!(session.outcome().tokens_after <= 16_000, "not stuck: {}", session.outcome().tokens_after);
            assert!(session.requests.iter().all(|request| request.text.len() < 4 * 8_100), "no chunk of 100,000");
            session.step([a(50), u(50)]);
        }
    }
}

#[test]
fn b8_a_summarizer_that_overflows_is_sent_half() {
    // The summarizer's window is not known; it takes 1,500 tokens.
    let policy = built(PolicyConfig { context_window: None, ..t10() });
    let mut session = session(
        &policy,
        Answers::By(|request| match request.text.len() {
            0..6_000 => Ok(foreshorten_core::SummaryReply { text: summary_text(100), ..Default::default() }),
            _ => Err(foreshorten_core::SummaryFailure::Overflow),
        }),
    );
    session.step([vec![s(100), u(50)], filler(7_500)].concat());
    let sizes: Vec<usize> = session.requests.iter().map(|request| request.text.len()).collect();
    assert!(sizes.len() <= 4 && sizes[0] > 12_000, "{sizes:?}");
    assert!(sizes[1] < sizes[0] * 6 / 10 && sizes[2] < sizes[1] * 6 / 10, "halved: {sizes:?}");
    assert!(session.state().notes().iter().any(|note| !note.summary.text.is_empty()), "and then it works");
    assert_eq!(session.state().breaker().failures(), 0);
}

#[test]
fn b9_a_summary_that_grows_too_long_does_not_let_the_view_run_away() {
    let policy = built(window(40_000, 8_000));
    let mut session = in_window(
        &policy,
        Answers::By(|request| match request.prior.as_deref() {
            None => summary(4_000),
            Some(prior) => summary(prior.len() / 2),
        }),
        40_000,
    );
    session.step([s(500), u(100)]);
    for _ in 0..100 {
        session.step(filler(2_000));
        assert!(session.outcome().tokens_after <= 32_000, "{}", session.outcome().tokens_after);
    }
    assert!(session.state().notes().iter().all(|note| note.summary.text.len() <= 16_000));
}

#[test]
fn b10_a_summary_folds_to_half_of_the_target_and_no_further() {
    let policy = built(window(40_000, 8_000));
    let mut session = in_window(&policy, Answers::By(|_| summary(600)), 40_000);
    session.step([vec![s(500), u(100)], filler(26_900)].concat());
    let outcome = session.outcome();
    assert!(outcome.compacted && outcome.tokens_after <= 19_200);
    // The prefix breaks at the front, so it is worth going deeper than the target; as deep as the tail it is not.
    assert!(outcome.tokens_after >= 9_000, "half of 0.60, not 0.20: {}", outcome.tokens_after);
}

#[test]
fn b11_large_call_arguments_have_a_cheap_stage() {
    let start = |session: &mut Session<'_>| {
        let mut entries = vec![s(100), u(50)];
        for k in 0..12 {
            let id = format!("w{k}");
            let arguments = padded("{\"path\":\"a\",\"content\":\"", 5_000);
            entries.extend([Entry::tool_call(&id, "edit", arguments), r(&id, 10)]);
        }
        session.step(entries);
    };
    let stages = || vec![PipelineStage::plan(ClipToolArguments::default())];
    let policy = built(PolicyConfig { stages: stages(), ..window(64_000, 4_000) });
    let mut clipped = in_window(&policy, Answers::NoSummarizer, 64_000);
    start(&mut clipped);
    let outcome = clipped.outcome();
    assert!(outcome.tokens_before > 60_000 && outcome.tokens_after <= 36_000, "{}", outcome.tokens_after);
    assert_eq!((clipped.level(2), clipped.notes().len()), (Level::Elided, 0));
    // Without it the summary takes them.
    let policy = built(window(64_000, 4_000));
    let mut summarized = in_window(&policy, Answers::By(|_| summary(500)), 64_000);
    start(&mut summarized);
    assert!(summarized.outcome().tokens_after <= 51_000, "{}", summarized.outcome().tokens_after);
}

#[test]
fn b12_old_user_images_can_go() {
    let policy =
        built(PolicyConfig { stages: vec![PipelineStage::plan(DropOldImages::default())], ..window(64_000, 4_000) });
    let mut session = in_window(&policy, Answers::NoSummarizer, 64_000);
    let shot = |k: usize| Entry::user(format!("see {k}")).with(Part::Image("image/png".into(), vec![k as u8; 99]));
    session.step([vec![s(100)], (0..40).flat_map(|k| [shot(k), a(10)]).collect()].concat());
    let outcome = session.outcome();
    assert!(outcome.tokens_before > 64_000 && outcome.tokens_after <= 36_000, "{}", outcome.tokens_after);
    assert_eq!(session.level(1), Level::Elided);
    assert!(session.view()[1].contains("see 0"), "the text beside it stays");
    assert!(session.notes().is_empty());
}

#[test]
fn b13_a_preview_is_cleared_later() {
    let policy = built(window(20_000, 4_000));
    let mut session = in_window(&policy, Answers::NoSummarizer, 20_000);
    session.step([s(100), u(50)]);
    let mut previews = 0;
    for k in 0..157 {
        session.step(pair(&format!("p{k}"), 12, 1_100));
        previews = previews.max((0..=k).filter(|k| session.level(3 + 2 * k) == Level::Preview).count());
        assert!(session.outcome().tokens_after <= 16_000);
    }
    assert!(previews > 5, "{previews}");
    assert!(session.level(3) > Level::Preview, "{:?}", session.level(3));
}

#[test]
fn b14_a_floor_near_the_trigger_is_not_chased_every_turn() {
    let policy = built(window(48_000, 8_000));
    let mut session = in_window(&policy, Answers::By(|_| summary(300)), 48_000);
    session.step([s(27_500), u(50)]);
    let (mut last, mut in_a_row) = (0, 0);
    for turn in 0..80 {
        let before = session.passes;
        session.step(pair(&format!("t{turn}"), 30, 770));
        in_a_row = if session.passes > before && last + 1 == turn { in_a_row + 1 } else { 0 };
        if session.passes > before {
            last = turn;
        }
        assert_eq!(in_a_row, 0, "two turns in a row, at {turn}");
    }
    assert!(session.passes <= 20, "{} of 80 turns", session.passes);
}

#[test]
fn b15_schemas_that_fill_the_window_are_a_typed_outcome() {
    let policy = built(window(50_000, 16_384));
    let mut session = in_window(&policy, Answers::By(|_| summary(300)), 50_000);
    session.turn.schema_tokens = 30_000;
    let (mut notices, mut named) = (0, 0);
    for turn in 0..60 {
        session.step([u(40), a(140)]);
        notices += usize::from(session.outcome().notice.as_ref().is_some_and(|notice| notice.reasons.is_empty()));
        named += usize::from(session.outcome().cannot_fit.is_some());
        assert!(session.outcome().tokens_after <= 33_616, "turn {turn}");
    }
    assert_eq!(named, 0, "it fits, so nothing is said not to");
    assert!(notices <= 1 && session.passes <= 20, "{notices} notices, {} passes", session.passes);
    session.turn.schema_tokens = 34_000;
    session.step([u(40)]);
    let cannot = session.outcome().cannot_fit.unwrap();
    assert_eq!(cannot.largest(), "the tool schemas");
    assert!(cannot.over > 0 && cannot.tools == 34_000);
}

#[test]
fn b16_a_rate_limit_with_status_413_is_no_overflow() {
    let text = "Request too large for model m on tokens per minute (TPM): Limit 8100, Requested 12000";
    for status in [413, 429, 400] {
        let found = explain(Some(status), text);
        assert_eq!((found.class, found.window, found.is_overflow()), (ErrorClass::Rate, None, false));
    }
}

#[test]
fn b17_watermarks_beyond_the_window_are_refused_or_keep_a_gap() {
    let marks = |at, to, window| {
        let config = PolicyConfig { context_window: window, compact_at: at, compact_to: to, ..PolicyConfig::default() };
        config.build().map_err(|error| error.field).err()
    };
    let (tokens, points) = (Watermark::Tokens, Watermark::BasisPoints);
    assert_eq!(marks(tokens(500_000), tokens(400_000), Some(100_000)), Some("compact_at"));
    assert_eq!(marks(tokens(1), tokens(1), None), Some("compact_to"));
    assert_eq!(marks(points(5_000), tokens(150_000), Some(100_000)), Some("compact_to"));
    // The window is found later: the gap stays.
    let config = PolicyConfig { compact_at: tokens(500_000), compact_to: tokens(400_000), ..window(600_000, 16_384) };
    let policy = built(PolicyConfig { context_window: None, ..config });
    let budget = policy.budget(100_000, Mode::Proactive);
    assert!(budget.trigger - budget.target >= budget.usable / 20, "{budget:?}");
    let mut session = in_window(&policy, Answers::By(|_| summary(500)), 100_000);
    session.step([s(500), u(100)]);
    (0..120).for_each(|_| session.step(filler(2_000)));
    assert!(session.passes <= 40, "{} bursts in 120 turns", session.passes);
}

#[test]
fn b18_there_is_no_cliff_where_the_window_passes_the_reserve() {
    let policy = built(PolicyConfig { context_window: None, ..PolicyConfig::default() });
    for window in [8_192, 16_384, 16_385, 17_000, 20_000, 32_768, 32_769] {
        let budget = policy.budget(window, Mode::Proactive);
        assert!(budget.usable >= window / 2, "{budget:?}");
    }
    let mut session = in_window(&policy, Answers::By(|_| summary(200)), 16_385);
    (0..30).for_each(|_| session.step(filler(1_000)));
    assert!(session.passes > 0 && session.state().notes().iter().any(|note| !note.summary.text.is_empty()));
    assert_eq!(session.state().breaker().failures(), 0, "no summary is too long for a window of nothing");
}

#[test]
fn b20_every_rejection_may_shrink_the_view_once_more() {
    // No window is known and none is named: each rejection is an answer, and each try is meaningfully smaller.
    let policy = built(PolicyConfig { context_window: None, ..t10() });
    let mut session = session(&policy, Answers::NoSummarizer);
    session.turn.window = None;
    let mut entries = vec![s(100), u(50)];
    (0..80).for_each(|k| entries.extend(pair(&format!("p{k}"), 60, 600)));
    session.step(entries);
    let (mut tries, mut last) = (0, session.outcome().tokens_after);
    loop {
        session.turn.overflow = true;
        session.run();
        if session.outcome().retry != Some(true) {
            break;
        }
        assert!(session.outcome().tokens_after * 100 < last * 95);
        last = session.outcome().tokens_after;
        tries += 1;
        assert!(tries < 12, "the tries end");
    }
    assert!(tries >= 2 && last < 3_000, "{tries} tries down to {last}");
}
