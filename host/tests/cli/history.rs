//! `compact` when the caller does something else than append: other conversations, edited and trimmed histories,
//! changing instructions, moved cache marks; and what the provider reports.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

use crate::common::talk::{Protocol, Talk, references};
use crate::common::{Room, common};
use serde_json::{Value, json};

const WINDOW: u64 = 16_000;

/// A session that has been compacted, and the view it was given.
fn compacted(protocol: Protocol) -> (Room, Talk, Vec<u8>) {
    let (room, talk) = (Room::new(), Talk::new(protocol).turns(30, 3_000));
    let done = room.compact(WINDOW, &talk.body(), &[]).good();
    assert!(done.compacted());
    let view = done.out().to_vec();
    (room, talk, view)
}

/// How many results a view shows whole.
fn whole(talk: &Talk, view: &[u8]) -> usize {
    talk.messages_in(view).iter().filter(|message| talk.messages.contains(message)).count()
}

#[test]
fn another_conversation_is_served_without_touching_the_state() {
    for protocol in Protocol::ALL {
        let (room, mut talk, view) = compacted(protocol);
        let state = room.state_bytes();
        let mut title = Talk::new(protocol);
        title.messages.clear();
        title.user("Give this conversation a title of five words.");
        let done = room.compact(WINDOW, &title.body(), &["--no-recall-tool"]).good();
        assert!(done.out() == title.body(), "{protocol:?}");
        assert_eq!(done.notice["history"], "foreign");
        assert_eq!(done.number("prefix_bytes_kept"), 0);
        assert!(done.run.err.contains("left alone"), "{}", done.run.err);
        assert!(room.state_bytes() == state, "{protocol:?}");

        let mut agent = Talk::new(protocol);
        agent.messages.clear();
        agent.user("Look into the berths.");
        agent.turns = 500;
        let agent = agent.turns(30, 3_000);
        let done = room.compact(WINDOW, &agent.body(), &["--last-input-tokens", "9999"]).good();
        assert!(done.compacted() && done.notice["history"] == "foreign", "large ones are made to fit: {}", done.notice);
        assert!(room.state_bytes() == state, "{protocol:?}");

        talk.turn(100);
        let back = room.compact(WINDOW, &talk.body(), &[]).good();
        assert!(back.notice["history"].is_null() && !back.compacted(), "{protocol:?}: {}", back.notice);
        assert!(common(&view, back.out()) + 40 > view.len(), "{protocol:?}: the session goes on as before");
    }
}

#[test]
fn the_beginning_of_the_session_alone_leaves_the_state_alone() {
    for protocol in Protocol::ALL {
        let (room, mut talk, view) = compacted(protocol);
        let state = room.state_bytes();
        let mut title = talk.clone();
        title.messages.truncate(1);
        let done = room.compact(WINDOW, &title.body(), &["--last-input-tokens", "300"]).good();
        assert!(room.state_bytes() == state, "{protocol:?}");
        assert!(done.run.err.contains("only the beginning"), "{}", done.run.err);
        assert!(done.notice["state_reset"].is_null(), "{}", done.notice);
        talk.turn(100);
        let back = room.compact(WINDOW, &talk.body(), &[]).good();
        assert!(back.notice["history"].is_null() && !back.compacted(), "{protocol:?}: {}", back.notice);
        assert!(common(&view, back.out()) + 40 > view.len(), "{protocol:?}: the session goes on as before");
    }
}

#[test]
fn an_edited_history_keeps_what_still_describes_it_and_says_what_went() {
    for protocol in Protocol::ALL {
        let (room, mut talk, view) = compacted(protocol);
        // A call in the middle is rewritten, so that the decision about its result describes nothing any more.
        let at = talk.messages.iter().position(|message| message.to_string().contains("call_7\"")).unwrap();
        let other = Talk { messages: Vec::new(), turns: 777, ..talk.clone() }.turns(1, 3_000);
        talk.messages.splice(at..at + 2, other.messages);
        let done = room.compact(WINDOW, &talk.body(), &[]).good();
        assert_eq!(done.notice["history"], "edited", "{protocol:?}");
        let said = done.notice["state_reset"].as_str().unwrap();
        assert!(said.contains("no longer describe"), "{protocol:?}: {said}");
        assert!(done.run.err.contains("edited"), "{}", done.run.err);
        assert!(references(done.out()).len() > 5, "{protocol:?}: decisions about the rest stay");
        let kept = done.number("prefix_bytes_kept") as usize;
        assert!(common(&view, done.out()) >= kept && kept > 0, "{protocol:?}");
        let first = done.number("first_changed") as usize;
        assert_eq!(talk.messages_in(&view)[..first], talk.messages_in(done.out())[..first], "{protocol:?}");
        let next = room.compact(WINDOW, &talk.body(), &[]).good();
        assert!(next.notice["history"].is_null() && next.notice["state_reset"].is_null(), "it is said once");
        assert!(next.out() == done.out());
    }
}

