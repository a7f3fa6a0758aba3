//! The conformance kit catches something: for every check there is a plugin that fails it, and it alone.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use foreshorten::plugin::conformance::{Report, Verdict, check};
use foreshorten::plugin::wasm::encode;

use crate::support::{loader, module, repository};

/// Writes it with these settings, and checks it.
fn checked(module: &[u8], settings: &str) -> Report {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.wasm"), encode(module).unwrap()).unwrap();
    std::fs::write(folder.path().join("plugin.toml"), format!("file = \"bad.wasm\"\n{settings}")).unwrap();
    check(loader(), folder.path()).unwrap()
}

/// What does not hold without reserve.
fn wrong(report: &Report) -> Vec<(&str, Verdict)> {
    let not = report.checks.iter().filter(|check| check.verdict != Verdict::Passed);
    not.map(|check| (check.id.as_str(), check.verdict)).collect()
}

fn stage(imports: &str, body: &str) -> Report {
    checked(&module(imports, body), "")
}

fn fails(id: &str, report: &Report) {
    assert_eq!(wrong(report), [(id, Verdict::Failed)], "{report}");
    assert!(!report.passed() && report.to_string().contains("FAIL"));
}

fn warns(id: &str, report: &Report) {
    assert_eq!(wrong(report), [(id, Verdict::Warned)], "{report}");
    assert!(report.passed() && report.to_string().contains("passed, with 1 to look at"));
}

const LEN: &str = r#"(import "foreshorten:plugin/history@0.1.0" "len" (func $len (result i32)))"#;
const CLEAR: &str = r#"(import "foreshorten:plugin/decisions@0.1.0" "clear" (func $clear (param i32 i32 i32)))"#;
const TURN: &str = r#"(import "foreshorten:plugin/budget@0.1.0" "turn" (func $turn (result i64)))"#;
const AGGRESSIVE: &str = r#"(import "foreshorten:plugin/budget@0.1.0" "aggressive" (func $aggressive (result i32)))"#;
const LOG: &str = r#"(import "foreshorten:plugin/env@0.1.0" "log" (func $log (param i32 i32 i32)))"#;

/// The first results, one a call, and the address of a good verdict.
fn clear(count: u32) -> String {
    let stores = (0..count).map(|at| format!("(i32.store (i32.const {}) (i32.const {}))", 1024 + at * 4, 4 + at * 3));
    format!("{} (call $clear (i32.const 1024) (i32.const {count}) (i32.const 64))", stores.collect::<String>())
}

#[test]
fn a_stage_that_does_nothing_passes_every_check() {
    let report = stage("", "(i32.const 16)");
    assert_eq!(wrong(&report), []);
    assert!(report.checks.len() >= 12 && report.to_string().contains("passed"));
}

#[test]
fn one_that_is_not_loaded_fails_to_load_and_nothing_else_is_tried() {
    let report = stage("", "(unreachable)");
    fails("loads", &report);
    assert_eq!(report.checks.len(), 1);
}

#[test]
fn one_that_fails_on_long_records_does_not_survive() {
    let body = "(if (i32.gt_u (call $len) (i32.const 40000)) (then (unreachable))) (i32.const 16)";
    let report = stage(LEN, body);
    fails("survives", &report);
    assert!(report.to_string().contains("50,000 entries: it trapped"));
}

#[test]
fn one_that_asks_for_the_tail_is_warned() {
    // Some results that may go, and the last entries, which may not.
    let body = format!(
        "{} (i32.store (i32.const 1024) (i32.sub (call $len) (i32.const 2)))
         (call $clear (i32.const 1024) (i32.const 1) (i32.const 64)) (i32.const 16)",
        clear(6)
    );
    warns("tail", &stage(&format!("{LEN}{CLEAR}"), &body));
}

