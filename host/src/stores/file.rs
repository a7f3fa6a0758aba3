//! Reduced content as files: one per digest.

use std::fs::{self, File, FileTimes};
use std::io::{self, Read as _, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use foreshorten_core::{digest::Digest, transcript::Transcript};
use lru::LruCache;

use super::atomic::{about, folder_lock, open_plain, private_folder, sync_folder};
use super::{ResultStore, StoreError, Stored};

/// A folder of content, one file per digest: `ab/abcdef…`.
///
/// Files are written beside their place and renamed into it, mode 0600 in folders of mode 0700. File names are
/// digests made here, never names from outside. A file whose content does not match its name is not found, and is
/// written anew by the next `put`. The files hold what the tools printed, unredacted. Beside the content of an entry
/// that is more than one text lies `abcdef….parts`, which says where its parts are.
///
/// **Durability.** New content is on the disk, with its name, before `put` returns: one sync for each file and one for
/// its folder. Content that is already there costs no sync. [`without_sync`](Self::without_sync) leaves the writing to
/// the system; after a power cut what was put last may then be missing, never wrong.
///
/// **Age.** Every use, `put` of what is there as well as `get`, sets the time of the file, so that
/// [`gc`](Self::gc) can tell what nobody wants any more. Nothing is removed without being asked.
///
/// Any number of processes may share a folder.
///
/// ```
/// use foreshorten::core::digest::Digest;
/// use foreshorten::stores::FileStore;
///
/// let folder = tempfile::tempdir()?;
/// let store = FileStore::open(folder.path())?;
/// let digest = Digest::of(b"what the tool printed");
/// store.put(&digest, b"what the tool printed")?;
/// assert_eq!(store.get(&digest)?.as_deref(), Some(&b"what the tool printed"[..]));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FileStore {
    root: PathBuf,
    sync: bool,
    known: Arc<Mutex<LruCache<Digest, Facts>>>,
}

/// What a file looked like when its content was last found to be right. As long as it looks so, it is not read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts {
    length: u64,
    modified: SystemTime,
}

/// Files whose looks are remembered: some 100 bytes each.
const KNOWN: NonZeroUsize = NonZeroUsize::MIN.saturating_add(8_191);

/// Beginning of the names of files that are being written.
pub(super) const UNFINISHED: &str = ".put-";

