//! What the tests of the program share: running it, sessions to run it on, and what to check of the outcome.
#![allow(dead_code, reason = "every test binary uses its own part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

pub(crate) mod talk;

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// What the program did.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Run {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.out).expect("stdout is UTF-8")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Exit 0.
    #[track_caller]
    pub(crate) fn good(self) -> Self {
        self.exits(0)
    }

    /// That exit code; when it is no success, without data on stdout.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stderr: {}", self.err);
        if !matches!(code, 0 | 4) {
            assert!(self.out.is_empty(), "exit {code} with data on stdout: {:?}", self.text());
            assert!(!self.err.is_empty(), "exit {code} without a word");
        }
        self
    }

    /// What is said on stderr contains all of these.
    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.err.contains(word), "`{word}` is not in: {}", self.err);
        }
        self
    }
}

/// Runs the program. It never panics, whatever the test is about.
#[track_caller]
pub(crate) fn foreshorten<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>, stdin: &[u8]) -> Run {
    let args: Vec<OsString> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
    let mut child = Command::new(env!("CARGO_BIN_EXE_foreshorten"))
        .args(&args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut pipe = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // A program that refuses its arguments does not read on.
        scope.spawn(move || pipe.write_all(stdin));
        child.wait_with_output().unwrap()
    });
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!err.contains("panicked"), "{args:?}: {err}");
    let code = output.status.code().unwrap_or_else(|| panic!("{args:?} was killed: {err}"));
    Run { code, out: output.stdout, err }
}

/// A folder for one test: a state, a store, a notice, and whatever else.
pub(crate) struct Room {
    folder: TempDir,
}

impl Room {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("store")
    }

    pub(crate) fn state_bytes(&self) -> Option<Vec<u8>> {
        std::fs::read(self.state()).ok()
    }

    /// One call of `compact` with this room's state and notice.
    #[track_caller]
    pub(crate) fn compact(&self, window: u64, body: &[u8], more: &[&str]) -> Compacted {
        let (state, notice) = (self.state(), self.path("notice"));
        let _ = std::fs::remove_file(&notice);
        let window = window.to_string();
        let mut args: Vec<&OsStr> = ["compact", "--window", &window].into_iter().map(OsStr::new).collect();
        args.extend([OsStr::new("--state"), state.as_os_str(), OsStr::new("--notice"), notice.as_os_str()]);
        args.extend(more.iter().map(OsStr::new));
        let run = foreshorten(args, body);
        let notice = std::fs::read(&notice).ok().map(|bytes| serde_json::from_slice(&bytes).unwrap());
        Compacted { run, notice: notice.unwrap_or(Value::Null) }
    }

    /// The same with a store.
    #[track_caller]
    pub(crate) fn compact_storing(&self, window: u64, body: &[u8], more: &[&str]) -> Compacted {
        let store = self.store();
        let mut args = vec!["--store", store.to_str().unwrap()];
        args.extend(more);
        self.compact(window, body, &args)
    }

    /// Recalls `reference` from a transcript of this room.
    #[track_caller]
    pub(crate) fn recall(&self, transcript: &Path, reference: &str, more: &[&str]) -> Run {
        let state = self.state();
        let mut args: Vec<&OsStr> = vec![OsStr::new("recall"), OsStr::new("--transcript"), transcript.as_os_str()];
        if state.exists() {
            args.extend([OsStr::new("--state"), state.as_os_str()]);
        }
        args.extend(more.iter().map(OsStr::new));
        args.extend([OsStr::new("--"), OsStr::new(reference)]);
        foreshorten(args, b"")
    }

    /// Names of the files in the room, to see that nothing was left behind.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// One call of `compact`: what the program did, and the account of it.
pub(crate) struct Compacted {
    pub(crate) run: Run,
    pub(crate) notice: Value,
}

impl Compacted {
    /// A view was written, with a notice that has every documented field.
    #[track_caller]
    pub(crate) fn good(self) -> Self {
        self.exits(0)
    }

    #[track_caller]
    pub(crate) fn exits(mut self, code: i32) -> Self {
        self.run = self.run.exits(code);
        if matches!(code, 0 | 4) {
            check_notice(&self.notice);
        } else {
            assert_eq!(self.notice, Value::Null, "a notice after exit {code}");
        }
        self
    }

    pub(crate) fn out(&self) -> &[u8] {
        &self.run.out
    }

    pub(crate) fn compacted(&self) -> bool {
        self.notice["compacted"].as_bool().unwrap()
    }

    pub(crate) fn number(&self, field: &str) -> u64 {
        self.notice[field].as_u64().unwrap_or_else(|| panic!("`{field}` is {}", self.notice[field]))
    }
}

/// Every documented field is there and of its type.
#[track_caller]
pub(crate) fn check_notice(notice: &Value) {
    let is = |field: &str, good: fn(&Value) -> bool| {
        let value = notice.get(field).unwrap_or_else(|| panic!("no `{field}` in {notice}"));
        assert!(good(value), "`{field}` is {value}");
    };
    let words = |value: &Value| value.as_array().is_some_and(|list| list.iter().all(Value::is_string));
    for field in ["compacted", "aggressive", "last_resort"] {
        is(field, Value::is_boolean);
    }
    for field in ["reasons", "detail"] {
        is(field, words);
    }
    for field in ["tokens_before", "tokens_after", "usable", "trigger", "target", "prefix_bytes_kept"] {
        is(field, Value::is_u64);
    }
    is("first_changed", |value| value.is_null() || value.is_u64());
    is("history", |value| value.is_null() || ["edited", "foreign", "partial"].iter().any(|name| value == name));
    is("state_reset", |value| value.is_null() || value.is_string());
    is("retry", |value| value.is_null() || value.is_boolean());
    is("cannot_fit", |value| value.is_null() || (value["what"].is_string() && value["over"].is_u64()));
    let number = |field: &str| notice[field].as_u64().unwrap();
    assert!(number("target") < number("trigger") && number("trigger") <= number("usable"), "{notice}");
    assert!(number("tokens_after") <= number("tokens_before"), "{notice}");
    if notice["compacted"] == true {
        assert!(notice["reasons"].as_array().is_some_and(|reasons| !reasons.is_empty()), "{notice}");
        assert!(notice["first_changed"].is_u64(), "{notice}");
    } else {
        assert_eq!(notice["tokens_after"], notice["tokens_before"], "{notice}");
    }
}

/// Length of the common beginning.
pub(crate) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// A file of `testdata/sessions`.
pub(crate) fn session(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/sessions").join(name)
}

/// The folder of the shared corpus. It is not part of the project: absent, tests say so and pass.
pub(crate) fn shared() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let given = std::env::var_os("FORESHORTEN_SHARED").map(PathBuf::from);
    let found = given.into_iter().chain([beside]).find(|folder| folder.is_dir());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "skipped in CI: the shared folder is not there");
        skip("there is no ../shared beside the project; set FORESHORTEN_SHARED to a copy of it");
    }
    found
}

/// Says that something is not tested, also when the test passes: the harness swallows only what macros print.
pub(crate) fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}
