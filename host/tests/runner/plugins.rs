//! The runner with stages and summarizers of others.

#![allow(clippy::unwrap_used, reason = "helpers of tests are test code")]

use std::sync::Arc;

use crate::model::{Model, Reads, worker};
use foreshorten::context::{Compaction, StageSpec};
use foreshorten::plugin::{Account, Limits, Loader, Settings, StagePlugin, sha256, wasm::encode};
use foreshorten::provider::Purpose;
use foreshorten::record::Message;
use foreshorten::runner::{Agent, Runner};
use foreshorten::window::WindowResolver;
use foreshorten_core::plan::ClearToolResults;

/// A stage whose `plan` is this text; 16 is the address of a good verdict.
fn stage(loader: &Loader, imports: &str, plan: &str, settings: &Settings) -> Arc<StagePlugin> {
    let text = format!(
        r#"(module {imports} (memory (export "memory") 1)
          (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096))
          (func (export "foreshorten:plugin/stage-api@0.1.0#check") (result i32) (i32.const 16))
          (func (export "foreshorten:plugin/stage-api@0.1.0#plan") (result i32) (local $at i32) {plan}))"#
    );
    let component = encode(&wat::parse_str(text).unwrap()).unwrap();
    Arc::new(loader.stage_of(&component, "theirs", sha256(&component), settings).unwrap())
}

/// Clears the first hundred entries, as far as the ledger lets it.
const CLEARS: (&str, &str) = (
    r#"(import "foreshorten:plugin/decisions@0.1.0" "clear" (func $clear (param i32 i32 i32)))"#,
    r#"(loop $l
        (i32.store (i32.add (i32.const 1024) (i32.mul (local.get $at) (i32.const 4))) (local.get $at))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br_if $l (i32.lt_u (local.get $at) (i32.const 100))))
      (call $clear (i32.const 1024) (i32.const 100) (i32.const 64)) (i32.const 16)"#,
);

#[tokio::test]
async fn a_stage_of_others_plans_in_a_run_and_one_that_fails_is_left_out() {
    let loader = Loader::new(Limits::caps()).unwrap();
    let good = stage(&loader, CLEARS.0, CLEARS.1, &Settings::default());
    let looping = stage(&loader, "", "(loop $l (br $l)) (i32.const 16)", &Settings::default());
    for (plugin, fails) in [(good, false), (looping, true)] {
        let model = Arc::new(Model::new(worker(6)));
        let runner = Runner::new().windows(Arc::new(WindowResolver::new().configured(12_000)));
        let policy = Compaction::new()
            .reserve_output_tokens(2_000)
            .without_summarizer()
            .stages(vec![StageSpec::External(Arc::clone(&plugin)), StageSpec::plan(ClearToolResults::default())])
            .build()
            .unwrap();
        let agent =
            Agent::new(model.clone(), "m").tool(Arc::new(Reads { bytes: 1_500 })).context_policy(Arc::new(policy));
        let mut session = runner.open("s").await.unwrap();
        for task in 0..10 {
            runner.run(&agent, &mut session, Message::user(format!("task {task}"))).await.unwrap();
        }
        let metrics = plugin.metrics();
        assert!(metrics.calls > 0);
        assert_eq!(metrics.fault_count() > 0, fails, "{metrics:?}");
        assert!(fails || metrics.tokens_saved > 0, "{metrics:?}");
        assert!(model.turns().iter().all(|call| call.tokens <= 12_000));
    }
}

