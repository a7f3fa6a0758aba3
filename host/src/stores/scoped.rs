//! A store that one session reads: only what is its own.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use foreshorten_core::CompactionState;
use foreshorten_core::digest::Digest;
use foreshorten_core::marker;
use foreshorten_core::transcript::{EntryKind, Transcript, text_of};

use super::{ResultStore, StoreError, Stored};

/// A view of a shared store, confined to what one session's own state and record name.
///
/// Content is kept once for all sessions, so whoever knows a digest could ask for what another session's tools
/// printed. Through this they cannot: what is not named here is not found. What is put through it is named from then
/// on.
///
/// ```
/// use std::sync::Arc;
/// use foreshorten::core::digest::Digest;
/// use foreshorten::stores::{MemoryStore, ResultStore, ScopedStore, Stored};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let shared = Arc::new(MemoryStore::default());
/// let theirs = Stored::whole(b"secret".to_vec());
/// let digest = Digest::of(b"secret");
/// shared.put(&digest, &theirs).await?;
/// let mine = ScopedStore::new(shared);
/// assert_eq!(mine.get(&digest).await?, None);
/// # Ok::<(), foreshorten::stores::StoreError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ScopedStore<S: ?Sized> {
    named: RwLock<HashSet<Digest>>,
    store: Arc<S>,
}

impl<S: ResultStore + ?Sized> ScopedStore<S> {
    /// A store in which nothing is named yet.
    #[must_use]
    pub fn new(store: Arc<S>) -> Self {
        Self { named: RwLock::default(), store }
    }

    /// The same store with one more digest named.
    #[must_use]
    pub fn naming(self, digest: Digest) -> Self {
        self.add([digest]);
        self
    }

    /// Names what the decisions of a session stand for.
    pub fn name_state(&self, state: &CompactionState) {
        self.add(state.records().iter().filter_map(|record| record.action.digest()));
    }

    /// Names the content of a session's record: of its calls, results and messages, and what its trimmed results say
    /// they were. Reads all of the record.
    pub fn name_record(&self, record: &dyn Transcript) {
        self.add((0..record.len()).map(|index| Digest::of_entry(record, index)));
        self.add(trimmed_digests(record));
    }

    fn add(&self, digests: impl IntoIterator<Item = Digest>) {
        self.named.write().unwrap_or_else(PoisonError::into_inner).extend(digests);
    }
}

/// The digests that the trimmed results of a record name. A digest is made of content: who can name one has seen it,
/// or its content.
pub(crate) fn trimmed_digests(record: &dyn Transcript) -> impl Iterator<Item = Digest> + '_ {
    (0..record.len())
        .filter(|&index| record.entry(index).kind == EntryKind::ToolResult)
        .filter_map(|index| marker::trimmed(&text_of(record, index)).map(|trimmed| trimmed.digest))
}

#[async_trait]
impl<S: ResultStore + ?Sized> ResultStore for ScopedStore<S> {
    async fn put(&self, digest: &Digest, content: &Stored) -> Result<(), StoreError> {
        self.store.put(digest, content).await?;
        self.add([*digest]);
        Ok(())
    }

    async fn get(&self, digest: &Digest) -> Result<Option<Stored>, StoreError> {
        if !self.named.read().unwrap_or_else(PoisonError::into_inner).contains(digest) {
            return Ok(None);
        }
        self.store.get(digest).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Message, Record};
    use crate::stores::MemoryStore;

    #[tokio::test]
    async fn a_session_reads_what_it_names_and_what_it_put() {
        let shared = Arc::new(MemoryStore::default());
        for text in ["mine", "theirs"] {
            shared.put(&Digest::of(text.as_bytes()), &Stored::whole(text.into())).await.unwrap();
        }
        let record: Record = [Message::result("c", "mine")].into_iter().collect();
        let scoped = ScopedStore::new(Arc::clone(&shared) as Arc<dyn ResultStore>);
        scoped.name_record(&record);
        assert!(scoped.get(&Digest::of(b"mine")).await.unwrap().is_some());
        assert!(scoped.get(&Digest::of(b"theirs")).await.unwrap().is_none());
        let later = Digest::of(b"later");
        scoped.put(&later, &Stored::whole(b"later".to_vec())).await.unwrap();
        assert!(scoped.get(&later).await.unwrap().is_some());
    }
}
