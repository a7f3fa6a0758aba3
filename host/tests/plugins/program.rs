//! The program with plugins, as a new author would use it.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::guests::{example, wasm_cargo};
use crate::support::repository;

fn program(args: &[&str], folder: &Path) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_foreshorten"));
    program.args(args).current_dir(folder).stdin(Stdio::null()).env("FORESHORTEN_PLUGIN_CACHE", "off");
    if let Some(Some(cargo)) = wasm_cargo() {
        program.env("FORESHORTEN_WASM_CARGO", cargo);
    }
    // The folder of guests: their library is built there already.
    program.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests"));
    program.output().unwrap()
}

fn good(args: &[&str], folder: &Path) -> String {
    let out = program(args, folder);
    let said = || format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{args:?}: {}", said());
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn from_an_empty_folder_to_a_replay() {
    if wasm_cargo().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    good(&["plugin", "new", "my-stage"], folder.path());
    let built = good(&["plugin", "build", "my-stage"], folder.path());
    assert_eq!(built.trim(), "my-stage/my-stage.wasm");
    let checked = good(&["plugin", "check", built.trim()], folder.path());
    assert!(checked.contains("passed") && checked.contains("50,000 entries"), "{checked}");
    println!("{checked}");
    let inspected = good(&["plugin", "inspect", built.trim()], folder.path());
    assert!(inspected.contains("stage, for foreshorten:plugin@0.1.0") && !inspected.contains("wasi"), "{inspected}");
    let session = repository().join("testdata/sessions/coding-agent.claude-code.jsonl");
    let session = session.to_str().unwrap();
    let replayed = good(&["replay", session, "--window", "32000", "--stage", built.trim()], folder.path());
    assert!(replayed.contains("my-stage → offload_tool_results"), "{replayed}");
    good(&["plugin", "new", "my-summary", "--world", "summarizer"], folder.path());
    let built = good(&["plugin", "build", "my-summary"], folder.path());
    assert!(good(&["plugin", "check", built.trim()], folder.path()).contains("passed"));
}

#[test]
fn a_stage_stands_anywhere_in_a_pipeline_in_flags_and_in_a_file() {
    let Some(file) = example("dedupe-reads") else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(&file, folder.path().join("dedupe.wasm")).unwrap();
    let session = repository().join("testdata/sessions/coding-agent.claude-code.jsonl");
    let session = session.to_str().unwrap();
    let out = good(
        &["replay", session, "--window", "32000", "--stages", "offload,dedupe.wasm,clear,summarize", "--json"],
        folder.path(),
    );
    assert!(out.contains("dedupe"), "{out}");
    std::fs::write(folder.path().join("policy.toml"), "stages = [\"offload\", \"./dedupe.wasm\", \"clear\"]").unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let config = folder.path().join("policy.toml");
    let out = good(&["replay", session, "--window", "32000", "--config", config.to_str().unwrap()], elsewhere.path());
    assert!(out.contains("offload_tool_results → dedupe → clear_tool_results"), "{out}");
    let out = program(&["replay", session, "--window", "32000", "--stage", "./missing.wasm"], folder.path());
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("missing.wasm"));
}

