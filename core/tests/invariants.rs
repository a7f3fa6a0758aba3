//! Every invariant, over generated sessions with all pathologies, turn by turn.

use foreshorten_testkit::play;
use proptest::prelude::*;

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
