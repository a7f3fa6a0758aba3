//! Reported: the wrong message kept, the caller's objects changed, states that no longer describe their history,
//! sessions that see each other, and passes that were interrupted.

use foreshorten_core::{
    CompactionState, Compactor, Effect, Finish, Policy, PolicyConfig, Step, SummaryReply, Turn,
    plan::Level,
    state::History,
    transcript::{Entry, OwnedTranscript, Transcript},
    view::Piece,
};
use foreshorten_testkit::{
    Answers, Session,
    cases::{TRIGGER, a, built, c, chat, filler, padded, pair, s, session, summary, summary_text, t10, u},
    materialize,
};

/// A long session of calls and chat, compacted once or more.
fn worked(policy: &Policy) -> Session<'_> {
    let mut session = session(policy, Answers::By(|_| summary(300)));
    session.step([s(100), u(60)]);
    for k in 0..24 {
        let id = format!("w{k}");
        session.step([vec![a(20)], pair(&id, 20, 500).to_vec()].concat());
    }
    assert!(session.passes > 0 && !session.state().records().is_empty());
    session
}

fn turn() -> Turn<'static> {
    Turn { window: Some(10_000), can_summarize: true, ..Turn::default() }
}

/// Answers every effect until the view is ready; says how many there were.
fn finish<P: std::borrow::Borrow<Policy>>(compactor: &mut Compactor<P>, transcript: &dyn Transcript) -> usize {
    let mut effects = 0;
    loop {
        match compactor.poll(transcript) {
            Step::Done(_) => return effects,
            Step::Effect(effect) => answer(compactor, transcript, &effect),
        }
        effects += 1;
    }
}

fn answer<P: std::borrow::Borrow<Policy>>(compactor: &mut Compactor<P>, transcript: &dyn Transcript, to: &Effect) {
    match to {
        Effect::Summarize(_) => {
            let reply = SummaryReply { text: summary_text(300), finish: Finish::Complete };
            compactor.handle_summary(transcript, Ok(reply));
        }
        Effect::Archive { .. } => compactor.handle_archived(true),
        _ => compactor.handle_proposals(transcript, Vec::new()),
    }
}

#[test]
fn b34_rendering_is_the_same_every_time_and_everywhere() {
    const CHILD: &str = "FORESHORTEN_B34_CHILD";
    let policy = built(t10());
    let session = worked(&policy);
    let view = session.view().to_vec();
    let state = session.state().encode();
    for _ in 0..100 {
        let mut again = Compactor::resume(&policy, CompactionState::decode(&state).unwrap());
        again.sync(&session.transcript);
        assert!(materialize(again.view(), &session.transcript) == view);
        assert_eq!(again.state().encode(), state);
    }
    let digest = foreshorten_core::digest::Digest::of(view.concat().as_bytes()).to_string();
    if std::env::var_os(CHILD).is_some() {
        println!("{digest}");
        return;
    }
    // Another process seeds its hash maps differently.
    let name = "history::b34_rendering_is_the_same_every_time_and_everywhere";
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let output = child.args([name, "--exact", "--nocapture"]).env(CHILD, "1").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains(&digest), "{output:?}");
}

#[test]
fn b34_two_writers_lose_nothing_and_coverage_never_goes_back() {
    let policy = built(t10());
    let base = worked(&policy);
    let stored = base.state().encode();
    let go_on = |answers: Answers, turns: usize| {
        let mut other = Session::new(&policy, base.transcript.clone(), 10_000, answers);
        other.compactor = Compactor::resume(&policy, CompactionState::decode(&stored).unwrap());
        let more: Vec<Entry> = (0..turns * 2).map(|k| Entry::user(padded(&format!("more {k} "), 400))).collect();
        more.chunks(2).for_each(|two| other.step(two.to_vec()));
        other
    };
    let far = go_on(Answers::By(|_| summary(200)), 30);
    let near = go_on(Answers::NoSummarizer, 12);
    let (one, two) = (far.state().clone(), near.state().clone());
    assert_ne!(one, two);
    let joined = one.clone().join(&two);
    assert_eq!(joined, two.clone().join(&one));
    assert_eq!(joined, joined.clone().join(&one).join(&two));
    let covered = |state: &CompactionState| state.notes().iter().map(|note| note.to).max().unwrap_or(0);
    assert_eq!(covered(&joined), covered(&one).max(covered(&two)));
    // In a view made from both no entry is shown more of than in either.
    let mut both = Compactor::resume(&policy, joined);
    both.sync(&far.transcript);
    let known = near.transcript.len();
    for entry in 0..known {
        let level = |of: &Compactor<&Policy>| of.ledger().level(of.columns(), entry);
        let (mine, theirs) = (level(&far.compactor), level(&near.compactor));
        assert!(level(&both) >= mine.max(theirs), "entry {entry}: {mine:?} {theirs:?} {:?}", level(&both));
    }
}

