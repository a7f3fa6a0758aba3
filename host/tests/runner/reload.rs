//! Plugins whose files change while sessions run.

#![allow(clippy::unwrap_used, reason = "helpers of tests are test code")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{Model, Reads, worker};
use foreshorten::context::{Compaction, StageSpec};
use foreshorten::plugin::{
    Limits, LoadError, Loader, Metrics, Reloadable, Reloading, StagePlugin, SummaryPlugin, sha256, wasm::encode,
};
use foreshorten::record::Message;
use foreshorten::runner::{Agent, RunOutcome, Runner, Session};
use foreshorten::window::WindowResolver;
use foreshorten_core::plan::ClearToolResults;

/// A stage that clears the first hundred entries, as far as it is let, and says which version it is.
fn component(version: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
          (import "foreshorten:plugin/decisions@0.1.0" "clear" (func $clear (param i32 i32 i32)))
          (import "foreshorten:plugin/decisions@0.1.0" "explain" (func $explain (param i32 i32)))
          (memory (export "memory") 1)
          (data (i32.const 32) "{version}")
          (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096))
          (func (export "foreshorten:plugin/stage-api@0.1.0#check") (result i32) (i32.const 16))
          (func (export "foreshorten:plugin/stage-api@0.1.0#plan") (result i32) (local $at i32)
            (loop $l
              (i32.store (i32.add (i32.const 1024) (i32.mul (local.get $at) (i32.const 4))) (local.get $at))
              (local.set $at (i32.add (local.get $at) (i32.const 1)))
              (br_if $l (i32.lt_u (local.get $at) (i32.const 100))))
            (call $clear (i32.const 1024) (i32.const 100) (i32.const 64))
            (call $explain (i32.const 32) (i32.const {}))
            (i32.const 16)))"#,
        version.len()
    );
    encode(&wat::parse_str(text).unwrap()).unwrap()
}

fn open(path: &Path) -> Reloading<StagePlugin> {
    Reloading::open(Arc::new(Loader::new(Limits::caps()).unwrap()), path).unwrap()
}

/// An agent with this stage, and clearing after it, in a small window.
struct Scene {
    runner: Runner,
    agent: Agent,
    session: Session,
    task: u32,
}

impl Scene {
    async fn new(stage: &Reloading<StagePlugin>) -> Self {
        let runner = Runner::new().windows(Arc::new(WindowResolver::new().configured(12_000)));
        let policy = Compaction::new()
            .reserve_output_tokens(2_000)
            .without_summarizer()
            .stages(vec![StageSpec::Reloading(stage.clone()), StageSpec::plan(ClearToolResults::default())])
            .build()
            .unwrap();
        let agent = Agent::new(Arc::new(Model::new(worker(6))), "m")
            .tool(Arc::new(Reads { bytes: 1_500 }))
            .context_policy(Arc::new(policy));
        let session = runner.open("s").await.unwrap();
        Self { runner, agent, session, task: 0 }
    }

    async fn run(&mut self) -> RunOutcome {
        self.task += 1;
        let said = Message::user(format!("task {}", self.task));
        self.runner.run(&self.agent, &mut self.session, said).await.unwrap()
    }

    /// Runs until there was a pass; its lines.
    async fn pass(&mut self) -> Vec<String> {
        for _ in 0..20 {
            let outcome = self.run().await;
            if !outcome.notices.is_empty() {
                assert!(outcome.plugins.0["theirs"].calls > 0, "{:?}", outcome.plugins);
                return outcome.notices.into_iter().flat_map(|notice| notice.detail).collect();
            }
        }
        panic!("no pass in twenty runs");
    }
}

fn has(lines: &[String], what: &str) -> usize {
    lines.iter().filter(|line| line.contains(what)).count()
}

#[tokio::test]
async fn the_next_turn_uses_the_file_that_took_the_place_of_another_and_says_so_once() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("theirs.wasm");
    fs::write(&file, component("first")).unwrap();
    let stage = open(&file);
    let mut scene = Scene::new(&stage).await;
    let lines = scene.pass().await;
    assert!(has(&lines, "theirs: first") > 0 && has(&lines, "its file changed") == 0, "{lines:?}");
    let calls = stage.metrics().calls;

    fs::write(&file, component("second")).unwrap();
    assert!(stage.refresh());
    assert_eq!(stage.active().digest(), sha256(&component("second")));
    let lines = scene.pass().await;
    assert!(has(&lines, "theirs: second") > 0 && has(&lines, "theirs: first") == 0, "{lines:?}");
    assert_eq!(has(&lines, &format!("theirs: its file changed; SHA-256 {}…", &sha256(&component("second"))[..16])), 1);
    assert_eq!(has(&scene.pass().await, "its file changed"), 0);
    let metrics = stage.metrics();
    assert!(metrics.calls > calls && metrics.reloads == 1, "one account for all versions: {metrics:?}");
    // Touched, and written again as it was: nothing new.
    fs::write(&file, component("second")).unwrap();
    assert!(!stage.refresh() && !stage.refresh());
    assert_eq!(stage.metrics().reloads, 1);
}

