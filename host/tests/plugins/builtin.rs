//! The built-in stages as plugins: native, as a component and as a native library they decide alike, byte for byte, over
//! recorded sessions.
//!
//! By default over the sessions of this repository and the shorter ones of the folder beside it; with
//! `FORESHORTEN_ALL_SESSIONS=1` over all of them.

use std::path::PathBuf;

use foreshorten::core::{
    Compactor, Policy, PolicyConfig, Turn,
    config::PipelineStage,
    plan::{self, MiddleSnip, Stage, StageContext, ToolRule},
};
use foreshorten::drive::{Helpers, Summaries, settle_with};
use foreshorten::formats::{Conversation, read_session};
use foreshorten::plugin::{Limits, Settings, StagePlugin, Stages, dylib::DylibLoader, sha256};
use foreshorten_testkit::Growing;

use crate::guests::{build, recorded, shared_sessions};
use crate::native::library;
use crate::support::{loader, repository};

/// A stage: its name, its parameters as a plugin is told them, and itself with the same.
type Known = (&'static str, &'static str, fn() -> PipelineStage);

/// Stages that plan, with parameters under which they have work to do.
fn stages() -> Vec<Known> {
    vec![
        (
            "offload_tool_results",
            r#"{"stage": "offload_tool_results", "min_chars": 900, "preview_chars": 120}"#,
            || {
                PipelineStage::plan(plan::OffloadToolResults {
                    min_chars: 900,
                    preview_chars: 120,
                    ..plan::OffloadToolResults::default()
                })
            },
        ),
        (
            "tool_result_budget",
            r#"{"stage": "tool_result_budget", "tool_result_budget_chars": 2500, "large_tool_result_chars": 1800,
                "tool_result_preview_chars": 200}"#,
            || {
                PipelineStage::plan(plan::ToolResultBudget {
                    tool_result_budget_chars: 2_500,
                    large_tool_result_chars: 1_800,
                    tool_result_preview_chars: 200,
                })
            },
        ),
        (
            "clear_tool_results",
            r#"{"stage": "clear_tool_results", "keep_last": 2, "clear_at_least_tokens": 300}"#,
            || {
                PipelineStage::plan(plan::ClearToolResults {
                    keep_last: 2,
                    clear_at_least_tokens: Some(300),
                    ..plan::ClearToolResults::default()
                })
            },
        ),
        ("tool_result_retention", r#"{"stage": "tool_result_retention"}"#, || {
            PipelineStage::plan(plan::ToolResultRetention::default())
        }),
        ("drop_superseded", r#"{"stage": "drop_superseded", "min_chars": 60}"#, || {
            PipelineStage::plan(plan::DropSuperseded { min_chars: 60 })
        }),
        ("drop_old_images", r#"{"stage": "drop_old_images", "keep_last": 0}"#, || {
            PipelineStage::plan(plan::DropOldImages { keep_last: 0 })
        }),
        ("clip_tool_arguments", r#"{"stage": "clip_tool_arguments", "min_bytes": 150, "keep_last": 1}"#, || {
            PipelineStage::plan(plan::ClipToolArguments { min_bytes: 150, keep_last: 1 })
        }),
        ("clear_reasoning", r#"{"stage": "clear_reasoning", "keep_last": 1}"#, || {
            PipelineStage::plan(plan::ClearReasoning { keep_last: 1 })
        }),
        (
            "middle_snip",
            r#"{"stage": "middle_snip", "max_entries": null, "keep_initial_entries": 2, "keep_recent_entries": 12}"#,
            || {
                PipelineStage::plan(Asked(MiddleSnip {
                    max_entries: None,
                    keep_initial_entries: 2,
                    keep_recent_entries: 12,
                }))
            },
        ),
    ]
}

/// The snip without its wish for a pass, which a plugin cannot have: when passes run is the host's business.
struct Asked(MiddleSnip);

impl Stage for Asked {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn plan(&self, ctx: &mut StageContext<'_>) {
        self.0.plan(ctx);
    }
}

/// Pipelines: each stage alone, the seeds' cheap ones in a row, and the earlier proposal's.
fn pipelines() -> Vec<Vec<&'static str>> {
    let mut pipelines: Vec<Vec<&str>> = stages().iter().map(|&(name, ..)| vec![name]).collect();
    pipelines.push(vec![
        "drop_superseded",
        "drop_old_images",
        "offload_tool_results",
        "clip_tool_arguments",
        "clear_reasoning",
        "clear_tool_results",
    ]);
    pipelines.push(vec!["tool_result_budget", "middle_snip", "tool_result_retention"]);
    pipelines
}

fn policy(stages: Vec<PipelineStage>) -> Policy {
    // Every rule is met by some session.
    let rule = |name: &str, rule| (name.to_owned(), rule);
    let tools = vec![
        rule("Bash", ToolRule::DropFirst),
        rule("Grep", ToolRule::Never),
        rule("Read", ToolRule::KeepArguments),
        rule("run_shell_command", ToolRule::DropFirst),
        rule("shell", ToolRule::DropFirst),
        rule("web_search", ToolRule::KeepArguments),
    ];
    PolicyConfig { stages, tools, ..PolicyConfig::default() }.build().unwrap()
}

/// What was compared.
#[derive(Debug, Default)]
struct Account {
    sessions: usize,
    calls: usize,
    passes: usize,
    decisions: u64,
    records: usize,
    notes: usize,
}