#[test]
fn one_that_decides_a_little_more_every_turn_does_not_settle() {
    let body = "(if (i32.lt_u (call $len) (i32.const 60)) (then (return (i32.const 16))))
      (i32.store (i32.const 1024)
        (i32.add (i32.const 4) (i32.mul (i32.const 3) (i32.wrap_i64 (call $turn)))))
      (call $clear (i32.const 1024) (i32.const 1) (i32.const 64)) (i32.const 16)";
    fails("settles", &stage(&format!("{LEN}{TURN}{CLEAR}"), body));
}

#[test]
fn one_that_fails_when_the_provider_rejects_is_found() {
    let body = "(if (call $aggressive) (then (unreachable))) (i32.const 16)";
    fails("aggressive", &stage(AGGRESSIVE, body));
}

#[test]
fn one_that_fails_late_in_a_session_is_found() {
    let body = "(if (i64.gt_u (call $turn) (i64.const 20)) (then (unreachable))) (i32.const 16)";
    fails("growing", &stage(TURN, body));
}

#[test]
fn one_that_needs_most_of_its_fuel_is_warned() {
    let body = "(local.set $at (i32.const 90000))
      (loop $l (local.set $at (i32.sub (local.get $at) (i32.const 1))) (br_if $l (local.get $at))) (i32.const 16)";
    let report = checked(&module("", body), "[limits]\nfuel = 800000\nfuel_per_entry = 1");
    warns("limits", &report);
    assert!(report.costs.fuel > 400_000, "{:?}", report.costs);
}

#[test]
fn one_that_asks_for_what_is_not_there_is_warned() {
    // Nothing is at indices this high in any record.
    let body = "(call $clear (i32.const 2048) (i32.const 40) (i32.const 64)) (i32.const 16)";
    let high = format!(
        "(loop $l (i32.store (i32.add (i32.const 2048) (i32.mul (local.get $at) (i32.const 4)))
        (i32.const 1000000)) (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br_if $l (i32.lt_u (local.get $at) (i32.const 40)))) {body}"
    );
    warns("refusals", &stage(CLEAR, &high));
}

#[test]
fn one_that_logs_without_end_is_warned() {
    let body = "(loop $l (call $log (i32.const 4) (i32.const 48) (i32.const 2))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br_if $l (i32.lt_u (local.get $at) (i32.const 100)))) (i32.const 16)";
    warns("log", &stage(LOG, body));
}

/// A summarizer in text: `step` is the body; 16 is the address of a good verdict, 96 that of a summary that the core takes,
/// of 512 bytes.
fn summarizer(step: &str) -> Report {
    let summary = "## Session intent\nMend the build of the project.\n## Current state\nTwo parts are done, one is not.\n\
                   ## Key facts and decisions\nVersion 4.2 was chosen.\n## Artifacts\nNone.\n## Constraints\nNone.\n\
                   ## Next steps\nRun the tests.";
    let (len, data) = (summary.len(), summary.replace('\n', "\\0a"));
    let text = format!(
        r#"(module
  (import "foreshorten:plugin/summarizing@0.1.0" "section" (func $section (param i32 i32 i32 i32)))
  (import "foreshorten:plugin/summarizing@0.1.0" "ask" (func $ask (param i32 i32 i32 i32 i32)))
  (import "foreshorten:plugin/summarizing@0.1.0" "span" (func $span (param i32)))
  (import "foreshorten:plugin/summarizing@0.1.0" "prior" (func $prior (param i32)))
  (import "foreshorten:plugin/summarizing@0.1.0" "replies" (func $replies (param i32)))
  (memory (export "memory") 40)
  (global $next (mut i32) (i32.const 8192))
  (data (i32.const 96) "{data}")
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
    (global.set $next (i32.add (local.get $at) (local.get 3)))
    (local.get $at))
  (func $good (call $section (i32.const 0) (i32.const 0) (i32.const 96) (i32.const {len})))
  (func (export "foreshorten:plugin/summarizer-api@0.1.0#check") (result i32) (i32.const 16))
  (func (export "foreshorten:plugin/summarizer-api@0.1.0#step") (result i32)
    (call $span (i32.const 64)) (call $prior (i32.const 72)) (call $replies (i32.const 80))
    {step}))"#
    );
    checked(&wat::parse_str(text).unwrap(), "")
}

