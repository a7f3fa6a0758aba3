//! Reported: memory and time that grow faster than the session. Gates are on counts, not on clocks.

use foreshorten_core::{
    Compactor, Effect, Finish, PipelineStage, Policy, Step, SummaryReply, Turn,
    config::default_pipeline,
    plan::ClearToolResults,
    transcript::{OwnedTranscript, Transcript},
};
use foreshorten_testkit::{
    Counted,
    cases::{a, built, pair, s, summary_text, t10, u},
};

fn long(entries: usize) -> OwnedTranscript {
    let mut out = vec![s(100), u(60)];
    let mut k = 0;
    while out.len() < entries {
        out.extend(pair(&format!("c{k}"), 20, 500));
        out.push(a(40));
        if k % 10 == 9 {
            out.push(u(30));
        }
        k += 1;
    }
    OwnedTranscript::from(out)
}

const fn turn() -> Turn<'static> {
    Turn {
        window: Some(10_000),
        scope: "",
        schema_tokens: 0,
        overflow: false,
        reported_window: None,
        cache_cold: false,
        manual: false,
        summarizer_window: None,
        can_summarize: true,
        output_tokens: None,
    }
}

fn run(compactor: &mut Compactor<&Policy>, transcript: &dyn Transcript) {
    compactor.sync(transcript);
    compactor.begin(transcript, turn());
    while let Step::Effect(effect) = compactor.poll(transcript) {
        assert!(matches!(effect, Effect::Summarize(_)));
        let reply = SummaryReply { text: summary_text(300), finish: Finish::Complete };
        compactor.handle_summary(transcript, Ok(reply));
    }
}

#[test]
fn b61_one_pass_reads_a_transcript_a_bounded_number_of_times() {
    let policy = built(t10());
    let whole = long(8_000);
    let mut reads = Vec::new();
    for n in [2_000, 4_000, 8_000] {
        let transcript = Counted::new(&whole, n);
        let mut compactor = Compactor::new(&policy);
        run(&mut compactor, &transcript);
        assert!(compactor.outcome().compacted);
        reads.push(transcript.take());
    }
    assert!(reads[2] <= 8_000 * 20, "{} parts read of 8,000 entries", reads[2]);
    for pair in reads.windows(2) {
        assert!(pair[1] * 10 <= pair[0] * 22, "twice the entries, {reads:?} reads");
    }
}

#[test]
fn b61_a_calm_turn_reads_only_what_is_new() {
    let policy = built(foreshorten_core::PolicyConfig { context_window: Some(10_000_000), ..big_marks() });
    let whole = long(12_000);
    let mut transcript = Counted::new(&whole, 10_000);
    let mut compactor = Compactor::new(&policy);
    run(&mut compactor, &transcript);
    let _ = transcript.take();
    for _ in 0..1_000 {
        transcript.grow(2);
        run(&mut compactor, &transcript);
        let reads = transcript.take();
        assert!(reads <= 2 * 4, "{reads} parts read for two new entries");
    }
    assert_eq!(compactor.columns().len(), 12_000);
    assert_eq!(compactor.view().copied_bytes(), 0, "and nothing of the record is copied");
}

fn big_marks() -> foreshorten_core::PolicyConfig {
    let marks = foreshorten_core::PolicyConfig::default();
    foreshorten_core::PolicyConfig { compact_at: marks.compact_at, compact_to: marks.compact_to, ..t10() }
}

#[test]
fn b61_more_stages_do_not_read_everything_again() {
    let whole = long(2_000);
    let reads = |extra: usize| {
        // Stages that look at all results and find nothing to do.
        let idle = || PipelineStage::plan(ClearToolResults { min_chars: u32::MAX, ..ClearToolResults::default() });
        let mut stages: Vec<_> = (0..extra).map(|_| idle()).collect();
        stages.extend(default_pipeline());
        let policy = built(foreshorten_core::PolicyConfig { stages, ..t10() });
        let transcript = Counted::new(&whole, whole.len());
        let mut compactor = Compactor::new(&policy);
        run(&mut compactor, &transcript);
        transcript.take()
    };
    let (one, eleven) = (reads(0), reads(10));
    // Each looks at a result once; none renders or counts the view anew.
    assert!(eleven <= one + 10 * 2_000, "{one} parts read with three stages, {eleven} with thirteen");
}
