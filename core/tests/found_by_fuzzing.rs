//! What fuzzing found, told as scenarios. The inputs themselves are in `fuzz/regressions`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use foreshorten_core::{
    CompactionState, Compactor, Effect, PipelineStage, PolicyConfig, Step, Turn,
    digest::Digest,
    estimate::{ByteEstimator, Family, Weigher},
    plan::{ClearReasoning, Level, Proposal, Stage, StageContext},
    state::History,
    transcript::{Entry, EntryKind, OwnedTranscript},
};
use foreshorten_testkit::{Answers, cases, meet};

/// The place a late result changed was said only to the turn that was dropped.
#[test]
fn a_dropped_turn_does_not_keep_a_late_result_to_itself() {
    let policy = cases::built(cases::t10());
    let mut record = OwnedTranscript::default();
    record.extend([Entry::user("go"), Entry::tool_call("a", "read", "{}")]);
    record.extend(cases::chat(16, 50, 200));
    let mut compactor = Compactor::new(&policy);
    compactor.sync(&record);
    compactor.begin(&record, Turn { window: Some(cases::WINDOW), ..Turn::default() });
    assert!(matches!(compactor.poll(&record), Step::Done(_)));

    record.push(Entry::tool_result("a", "late"));
    assert_eq!(compactor.sync(&record), History::Edited);
    let manual = Turn { window: Some(cases::WINDOW), manual: true, can_summarize: true, ..Turn::default() };
    compactor.begin(&record, manual);
    assert!(matches!(compactor.poll(&record), Step::Effect(Effect::Summarize(_))));
    // Here the host is cancelled, and begins again.
    compactor.sync(&record);
    compactor.begin(&record, Turn { window: Some(cases::WINDOW), ..Turn::default() });
    let Step::Done(outcome) = compactor.poll(&record) else { panic!("nothing is asked for") };
    assert_eq!(outcome.first_changed, Some(2), "the stand-in of the call gave way to its result");
}

/// A new session counted for no estimator at all, so that the first restart forgot what was learned.
#[test]
fn the_first_restart_keeps_what_a_provider_counted() {
    let weigher = Weigher { bytes: ByteEstimator::Automaton(Family::ALL[0]), ..Weigher::default() };
    let policy = cases::built(PolicyConfig { weigher, ..PolicyConfig::default() });
    let record = OwnedTranscript::from(cases::chat(20, 50, 200));
    let mut compactor = Compactor::new(&policy);
    compactor.sync(&record);
    compactor.begin(&record, Turn { window: Some(100_000), ..Turn::default() });
    assert!(matches!(compactor.poll(&record), Step::Done(_)));
    compactor.handle_usage(compactor.tokens() * 6 / 5).unwrap();
    let tokens = compactor.tokens();

    let state = CompactionState::decode(&compactor.state().encode()).unwrap();
    let mut resumed = Compactor::resume(&policy, state);
    resumed.sync(&record);
    assert_eq!((resumed.tokens(), resumed.state().calibration().evidence()), (tokens, 1));
}

/// The record was rewound into the middle of an assistant message, and went on there with signed reasoning: a message
/// that is signed showed only a part of itself, until the next restart showed all of it.
#[test]
fn a_message_that_grows_again_after_a_rewind_stands_whole() {
    let stages = vec![PipelineStage::plan(ClearReasoning::default())];
    let policy = cases::built(PolicyConfig { stages, ..cases::t10() });
    let mut session = cases::session(&policy, Answers::NoSummarizer);
    session.step([Entry::user("go"), Entry::text(EntryKind::Reasoning, cases::text(1_000)), cases::a(50)]);
    for _ in 0..12 {
        session.step([cases::u(50), Entry::text(EntryKind::Reasoning, cases::text(500)), cases::a(50)]);
    }
    assert_eq!(session.level(1), Level::Cleared);

    session.edit(|entries, levels| {
        entries.truncate(3);
        levels.truncate(3);
    });
    session.step([]);
    session.step([Entry::reasoning("signed").sealed(), cases::a(50)]);
    assert_eq!(session.level(1), Level::Verbatim);
}

/// Notes in a state that has seen no record were laid over whatever record came first, and recalled from beyond it.
#[test]
fn a_forged_state_without_a_record_brings_no_notes() {
    let policy = cases::built(cases::t10());
    let mut session = cases::session(&policy, Answers::NoSummarizer);
    for _ in 0..40 {
        session.step([cases::u(50), cases::a(200)]);
    }
    assert!(!session.state().notes().is_empty());
    let mut forged = serde_json::to_value(session.state()).unwrap();
    forged["anchors"] = serde_json::to_value(CompactionState::new()).unwrap()["anchors"].clone();
    let forged: CompactionState = serde_json::from_value(forged).unwrap();
    meet(&forged, &OwnedTranscript::from(vec![Entry::user("hello")]));
}

