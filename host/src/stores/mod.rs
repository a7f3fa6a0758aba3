//! Where reduced content and whole transcripts are kept, should they outlast the record.
//!
//! None of it is needed to bring content back within a session: the record has it. A store matters once stored outputs
//! are trimmed from the record, or when another process asks. A store that fails never blocks a turn: it is counted
//! and said.

mod archive;
mod atomic;
mod file;
mod memory;
mod names;
#[cfg(feature = "object-store")]
mod object;
mod scoped;
mod stored;
mod upkeep;

pub use archive::{FileArchive, read_archived};
pub use atomic::{Staged, stage, write_atomically};
pub use file::FileStore;
pub use memory::MemoryStore;
#[cfg(feature = "object-store")]
pub use object::ObjectStore;
pub use scoped::ScopedStore;
pub use stored::Stored;
pub use upkeep::{Collected, Verified};

pub(crate) use atomic::{about, open_plain, open_private, private_folder, sync_folder};
pub(crate) use file::blocking;
pub(crate) use names::strict_name;

use std::fmt;

use async_trait::async_trait;
use foreshorten_core::digest::Digest;

use crate::record::Record;

/// Why a store did not do what it was asked.
#[derive(Debug)]
pub struct StoreError {
    what: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl StoreError {
    /// An error in words.
    #[must_use]
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), source: None }
    }

    /// An error with its cause.
    #[must_use]
    pub fn caused(what: impl Into<String>, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { what: what.into(), source: Some(source.into()) }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(f, "{}: {source}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| &**source as _)
    }
}

impl From<std::io::Error> for StoreError {
    fn from(error: std::io::Error) -> Self {
        Self::caused("the store cannot be read or written", error)
    }
}

/// Keeps the content of entries under its digest. Shared between sessions: equal content is kept once.
///
/// What comes back under a digest must have that digest; callers check it again.
///
/// ```
/// use foreshorten::core::digest::Digest;
/// use foreshorten::stores::{ResultStore, StoreError, Stored};
///
/// /// Keeps nothing: whatever is reduced is recalled from the record.
/// struct Nowhere;
///
/// #[async_trait::async_trait]
/// impl ResultStore for Nowhere {
///     async fn put(&self, _digest: &Digest, _content: &Stored) -> Result<(), StoreError> {
///         Err(StoreError::new("this store keeps nothing"))
///     }
///
///     async fn get(&self, _digest: &Digest) -> Result<Option<Stored>, StoreError> {
///         Ok(None)
///     }
/// }
/// ```
#[async_trait]
pub trait ResultStore: Send + Sync {
    /// Keeps content. Content that is already there is left as it is.
    ///
    /// # Errors
    /// When it cannot be kept; nothing half-written is then found under the digest.
    async fn put(&self, digest: &Digest, content: &Stored) -> Result<(), StoreError>;

    /// The content under a digest, if there is any.
    ///
    /// # Errors
    /// When it cannot be looked for.
    async fn get(&self, digest: &Digest) -> Result<Option<Stored>, StoreError>;
}

/// Where a saved thing lies, for people and for tools that read files: a path, a URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct ArchiveRef(pub String);

/// What is saved, and for whom.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ArchiveContext<'a> {
    /// The session.
    pub session: &'a str,
    /// The run within it.
    pub run: &'a str,
}

impl<'a> ArchiveContext<'a> {
    /// The run of a session.
    #[must_use]
    pub const fn new(session: &'a str, run: &'a str) -> Self {
        Self { session, run }
    }
}

/// Keeps whole transcripts and tool results where people find them (the earlier proposal's archive).
///
/// ```
/// use foreshorten::record::Record;
/// use foreshorten::stores::{ArchiveContext, ArchiveRef, CompactionArchive, StoreError, Stored};
///
/// /// Prints where a file would be.
/// struct Prints;
///
/// #[async_trait::async_trait]
/// impl CompactionArchive for Prints {
///     async fn save_transcript(
///         &self, record: &Record, context: ArchiveContext<'_>, reason: &str,
///     ) -> Result<ArchiveRef, StoreError> {
///         println!("{}: {} messages, because of {reason}", context.session, record.messages().len());
///         Ok(ArchiveRef(format!("stdout:{}", context.run)))
///     }
///
///     async fn save_tool_result(
///         &self, output: &Stored, call_id: &str, _: ArchiveContext<'_>,
///     ) -> Result<ArchiveRef, StoreError> {
///         println!("{call_id}: {} bytes", output.text().len());
///         Ok(ArchiveRef(format!("stdout:{call_id}")))
///     }
/// }
/// ```
#[async_trait]
pub trait CompactionArchive: Send + Sync {
    /// Keeps the transcript as it stands; `reason` says what made it worth keeping.
    ///
    /// # Errors
    /// When it cannot be kept.
    async fn save_transcript(
        &self,
        record: &Record,
        context: ArchiveContext<'_>,
        reason: &str,
    ) -> Result<ArchiveRef, StoreError>;

    /// Keeps the output of one call.
    ///
    /// # Errors
    /// When it cannot be kept.
    async fn save_tool_result(
        &self,
        output: &Stored,
        call_id: &str,
        context: ArchiveContext<'_>,
    ) -> Result<ArchiveRef, StoreError>;
}
