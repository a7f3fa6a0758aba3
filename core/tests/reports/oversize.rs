//! Reported: one result, one batch of images or one span larger than anything that has to take it in.

use foreshorten_core::{
    PolicyConfig,
    budget::Watermark,
    plan::Level,
    transcript::{Entry, Part},
};
use foreshorten_testkit::{
    Answers,
    cases::{USABLE, a, built, c, padded, pair, r, s, session, summary, t10, text, u},
};

#[test]
fn b13_a_huge_result_never_wedges_a_session() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::By(|_| summary(200)));
    session.step([u(20), c("g", 20), r("g", 62_500)]);
    // The row lets the error surface here; by design (I8) the result is cut to fit, said as a last resort.
    let notice = session.outcome().notice.clone().unwrap();
    assert!(notice.last_resort && session.outcome().tokens_after <= USABLE);
    assert_eq!(session.calls, 0, "no summarizer is sent what would not fit");
    session.step([a(20), u(20)]);
    assert!(session.outcome().tokens_after <= USABLE);
    // What a summarizer gets now is the cut result, bounded.
    assert!(session.requests.iter().all(|request| request.text.len() <= 4 * 4_100), "{:?}", session.requests);
}

#[test]
fn b13_without_a_known_window_the_old_result_is_offloaded_before_anything_else() {
    let policy = built(PolicyConfig { context_window: None, ..t10() });
    let mut session = session(&policy, Answers::By(|_| summary(200)));
    session.turn.window = None;
    session.step([u(20), c("g", 20), r("g", 62_500)]);
    assert_eq!(session.level(2), Level::Verbatim, "no window is known, nothing is due");
    session.step([a(20), u(20)]);
    session.turn.overflow = true;
    session.run();
    assert_eq!(session.level(2), Level::Preview);
    assert_eq!(session.outcome().retry, Some(true));
    assert!(session.outcome().tokens_after < 10_000, "one step was enough");
    assert_eq!(session.calls, 0);
}

#[test]
fn b14_a_prompt_that_cannot_shrink_is_not_tried_again() {
    // Nothing old and nothing that could be cut: the newest message alone is too large.
    let policy = built(t10());
    let mut stuck = session(&policy, Answers::Extractive);
    stuck.turn.overflow = true;
    stuck.step([s(500), u(9_420)]);
    let outcome = stuck.outcome();
    assert_eq!((outcome.retry, outcome.compacted), (Some(false), false));
    assert_eq!(stuck.calls, 0);
    let cannot = outcome.cannot_fit.unwrap();
    assert_eq!((cannot.largest(), cannot.over), ("the newest messages", 1_920));

    // A result can be cut (design, I8): one pass, no summary, a legal view, and nothing more to do afterwards.
    let mut cut = session(&policy, Answers::Extractive);
    cut.turn.overflow = true;
    cut.step([s(500), u(20), c("a", 20), r("a", 9_400)]);
    assert_eq!((cut.outcome().retry, cut.calls, cut.passes), (Some(true), 0, 1));
    assert!(cut.outcome().tokens_after <= USABLE);
    cut.run();
    assert_eq!(cut.passes, 1, "not tried again and again");
}

#[test]
fn b26_a_fresh_session_rejected_for_its_output_request_is_left_alone() {
    for (text, window) in [
        (
            "maximum context length is 5001 tokens, however you requested 5182 tokens (182 in your prompt; 5000 for the completion)",
            Some(5_001),
        ),
        (
            "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 40 `inputs` tokens and 4096 `max_new_tokens`",
            Some(4_096),
        ),
    ] {
        let found = foreshorten_core::overflow::explain(Some(400), text);
        assert_eq!(found.window, window, "{text}");
        let policy = built(t10());
        let mut session = session(&policy, Answers::Extractive);
        session.turn.overflow = true;
        session.turn.reported_window = found.window;
        session.step([u(40)]);
        let outcome = session.outcome();
        assert_eq!((outcome.retry, outcome.compacted, session.calls), (Some(false), false, 0));
        let quiet = |notice: &foreshorten_core::CompactionNotice| !notice.decided.any() && notice.reasons.is_empty();
        assert!(outcome.notice.as_ref().is_none_or(quiet), "no success is claimed");
        assert_eq!(session.state().learned_window("test/model"), window, "the window it names may be learned");
    }
}

