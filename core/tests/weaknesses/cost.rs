//! Weaknesses of the reference system, group P: what a turn costs. Gates are on counts.

use foreshorten_core::{
    Compactor, Effect, Finish, Policy, PolicyConfig, Step, SummaryReply, Turn,
    transcript::{Entry, OwnedTranscript, Transcript},
};
use foreshorten_testkit::{
    Counted,
    cases::{a, built, pair, s, summary_text, t10, u},
};

fn run(compactor: &mut Compactor<&Policy>, transcript: &dyn Transcript, scope: &str) {
    compactor.sync(transcript);
    let turn = Turn { window: Some(10_000), scope, can_summarize: true, ..Turn::default() };
    compactor.begin(transcript, turn);
    while let Step::Effect(effect) = compactor.poll(transcript) {
        match effect {
            Effect::Summarize(_) => {
                let reply = SummaryReply { text: summary_text(300), finish: Finish::Complete };
                compactor.handle_summary(transcript, Ok(reply));
            }
            Effect::Archive { .. } => compactor.handle_archived(true),
            _ => compactor.handle_proposals(transcript, Vec::new()),
        }
    }
}

fn turns(count: usize) -> OwnedTranscript {
    let mut out = vec![s(100), u(60)];
    for k in 0..count {
        out.extend(pair(&format!("c{k}"), 20, 300));
        out.push(a(40));
    }
    OwnedTranscript::from(out)
}

#[test]
fn p1_an_entry_is_weighed_once_however_many_there_are() {
    let policy = built(PolicyConfig { context_window: Some(20_000_000), ..t10() });
    let mut reads = Vec::new();
    let whole = turns(4_000);
    for n in [3_000, 6_000, 12_000] {
        let transcript = Counted::new(&whole, n);
        let mut compactor = Compactor::new(&policy);
        compactor.sync(&transcript);
        reads.push(transcript.take());
        compactor.sync(&transcript);
        assert_eq!(transcript.take(), 0, "no memo to miss, nothing read again");
    }
    assert!(reads[2] <= 12_000 * 4, "{reads:?}");
    assert!(reads[2] * 10 <= reads[1] * 21 && reads[1] * 10 <= reads[0] * 21, "{reads:?}");
}

#[test]
fn p2_a_turn_costs_what_is_new_between_passes() {
    let policy = built(t10());
    let whole = turns(1_500);
    let mut transcript = Counted::new(&whole, 2);
    let mut compactor = Compactor::new(&policy);
    run(&mut compactor, &transcript, "");
    let _ = transcript.take();
    let (mut calm, mut passes) = (0, 0);
    for _ in 0..1_400 {
        transcript.grow(3);
        run(&mut compactor, &transcript, "");
        let reads = transcript.take();
        let outcome = compactor.outcome();
        let due = outcome.budget.is_some_and(|budget| outcome.tokens_before >= budget.trigger);
        if due {
            passes += usize::from(outcome.compacted);
            // A pass reads what stands in the view, not the record: some hundred entries, a few times.
            assert!(reads <= 3_000, "{reads} parts read in a pass over {} entries", transcript.len());
        } else {
            calm += 1;
            assert!(reads <= 3 * 4, "{reads} parts read for three new entries");
        }
    }
    assert!(passes > 50 && calm > passes, "{passes} passes, {calm} calm turns");
}

#[test]
fn p3_the_state_does_not_grow_with_what_a_note_covers() {
    let policy = built(t10());
    let whole = turns(2_600);
    let mut transcript = Counted::new(&whole, 2);
    let mut compactor = Compactor::new(&policy);
    let (mut early, mut late) = (0, 0);
    for turn in 0..2_600 {
        transcript.grow(3);
        run(&mut compactor, &transcript, "");
        let size = compactor.state().encode().len();
        if turn < 300 { early = early.max(size) } else { late = late.max(size) }
    }
    assert!(late <= early + early / 4, "{early} bytes in the first 300 turns, {late} in 2,600");
    assert!(late < 16_000, "{late}");
}

#[test]
fn p4_alternating_providers_cost_nothing_extra() {
    let policy = built(t10());
    let whole = turns(200);
    let cost = |scopes: [&str; 2]| {
        let mut transcript = Counted::new(&whole, 2);
        let mut compactor = Compactor::new(&policy);
        for turn in 0..200 {
            transcript.grow(3);
            run(&mut compactor, &transcript, scopes[turn % 2]);
        }
        transcript.take()
    };
    assert_eq!(cost(["a/model", "b/model"]), cost(["a/model", "a/model"]));
}

#[test]
fn p5_a_store_is_asked_once_for_each_content() {
    let policy = built(PolicyConfig { archive: true, ..t10() });
    let whole = turns(300);
    let mut transcript = Counted::new(&whole, 2);
    let mut compactor = Compactor::new(&policy);
    let mut asked: Vec<(usize, foreshorten_core::digest::Digest)> = Vec::new();
    for _ in 0..300 {
        transcript.grow(3);
        compactor.sync(&transcript);
        compactor.begin(&transcript, Turn { window: Some(10_000), ..Turn::default() });
        while let Step::Effect(Effect::Archive { entry, digest }) = compactor.poll(&transcript) {
            assert!(!asked.contains(&(entry, digest)), "entry {entry} again");
            asked.push((entry, digest));
            compactor.handle_archived(true);
        }
    }
    assert!(asked.len() > 100);
}

#[test]
fn p6_a_burst_renders_once() {
    // Twelve decisions or one: a pass reads the view a fixed number of times.
    let policy = built(t10());
    let reads = |results: usize| {
        let mut entries = vec![s(100), u(60)];
        (0..results).for_each(|k| entries.extend(pair(&format!("c{k}"), 20, 6_000 / results)));
        entries.extend([Entry::user("go on"), a(1_000)]);
        let whole = OwnedTranscript::from(entries);
        let transcript = Counted::new(&whole, whole.len());
        let mut compactor = Compactor::new(&policy);
        compactor.sync(&transcript);
        let _ = transcript.take();
        run(&mut compactor, &transcript, "");
        assert!(compactor.outcome().compacted);
        (transcript.take() as usize, whole.len())
    };
    for results in [6, 12, 24] {
        let (parts, entries) = reads(results);
        assert!(parts <= entries * 16, "{parts} parts read of {entries} entries");
    }
}