#[test]
fn taking_back_the_last_messages_is_an_edit_that_drops_no_earlier_decision() {
    for protocol in Protocol::ALL {
        let (room, mut talk, view) = compacted(protocol);
        talk.messages.truncate(talk.messages.len() - 4);
        talk.user("No, the other ferry.");
        let done = room.compact(WINDOW, &talk.body(), &[]).good();
        assert_eq!(done.notice["history"], "edited", "{protocol:?}");
        let (old, new) = (talk.messages_in(&view), talk.messages_in(done.out()));
        let kept = new.len() - 1;
        assert_eq!(old[..kept], new[..kept], "{protocol:?}");
        assert!(common(&view, done.out()) as u64 >= done.number("prefix_bytes_kept"), "{protocol:?}");
    }
}

#[test]
fn trimming_the_front_keeps_the_decisions_about_the_rest() {
    for protocol in Protocol::ALL {
        let (room, mut talk, view) = compacted(protocol);
        // The first request and the first three turns go.
        talk.messages.drain(..7);
        let done = room.compact(WINDOW, &talk.body(), &[]).good();
        assert_eq!(done.notice["history"], "edited", "{protocol:?}");
        let (old, new) = (talk.messages_in(&view), talk.messages_in(done.out()));
        let rest = new.len() - usize::from(protocol == Protocol::Chat);
        assert_eq!(old[old.len() - rest..], new[new.len() - rest..], "{protocol:?}: all the rest is as it was");
    }
}

#[test]
fn instructions_that_change_on_every_turn_do_not_matter() {
    for protocol in Protocol::ALL {
        let (room, mut talk, mut before) = compacted(protocol);
        for turn in 0..4 {
            talk.system = format!("You mend the ferry timetable. It is 08:{turn}0.");
            talk.turn(50);
            let done = room.compact(WINDOW, &talk.body(), &[]).good();
            assert!(done.notice["history"].is_null() && done.notice["state_reset"].is_null(), "{}", done.notice);
            assert!(!done.compacted(), "{protocol:?}");
            let (old, new) = (talk.messages_in(&before), talk.messages_in(done.out()));
            let from = usize::from(protocol == Protocol::Chat);
            assert_eq!(old[from..], new[from..old.len()], "{protocol:?}");
            assert!(
                common(&before, done.out()) as u64 >= done.number("prefix_bytes_kept"),
                "{protocol:?}: a true account"
            );
            before = done.out().to_vec();
        }
    }
}

#[test]
fn moved_cache_marks_do_not_count_as_content() {
    let (room, mut talk, mut before) = compacted(Protocol::Anthropic);
    for _ in 0..4 {
        for message in &mut talk.messages {
            if let Some(block) = message["content"].get_mut(0).and_then(Value::as_object_mut) {
                block.remove("cache_control");
            }
        }
        talk.turn(50);
        let last = talk.messages.last_mut().unwrap();
        last["content"][0]["cache_control"] = json!({"type": "ephemeral"});
        let done = room.compact(WINDOW, &talk.body(), &[]).good();
        assert!(done.notice["history"].is_null() && !done.compacted(), "{}", done.notice);
        assert!(done.notice["state_reset"].is_null());
        let kept = done.number("prefix_bytes_kept") as usize;
        assert!(common(&before, done.out()) >= kept, "what moved with a mark is not called kept");
        assert!(kept * 2 > before.len(), "nor is all of it given up: {kept} of {}", before.len());
        before = done.out().to_vec();
    }
}