#[tokio::test]
async fn a_required_stage_that_fails_stops_the_run_before_the_model_is_called() {
    let loader = Loader::new(Limits::caps()).unwrap();
    let settings = Settings { on_failure: "required".parse().unwrap(), ..Settings::default() };
    let plugin = stage(&loader, "", "(unreachable)", &settings);
    let model = Arc::new(Model::new(worker(6)));
    let runner = Runner::new().windows(Arc::new(WindowResolver::new().configured(12_000)));
    let stages = vec![StageSpec::External(Arc::clone(&plugin))];
    let policy = Compaction::new().reserve_output_tokens(2_000).stages(stages).build().unwrap();
    let agent = Agent::new(model.clone(), "m").tool(Arc::new(Reads { bytes: 1_500 })).context_policy(Arc::new(policy));
    let mut session = runner.open("s").await.unwrap();
    let mut failed = None;
    for task in 0..20 {
        if let Err(error) = runner.run(&agent, &mut session, Message::user(format!("task {task}"))).await {
            failed = Some(error.to_string());
            break;
        }
    }
    let failed = failed.unwrap();
    assert!(failed.contains("theirs"), "{failed}");
    let calls = model.calls.lock().unwrap().len();
    assert!(runner.run(&agent, &mut session, Message::user("again")).await.is_err());
    assert_eq!(model.calls.lock().unwrap().len(), calls);
}

/// Asks once, and hands the answer on.
const ASKS: &str = r#"(module
  (import "foreshorten:plugin/summarizing@0.1.0" "replies" (func $replies (param i32)))
  (import "foreshorten:plugin/summarizing@0.1.0" "ask" (func $ask (param i32 i32 i32 i32 i32)))
  (import "foreshorten:plugin/summarizing@0.1.0" "section" (func $section (param i32 i32 i32 i32)))
  (memory (export "memory") 16)
  (global $next (mut i32) (i32.const 4096))
  (data (i32.const 32) "write a summary")
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
    (global.set $next (i32.add (local.get $at) (local.get 3)))
    (local.get $at))
  (func (export "foreshorten:plugin/summarizer-api@0.1.0#check") (result i32) (i32.const 16))
  (func (export "foreshorten:plugin/summarizer-api@0.1.0#step") (result i32)
    (call $replies (i32.const 64))
    (if (i32.eqz (i32.load (i32.const 68)))
      (then (call $ask (i32.const 32) (i32.const 5) (i32.const 32) (i32.const 15) (i32.const 1000)))
      (else (call $section (i32.const 32) (i32.const 0)
        (i32.load (i32.load (i32.const 64))) (i32.load (i32.add (i32.load (i32.const 64)) (i32.const 4))))))
    (i32.const 16)))"#;

#[tokio::test]
async fn a_summarizer_of_others_asks_the_runs_own_model_and_its_calls_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("asks.wasm");
    std::fs::write(&file, encode(&wat::parse_str(ASKS).unwrap()).unwrap()).unwrap();
    let plugin = Arc::new(Loader::new(Limits::caps()).unwrap().summarizer(&file).unwrap());
    let model = Arc::new(Model::new(worker(6)));
    let runner = Runner::new().windows(Arc::new(WindowResolver::new().configured(12_000)));
    let policy = Compaction::new()
        .reserve_output_tokens(2_000)
        .stages(vec![StageSpec::Summarize(foreshorten_core::plan::SummarizeHistory::default())])
        .summarizer(plugin.clone())
        .build()
        .unwrap();
    let agent = Agent::new(model.clone(), "m").tool(Arc::new(Reads { bytes: 1_500 })).context_policy(Arc::new(policy));
    let mut session = runner.open("s").await.unwrap();
    let (mut summarized, mut account) = (false, Account::default());
    for task in 0..12 {
        let outcome = runner.run(&agent, &mut session, Message::user(format!("task {task}"))).await.unwrap();
        summarized |= outcome.policy_usage.calls > 0;
        account.join(&outcome.plugins);
    }
    let asked = model.calls.lock().unwrap().iter().filter(|call| call.purpose == Purpose::Summary).count();
    let metrics = plugin.metrics();
    assert!(summarized && asked > 0);
    assert_eq!((metrics.calls, metrics.fault_count()), (asked as u64 * 2, 0));
    assert_eq!(account.0["asks"].calls, metrics.calls);
}
