//! Reported: calls and results torn apart, assistant messages edited, empty texts, roles out of order.

use foreshorten_core::{
    PipelineStage, PolicyConfig,
    plan::{ClearToolResults, Level},
    transcript::{Entry, Part},
    view::Piece,
};
use foreshorten_testkit::{
    Answers, Session,
    cases::{TRIGGER, a, built, c, chat, filler, pair, r, s, session, summary, t10, tokens, u},
};

/// Where entries stand in the view.
fn places(session: &Session<'_>, entries: &[usize]) -> Vec<Option<usize>> {
    let shown = |wanted: usize| {
        session.compactor.view().pieces().position(|piece| match piece {
            Piece::Entry { entry } | Piece::Text { entry, .. } | Piece::Elided { entry, .. } => entry == wanted,
            Piece::Arguments { entry, .. } => entry == wanted,
            Piece::Note { .. } | Piece::StandIn { .. } => false,
        })
    };
    entries.iter().map(|&entry| shown(entry)).collect()
}

#[test]
fn b01_an_aborted_call_never_leaves_its_result_behind() {
    for answers in [Answers::Extractive, Answers::NoSummarizer] {
        for invented in [true, false] {
            let policy = built(t10());
            let mut session = session(&policy, answers);
            let mut start = vec![s(100), u(50), a(30), c("a", 50)];
            if invented {
                start.push(r("a", 30).failed());
            }
            session.step(start);
            let mut gone = false;
            for _ in 0..60 {
                session.step([u(50), a(300)]);
                let call = places(&session, &[3])[0];
                if invented {
                    let result = places(&session, &[4])[0];
                    assert_eq!(call.is_some(), result.is_some(), "the pair goes together");
                    assert!(call.is_none_or(|call| result == Some(call + 1)));
                } else {
                    let stand_ins =
                        session.compactor.view().pieces().filter(|piece| matches!(piece, Piece::StandIn { .. }));
                    assert_eq!(stand_ins.count(), usize::from(call.is_some()));
                }
                gone |= call.is_none();
            }
            assert!(gone && session.passes >= 3, "the pair was covered, and the session went on");
        }
    }
}

#[test]
fn b02_batches_stay_whole_for_every_tail_budget() {
    let mut compacted = 0;
    for tail in (0..8_000).step_by(50).map(|tail| tail.max(1)) {
        for answers in [Answers::Extractive, Answers::NoSummarizer] {
            let policy = built(PolicyConfig { keep_recent_tokens: Some(tail), ..t10() });
            let mut session = session(&policy, answers);
            let mut entries = vec![u(20)];
            for k in 1..=5 {
                let (one, two) = (format!("a{k}"), format!("b{k}"));
                entries.extend([c(&one, 20), c(&two, 20), r(&two, 700), r(&one, 700)]);
            }
            entries.extend([a(20), u(20)]);
            assert!(tokens(&entries) as u64 > TRIGGER);
            // The driver checks every view for closed pairs and whole messages.
            session.step(entries);
            compacted += session.passes;
            session.turn.overflow = true;
            session.step([a(20)]);
            assert_eq!(session.compactor.view().orphans() + session.compactor.view().stand_ins(), 0);
        }
    }
    assert!(compacted > 100, "the sweep exercised passes: {compacted}");
}

#[test]
fn b04_no_note_comes_between_a_call_and_its_result() {
    let policy = built(t10());
    let mut session = session(&policy, Answers::Extractive);
    let mut entries = vec![s(100), u(50)];
    entries.extend(filler(6_600));
    entries.push(c("x", 150));
    let call = entries.len() - 1;
    session.step(entries);
    assert_eq!(session.passes, 1);
    assert!(session.is_verbatim(call), "a pending call is never covered");
    assert!(matches!(session.compactor.view().get(1), Some(Piece::Note { .. })), "the note stands before the body");

    session.step([r("x", 300)]);
    let places = places(&session, &[call, call + 1]);
    assert_eq!(places[1], places[0].map(|call| call + 1), "nothing between call and result");
    for _ in 0..6 {
        session.step(filler(1_000));
    }
    assert!(session.passes >= 2);
    let notes = session.compactor.view().pieces().take(2).filter(|piece| matches!(piece, Piece::Note { .. }));
    assert_eq!(notes.count(), 1);
    assert_eq!(session.notes().len(), 1);
}

