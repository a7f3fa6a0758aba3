//! Reduced content in memory, bounded.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use foreshorten_core::digest::Digest;
use lru::LruCache;

use super::{ResultStore, StoreError, Stored};

/// Content in memory; what was used least recently goes first.
///
/// Bounded twice: by the number of contents and by their bytes. The defaults are 1,024 contents, as the seeds have it,
/// and 256 MiB, which a thousand tool outputs cut at their source to 200,000 characters stay below.
///
/// ```
/// use foreshorten::core::digest::Digest;
/// use foreshorten::stores::{MemoryStore, ResultStore, Stored};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = MemoryStore::default();
/// let content = Stored::whole(b"what the tool printed".to_vec());
/// let digest = Digest::of(content.content());
/// store.put(&digest, &content).await?;
/// assert_eq!(store.get(&digest).await?, Some(content));
/// # Ok::<(), foreshorten::stores::StoreError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MemoryStore {
    kept: Mutex<Kept>,
    max_entries: usize,
    max_bytes: u64,
}

#[derive(Debug)]
struct Kept {
    contents: LruCache<Digest, Stored>,
    bytes: u64,
}

impl MemoryStore {
    /// Default of the number of contents.
    pub const MAX_ENTRIES: usize = 1_024;
    /// Default of their bytes in all.
    pub const MAX_BYTES: u64 = 256 << 20;

    /// A store of at most so many contents (0: none) of so many bytes in all.
    #[must_use]
    pub fn new(max_entries: usize, max_bytes: u64) -> Self {
        let kept = Kept { contents: LruCache::unbounded(), bytes: 0 };
        Self { kept: Mutex::new(kept), max_entries, max_bytes }
    }

    /// Number of contents, and their bytes.
    #[must_use]
    pub fn size(&self) -> (usize, u64) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        (kept.contents.len(), kept.bytes)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new(Self::MAX_ENTRIES, Self::MAX_BYTES)
    }
}

#[async_trait]
impl ResultStore for MemoryStore {
    /// Content that is larger than the whole store is an error: it would not be found again.
    async fn put(&self, digest: &Digest, content: &Stored) -> Result<(), StoreError> {
        if Digest::of(content.content()) != *digest {
            return Err(StoreError::new(format!("the content is not that of {digest}")));
        }
        let bytes = content.content().len() as u64;
        if bytes > self.max_bytes || self.max_entries == 0 {
            return Err(StoreError::new(format!("{bytes} bytes do not fit into the memory store")));
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.contents.get(digest).is_some() {
            return Ok(());
        }
        while kept.contents.len() >= self.max_entries || kept.bytes + bytes > self.max_bytes {
            let Some((_, oldest)) = kept.contents.pop_lru() else { break };
            kept.bytes -= oldest.content().len() as u64;
        }
        kept.bytes += bytes;
        kept.contents.put(*digest, content.clone());
        Ok(())
    }

    async fn get(&self, digest: &Digest) -> Result<Option<Stored>, StoreError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(kept.contents.get(digest).cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> (Digest, Stored) {
        (Digest::of(text.as_bytes()), Stored::whole(text.into()))
    }

    async fn put(store: &MemoryStore, text: &str) -> Result<(), StoreError> {
        let (digest, content) = content(text);
        store.put(&digest, &content).await
    }

    async fn has(store: &MemoryStore, text: &str) -> bool {
        store.get(&content(text).0).await.unwrap().is_some()
    }

    #[tokio::test]
    async fn what_was_used_least_recently_goes_first() {
        let store = MemoryStore::new(2, 100);
        put(&store, "a").await.unwrap();
        put(&store, "b").await.unwrap();
        assert!(has(&store, "a").await);
        put(&store, "c").await.unwrap();
        assert!(has(&store, "a").await && has(&store, "c").await && !has(&store, "b").await);
        put(&store, "a").await.unwrap();
        put(&store, "d").await.unwrap();
        assert!(has(&store, "a").await && !has(&store, "c").await);
        assert_eq!(store.size(), (2, 2));
    }

    #[tokio::test]
    async fn bytes_are_bounded_and_what_never_fits_is_said() {
        let store = MemoryStore::new(100, 10);
        put(&store, "12345").await.unwrap();
        put(&store, "67890").await.unwrap();
        put(&store, "abcdef").await.unwrap();
        assert_eq!(store.size(), (1, 6));
        assert!(put(&store, "01234567890").await.is_err());
        assert!(put(&MemoryStore::new(0, 10), "a").await.is_err());
        assert!(has(&store, "abcdef").await);
    }

    #[tokio::test]
    async fn content_under_the_name_of_other_content_is_refused() {
        let store = MemoryStore::default();
        assert!(store.put(&Digest::of(b"a"), &Stored::whole(b"b".to_vec())).await.is_err());
    }
}
