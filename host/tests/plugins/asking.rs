//! Summarizers that ask a model, where there is none.

use std::fs;
use std::process::{Command, Stdio};

use foreshorten::core::{Compactor, PolicyConfig, Turn, config::PipelineStage, plan::SummarizeHistory};
use foreshorten::drive::{Helpers, Summaries, settle_counted};
use foreshorten::plugin::{Account, Fault, Stages, wasm::encode};

use crate::support::{loader, repository, talk};

/// A summarizer whose `step` is this text; 16 is the address of a good verdict.
fn summarizer(step: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
  (import "foreshorten:plugin/summarizing@0.1.0" "ask" (func $ask (param i32 i32 i32 i32 i32)))
  (import "foreshorten:plugin/summarizing@0.1.0" "section" (func $section (param i32 i32 i32 i32)))
  (import "foreshorten:plugin/history@0.1.0" "len" (func $len (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 32) "write a summary")
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096))
  (func (export "foreshorten:plugin/summarizer-api@0.1.0#check") (result i32) (i32.const 16))
  (func (export "foreshorten:plugin/summarizer-api@0.1.0#step") (result i32) {step} (i32.const 16)))"#
    );
    encode(&wat::parse_str(text).unwrap()).unwrap()
}

const ASK: &str = "(call $ask (i32.const 32) (i32.const 5) (i32.const 32) (i32.const 15) (i32.const 1000))";

#[test]
fn one_that_asks_is_refused_before_the_first_pass_and_told_what_to_take_instead() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("asks.wasm"), summarizer(ASK)).unwrap();
    let plugin = loader().summarizer(&home.path().join("asks.wasm")).unwrap();
    assert!(plugin.asks_model());
    let session = repository().join("testdata/sessions/coding-agent.claude-code.jsonl");
    for command in [&["replay", session.to_str().unwrap()][..], &["compact"]] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_foreshorten"));
        program.args(command).args(["--window", "32000", "--plugin-cache", "off", "--summarizer", "./asks.wasm"]);
        let out = program.current_dir(home.path()).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(said.contains("asks a model") && said.contains("extractive"), "{said}");
    }
}

#[test]
fn one_that_asks_later_is_called_once_and_not_again() {
    let home = tempfile::tempdir().unwrap();
    // The built-in record is shorter than this.
    let step = format!(
        "(if (i32.gt_u (call $len) (i32.const 150)) (then {ASK})
           (else (call $section (i32.const 32) (i32.const 5) (i32.const 32) (i32.const 15))))"
    );
    fs::write(home.path().join("later.wasm"), summarizer(&step)).unwrap();
    let plugin = loader().summarizer(&home.path().join("later.wasm")).unwrap();
    assert!(!plugin.asks_model());
    let summaries = Summaries::Plugin(plugin.into());
    assert_eq!(summaries.lacks_model(), None);
    let stages = vec![PipelineStage::Summarize(SummarizeHistory::default())];
    let policy = PolicyConfig { stages, ..PolicyConfig::default() }.build().unwrap();
    let record = talk(100);
    let mut compactor = Compactor::new(&policy);
    compactor.sync(&record);
    let mut account = Account::default();
    for _ in 0..3 {
        compactor.begin(&record, Turn { window: Some(30_000), can_summarize: true, manual: true, ..Turn::default() });
        let helpers = Helpers { summarizer: &summaries, store: None, plugins: &Stages::default() };
        settle_counted(&mut compactor, &record, helpers, &mut account).unwrap();
    }
    assert!(summaries.lacks_model().unwrap().contains("later"));
    assert_eq!(account.0["later"].calls, 1, "{account:?}");
    assert_eq!(Fault::NoModel.to_string(), "it asks a model, and there is none here");
}
