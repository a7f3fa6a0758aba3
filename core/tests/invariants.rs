//! Every invariant, over generated sessions with all pathologies, turn by turn.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use foreshorten_testkit::play;
use proptest::prelude::*;

mod replay;

/// 2,000 in an ordinary run; `FORESHORTEN_CASES` for longer ones.
fn cases() -> u32 {
    std::env::var("FORESHORTEN_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_invariant_holds_over_generated_sessions(bytes in proptest::collection::vec(any::<u8>(), 0..900)) {
        play(&bytes);
    }
}

/// Inputs that once broke an invariant, of every fuzz target over the core.
#[test]
fn what_once_broke_stays_mended() {
    assert!(replay::folder("regressions") > 0, "fuzz/regressions is not there");
}
