//! The example plugins, built from source by the program itself.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use foreshorten::core::{
    Compactor, PolicyConfig, Turn,
    config::PipelineStage,
    plan::{ClearToolResults, DropOldImages, DropSuperseded, SummarizeHistory},
    transcript::{Entry, OwnedTranscript, Part},
    view::Piece,
};
use foreshorten::drive::{Helpers, Summaries, settle_with};
use foreshorten::formats::{Conversation, read_session};
use foreshorten::plugin::Stages;
use foreshorten_testkit::Growing;

use crate::support::{alone, loader, repository};

/// A cargo that can build for wasm32: the one there is where rustup has the target, else what the toolchain script gets.
/// Without either: loudly nothing; in CI a failure.
pub(crate) fn wasm_cargo() -> Option<Option<PathBuf>> {
    static FOUND: OnceLock<Option<Option<PathBuf>>> = OnceLock::new();
    FOUND
        .get_or_init(|| {
            let libdir = Command::new("rustc")
                .args(["--print", "target-libdir", "--target", "wasm32-unknown-unknown"])
                .output()
                .map(|out| PathBuf::from(String::from_utf8_lossy(&out.stdout).trim()));
            if libdir.is_ok_and(|folder| folder.is_dir()) {
                return Some(None);
            }
            if let Some(cargo) = std::env::var_os("FORESHORTEN_WASM_CARGO") {
                return Some(Some(cargo.into()));
            }
            let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
            let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
            let prefix = cache.join("foreshorten/bare-toolchain");
            let script = repository().join("tools/get-bare-toolchain.sh");
            let got = Command::new("bash").arg(script).arg(&prefix).status().is_ok_and(|status| status.success());
            if got {
                return Some(Some(prefix.join("bin/cargo-bare")));
            }
            assert!(std::env::var("CI").as_deref() != Ok("true"), "no toolchain for wasm32-unknown-unknown");
            println!("SKIPPED: no toolchain for wasm32-unknown-unknown, so no example plugin was built or tested");
            None
        })
        .clone()
}

/// Runs the program's `plugin build`; answers the component.
pub(crate) fn build(folder: &Path) -> Option<PathBuf> {
    let cargo = wasm_cargo()?;
    // All guests share one folder of their own: their library is built once.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder.file_name()?).with_extension("wasm");
    let mut program = Command::new(env!("CARGO_BIN_EXE_foreshorten"));
    program.args(["plugin", "build"]).arg(folder).arg("--out").arg(&out).env("CARGO_TARGET_DIR", target);
    if let Some(cargo) = cargo {
        program.env("FORESHORTEN_WASM_CARGO", cargo);
    }
    let done = program.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), out.to_string_lossy());
    Some(out)
}

pub(crate) fn example(name: &str) -> Option<PathBuf> {
    build(&repository().join("plugins/examples").join(name))
}

/// A talk in which files are read again and again, and every fourth message has an image.
pub(crate) fn talk() -> OwnedTranscript {
    let mut record = OwnedTranscript::default();
    record.push(Entry::user("look at everything"));
    for call in 0..60 {
        record.push(Entry::tool_call(format!("c{call}"), "read", format!("{{\"path\":\"{}\"}}", call % 9)));
        record.push(Entry::tool_result(format!("c{call}"), "some line of text\n".repeat(40 + call)));
        if call % 4 == 0 {
            record.push(Entry::user("see").with(Part::Image("image/png".into(), vec![call as u8; 9])));
        }
    }
    record
}

/// The decisions of one pass with this stage, as bytes.
fn decided(stage: PipelineStage, plugins: &Stages) -> (Vec<u8>, u32) {
    let policy = PolicyConfig { stages: vec![stage], ..PolicyConfig::default() }.build().unwrap();
    let record = talk();
    let mut compactor = Compactor::new(&policy);
    compactor.sync(&record);
    compactor.begin(&record, Turn { window: Some(60_000), ..Turn::default() });
    settle_with(&mut compactor, &record, Helpers { summarizer: &Summaries::None, store: None, plugins }).unwrap();
    let decided =
        compactor.outcome().notice.as_ref().map_or(0, |notice| notice.decided.cleared + notice.decided.elided);
    (compactor.state().encode(), decided)
}