#[test]
fn what_the_provider_counted_moves_the_estimate_and_belongs_to_the_last_view() {
    let (room, mut talk) = (Room::new(), Talk::new(Protocol::Chat).turns(5, 2_000));
    // The seeds' rule takes a first count at its word.
    let seeds = ["--weigher", "bytes4"];
    let first = room.compact(WINDOW, &talk.body(), &seeds).good().number("tokens_after");
    let counted = first * 3 / 2;
    let same = room.compact(WINDOW, &talk.body(), &["--last-input-tokens", &counted.to_string()]).good();
    assert_eq!(same.number("tokens_after"), counted, "the same view weighs what was counted");
    talk.turn(2_000);
    let next = room.compact(WINDOW, &talk.body(), &[]).good().number("tokens_after");
    let grown = Room::new().compact(WINDOW, &talk.body(), &seeds).good().number("tokens_after") - first;
    let added = next - counted;
    assert!(added > grown * 14 / 10 && added < grown * 16 / 10, "what is new is scaled: {added} for {grown}");
}

#[test]
fn a_session_goes_on_as_it_was_weighed() {
    let (room, mut talk) = (Room::new(), Talk::new(Protocol::Chat).turns(3, 500));
    let weighed = |room: &Room, talk: &Talk, more: &[&str]| {
        room.compact(WINDOW, &talk.body(), more).good().number("tokens_after")
    };
    let first = weighed(&room, &talk, &["--weigher", "bytes4"]);
    assert_ne!(weighed(&Room::new(), &talk, &[]), first, "by the model where nothing is named");
    assert_eq!(weighed(&room, &talk, &[]), first, "not by the model any more");
    talk.model = "gpt-5";
    assert_eq!(weighed(&room, &talk, &["--weigher", "auto"]), first, "nor by another model");
    let named = weighed(&room, &talk, &["--weigher", "o200k"]);
    assert_eq!(named, weighed(&Room::new(), &talk, &[]), "a rule that is named is taken");
    talk.model = "claude-sonnet-4-5";
    assert_eq!(weighed(&room, &talk, &[]), named, "and kept");
}

#[test]
fn a_heavier_count_brings_a_pass_forward() {
    let mut talk = Talk::new(Protocol::Chat).turns(8, 2_000);
    let (with, without) = (Room::new(), Room::new());
    let tokens = with.compact(WINDOW, &talk.body(), &[]).good().number("tokens_after");
    without.compact(WINDOW, &talk.body(), &[]).good();
    talk.turn(100);
    let counted = (tokens * 2).to_string();
    let pass = with.compact(WINDOW, &talk.body(), &["--last-input-tokens", &counted]).good();
    assert!(pass.compacted() && pass.number("tokens_before") > tokens * 2, "{}", pass.notice);
    assert!(!without.compact(WINDOW, &talk.body(), &[]).good().compacted());
}

#[test]
fn counts_that_cannot_be_of_the_last_view_are_refused_with_a_reason() {
    let (room, talk) = (Room::new(), Talk::new(Protocol::Chat).turns(10, 2_000));
    let tokens = room.compact(WINDOW, &talk.body(), &[]).good().number("tokens_after");
    for (count, why) in
        [("0", "zero"), ("100", "half"), ("99999999", "four times"), ("18446744073709551615", "four times")]
    {
        let done = room.compact(WINDOW, &talk.body(), &["--last-input-tokens", count]).good();
        assert!(done.run.err.contains("not taken") && done.run.err.contains(why), "{count}: {}", done.run.err);
        assert_eq!(done.number("tokens_after"), tokens, "{count}: nothing is learned");
    }
    let fresh = Room::new().compact(WINDOW, &talk.body(), &["--last-input-tokens", "5000"]).good();
    assert!(fresh.run.err.contains("no view"), "{}", fresh.run.err);
    assert_eq!(fresh.number("tokens_after"), tokens);
}

#[test]
fn a_rejected_view_is_followed_by_a_much_smaller_one() {
    for protocol in Protocol::ALL {
        let (room, talk) = (Room::new(), Talk::new(protocol).turns(14, 3_000));
        let first = room.compact(WINDOW, &talk.body(), &[]).good();
        assert!(first.notice["retry"].is_null());
        let rejected = first.number("tokens_after");
        let done = room.compact(WINDOW, &talk.body(), &["--overflow"]).good();
        assert!(done.compacted() && done.notice["aggressive"] == true, "{protocol:?}: {}", done.notice);
        assert_eq!(done.notice["retry"], true, "{protocol:?}");
        assert!(
            done.number("tokens_after") * 4 < rejected * 3,
            "{protocol:?}: {} of {rejected}",
            done.number("tokens_after")
        );
        let next = room.compact(WINDOW, &talk.body(), &[]).good();
        assert!(next.out() == done.out() && next.notice["aggressive"] == false, "{protocol:?}: it sticks");
    }
}