/// Servers that reuse ids make equal calls. When the older of two was trimmed away, its decision went to the newer one,
/// whose result is another: the marker led nowhere.
#[test]
fn a_decision_does_not_move_to_an_equal_call_with_another_result() {
    let policy = cases::built(cases::t10());
    let mut session = cases::session(&policy, Answers::NoSummarizer);
    let call = || Entry::tool_call("call_0", "read", "{}");
    session.step([cases::u(50), call(), cases::r("call_0", 5_000), cases::a(50)]);
    session.step([cases::u(50), cases::a(1_000), cases::u(50), cases::a(1_400), cases::u(50), cases::a(1_400)]);
    assert!(session.level(2) > Level::Verbatim);
    session.step([cases::u(50), call(), cases::r("call_0", 100), cases::a(50)]);
    let newer = session.transcript.entries().len() - 2;
    assert_eq!(session.level(newer), Level::Verbatim);

    session.edit(|entries, levels| {
        entries.drain(..4);
        levels.clear();
    });
    session.step([]);
    assert_eq!(session.level(newer - 4), Level::Verbatim, "it was never decided about");
}

/// A pin of one host meets a note of the other, which was made when nothing was pinned there: the entry is reduced, and
/// stays so. When the note was made anew, the entry used to come back.
#[test]
fn a_pin_over_which_another_host_had_laid_a_note_is_none() {
    let policy = cases::built(cases::t10());
    let mut mine = cases::session(&policy, Answers::NoSummarizer);
    mine.step(cases::chat(24, 50, 200));
    mine.step([cases::c("late", 20)]);
    let fork = mine.fork();
    mine.step(cases::chat(12, 50, 200));
    assert!(!mine.state().notes().is_empty());
    let mut other = Compactor::resume(&policy, fork);
    other.sync(&mine.transcript);
    other.pin(3).unwrap();
    mine.merge(other.state());
    mine.step([cases::u(50)]);
    assert_eq!((mine.level(3), mine.state().pins().len()), (Level::Covered, 0));
    // A late result has the note counted anew.
    mine.step([cases::r("late", 20)]);
    mine.step(cases::chat(24, 50, 200));
    assert_eq!((mine.passes, mine.level(3)), (2, Level::Covered));
}

/// A note had counted a late result, which stands behind the stretch of the note. The record was edited and the result
/// taken out: the note told of it for ever.
#[test]
fn a_note_does_not_count_a_late_result_that_is_gone() {
    let policy = cases::built(cases::t10());
    let mut session = cases::session(&policy, Answers::NoSummarizer);
    session.step([cases::u(50), cases::c("late", 50)]);
    session.step(cases::filler(8_500));
    session.step(cases::filler(3_800));
    session.step([cases::r("late", 20), cases::u(50)]);
    let late = session.transcript.entries().len() - 2;
    session.step(cases::filler(2_000));
    let note = &session.state().notes()[0];
    assert!(note.counts.results == 1 && note.to as usize <= late, "{note:?}");

    session.edit(|entries, levels| {
        entries.remove(late);
        levels.remove(late);
    });
    session.step([cases::u(50)]);
    assert_eq!(session.state().notes()[0].counts.results, 0);
    assert!(!session.notes()[0].contains("tool result"), "{:?}", session.notes());
}

/// Offloads long results while the record is short, then clears all.
struct FirstOffloads;

impl Stage for FirstOffloads {
    fn name(&self) -> &str {
        "first_offloads"
    }

    fn plan(&self, ctx: &mut StageContext<'_>) {
        for entry in ctx.results() {
            let short = ctx.columns().len() < 8;
            if short && !ctx.has_chars(entry, 1_000) {
                continue;
            }
            let head = ctx.head_bytes(entry, 400);
            let proposal = if short { Proposal::Offload { entry, head, tail: 0 } } else { Proposal::Clear { entry } };
            let _ = ctx.propose(proposal);
        }
    }
}

/// A preview was made of a whole result, which the host then cut behind everybody's back. When the preview was cleared, its
/// marker named the digest of what was gone, and so did the marker of any other result that reads as the cut one does.
#[test]
fn a_decision_names_what_stands_in_the_record_when_it_is_made() {
    let policy = cases::built(PolicyConfig { stages: vec![PipelineStage::plan(FirstOffloads)], ..cases::t10() });
    let mut session = cases::session(&policy, Answers::NoSummarizer);
    let whole = cases::text(1_000);
    session.turn.manual = true;
    session.step([cases::u(50), cases::c("one", 20), Entry::tool_result("one", &whole), cases::a(2_000), cases::u(50)]);
    assert_eq!(session.level(2), Level::Preview);

    session.edit(|entries, _| entries[2] = Entry::tool_result("one", &whole[..1_600]));
    session.bodies_lost = true;
    session.step([]);
    assert_eq!(session.level(2), Level::Preview, "it begins as it did");
    session.step([cases::c("two", 20), Entry::tool_result("two", &whole[..1_600]), cases::a(2_000), cases::u(50)]);
    for entry in [2, 6] {
        assert_eq!(session.level(entry), Level::Cleared);
        let named = session.state().record(entry).and_then(|record| record.action.digest());
        assert_eq!(named, Some(Digest::of_entry(&session.transcript, entry)), "{entry}");
    }
}

