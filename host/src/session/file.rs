//! Sessions as files: a folder each.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use foreshorten_core::digest::Digest;

use super::log::{self, CommitLine, End, Pointer};
use super::{
    Checkpoint, Commit, CommitError, Meta, Placing, RewriteSessions, Segment, SessionStore, StoredSession, Version,
};
use crate::stores::{StoreError, about, blocking, open_private, private_folder, strict_name, sync_folder};

/// A folder of sessions, each a folder:
///
/// ```text
/// {root}/{session}/log.jsonl      messages and commits, only ever appended to
/// {root}/{session}/checkpoint.0   the state, in one of two files in turn
/// {root}/{session}/checkpoint.1
/// {root}/{session}/lock           locked while somebody reads or writes
/// ```
///
/// **A crash** loses nothing that was acknowledged. A commit writes the state into the file that is not in use, then
/// appends the messages and one line that counts for all of it. What stands behind the last such line is not read, and
/// is cut off by the next commit. Both writes are on the disk before a commit returns: two syncs, one without state.
///
/// **A commit** costs what is new: its messages, its state, and some 400 bytes. The log is not read for it.
///
/// **Processes** may share a folder: each step holds the lock of its session, and is refused when the version is not
/// the one it was made from. The file system must have locks.
///
/// Files have mode 0600, folders 0700, and hold the conversation as it is. Ids that are no plain names are made into
/// such, without collisions.
///
/// ```
/// use std::sync::Arc;
/// use foreshorten::record::Message;
/// use foreshorten::session::{Commit, FileSessions, SessionStore};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let folder = tempfile::tempdir()?;
/// let said = [Arc::new(Message::user("hi"))];
/// FileSessions::open(folder.path())?.commit("s1", Commit::new(0, "run1").appending(&said)).await?;
/// // Another process, later.
/// let stored = FileSessions::open(folder.path())?.load("s1").await?.unwrap();
/// assert_eq!(stored.segments[0].messages, said);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct FileSessions {
    root: PathBuf,
}

impl FileSessions {
    /// Opens the sessions at `root`, making the folder when it is not there.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn open(root: &Path) -> io::Result<Self> {
        private_folder(root).map_err(about(root))?;
        Ok(Self { root: root.into() })
    }

    fn place(&self, session: &str) -> Place {
        Place { session: session.into(), root: self.root.clone(), folder: self.root.join(strict_name(session)) }
    }
}

#[async_trait]
impl SessionStore for FileSessions {
    async fn load(&self, session: &str) -> Result<Option<StoredSession>, StoreError> {
        let place = self.place(session);
        Ok(blocking(move || place.load()).await??)
    }

    async fn commit(&self, session: &str, commit: Commit<'_>) -> Result<Version, CommitError> {
        let place = self.place(session);
        let (run, messages, meta) = (commit.run.to_owned(), commit.messages.to_vec(), commit.meta.cloned());
        let (expected, ends) = (commit.expected, commit.ends);
        let step = move || place.commit(Commit { expected, run: &run, messages: &messages, meta: meta.as_ref(), ends });
        blocking(step).await?
    }
}

#[async_trait]
impl RewriteSessions for FileSessions {
    async fn rewrite(&self, session: &str, expected: Version, segments: &[Segment]) -> Result<Version, CommitError> {
        let (place, segments) = (self.place(session), segments.to_vec());
        blocking(move || place.rewrite(expected, &segments)).await?
    }
}

/// Where one session lies.
struct Place {
    session: String,
    root: PathBuf,
    folder: PathBuf,
}

impl Place {
    fn log(&self) -> PathBuf {
        self.folder.join("log.jsonl")
    }

    fn slot(&self, slot: u8) -> PathBuf {
        self.folder.join(format!("checkpoint.{}", slot & 1))
    }

    /// The log as it stands, and the lock that keeps it so.
    fn open(&self, lock: fn(&File) -> io::Result<()>) -> io::Result<(File, File)> {
        let path = self.folder.join("lock");
        let held = open_private(&path).map_err(about(&path))?;
        lock(&held).map_err(about(&path))?;
        let path = self.log();
        Ok((open_private(&path).map_err(about(&path))?, held))
    }

    fn load(&self) -> io::Result<Option<StoredSession>> {
        if !self.folder.is_dir() {
            return Ok(None);
        }
        let (mut log, _lock) = self.open(File::lock_shared)?;
        let replayed = log::replay(&mut log, &self.log(), &self.session)?;
        let last = replayed.end.last;
        if last.version == 0 {
            return Ok(None);
        }
        let checkpoint = last.checkpoint.map(|pointer| self.checkpoint(pointer)).transpose()?;
        Ok(Some(StoredSession { version: last.version, segments: replayed.segments, checkpoint }))
    }