impl FileStore {
    /// Opens the store at `root`, making the folder when it is not there.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn open(root: &Path) -> io::Result<Self> {
        private_folder(root).map_err(about(root))?;
        Ok(Self { root: root.into(), sync: true, known: Arc::new(Mutex::new(LruCache::new(KNOWN))) })
    }

    /// The same store, which does not wait until content is on the disk. Enough where the record is kept whole.
    #[must_use]
    pub fn without_sync(mut self) -> Self {
        self.sync = false;
        self
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn path(&self, digest: &Digest) -> PathBuf {
        let name = digest.to_string();
        self.root.join(&name[..2]).join(name)
    }

    /// Keeps `content` under its digest. Content that is already there is left as it is.
    ///
    /// # Errors
    /// When it cannot be written, or does not have that digest; nothing half-written is left under the digest.
    pub fn put(&self, digest: &Digest, content: &[u8]) -> io::Result<()> {
        self.keep(digest, content, "")
    }

    /// Keeps the content of an entry under its digest, and how it is made of parts.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_entry(&self, digest: &Digest, transcript: &dyn Transcript, entry: usize) -> io::Result<()> {
        let stored = Stored::of(transcript, entry);
        self.keep(digest, stored.content(), &stored.shape())
    }

    fn keep(&self, digest: &Digest, content: &[u8], shape: &str) -> io::Result<()> {
        if Digest::of(content) != *digest {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("the content is not that of {digest}")));
        }
        let path = self.path(digest);
        let folder = path.parent().unwrap_or(&self.root);
        // While this is held nothing that is found here can be removed as old.
        let _shared = self.lock_shared()?;
        let new_folder = match fs::symlink_metadata(folder) {
            Ok(facts) if facts.is_dir() => false,
            Ok(_) => return Err(about(folder)(io::Error::other("it is not a folder"))),
            Err(_) => true,
        };
        private_folder(folder).map_err(about(folder))?;
        let mut written = false;
        // The parts first: content that is found has them.
        if !shape.is_empty() {
            let path = path.with_extension("parts");
            if let Some(file) = open_plain(&path).map_err(about(&path))?
                && equals(&file, shape.as_bytes()).map_err(about(&path))?
            {
                touched(&file).map_err(about(&path))?;
            } else {
                self.write(folder, &path, shape.as_bytes())?;
                written = true;
            }
        }
        if !self.is_there(digest, &path, content)? {
            let facts = self.write(folder, &path, content)?;
            self.remember(digest, facts);
            written = true;
        }
        if written && self.sync {
            sync_folder(folder).map_err(about(folder))?;
            if new_folder {
                sync_folder(&self.root).map_err(about(&self.root))?;
            }
        }
        Ok(())
    }

    /// Whether the file holds the content: it looks as it did when it was last right, or is read and compared.
    fn is_there(&self, digest: &Digest, path: &Path, content: &[u8]) -> io::Result<bool> {
        let Some(file) = open_plain(path).map_err(about(path))? else { return Ok(false) };
        let seen = facts(&file)?;
        if seen.length != content.len() as u64 {
            return Ok(false);
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(digest).copied();
        if known != Some(seen) && !equals(&file, content).map_err(about(path))? {
            return Ok(false);
        }
        let facts = touched(&file)?;
        self.remember(digest, facts);
        Ok(true)
    }

    fn write(&self, folder: &Path, path: &Path, content: &[u8]) -> io::Result<Facts> {
        let write = || {
            let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
            file.write_all(content)?;
            if self.sync {
                file.as_file().sync_all()?;
            }
            let file = file.persist(path).map_err(|error| error.error)?;
            facts(&file)
        };
        write().map_err(about(path))
    }

    fn remember(&self, digest: &Digest, facts: Facts) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).put(*digest, facts);
    }

    fn lock_shared(&self) -> io::Result<Option<File>> {
        let lock = folder_lock(&self.root)?;
        match lock.lock_shared() {
            Ok(()) => Ok(Some(lock)),
            // A file system without locks: `gc` fails there, so nothing is removed.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
            Err(error) => Err(about(&self.root)(error)),
        }
    }

    /// The content of an entry under a digest, verified. Without a note of its parts it is one text.
    ///
    /// # Errors
    /// When a file is there and cannot be read.
    pub fn get_entry(&self, digest: &Digest) -> io::Result<Option<Stored>> {
        let Some(content) = self.get(digest)? else { return Ok(None) };
        let path = self.path(digest).with_extension("parts");
        let mut shape = Vec::new();
        if let Some(file) = open_plain(&path).map_err(about(&path))? {
            file.take(MOST_SHAPE).read_to_end(&mut shape).map_err(about(&path))?;
        }
        Ok(Some(Stored::shaped(content, &String::from_utf8_lossy(&shape))))
    }

    /// The content under a digest, verified.
    ///
    /// # Errors
    /// When a file is there and cannot be read.
    pub fn get(&self, digest: &Digest) -> io::Result<Option<Vec<u8>>> {
        let path = self.path(digest);
        if !fs::symlink_metadata(path.parent().unwrap_or(&self.root)).is_ok_and(|facts| facts.is_dir()) {
            return Ok(None);
        }
        let Some(mut file) = open_plain(&path).map_err(about(&path))? else { return Ok(None) };
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(about(&path))?;
        if Digest::of(&content) != *digest {
            self.known.lock().unwrap_or_else(PoisonError::into_inner).pop(digest);
            return Ok(None);
        }
        // Content that was read is given out, whether or not its time can be set.
        if let Ok(facts) = touched(&file) {
            self.remember(digest, facts);
            touch(&path.with_extension("parts"));
        }
        Ok(Some(content))
    }
}

/// No list of the parts of one entry is longer, in bytes.
const MOST_SHAPE: u64 = 1 << 20;

#[async_trait]
impl ResultStore for FileStore {
    async fn put(&self, digest: &Digest, content: &Stored) -> Result<(), StoreError> {
        let (store, digest, content) = (self.clone(), *digest, content.clone());
        let put = move || store.keep(&digest, content.content(), &content.shape());
        Ok(blocking(put).await??)
    }

    async fn get(&self, digest: &Digest) -> Result<Option<Stored>, StoreError> {
        let (store, digest) = (self.clone(), *digest);
        Ok(blocking(move || store.get_entry(&digest)).await??)
    }
}

/// Runs what waits for a disk where it holds nobody up; outside of a tokio runtime, here.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, StoreError> {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return Ok(work()) };
    let done = runtime.spawn_blocking(work).await;
    done.map_err(|error| StoreError::caused("the work on the store was given up", error))
}

fn facts(file: &File) -> io::Result<Facts> {
    let facts = file.metadata()?;
    Ok(Facts { length: facts.len(), modified: facts.modified()? })
}

/// Sets the time of a file to now, and says how it looks then.
fn touched(file: &File) -> io::Result<Facts> {
    file.set_times(FileTimes::new().set_modified(SystemTime::now()))?;
    facts(file)
}

fn touch(path: &Path) {
    if let Ok(Some(file)) = open_plain(path) {
        let _ = touched(&file);
    }
}

