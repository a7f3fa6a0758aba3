//! Long sessions with plugins that fail now and then, blocking and async.

use std::sync::Arc;

use foreshorten::core::{
    Compactor, Turn,
    transcript::{Entry, OwnedTranscript},
};
use foreshorten::drive::{Helpers, Summaries, settle_with};
use foreshorten::plugin::{Limits, Settings};

use crate::support::{alone, plugin, policy};

/// Fails by the number of entries: traps, loops, swells, refuses, clears too much, or works.
fn moody() -> foreshorten::plugin::StagePlugin {
    let imports = r#"
      (import "foreshorten:plugin/history@0.1.0" "len" (func $len (result i32)))
      (import "foreshorten:plugin/decisions@0.1.0" "clear" (func $clear (param i32 i32 i32)))
      (import "foreshorten:plugin/memo@0.1.0" "store" (func $store (param i32 i32) (result i32)))"#;
    let body = r#"
      (loop $l
        (i32.store (i32.add (i32.const 1024) (i32.mul (local.get $at) (i32.const 4))) (local.get $at))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br_if $l (i32.lt_u (local.get $at) (i32.const 400))))
      (call $clear (i32.const 1024) (i32.const 400) (i32.const 64))
      (drop (call $store (i32.const 1024) (i32.const 16)))
      (local.set $at (i32.rem_u (i32.div_u (call $len) (i32.const 3)) (i32.const 6)))
      (if (i32.eq (local.get $at) (i32.const 0)) (then (unreachable)))
      (if (i32.eq (local.get $at) (i32.const 1)) (then (loop $l (br $l))))
      (if (i32.eq (local.get $at) (i32.const 2)) (then (loop $l (drop (memory.grow (i32.const 64))) (br $l))))
      (if (i32.eq (local.get $at) (i32.const 3)) (then (return (i32.const 32))))
      (i32.const 16)"#;
    let limits = Limits { fuel: 100_000, fuel_per_entry: 0, ..Limits::default() };
    plugin(imports, body, &Settings { limits, ..Settings::default() })
}

/// A record that grows by a call and its result.
fn grow(record: &mut OwnedTranscript, turn: usize) {
    record.push(Entry::tool_call(format!("c{turn}"), "read", format!("{{\"path\":\"{}\"}}", turn % 9)));
    record.push(Entry::tool_result(format!("c{turn}"), "some line of text\n".repeat(10 + turn % 70)));
    if turn.is_multiple_of(7) {
        record.push(Entry::user("go on"));
    }
}

#[test]
fn a_thousand_turns_with_a_plugin_that_fails_at_random_and_no_session_is_wedged() {
    let (plugins, hostile) = alone(moody());
    let policy = policy(Some("hostile"));
    let mut compactor = Compactor::new(&policy);
    let mut record = OwnedTranscript::default();
    record.push(Entry::user("look at everything"));
    let (mut passes, mut levels) = (0, Vec::new());
    for turn in 0..1_000 {
        grow(&mut record, turn);
        compactor.sync(&record);
        // Small windows make for many passes; now and then the provider rejects.
        let overflow = turn % 97 == 96;
        compactor.begin(&record, Turn { window: Some(9_000), overflow, ..Turn::default() });
        let helpers = Helpers { summarizer: &Summaries::None, store: None, plugins: &plugins };
        settle_with(&mut compactor, &record, helpers).unwrap();
        let outcome = compactor.outcome();
        passes += usize::from(outcome.compacted);
        assert!(outcome.cannot_fit.is_none(), "turn {turn}: {:?}", outcome.cannot_fit);
        if outcome.compacted {
            // Levels never fall.
            for (entry, before) in levels.iter().enumerate() {
                let now = compactor.ledger().level(compactor.columns(), entry);
                assert!(now >= *before, "turn {turn}, entry {entry}");
            }
            levels = (0..record.entries().len()).map(|at| compactor.ledger().level(compactor.columns(), at)).collect();
        }
    }
    let metrics = hostile.metrics();
    println!("{passes} passes, {metrics:?}");
    assert!(passes > 50 && metrics.fault_count() > 5 && metrics.skipped > 5, "{passes} {metrics:?}");
    assert!(metrics.faults.len() >= 3, "{metrics:?}");
    assert!(metrics.peak_memory <= Limits::default().memory_bytes);
    assert!(compactor.state().label("plugin.hostile@0.memo").is_some());
}

#[test]
fn a_runtime_is_not_blocked_by_a_plugin_that_loops() {
    let limits = Limits { wall_ms: 300, fuel: u64::MAX, fuel_per_entry: 0, ..Limits::default() };
    let settings = Settings { limits, ..Settings::default() };
    let looping = Arc::new(plugin("", "(loop $l (br $l)) (i32.const 16)", &settings));
    let policy = Arc::new(policy(Some("hostile")));
    let record = crate::support::talk(40);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let ticks = runtime.block_on(async {
        let mut compactor = Compactor::new(Arc::clone(&policy));
        compactor.sync(&record);
        compactor.begin(&record, Turn { window: Some(24_000), ..Turn::default() });
        let _ = compactor.poll(&record);
        let mut ticks = 0;
        {
            let call = looping.run_async(&mut compactor, &record);
            tokio::pin!(call);
            loop {
                tokio::select! {
                    result = &mut call => break result.unwrap(),
                    () = tokio::time::sleep(std::time::Duration::from_millis(10)) => ticks += 1,
                }
            }
        }
        while !matches!(compactor.poll(&record), foreshorten::core::Step::Done(_)) {}
        assert!(compactor.outcome().compacted);
        ticks
    });
    assert!(ticks >= 5, "{ticks}");
    let kinds: Vec<&str> = looping.metrics().faults.into_keys().collect();
    assert!(kinds == ["wall_clock"] || kinds == ["fuel"], "{kinds:?}");
}
