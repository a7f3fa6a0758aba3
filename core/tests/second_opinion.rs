//! What the second opinion found, told as scenarios.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use foreshorten_core::{
    Compactor, PipelineStage,
    plan::{Level, MiddleSnip, Proposal, Stage, StageContext},
    state::History,
    transcript::{Entry, OwnedTranscript},
};
use foreshorten_testkit::{
    Answers,
    cases::{a, built, c, chat, filler, pair, r, s, session, summary, t10, u},
};

/// A result that comes for a call under a note is covered with it. When the note is carried on, it says so.
#[test]
fn a_late_result_under_a_note_counts_when_the_note_is_carried_on() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::NoSummarizer);
    session.step([u(50), c("late", 50)]);
    session.step(filler(8_500));
    let covered = session.state().notes()[0].counts;
    assert_eq!((covered.calls, covered.results), (1, 0), "the call is covered without its result");

    session.step([r("late", 100), u(50)]);
    assert_eq!(session.state().notes()[0].counts, covered, "between passes nothing is decided");
    session.step(filler(6_000));
    let carried = session.state().notes()[0].counts;
    assert_eq!((carried.calls, carried.results), (1, 1), "the pass that carries the note on counts it");
    let note = session.state().notes()[0].reference();
    assert!(session.notes()[0].contains("1 tool call, 1 tool result."), "{:?}", session.notes());
    assert!(
        matches!(session.recall(&note).unwrap(), foreshorten_core::recall::Found::Note { entries } if entries.len() as u32 == carried.total() )
    );
}

/// Passes at the floor leave a note each; once they alone would fill the window, one takes the place of all.
#[test]
fn a_session_at_its_floor_does_not_drown_in_notes() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::NoSummarizer);
    // Room for one note in its shortest form, and for none that is longer.
    session.step([s(7_865), u(100)]);
    for _ in 0..20 {
        session.step([a(100), u(100)]);
        assert!(session.outcome().cannot_fit.is_none(), "{:?}", session.outcome());
        assert!(session.notes().len() <= 1);
    }
    assert!(session.passes >= 10);
}

/// What a summary keeps beside it was pinned when it was made. When it is not any more and the view needs the room,
/// it goes, with or without a summarizer; the summary stays as it is.
#[test]
fn a_pin_that_is_no_more_does_not_wedge_a_session() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::By(|_| summary(300)));
    let task = u(5_000);
    session.step([task]);
    for turn in 0..11 {
        session.step(pair(&format!("c{turn}"), 300, 5));
    }
    assert!(session.is_verbatim(0) && session.state().notes()[0].keeps(0), "the task stands beside the summary");
    let text = session.state().notes()[0].summary.text.clone();
    session.answer(Answers::Failing);
    session.step([u(4_000)]);
    assert!(session.outcome().cannot_fit.is_none(), "{:?}", session.outcome());
    assert!(!session.is_verbatim(0), "the first task gives way to the second");
    assert_eq!(session.state().notes()[0].summary.text, text);
}

/// A stage that lays notes together decides about no new entry, and is named all the same.
#[test]
fn a_stage_that_lays_notes_together_is_named_in_the_notice() {
    let mut config = t10();
    config.stages = vec![PipelineStage::plan(LayTogether), PipelineStage::plan(MiddleSnip::default())];
    let policy = built(config);
    let mut session = session(&policy, Answers::NoSummarizer);
    session.step(chat(30, 50, 200));
    session.step(chat(20, 50, 200));
    let notice = session.outcome().notice.clone().unwrap();
    assert!(notice.reasons.iter().any(|reason| reason == "lay_together"), "{notice:?}");
    assert_eq!(session.notes().len(), 1);
}

struct LayTogether;

impl Stage for LayTogether {
    fn name(&self) -> &str {
        "lay_together"
    }

    fn plan(&self, ctx: &mut StageContext<'_>) {
        let wanted: &[(usize, usize)] = if ctx.open_groups(0..12).is_empty() { &[(0, 12)] } else { &[(0, 6), (6, 12)] };
        for &(from, to) in wanted {
            ctx.propose(Proposal::Snip { from, to }).unwrap();
        }
    }
}

/// Instructions come first in every view: what a stage covers from the very beginning begins after them.
#[test]
fn a_note_never_stands_before_the_instructions() {
    let mut config = t10();
    config.stages = vec![PipelineStage::plan(LayTogether)];
    let policy = built(config);
    let mut session = session(&policy, Answers::NoSummarizer);
    session.step([s(300)]);
    session.step(chat(30, 50, 200));
    assert!(session.passes == 1 && session.is_verbatim(0));
    assert!(
        session.view()[0].contains("System") && session.view()[1].starts_with("note"),
        "{:?}",
        &session.view()[..2]
    );
}

/// A long stretch in small pieces would need dozens of summaries: a pass makes as many as the stage allows.
#[test]
fn a_pass_makes_no_more_summarizer_calls_than_the_stage_allows() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::By(|_| summary(80)));
    session.turn.summarizer_window = Some(2_000);
    session.step(chat(120, 50, 200));
    assert_eq!(session.calls, 4, "{:?}", session.outcome());
    assert!(session.outcome().cannot_fit.is_none());
}

/// A state without decisions knows its record all the same: another conversation is another, however long.
#[test]
fn another_conversation_that_is_longer_is_still_another() {
    let policy = built(t10());
    let known = chat(6, 50, 200);
    let mut session = session(&policy, Answers::NoSummarizer);
    session.step(known.clone());
    let meets = |record: Vec<Entry>| {
        let mut compactor = Compactor::resume(&policy, session.state().clone());
        let history = compactor.sync(&OwnedTranscript::from(record));
        (history, compactor.state() == session.state())
    };
    assert_eq!(meets(chat(9, 50, 200)), (History::Foreign, true));
    let mut edited = known.clone();
    edited[3] = a(10);
    edited.extend(chat(2, 50, 200));
    assert_eq!(meets(edited).0, History::Edited);
    assert_eq!(meets(known), (History::Grown, true));
}

/// A preview of what was recalled would be a pointer to a pointer: refused, whoever proposes it.
#[test]
fn a_recalled_result_is_never_offloaded_whoever_proposes_it() {
    let mut config = t10();
    config.stages = vec![PipelineStage::plan(OffloadAll)];
    let policy = built(config);
    let mut session = session(&policy, Answers::NoSummarizer);
    session.step(pair("first", 50, 1_000));
    session.step([Entry::tool_call("second", "recall_tool_result", "{\"ref\":\"first\"}"), r("second", 1_000)]);
    session.step(chat(20, 50, 200));
    assert_eq!((session.passes, session.level(1), session.level(3)), (1, Level::Preview, Level::Verbatim));
}

struct OffloadAll;

impl Stage for OffloadAll {
    fn name(&self) -> &str {
        "offload_all"
    }

    fn plan(&self, ctx: &mut StageContext<'_>) {
        for entry in ctx.visible() {
            let _ = ctx.propose(Proposal::Offload { entry, head: 100, tail: 0 });
        }
    }
}

/// A group kept beside a note for a pin in it keeps what was decided about its other entries.
#[test]
fn a_group_kept_beside_a_note_keeps_its_decisions() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::NoSummarizer);
    session.step([u(50)]);
    session.step(pair("p", 100, 1_500));
    session.compactor.pin(1).unwrap();
    session.step(chat(28, 50, 200));
    assert!(session.state().notes()[0].keeps(1) && session.is_verbatim(1));
    assert!(session.level(2) > Level::Verbatim && session.level(2) < Level::Covered, "{:?}", session.level(2));
}