/// A call that is made again answers with more of the same, as a log does. When the record was rewound to before, the preview
/// of the later answer stood in the place of the earlier, which begins alike, and named what was gone.
#[test]
fn a_preview_does_not_move_to_an_earlier_answer_that_begins_alike() {
    let policy = cases::built(PolicyConfig { stages: vec![PipelineStage::plan(FirstOffloads)], ..cases::t10() });
    let mut session = cases::session(&policy, Answers::NoSummarizer);
    let log = cases::text(1_000);
    let call = || Entry::tool_call("call_0", "read", "{}");
    session.step([cases::u(50), call(), Entry::tool_result("call_0", &log[..900]), cases::a(50)]);
    session.turn.manual = true;
    session.step([call(), Entry::tool_result("call_0", &log), cases::u(1_700)]);
    assert_eq!((session.level(2), session.level(5)), (Level::Verbatim, Level::Preview));

    session.edit(|entries, levels| {
        entries.truncate(4);
        levels.truncate(4);
    });
    session.step([]);
    assert_eq!((session.level(2), session.state().record(2)), (Level::Verbatim, None));
}

/// Instructions at the end of a record were moved to its front, which no fingerprint tells of: a note stood over what was the
/// newest group then. That grew behind the end of the note, and looking for the group after it never ended.
#[test]
fn a_note_does_not_come_to_stand_over_the_newest_group_when_instructions_move() {
    let policy = cases::built(cases::t10());
    let mut session = cases::session(&policy, Answers::NoSummarizer);
    session.step([cases::a(9_000), Entry::system("Be brief.")]);
    assert_eq!(session.level(0), Level::Covered);

    session.edit(|entries, levels| {
        entries.rotate_right(1);
        levels.clear();
    });
    session.step([]);
    assert_eq!(session.level(1), Level::Verbatim, "it is the newest group");
    session.step([cases::c("call", 20), cases::r("call", 50)]);
    session.step([cases::u(50), cases::a(50)]);
}

/// A record was rewound to the end of a note whose last groups are pinned and stand beside it; then the last one grew behind the
/// note's end, and a resumed session did without a note that an unbroken one had.
#[test]
fn a_group_that_is_kept_beside_a_note_grows_after_a_rewind() {
    let policy = cases::built(PolicyConfig { stages: vec![PipelineStage::External("cut".into())], ..cases::t10() });
    fn turn(compactor: &mut Compactor<&foreshorten_core::Policy>, record: &OwnedTranscript, manual: bool) {
        compactor.sync(record);
        compactor.begin(record, Turn { manual, ..Turn::default() });
        loop {
            match compactor.poll(record) {
                Step::Effect(Effect::RunStage { .. }) => {
                    compactor.handle_proposals(record, vec![Proposal::Snip { from: 0, to: 4 }]);
                }
                Step::Effect(_) => {}
                Step::Done(_) => return,
            }
        }
    }
    let mut record = OwnedTranscript::default();
    record.extend((0..8).flat_map(|_| [cases::u(50), cases::a(500)]));
    let mut compactor = Compactor::new(&policy);
    compactor.sync(&record);
    compactor.pin(2).unwrap();
    compactor.pin(3).unwrap();
    turn(&mut compactor, &record, true);
    assert_eq!(compactor.state().notes().iter().map(|note| (note.from, note.to)).collect::<Vec<_>>(), [(0, 4)]);

    let mut rewound = OwnedTranscript::from(record.entries()[..4].to_vec());
    let mut grown = Compactor::resume(&policy, compactor.state().clone());
    turn(&mut grown, &rewound, false);
    rewound.extend([cases::c("call", 20), cases::r("call", 50), cases::u(50)]);
    turn(&mut grown, &rewound, false);
    let mut resumed = Compactor::resume(&policy, CompactionState::decode(&grown.state().encode()).unwrap());
    turn(&mut resumed, &rewound, false);
    let pieces = |compactor: &Compactor<_>| format!("{:?}", compactor.view().pieces().collect::<Vec<_>>());
    assert_eq!(pieces(&grown), pieces(&resumed), "I11");
}
