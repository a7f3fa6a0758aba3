//! Passes are rare, none is without effect, and a target out of reach is said once (I9): generated sessions of 100
//! turns and more.
//!
//! 60 sessions of each kind in an ordinary run; `FORESHORTEN_CASES` for more.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use foreshorten_core::{
    Policy, PolicyConfig,
    budget::{CachePrice, Economy},
    config,
    transcript::{Entry, OwnedTranscript},
};
use foreshorten_testkit::{
    Answers, Script, Session,
    cases::{built, seeds_rule},
};
use proptest::prelude::*;

/// What a pass frees at the least, in thousandths of usable: 10 % of a view that has reached 85 %. Nothing is freed that was not
/// added, so the passes of a session are no more than what was added divided by this: 21 in 100 turns that add 1.8 % each.
const LEAST_FREED: u64 = 85;
/// Turns to a pass that the limit on entries of the five stages asks for, whatever it frees: where turns are so small that the limit
/// lies within the tail, only what has left the tail can go.
const TURNS_TO_THE_LIMIT: u64 = 5;
/// Passes in 100 turns that add 1 % of usable each on average, where schemas alone are above the trigger, so that no pass can end
/// below it: four in five turns. All that
/// moves then has 14 % of usable, of which the newest messages, which nothing may reduce, take their part. A turn
/// without a pass is then luck, and the notice has said so.
const MOST_OUT_OF_REACH: usize = 80;

/// The same for passes that go down to a quarter, schemas being small.
const MOST_STEADY: usize = 10;
/// The same for passes by prices, of which those nobody has are among: reading may be as dear as writing.
const MOST_ECONOMY: usize = 34;

/// Tells a new record, so that a long run says how near the bounds it came.
fn tell(worst: &AtomicUsize, passes: usize, turns: usize, what: &str) {
    let share = passes * 1_000 / turns;
    if worst.fetch_max(share, Relaxed) < share {
        println!("{what}: {passes} passes in {turns} turns");
    }
}

fn cases() -> u32 {
    std::env::var("FORESHORTEN_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(60)
}

/// A turn of about `tokens` tokens: a question and its answer, or a call and its result.
fn turn(script: &mut Script<'_>, number: usize, tokens: u64) -> Vec<Entry> {
    let text = |share: u64| {
        let start = format!("{number} ");
        let bytes = usize::try_from(tokens * share / 100 * 4).unwrap_or(0);
        start.chars().chain("lorem ipsum dolor sit amet ".chars().cycle()).take(bytes.max(4)).collect::<String>()
    };
    let id = format!("t{number}");
    match script.below(6) {
        // Never answers alone: in a row they are one message, and the newest message cannot shrink.
        0 | 1 => vec![Entry::user(text(30)), Entry::assistant(text(70))],
        _ => vec![
            Entry::tool_call(id.clone(), "read", format!("{{\"q\":\"{number}\"}}")),
            Entry::tool_result(id, text(95)),
        ],
    }
}

/// Plays `turns` turns that each add 0.2 to 1.8 % of usable; answers the session and how
/// often, between two passes, a target out of reach was said.
fn play<'p>(policy: &'p Policy, bytes: &[u8], schema_percent: u64, turns: usize) -> (Session<'p>, usize) {
    let mut script = Script::new(bytes);
    let window = [8_000, 16_000, 40_000][script.below(3)];
    let answers = [Answers::NoSummarizer, Answers::Extractive, Answers::Failing, Answers::Lying][script.below(4)];
    let usable = policy.budget(window, foreshorten_core::budget::Mode::Proactive).usable;
    let mut session = Session::new(policy, OwnedTranscript::default(), window, answers);
    session.stride = 32;
    session.turn.schema_tokens = usable * schema_percent / 100;
    session.step([Entry::system("You are a helpful agent."), Entry::user("Do the task.")]);
    let (mut said, mut most) = (0, 0);
    for number in 0..turns {
        let share = 2 + script.below(17) as u64;
        session.step(turn(&mut script, number, usable * share / 1_000));
        let outcome = session.outcome();
        said = if outcome.compacted { 0 } else { said + usize::from(outcome.notice.is_some()) };
        most = most.max(said);
        assert!(outcome.cannot_fit.is_none(), "{outcome:?}");
    }
    (session, most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn passes_are_rare(bytes in proptest::collection::vec(any::<u8>(), 120..400), five in any::<bool>()) {
        let policy = if five {
            built(PolicyConfig { stages: config::five_stage_pipeline(), ..seeds_rule() })
        } else {
            built(seeds_rule())
        };
        let (session, said) = play(&policy, &bytes, 5, 130);
        static WORST: AtomicUsize = AtomicUsize::new(0);
        tell(&WORST, session.passes, 130, "passes are rare");
        let usable = session.outcome().budget.map_or(u64::MAX, |budget| budget.usable);
        let added = session.compactor.columns().total_weight();
        let most = added * 1_000 / (usable * LEAST_FREED) + if five { 130 / TURNS_TO_THE_LIMIT } else { 0 };
        prop_assert!(
            session.passes as u64 <= most,
            "I9: {} passes in 130 turns that added {added} tokens to {usable}", session.passes
        );
        prop_assert!(said <= 1, "I9: a target out of reach was said {said} times");
    }

    /// Rare and deep: half as often as by default.
    #[test]
    fn steady_passes_are_rarer(bytes in proptest::collection::vec(any::<u8>(), 120..400)) {
        let policy = built(PolicyConfig::steady());
        let (session, said) = play(&policy, &bytes, 5, 130);
        static WORST: AtomicUsize = AtomicUsize::new(0);
        tell(&WORST, session.passes, 130, "steady");
        prop_assert!(session.passes * 100 <= MOST_STEADY * 130, "I9: {} passes in 130 turns", session.passes);
        prop_assert!(said <= 1, "I9: a target out of reach was said {said} times");
    }

    /// As often as it pays, which near the floor is often; never without effect.
    #[test]
    fn economical_passes_are_bounded(bytes in proptest::collection::vec(any::<u8>(), 120..400), read in 0u32..12_500) {
        let price = CachePrice { read, ..CachePrice::default() };
        let policy = built(PolicyConfig::economy(Economy { price, ..Economy::default() }));
        let (session, said) = play(&policy, &bytes, 5, 130);
        static WORST: AtomicUsize = AtomicUsize::new(0);
        tell(&WORST, session.passes, 130, "economy");
        prop_assert!(session.passes * 100 <= MOST_ECONOMY * 130, "I9: {} passes in 130 turns", session.passes);
        prop_assert!(said <= 1, "I9: a target out of reach was said {said} times");
    }

    /// Schemas alone are above the trigger: nothing to gain, said once, until the view does not fit.
    #[test]
    fn a_target_out_of_reach_is_said_once_and_not_chased(bytes in proptest::collection::vec(any::<u8>(), 120..400)) {
        let policy = built(seeds_rule());
        let (session, said) = play(&policy, &bytes, 86, 110);
 static WORST: AtomicUsize = AtomicUsize::new(0);
        tell(&WORST, session.passes, 110, "out of reach");
        prop_assert!(session.passes * 100 <= MOST_OUT_OF_REACH * 110, "I9: {} passes in 110 turns", session.passes);
        prop_assert!(said <= 1, "I9: a target out of reach was said {said} times");
    }
}