#[test]
fn a_stage_built_as_a_component_decides_as_the_same_stage_built_in_byte_for_byte() {
    for (name, native) in [
        ("drop-images", PipelineStage::plan(DropOldImages::default())),
        ("dedupe-reads", PipelineStage::plan(DropSuperseded::default())),
    ] {
        let Some(file) = example(name) else { return };
        let mut plugins = Stages::default();
        let plugin = plugins.push(loader().stage(&file).unwrap());
        let native = decided(native, &plugins);
        let foreign = decided(PipelineStage::External(plugin.name().into()), &plugins);
        let metrics = plugin.metrics();
        assert_eq!(metrics.last_fault, None);
        assert!(foreign.1 > 3, "{name}: {metrics:?}");
        assert_eq!(foreign.0, native.0, "{name}");
        assert!(metrics.refused.is_empty() && metrics.tokens_saved > 0, "{name}: {metrics:?}");
        println!("{name}: {} bytes, {metrics:?}", std::fs::metadata(&file).unwrap().len());
    }
}

/// The states after every call of a recorded session, as bytes: of a stage built in, and of the same as a component.
fn over_a_session(conversation: &Conversation, stage: &dyn Fn() -> PipelineStage, plugins: &Stages) -> Vec<Vec<u8>> {
    let stages = vec![stage(), PipelineStage::plan(ClearToolResults::default())];
    let policy = PolicyConfig { stages, ..PolicyConfig::default() }.build().unwrap();
    let mut compactor = Compactor::new(&policy);
    let mut states = Vec::new();
    for &len in &conversation.calls {
        let record = Growing { whole: &conversation.transcript, len };
        compactor.sync(&record);
        compactor.begin(&record, Turn { window: Some(40_000), ..Turn::default() });
        settle_with(&mut compactor, &record, Helpers { summarizer: &Summaries::None, store: None, plugins }).unwrap();
        states.push(compactor.state().encode());
    }
    states
}

#[test]
fn over_recorded_sessions_component_and_builtin_give_the_same_states_after_every_call() {
    let (Some(images), Some(reads)) = (example("drop-images"), example("dedupe-reads")) else { return };
    let mut plugins = Stages::default();
    let images = plugins.push(loader().stage(&images).unwrap());
    let reads = plugins.push(loader().stage(&reads).unwrap());
    let mut sessions = 0;
    for path in recorded() {
        let Ok(conversations) = read_session(std::fs::read(&path).unwrap(), None) else { continue };
        for conversation in conversations.iter().filter(|conversation| conversation.calls.len() <= 400) {
            let native = over_a_session(conversation, &|| PipelineStage::plan(DropOldImages::default()), &plugins);
            let foreign = over_a_session(conversation, &|| PipelineStage::External("drop-images".into()), &plugins);
            assert!(native == foreign, "drop-images, {}", path.display());
            let native = over_a_session(conversation, &|| PipelineStage::plan(DropSuperseded::default()), &plugins);
            let foreign = over_a_session(conversation, &|| PipelineStage::External("dedupe-reads".into()), &plugins);
            assert!(native == foreign, "dedupe-reads, {}", path.display());
            sessions += 1;
        }
    }
    println!("{sessions} sessions; drop-images {:?}; dedupe-reads {:?}", images.metrics(), reads.metrics());
    assert!(sessions >= 3 && reads.metrics().accepted > 0);
    assert_eq!((images.metrics().fault_count(), reads.metrics().fault_count()), (0, 0));
}

