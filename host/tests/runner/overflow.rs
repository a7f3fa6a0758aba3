//! Prompts that are turned down, windows that are learned, and counts that cannot be true.

#![allow(clippy::unwrap_used, reason = "helpers of tests are test code")]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::model::{Model, Reads, worker};
use foreshorten::context::{Compaction, NoopContextPolicy};
use foreshorten::provider::{ProviderError, Settings};
use foreshorten::record::Message;
use foreshorten::runner::{Agent, Event, RunError, Runner};
use foreshorten::session::MemorySessions;
use foreshorten::window::{WindowResolver, WindowSource};
use foreshorten_core::transcript::Transcript as _;

fn agent(model: &Arc<Model>) -> Agent {
    Agent::new(model.clone(), "m").system("You read files.").tool(Arc::new(Reads { bytes: 4_000 }))
}

#[tokio::test]
async fn a_window_that_is_enforced_and_not_announced_costs_one_request_in_the_life_of_a_session() {
    let model = Arc::new(Model::new(worker(6)).windowed(24_000));
    let store = Arc::new(MemorySessions::default());
    let agent = agent(&model);
    for restart in 0..4 {
        // Another process: nothing is shared but the store.
        let runner = Runner::new().sessions(store.clone());
        let mut session = runner.open("s").await.unwrap();
        for task in 0..3 {
            let outcome =
                runner.run(&agent, &mut session, Message::user(format!("task {restart}.{task}"))).await.unwrap();
            assert!(outcome.text.starts_with("done"), "{outcome:?}");
        }
    }
    assert_eq!(model.refused(), 1, "one failed request");
    assert!(model.turns().len() > 80);
}

#[tokio::test]
async fn an_endpoint_that_keeps_naming_smaller_windows_is_followed_within_a_bound() {
    let model = Arc::new(Model::new(worker(40)).windowed(200_000));
    let runner = Runner::new().windows(Arc::new(WindowResolver::new().configured(200_000)));
    let agent = agent(&model);
    let mut session = runner.open("s").await.unwrap();
    runner.run(&agent, &mut session, Message::user("fill it")).await.unwrap();
    let mut turned_down = 0;
    for window in [64_000, 32_000, 16_000] {
        model.window.store(window, Ordering::SeqCst);
        let outcome = runner.run(&agent, &mut session, Message::user("go on")).await.unwrap();
        assert!(outcome.text.starts_with("done"));
        let refused: Vec<_> = model.turns().into_iter().filter(|call| call.refused).map(|call| call.tokens).collect();
        assert!(refused.len() <= turned_down + 2, "{window}: {refused:?}");
        turned_down = refused.len();
        assert_eq!(runner.open("s").await.unwrap().record().len(), session.record().len() - 1);
    }
}

#[tokio::test]
async fn what_cannot_shrink_ends_in_the_providers_own_error_and_the_record_is_whole() {
    let model = Arc::new(Model::new(worker(1)).windowed(2_000));
    let runner = Runner::new();
    let agent = agent(&model);
    let mut session = runner.open("s").await.unwrap();
    let huge = "a word ".repeat(4_000);
    let error = runner.run(&agent, &mut session, Message::user(huge.clone())).await.unwrap_err();
    let RunError::Provider(ProviderError::Overflow(rejection)) = error else { panic!("{error}") };
    assert_eq!(rejection.window, Some(2_000));
    let again = runner.open("s").await.unwrap();
    assert_eq!(again.record().messages()[0].text_of(foreshorten_core::transcript::EntryKind::User), huge);
    // A larger model takes it from where it stands.
    model.window.store(100_000, Ordering::SeqCst);
    let outcome = runner.resume(&agent, &mut session).await.unwrap();
    assert!(outcome.text.starts_with("done"));
}

#[tokio::test]
async fn a_rejection_that_names_nothing_is_answered_with_a_much_smaller_view() {
    let mut model = Model::new(worker(12)).windowed(12_000);
    model.refusal = "Your prompt is too long. Please reduce its length.";
    let model = Arc::new(model);
    let runner = Runner::new();
    let mut events = runner.subscribe();
    let agent = agent(&model);
    let mut session = runner.open("s").await.unwrap();
    for task in 0..6 {
        runner.run(&agent, &mut session, Message::user(format!("task {task}"))).await.unwrap();
    }
    let calls = model.turns();
    for pair in calls.windows(2).filter(|pair| pair[0].refused) {
        assert!(
            !pair[1].refused && pair[1].tokens * 100 < pair[0].tokens * 95,
            "{} {}",
            pair[0].tokens,
            pair[1].tokens
        );
    }
    let mut unknown = 0;
    while let Ok(event) = events.try_recv() {
        unknown += u32::from(matches!(event, Event::WindowUnknown { .. }));
    }
    assert_eq!(unknown, 1, "said once");
}