/// Writes the summary so far along with its own.
const WRITES: &str =
    "(call $good) (call $section (i32.const 0) (i32.const 0) (i32.load (i32.const 72)) (i32.load (i32.const 76)))";

#[test]
fn summarizers_are_checked_and_each_check_catches_one() {
    let good = summarizer(&format!("{WRITES} (i32.const 16)"));
    assert_eq!(wrong(&good), [], "{good}");
    // The length of its span is at 68, the number of replies at 84, the length of the first at the place that 80 holds.
    let long = format!(
        "(if (i32.gt_u (i32.load (i32.const 68)) (i32.const 2000)) (then (unreachable))) {WRITES} (i32.const 16)"
    );
    fails("survives", &summarizer(&long));
    fails(
        "accepted",
        &summarizer(
            "(call $section (i32.const 72) (i32.const 0) (i32.const 96) (i32.const 60)) (call $section (i32.const 0) (i32.const 0) (i32.load (i32.const 72)) (i32.load (i32.const 76))) (i32.const 16)",
        ),
    );
    warns("prior", &summarizer("(call $good) (i32.const 16)"));
    let nothing = format!("(if (i32.eqz (i32.load (i32.const 68))) (then (unreachable))) {WRITES} (i32.const 16)");
    // The same that a trial run over nothing would show; that one has entries.
    fails("empty", &summarizer(&nothing));
    let asks = "(if (i32.eqz (i32.load (i32.const 84))) (then
        (call $ask (i32.const 96) (i32.const 20) (i32.load (i32.const 72)) (i32.load (i32.const 76)) (i32.const 100)) (return (i32.const 16))))";
    let trusting = format!(
        "{asks} (if (i32.lt_u (i32.load offset=4 (i32.load (i32.const 80))) (i32.const 200)) (then (unreachable))) {WRITES} (i32.const 16)"
    );
    fails("garbage", &summarizer(&trusting));
    let endless = "(call $ask (i32.const 96) (i32.const 20) (i32.load (i32.const 72)) (i32.load (i32.const 76)) (i32.const 100)) (i32.const 16)";
    let report = summarizer(endless);
    assert!(wrong(&report).contains(&("asks", Verdict::Failed)), "{report}");
}

/// A native library: `PLAN` is what its plan does.
const NATIVE: &str = r#"
#include "foreshorten_plugin.h"
#include <stdlib.h>
#include <string.h>
static fs_str str(const char *text) { fs_str s = {(const uint8_t *)text, strlen(text)}; return s; }
static int32_t check(const fs_host *host, fs_call *call) { (void)host, (void)call; return 0; }
static int32_t plan(const fs_host *host, fs_call *call) {
  static volatile uint32_t calls;
  static volatile uint32_t *nowhere;
  calls++;
  (void)nowhere;
  if (host->number(call, FS_LEN) < 100) return 0;
  PLAN
  return 0;
}
static const fs_stage stage = {sizeof(fs_stage), check, plan};
static const void *get_factory(fs_str key) {
  return key.len == 9 && memcmp(key.ptr, "stage/0.1", 9) == 0 ? &stage : NULL;
}
static fs_entry entry;
const fs_entry *foreshorten_plugin_entry(void) {
  entry.magic = FS_MAGIC;
  entry.struct_size = sizeof(fs_entry);
  entry.abi_major = FS_ABI_MAJOR;
  entry.abi_minor = FS_ABI_MINOR;
  entry.name = str("native");
  entry.version = str("1.2.3");
  entry.get_factory = get_factory;
  return &entry;
}
"#;