#[test]
fn b37_the_system_prompt_and_the_newest_message_stay_and_the_real_task_reaches_the_summary() {
    let policy = built(t10());
    let mut session = session(
        &policy,
        Answers::By(|request| match &request.prior {
            Some(prior) => foreshorten_testkit::cases::says(prior.clone()),
            None => {
                let task = request.text.find("REAL TASK").map(|at| &request.text[at..at + 200]).unwrap_or_default();
                foreshorten_testkit::cases::says(format!("{}\n{task}", summary_text(100)))
            }
        }),
    );
    let task = padded("REAL TASK: port the parser to the new grammar. ", 50);
    let injected = padded("<environment> injected, not the user's words </environment> ", 200);
    session.step([vec![s(100), Entry::user(injected), Entry::user(&task)], filler(6_950), vec![u(20)]].concat());
    let latest = session.transcript.len() - 1;
    assert_eq!(session.passes, 1);
    assert!(session.is_verbatim(0) && session.is_verbatim(latest));
    assert!(session.requests[0].text.contains(&task), "the instruction reaches the summarizer uncut");
    for _ in 0..10 {
        session.step(filler(1_000));
    }
    assert!(session.requests.len() > 2);
    for request in &session.requests[1..] {
        let prior = request.prior.as_deref().unwrap_or_default();
        assert!(prior.contains("REAL TASK"), "and in every later pass the previous summary does");
    }
    assert!(session.is_verbatim(0));
    assert!(session.notes().concat().contains("REAL TASK"));
}

#[test]
fn b38_nothing_of_the_callers_is_changed() {
    // The way, the tokens, the summarizer, an overflow, results in the record, and whether anything is decided.
    let ways: [(&str, usize, Answers, bool, usize, bool); 7] = [
        ("below the line", 5_000, Answers::NoSummarizer, false, 4, false),
        ("offloaded and cleared", 7_000, Answers::NoSummarizer, false, 6, true),
        ("summary accepted", 7_000, Answers::By(|_| summary(200)), false, 0, true),
        ("summary rejected", 7_000, Answers::By(|_| summary(5_000)), false, 0, false),
        ("summarizer error", 7_000, Answers::Failing, false, 0, false),
        ("summarizer overflow", 7_000, Answers::Overflowing, false, 0, false),
        ("overflow", 7_000, Answers::By(|_| summary(200)), true, 2, true),
    ];
    let policy = built(PolicyConfig { context_window: None, ..t10() });
    for (way, tokens, answers, overflow, results, decides) in ways {
        let results: Vec<Entry> = (0..results).flat_map(|k| pair(&format!("big{k}"), 20, 1_000)).collect();
        let rest = tokens - results.len() * 510;
        let entries = [vec![s(100), u(60)], results, filler(rest), vec![u(30)]].concat();
        let mut session = Session::new(&policy, OwnedTranscript::from(entries.clone()), 10_000, answers);
        session.turn.overflow = overflow;
        session.run();
        session.run();
        assert!(session.transcript.entries() == entries, "{way}");
        assert_eq!(session.passes > 0, decides, "{way}");
    }
    // Cancelled at the first effect.
    let transcript = OwnedTranscript::from([vec![u(60)], filler(7_000)].concat());
    let copy = transcript.clone();
    let mut compactor = Compactor::new(&policy);
    compactor.sync(&transcript);
    compactor.begin(&transcript, turn());
    assert!(matches!(compactor.poll(&transcript), Step::Effect(Effect::Summarize(_))));
    drop(compactor);
    assert!(transcript == copy);
}

