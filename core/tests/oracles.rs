//! Small laws of single rooms that whole sessions seldom reach: fixed-point ratios, the breaker, budgets, windows,
//! usage figures, cuts, the wrapper of a summary.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use foreshorten_core::{
    CompactionState, Compactor, Policy, Step, Turn,
    budget::{Mode, TokenBudget, Watermark},
    estimate::{Calibration, Ratio, Refused},
    marker::{MarkerStyle, SUMMARY_WRAPPER, summary_entry},
    state::{Breaker, HALF_OPEN_AFTER_TURNS},
    text,
    transcript::{Entry, OwnedTranscript},
};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_ratio_is_always_in_its_range(numerator in any::<u64>(), denominator in prop_oneof![Just(0u64), 0u64..9, any::<u64>()]) {
        let ratio = Ratio::of(numerator, denominator);
        prop_assert!((Ratio::MIN..=Ratio::MAX).contains(&ratio), "I14: {ratio:?}");
        prop_assert!(ratio.scale(numerator) >= ratio.scale(numerator / 2));
    }

    /// Whatever figures come, in whatever order: no panic, a ratio in range, and totals that grow with the view.
    #[test]
    fn a_calibration_survives_any_figures(figures in proptest::collection::vec((0u64..200_000, 0u64..400_000), 0..30)) {
        let mut calibration = Calibration::default();
        for (raw, real) in figures {
            let before = calibration;
            match calibration.observe(raw, real) {
                Ok(()) => prop_assert_eq!(calibration.tokens(raw), real, "I14: the view measured is known exactly"),
                Err(_) => prop_assert_eq!(calibration, before, "I14: a refused figure changes nothing"),
            }
            prop_assert!((Ratio::MIN..=Ratio::MAX).contains(&calibration.ratio()));
            for step in 0..20u64 {
                prop_assert!(calibration.tokens(step * 10_000) <= calibration.tokens((step + 1) * 10_000));
            }
        }
    }

    #[test]
    fn a_budget_is_ordered_whatever_it_is_made_of(
        window in prop_oneof![0u64..40_000, any::<u64>()],
        reserve in prop_oneof![0u64..40_000, any::<u64>()],
        at in 1u16..=10_000,
        to in 1u16..=10_000,
        tail in proptest::option::of(any::<u64>()),
    ) {
        for mode in [Mode::Proactive, Mode::Aggressive, Mode::Manual] {
            let (at, to) = (Watermark::BasisPoints(at), Watermark::BasisPoints(to));
            let budget = TokenBudget::new(window, reserve, at, to, tail, mode);
            prop_assert!(budget.usable >= 1 && budget.usable >= window / 2 && budget.usable <= window.max(2), "{budget:?}");
            prop_assert!(budget.target < budget.trigger && budget.trigger <= budget.usable.max(2), "{budget:?}");
            prop_assert!((1..=budget.usable).contains(&budget.tail), "{budget:?}");
        }
    }

    #[test]
    fn a_cut_is_a_beginning_and_an_end(body in "\\PC{0,40}", bytes in 0usize..200) {
        prop_assert!(body.starts_with(text::head(&body, bytes)) && text::head(&body, bytes).len() <= bytes);
        prop_assert!(body.ends_with(text::tail(&body, bytes)) && text::tail(&body, bytes).len() <= bytes);
        prop_assert!(text::head(&body, bytes).len() + 4 > bytes.min(body.len()));
    }

    #[test]
    fn no_summary_closes_its_wrapper(parts in proptest::collection::vec("(<|</|context|-summary|CONTEXT-SUMMARY|>|x|é| |\\{summary\\})", 0..20)) {
        let text = summary_entry(MarkerStyle::default(), SUMMARY_WRAPPER, &parts.concat(), "note:0");
        let text = text.to_ascii_lowercase();
        prop_assert_eq!(text.matches("</context-summary").count(), 1);
        prop_assert_eq!(text.matches("<context-summary").count(), 1);
    }
}

#[test]
fn an_open_breaker_lets_one_call_through_after_a_while() {
    let mut breaker = Breaker::default();
    for turn in 10..13 {
        assert!(breaker.allows(turn, 3));
        breaker.fail(turn);
    }
    assert!(!breaker.allows(13, 3), "three failures in a row open it");
    assert!(!breaker.allows(12 + HALF_OPEN_AFTER_TURNS - 1, 3));
    assert!(breaker.allows(12 + HALF_OPEN_AFTER_TURNS, 3), "half open");
    breaker.fail(12 + HALF_OPEN_AFTER_TURNS);
    assert!(!breaker.allows(13 + HALF_OPEN_AFTER_TURNS, 3), "and open again");
    breaker.succeed();
    assert!(breaker.allows(13 + HALF_OPEN_AFTER_TURNS, 3));
}

#[test]
fn a_window_is_learned_for_one_model_only() {
    let mut state = CompactionState::new();
    assert!(state.learn_window("endpoint/small", 8_192));
    assert_eq!(state.learned_window("endpoint/small"), Some(8_192));
    assert_eq!(state.learned_window("endpoint/large"), None);
    assert!(!state.learn_window("endpoint/large", 3), "no window is that small");
}

#[test]
fn a_usage_figure_calibrates_the_view_it_measured_and_no_other() {
    let policy = Policy::default();
    let record = OwnedTranscript::from(vec![Entry::user("hello ".repeat(1_000))]);
    let mut compactor = Compactor::new(&policy);
    assert_eq!(compactor.handle_usage(1_000), Err(Refused::NoView), "before the first view");
    compactor.sync(&record);
    compactor.begin(&record, Turn { window: Some(100_000), ..Turn::default() });
    assert!(matches!(compactor.poll(&record), Step::Done(_)));
    assert_eq!(compactor.handle_usage(1_800), Ok(()));
    assert_eq!(compactor.tokens(), 1_800);
    assert_eq!(compactor.handle_usage(2_500), Err(Refused::NoView), "it was taken already");
    assert_eq!(compactor.tokens(), 1_800);
}
