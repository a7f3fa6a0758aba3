//! Native libraries written in Rust: built from the same sources as components, and misbehaving ones.

use std::path::{Path, PathBuf};
use std::process::Command;

use foreshorten::core::SummaryRequest;
use foreshorten::formats::read_session;
use foreshorten::plugin::{LoadError, Stages, dylib::DylibLoader, sha256};

use crate::guests::{example, recorded};
use crate::support::{alone, loader, policy, repository, talk, turn};

/// Builds the plugin in `folder` as a native library, pinned.
pub(crate) fn library(folder: &Path) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native-guests");
    let done = Command::new(env!("CARGO"))
        .args(["build", "--profile", "native", "--lib", "--locked", "--features", "foreshorten-plugin/dylib"])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", &target)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let lines = String::from_utf8_lossy(&done.stdout);
    let ending = std::env::consts::DLL_SUFFIX;
    let file = |line: &str| -> Option<PathBuf> {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let files = message.get("filenames")?.as_array()?;
        files.iter().filter_map(|file| file.as_str()).find(|file| file.ends_with(ending)).map(PathBuf::from)
    };
    let built = lines.lines().filter_map(file).next_back().unwrap();
    // A copy of its own: the next build of the same crate, with other features, takes that name.
    let name = format!("{}{ending}", folder.file_name().unwrap().to_string_lossy());
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let bytes = std::fs::read(built).unwrap();
    let new = out.with_extension("new");
    std::fs::write(&new, &bytes).unwrap();
    std::fs::rename(&new, &out).unwrap();
    std::fs::write(out.with_extension(format!("{}.sha256", &ending[1..])), sha256(&bytes)).unwrap();
    out
}

#[test]
fn a_stage_decides_alike_as_component_and_as_library_from_one_source() {
    for name in ["drop-images", "dedupe-reads"] {
        let Some(component) = example(name) else { return };
        let library = library(&repository().join("plugins/examples").join(name));
        let record = crate::guests::talk();
        let run = |plugin| {
            let (plugins, plugin) = alone(plugin);
            let played = turn(&policy(Some(name)), &plugins, &record, None, |turn| turn).unwrap();
            (played.state.encode(), format!("{:?}", played.outcome), plugin.metrics())
        };
        let (state, outcome, metrics) = run(loader().stage(&component).unwrap());
        let (other, other_outcome, native) = run(DylibLoader::new().stage(&library).unwrap());
        assert!(metrics.accepted > 3, "{name}: {metrics:?}");
        assert_eq!((state, outcome), (other, other_outcome), "{name}");
        assert_eq!((metrics.accepted, metrics.refused), (native.accepted, native.refused), "{name}");
    }
}

#[test]
fn a_summarizer_writes_the_same_as_component_and_as_library_from_one_source() {
    let Some(component) = example("extractive-summarizer") else { return };
    let component = loader().summarizer(&component).unwrap();
    let library = library(&repository().join("plugins/examples/extractive-summarizer"));
    let library = DylibLoader::new().summarizer(&library).unwrap();
    let policy = foreshorten::core::Policy::default();
    let mut compared = 0;
    for path in recorded().iter().filter(|path| path.starts_with(repository())) {
        let Ok(conversations) = read_session(std::fs::read(path).unwrap(), None) else { continue };
        for conversation in &conversations {
            let record = &conversation.transcript;
            let mut compactor = foreshorten::core::Compactor::new(&policy);
            compactor.sync(record);
            let len = foreshorten::core::transcript::Transcript::len(record);
            for prior in [None, Some("## Artifacts\n- what was made before\n".to_owned())] {
                let request = SummaryRequest {
                    entries: (0..len * 3 / 4).collect(),
                    text: "user: what was said, in any script: 构建失败了".into(),
                    prior,
                    earlier: None,
                    sections: foreshorten::core::summary::REQUIRED_SECTIONS,
                    max_chars: 16_000,
                    max_output_tokens: 1_000,
                    aggressive: false,
                };
                let write = |plugin: &foreshorten::plugin::SummaryPlugin| {
                    plugin.write(&request, record, compactor.columns(), compactor.ledger()).unwrap()
                };
                let text = write(&component);
                assert!(text.contains("## Artifacts"), "{text}");
                assert_eq!(text, write(&library), "{}", path.display());
                compared += 1;
            }
        }
    }
    assert!(compared >= 10, "{compared}");
}

