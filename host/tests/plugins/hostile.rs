//! Plugins that loop, swell, recurse, trap, flood, lie. The turn completes with the view it would have had without them,
//! the fault is named, and the next turn works.

use std::time::{Duration, Instant};

use foreshorten::core::plan::Level;
use foreshorten::core::state::CompactionState;
use foreshorten::plugin::{Limits, Settings, StagePlugin};

use crate::support::{alone, plugin, policy, talk, turn};

fn limits(change: impl FnOnce(&mut Limits)) -> Settings {
    let mut limits = Limits::default();
    change(&mut limits);
    Settings { limits, ..Settings::default() }
}

const LOG: &str = r#"(import "foreshorten:plugin/env@0.1.0" "log" (func $log (param i32 i32 i32)))"#;
const TEXT: &str = r#"(import "foreshorten:plugin/history@0.1.0" "text" (func $text (param i32 i32 i32 i32 i32)))"#;
const TEXTS: &str = r#"(import "foreshorten:plugin/history@0.1.0" "texts" (func $texts (param i32 i32 i32 i32)))"#;
const CLEAR: &str = r#"(import "foreshorten:plugin/decisions@0.1.0" "clear" (func $clear (param i32 i32 i32)))"#;
const EXPLAIN: &str = r#"(import "foreshorten:plugin/decisions@0.1.0" "explain" (func $explain (param i32 i32)))"#;
const MEMO: &str = r#"(import "foreshorten:plugin/memo@0.1.0" "store" (func $store (param i32 i32) (result i32)))"#;
const CONFIG: &str = r#"(import "foreshorten:plugin/env@0.1.0" "config" (func $config (param i32)))"#;
/// Clears entries 2, 4, 6 before whatever comes next.
const DECIDE: &str = r#"(i32.store (i32.const 1024) (i32.const 2)) (i32.store (i32.const 1028) (i32.const 4))
  (i32.store (i32.const 1032) (i32.const 6)) (call $clear (i32.const 1024) (i32.const 3) (i32.const 64))"#;

/// A fault drops the transaction: the view is the one without the plugin.
fn fails(kind: &str, imports: &str, body: &str, settings: Settings) {
    let record = talk(40);
    let (plugins, hostile) = alone(plugin(imports, body, &settings));
    let policy = policy(Some("hostile"));
    let without = turn(&crate::support::policy(None), &plugins, &record, None, |turn| turn).unwrap();
    let start = Instant::now();
    let with = turn(&policy, &plugins, &record, None, |turn| turn).unwrap();
    assert!(start.elapsed() < Duration::from_secs(20), "{kind}: {:?}", start.elapsed());
    let metrics = hostile.metrics();
    assert_eq!(metrics.faults.get(kind), Some(&1), "{kind}: {:?}", metrics.last_fault);
    assert_eq!(with.state.records(), without.state.records(), "{kind}");
    assert_eq!(with.outcome.tokens_after, without.outcome.tokens_after, "{kind}");
    assert!(with.said("hostile: "), "{kind}: {:?}", with.outcome.notice);
    assert!(metrics.peak_memory <= Limits::default().memory_bytes);
    // The next turn works, and remembers the fault.
    let more = talk(60);
    let next = turn(&policy, &plugins, &more, Some(with.state), |turn| turn).unwrap();
    assert!(next.outcome.cannot_fit.is_none());
    assert_eq!(hostile.metrics().fault_count(), 2, "{kind}");
}

#[test]
fn an_endless_loop_runs_out_of_fuel() {
    fails("fuel", CLEAR, &format!("{DECIDE} (loop $l (br $l)) (i32.const 16)"), Settings::default());
}

#[test]
fn a_loop_with_fuel_to_spare_is_stopped_by_the_clock() {
    let settings = limits(|limits| {
        limits.wall_ms = 30;
        limits.fuel = 500_000_000;
    });
    fails("wall_clock", "", "(loop $l (br $l)) (i32.const 16)", settings);
}

