//! How deep a pass goes, and when one pays: the default, `steady` and `economy`, on one workload.
//!
//! An agent at work: a question every five turns, a call and a result of some thousand bytes in each. What is counted is
//! what a prompt cache sees: bytes that no earlier request began with.

use foreshorten_core::{
    Compactor, Effect, Finish, Policy, PolicyConfig, Step, SummaryReply, Turn,
    budget::{CachePrice, Economy, Mode, Watermark},
    transcript::{Entry, OwnedTranscript, Transcript as _, text_of},
    view::Piece,
};
use foreshorten_testkit::cases::{built, summary_text};

/// What a session came to, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// All that was sent.
    all: u64,
    /// Sent, and not at the beginning of the request before.
    uncovered: u64,
    /// In the record.
    new: u64,
    passes: u32,
    summaries: u32,
    /// Least share of the record that a pass left as it was, in per cent.
    verbatim: u8,
}

impl Sent {
    /// The bill for prices in ten-thousandths of the plain price.
    fn bill(&self, price: CachePrice) -> u64 {
        (self.all - self.uncovered) * u64::from(price.read) + self.uncovered * u64::from(price.write)
    }

    /// Uncovered bytes in per cent of what is new.
    fn uncovered_percent(&self) -> u64 {
        self.uncovered * 100 / self.new
    }
}

/// A text of `bytes` bytes that was not there before.
fn text(seed: &mut u64, bytes: u64) -> String {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    format!("{seed} {}", "lorem ipsum dolor ".repeat(usize::try_from(bytes / 18).unwrap_or(0)))
}

fn between(seed: &mut u64, low: u64, high: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    low + (*seed >> 33) % (high - low)
}

fn play(policy: &Policy, window: u64, turns: u32, summarizer: bool, cold_every: u32) -> Sent {
    let mut seed = 7;
    let mut record = OwnedTranscript::from(vec![Entry::system("You are a coding agent. ".repeat(40))]);
    let mut compactor = Compactor::new(policy);
    let (mut sent, mut before) = (Sent { verbatim: 100, ..Sent::default() }, Vec::<u8>::new());
    for turn in 0..turns {
        if turn % 5 == 0 {
            record.push(Entry::user(text(&mut seed, 300)));
        }
        record.push(Entry::assistant(text(&mut seed, 280)));
        let id = format!("call_{turn}");
        record.push(Entry::tool_call(id.clone(), "run", format!("{{\"cmd\":\"{}\"}}", text(&mut seed, 90))));
        let bytes = between(&mut seed, 2_000, 14_000);
        record.push(Entry::tool_result(id, text(&mut seed, bytes)));
        compactor.sync(&record);
        let cache_cold = cold_every > 0 && turn % cold_every == cold_every - 1;
        let now = Turn { window: Some(window), can_summarize: summarizer, cache_cold, ..Turn::default() };
        compactor.begin(&record, now);
        loop {
            match compactor.poll(&record) {
                Step::Done(_) => break,
                Step::Effect(Effect::Summarize(_)) => {
                    sent.summaries += 1;
                    let reply = SummaryReply { text: summary_text(1_000), finish: Finish::Complete };
                    compactor.handle_summary(&record, Ok(reply));
                }
                Step::Effect(_) => compactor.handle_archived(true),
            }
        }
        if let Some(notice) = compactor.outcome().notice.as_ref().filter(|_| compactor.outcome().compacted) {
            sent.passes += 1;
            sent.verbatim = sent.verbatim.min(notice.verbatim_percent);
        }
        let mut view = Vec::new();
        for piece in compactor.view().pieces() {
            match piece {
                Piece::Entry { entry } => view.extend_from_slice(text_of(&record, entry).as_bytes()),
                Piece::Text { text, .. } | Piece::Note { text } => view.extend_from_slice(text.as_bytes()),
                other => panic!("not made here: {other:?}"),
            }
        }
        let kept = view.iter().zip(&before).take_while(|(a, b)| a == b).count();
        sent.all += view.len() as u64;
        // A cold cache covers nothing.
        sent.uncovered += if cache_cold { view.len() } else { view.len() - kept } as u64;
        before = view;
    }
    sent.new = (0..record.len()).map(|entry| text_of(&record, entry).len() as u64).sum();
    sent
}

const TURNS: u32 = 400;

#[test]
fn a_pass_that_breaks_the_prefix_early_goes_deep() {
    for window in [64_000, 200_000] {
        let sent = play(&Policy::default(), window, TURNS, true, 0);
        // Folding no deeper than the target, the same session sends 207 per cent at 64,000, with 32 summaries in 58 passes.
        assert!(sent.uncovered_percent() <= 200, "{window}: {sent:?}");
        assert!(sent.summaries * 4 <= sent.passes, "{window}: {sent:?}");
    }
}