/// A plugin in Rust of which one piece misbehaves.
const ODD: &str = r#"
use foreshorten_plugin::{History, Pass, Stage, String};
struct Odd;
struct Bomb;
impl Drop for Bomb { fn drop(&mut self) { panic!("once more") } }
impl Stage for Odd {
    fn check(config: &str) -> Result<(), String> {
        if config.contains("panic-in-check") { panic!("not {}", "today") }
        if config.contains("refuse") { return Err("this configuration is not for me".into()) }
        Ok(())
    }
    fn plan(pass: &mut impl Pass) -> Result<(), String> {
        let all: Vec<u32> = (0..pass.len()).collect();
        pass.clear(&all);
        let config = pass.config();
        if config.contains("panic") { panic!("in the middle of {} entries", all.len()) }
        if config.contains("bomb") { std::panic::panic_any(Bomb) }
        if config.contains("flood") { pass.store_memo(&vec![1; 70_000]); pass.explain(&"x".repeat(9 << 20)); }
        if config.contains("many") { pass.clear(&vec![0; 10_000_000]); }
        Ok(())
    }
}
foreshorten_plugin::stage!(Odd);
"#;

#[test]
fn a_panic_or_a_flood_in_a_library_fails_the_call_and_nothing_else() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("odd-library");
    let sdk = repository().join("plugins/sdk");
    let manifest = format!(
        "[package]\nname = \"odd\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]\n\
         [dependencies]\nforeshorten-plugin = {{ path = {sdk:?} }}\n[profile.native]\ninherits = \"release\"\n[workspace]\n"
    );
    std::fs::create_dir_all(folder.join("src")).unwrap();
    std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    std::fs::write(folder.join("src/lib.rs"), ODD).unwrap();
    std::fs::write(
        folder.join("Cargo.lock"),
        "version = 4\n\n[[package]]\nname = \"foreshorten-plugin\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"odd\"\n\
         version = \"0.1.0\"\ndependencies = [\n \"foreshorten-plugin\",\n]\n",
    )
    .unwrap();
    let library = library(&folder);
    let load = |config: &str| {
        let sha256 = Some(sha256(&std::fs::read(&library).unwrap()));
        let settings =
            foreshorten::plugin::Settings { config: Some(format!("{{\"{config}\":1}}")), sha256, ..Default::default() };
        DylibLoader::new().stage_with(&library, &settings)
    };
    assert!(matches!(load("panic-in-check"), Err(LoadError::Check(..))));
    let why = load("panic-in-check").unwrap_err().to_string();
    assert!(why.contains("it panicked: not today"), "{why}");
    let why = load("refuse").unwrap_err().to_string();
    assert!(why.contains("this configuration is not for me"), "{why}");

    let record = talk(40);
    let without = turn(&policy(None), &Stages::default(), &record, None, |turn| turn).unwrap();
    for (config, kind, told) in [
        ("panic", "refused", "it panicked: in the middle of"),
        ("bomb", "refused", "it panicked"),
        ("flood", "text", "more text than allowed"),
        ("many", "decisions", "more decisions than allowed"),
    ] {
        let (plugins, plugin) = alone(load(config).unwrap());
        let name = plugin.name().to_owned();
        let with = turn(&policy(Some(&name)), &plugins, &record, None, |turn| turn).unwrap();
        assert_eq!(with.state.records(), without.state.records(), "{config}");
        assert!(with.said(told), "{config}: {:?}", with.outcome.notice);
        assert_eq!(plugin.metrics().faults.get(kind), Some(&1), "{config}: {:?}", plugin.metrics());
    }
    let (plugins, plugin) = alone(load("nothing").unwrap());
    let name = plugin.name().to_owned();
    turn(&policy(Some(&name)), &plugins, &record, None, |turn| turn).unwrap();
    assert_eq!((plugin.metrics().fault_count(), plugin.metrics().accepted > 10), (0, true));
}
