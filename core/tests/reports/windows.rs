//! Reported: windows read where none was named, not read where one was, and budgets of nothing.

use foreshorten_core::{
    CompactionState, PolicyConfig,
    budget::Watermark,
    overflow::{ErrorClass, explain},
    transcript::Entry,
};
use foreshorten_testkit::{
    Answers,
    cases::{a, built, filler, padded, r, s, session, summary, t10, u},
};

fn with_window(window: u64, reserve: Option<u64>) -> PolicyConfig {
    PolicyConfig {
        context_window: Some(window),
        reserve_output_tokens: reserve,
        weigher: t10().weigher,
        ..PolicyConfig::default()
    }
}

#[test]
fn b22_a_window_the_endpoint_names_caps_the_configured_one() {
    let policy = built(with_window(65_536, Some(16_384)));
    let mut session = session(&policy, Answers::By(|_| summary(200)));
    session.turn.window = Some(65_536);
    session.step([vec![s(200)], filler(9_000)].concat());
    session.turn.overflow = true;
    session.turn.reported_window = Some(8_192);
    session.run();
    for turn in 0..20 {
        let budget = session.outcome().budget.unwrap();
        assert_eq!((budget.window, budget.reserve, budget.usable), (8_192, 4_096, 4_096), "turn {turn}");
        assert!(budget.tail <= budget.usable / 5 && budget.trigger <= budget.usable);
        assert!(session.outcome().tokens_after <= 4_096);
        match turn {
            5 => session.restart(),
            // A larger listing does not raise it.
            10 => session.turn.window = Some(262_144),
            _ => {}
        }
        session.step([u(100), a(200)]);
    }
}

#[test]
fn b25_an_output_cap_is_not_a_window() {
    let found = explain(Some(400), "max_tokens cannot exceed the configured model output limit of 16500");
    assert_eq!((found.class, found.window), (ErrorClass::OutputCap, None));
    assert!(!found.is_overflow());
    let policy = built(with_window(200_000, Some(16_384)));
    let mut session = session(&policy, Answers::NoSummarizer);
    session.turn.window = Some(200_000);
    // A host that passes on what was found passes on nothing.
    session.turn.reported_window = found.window;
    session.step([u(40)]);
    assert_eq!(session.outcome().budget.unwrap().usable, 183_616);
    assert!(session.state().windows().is_empty());
    // Were it learned all the same, usable would be halved and not 116.
    session.turn.reported_window = Some(16_500);
    session.step([u(40)]);
    assert_eq!(session.outcome().budget.unwrap().usable, 8_250);
}

#[test]
fn b28_a_tier_is_no_window_and_a_session_may_still_be_smaller() {
    for (status, text) in [
        (429, "Extra usage is required for long context requests"),
        (400, "The long context beta is not yet available for this subscription"),
    ] {
        let found = explain(Some(status), text);
        assert_eq!((found.class, found.window), (ErrorClass::Tier, None), "{text}");
    }
    // What a host resolves for this session alone is a fact of the turn: it holds, and it is not stored.
    let policy = built(PolicyConfig { context_window: None, ..t10() });
    let mut session = session(&policy, Answers::NoSummarizer);
    session.turn.window = Some(200_000);
    session.step([u(40)]);
    session.turn.window = Some(20_000);
    session.step([u(40)]);
    assert_eq!(session.outcome().budget.unwrap().window, 20_000);
    let stored = CompactionState::decode(&session.state().encode()).unwrap();
    assert!(stored.windows().is_empty());
    session.restart();
    session.turn.window = Some(200_000);
    session.step([u(40)]);
    assert_eq!(session.outcome().budget.unwrap().window, 200_000);
}

#[test]
fn b29_talk_about_overflow_is_not_an_overflow() {
    let prose = "the API said the maximum context length is 4096 tokens, so I split the file. prompt is too long";
    assert_eq!(explain(Some(200), prose).class, ErrorClass::None, "only the error channel is read");
    let policy = built(t10());
    let mut session = session(&policy, Answers::By(|request| summary(100 + request.text.len() / 1_000)));
    let call = Entry::tool_call("e", "bash", padded(prose, 100));
    session.step([s(50), Entry::user(prose), Entry::assistant(prose), call, Entry::tool_result("e", prose)]);
    for _ in 0..10 {
        session.step([vec![Entry::user(prose), Entry::assistant(prose)], filler(1_000)].concat());
        assert_eq!(session.outcome().budget.unwrap().window, 10_000);
        assert!(session.outcome().notice.as_ref().is_none_or(|notice| !notice.aggressive));
    }
    assert!(session.calls > 0 && session.state().windows().is_empty());
}