#[test]
fn b41_a_state_that_covers_more_than_there_is_resets_once_and_quietly() {
    let policy = built(PolicyConfig { compact_to: foreshorten_core::budget::Watermark::Tokens(3_000), ..t10() });
    let mut long = session(&policy, Answers::By(|_| summary(200)));
    let mut entries = vec![s(100), u(60)];
    (0..40).for_each(|k| entries.extend([vec![a(20)], pair(&format!("p{k}"), 20, 60).to_vec()].concat()));
    entries.extend(chat(12, 50, 200));
    long.step(entries.clone());
    let covered = long.state().notes()[0].to as usize;
    assert!(covered > 80, "{covered}");
    let stored = long.state().encode();
    for length in [80, covered, covered + 1] {
        let state = CompactionState::decode(&stored).unwrap();
        let short = OwnedTranscript::from(entries[..length].to_vec());
        let mut session = Session::new(&policy, short, 10_000, Answers::By(|_| summary(200)));
        session.compactor = Compactor::resume(&policy, state);
        let history = session.compactor.sync(&session.transcript);
        if length > covered {
            assert_ne!(history, History::Foreign, "{length}");
            assert_eq!(session.compactor.state().notes().len(), 1, "what still describes the record is kept");
        } else {
            // At `length == covered` the note still describes the record, but the newest messages would be under it.
            assert_eq!(history, History::Edited, "{length}");
            assert!(session.compactor.state().notes().is_empty(), "the summary is reset");
            assert_eq!(session.compactor.view().len(), length);
        }
        let mut notices = 0;
        for _ in 0..3 {
            session.run();
            notices += usize::from(session.outcome().notice.is_some());
        }
        assert_eq!((notices, session.calls), (0, 0), "no marker and no notice a turn, {length}");
    }
    // Next to nothing of the conversation is left, as in a title request: the state is not lost.
    for length in [0, 1, 2] {
        let short = OwnedTranscript::from(entries[..length].to_vec());
        let mut compactor = Compactor::resume(&policy, CompactionState::decode(&stored).unwrap());
        compactor.sync(&short);
        compactor.begin(&short, turn());
        assert_eq!(finish(&mut compactor, &short), 0);
        assert_eq!(compactor.view().len(), length);
        assert!(compactor.outcome().notice.is_none() && compactor.state().notes().len() == 1);
    }
}

#[test]
fn b43_what_arrives_while_the_summarizer_works_is_not_lost() {
    let policy = built(t10());
    for sync_first in [false, true] {
        let mut transcript = OwnedTranscript::from([vec![u(60)], filler(7_000)].concat());
        let mut compactor = Compactor::new(&policy);
        compactor.sync(&transcript);
        compactor.begin(&transcript, turn());
        let planned = transcript.len();
        let Step::Effect(effect) = compactor.poll(&transcript) else { panic!("a summary is due") };
        assert!(compactor.state().notes().is_empty(), "no boundary before there is a summary");
        transcript.push(Entry::user("a follow-up while we wait"));
        if sync_first {
            compactor.sync(&transcript); // gives the pass up
        }
        answer(&mut compactor, &transcript, &effect);
        finish(&mut compactor, &transcript);
        let taken = compactor.state().notes();
        assert_eq!(taken.len(), usize::from(!sync_first), "together, or not at all");
        assert!(taken.iter().all(|note| (note.to as usize) < planned && !note.summary.text.is_empty()));
        compactor.sync(&transcript);
        compactor.begin(&transcript, turn());
        finish(&mut compactor, &transcript);
        let last = compactor.view().pieces().last();
        assert_eq!(last, Some(Piece::Entry { entry: planned }), "the follow-up is there, verbatim");
    }
}

