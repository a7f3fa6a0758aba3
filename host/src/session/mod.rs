//! Sessions: what is kept of a conversation between runs, and how two runners share it.
//!
//! A session is a list of **segments**, one a run. A segment holds the messages that the run added and, once it ended
//! well, **meta**: the state of the context policy. While a run is under way its state is kept after every step in the
//! session's **checkpoint**. Everything a store has acknowledged survives a crash at any point.
//!
//! Writes are compare-and-swap: a [`Commit`] names the version it was made from, and a store that has moved on answers
//! [`CommitError::Conflict`]. The loser loads again, joins the two states and commits its own messages behind the others.

mod file;
mod log;
mod memory;
#[cfg(feature = "sqlite")]
mod sqlite;
mod trim;

pub use file::FileSessions;
pub use memory::MemorySessions;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteSessions;
pub use trim::{Trim, TrimReport, trim_tool_results};

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::record::{Message, Record};
use crate::stores::StoreError;

/// Counts the commits of a session; 0 when there is none yet.
pub type Version = u64;

/// Bytes that a context policy keeps with a session, by name. The runner carries them and does not look inside.
///
/// Serialised as a map of base64 texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta(pub BTreeMap<String, Vec<u8>>);

impl Serialize for Meta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, bytes)| (name, STANDARD.encode(bytes))))
    }
}

impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = BTreeMap::<String, String>::deserialize(deserializer)?;
        let bytes = |(name, text): (String, String)| Ok((name, STANDARD.decode(text).map_err(D::Error::custom)?));
        texts.into_iter().map(bytes).collect::<Result<_, _>>().map(Self)
    }
}

/// Messages of one run that no other run came between. A run beside which another committed has several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The run that wrote them.
    pub run: String,
    /// What it added, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The state at its end; `None` when it did not end well or not here, or something else wrote the segment.
    pub meta: Option<Meta>,
}

/// State in the middle of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// The run.
    pub run: String,
    /// Number of messages of the session that the state has seen.
    pub messages: usize,
    /// The state.
    pub meta: Meta,
}

/// A session as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredSession {
    /// Which commit this is.
    pub version: Version,
    /// The runs, oldest first.
    pub segments: Vec<Segment>,
    /// The newest checkpoint, if any was written since the last segment with meta.
    pub checkpoint: Option<Checkpoint>,
}

impl StoredSession {
    /// All messages, oldest first.
    #[must_use]
    pub fn record(&self) -> Record {
        self.segments.iter().flat_map(|segment| segment.messages.iter().cloned()).collect()
    }

    /// The newest state there is: the checkpoint's, else that of the newest segment that has one. A segment without
    /// meta loses nothing.
    #[must_use]
    pub fn meta(&self) -> Option<&Meta> {
        let checkpoint = self.checkpoint.as_ref().map(|checkpoint| &checkpoint.meta);
        checkpoint.or_else(|| self.segments.iter().rev().find_map(|segment| segment.meta.as_ref()))
    }
}

/// One step of a run: what is appended, and the state after it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Commit<'a> {
    /// The version this was made from.
    pub expected: Version,
    /// The run. A segment of its own is begun with its first messages, and anew when those of another run stand last.
    pub run: &'a str,
    /// Messages to append.
    pub messages: &'a [Arc<Message>],
    /// The state after them; `None` leaves the last one.
    pub meta: Option<&'a Meta>,
    /// The run is over: its state, or else that of the checkpoint, goes into its segment, and the checkpoint goes.
    pub ends: bool,
}

impl<'a> Commit<'a> {
    /// A step of `run` made from version `expected`, with nothing in it yet.
    #[must_use]
    pub const fn new(expected: Version, run: &'a str) -> Self {
        Self { expected, run, messages: &[], meta: None, ends: false }
    }

    /// The same with messages to append.
    #[must_use]
    pub const fn appending(mut self, messages: &'a [Arc<Message>]) -> Self {
        self.messages = messages;
        self
    }

    /// The same with the state after it.
    #[must_use]
    pub const fn with_meta(mut self, meta: &'a Meta) -> Self {
        self.meta = Some(meta);
        self
    }