#[test]
fn a_memory_bomb_is_stopped_at_its_limit() {
    fails("memory", "", "(loop $l (drop (memory.grow (i32.const 16))) (br $l)) (i32.const 16)", Settings::default());
}

#[test]
fn endless_recursion_uses_up_the_stack() {
    fails("stack", "", "(drop (call $deeper (i32.const 1))) (i32.const 16)", Settings::default());
}

#[test]
fn a_trap_takes_the_decisions_before_it_along() {
    fails("trap", CLEAR, &format!("{DECIDE} (unreachable)"), Settings::default());
}

#[test]
fn an_error_of_its_own_does_too() {
    fails("refused", CLEAR, &format!("{DECIDE} (i32.const 32)"), Settings::default());
}

#[test]
fn floods_of_log_memo_and_notes_end_at_the_limit_of_host_calls() {
    let few = || limits(|limits| limits.host_calls = 2_000);
    fails(
        "host_calls",
        LOG,
        "(loop $l (call $log (i32.const 0) (i32.const 48) (i32.const 2)) (br $l)) (i32.const 16)",
        few(),
    );
    fails(
        "host_calls",
        MEMO,
        "(loop $l (drop (call $store (i32.const 0) (i32.const 65537))) (br $l)) (i32.const 16)",
        few(),
    );
    fails(
        "host_calls",
        EXPLAIN,
        "(loop $l (call $explain (i32.const 48) (i32.const 2)) (br $l)) (i32.const 16)",
        few(),
    );
    fails("host_calls", CONFIG, "(loop $l (call $config (i32.const 64)) (br $l)) (i32.const 16)", few());
}

#[test]
fn floods_of_text_end_at_the_limit_of_text() {
    let little = || limits(|limits| limits.text_bytes = 100_000);
    let one = "(loop $l (call $text (i32.const 2) (i32.const 0) (i32.const 0) (i32.const -1) (i32.const 64)) (br $l)) (i32.const 16)";
    fails("text", TEXT, one, little());
    // Two words of memory read as a list of ten thousand entries, all of them the first.
    let many = "(call $texts (i32.const 65536) (i32.const 10000) (i32.const -1) (i32.const 64)) (i32.const 16)";
    fails("text", TEXTS, many, little());
}

#[test]
fn decisions_without_end_end_at_the_limit_of_decisions() {
    let body = "(loop $l (call $clear (i32.const 65536) (i32.const 10000) (i32.const 64)) (br $l)) (i32.const 16)";
    fails("decisions", CLEAR, body, Settings::default());
}

#[test]
fn lists_beyond_memory_and_text_that_is_none_are_traps() {
    fails(
        "trap",
        CLEAR,
        "(call $clear (i32.const 0) (i32.const 0x10000000) (i32.const 64)) (i32.const 16)",
        Settings::default(),
    );
    fails("trap", EXPLAIN, "(call $explain (i32.const 50) (i32.const 2)) (i32.const 16)", Settings::default());
    fails("trap", "", "(i32.const 3)", Settings::default());
}

#[test]
fn a_list_above_what_one_call_may_bring_is_not_taken() {
    let settings = limits(|limits| limits.call_bytes = 1 << 10);
    fails("text", CLEAR, "(call $clear (i32.const 65536) (i32.const 10000) (i32.const 64)) (i32.const 16)", settings);
}

/// Clears everything there is and is not: indices 0 to 199, of a record of 82.
pub(crate) fn greedy() -> StagePlugin {
    let body = r#"(loop $l
      (i32.store (i32.add (i32.const 1024) (i32.mul (local.get $at) (i32.const 4))) (local.get $at))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $l (i32.lt_u (local.get $at) (i32.const 200))))
      (call $clear (i32.const 1024) (i32.const 200) (i32.const 64)) (i32.const 16)"#;
    plugin(CLEAR, body, &Settings::default())
}

