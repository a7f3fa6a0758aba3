//! The oracles of the fuzz targets over ordinary generated inputs.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

use foreshorten_testkit::TARGETS;
use proptest::prelude::*;

mod replay;

fn check(target: &str, bytes: &[u8]) {
    let (_, check) = TARGETS.into_iter().find(|(name, _)| *name == target).expect("a target of that name");
    check(bytes);
}

/// A few hundred in an ordinary run; `FORESHORTEN_CASES` for longer ones.
fn cases(ordinary: u32) -> ProptestConfig {
    let cases = std::env::var("FORESHORTEN_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(ordinary);
    ProptestConfig { cases, max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default() }
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..most)
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn every_cut_falls_between_groups(bytes in bytes(400)) {
        check("cuts", &bytes);
    }

    #[test]
    fn no_malicious_stage_breaks_an_invariant(bytes in bytes(700)) {
        check("proposals", &bytes);
    }

    #[test]
    fn every_reference_of_a_view_brings_back_the_original(bytes in bytes(500)) {
        check("recall_refs", &bytes);
    }

    #[test]
    fn the_view_kept_is_the_view_rendered_from_scratch(bytes in bytes(400)) {
        check("rendering", &bytes);
    }

    #[test]
    fn any_state_meets_any_record(bytes in bytes(400)) {
        check("state_decode", &bytes);
    }
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn any_text_is_cut_quoted_and_searched_as_it_should_be(bytes in bytes(200)) {
        check("text", &bytes);
    }

    #[test]
    fn any_rejection_is_read_one_way(bytes in bytes(200)) {
        check("overflow_text", &bytes);
    }
}

#[test]
fn every_seed_is_a_good_input() {
    assert!(replay::folder("seeds") >= TARGETS.len(), "fuzz/seeds is not there");
}
