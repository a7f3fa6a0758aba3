//! Sessions in a SQLite file.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, TransactionBehavior, params};

use super::{
    Checkpoint, Commit, CommitError, Meta, Placing, RewriteSessions, Segment, SessionStore, StoredSession, Version,
};
use crate::record::Message;
use crate::stores::{StoreError, blocking};

/// Sessions in a SQLite file, which any number of processes may share.
///
/// A commit is one transaction, begun with the write lock, so that the version it was made from is looked at and
/// replaced in one step. It costs what is new. The journal is written ahead (WAL), and `synchronous` is FULL: with
/// NORMAL a power cut could take back what was acknowledged. A process that finds the file locked waits up to ten
/// seconds.
///
/// The file is made with the mode the process makes files with (`umask`); put it into a private folder. SQLite itself is
/// built along, so that what the system has does not matter. Behind the feature `sqlite`.
///
/// ```
/// use std::sync::Arc;
/// use foreshorten::record::Message;
/// use foreshorten::session::{Commit, SessionStore, SqliteSessions};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let folder = tempfile::tempdir()?;
/// let sessions = SqliteSessions::open(&folder.path().join("sessions.db"))?;
/// let said = [Arc::new(Message::user("hi"))];
/// sessions.commit("s1", Commit::new(0, "run1").appending(&said)).await?;
/// assert_eq!(sessions.load("s1").await?.unwrap().record().messages(), said);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SqliteSessions {
    connection: Arc<Mutex<Connection>>,
    path: Arc<str>,
}

/// Version of the tables, kept in `user_version`.
const SCHEMA: i64 = 1;

/// `open` is the run whose segment takes more messages. The state at the end of a run is in its segment.
const TABLES: &str = "
create table sessions (
    key integer primary key,
    id text not null unique,
    version integer not null,
    messages integer not null,
    open text
) strict;
create table segments (
    session integer not null references sessions,
    number integer not null,
    run text not null,
    meta text,
    primary key (session, number)
) strict, without rowid;
create table messages (
    key integer primary key,
    session integer not null references sessions,
    segment integer not null,
    line text not null
) strict;
create index messages_of on messages (session, key);
create table checkpoints (
    session integer primary key references sessions,
    run text not null,
    messages integer not null,
    meta text not null
) strict;
";

impl SqliteSessions {
    /// Opens the file at `path`, making it when it is not there.
    ///
    /// # Errors
    /// When it cannot be opened, is no SQLite file, or was written by a later version of this crate.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let name = path.display().to_string();
        let wrong = |error: rusqlite::Error| StoreError::caused(name.clone(), error);
        let mut connection = Connection::open(path).map_err(wrong)?;
        connection.busy_timeout(Duration::from_secs(10)).map_err(wrong)?;
        connection.pragma_update(None, "journal_mode", "wal").map_err(wrong)?;
        connection.pragma_update(None, "synchronous", "full").map_err(wrong)?;
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(wrong)?;
        match step.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0)).map_err(wrong)? {
            0 => {
                step.execute_batch(TABLES).map_err(wrong)?;
                step.pragma_update(None, "user_version", SCHEMA).map_err(wrong)?;
            }
            SCHEMA => {}
            found => {
                return Err(StoreError::new(format!("{name}: tables of version {found}, where {SCHEMA} is read")));
            }
        }
        step.commit().map_err(wrong)?;
        Ok(Self { connection: Arc::new(Mutex::new(connection)), path: name.into() })
    }

    /// Runs a step where waiting for the disk holds nobody up.
    async fn step<T: Send + 'static>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, CommitError> {
        let (connection, path) = (Arc::clone(&self.connection), Arc::clone(&self.path));
        let run = move || {
            let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            let step = connection.transaction_with_behavior(behavior)?;
            // Dropped without a commit, a transaction is as if it had not been.
            let done = work(&step)?;
            step.commit()?;
            Ok(done)
        };
        blocking(run).await?.map_err(|failure: Failure| failure.named(&path))
    }
}

