//! Layered notes: a later summary stands beside the earlier ones, which stay byte for byte, until they outgrow their share.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use foreshorten_core::{
    CompactionState, Compactor, PipelineStage, Policy, PolicyConfig, config,
    plan::{Level, SummarizeHistory},
    transcript::Transcript as _,
};
use foreshorten_testkit::{
    Answers, Session,
    cases::{TARGET, built, chat, filler, s, says, session, summary_text, t10, u},
};

/// As the reported cases, with notes that may take so many per cent of the target.
fn layered(layers_percent: u8) -> Policy {
    let mut stages = config::default_pipeline();
    for stage in &mut stages {
        if let PipelineStage::Summarize(summary) = stage {
            *summary = SummarizeHistory { layers_percent, ..*summary };
        }
    }
    built(PolicyConfig { stages, ..t10() })
}

/// A summarizer that counts what it was told: a text of 150 tokens that no other equals.
fn counting(policy: &Policy) -> Session<'_> {
    session(
        policy,
        Answers::By(|request| {
            let told = request.prior.as_deref().unwrap_or_default().len() + request.text.len();
            says(format!("{}\nIt took in {told} bytes.", summary_text(150)))
        }),
    )
}

/// Steps until the session has had so many passes.
fn until(session: &mut Session<'_>, passes: usize) {
    for _ in 0..200 {
        if session.passes >= passes {
            return;
        }
        session.step(chat(2, 50, 200));
    }
    panic!("{} passes", session.passes);
}

#[test]
fn earlier_notes_stay_byte_for_byte_and_the_prefix_with_them() {
    let policy = layered(50);
    let mut session = counting(&policy);
    session.step([s(100), u(50)]);
    until(&mut session, 1);
    let (first, view) = (session.notes()[0].to_owned(), session.view().concat());
    until(&mut session, 2);
    let notes = session.notes();
    assert_eq!((notes.len(), notes[0]), (2, first.as_str()));
    // Instructions and the first note begin the view as they did.
    assert!(view.starts_with(&session.view()[..2].concat()), "the prefix holds");
    assert!(session.outcome().first_changed >= Some(2), "{:?}", session.outcome().first_changed);
    // What stays was context for the second; it was not asked to take it in.
    let request = session.requests.iter().find(|request| request.earlier.is_some()).unwrap();
    assert_eq!(request.prior, None);
    assert!(request.earlier.as_ref().is_some_and(|earlier| first.contains(earlier.as_str())));
    assert!(request.entries.iter().all(|&entry| entry >= session.state().notes()[1].from as usize));
    // Both tell where what they cover can be found.
    for note in session.state().notes() {
        assert!(session.recall(&note.reference()).is_ok());
    }
}

#[test]
fn notes_that_outgrow_their_share_become_one() {
    let policy = layered(15);
    let mut session = counting(&policy);
    session.step([s(100), u(50)]);
    let (mut most, mut merged, mut before) = (0, 0, 0);
    for _ in 0..300 {
        session.step(chat(2, 50, 200));
        let notes = session.state().notes();
        let raw: usize = session.notes().iter().map(|note| note.len() / 4).sum();
        assert!(raw as u64 <= TARGET * 15 / 100, "{raw} of {TARGET}");
        assert!(notes.windows(2).all(|pair| pair[0].to == pair[1].from), "seamless: {notes:?}");
        (merged, most) = (merged + usize::from(notes.len() < before), most.max(notes.len()));
        before = notes.len();
    }
    assert!(most >= 2 && merged >= 3, "{most} at most, merged {merged} times");
    // The one in place of several was told all of them.
    let told = session
        .requests
        .iter()
        .filter(|request| request.prior.as_ref().is_some_and(|p| p.matches("It took in").count() > 1));
    assert!(told.count() >= 3);
}

#[test]
fn without_layers_a_later_summary_takes_the_earlier_in() {
    let policy = layered(0);
    let mut session = counting(&policy);
    session.step([s(100), u(50)]);
    until(&mut session, 4);
    assert_eq!(session.state().notes().len(), 1);
    assert!(session.requests.iter().all(|request| request.earlier.is_none()));
    assert!(session.requests.last().unwrap().prior.is_some());
}

#[test]
fn a_pin_under_a_layer_stands_beside_that_layer() {
    let policy = layered(50);
    let mut session = counting(&policy);
    session.step([s(100), u(50)]);
    until(&mut session, 1);
    let task = u(80);
    session.step([task]);
    let at = session.transcript.len() - 1;
    session.compactor.pin(at).unwrap();
    until(&mut session, 3);
    let over = session.state().notes().iter().position(|note| note.covers(at)).unwrap();
    assert!(over > 0, "a layer of its own: {over}");
    assert!(session.state().notes()[over].keeps(at) && session.is_verbatim(at));
}

#[test]
fn a_session_resumed_between_layers_goes_on_the_same() {
    let policy = layered(50);
    let mut session = counting(&policy);
    session.step([s(100), u(50)]);
    until(&mut session, 2);
    session.restart();
    session.step(filler(500));
    assert_eq!(session.state().notes().len(), 2);
    let stored = session.state().encode();
    let mut next = Compactor::resume(&policy, CompactionState::decode(&stored).unwrap());
    next.sync(&session.transcript);
    assert_eq!(next.state().notes(), session.state().notes());
    let covered = session.state().notes()[1].from as usize;
    assert_eq!(next.ledger().level(next.columns(), covered), Level::Covered);
}