#[test]
fn when_nothing_can_shrink_a_second_try_is_not_worth_it() {
    for protocol in Protocol::ALL {
        let (room, mut talk) = (Room::new(), Talk::new(protocol));
        talk.user(&"one long request ".repeat(800));
        room.compact(WINDOW, &talk.body(), &[]).good();
        let done = room.compact(WINDOW, &talk.body(), &["--overflow"]);
        assert_eq!(done.notice["retry"], false, "{protocol:?}: {}", done.notice);
    }
}

#[test]
fn a_window_that_was_named_is_learned_for_its_model_and_remembered() {
    let (room, mut talk) = (Room::new(), Talk::new(Protocol::Chat).turns(30, 3_000));
    let before = room.compact(128_000, &talk.body(), &[]).good();
    let done = room.compact(128_000, &talk.body(), &["--overflow", "--reported-window", "16000"]).good();
    assert!(done.number("usable") <= 16_000 && done.number("tokens_after") <= done.number("usable"), "{}", done.notice);
    assert_eq!(done.notice["retry"], true);
    talk.turn(100);
    let later = room.compact(128_000, &talk.body(), &[]).good();
    assert!(later.number("usable") <= 16_000, "remembered: {}", later.notice);
    talk.model = "another-model";
    let other = room.compact(128_000, &talk.body(), &[]).good();
    assert_eq!(other.number("usable"), before.number("usable"), "not for another model");
    talk.model = "model-x";
    let wider = room.compact(8_000, &talk.body(), &["--reported-window", "900000"]).good();
    assert!(wider.number("usable") <= 8_000, "a named window never widens the given one");
}

#[test]
fn a_figure_that_is_no_window_is_not_learned() {
    let (room, talk) = (Room::new(), Talk::new(Protocol::Chat).turns(3, 1_000));
    let usable = room.compact(WINDOW, &talk.body(), &[]).good().number("usable");
    for figure in ["0", "5", "18446744073709551615"] {
        let done = room.compact(WINDOW, &talk.body(), &["--reported-window", figure]).good();
        assert!(done.run.err.contains("not taken"), "{figure}: {}", done.run.err);
        assert_eq!(done.number("usable"), usable, "{figure}");
    }
}

#[test]
fn a_cold_cache_makes_a_pass_come_earlier() {
    let mut talk = Talk::new(Protocol::Chat);
    let (mut warm, mut cold) = (Room::new().compact(WINDOW, &talk.body(), &[]).good(), None);
    // Grow to between the point half way from target to trigger and the trigger.
    while cold.is_none() {
        talk.turn(300);
        warm = Room::new().compact(WINDOW, &talk.body(), &[]).good();
        let half = warm.number("target") + (warm.number("trigger") - warm.number("target")) / 2;
        if warm.number("tokens_before") > half + 100 {
            cold = Some(Room::new().compact(WINDOW, &talk.body(), &["--cache-cold"]).good());
        }
    }
    assert!(!warm.compacted());
    assert!(cold.is_some_and(|cold| cold.compacted()));
    let small = Talk::new(Protocol::Chat).turns(3, 300);
    assert!(!Room::new().compact(WINDOW, &small.body(), &["--cache-cold"]).good().compacted());
}

#[test]
fn a_result_that_changed_under_a_decision_is_still_only_a_marker() {
    for protocol in Protocol::ALL {
        let (room, mut talk, view) = compacted(protocol);
        let cleared = whole(&talk, &view);
        let at = talk.messages.iter().position(|message| message.to_string().contains("0003 00000 ")).unwrap();
        let id = "call_3";
        let mut other = Talk { messages: Vec::new(), ..talk.clone() };
        other.result(id, "[trimmed by the agent]");
        talk.messages[at] = other.messages.remove(0);
        let done = room.compact(WINDOW, &talk.body(), &[]).good();
        assert!(whole(&talk, done.out()).abs_diff(cleared) <= 1, "{protocol:?}");
        assert!(
            done.notice["state_reset"].is_null(),
            "{protocol:?}: an offline trim keeps the decision: {}",
            done.notice
        );
    }
}