    /// The same as the last step of the run.
    #[must_use]
    pub const fn ending(mut self) -> Self {
        self.ends = true;
        self
    }
}

/// What a commit does to the list of segments. The same in every store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placing {
    /// It adds to a segment.
    pub(crate) adds: bool,
    /// That segment is a new one.
    pub(crate) begins: bool,
    /// The run whose segment is open for more afterwards.
    pub(crate) open: Option<String>,
}

impl Placing {
    /// Where a commit goes, when the last segment is open for the run `open`; `state` says that there is one to keep
    /// at the end.
    pub(crate) fn of(commit: &Commit<'_>, open: Option<&str>, state: bool) -> Self {
        let own = open == Some(commit.run);
        let adds = !commit.messages.is_empty() || (commit.ends && state);
        let open = match (adds, commit.ends) {
            (true, false) => Some(commit.run.to_owned()),
            (_, true) if adds || own => None,
            _ => open.map(Into::into),
        };
        Self { adds, begins: adds && !own, open }
    }
}

/// Why a commit was not taken.
#[derive(Debug)]
#[non_exhaustive]
pub enum CommitError {
    /// Somebody else committed first; the session is now at this version. Nothing was written.
    Conflict(Version),
    /// The store failed. Whether anything was written is not known; [`SessionStore::load`] tells.
    Store(StoreError),
}

impl std::fmt::Display for CommitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Conflict(version) => write!(f, "another runner committed first; the session is at {version}"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CommitError {}

impl<E: Into<StoreError>> From<E> for CommitError {
    fn from(error: E) -> Self {
        Self::Store(error.into())
    }
}

/// Keeps sessions.
///
/// ```
/// use std::sync::Arc;
/// use foreshorten::record::Message;
/// use foreshorten::session::{Commit, CommitError, MemorySessions, Meta, SessionStore};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let sessions = MemorySessions::new();
/// let said = [Arc::new(Message::user("hi"))];
/// let version = sessions.commit("s1", Commit::new(0, "run1").appending(&said)).await?;
/// // A second runner that has not seen this is told so, and nothing of its step is written.
/// let late = sessions.commit("s1", Commit::new(0, "run2").appending(&said)).await;
/// assert!(matches!(late, Err(CommitError::Conflict(1))));
/// sessions.commit("s1", Commit::new(version, "run1").with_meta(&Meta::default()).ending()).await?;
/// let stored = sessions.load("s1").await?.unwrap();
/// assert_eq!((stored.version, stored.record().messages().len()), (2, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// A session; `None` when there is none of this id.
    ///
    /// # Errors
    /// When it cannot be read. Half a line at the end, as a crash leaves it, is no error.
    async fn load(&self, session: &str) -> Result<Option<StoredSession>, StoreError>;

    /// Takes a step in, whole or not at all, and answers the new version.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] when the session is not at the version expected.
    async fn commit(&self, session: &str, commit: Commit<'_>) -> Result<Version, CommitError>;
}

/// A session store in which stored messages can be replaced, as [`trim_tool_results`] does offline. No part of a run.
///
/// ```
/// use std::sync::Arc;
/// use foreshorten::record::Message;
/// use foreshorten::session::{Commit, MemorySessions, RewriteSessions, SessionStore};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let sessions = MemorySessions::new();
/// let said = [Arc::new(Message::user("a secret"))];
/// let version = sessions.commit("s", Commit::new(0, "run-1").appending(&said)).await?;
/// let mut segments = sessions.load("s").await?.unwrap_or_default().segments;
/// segments[0].messages = vec![Arc::new(Message::user("[taken out]"))];
/// sessions.rewrite("s", version, &segments).await?;
/// assert_eq!(sessions.load("s").await?.unwrap_or_default().segments, segments);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[async_trait]
pub trait RewriteSessions: SessionStore {
    /// Puts other segments in the place of all there are, whole or not at all, and answers the new version. The
    /// checkpoint stays. No segment is open afterwards: a run that goes on begins a new one.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] when the session is not at the version expected, or when there is none.
    async fn rewrite(&self, session: &str, expected: Version, segments: &[Segment]) -> Result<Version, CommitError>;
}
