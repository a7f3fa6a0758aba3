//! Files that are not as they were left: half lines are cut, altered ones are named.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use foreshorten::session::{Commit, CommitError, FileSessions, SessionStore, SqliteSessions};

use crate::conformance::{meta, said};

/// A session of three commits with a state, and its folder.
async fn three(root: &Path) -> (FileSessions, PathBuf) {
    let sessions = FileSessions::open(root).unwrap();
    for version in 0..3u64 {
        let (messages, state) = ([said(&format!("message {version}"))], meta(&format!("state {version}")));
        sessions.commit("s", Commit::new(version, "r").appending(&messages).with_meta(&state)).await.unwrap();
    }
    (sessions, root.join("s"))
}

fn append(path: &Path, bytes: &[u8]) {
    fs::File::options().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from));
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

#[tokio::test]
async fn what_a_crash_left_behind_is_not_there_and_is_cut_off_by_the_next_commit() {
    let message = said("never acknowledged").to_line();
    let whole = format!("{message}\n");
    let tails: [&[u8]; 7] = [
        b"{",
        message.as_bytes(),
        whole.as_bytes(),
        &[whole.as_bytes(), b"{\"commit\":{\"version\":4,"].concat(),
        &[whole.as_bytes(), &[0; 5_000]].concat(),
        &[whole.as_bytes(), &[0; 100], b"\n{\"commit\":\0\0\0\0}\n"].concat(),
        &[whole.as_bytes(), b"x".repeat(100_000).as_slice()].concat(),
    ];
    for (number, tail) in tails.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let (sessions, place) = three(folder.path()).await;
        let before = sessions.load("s").await.unwrap();
        append(&place.join("log.jsonl"), tail);
        assert_eq!(sessions.load("s").await.unwrap(), before, "tail {number}");
        assert_eq!(
            sessions.commit("s", Commit::new(3, "r").appending(&[said("d")])).await.unwrap(),
            4,
            "tail {number}"
        );
        let stored = sessions.load("s").await.unwrap().unwrap();
        assert_eq!((stored.record().messages().len(), stored.checkpoint), (4, before.unwrap().checkpoint));
        assert!(!fs::read_to_string(place.join("log.jsonl")).unwrap().contains("never acknowledged"));
    }
}

#[tokio::test]
async fn a_crash_in_the_very_first_commit_leaves_no_session() {
    for left in [
        &b""[..],
        b"{\"sess",
        b"{\"session\":\"s\",\"format\":1}\n",
        b"\0\0\0\0",
        b"{\"session\":\"s\",\"format\":1}\n{\"ent",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let sessions = FileSessions::open(folder.path()).unwrap();
        fs::create_dir(folder.path().join("s")).unwrap();
        fs::write(folder.path().join("s/log.jsonl"), left).unwrap();
        assert_eq!(sessions.load("s").await.unwrap(), None, "{left:?}");
        assert_eq!(sessions.commit("s", Commit::new(0, "r").appending(&[said("a")])).await.unwrap(), 1, "{left:?}");
        assert_eq!(sessions.load("s").await.unwrap().unwrap().record().messages(), [said("a")]);
    }
}

#[tokio::test]
async fn an_altered_line_is_an_error_that_names_file_and_line() {
    for (from, to, line) in [
        ("message 0", "massage 0", ":3:"),
        ("{\"entries\"", "{\"entrees\"", ":2:"),
        ("{\"commit\":{\"version\":2", "{\"commit\":{\"version\":}", ":5:"),
        ("message 2", "massage 2", ":7:"),
        ("\"format\":1", "\"format\":9", ":1:"),
        ("{\"session\":\"s\"", "{\"session\":\"t\"", ":1:"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (sessions, place) = three(folder.path()).await;
        let log = place.join("log.jsonl");
        replace(&log, from, to);
        let error = sessions.load("s").await.unwrap_err().to_string();
        assert!(error.contains(&format!("{}{line}", log.display())), "{from}: {error}");
    }
}

#[tokio::test]
async fn an_altered_last_commit_is_not_written_over() {
    for (from, to) in [("message 2", "massage 2"), ("{\"commit\":{\"version\":3", "{\"commit\":{\"version\":}")] {
        let folder = tempfile::tempdir().unwrap();
        let (sessions, place) = three(folder.path()).await;
        let log = place.join("log.jsonl");
        replace(&log, from, to);
        let before = fs::read(&log).unwrap();
        for expected in [2, 3] {
            let refused = sessions.commit("s", Commit::new(expected, "r").appending(&[said("d")])).await.unwrap_err();
            assert!(
                matches!(&refused, CommitError::Store(error) if error.to_string().contains("log.jsonl")),
                "{refused}"
            );
        }
        assert_eq!(fs::read(&log).unwrap(), before);
    }
}

#[tokio::test]
async fn a_missing_or_altered_checkpoint_is_an_error_that_names_it() {
    for break_it in [|path: &Path| fs::write(path, "{}").unwrap(), |path: &Path| fs::remove_file(path).unwrap()] {
        let folder = tempfile::tempdir().unwrap();
        let (sessions, place) = three(folder.path()).await;
        // The one in use is the one that was written last.
        let slot = place.join("checkpoint.0");
        assert!(fs::read_to_string(&slot).is_ok());
        let slots = [slot, place.join("checkpoint.1")];
        slots.iter().for_each(|slot| break_it(slot));
        let error = sessions.load("s").await.unwrap_err().to_string();
        assert!(error.contains("checkpoint."), "{error}");
        // The next state mends it.
        let state = meta("state 3");
        sessions.commit("s", Commit::new(3, "r").with_meta(&state)).await.unwrap();
        assert_eq!(sessions.load("s").await.unwrap().unwrap().meta(), Some(&state));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn files_of_sessions_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let (_, place) = three(&folder.path().join("sessions")).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&place), mode(place.parent().unwrap())), (0o700, 0o700));
    for file in fs::read_dir(&place).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
}

#[tokio::test]
async fn what_is_no_database_is_an_error_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    fs::write(&path, "rubbish, and quite a lot of it".repeat(1_000)).unwrap();
    let error = SqliteSessions::open(&path).unwrap_err().to_string();
    assert!(error.contains("sessions.db"), "{error}");
}

#[tokio::test]
async fn a_malformed_row_is_named_and_later_tables_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let sessions: Arc<dyn SessionStore> = Arc::new(SqliteSessions::open(&path).unwrap());
    let state = meta("x");
    sessions.commit("s", Commit::new(0, "r").appending(&[said("a"), said("b")]).with_meta(&state)).await.unwrap();
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute("update messages set line = 'rubbish' where key = 2", []).unwrap();
    let error = sessions.load("s").await.unwrap_err().to_string();
    assert!(error.contains("sessions.db") && error.contains("row 2 of messages"), "{error}");
    raw.execute("update messages set line = '{}'", []).unwrap();
    raw.execute("update checkpoints set meta = '{\"a\":\"?\"}'", []).unwrap();
    let error = sessions.load("s").await.unwrap_err().to_string();
    assert!(error.contains("the state is malformed"), "{error}");
    raw.pragma_update(None, "user_version", 7).unwrap();
    let error = SqliteSessions::open(&path).unwrap_err().to_string();
    assert!(error.contains("tables of version 7"), "{error}");
}