#[test]
fn b05_parallel_results_pair_by_id_and_keep_their_order() {
    for order in [vec![0, 1], vec![1, 0], vec![0, 1, 2, 3, 4], vec![4, 2, 0, 1, 3]] {
        let policy = built(t10());
        let mut session = session(&policy, Answers::Extractive);
        let mut entries = vec![u(20)];
        entries.extend((0..order.len()).map(|k| c(&format!("id{k}"), 20)));
        entries.extend(order.iter().map(|k| r(&format!("id{k}"), 100)));
        let len = entries.len();
        session.step(entries);
        session.step([a(20)]);
        let pieces: Vec<_> = session.compactor.view().pieces().collect();
        let expected: Vec<_> = (0..=len).map(|entry| Piece::Entry { entry }).collect();
        assert_eq!(pieces, expected, "no placeholder, no other order");
    }
}

#[test]
fn b35_a_signed_message_is_whole_or_gone() {
    let policy = built(PolicyConfig {
        stages: vec![
            PipelineStage::plan(foreshorten_core::plan::ClearReasoning { keep_last: 0 }),
            PipelineStage::plan(foreshorten_core::plan::ClipToolArguments { min_bytes: 1, keep_last: 0 }),
            PipelineStage::plan(ClearToolResults { keep_last: 0, ..ClearToolResults::default() }),
            PipelineStage::Summarize(foreshorten_core::plan::SummarizeHistory::default()),
        ],
        ..t10()
    });
    let mut session = session(&policy, Answers::Extractive);
    let thinking = Entry::reasoning("thinking ".repeat(40)).with(Part::Opaque(vec![7; 64])).sealed();
    let mut entries = vec![u(50), thinking, a(30), c("a", 60), c("b", 60), r("a", 2_400), r("b", 10)];
    entries.extend(filler(4_100));
    session.step(entries);
    assert_eq!(session.level(5), Level::Cleared, "the result is cleared");
    let mut left = false;
    for _ in 0..8 {
        let shown: Vec<bool> = (1..5).map(|entry| session.is_verbatim(entry)).collect();
        let whole = shown.iter().all(|&shown| shown);
        assert!(whole || !shown.contains(&true), "thinking, text and calls byte for byte, or none of them: {shown:?}");
        if !whole {
            left = true;
            assert_eq!(places(&session, &[5, 6]), [None, None], "and both results with them");
        }
        session.step(filler(1_000));
    }
    assert!(left);
}

#[test]
fn b47_the_view_adds_no_empty_text() {
    let blank: fn(&_) -> _ = |_| foreshorten_testkit::cases::says(" \n\t");
    let policy = built(t10());
    let mut session = session(&policy, Answers::By(blank));
    let mut entries = vec![u(50), Entry::assistant(""), c("a", 40), Entry::tool_result("a", "")];
    entries.extend([u(10), c("b", 40), Entry::tool_result("b", "   \n"), Entry::assistant(" ")]);
    entries.extend(filler(6_700));
    session.step(entries);
    assert!(session.calls > 0, "a summary was asked for, and was blank");
    assert!(session.state().notes().iter().all(|note| note.summary.text.is_empty()), "a blank summary counts as none");
    session.turn.overflow = true;
    session.step(filler(500));
    for entry in [3, 6] {
        let level = session.level(entry);
        assert!(
            level == Level::Verbatim || level == Level::Covered,
            "a marker is longer than an empty result: {level:?}"
        );
    }
    // Texts that stand in for something are never empty: the driver checks it for every piece of every view.
    assert!(session.passes > 0);
}

#[test]
fn b70_the_note_is_the_users_and_stands_before_the_tail() {
    let call = |id: &str| pair(id, 20, 300).to_vec();
    let tails = [vec![u(400), a(300)], call("t"), vec![u(20)], vec![a(20)]];
    for system in [true, false] {
        for tail in &tails {
            for answers in [Answers::By(|_| summary(200)), Answers::NoSummarizer] {
                let policy = built(t10());
                let mut session = session(&policy, answers);
                let mut entries = if system { vec![s(100)] } else { Vec::new() };
                entries.extend(chat(24, 50, 300));
                entries.extend(tail.iter().cloned());
                let len = entries.len();
                session.step(entries);
                assert_eq!(session.passes, 1);
                let head = usize::from(system);
                let pieces: Vec<_> = session.compactor.view().pieces().collect();
                assert!(matches!(pieces[head], Piece::Note { .. }), "after the instructions, before everything else");
                assert!(pieces.len() > head + 1, "and something of the conversation after it");
                assert_eq!(pieces.last(), Some(&Piece::Entry { entry: len - 1 }), "the newest entry is there");
                assert_eq!(session.notes().len(), 1);
            }
        }
    }
    // A transcript of a single message is a view of that message.
    for entry in [u(10), a(10), s(10)] {
        let policy = built(t10());
        let mut session = session(&policy, Answers::NoSummarizer);
        let kind = entry.kind;
        session.step([entry]);
        assert_eq!(session.compactor.view().len(), 1, "{kind:?}");
    }
}
