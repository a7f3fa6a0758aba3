//! Reduced content in object storage.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use foreshorten_core::digest::Digest;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{Error, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, RetryConfig};

use super::{ResultStore, StoreError, Stored};

/// Content in object storage: S3, what speaks its protocol, or any other store of the `object_store` crate. Behind the
/// feature `object-store`.
///
/// The object `{prefix}/ab/abcdef…` is the content and nothing else. Content of more than one text is one object too,
/// `{prefix}/ab/abcdef….parts`: a line with the length of what follows, that many bytes on its parts, then the
/// content. An object is made only where there is none, in one request; one of another length than it should have is
/// written anew. What is read is verified: an object whose content does not match its key is not found.
///
/// Nothing is removed; a life-cycle rule of the bucket can. The content is what the tools printed, unredacted.
///
/// ```
/// use std::sync::Arc;
/// use foreshorten::core::digest::Digest;
/// use foreshorten::stores::{ObjectStore, ResultStore, Stored};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = ObjectStore::new(Arc::new(object_store::memory::InMemory::new()), "results");
/// let content = Stored::whole(b"what the tool printed".to_vec());
/// let digest = Digest::of(content.content());
/// store.put(&digest, &content).await?;
/// assert_eq!(store.get(&digest).await?, Some(content));
/// # Ok::<(), foreshorten::stores::StoreError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ObjectStore {
    store: Arc<dyn object_store::ObjectStore>,
    prefix: Path,
}

/// Objects that are larger are not read, in bytes: tool outputs are not, and what lies there may be anything.
const MOST: u64 = 1 << 30;

impl ObjectStore {
    /// A store of objects whose keys begin with `prefix`, which may be empty. Time-outs and retries are those of
    /// `store`; a recall waits for them. A client of S3 that is built elsewhere needs a TLS provider chosen before
    /// (`rustls::crypto::ring::default_provider().install_default()`), as [`built`](Self::built) does.
    #[must_use]
    pub fn new(store: Arc<dyn object_store::ObjectStore>, prefix: &str) -> Self {
        Self { store, prefix: Path::from(prefix) }
    }

    /// A bucket of S3, or of what speaks its protocol. Credentials, region (`AWS_REGION`) and endpoint (`AWS_ENDPOINT`)
    /// are taken from the environment, as the `object_store` crate has them. A request is tried three times within ten
    /// seconds: a store that is away must not hold up a turn.
    ///
    /// # Errors
    /// When what the environment says makes no client. The bucket is not looked at.
    pub fn s3(bucket: &str, prefix: &str) -> Result<Self, StoreError> {
        let retry = RetryConfig { max_retries: 2, retry_timeout: Duration::from_secs(10), ..RetryConfig::default() };
        let builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
        Self::built(builder, prefix)
    }

    /// As [`s3`](Self::s3), from a builder of the `object_store` crate.
    ///
    /// # Errors
    /// When the builder makes no client.
    pub fn built(builder: AmazonS3Builder, prefix: &str) -> Result<Self, StoreError> {
        // Another part of the process may have chosen before; either will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let store = builder.build().map_err(|error| StoreError::caused("the object store", error))?;
        Ok(Self::new(Arc::new(store), prefix))
    }

    fn key(&self, digest: &Digest, parts: bool) -> Path {
        let name = digest.to_string();
        let folder = name[..2].to_owned();
        self.prefix.clone().join(folder).join(if parts { name + PARTS } else { name })
    }