#[test]
fn compact_takes_a_stage_and_a_summarizer_and_keeps_their_state() {
    let (Some(stage), Some(summarizer)) = (example("dedupe-reads"), example("extractive-summarizer")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut messages = vec![serde_json::json!({"role": "user", "content": "look"})];
    for call in 0..30 {
        let id = format!("c{call}");
        let function = serde_json::json!({"name": "read", "arguments": format!("{{\"p\":{}}}", call % 3)});
        messages.push(serde_json::json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": function}]}));
        messages
            .push(serde_json::json!({"role": "tool", "tool_call_id": id, "content": "a line of text\n".repeat(100)}));
    }
    let body = serde_json::json!({"model": "m", "messages": messages}).to_string();
    std::fs::write(folder.path().join("body.json"), body).unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_foreshorten"))
        .args(["compact", "--window", "16000", "--state", "state", "--notice", "notice.json", "--stage"])
        .arg(stage)
        .arg("--summarizer")
        .arg(summarizer)
        .current_dir(folder.path())
        .env("FORESHORTEN_PLUGIN_CACHE", "off")
        .stdin(std::fs::File::open(folder.path().join("body.json")).unwrap())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let notice = std::fs::read_to_string(folder.path().join("notice.json")).unwrap();
    assert!(
        notice.contains("\"dedupe-reads\"") && notice.contains("results of calls that were made again"),
        "{notice}"
    );
    assert!(out.stdout.len() < 30_000, "{}", out.stdout.len());
    let notice: serde_json::Value = serde_json::from_str(&notice).unwrap();
    let account = &notice["plugins"]["dedupe-reads"];
    assert!(account["calls"].as_u64() > Some(0) && account["tokens_saved"].as_u64() > Some(0), "{notice}");
}

/// A report as JSON, without what each plugin used up: time is never the same twice, and a library has no fuel.
fn without_accounts(report: &str) -> String {
    let mut report: serde_json::Value = serde_json::from_str(report).unwrap();
    for session in report["sessions"].as_array_mut().unwrap() {
        let plugins = session.as_object_mut().unwrap().remove("plugins");
        assert!(plugins.is_some_and(|plugins| plugins["dedupe"]["calls"].as_u64() > Some(0)));
    }
    report.to_string()
}

#[test]
fn a_native_library_needs_the_operators_word_and_a_pin_and_then_stands_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let ending = std::env::consts::DLL_SUFFIX;
    for (name, file) in [("dedupe-reads", "dedupe"), ("extractive-summarizer", "summary")] {
        let built = crate::native::library(&repository().join("plugins/examples").join(name));
        let here = path.join(format!("{file}{ending}"));
        std::fs::copy(&built, &here).unwrap();
        std::fs::copy(
            built.with_extension(format!("{}.sha256", &ending[1..])),
            here.with_extension(format!("{}.sha256", &ending[1..])),
        )
        .unwrap();
    }
    let (stage, summary) = (format!("dedupe{ending}"), format!("summary{ending}"));
    let session = repository().join("testdata/sessions/coding-agent.claude-code.jsonl");
    let session = session.to_str().unwrap();
    let stages = format!("offload,{stage},clear,summarize");
    let refused = |args: &[&str]| {
        let out = program(args, path);
        assert!(!out.status.success(), "{args:?}");
        String::from_utf8(out.stderr).unwrap()
    };
    let replay = ["replay", session, "--window", "32000", "--json"];
    // Without the word: what it takes, both of it.
    for args in [["--stages", stages.as_str()], ["--summarizer", summary.as_str()]] {
        let why = refused(&[&replay[..], &args[..]].concat());
        assert!(why.contains("--allow-native") && why.contains("SHA-256"), "{why}");
    }
    // Data cannot give it.
    std::fs::write(path.join("policy.toml"), "allow_native = true\n").unwrap();
    let why = refused(&[&replay[..], &["--config", "policy.toml"]].concat());
    assert!(why.contains("no setting of a file"), "{why}");
    // With it, in flags and in a file, the account is that of the component.
    let all = ["--allow-native", "--summarizer", summary.as_str()];
    let report = |args: &[&str]| without_accounts(&good(&[&replay[..], args].concat(), path));
    let flags = report(&[&all[..], &["--stages", stages.as_str()]].concat());
    std::fs::write(path.join("policy.toml"), format!("stages = [\"offload\", \"{stage}\", \"clear\", \"summarize\"]"))
        .unwrap();
    let file = report(&[&all[..], &["--config", "policy.toml"]].concat());
    assert_eq!(flags, file);
    assert!(flags.contains("dedupe"), "{flags}");
    if let (Some(stage), Some(summary)) = (example("dedupe-reads"), example("extractive-summarizer")) {
        std::fs::copy(stage, path.join("dedupe.wasm")).unwrap();
        let stages = ["--summarizer", summary.to_str().unwrap(), "--stages", "offload,dedupe.wasm,clear,summarize"];
        let component = report(&stages);
        // The summarizer's path is in no report, and the names of both stages are the same.
        assert_eq!(flags, component);
    }
    // Not what was pinned, and not pinned at all.
    let pin = path.join(format!("{stage}.sha256"));
    std::fs::write(&pin, "00".repeat(32)).unwrap();
    assert!(refused(&[&replay[..], &all, &["--stages", stages.as_str()]].concat()).contains("is pinned"));
    std::fs::remove_file(&pin).unwrap();
    assert!(refused(&[&replay[..], &all, &["--stages", stages.as_str()]].concat()).contains("must be pinned"));
}