#[test]
fn who_clears_everything_gets_what_the_ledger_gives() {
    let record = talk(40);
    let (plugins, hostile) = alone(greedy());
    let policy = policy(Some("hostile"));
    let played = turn(&policy, &plugins, &record, None, |turn| turn).unwrap();
    let metrics = hostile.metrics();
    assert_eq!(metrics.fault_count(), 0);
    assert_eq!(metrics.accepted + metrics.refused_count(), 200);
    for why in
        ["in the protected tail", "no such entry, group or part", "entries of this kind cannot be reduced that way"]
    {
        assert!(metrics.refused.contains_key(why), "{why}: {:?}", metrics.refused);
    }
    // Whatever was cleared is a result, and none of the newest.
    assert!(played.state.records().len() as u64 == metrics.accepted && metrics.accepted > 20);
    assert!(played.state.records().iter().all(|record| record.place.index % 2 == 0 && record.place.index < 78));
    assert!(metrics.tokens_saved > 5_000);
    // Levels never fall: the same again decides nothing.
    let again = turn(&policy, &plugins, &record, Some(played.state.clone()), |turn| foreshorten::core::Turn {
        manual: true,
        ..turn
    });
    let again = again.unwrap();
    for record in played.state.records() {
        let now = again.state.record(record.place.index as usize).map(|now| now.action.level());
        assert!(now.is_none_or(|now| now >= Level::Cleared));
    }
}

#[test]
fn after_three_faults_it_is_left_alone_and_tried_again_after_a_while_also_by_a_resumed_session() {
    let (plugins, hostile) = alone(plugin("", "(unreachable)", &Settings::default()));
    let policy = policy(Some("hostile"));
    let mut state: Option<CompactionState> = None;
    let mut skipped = 0;
    for calls in 0..12 {
        let record = talk(40 + calls * 10);
        let played = turn(&policy, &plugins, &record, state, |turn| turn).unwrap();
        assert!(played.outcome.compacted);
        skipped += u32::from(played.said("left alone after"));
        // What a restart leaves of a session is its encoded state.
        state = Some(CompactionState::decode(&played.state.encode()).unwrap());
    }
    let metrics = hostile.metrics();
    assert_eq!((metrics.fault_count(), metrics.skipped), (6, 6), "turns 1, 2, 3, then 4, 6, 10");
    assert_eq!(skipped, 6);
    let record = talk(200);
    turn(&policy, &plugins, &record, state, |turn| foreshorten::core::Turn { overflow: true, ..turn }).unwrap();
    assert_eq!(hostile.metrics().fault_count(), 7, "a rejected view must shrink, so everything is tried");
}

#[test]
fn a_builtin_can_take_its_place_and_a_required_one_stops_the_turn() {
    let record = talk(40);
    let settings = Settings { on_failure: "builtin:clear_tool_results".parse().unwrap(), ..Settings::default() };
    let (plugins, _) = alone(plugin("", "(unreachable)", &settings));
    let only = foreshorten::core::PolicyConfig {
        stages: vec![foreshorten::core::PipelineStage::External("hostile".into())],
        ..Default::default()
    };
    let played = turn(&only.build().unwrap(), &plugins, &record, None, |turn| turn).unwrap();
    assert!(played.said("clear_tool_results takes its place"));
    assert!(played.outcome.notice.unwrap().decided.cleared > 5);

    let settings = Settings { on_failure: "required".parse().unwrap(), ..Settings::default() };
    let (plugins, hostile) = alone(plugin("", "(unreachable)", &settings));
    let Err(failed) = turn(&policy(Some("hostile")), &plugins, &record, None, |turn| turn) else {
        panic!("the turn went on");
    };
    let (failed, state) = *failed;
    assert!(failed.to_string().contains("hostile"), "{failed}");
    assert!(state.records().is_empty() && hostile.metrics().fault_count() == 1);
}
