//! What a notice says a warm prompt cache loses (I16), over restarts and late results.

use foreshorten_core::{
    CompactionNotice, CompactionState, Compactor, Effect, Policy, Step, Turn,
    transcript::{Entry, OwnedTranscript},
};

const WINDOW: u64 = 8_000;

/// A view for the record as it is; a host that has no summarizer and no store.
fn turn(compactor: &mut Compactor<&Policy>, record: &OwnedTranscript) -> Option<CompactionNotice> {
    compactor.sync(record);
    compactor.begin(record, Turn { window: Some(WINDOW), ..Turn::default() });
    loop {
        match compactor.poll(record) {
            Step::Done(_) => break,
            Step::Effect(Effect::Summarize(_)) => compactor.handle_summary(record, Err(Default::default())),
            Step::Effect(Effect::Archive { .. }) => compactor.handle_archived(false),
            Step::Effect(_) => compactor.handle_proposals(record, Vec::new()),
        }
    }
    compactor.outcome().notice.clone().filter(|_| compactor.outcome().compacted)
}

/// Words, about as many bytes: a run of one letter would weigh next to nothing.
fn words(bytes: usize) -> String {
    "some words of a result, line by line\n".repeat(bytes / 37)
}

fn call(record: &mut OwnedTranscript, number: usize, bytes: usize) {
    let id = format!("call_{number}");
    record.push(Entry::tool_call(id.clone(), "read", format!("{{\"n\":{number}}}")));
    record.push(Entry::tool_result(id, format!("{number} {}", words(bytes))));
}

fn begun() -> OwnedTranscript {
    let mut record = OwnedTranscript::default();
    record.push(Entry::system("You are a helpful agent."));
    record.push(Entry::user("Do the task."));
    record
}

/// Turns until a pass: its notice, the record, and the state before it.
fn first_pass(policy: &Policy, counts: bool) -> (CompactionNotice, OwnedTranscript, CompactionState) {
    let (mut compactor, mut record) = (Compactor::new(policy), begun());
    for number in 0..1_000 {
        call(&mut record, number, 1_000);
        let state = compactor.state().clone();
        if let Some(notice) = turn(&mut compactor, &record) {
            return (notice, record, state);
        }
        if counts {
            let tokens = compactor.tokens();
            assert_eq!(compactor.handle_usage(tokens), Ok(()));
        }
    }
    unreachable!("nothing was compacted")
}

#[test]
fn the_first_view_of_a_session_was_sent_to_nobody() {
    let policy = Policy::default();
    let mut record = begun();
    (0..40).for_each(|number| call(&mut record, number, 1_000));
    let notice = turn(&mut Compactor::new(&policy), &record).map(|notice| notice.resent_tokens);
    assert_eq!(notice, Some(0));
}

#[test]
fn a_restart_that_knows_the_last_view_says_the_same() {
    let policy = Policy::default();
    let (unbroken, record, state) = first_pass(&policy, false);
    assert!(unbroken.resent_tokens > 0 && unbroken.resent_tokens < unbroken.tokens_after, "{unbroken:?}");
    let resumed = turn(&mut Compactor::resume(&policy, state), &record);
    assert_eq!(resumed.as_ref(), Some(&unbroken));
    assert_eq!(unbroken.turns_to_break_even(10, 0), None, "reading is free: nothing is ever saved");
    let mut at_once = unbroken;
    at_once.resent_tokens = 0;
    assert_eq!(at_once.turns_to_break_even(125, 10), Some(0));
}

#[test]
fn a_restart_that_does_not_says_the_most_it_can_be() {
    let policy = Policy::default();
    let (unbroken, record, state) = first_pass(&policy, true);
    let resumed = turn(&mut Compactor::resume(&policy, state), &record).map(|notice| notice.resent_tokens);
    assert!(resumed > Some(unbroken.resent_tokens), "{resumed:?} and {}", unbroken.resent_tokens);
    assert!(resumed < Some(unbroken.tokens_after));
}

/// A late result changes the view near its front, so that the cache is broken there without any pass: what the pass costs
/// beyond that is less.
#[test]
fn what_the_record_itself_broke_is_not_the_pass() {
    let policy = Policy::default();
    let grown = |late: bool| {
        let (mut compactor, mut record) = (Compactor::new(&policy), begun());
        record.push(Entry::tool_call("slow", "read", "{}"));
        record.push(Entry::user("Go on meanwhile."));
        for number in 0..1_000 {
            call(&mut record, number, 1_000);
            if compactor.tokens() > WINDOW / 2 * 70 / 100 {
                // With the next turn the trigger is passed.
                if late {
                    record.push(Entry::tool_result("slow", words(2_000)));
                }
                call(&mut record, number + 1, 2_000);
            }
            if let Some(notice) = turn(&mut compactor, &record) {
                return notice;
            }
        }
        unreachable!("nothing was compacted")
    };
    let (calm, late) = (grown(false), grown(true));
    assert!(calm.resent_tokens > late.resent_tokens, "{calm:?}\n{late:?}");
}