/// The same, and it says what it kept when it ran last before it keeps its version.
fn remembering(version: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
          (import "foreshorten:plugin/decisions@0.1.0" "clear" (func $clear (param i32 i32 i32)))
          (import "foreshorten:plugin/decisions@0.1.0" "explain" (func $explain (param i32 i32)))
          (import "foreshorten:plugin/memo@0.1.0" "load" (func $load (param i32)))
          (import "foreshorten:plugin/memo@0.1.0" "store" (func $store (param i32 i32) (result i32)))
          (memory (export "memory") 1)
          (data (i32.const 32) "kept by {version}")
          (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096))
          (func (export "foreshorten:plugin/stage-api@0.1.0#check") (result i32) (i32.const 16))
          (func (export "foreshorten:plugin/stage-api@0.1.0#plan") (result i32) (local $at i32)
            (loop $l
              (i32.store (i32.add (i32.const 1024) (i32.mul (local.get $at) (i32.const 4))) (local.get $at))
              (local.set $at (i32.add (local.get $at) (i32.const 1)))
              (br_if $l (i32.lt_u (local.get $at) (i32.const 100))))
            (call $clear (i32.const 1024) (i32.const 100) (i32.const 64))
            (call $load (i32.const 64))
            (call $explain (i32.load (i32.const 64)) (i32.load (i32.const 68)))
            (drop (call $store (i32.const 32) (i32.const {})))
            (i32.const 16)))"#,
        version.len() + 8
    );
    encode(&wat::parse_str(text).unwrap()).unwrap()
}

#[tokio::test]
async fn what_it_kept_goes_on_within_a_major_version_and_not_beyond() {
    let home = tempfile::tempdir().unwrap();
    let (file, settings) = (home.path().join("theirs.wasm"), home.path().join("plugin.toml"));
    let becomes = |version: &str, name: &str| {
        fs::write(&file, remembering(name)).unwrap();
        fs::write(&settings, format!("file = \"theirs.wasm\"\nversion = \"{version}\"")).unwrap();
    };
    becomes("1.0.0", "first");
    let stage = open(home.path());
    let mut scene = Scene::new(&stage).await;
    scene.pass().await;
    becomes("1.4.0", "second");
    assert!(stage.refresh());
    assert_eq!(has(&scene.pass().await, "theirs: kept by first"), 1);
    assert!(has(&scene.pass().await, "theirs: kept by second") > 0);
    becomes("2.0.0", "third");
    assert!(stage.refresh());
    let lines = [scene.pass().await, scene.pass().await].concat();
    assert_eq!(has(&lines, "kept by second"), 0, "another major version begins with nothing: {lines:?}");
    assert!(has(&lines, "kept by third") > 0, "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_find_a_changed_file_by_themselves_and_load_it_beside_them() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("theirs.wasm");
    fs::write(&file, component("first")).unwrap();
    let stage = open(&file);
    let mut scene = Scene::new(&stage).await;
    scene.pass().await;
    fs::write(&file, component("second")).unwrap();
    scene.run().await;
    while stage.is_loading() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let lines = scene.pass().await;
    assert!(has(&lines, "theirs: second") > 0 && has(&lines, "its file changed") == 1, "{lines:?}");
}

#[tokio::test]
async fn what_is_no_plugin_is_not_taken_and_the_one_before_stays() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("theirs.wasm");
    fs::write(&file, component("first")).unwrap();
    let stage = open(&file);
    let mut scene = Scene::new(&stage).await;
    scene.pass().await;
    let second = component("second");
    // Half of a file that is being written.
    fs::write(&file, &second[..second.len() / 2]).unwrap();
    assert!(!stage.refresh());
    assert!(!stage.refresh(), "not tried again until it changes");
    let lines = scene.pass().await;
    assert!(has(&lines, "theirs: first") > 0, "{lines:?}");
    assert_eq!(has(&lines, "its changed file is not taken: it is no component"), 1, "{lines:?}");
    assert_eq!(has(&scene.pass().await, "not taken"), 0, "said once");
    let metrics = stage.metrics();
    assert_eq!((metrics.reloads, metrics.reload_failures), (0, 1));
    // One that traps when it is tried is not taken either; nor is none at all.
    let traps = r#"(module (memory (export "memory") 1)
      (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096))
      (func (export "foreshorten:plugin/stage-api@0.1.0#check") (result i32) (i32.const 16))
      (func (export "foreshorten:plugin/stage-api@0.1.0#plan") (result i32) unreachable))"#;
    fs::write(&file, encode(&wat::parse_str(traps).unwrap()).unwrap()).unwrap();
    assert!(!stage.refresh());
    fs::remove_file(&file).unwrap();
    assert!(!stage.refresh());
    assert_eq!(stage.metrics().reload_failures, 3);
    // The rest of it arrives.
    fs::write(&file, second).unwrap();
    assert!(stage.refresh());
    assert!(has(&scene.pass().await, "theirs: second") > 0);
}