#[test]
fn b44_sessions_do_not_see_each_other_and_one_runs_one_pass() {
    let policy = built(t10());
    let before = format!("{policy:?}");
    let mut sessions = [
        session(&policy, Answers::By(|request| summary(100 + request.text.len() / 4_000))),
        session(&policy, Answers::Extractive),
    ];
    for k in 0..40 {
        for (which, session) in sessions.iter_mut().enumerate() {
            let name = ["ALPHA", "OMEGA"][which];
            let result = Entry::tool_result(format!("call_{k}"), padded(name, 300));
            session.step([Entry::user(padded(name, 50)), c(&format!("call_{k}"), 20), result]);
        }
    }
    for (session, others) in sessions.iter().zip(["OMEGA", "ALPHA"]) {
        assert!(session.passes > 1);
        assert!(!session.view().concat().contains(others) && !format!("{:?}", session.state()).contains(others));
    }
    // Begun twice, one pass: the second takes the place of the first.
    let transcript = OwnedTranscript::from([vec![u(60)], filler(7_000)].concat());
    let mut compactor = Compactor::new(&policy);
    compactor.sync(&transcript);
    compactor.begin(&transcript, turn());
    assert!(matches!(compactor.poll(&transcript), Step::Effect(_)));
    compactor.begin(&transcript, turn());
    finish(&mut compactor, &transcript);
    assert_eq!(compactor.state().notes().len(), 1);
    // The policy is shared and keeps nothing of those it served.
    for k in 0..10_000 {
        let transcript = OwnedTranscript::from(vec![Entry::user(format!("session {k}"))]);
        let mut compactor = Compactor::new(&policy);
        compactor.sync(&transcript);
        compactor.begin(&transcript, turn());
        finish(&mut compactor, &transcript);
    }
    assert_eq!(format!("{policy:?}"), before);
}

#[test]
fn b67_a_pass_dropped_anywhere_leaves_the_old_state_or_the_new_one() {
    let config = || PolicyConfig { archive: true, ..t10() };
    let entries = || {
        let mut entries = vec![s(100), Entry::user(padded("task ", 60))];
        for k in 0..30 {
            let id = format!("p{k}");
            let result = Entry::tool_result(&id, padded(&format!("output {k} "), 160));
            entries.extend([c_fixed(&id), result, Entry::assistant(padded(&format!("note {k} "), 60))]);
        }
        OwnedTranscript::from(entries)
    };
    let compact_to = foreshorten_core::budget::Watermark::Tokens(3_300);
    let policy = built(PolicyConfig { compact_to, keep_recent_tokens: Some(300), ..config() });
    let transcript = entries();
    let mut whole = Compactor::new(&policy);
    whole.sync(&transcript);
    whole.begin(&transcript, turn());
    assert!(whole.outcome().tokens_before >= TRIGGER);
    let effects = finish(&mut whole, &transcript);
    assert!(effects >= 2, "a summary and an archive request: {effects}");
    let view = materialize(whole.view(), &transcript);
    for stop in 0..=effects {
        let mut compactor = Compactor::new(&policy);
        compactor.sync(&transcript);
        let fresh = materialize(compactor.view(), &transcript);
        compactor.begin(&transcript, turn());
        for _ in 0..stop {
            let Step::Effect(effect) = compactor.poll(&transcript) else { panic!("an effect") };
            answer(&mut compactor, &transcript, &effect);
        }
        // Dropped here: what would be stored, and the view, are as before the pass.
        assert!(compactor.state().records().is_empty() && compactor.state().notes().is_empty(), "at {stop}");
        assert!(!compactor.outcome().compacted && compactor.outcome().notice.is_none(), "no event");
        assert!(materialize(compactor.view(), &transcript) == fresh);
        let stored = compactor.state().encode();
        drop(compactor);
        let mut next = Compactor::resume(&policy, CompactionState::decode(&stored).unwrap());
        next.sync(&transcript);
        next.begin(&transcript, turn());
        finish(&mut next, &transcript);
        assert!(materialize(next.view(), &transcript) == view, "the next pass works, at {stop}");
        assert_eq!(next.ledger().level(next.columns(), 2), Level::Covered);
    }
}

fn c_fixed(id: &str) -> Entry {
    Entry::tool_call(id, "read", format!("{{\"path\":\"{id}\"}}"))
}