/// Whether a file holds exactly these bytes.
fn equals(mut file: &File, content: &[u8]) -> io::Result<bool> {
    let mut buffer = vec![0; 64 << 10];
    let mut rest = content;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(rest.is_empty());
        }
        match rest.split_at_checked(read) {
            Some((next, after)) if next == &buffer[..read] => rest = after,
            _ => return Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_come_back_exactly_and_a_changed_file_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::open(&folder.path().join("store")).unwrap();
        for content in [&b"a\r\nb\rc"[..], b"", &[0, 159, 146, 150]] {
            let digest = Digest::of(content);
            store.put(&digest, content).unwrap();
            assert_eq!(store.get(&digest).unwrap().as_deref(), Some(content));
        }
        let digest = Digest::of(b"kept");
        store.put(&digest, b"kept").unwrap();
        fs::write(store.path(&digest), b"gone").unwrap();
        assert_eq!(store.get(&digest).unwrap(), None);
        store.put(&digest, b"kept").unwrap();
        assert_eq!(store.get(&digest).unwrap().as_deref(), Some(&b"kept"[..]));
    }

    #[test]
    fn a_file_that_went_bad_is_healed_by_the_next_put_of_any_process() {
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::open(folder.path()).unwrap();
        let digest = Digest::of(b"kept");
        for wrong in [&b"gone"[..], b"", b"longer than before"] {
            for store in [&store, &FileStore::open(folder.path()).unwrap()] {
                store.put(&digest, b"kept").unwrap();
                fs::write(store.path(&digest), wrong).unwrap();
                store.put(&digest, b"kept").unwrap();
                assert_eq!(store.get(&digest).unwrap().as_deref(), Some(&b"kept"[..]), "{wrong:?}");
            }
        }
    }

    #[test]
    fn content_under_the_name_of_other_content_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::open(folder.path()).unwrap();
        let error = store.put(&Digest::of(b"a"), b"b").unwrap_err();
        assert!(error.to_string().contains("is not that of"), "{error}");
        assert_eq!(store.get(&Digest::of(b"a")).unwrap(), None);
    }

    #[test]
    fn the_parts_of_an_entry_come_back_and_a_wrong_note_of_them_is_ignored() {
        use foreshorten_core::transcript::{Entry, OwnedTranscript, Part};
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::open(folder.path()).unwrap();
        let mut record = OwnedTranscript::default();
        let mut entry = Entry::tool_result("c", "a\0b");
        entry.parts.insert(0, Part::Opaque(b"first".to_vec()));
        entry.parts.push(Part::Text("last".into()));
        record.push(entry);
        let digest = Digest::of_entry(&record, 0);
        store.put_entry(&digest, &record, 0).unwrap();
        let stored = store.get_entry(&digest).unwrap().unwrap();
        assert_eq!(stored, Stored::of(&record, 0));
        assert_eq!(stored.part(0), Some((&b"first"[..], false)));
        assert_eq!(stored.part(2), Some((&b"last"[..], true)));
        for wrong in ["", "text 3\n", "text 999999999999999999999\n", "data 5\ntext 2\ntext 5\n"] {
            fs::write(store.path(&digest).with_extension("parts"), wrong).unwrap();
            let stored = store.get_entry(&digest).unwrap().unwrap();
            assert_eq!((stored.parts(), stored.text()), (1, stored.content()), "{wrong:?}");
        }
        store.put_entry(&digest, &record, 0).unwrap();
        assert_eq!(store.get_entry(&digest).unwrap().unwrap().parts(), 3);
    }

    #[tokio::test]
    async fn writers_of_the_same_content_do_not_disturb_one_another() {
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::open(folder.path()).unwrap();
        let content = Stored::whole(vec![b'x'; 200_000]);
        let digest = Digest::of(content.content());
        let puts = (0..8).map(|_| ResultStore::put(&store, &digest, &content));
        for done in futures_util::future::join_all(puts).await {
            done.unwrap();
        }
        assert_eq!(ResultStore::get(&store, &digest).await.unwrap(), Some(content));
        assert_eq!(fs::read_dir(store.path(&digest).parent().unwrap()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn files_are_private_and_links_are_not_followed() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::open(&folder.path().join("store")).unwrap();
        let digest = Digest::of(b"secret");
        store.put(&digest, b"secret").unwrap();
        let path = store.path(&digest);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        let outside = folder.path().join("outside");
        fs::write(&outside, b"secret").unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&outside, &path).unwrap();
        assert_eq!(store.get(&digest).unwrap(), None);
        // A link in the place of content is replaced, what it led to stays.
        store.put(&digest, b"secret").unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        assert_eq!(fs::read(&outside).unwrap(), b"secret");
    }
}
