//! Processes that share a session, and that are killed while they write.
//!
//! The test starts itself again as a child (`child_that_commits`), which tells on its standard output what was
//! acknowledged.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use foreshorten::core::transcript::EntryKind;
use foreshorten::session::{Commit, CommitError, FileSessions, RewriteSessions, SqliteSessions, StoredSession};

use crate::conformance::{meta, said};

const ROLE: &str = "FORESHORTEN_SESSION_CHILD";

fn open(kind: &str, folder: &Path) -> Arc<dyn RewriteSessions> {
    match kind {
        "file" => Arc::new(FileSessions::open(&folder.join("sessions")).unwrap()),
        _ => Arc::new(SqliteSessions::open(&folder.join("sessions.db")).unwrap()),
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn child(kind: &str, folder: &Path, run: &str, commits: usize) -> Child {
    let role = format!("{kind}|{run}|{commits}|{}", folder.display());
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child_that_commits", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Not a test of its own: without the variable it does nothing.
#[test]
fn child_that_commits() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let mut words = role.splitn(4, '|');
    let mut word = || words.next().unwrap().to_owned();
    let (kind, run, commits, folder) = (word(), word(), word().parse::<usize>().unwrap(), word());
    block_on(async {
        let sessions = open(&kind, Path::new(&folder));
        let mut version = sessions.load("s").await.unwrap().map_or(0, |stored| stored.version);
        let before = read_io();
        for number in 0..commits {
            loop {
                // Message and state say the same, so that a commit of which only half is there is seen.
                let text = format!("{run}-{number}-{version}");
                let (messages, state) = ([said(&text), said(&"x".repeat(number % 50 * 300))], meta(&text));
                let mut commit = Commit::new(version, &run).appending(&messages).with_meta(&state);
                if version % 7 == 6 {
                    commit = commit.ending();
                }
                match sessions.commit("s", commit).await {
                    Ok(next) => {
                        version = next;
                        println!("\nACK {version} {text}");
                        break;
                    }
                    Err(CommitError::Conflict(now)) => version = now,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        println!("\nIO {}", read_io() - before);
    });
}

/// Bytes this process read and wrote so far, where the system tells.
fn read_io() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    field("rchar:").unwrap_or(0) + field("wchar:").unwrap_or(0)
}

/// The lines of a child that begin with a word, while they come.
fn lines(child: &mut Child, word: &'static str) -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            if let Some(rest) = line.strip_prefix(word) {
                let _ = send.send(rest.trim().to_owned());
            }
        }
    });
    receive
}

/// The first message of every commit, checked against everything else the session holds.
fn whole(stored: &StoredSession) -> Vec<String> {
    let record = stored.record();
    assert_eq!(record.messages().len() as u64, 2 * stored.version, "a commit is there in half");
    let texts: Vec<String> =
        record.messages().iter().step_by(2).map(|message| message.text_of(EntryKind::User)).collect();
    for (version, text) in texts.iter().enumerate() {
        assert!(text.ends_with(&format!("-{version}")), "{text} is not commit {version}");
    }
    assert_eq!(stored.meta(), texts.last().map(|text| meta(text)).as_ref(), "the state is not that of the last commit");
    assert_eq!(stored.checkpoint.is_none(), stored.version.is_multiple_of(7));
    texts
}

fn kills_lose_nothing(kind: &str) {
    const KILLS: usize = 50;
    let folder = tempfile::tempdir().unwrap();
    let mut random = RandomState::new().hash_one(kind);
    println!("{kind}: the first random number is {random}");
    let (mut acknowledged, mut killed_writing) = (0usize, 0);
    for round in 0..KILLS {
        let mut child = child(kind, folder.path(), &format!("run{round}"), usize::MAX);
        let acks = lines(&mut child, "ACK ");
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // From the first commit on, which makes the session, to somewhere in the middle of many.
        let first = acks.recv_timeout(Duration::from_secs(60)).expect("the child commits");
        std::thread::sleep(Duration::from_micros(random >> 40 & 0x7fff));
        child.kill().unwrap();
        child.wait().unwrap();
        let known: Vec<String> = std::iter::once(first).chain(acks.iter()).collect();
        acknowledged += known.len();
        let stored = block_on(open(kind, folder.path()).load("s")).unwrap().unwrap();
        let texts = whole(&stored);
        for ack in &known {
            let (version, text) = ack.split_once(' ').unwrap();
            assert_eq!(texts[version.parse::<usize>().unwrap() - 1], text, "round {round}");
        }
        let last: u64 = known.last().unwrap().split_once(' ').unwrap().0.parse().unwrap();
        assert!(stored.version <= last + 1, "round {round}: more than one commit was not acknowledged");
        killed_writing += usize::from(stored.version > last);
    }
    println!("{kind}: {KILLS} kills, {acknowledged} commits acknowledged, {killed_writing} done but not said");
}

#[test]
fn killed_writers_of_file_sessions_lose_nothing_acknowledged() {
    kills_lose_nothing("file");
}

#[test]
fn killed_writers_of_sqlite_sessions_lose_nothing_acknowledged() {
    kills_lose_nothing("sqlite");
}

#[test]
fn two_processes_on_one_session_lose_nothing_and_keep_their_order() {
    for kind in ["file", "sqlite"] {
        let folder = tempfile::tempdir().unwrap();
        let mut children = ["a", "b"].map(|run| child(kind, folder.path(), run, 40));
        let acks = children.each_mut().map(|child| lines(child, "ACK "));
        for child in &mut children {
            assert!(child.wait().unwrap().success());
        }
        let texts = whole(&block_on(open(kind, folder.path()).load("s")).unwrap().unwrap());
        assert_eq!(texts.len(), 80, "{kind}");
        for (run, acks) in ["a", "b"].into_iter().zip(acks) {
            let own: Vec<&String> = texts.iter().filter(|text| text.starts_with(run)).collect();
            let told: Vec<String> = acks.iter().map(|ack| ack.split_once(' ').unwrap().1.to_owned()).collect();
            assert_eq!(own, told.iter().collect::<Vec<_>>(), "{kind}");
        }
    }
}

#[test]
fn a_commit_reads_and_writes_what_is_new_however_long_the_session() {
    for kind in ["file", "sqlite"] {
        let mut moved = Vec::new();
        for messages in [1, 2_000] {
            let folder = tempfile::tempdir().unwrap();
            let many: Vec<_> = (0..messages).map(|number| said(&format!("{number}{}", "x".repeat(10_000)))).collect();
            let sessions = open(kind, folder.path());
            block_on(sessions.commit("s", Commit::new(0, "big").appending(&many))).unwrap();
            // The first commit after a large one still looks at that.
            block_on(sessions.commit("s", Commit::new(1, "big"))).unwrap();
            let mut child = child(kind, folder.path(), "small", 10);
            let io = lines(&mut child, "IO ");
            assert!(child.wait().unwrap().success());
            moved.push(io.recv().unwrap().parse::<u64>().unwrap());
        }
        println!(
            "{kind}: ten commits read and write {} bytes in a new session, {} in one of 20 MB",
            moved[0], moved[1]
        );
        assert!(moved[1] <= moved[0] + 400_000, "{kind}: {moved:?}");
    }
}
