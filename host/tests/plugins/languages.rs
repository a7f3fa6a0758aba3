//! Plugins in C, JavaScript and Python: from a template to a replay, and the examples with what they decide.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, OnceLock};

use foreshorten::core::{
    CompactionState, Compactor, PolicyConfig, Turn,
    config::PipelineStage,
    estimate::{ByteEstimator, Weigher},
    plan::Level,
    transcript::{Entry, OwnedTranscript, Transcript},
};
use foreshorten::drive::{Helpers, Summaries, settle_with};
use foreshorten::formats::read_session;
use foreshorten::plugin::{StagePlugin, Stages};

use crate::support::{alone, loader, repository};

/// The folder of compilers for other languages. Without one: loudly nothing; in CI a failure.
fn tools() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let got = FOUND.get_or_init(|| {
        let got = Command::new("bash").arg(repository().join("tools/get-guest-tools.sh")).output();
        match got {
            Ok(out) if out.status.success() => Some(PathBuf::from(String::from_utf8_lossy(&out.stdout).trim())),
            other => {
                assert!(std::env::var("CI").as_deref() != Ok("true"), "no tools for other languages: {other:?}");
                println!("SKIPPED: no tools for C, JavaScript and Python, so no plugin in them was built or tested");
                None
            }
        }
    });
    got.as_deref()
}

pub(crate) fn program(tools: &Path, folder: &Path, args: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_foreshorten"));
    program.args(args).current_dir(folder).stdin(Stdio::null());
    program.env("FORESHORTEN_CLANG", tools.join("bin/clang"));
    program.env("FORESHORTEN_COMPONENTIZE_QJS", tools.join("js/node_modules/.bin/componentize-qjs"));
    program.env("FORESHORTEN_COMPONENTIZE_PY", tools.join("py/bin/componentize-py"));
    program.output().unwrap()
}

fn good(tools: &Path, folder: &Path, args: &[&str]) -> String {
    let out = program(tools, folder, args);
    let said = || format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{args:?}: {}", said());
    String::from_utf8(out.stdout).unwrap()
}

/// An example, built from source and loaded with its own settings.
pub(crate) fn example(name: &str) -> Option<StagePlugin> {
    let tools = tools()?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let source = repository().join("plugins/examples").join(name);
    let out = folder.join(name).with_extension("wasm");
    good(tools, &source, &["plugin", "build", "--out", out.to_str().unwrap()]);
    std::fs::copy(source.join("plugin.toml"), folder.join("plugin.toml")).unwrap();
    Some(loader().stage(&folder).unwrap())
}

/// The state after one pass of this stage alone.
pub(crate) fn passed(plugins: &Stages, plugin: &StagePlugin, record: &dyn Transcript, window: u64) -> CompactionState {
    let stages = vec![PipelineStage::External(plugin.name().into())];
    // By the rule that needs no table: windows of these tests are counted in it.
    let weigher = Weigher { bytes: ByteEstimator::BytesPer4, ..Weigher::default() };
    let policy = PolicyConfig { stages, weigher, ..PolicyConfig::default() }.build().unwrap();
    let mut compactor = Compactor::new(&policy);
    compactor.sync(record);
    compactor.begin(record, Turn { window: Some(window), manual: true, ..Turn::default() });
    settle_with(&mut compactor, record, Helpers { summarizer: &Summaries::None, store: None, plugins }).unwrap();
    assert_eq!(plugin.metrics().last_fault, None);
    compactor.state().clone()
}

pub(crate) fn level(state: &CompactionState, entry: usize) -> Level {
    state.record(entry).map_or(Level::Verbatim, |record| record.action.level())
}

/// Over every session of the repository: no fault, and it does something somewhere.
pub(crate) fn over_sessions(plugins: &Stages, plugin: &Arc<StagePlugin>) {
    for file in std::fs::read_dir(repository().join("testdata/sessions")).unwrap() {
        let Ok(conversations) = read_session(std::fs::read(file.unwrap().path()).unwrap(), None) else { continue };
        for conversation in conversations {
            passed(plugins, plugin, &conversation.transcript, 16_000);
        }
    }
    println!("{}: {:?}", plugin.name(), plugin.metrics());
}

/// Whether tests that compile a Python interpreter are wanted: an engine that is not optimised itself takes minutes for one.
pub(crate) fn slow() -> bool {
    let wanted = std::env::var_os("FORESHORTEN_SLOW_TESTS").is_some();
    if !wanted {
        println!("NOT RUN: components with Python in them are built but not loaded; FORESHORTEN_SLOW_TESTS=1 does");
    }
    wanted
}

/// From an empty folder to a replay, for both worlds.
pub(crate) fn from_template_to_replay(language: &str) {
    let Some(tools) = tools() else { return };
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    good(tools, here, &["plugin", "new", "--lang", language, "my-stage"]);
    let built = good(tools, here, &["plugin", "build", "my-stage"]);
    assert_eq!(built.trim(), "my-stage/my-stage.wasm");
    let inspected = good(tools, here, &["plugin", "inspect", "my-stage"]);
    assert!(inspected.contains("stage, for foreshorten:plugin@0.1.0") && !inspected.contains("wasi"), "{inspected}");
    if language == "python" && !slow() {
        return;
    }
    let session = repository().join("testdata/sessions/coding-agent.claude-code.jsonl");
    let replay = ["replay", session.to_str().unwrap(), "--window", "32000", "--stage", "my-stage/plugin.toml"];
    assert!(good(tools, here, &replay).contains("my-stage → offload_tool_results"));
    good(tools, here, &["plugin", "new", "--lang", language, "--world", "summarizer", "my-summary"]);
    good(tools, here, &["plugin", "build", "my-summary"]);
    if language == "c" {
        // Those that bring an interpreter are checked by hand (tools/try-as-author): that takes long in a build like this.
        assert!(good(tools, here, &["plugin", "check", "my-stage"]).contains("passed\n"));
        assert!(good(tools, here, &["plugin", "check", "my-summary"]).contains("passed\n"));
    }
}