/// The recorded sessions beside this repository; loudly none where the folder is absent, which CI does not allow.
pub(crate) fn shared_sessions() -> Option<PathBuf> {
    let named = std::env::var_os("FORESHORTEN_SHARED").map(PathBuf::from);
    let shared = named.or_else(|| Some(repository().parent()?.join("shared")))?.join("transcripts");
    if shared.is_dir() {
        return Some(shared);
    }
    assert!(std::env::var_os("CI").is_none(), "SKIPPED in CI: {} is not there", shared.display());
    println!("SKIPPED: {} is not there, so only the sessions of testdata are played", shared.display());
    None
}

/// Sessions of this repository, and of the folder that tests may have beside it.
pub(crate) fn recorded() -> Vec<PathBuf> {
    let folders = [Some(repository().join("testdata/sessions")), shared_sessions()];
    let mut files = Vec::new();
    let mut rest: Vec<PathBuf> = folders.into_iter().flatten().filter(|folder| folder.is_dir()).collect();
    while let Some(folder) = rest.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { rest.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

#[test]
fn json_is_condensed_where_it_is_granted_and_the_view_says_whose_text_it_is() {
    let Some(component) = example("json-skeleton") else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(&component, folder.path().join("json-skeleton.wasm")).unwrap();
    let manifest = repository().join("plugins/examples/json-skeleton/plugin.toml");
    assert!(loader().stage(&component).unwrap_err().to_string().contains("grants = [\"condensing\"]"));
    std::fs::copy(manifest, folder.path().join("plugin.toml")).unwrap();
    let (plugins, plugin) = alone(loader().stage(folder.path()).unwrap());
    let stages = vec![PipelineStage::External(plugin.name().into())];
    let policy = PolicyConfig { stages, may_condense: true, ..PolicyConfig::default() }.build().unwrap();
    let mut record = OwnedTranscript::default();
    record.push(Entry::user("look"));
    for call in 0..30 {
        let rows: Vec<String> =
            (0..100).map(|row| format!("{{\"id\":{row},\"note\":\"row {row} of {call}\"}}")).collect();
        record.push(Entry::tool_call(format!("c{call}"), "query", "{}"));
        record.push(Entry::tool_result(format!("c{call}"), format!("[{}]", rows.join(","))));
    }
    let mut compactor = Compactor::new(&policy);
    compactor.sync(&record);
    compactor.begin(&record, Turn { window: Some(24_000), ..Turn::default() });
    settle_with(&mut compactor, &record, Helpers { summarizer: &Summaries::None, store: None, plugins: &plugins })
        .unwrap();
    assert!(compactor.outcome().notice.as_ref().unwrap().decided.condensed > 5);
    let shown = compactor.view().pieces().any(|piece| match piece {
        Piece::Text { text, .. } => text.contains("json-skeleton") && text.contains("… 99 more"),
        _ => false,
    });
    assert!(shown);
}

#[test]
fn a_summarizer_built_as_a_component_writes_what_the_core_takes() {
    let Some(file) = example("extractive-summarizer") else { return };
    let plugin = loader().summarizer(&file).unwrap();
    let summaries = Summaries::Plugin(plugin.into());
    let stages = vec![PipelineStage::Summarize(SummarizeHistory::default())];
    let policy = PolicyConfig { stages, ..PolicyConfig::default() }.build().unwrap();
    let record = talk();
    let mut compactor = Compactor::new(&policy);
    compactor.sync(&record);
    compactor.begin(&record, Turn { window: Some(30_000), can_summarize: true, ..Turn::default() });
    let helpers = Helpers { summarizer: &summaries, store: None, plugins: &Stages::default() };
    settle_with(&mut compactor, &record, helpers).unwrap();
    let notice = compactor.outcome().notice.clone().unwrap();
    let summary = notice.summary.unwrap_or_else(|| panic!("{:?}", notice.detail));
    assert!(summary.contains("look at everything") && summary.contains("- read {\"path\""), "{summary}");
    assert!(notice.decided.covered > 20);
}