#[test]
fn settings_pins_and_signatures_beside_the_file_count_as_changes_and_name_and_grants_are_settled() {
    let home = tempfile::tempdir().unwrap();
    let (file, pin) = (home.path().join("theirs.wasm"), home.path().join("theirs.wasm.sha256"));
    fs::write(&file, component("first")).unwrap();
    let settings = |text: &str| {
        fs::write(home.path().join("plugin.toml"), format!("file = \"theirs.wasm\"\n{text}")).unwrap();
    };
    settings("");
    let stage = open(home.path());
    let first = stage.active();
    settings("[limits]\nwall_ms = 900");
    assert!(stage.refresh());
    assert!(!Arc::ptr_eq(&first, &stage.active()) && first.digest() == stage.active().digest());
    let told = |what: &str| {
        let before = stage.happened();
        assert!(!stage.refresh());
        let (lines, now) = stage.news(before);
        assert_eq!((lines.len(), now), (1, before + 1));
        assert!(lines[0].contains(what), "{lines:?}");
    };
    settings("name = \"other\"");
    told("`other`");
    settings("grants = [\"condensing\"]");
    told("condensing");
    settings("");
    fs::write(&pin, "00ff").unwrap();
    told("is pinned");
    fs::remove_file(&pin).unwrap();
    assert!(stage.refresh());
}

#[test]
fn a_summarizer_is_no_stage_and_a_library_is_not_reloaded() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("theirs.wasm");
    fs::write(&file, component("first")).unwrap();
    let loader = Arc::new(Loader::new(Limits::caps()).unwrap());
    assert!(Reloading::<SummaryPlugin>::open(Arc::clone(&loader), &file).is_err());
    let me = std::env::current_exe().unwrap();
    let error = Reloading::<StagePlugin>::open(loader, me).unwrap_err().to_string();
    assert!(error.contains("native library"), "{error}");
}

/// A plugin whose loading panics, as a mistake of the engine would.
#[derive(Debug, Default)]
struct Fragile {
    digest: String,
    account: std::sync::Mutex<Metrics>,
}

impl Reloadable for Fragile {
    fn load(_: &Loader, path: &Path) -> Result<Self, LoadError> {
        let bytes = fs::read(path).unwrap();
        assert_ne!(bytes, b"bomb", "the engine has a mistake");
        Ok(Self { digest: sha256(&bytes), ..Self::default() })
    }
    fn name(&self) -> &str {
        "fragile"
    }
    fn digest(&self) -> &str {
        &self.digest
    }
    fn may_condense(&self) -> bool {
        false
    }
    fn account(&self) -> &std::sync::Mutex<Metrics> {
        &self.account
    }
}

#[test]
fn a_panic_while_loading_or_a_link_to_a_device_is_a_failure_and_the_next_change_is_looked_at() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("mine.wasm");
    fs::write(&file, "first").unwrap();
    let plugin = Reloading::<Fragile>::open(Arc::new(Loader::new(Limits::caps()).unwrap()), &file).unwrap();
    fs::write(&file, "bomb").unwrap();
    assert!(!plugin.refresh() && !plugin.is_loading());
    assert_eq!(has(&plugin.news(0).0, "panicked"), 1);
    assert_eq!(plugin.metrics().reload_failures, 1);
    #[cfg(unix)]
    {
        let pin = home.path().join("mine.wasm.sig");
        std::os::unix::fs::symlink("/dev/zero", &pin).unwrap();
        assert!(!plugin.refresh());
        fs::remove_file(&pin).unwrap();
    }
    fs::write(&file, "third").unwrap();
    assert!(plugin.refresh());
    assert_eq!(plugin.active().digest(), sha256(b"third"));
}