/// One session through one pipeline, built in and as plugins of both kinds, compared after every call.
fn compare(
    conversation: &Conversation,
    window: u64,
    [native, component, library]: [&Policy; 3],
    [components, libraries]: [&Stages; 2],
    account: &mut Account,
    place: &str,
) {
    let none = Stages::default();
    let mut three = [
        (Compactor::new(native), &none),
        (Compactor::new(component), components),
        (Compactor::new(library), libraries),
    ];
    for (call, &len) in conversation.calls.iter().enumerate() {
        let record = Growing { whole: &conversation.transcript, len };
        // Now and then the provider rejects: thresholds are dropped then.
        let overflow = call % 13 == 12;
        for (compactor, plugins) in &mut three {
            compactor.sync(&record);
            compactor.begin(&record, Turn { window: Some(window), overflow, ..Turn::default() });
            settle_with(compactor, &record, Helpers { summarizer: &Summaries::None, store: None, plugins }).unwrap();
        }
        let [(native, _), others @ ..] = &three;
        let state = native.state().encode();
        for (other, kind) in others.iter().map(|(other, _)| other).zip(["component", "library"]) {
            assert!(state == other.state().encode(), "state of the {kind}, call {call}, {place}");
            assert!(native.view().pieces().eq(other.view().pieces()), "view of the {kind}, call {call}, {place}");
        }
        ranges_are_what_each_entry_is(native);
        account.calls += 1;
        account.passes += usize::from(native.outcome().compacted);
    }
    account.records += three[0].0.state().records().len();
    account.notes += three[0].0.state().notes().len();
}

/// What columns are made of, many entries at a time, is what each entry alone is answered.
fn ranges_are_what_each_entry_is<P: std::borrow::Borrow<Policy>>(compactor: &Compactor<P>) {
    let (ledger, columns) = (compactor.ledger(), compactor.columns());
    let len = columns.len();
    for entries in [0..len, len / 3..len - len / 4] {
        let each = entries.clone();
        assert!(each.clone().map(|entry| ledger.level(columns, entry)).eq(ledger.levels(columns, entries.clone())));
        let weights = each.clone().map(|entry| ledger.view_weight(columns, entry));
        assert!(weights.eq(ledger.view_weights(columns, entries.clone())));
        let tail = columns.groups() * 3 / 4;
        let protected = each.map(|entry| ledger.is_pinned(columns, entry) || columns.group(entry) >= tail);
        assert!(protected.eq(ledger.protections(columns, tail, entries)));
    }
}

#[test]
fn the_built_in_stages_decide_alike_built_in_as_components_and_as_libraries() {
    let source = repository().join("plugins/builtin");
    let Some(component) = build(&source) else { return };
    let library = library(&source);
    let all = std::env::var_os("FORESHORTEN_ALL_SESSIONS").is_some();
    let bytes = std::fs::read(&component).unwrap();
    let settings = |config: &str| Settings {
        config: Some(config.into()),
        limits: Limits::caps(),
        sha256: Some(sha256(&std::fs::read(&library).unwrap())),
        ..Settings::default()
    };
    let first = settings(stages()[0].1);
    let compiled = loader().stage_of(&bytes, "compiled", sha256(&bytes), &first).unwrap();
    let loaded = DylibLoader::new().stage_with(&library, &first).unwrap();
    let sessions: Vec<(PathBuf, Vec<Conversation>)> = recorded()
        .into_iter()
        .filter_map(|path| Some((path.clone(), read_session(std::fs::read(&path).ok()?, None).ok()?)))
        .collect();
    let mut totals = Account::default();
    for names in pipelines() {
        let mut account = Account::default();
        let (mut built_in, mut external) = (Vec::new(), Vec::new());
        let (mut components, mut libraries) = (Stages::default(), Stages::default());
        let mut counted: Vec<std::sync::Arc<StagePlugin>> = Vec::new();
        for name in &names {
            let (_, config, make) = stages().into_iter().find(|(known, ..)| known == name).unwrap();
            built_in.push(make());
            external.push(*name);
            // The name of the stage is in the notice and may be in the state: the plugin's is the same.
            counted.push(components.push(compiled.configured(name, config).unwrap()));
            counted.push(libraries.push(loaded.configured(name, config).unwrap()));
        }
        let foreign = || policy(external.iter().map(|name| PipelineStage::External((*name).into())).collect());
        let (native, component, library) = (policy(built_in), foreign(), foreign());
        for (path, conversations) in &sessions {
            let short = |one: &&Conversation| all || one.calls.len() <= 60;
            for conversation in conversations.iter().filter(short).take(if all { usize::MAX } else { 3 }) {
                for window in [7_000, 24_000] {
                    let place = format!("{names:?} in {window}, {}", path.display());
                    let policies = [&native, &component, &library];
                    compare(conversation, window, policies, [&components, &libraries], &mut account, &place);
                }
                account.sessions += 1;
            }
        }
        for plugin in &counted {
            let metrics = plugin.metrics();
            assert_eq!(metrics.fault_count(), 0, "{names:?}: {metrics:?}");
            account.decisions += metrics.accepted;
        }
        println!("{}: {account:?}", names.join(" "));
        // The sessions of this repository alone leave one stage without work.
        let worked = account.decisions > 0 && account.passes > 0;
        assert!(worked || shared_sessions().is_none(), "{names:?} had nothing to do: {account:?}");
        totals.sessions += account.sessions;
        totals.calls += account.calls;
        totals.passes += account.passes;
        totals.decisions += account.decisions;
        totals.records += account.records;
        totals.notes += account.notes;
    }
    println!("all pipelines, {}: {totals:?}", if all { "all sessions" } else { "short sessions" });
}
