//! A run over a built-in record, so that a plugin that cannot work fails when it is loaded and not in a session.

use foreshorten_core::{
    Compactor, Effect, PolicyConfig, Step, SummaryRequest, Turn,
    config::PipelineStage,
    summary::REQUIRED_SECTIONS,
    transcript::{Entry, OwnedTranscript, Part},
};

use super::super::{LoadError, Metrics, StagePlugin, SummaryPlugin};

/// Some fifty entries of every kind: text in several scripts, errors, an image, a call that waits, a result that nobody
/// asked for.
fn record() -> OwnedTranscript {
    let mut record = OwnedTranscript::default();
    record.push(Entry::system("You are an agent. Use the tools."));
    record.push(
        Entry::user("Find out why the build fails. Der Bau schlägt fehl. 构建失败了。")
            .with(Part::Image(String::new(), b"x".to_vec())),
    );
    for call in 0..14 {
        let id = format!("call_{}", call % 12);
        record.push(Entry::assistant(format!("Step {call}.")));
        record.push(Entry::reasoning("It may be the linker."));
        record.push(Entry::tool_call(&id, ["read", "run"][call % 2], format!("{{\"path\":\"src/{}.rs\"}}", call % 5)));
        let result = Entry::tool_result(&id, "error: cannot find `x` in this scope\n".repeat(20 + call * 5));
        record.push(if call % 5 == 0 { result.failed() } else { result });
    }
    record.push(Entry::tool_result("nobody", "asked"));
    record.push(Entry::user("And now?"));
    record.push(Entry::tool_call("last", "run", "{}"));
    record
}

/// A window in which the record is too large, so that a pass has work to do.
const WINDOW: u64 = 6_000;

pub(super) fn stage(plugin: &StagePlugin) -> Result<(), LoadError> {
    let failed = |why: &dyn std::fmt::Display| LoadError::Compile(format!("the trial run cannot be set up: {why}"));
    let config = PolicyConfig {
        stages: vec![PipelineStage::External(plugin.name().into())],
        may_condense: plugin.may_condense(),
        ..PolicyConfig::default()
    };
    let policy = config.build().map_err(|error| failed(&error))?;
    let record = record();
    let mut compactor = Compactor::new(&policy);
    compactor.sync(&record);
    compactor.begin(&record, Turn { window: Some(WINDOW), ..Turn::default() });
    loop {
        match compactor.poll(&record) {
            // A failure that is an error for sessions is one here as well; its fault is looked up below.
            Step::Effect(Effect::RunStage { .. }) => drop(plugin.run(&mut compactor, &record)),
            Step::Effect(_) => compactor.handle_archived(false),
            Step::Done(_) => break,
        }
    }
    verdict(&plugin.metrics, "run over a built-in record")
}

pub(super) fn summarizer(plugin: &SummaryPlugin) -> Result<(), LoadError> {
    let record = record();
    let policy = foreshorten_core::Policy::default();
    let mut compactor = Compactor::new(&policy);
    compactor.sync(&record);
    let request = SummaryRequest {
        entries: (1..30).collect(),
        text: "user: Find out why the build fails.\nassistant: Step 0.".into(),
        prior: None,
        earlier: None,
        sections: REQUIRED_SECTIONS,
        max_chars: 16_000,
        max_output_tokens: 1_000,
        aggressive: false,
    };
    // A summarizer that asks a model is as well as one that writes; only a fault of its own counts.
    let _ = plugin.write(&request, &record, compactor.columns(), compactor.ledger());
    verdict(&plugin.metrics, "step over a built-in record")
}

/// What came of it; the plugin's account starts afresh.
fn verdict(metrics: &std::sync::Mutex<Metrics>, what: &'static str) -> Result<(), LoadError> {
    let mut metrics = metrics.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match std::mem::take(&mut *metrics).last_fault {
        Some(fault) => Err(LoadError::Check(what, fault)),
        None => Ok(()),
    }
}