#[test]
fn steady_is_rare_and_deep_with_and_without_a_summarizer() {
    for window in [64_000, 200_000, 1_000_000] {
        let default = play(&Policy::default(), window, TURNS, true, 0);
        for summarizer in [true, false] {
            let sent = play(&built(PolicyConfig::steady()), window, TURNS, summarizer, 0);
            assert!(sent.uncovered_percent() <= 140, "{window}: {sent:?}");
            assert!(sent.passes * 3 <= default.passes * 2 + 2, "{window}: {sent:?} against {default:?}");
        }
    }
}

#[test]
fn economy_costs_less_than_any_watermark_under_every_price() {
    for (write, read) in [(12_500, 1_000), (10_000, 1_000), (10_000, 200)] {
        let price = CachePrice { write, read, ..CachePrice::default() };
        let economy = built(PolicyConfig::economy(Economy { price, ..Economy::default() }));
        for window in [64_000, 200_000] {
            let bill = play(&economy, window, TURNS, false, 0).bill(price);
            for to in [6_000, 4_000, 2_500] {
                let fixed = PolicyConfig { compact_to: Watermark::BasisPoints(to), ..PolicyConfig::steady() };
                let fixed = play(&built(fixed), window, TURNS, false, 0).bill(price);
                assert!(bill < fixed, "{price:?}, {window}, to {to}: {bill} against {fixed}");
            }
        }
    }
}

#[test]
fn economy_keeps_its_floor() {
    // Beside the newest group, which is always whole, the floor says how much stays; a larger one costs more.
    let of = |floor_tokens| {
        let policy = built(PolicyConfig::economy(Economy { floor_tokens, ..Economy::default() }));
        play(&policy, 200_000, TURNS, true, 0)
    };
    let (low, high) = (of(2_000), of(30_000));
    assert!(low.bill(CachePrice::default()) < high.bill(CachePrice::default()), "{low:?} {high:?}");
    assert!(low.verbatim < high.verbatim, "{low:?} {high:?}");
}

#[test]
fn economy_does_not_start_what_no_longer_pays() {
    let of = |expected, turns| {
        let economy = Economy { expected_turns: expected, ..Economy::default() };
        play(&built(PolicyConfig::economy(economy)), 200_000, turns, true, 0)
    };
    // A session that ends with the first pass, whenever that is: weights decide, and change with the tables.
    let turns = (1..TURNS).find(|&turns| of(None, turns).passes > 0).expect("a pass is made at some time");
    let (known, open) = (of(Some(turns), turns), of(None, turns));
    assert_eq!(known.passes, 0, "there are no turns left in which it would pay");
    assert!(known.bill(CachePrice::default()) < open.bill(CachePrice::default()), "{known:?} {open:?}");
}

#[test]
fn passes_move_to_where_the_cache_is_cold() {
    // A pause longer than the cache lives, every 25 turns.
    let policy = Policy::default();
    let with = play(&policy, 64_000, TURNS, true, 25);
    assert!(with.passes >= TURNS / 25 / 2, "{with:?}");
    let record = play(&policy, 64_000, TURNS, true, 0);
    assert!(with.uncovered < record.uncovered + with.all / 10, "{with:?} against {record:?}");
}

#[test]
fn presets_are_what_they_say() {
    let usable = 183_616;
    let steady = built(PolicyConfig::steady()).budget(200_000, Mode::Proactive);
    assert_eq!((steady.usable, steady.trigger, steady.target), (usable, usable * 88 / 100, usable / 4));
    let economy = built(PolicyConfig::economy(Economy::default()));
    assert_eq!(economy.budget(200_000, Mode::Proactive).tail, 6_000);
    let own = PolicyConfig { keep_recent_tokens: Some(9_000), ..PolicyConfig::economy(Economy::default()) };
    assert_eq!(built(own).budget(200_000, Mode::Proactive).tail, 9_000);
    let wrong = |economy| PolicyConfig::economy(economy).build().unwrap_err().field;
    assert_eq!(wrong(Economy { floor_tokens: 0, ..Economy::default() }), "floor_tokens");
    assert_eq!(wrong(Economy { growth_tokens: Some(0), ..Economy::default() }), "growth_tokens");
    let upside_down = CachePrice { write: 1, read: 2, output: 3 };
    assert_eq!(wrong(Economy { price: upside_down, ..Economy::default() }), "price");
}
