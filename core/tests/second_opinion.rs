//! What the second opinion found, told as scenarios.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use foreshorten_testkit::{
    Answers,
    cases::{built, c, filler, r, session, t10, u},
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
    session.step(filler(4_000));
    let carried = session.state().notes()[0].counts;
    assert_eq!((carried.calls, carried.results), (1, 1), "the pass that carries the note on counts it");
    let note = session.state().notes()[0].reference();
    assert!(session.notes()[0].contains("1 tool call, 1 tool result."), "{:?}", session.notes());
    assert!(
        matches!(session.recall(&note).unwrap(), foreshorten_core::recall::Found::Note { entries } if entries.len() as u32 == carried.total() )
    );
}
