//! Native libraries, written in C: what is loaded, what is not, and that it decides as a component does.

use std::path::{Path, PathBuf};
use std::process::Command;

use foreshorten::plugin::dylib::DylibLoader;
use foreshorten::plugin::{LoadError, sha256};

use crate::support::{alone, policy, repository, talk, turn};

/// A stage that clears everything there is and is not; `MAGIC`, `MINOR`, `SIZE` and `CHECK` can be set otherwise.
const GREEDY: &str = r#"
#include "foreshorten_plugin.h"
#include <string.h>
#ifndef MAGIC
#define MAGIC FS_MAGIC
#endif
#ifndef MINOR
#define MINOR FS_ABI_MINOR
#endif
#ifndef SIZE
#define SIZE sizeof(fs_entry)
#endif
static fs_str str(const char *text) { fs_str s = {(const uint8_t *)text, strlen(text)}; return s; }
static int32_t check(const fs_host *host, fs_call *call) {
#ifdef CHECK
  static char long_text[100000];
  memset(long_text, 'x', sizeof long_text - 1);
  host->fail(call, str(long_text));
  return 1;
#else
  uint8_t config[8];
  (void)host->string(call, FS_CONFIG, 0, config, sizeof config);
  return 0;
#endif
}
static int32_t plan(const fs_host *host, fs_call *call) {
  uint32_t entries[200], kinds[200];
  uint8_t codes[200], memo[4] = {1, 2, 3, 4};
  uint32_t n = (uint32_t)host->number(call, FS_LEN);
  if (host->column(call, FS_KINDS, 0, 200, kinds) != (n < 200 ? n : 200)) return 2;
  for (uint32_t i = 0; i < 200; i++) entries[i] = i;
  host->keep(call, memo, sizeof memo);
#ifdef FAIL
  host->decide(call, FS_CLEAR, entries, 200, 0, 0, codes);
  host->fail(call, str("no"));
  return 1;
#else
  host->decide(call, FS_CLEAR, entries, 200, 0, 0, codes);
  host->decide(call, 999, entries, 1, 0, 0, codes);
  host->explain(call, str("cleared what could be"));
  return codes[0] == 255 ? 0 : 3;
#endif
}
static const fs_stage stage = {sizeof(fs_stage), check, plan};
static const void *get_factory(fs_str key) {
  return key.len == 9 && memcmp(key.ptr, "stage/0.1", 9) == 0 ? &stage : NULL;
}
static fs_entry entry;
const fs_entry *foreshorten_plugin_entry(void) {
  entry.magic = MAGIC;
  entry.struct_size = (uint32_t)SIZE;
  entry.abi_major = FS_ABI_MAJOR;
  entry.abi_minor = MINOR;
  entry.name = str("greedy");
  entry.version = str("1.0.0");
  entry.get_factory = get_factory;
  return &entry;
}
"#;

/// Compiles it with these definitions and pins it. Without a C compiler: loudly nothing; in CI a failure.
fn compile(folder: &Path, source: &str, defines: &[&str]) -> Option<PathBuf> {
    let (code, library) = (folder.join("plugin.c"), folder.join("plugin.so"));
    std::fs::write(&code, source).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden", "-I"]);
    cc.arg(repository().join("plugins/abi")).args(defines.iter().map(|define| format!("-D{define}")));
    let Ok(status) = cc.arg("-o").arg(&library).arg(&code).status() else {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "no C compiler");
        println!("SKIPPED: no C compiler, so no native library was built or tested");
        return None;
    };
    assert!(status.success());
    pin(&library);
    Some(library)
}

fn pin(library: &Path) {
    let digest = sha256(&std::fs::read(library).unwrap());
    std::fs::write(library.with_extension("so.sha256"), format!("{digest}  plugin.so\n")).unwrap();
}

fn refused(library: &Path) -> String {
    DylibLoader::new().stage(library).unwrap_err().to_string()
}

#[test]
fn a_library_decides_like_a_component_and_what_a_failed_call_decided_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = compile(folder.path(), GREEDY, &[]) else { return };
    let record = talk(40);
    let (plugins, native) = alone(DylibLoader::new().stage(&library).unwrap());
    let played = turn(&policy(Some("plugin")), &plugins, &record, None, |turn| turn).unwrap();
    let (components, component) = alone(crate::hostile::greedy());
    let same = turn(&policy(Some("hostile")), &components, &record, None, |turn| turn).unwrap();
    assert_eq!(played.state.records(), same.state.records());
    assert_eq!(native.metrics().accepted, component.metrics().accepted);
    assert_eq!(native.metrics().refused, component.metrics().refused);
    assert!(played.said("plugin: cleared what could be"));
    assert!(played.state.label("plugin.plugin@0.memo").is_some());

    let Some(library) = compile(folder.path(), GREEDY, &["FAIL"]) else { return };
    let (plugins, native) = alone(DylibLoader::new().stage(&library).unwrap());
    let with = turn(&policy(Some("plugin")), &plugins, &record, None, |turn| turn).unwrap();
    let without = turn(&policy(None), &plugins, &record, None, |turn| turn).unwrap();
    assert_eq!(with.state.records(), without.state.records());
    assert_eq!(native.metrics().faults.get("refused"), Some(&1));
}

#[test]
fn what_is_not_pinned_or_not_what_was_pinned_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = compile(folder.path(), GREEDY, &[]) else { return };
    let mut bytes = std::fs::read(&library).unwrap();
    bytes.push(0);
    std::fs::write(&library, bytes).unwrap();
    assert!(matches!(DylibLoader::new().stage(&library), Err(LoadError::Digest(..))));
    std::fs::remove_file(library.with_extension("so.sha256")).unwrap();
    assert!(refused(&library).contains("must be pinned"));
    pin(&library);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&library, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(refused(&library).contains("others can write"));
    }
}

#[test]
fn wrong_magic_versions_tables_and_symbols_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for (defines, told) in [
        (&["MAGIC=0x12345678u"][..], "begins with 0x12345678"),
        (&["MINOR=7"], "built for plugin ABI 0.7, and this program offers 0.1"),
        (&["SIZE=24"], "has 24 bytes"),
        (&["CHECK"], "its check failed: it answered: xxx"),
    ] {
        let Some(library) = compile(folder.path(), GREEDY, defines) else { return };
        let error = refused(&library);
        assert!(error.contains(told) && error.len() < 1_000, "{error}");
    }
    let Some(library) = compile(folder.path(), "int nothing(void); int nothing(void) { return 0; }", &[]) else {
        return;
    };
    assert!(refused(&library).contains("foreshorten_plugin_entry"));
    let Some(library) = compile(folder.path(), GREEDY, &[]) else { return };
    let error = DylibLoader::new().summarizer(&library).unwrap_err().to_string();
    assert_eq!(error, "it offers no summarizer/0.1");
}
