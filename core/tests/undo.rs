//! A user takes decisions back: a new epoch, with what was learned, and rest for proactive passes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use foreshorten_core::{
    CompactionState, Compactor, Policy, Step, Turn,
    plan::Level,
    transcript::{Entry, OwnedTranscript},
};
use foreshorten_testkit::{
    Answers, Session,
    cases::{WINDOW, a, built, chat, pair, session, t10, u},
};

/// A session of two passes, with the state before each.
fn two_passes(policy: &Policy) -> (Session<'_>, [CompactionState; 2]) {
    let mut session = session(policy, Answers::NoSummarizer);
    let mut before = Vec::new();
    for turn in 0..60 {
        let state = session.state().clone();
        session.step([u(50)].into_iter().chain(pair(&format!("c{turn}"), 20, 300)));
        if session.outcome().compacted {
            before.push(state);
            if before.len() == 2 {
                break;
            }
        }
    }
    (session, before.try_into().unwrap())
}

fn levels(session: &Session<'_>) -> Vec<Level> {
    (0..session.transcript.entries().len()).map(|entry| session.level(entry)).collect()
}

#[test]
fn the_last_pass_is_taken_back_and_the_one_before_it_stands() {
    let policy = built(t10());
    let (mut session, [_, before]) = two_passes(&policy);
    let after = session.state().clone();
    session.undo_to(&before);
    assert_eq!((session.state().records(), session.state().notes()), (before.records(), before.notes()));
    assert_eq!(session.state().epoch(), after.epoch() + 1);
    assert!(levels(&session).iter().any(|level| *level > Level::Verbatim), "the first pass stands");
    assert_eq!(session.state().calibration(), after.calibration());
    // And so does the one before it.
    session.undo();
    assert!(levels(&session).iter().all(|level| *level == Level::Verbatim));
    assert_eq!(session.state().epoch(), after.epoch() + 2);
}

#[test]
fn passes_rest_until_new_content_comes() {
    let policy = built(t10());
    let (mut session, _) = two_passes(&policy);
    let passes = session.passes;
    let before = session.state().clone();
    session.undo_last();
    assert_ne!(session.state(), &before);
    // The view is above the trigger again, and fits.
    session.run();
    let budget = session.outcome().budget.unwrap();
    assert!((budget.trigger..=budget.usable).contains(&session.outcome().tokens_after));
    assert!(session.outcome().first_changed.is_some(), "the place is named");
    session.restart();
    session.step([u(30)]);
    assert_eq!(session.passes, passes, "a short message is no reason, nor is a restart");
    session.step(chat(2, 50, 200));
    assert_eq!(session.passes, passes + 1, "a twentieth of usable is");
}

#[test]
fn a_view_that_would_not_fit_is_compacted_all_the_same() {
    let policy = built(t10());
    let (mut session, _) = two_passes(&policy);
    session.undo();
    session.run();
    assert!(session.outcome().compacted, "{:?}", session.outcome());
}

#[test]
fn the_user_may_compact_again_at_once() {
    let policy = built(t10());
    let (mut session, _) = two_passes(&policy);
    let decided = session.state().records().len();
    session.undo_last();
    session.turn.manual = true;
    session.run();
    assert!(session.outcome().compacted && session.state().records().len() >= decided / 2);
}

#[test]
fn what_is_not_undone_says_so() {
    let policy = built(t10());
    let (mut session, [first, before]) = two_passes(&policy);
    let state = session.state().clone();
    let record = session.transcript.clone();
    // Nothing was decided since.
    assert!(!session.compactor.undo_to(&record, &state));
    // A state that has not met its record.
    let mut resumed = Compactor::resume(&policy, state.clone());
    assert!(!resumed.undo_all(&record));
    // Another conversation, and the beginning of this one.
    let other = OwnedTranscript::from(vec![Entry::user("a title for this, please")]);
    let beginning = OwnedTranscript::from(record.entries()[..1].to_vec());
    for record in [other, beginning] {
        let mut beside = Compactor::resume(&policy, state.clone());
        beside.sync(&record);
        assert!(!beside.undo_to(&record, &before) && !beside.undo_all(&record));
        assert_eq!(beside.state(), &state);
    }
    assert!(session.compactor.undo_to(&record, &first));
    assert!(!session.compactor.undo_to(&record, &before), "what comes after a checkpoint is not made again");
    assert!(!session.compactor.undo_all(&record), "there is nothing any more");
}

/// A checkpoint of a record that was edited since: what no longer describes it stays taken back.
#[test]
fn an_edited_record_gets_back_what_describes_it() {
    let policy = built(t10());
    let (mut session, [_, before]) = two_passes(&policy);
    session.edit(|entries, levels| {
        entries.drain(..4);
        levels.drain(..4);
    });
    session.step([u(50)]);
    session.undo_to(&before);
    assert!(session.state().records().len() <= before.records().len());
    assert!(levels(&session).iter().any(|level| *level > Level::Verbatim));
    session.step([a(50)]);
}

/// Whatever is handed in as a checkpoint hides nothing that stands in the view.
#[test]
fn a_checkpoint_from_elsewhere_decides_nothing() {
    let policy = built(t10());
    let (mut mine, [before, _]) = two_passes(&policy);
    let entries = mine.transcript.entries().to_vec();
    let mut other = session(&policy, Answers::Extractive);
    other.step(entries);
    other.turn.manual = true;
    other.step([u(50)]);
    assert!(!other.state().notes().is_empty());
    // `undo_to` of the session looks that no level rises.
    mine.undo_to(other.state());
    mine.step([u(50)]);
    mine.undo_to(&before);
    mine.step([u(50)]);
}

#[test]
fn an_undo_outlives_a_join_with_a_host_that_has_not_seen_it() {
    let policy = built(t10());
    let (mut session, [_, before]) = two_passes(&policy);
    let other = session.fork();
    session.undo_to(&before);
    let undone = session.state().clone();
    session.merge(&other);
    assert_eq!((session.state().records(), session.state().notes()), (undone.records(), undone.notes()));
    session.step([u(50)]);
}

/// In the same process and without a restart: the sums are true at once.
#[test]
fn a_live_compactor_counts_what_stands_after_an_undo() {
    let policy = built(t10());
    let (session, [_, before]) = two_passes(&policy);
    let (record, mut compactor) = (session.transcript.clone(), session.compactor);
    let small = compactor.tokens();
    assert!(compactor.undo_to(&record, &before));
    let large = compactor.tokens();
    assert!(large > small);
    let mut resumed = Compactor::resume(&policy, compactor.state().clone());
    resumed.sync(&record);
    assert_eq!(resumed.tokens(), large);
    compactor.begin(&record, Turn { window: Some(WINDOW), ..Turn::default() });
    assert!(matches!(compactor.poll(&record), Step::Done(outcome) if outcome.tokens_after == large));
}