/// Why a step came to nothing.
enum Failure {
    Conflict(Version),
    Sql(rusqlite::Error),
    Malformed(String),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl Failure {
    fn named(self, path: &str) -> CommitError {
        match self {
            Self::Conflict(version) => CommitError::Conflict(version),
            Self::Sql(error) => StoreError::caused(path, error).into(),
            Self::Malformed(what) => StoreError::new(format!("{path}: {what}")).into(),
        }
    }
}

#[async_trait]
impl SessionStore for SqliteSessions {
    async fn load(&self, session: &str) -> Result<Option<StoredSession>, StoreError> {
        let id = session.to_owned();
        match self.step(TransactionBehavior::Deferred, move |step| load(step, &id)).await {
            Ok(stored) => Ok(stored),
            Err(CommitError::Store(error)) => Err(error),
            Err(conflict) => Err(StoreError::new(conflict.to_string())),
        }
    }

    async fn commit(&self, session: &str, commit: Commit<'_>) -> Result<Version, CommitError> {
        let (id, run) = (session.to_owned(), commit.run.to_owned());
        let (messages, meta) = (commit.messages.to_vec(), commit.meta.cloned());
        let (expected, ends) = (commit.expected, commit.ends);
        let step = move |step: &Transaction<'_>| {
            self::commit(step, &id, Commit { expected, run: &run, messages: &messages, meta: meta.as_ref(), ends })
        };
        self.step(TransactionBehavior::Immediate, step).await
    }
}

#[async_trait]
impl RewriteSessions for SqliteSessions {
    async fn rewrite(&self, session: &str, expected: Version, segments: &[Segment]) -> Result<Version, CommitError> {
        let (id, segments) = (session.to_owned(), segments.to_vec());
        self.step(TransactionBehavior::Immediate, move |step| rewrite(step, &id, expected, &segments)).await
    }
}

/// The row of a session.
struct Head {
    key: i64,
    version: Version,
    messages: usize,
    open: Option<String>,
}

fn head(step: &Transaction<'_>, id: &str) -> Result<Option<Head>, Failure> {
    let read = |row: &Row<'_>| {
        let (version, messages): (i64, i64) = (row.get(1)?, row.get(2)?);
        Ok(Head { key: row.get(0)?, version: version as Version, messages: messages as usize, open: row.get(3)? })
    };
    let mut rows = step.prepare_cached("select key, version, messages, open from sessions where id = ?1")?;
    Ok(rows.query_row([id], read).optional()?)
}

fn load(step: &Transaction<'_>, id: &str) -> Result<Option<StoredSession>, Failure> {
    let Some(head) = head(step, id)? else { return Ok(None) };
    let malformed = |what: String| Failure::Malformed(format!("session {id:?}: {what}"));
    let mut segments: Vec<Segment> = Vec::new();
    let mut rows = step.prepare_cached("select run, meta from segments where session = ?1 order by number")?;
    let mut rows = rows.query([head.key])?;
    while let Some(row) = rows.next()? {
        let meta: Option<String> = row.get(1)?;
        let meta = meta.map(|meta| read_meta(&meta)).transpose().map_err(malformed)?;
        segments.push(Segment { run: row.get(0)?, messages: Vec::new(), meta });
    }
    let mut rows = step.prepare_cached("select segment, line, key from messages where session = ?1 order by key")?;
    let mut rows = rows.query([head.key])?;
    while let Some(row) = rows.next()? {
        let (segment, key): (i64, i64) = (row.get(0)?, row.get(2)?);
        let line: String = row.get(1)?;
        let message =
            Message::from_line(&line).map_err(|error| malformed(format!("row {key} of messages: {error}")))?;
        let segment = usize::try_from(segment).ok().and_then(|segment| segments.get_mut(segment));
        let segment = segment.ok_or_else(|| malformed(format!("row {key} of messages: it belongs to no segment")))?;
        segment.messages.push(Arc::new(message));
    }
    let checkpoint = checkpoint(step, head.key)?.transpose().map_err(malformed)?;
    Ok(Some(StoredSession { version: head.version, segments, checkpoint }))
}

fn checkpoint(step: &Transaction<'_>, key: i64) -> Result<Option<Result<Checkpoint, String>>, Failure> {
    let mut rows = step.prepare_cached("select run, messages, meta from checkpoints where session = ?1")?;
    let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?));
    let row = rows.query_row([key], read).optional()?;
    Ok(row.map(|(run, messages, meta)| Ok(Checkpoint { run, messages: messages as usize, meta: read_meta(&meta)? })))
}