#[test]
fn b31_the_limit_is_read_exactly() {
    for (text, window) in [
        ("the input token count (1190321) exceeds the maximum number of tokens allowed (1048575).", 1_048_575),
        ("The input token count exceeds the maximum number of tokens allowed 1040000.", 1_040_000),
        ("Unable to submit request because the input token count is 33125 but model only supports up to 33000", 33_000),
        (
            "The maximum context length of Some-Model-V3-0324 is 33000. However, answering your request will take 39800 tokens",
            33_000,
        ),
        ("request (66300 tokens) exceeds the available context size (65600 tokens), try increasing it", 65_600),
        ("Prompt exceeds 200,500 token limit (200,549 tokens)", 200_500),
        ("prompt is too long: 300,017 tokens > 272,500 maximum", 272_500),
    ] {
        let found = explain(Some(400), text);
        assert!(found.is_overflow(), "{text}");
        assert_eq!(found.window, Some(window), "{text}");
        // What was read is what is learned, for this scope and no other.
        let policy = built(PolicyConfig { context_window: None, ..t10() });
        let mut session = session(&policy, Answers::NoSummarizer);
        session.turn.window = None;
        session.turn.overflow = true;
        session.turn.reported_window = found.window;
        session.step([u(20)]);
        assert_eq!(session.state().learned_window("test/model"), Some(window));
        assert_eq!(session.state().learned_window("other/model"), None);
    }
}

#[test]
fn b69_a_reserve_larger_than_the_window_is_refused_or_clamped_never_nothing() {
    let field = |config: PolicyConfig| config.build().map_err(|error| error.field).err();
    for (window, reserve) in [(16_000, 32_000), (8_192, 16_384), (4_096, 4_096)] {
        assert_eq!(field(with_window(window, Some(reserve))), Some("reserve_output_tokens"), "{window}/{reserve}");
        assert_eq!(field(with_window(window, None)), None, "the default reserve is clamped");
    }
    for window in [0, 1, 255] {
        assert_eq!(field(with_window(window, None)), Some("context_window"));
    }
    let full = || with_window(116_384, Some(16_384));
    let marks = |at, to| PolicyConfig { compact_at: at, compact_to: to, ..full() };
    let (tokens, points) = (Watermark::Tokens, Watermark::BasisPoints);
    assert_eq!(field(marks(tokens(150_000), tokens(100))), Some("compact_at"));
    assert_eq!(field(marks(tokens(50_000), tokens(50_000))), Some("compact_to"));
    assert_eq!(field(marks(tokens(50_000), points(9_000))), Some("compact_to"));
    assert_eq!(field(marks(points(0), points(1))), Some("compact_at"));
    assert_eq!(field(marks(points(15_000), points(1))), Some("compact_at"));
    assert_eq!(field(PolicyConfig { keep_recent_tokens: Some(100_000), ..full() }), Some("keep_recent_tokens"));
    for text in ["0", "1.5", "NaN", "nan", "inf", "-0.5"] {
        assert_eq!(Watermark::parse(text), None, "{text}");
    }
    assert_eq!(Watermark::parse("1.0"), Some(points(10_000)));

    // Learned later: clamped, said in the outcome's budget, and protection goes on without a pass a turn.
    for (window, reserve) in [(16_000, 32_000), (8_192, 16_384), (4_096, 4_096), (300, 16_384)] {
        let policy = built(PolicyConfig { context_window: None, ..with_window(1_000_000, Some(reserve)) });
        let mut session = session(&policy, Answers::By(|_| summary(80)));
        session.turn.window = None;
        session.turn.overflow = true;
        session.turn.reported_window = Some(window);
        session.step([u(20)]);
        for _ in 0..40 {
            session.step([u(10), a(20), foreshorten_testkit::cases::c("x", 10), r("x", 20)]);
            let budget = session.outcome().budget.unwrap();
            assert_eq!((budget.window, budget.reserve), (window, window / 2));
            assert!(session.outcome().tokens_after <= budget.usable);
        }
        // Sixty new tokens a turn: in a window of 300 every other turn is full again.
        let most = if window > 4_000 { 4 } else { 40 };
        assert!(session.passes <= most, "{} passes in 40 turns", session.passes);
    }
}