    async fn create(&self, key: &Path, body: &PutPayload) -> Result<(), Error> {
        let create = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.store.put_opts(key, body.clone(), create).await {
            Ok(_) => return Ok(()),
            // Some servers know no condition: they are asked first.
            Err(Error::AlreadyExists { .. } | Error::NotImplemented { .. } | Error::NotSupported { .. }) => {}
            Err(error) => return Err(error),
        }
        match self.store.head(key).await {
            Ok(there) if there.size == body.content_length() as u64 => return Ok(()),
            Ok(_) | Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        self.store.put(key, body.clone()).await.map(drop)
    }

    async fn read(&self, key: &Path) -> Result<Option<Vec<u8>>, StoreError> {
        let failed = |error| StoreError::caused(format!("object {key}"), error);
        match self.store.get(key).await {
            Ok(found) if found.meta.size > MOST => {
                Err(StoreError::new(format!("object {key}: {} bytes are more than any content has", found.meta.size)))
            }
            Ok(found) => Ok(Some(found.bytes().await.map_err(failed)?.into())),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }
}

const PARTS: &str = ".parts";

#[async_trait]
impl ResultStore for ObjectStore {
    async fn put(&self, digest: &Digest, content: &Stored) -> Result<(), StoreError> {
        if Digest::of(content.content()) != *digest {
            return Err(StoreError::new(format!("the content is not that of {digest}")));
        }
        let shape = content.shape();
        let key = self.key(digest, !shape.is_empty());
        let mut body = Vec::with_capacity(shape.len() + content.content().len() + 24);
        if !shape.is_empty() {
            body.extend_from_slice(format!("{}\n{shape}", shape.len()).as_bytes());
        }
        body.extend_from_slice(content.content());
        let failed = |error| StoreError::caused(format!("object {key}"), error);
        self.create(&key, &PutPayload::from(body)).await.map_err(failed)
    }

    async fn get(&self, digest: &Digest) -> Result<Option<Stored>, StoreError> {
        if let Some(content) = self.read(&self.key(digest, false)).await?
            && Digest::of(&content) == *digest
        {
            return Ok(Some(Stored::whole(content)));
        }
        let Some(mut body) = self.read(&self.key(digest, true)).await? else { return Ok(None) };
        let Some(from) = content_from(&body) else { return Ok(None) };
        let content = body.split_off(from);
        if Digest::of(&content) != *digest {
            return Ok(None);
        }
        let line = body.iter().position(|&byte| byte == b'\n').map_or(0, |feed| feed + 1);
        Ok(Some(Stored::shaped(content, &String::from_utf8_lossy(&body[line..]))))
    }
}

/// Where the content begins in an object with a note of its parts.
fn content_from(body: &[u8]) -> Option<usize> {
    let feed = body.iter().take(20).position(|&byte| byte == b'\n')?;
    let length: usize = std::str::from_utf8(&body[..feed]).ok()?.parse().ok()?;
    (feed + 1).checked_add(length).filter(|&from| from <= body.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreshorten_core::transcript::{Entry, OwnedTranscript, Part};
    use object_store::memory::InMemory;

    #[tokio::test]
    async fn text_is_an_object_as_it_is_and_parts_come_back_as_parts() {
        let inner = Arc::new(InMemory::new());
        let store = ObjectStore::new(Arc::clone(&inner) as _, "a/b");
        let entry = Entry::tool_result("c", "seen").with(Part::Image("image/png".into(), b"\n1\n".to_vec()));
        let record = OwnedTranscript::from(vec![Entry::tool_result("c", "a\r\nb"), entry]);
        for index in 0..2 {
            let (digest, content) = (Digest::of_entry(&record, index), Stored::of(&record, index));
            store.put(&digest, &content).await.unwrap();
            store.put(&digest, &content).await.unwrap();
            assert_eq!(store.get(&digest).await.unwrap(), Some(content));
        }
        let digest = Digest::of(b"a\r\nb").to_string();
        let key = Path::from(format!("a/b/{}/{digest}", &digest[..2]));
        assert_eq!(inner.get(&key).await.unwrap().bytes().await.unwrap(), "a\r\nb");
    }

    #[tokio::test]
    async fn a_wrong_object_is_not_found_and_one_of_another_length_is_written_anew() {
        let inner = Arc::new(InMemory::new());
        let store = ObjectStore::new(Arc::clone(&inner) as _, "");
        let (digest, content) = (Digest::of(b"kept"), Stored::whole(b"kept".to_vec()));
        for wrong in [&b""[..], b"gon", b"99999999999999999999\nx"] {
            for parts in [false, true] {
                inner.put(&store.key(&digest, parts), wrong.to_vec().into()).await.unwrap();
                assert_eq!(store.get(&digest).await.unwrap(), None);
            }
            store.put(&digest, &content).await.unwrap();
            assert_eq!(store.get(&digest).await.unwrap().as_ref(), Some(&content));
        }
        assert!(store.put(&Digest::of(b"x"), &content).await.is_err());
    }
}