fn commit(step: &Transaction<'_>, id: &str, commit: Commit<'_>) -> Result<Version, Failure> {
    let head = head(step, id)?;
    let version = head.as_ref().map_or(0, |head| head.version);
    if version != commit.expected {
        return Err(Failure::Conflict(version));
    }
    let head = match head {
        Some(head) => head,
        None => {
            step.execute("insert into sessions (id, version, messages) values (?1, 0, 0)", [id])?;
            Head { key: step.last_insert_rowid(), version: 0, messages: 0, open: None }
        }
    };
    let state = match (commit.ends, commit.meta) {
        (true, Some(meta)) => Some(write_meta(meta)),
        (true, None) => {
            let mut rows = step.prepare_cached("select meta from checkpoints where session = ?1")?;
            rows.query_row([head.key], |row| row.get(0)).optional()?
        }
        (false, _) => None,
    };
    let placing = Placing::of(&commit, head.open.as_deref(), state.is_some());
    if placing.adds {
        let newest = "select coalesce(max(number), -1) from segments where session = ?1";
        let newest: i64 = step.prepare_cached(newest)?.query_row([head.key], |row| row.get(0))?;
        let number = newest + i64::from(placing.begins);
        if placing.begins {
            let insert = "insert into segments (session, number, run) values (?1, ?2, ?3)";
            step.prepare_cached(insert)?.execute(params![head.key, number, commit.run])?;
        }
        append(step, head.key, number, commit.messages)?;
        if state.is_some() {
            let update = "update segments set meta = ?3 where session = ?1 and number = ?2";
            step.prepare_cached(update)?.execute(params![head.key, number, state])?;
        }
    }
    let total = head.messages + commit.messages.len();
    if commit.ends {
        step.prepare_cached("delete from checkpoints where session = ?1")?.execute([head.key])?;
    } else if let Some(meta) = commit.meta {
        let replace = "insert or replace into checkpoints (session, run, messages, meta) values (?1, ?2, ?3, ?4)";
        step.prepare_cached(replace)?.execute(params![head.key, commit.run, total as i64, write_meta(meta)])?;
    }
    let update = "update sessions set version = ?2, messages = ?3, open = ?4 where key = ?1";
    step.prepare_cached(update)?.execute(params![head.key, (version + 1) as i64, total as i64, placing.open])?;
    Ok(version + 1)
}

fn append(step: &Transaction<'_>, key: i64, segment: i64, messages: &[Arc<Message>]) -> Result<(), Failure> {
    let mut insert = step.prepare_cached("insert into messages (session, segment, line) values (?1, ?2, ?3)")?;
    for message in messages {
        insert.execute(params![key, segment, message.to_line()])?;
    }
    Ok(())
}

fn rewrite(step: &Transaction<'_>, id: &str, expected: Version, segments: &[Segment]) -> Result<Version, Failure> {
    let head = head(step, id)?;
    let version = head.as_ref().map_or(0, |head| head.version);
    let Some(head) = head.filter(|_| version == expected) else { return Err(Failure::Conflict(version)) };
    step.execute("delete from messages where session = ?1", [head.key])?;
    step.execute("delete from segments where session = ?1", [head.key])?;
    for (number, segment) in (0..).zip(segments) {
        let meta = segment.meta.as_ref().map(write_meta);
        let insert = "insert into segments (session, number, run, meta) values (?1, ?2, ?3, ?4)";
        step.prepare_cached(insert)?.execute(params![head.key, number, segment.run, meta])?;
        append(step, head.key, number, &segment.messages)?;
    }
    let total: usize = segments.iter().map(|segment| segment.messages.len()).sum();
    let update = "update sessions set version = ?2, messages = ?3, open = null where key = ?1";
    step.prepare_cached(update)?.execute(params![head.key, (version + 1) as i64, total as i64])?;
    Ok(version + 1)
}

fn write_meta(meta: &Meta) -> String {
    serde_json::to_string(meta).unwrap_or_default()
}

fn read_meta(text: &str) -> Result<Meta, String> {
    serde_json::from_str(text).map_err(|error| format!("the state is malformed: {error}"))
}