#[test]
fn a_plugin_in_c_from_an_empty_folder_to_a_replay() {
    from_template_to_replay("c");
}

/// Runs a unit test of a new project with the language's own tool; a machine without it says so.
fn unit_test(language: &str, world: &str, how: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let args = ["plugin", "new", "--lang", language, "--world", world, "mine"];
    good(Path::new(""), folder.path(), &args);
    let done = Command::new(how[0]).args(&how[1..]).current_dir(folder.path().join("mine")).output();
    match done {
        Ok(out) => assert!(
            out.status.success(),
            "{}{}",
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr)
        ),
        Err(error) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{}: {error}", how[0]);
            println!("SKIPPED: no {}, so the unit test of a new plugin was not run", how[0]);
        }
    }
}

#[test]
fn new_projects_pass_the_unit_tests_they_come_with() {
    for world in ["stage", "summarizer"] {
        let cc = format!("cc -Wall -Wextra -Werror -o test test_{world}.c {world}.c foreshorten.c && ./test");
        unit_test("c", world, &["sh", "-c", &cc]);
        unit_test("js", world, &["node", "--import", "./test/host.mjs", "--test", &format!("test/{world}.test.js")]);
        unit_test("python", world, &["python3", "-m", "unittest"]);
    }
}

#[test]
fn what_is_missing_is_named_with_what_to_install() {
    let folder = tempfile::tempdir().unwrap();
    for (language, told) in [
        ("c", "apt install clang lld"),
        ("js", "run `npm install` in js"),
        ("python", "pip install -r requirements.txt"),
    ] {
        good(Path::new(""), folder.path(), &["plugin", "new", "--lang", language, language]);
        let out = Command::new(env!("CARGO_BIN_EXE_foreshorten"))
            .args(["plugin", "build", language])
            .current_dir(folder.path())
            .env("PATH", folder.path())
            .env_remove("FORESHORTEN_CLANG")
            .env_remove("FORESHORTEN_COMPONENTIZE_QJS")
            .env_remove("FORESHORTEN_COMPONENTIZE_PY")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.code() == Some(2) && said.contains(told), "{language}: {said}");
    }
    let out = program(Path::new("/nowhere"), folder.path(), &["plugin", "build", "c"]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("FORESHORTEN_CLANG names /nowhere/bin/clang"));
    let out = program(Path::new(""), folder.path(), &["plugin", "build", "."]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("there is no plugin to build"));
}

/// A component that imports WASI is not written, and its author is told how to avoid it.
#[test]
fn what_a_loader_would_refuse_is_not_built() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"(component (import "wasi:clocks/wall-clock@0.2.0" (instance)))"#;
    std::fs::write(folder.path().join("impure.wasm"), wat::parse_str(text).unwrap()).unwrap();
    let out = program(Path::new(""), folder.path(), &["plugin", "build", "impure.wasm"]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(
        out.status.code() == Some(3) && said.contains("wasi:clocks/wall-clock@0.2.0") && said.contains("--stub-wasi")
    );
    assert!(!folder.path().join("impure.component.wasm").exists());
}

#[test]
fn the_example_in_c_offloads_blobs_and_leaves_prose() {
    let Some(plugin) = example("elide-blobs") else { return };
    let (plugins, plugin) = alone(plugin);
    let prose = "The build failed because the linker could not find the library. ".repeat(120);
    let base64 = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk".repeat(120);
    let minified = format!("!function(e,t){{{}}}", "var n=t(0),r=n.n(e);o.a=function(){return r()};".repeat(180));
    let hex = "0000 4865 6c6c 6f20 776f 726c 6421 0a00 1234\n".repeat(200);
    let chinese = "构建失败,因为链接器找不到库。".repeat(300);
    let texts = [&prose, &base64, &prose, &minified, &chinese, &hex, &prose];
    let mut record = OwnedTranscript::default();
    record.push(Entry::user("look"));
    for (call, text) in texts.into_iter().enumerate() {
        record.push(Entry::tool_call(format!("c{call}"), "read", format!("{{\"path\":{call}}}")));
        record.push(Entry::tool_result(format!("c{call}"), text.as_str()));
    }
    (0..4).for_each(|turn| record.push(Entry::user(format!("and {turn}?"))));
    record.push(Entry::assistant("Done.".repeat(4_000)));
    let state = passed(&plugins, &plugin, &record, 39_000);
    let levels: Vec<Level> = (0..7).map(|call| level(&state, 2 + call * 2)).collect();
    let (kept, cut) = (Level::Verbatim, Level::Preview);
    assert_eq!(levels, [kept, cut, kept, cut, kept, cut, kept]);
    assert_eq!(plugin.metrics().refused_count(), 0);
    over_sessions(&plugins, &plugin);
}