    fn checkpoint(&self, pointer: Pointer) -> io::Result<Checkpoint> {
        let path = self.slot(pointer.slot);
        let mut bytes = Vec::new();
        let file = File::open(&path).map_err(about(&path))?;
        // An older, longer checkpoint may stand behind it.
        file.take(pointer.bytes).read_to_end(&mut bytes).map_err(about(&path))?;
        let wrong = |what: &dyn std::fmt::Display| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{}:1: {what}", path.display()))
        };
        if Digest::of(&bytes) != pointer.digest {
            return Err(wrong(&"not the checkpoint that was committed"));
        }
        let (run, messages, meta) = serde_json::from_slice(&bytes).map_err(|error| wrong(&error))?;
        Ok(Checkpoint { run, messages, meta })
    }

    fn commit(&self, commit: Commit<'_>) -> Result<Version, CommitError> {
        let is_new = !self.folder.is_dir();
        if is_new && commit.expected != 0 {
            return Err(CommitError::Conflict(0));
        }
        private_folder(&self.folder).map_err(about(&self.folder))?;
        let (mut log, _lock) = self.open(File::lock)?;
        let path = self.log();
        let End { last, at } = log::end(&mut log, &path).map_err(about(&path))?;
        if last.version != commit.expected {
            return Err(CommitError::Conflict(last.version));
        }
        let total = last.total + commit.messages.len();
        let state: Option<Meta> = match (commit.ends, commit.meta, last.checkpoint) {
            (true, Some(meta), _) => Some(meta.clone()),
            (true, None, Some(pointer)) => Some(self.checkpoint(pointer)?.meta),
            _ => None,
        };
        let checkpoint = match (commit.ends, commit.meta) {
            (true, _) => None,
            (false, Some(meta)) => {
                Some(self.write_checkpoint(commit.run, total, meta, last.checkpoint.map_or(0, |used| used.slot ^ 1))?)
            }
            (false, None) => last.checkpoint,
        };
        let placing = Placing::of(&commit, last.open.as_deref(), state.is_some());
        let mut out = if at == 0 { log::head(&self.session) } else { String::new() };
        let from = out.len();
        out.push_str(&log::lines(commit.messages));
        let line = CommitLine {
            version: last.version + 1,
            run: commit.run.into(),
            messages: commit.messages.len(),
            begins: placing.begins,
            total,
            open: placing.open,
            meta: state,
            checkpoint,
            ..CommitLine::default()
        };
        let line = log::seal(&mut out, from, line);
        append(&mut log, at, out.as_bytes()).map_err(about(&path))?;
        if at == 0 {
            // The names too must be on the disk.
            sync_folder(&self.folder).map_err(about(&self.folder))?;
            sync_folder(&self.root).map_err(about(&self.root))?;
        }
        Ok(line.version)
    }

    /// Writes a checkpoint where none is in use.
    fn write_checkpoint(&self, run: &str, messages: usize, meta: &Meta, slot: u8) -> io::Result<Pointer> {
        let bytes = serde_json::to_vec(&(run, messages, meta))?;
        let path = self.slot(slot);
        let is_new = !path.exists();
        let mut file = open_private(&path).map_err(about(&path))?;
        file.write_all(&bytes).and_then(|()| file.set_len(bytes.len() as u64)).map_err(about(&path))?;
        file.sync_data().map_err(about(&path))?;
        if is_new {
            sync_folder(&self.folder).map_err(about(&self.folder))?;
        }
        Ok(Pointer { slot, bytes: bytes.len() as u64, digest: Digest::of(&bytes) })
    }

    fn rewrite(&self, expected: Version, segments: &[Segment]) -> Result<Version, CommitError> {
        if !self.folder.is_dir() {
            return Err(CommitError::Conflict(0));
        }
        let (mut log, _lock) = self.open(File::lock)?;
        let path = self.log();
        let End { last, .. } = log::end(&mut log, &path).map_err(about(&path))?;
        if last.version != expected || expected == 0 {
            return Err(CommitError::Conflict(last.version));
        }
        let mut out = log::head(&self.session);
        let mut line = CommitLine { version: last.version + 1, checkpoint: last.checkpoint, ..CommitLine::default() };
        for segment in segments {
            let from = out.len();
            out.push_str(&log::lines(&segment.messages));
            line.run.clone_from(&segment.run);
            line.messages = segment.messages.len();
            line.total += segment.messages.len();
            line.begins = true;
            line.meta.clone_from(&segment.meta);
            log::seal(&mut out, from, line.clone());
        }
        if segments.is_empty() {
            let from = out.len();
            log::seal(&mut out, from, line.clone());
        }
        let mut file = tempfile::Builder::new().prefix(".log-").tempfile_in(&self.folder).map_err(about(&path))?;
        file.write_all(out.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(about(&path))?;
        file.persist(&path).map_err(|error| about(&path)(error.error))?;
        sync_folder(&self.folder).map_err(about(&self.folder))?;
        Ok(line.version)
    }
}

/// Appends at `at`, in place of whatever half a commit stands there.
fn append(log: &mut File, at: u64, bytes: &[u8]) -> io::Result<()> {
    if log.metadata()?.len() > at {
        log.set_len(at)?;
    }
    log.seek(SeekFrom::Start(at))?;
    let written = log.write_all(bytes).and_then(|()| log.sync_data());
    if written.is_err() {
        // It was not acknowledged; the next commit would cut it off as well.
        let _ = log.set_len(at);
    }
    written
}