#[test]
fn b50_images_in_results_are_cleared_and_never_summarized() {
    let policy = built(PolicyConfig {
        context_window: Some(80_000),
        compact_at: PolicyConfig::default().compact_at,
        compact_to: PolicyConfig::default().compact_to,
        keep_recent_tokens: None,
        ..t10()
    });
    let mut session = session(&policy, Answers::By(|_| summary(300)));
    session.turn.window = Some(80_000);
    let shot = |k: usize| {
        let id = format!("shot{k}");
        let image = Part::Image("image/png".into(), format!("payload{k} ").repeat(10_000).into_bytes());
        [c(&id, 20), Entry::tool_result(id, text(10)).with(image)]
    };
    let mut entries: Vec<Entry> = vec![u(30)];
    entries.extend((0..42).flat_map(shot));
    entries.push(u(20));
    session.step(entries);
    let outcome = session.outcome();
    assert_eq!(outcome.tokens_before, 50 + 42 * 1_630, "a flat price, never the payload's size");
    assert!(outcome.compacted && outcome.tokens_after <= 46_800, "{}", outcome.tokens_after);
    assert!(session.level(2) >= Level::Preview, "the oldest screenshot gave way");
    let marker = session.view()[2].clone();
    assert!(marker.contains("to save context") && !marker.contains("payload"), "{marker}");
    assert_eq!(session.calls, 0, "that was enough");
    // Now one where a summary is needed: there is no image in what the summarizer gets.
    session.step((0..60).flat_map(|_| [u(200), a(600)]));
    session.turn.manual = true;
    session.run();
    assert!(session.calls > 0);
    assert!(session.requests.iter().all(|request| !request.text.contains("payload")));
}

#[test]
fn b54_what_a_summarizer_is_sent_fits_its_window() {
    for learned in [None, Some(2_000)] {
        for answers in [Answers::By(|request| summary(60 + request.text.len() / 400)), Answers::Overflowing] {
            let policy = built(t10());
            let mut session = session(&policy, answers);
            let mut entries = vec![s(50), u(100)];
            for k in 0..40 {
                entries.extend([u(2_000), Entry::reasoning(text(4_000))]);
                entries.extend(pair(&format!("p{k}"), 2_000, 2_000));
            }
            entries.push(u(20));
            session.turn.overflow = learned.is_some();
            session.turn.reported_window = learned;
            let window = learned.unwrap_or(10_000);
            session.step(entries);
            for turn in 0..3 {
                let asked = std::mem::take(&mut session.requests);
                assert!(asked.len() <= 4, "a small fixed bound, turn {turn}: {}", asked.len());
                for request in asked {
                    let prompt =
                        foreshorten_core::summary::summary_prompt(request.prior.as_deref(), &request.text, None);
                    let instructions = foreshorten_core::summary::SUMMARY_SYSTEM_PROMPT.len();
                    let input = (prompt.len() + instructions) as u64 / 4;
                    assert!(input + request.max_output_tokens <= window, "{input} of {window}");
                }
                assert!(session.outcome().tokens_after <= session.outcome().budget.unwrap().usable);
                session.step([u(20), a(20)]);
            }
        }
    }
}

#[test]
fn b17_dense_text_is_offloaded_by_its_length_and_the_reactive_path_ends_in_one_step() {
    // 40,000 characters of base64: 10,000 by bytes, 40,000 in truth.
    let base64 = padded("QUJD", 10_000).replace(' ', "/");
    let start = || {
        let mut entries = vec![u(50), c("blob", 20), Entry::tool_result("blob", base64.clone())];
        entries.extend((0..6).flat_map(|k| pair(&format!("p{k}"), 20, 600)));
        entries.extend([a(50), u(20)]);
        entries
    };
    let real = |view: &[String]| -> u64 {
        view.iter().map(|piece| if piece.contains(&base64) { 40_000 } else { piece.len() as u64 / 4 }).sum()
    };
    // The window is known, and a count says that the view is full.
    let (compact_at, compact_to) = (Watermark::Tokens(40_000), Watermark::Tokens(30_000));
    let policy = built(PolicyConfig { context_window: Some(60_000), compact_at, compact_to, ..t10() });
    let mut known = session(&policy, Answers::NoSummarizer);
    known.turn.window = Some(60_000);
    known.step(start());
    let _ = known.compactor.handle_usage(real(known.view()));
    let ratio = known.state().calibration().ratio();
    assert!(ratio > foreshorten_core::estimate::Ratio::ONE && ratio <= foreshorten_core::estimate::Ratio::MAX);
    known.step([a(20), u(20)]);
    assert_eq!(known.level(2), Level::Preview);

    // It is not known, and the provider rejects at 20,000.
    let policy = built(PolicyConfig { context_window: None, ..t10() });
    let mut unknown = session(&policy, Answers::NoSummarizer);
    unknown.turn.window = None;
    unknown.step(start());
    assert!(real(unknown.view()) > 20_000);
    unknown.turn.overflow = true;
    unknown.run();
    assert!(unknown.outcome().retry == Some(true) && real(unknown.view()) <= 20_000, "{}", real(unknown.view()));
}
