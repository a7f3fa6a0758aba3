//! Sessions: what is kept of a conversation between runs, and how two runners share it.
//!
//! A session is a list of **segments**, one a run. A segment holds the messages that the run added and, once it ended
//! well, **meta**: the state of the context policy. While a run is under way its state is kept after every step in the
//! session's **checkpoint**. Everything a store has acknowledged survives a crash at any point.
//!
//! Writes are compare-and-swap: a [`Commit`] names the version it was made from, and a store that has moved on answers
//! [`CommitError::Conflict`]. The loser loads again, joins the two states and commits its own messages behind the others.

mod memory;
pub use memory::MemorySessions;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::record::{Message, Record};
use crate::stores::StoreError;

/// Counts the commits of a session; 0 when there is none yet.
pub type Version = u64;

/// Bytes that a context policy keeps with a session, by name. The runner carries them and does not look inside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Meta(pub BTreeMap<String, Vec<u8>>);

/// The messages of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The run that wrote them.
    pub run: String,
    /// What it added, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The state at its end; `None` when it did not end well, or something else wrote the segment.
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
    /// The run; its segment is begun with its first commit.
    pub run: &'a str,
    /// Messages to append.
    pub messages: &'a [Arc<Message>],
    /// The state after them; `None` leaves the last one.
    pub meta: Option<&'a Meta>,
    /// The run is over: the state goes into its segment, and the checkpoint goes.
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
