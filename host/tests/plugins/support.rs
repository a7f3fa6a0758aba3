//! Hand-written modules, a record, and a turn over it.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use foreshorten::core::{
    CompactionState, Compactor, Outcome, Policy, PolicyConfig, Turn,
    config::PipelineStage,
    plan::ClearToolResults,
    transcript::{Entry, OwnedTranscript},
};
use foreshorten::drive::{Helpers, Summaries, settle_with};
use foreshorten::plugin::{Limits, Loader, Required, Settings, StagePlugin, Stages, sha256, wasm::encode};

/// One loader for all tests, with the operator's usual caps.
pub(crate) fn loader() -> &'static Loader {
    static LOADER: OnceLock<Loader> = OnceLock::new();
    LOADER.get_or_init(|| Loader::new(Limits::caps()).unwrap())
}

/// A stage in text: `imports` are lines of imports, `body` is that of `plan`, which leaves the address of its verdict; 16
/// is the address of a good one, 32 that of an error that says `no`.
pub(crate) fn module(imports: &str, body: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
  {imports}
  (memory (export "memory") 2)
  (global $next (mut i32) (i32.const 4096))
  (data (i32.const 32) "\01\00\00\00\30\00\00\00\02\00\00\00")
  (data (i32.const 48) "no\ff\fe")
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
    (global.set $next (i32.add (local.get $at) (local.get 3)))
    (block $fits
      (br_if $fits (i32.le_u (global.get $next) (i32.mul (memory.size) (i32.const 65536))))
      (drop (memory.grow (i32.add (i32.shr_u (local.get 3) (i32.const 16)) (i32.const 1)))))
    (local.get $at))
  (func $deeper (param i32) (result i32) (i32.add (call $deeper (local.get 0)) (i32.const 1)))
  (func (export "foreshorten:plugin/stage-api@0.1.0#check") (result i32) (i32.const 16))
  (func (export "foreshorten:plugin/stage-api@0.1.0#plan") (result i32)
    (local $at i32)
    {body}))"#
    );
    wat::parse_str(text).unwrap()
}

/// The stage as a plugin, not tried on a record.
pub(crate) fn plugin(imports: &str, body: &str, settings: &Settings) -> StagePlugin {
    let component = encode(&module(imports, body)).unwrap();
    loader().stage_of(&component, "hostile", sha256(&component), settings).unwrap()
}

/// A talk of `calls` calls of about 500 tokens each.
pub(crate) fn talk(calls: usize) -> OwnedTranscript {
    let mut record = OwnedTranscript::default();
    record.push(Entry::user("look at everything"));
    for call in 0..calls {
        record.push(Entry::tool_call(format!("c{call}"), "read", format!("{{\"path\":\"{}\"}}", call % 9)));
        record.push(Entry::tool_result(format!("c{call}"), "some line of text\n".repeat(110)));
    }
    record.push(Entry::user("and now?"));
    record
}

/// A policy of one plugin, and clearing after it.
pub(crate) fn policy(plugin: Option<&str>) -> Policy {
    let mut stages: Vec<PipelineStage> = plugin.map(|name| PipelineStage::External(name.into())).into_iter().collect();
    stages.push(PipelineStage::plan(ClearToolResults::default()));
    PolicyConfig { stages, ..PolicyConfig::default() }.build().unwrap()
}

/// What one turn came to.
pub(crate) struct Played {
    pub(crate) outcome: Outcome,
    pub(crate) state: CompactionState,
}

impl Played {
    pub(crate) fn said(&self, what: &str) -> bool {
        self.outcome.notice.iter().any(|notice| notice.detail.iter().any(|line| line.contains(what)))
    }
}

/// One turn in a window of 24,000 tokens, from `state` on.
pub(crate) fn turn(
    policy: &Policy,
    plugins: &Stages,
    record: &OwnedTranscript,
    state: Option<CompactionState>,
    change: impl FnOnce(Turn<'_>) -> Turn<'_>,
) -> Result<Played, Box<(Required, CompactionState)>> {
    let mut compactor = match state {
        Some(state) => Compactor::resume(policy, state),
        None => Compactor::new(policy),
    };
    compactor.sync(record);
    compactor.begin(record, change(Turn { window: Some(24_000), ..Turn::default() }));
    let helpers = Helpers { summarizer: &Summaries::None, store: None, plugins };
    if let Err(failed) = settle_with(&mut compactor, record, helpers) {
        return Err(Box::new((failed, compactor.state().clone())));
    }
    Ok(Played { outcome: compactor.outcome().clone(), state: compactor.state().clone() })
}

/// One plugin as the plugins of a pipeline.
pub(crate) fn alone(plugin: StagePlugin) -> (Stages, Arc<StagePlugin>) {
    let mut stages = Stages::default();
    let plugin = stages.push(plugin);
    (stages, plugin)
}

pub(crate) fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