#[tokio::test]
async fn a_truncated_prompt_is_said_and_its_count_calibrates_nothing() {
    let model = Arc::new(Model::new(worker(30)));
    let runner = Runner::new().windows(Arc::new(WindowResolver::new().configured(1_000_000)));
    let agent = agent(&model);
    let mut session = runner.open("s").await.unwrap();
    runner.run(&agent, &mut session, Message::user("fill it")).await.unwrap();
    let believed = |session: &foreshorten::runner::Session| {
        let bytes = &session.scratch().meta.0[foreshorten::context::STATE_KEY];
        foreshorten_core::CompactionState::decode(bytes).unwrap().calibration().evidence()
    };
    let before = believed(&session);
    model.truncates_to.store(4_096, Ordering::SeqCst);
    let outcome = runner.run(&agent.clone().max_rounds(1), &mut session, Message::user("more")).await.unwrap();
    assert_eq!(outcome.truncations.len(), 1, "{outcome:?}");
    assert_eq!(believed(&session), before);
    // It goes on: a second time the view is made smaller, until the server reads all of it.
    let outcome = runner.run(&agent, &mut session, Message::user("and more")).await.unwrap();
    assert!(!outcome.truncations.is_empty() && !outcome.notices.is_empty());
    assert!(outcome.notices.iter().any(|notice| notice.aggressive));
}

#[tokio::test]
async fn the_output_limit_of_the_request_is_kept_free_and_never_asked_for_beyond_the_window() {
    let model = Arc::new(Model::new(worker(10)).windowed(20_000));
    let runner = Runner::new().windows(Arc::new(WindowResolver::new().configured(20_000)));
    for max_tokens in [500, 6_000, 19_000] {
        let settings = Settings { max_tokens: Some(max_tokens), ..Settings::default() };
        let agent = agent(&model).settings(settings);
        let mut session = runner.open(&format!("s{max_tokens}")).await.unwrap();
        for _ in 0..3 {
            runner
                .run(&agent, &mut session, Message::user("go"))
                .await
                .unwrap_or_else(|error| panic!("{max_tokens}: {error}"));
        }
        for call in model.turns().iter().filter(|call| !call.refused) {
            assert!(call.tokens + call.max_tokens.unwrap() <= 20_000);
        }
    }
    // Before the first count an estimate may be off by more than a reserve of 500.
    assert!(model.refused() <= 1, "{}", model.refused());
}

#[tokio::test]
async fn windows_come_from_the_caller_then_the_listing_and_what_was_named_caps_both() {
    let model = Arc::new(Model::new(worker(0)));
    let fail = ProviderError::Connection("down".into());
    model.listed.lock().unwrap().extend([Err(fail), Ok(Some(65_536))]);
    let windows = WindowResolver::new().ask_again_after(std::time::Duration::ZERO);
    assert_eq!(windows.resolve(&*model, "m").await, None, "a failed probe is a miss for now");
    let listed = windows.resolve(&*model, "m").await.unwrap();
    assert_eq!((listed.tokens, listed.source), (65_536, WindowSource::Listed));
    windows.resolve(&*model, "m").await;
    assert_eq!(model.listings.load(Ordering::SeqCst), 2, "an answer is believed");
    windows.learn("test://model", "m", 32_768);
    assert_eq!(windows.resolve(&*model, "m").await.unwrap().source, WindowSource::Named);
    windows.learn("test://model", "m", 131_072);
    assert_eq!(windows.resolve(&*model, "m").await.unwrap().tokens, 65_536, "a cap never raises");
    let configured = WindowResolver::new().configured(100_000);
    configured.learn("test://model", "m", 32_768);
    assert_eq!(configured.resolve(&*model, "m").await.unwrap().tokens, 32_768);
    assert_eq!(configured.resolve(&*model, "other").await.unwrap().source, WindowSource::Configured);
}

#[tokio::test]
async fn a_policy_for_one_run_replaces_the_agents() {
    let model = Arc::new(Model::new(worker(8)).windowed(9_000));
    let runner = Runner::new().windows(Arc::new(WindowResolver::new().configured(9_000)));
    let agent = agent(&model).context_policy(Arc::new(Compaction::new().without_summarizer()));
    let noop: Arc<dyn foreshorten::context::ContextPolicy> = Arc::new(NoopContextPolicy);
    let mut session = runner.open("s").await.unwrap();
    let error = runner.run_with(&agent, &mut session, Some(Message::user("go")), Some(&noop)).await.unwrap_err();
    assert!(matches!(error, RunError::Provider(ProviderError::Overflow(_))));
    assert_eq!(model.turns()[0].tools, ["read"], "and no tools are contributed");
    let outcome = runner.resume(&agent, &mut session).await.unwrap();
    assert!(outcome.text.starts_with("done"));
}