fn compile(folder: &Path, plan: &str) -> Option<PathBuf> {
    let (code, library) = (folder.join("native.c"), folder.join("native.so"));
    std::fs::write(&code, NATIVE).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O1", "-shared", "-fPIC", "-fvisibility=hidden"]).arg(format!("-DPLAN={plan}")).arg("-I");
    let Ok(status) = cc.arg(repository().join("plugins/abi")).arg("-o").arg(&library).arg(&code).status() else {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "no C compiler");
        println!("SKIPPED: no C compiler, so no native library was built or checked");
        return None;
    };
    assert!(status.success());
    Some(library)
}

fn program(args: &[&str], library: &Path) -> (Option<i32>, String, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_foreshorten"));
    let out = program.arg("plugin").args(args).arg(library).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (out.status.code(), text(out.stdout), text(out.stderr))
}

/// Ids and details of the failed checks of a native library.
fn failed(plan: &str, seconds: &str) -> Option<Vec<(String, String)>> {
    let folder = tempfile::tempdir().unwrap();
    let library = compile(folder.path(), plan)?;
    let (code, out, err) = program(&["check", "--allow", "--json", "--seconds", seconds], &library);
    let report: Report = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
    assert_eq!(code, Some(if report.passed() { 0 } else { 3 }));
    let failed = report.checks.into_iter().filter(|check| check.verdict == Verdict::Failed);
    Some(failed.map(|check| (check.id, check.detail)).collect())
}

#[test]
fn a_native_library_is_checked_in_processes_that_may_crash_exit_or_hang() {
    // The build of the program itself must load libraries.
    let Some(good) = failed("", "60") else { return };
    assert_eq!(good, []);
    let crashed = failed("if (host->number(call, FS_AGGRESSIVE)) *nowhere = 1;", "60").unwrap();
    assert!(crashed.len() == 1 && crashed[0].0 == "aggressive" && crashed[0].1.contains("SIGSEGV"), "{crashed:?}");
    let left = failed("if (host->number(call, FS_TURN) > 20) exit(7);", "60").unwrap();
    assert!(left.len() == 1 && left[0].0 == "growing" && left[0].1.contains("exit code 7"), "{left:?}");
    let hangs = failed("if (host->number(call, FS_AGGRESSIVE)) for (;;) {}", "6").unwrap();
    assert!(hangs.iter().any(|(id, why)| id == "aggressive" && why.contains("still ran after 6 s")), "{hangs:?}");
    // What no component can do: a memory of its own from call to call.
    let moody =
        failed("uint32_t e = 4 + 3 * calls; uint8_t c; host->decide(call, FS_CLEAR, &e, 1, 0, 0, &c);", "60").unwrap();
    assert!(moody.iter().any(|(id, why)| id == "deterministic" && why.contains("two states")), "{moody:?}");
}

#[test]
fn a_native_library_is_not_run_unless_it_is_allowed_and_a_pin_that_came_with_it_is_no_permission() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = compile(folder.path(), "") else { return };
    let pin = folder.path().join("native.so.sha256");
    let is_not_run = || {
        for act in ["check", "inspect"] {
            let (code, out, err) = program(&[act], &library);
            assert!(code == Some(2) && out.is_empty() && err.contains("--allow"), "{err}");
        }
    };
    is_not_run();
    let (code, out, err) = program(&["inspect", "--allow"], &library);
    assert_eq!(code, Some(0), "{err}");
    assert!(
        out.contains("native library native 1.2.3, for plugin ABI 0.1") && out.contains("offers  stage/0.1"),
        "{out}"
    );
    let digest = foreshorten::plugin::sha256(&std::fs::read(&library).unwrap());
    std::fs::write(&pin, digest).unwrap();
    is_not_run();
    assert_eq!(program(&["inspect", "--allow", "--json"], &library).0, Some(0));
    std::fs::write(&pin, "00").unwrap();
    let (code, _, err) = program(&["check", "--allow"], &library);
    assert!(code == Some(3) || err.contains("is pinned"), "{code:?} {err}");
}
