//! A private folder of compiled plugins.
//!
//! Compiled code is machine code: who can change a file here runs whatever they like in this process. So the folder and the
//! files in it must be the user's own and closed to everybody else, links are not followed, and every file is sealed
//! ([`sealed`](super::sealed)) with a secret that was made for this folder. All of that is looked at each time, on the file
//! that was opened. Whatever is in doubt means that the plugin is compiled again.

#![cfg_attr(not(feature = "wasm"), allow(dead_code, reason = "without an engine there is no code to keep"))]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use super::sealed::{Key, Secret, open, seal};
use crate::stores::{open_plain, private_folder};

/// The file with the secret.
const SECRET: &str = "key";
/// Ending of the files with code.
const CODE: &str = "code";
/// What a file that is being written is called at first.
const UNFINISHED: &str = ".write-";
/// A file that is still being written after this long never will be finished.
const ABANDONED: Duration = Duration::from_secs(60 * 60);

/// How the plugins of one loader came to be machine code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loads {
    /// Compiled here.
    pub compiled: u64,
    /// Taken from the cache.
    pub from_cache: u64,
}

/// Why a folder is not used as a cache.
#[derive(Debug)]
#[non_exhaustive]
pub enum CacheError {
    /// It cannot be made or read.
    Io(PathBuf, io::Error),
    /// It is not private: the file or folder, what is wrong with it, and how to mend it.
    Open(PathBuf, &'static str, String),
}

impl std::fmt::Display for CacheError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (path, what) = match self {
            Self::Io(path, error) => (path, error.to_string()),
            Self::Open(path, wrong, mend) => (path, format!("{wrong}; {mend}")),
        };
        write!(f, "{}: {what} (plugins are compiled each time they are loaded)", path.display())
    }
}

impl std::error::Error for CacheError {}

/// A folder of compiled plugins. Any number of processes may use one at once.
///
/// It is an optimisation and never a reason to fail: a folder that cannot be used, or is not private, is said once
/// (`tracing`, level warn) and done without.
#[derive(Debug)]
pub struct CodeCache {
    folder: PathBuf,
    most_bytes: u64,
    said: AtomicBool,
}

impl CodeCache {
    /// Bytes that its files may take together unless told otherwise, 256 MiB: room for thousands of plugins in Rust, or for
    /// seven that bring a Python along.
    pub const MOST_BYTES: u64 = 256 << 20;

    /// The cache in `folder`, which is made, with mode 0700, when something is first kept. Nothing is touched yet.
    ///
    /// ```
    /// use foreshorten::plugin::CodeCache;
    /// let cache = CodeCache::at("/home/me/.cache/my-agent/plugins").most_bytes(64 << 20);
    /// ```
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), most_bytes: Self::MOST_BYTES, said: AtomicBool::new(false) }
    }

    /// Bytes that its files may take together; those used longest ago go first. Default [`MOST_BYTES`](Self::MOST_BYTES).
    #[must_use]
    pub const fn most_bytes(mut self, bytes: u64) -> Self {
        self.most_bytes = bytes;
        self
    }

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the folder and its secret if there are none, and looks whether they are private.
    ///
    /// # Errors
    /// Why the cache will not be used, with what to do about it.
    pub fn prepare(&self) -> Result<(), CacheError> {
        self.secret().map(drop)
    }

    /// The content kept under a key, if it is there and beyond doubt.
    pub(super) fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let secret = self.or_say(self.secret())?;
        let path = self.path(key);
        let (file, bytes) = match read_private(&path, self.most_bytes) {
            Ok(found) => found?,
            Err(error) => return self.or_say(Err(error)),
        };
        match open(&secret, key, &bytes) {
            Ok(content) => {
                // When it was used last, for who must make room. That it cannot be said costs nothing but order.
                let _ = file.set_modified(SystemTime::now());
                Some(content.to_vec())
            }
            Err(doubt) => {
                tracing::debug!(target: "foreshorten::plugin", file = %path.display(), %doubt, "compiled again");
                None
            }
        }
    }

    /// Keeps content under a key, in place of what was there.
    pub(super) fn put(&self, key: &Key, content: &[u8]) {
        if content.len() as u64 > self.most_bytes {
            return;
        }
        let Some(secret) = self.or_say(self.secret()) else { return };
        let path = self.path(key);
        let kept =
            self.write(&seal(&secret, key, content)).and_then(|file| file.persist(&path).map_err(io::Error::from));
        match kept {
            Ok(_) => self.make_room(&path),
            Err(error) => drop(self.or_say::<()>(Err(CacheError::Io(path, error)))),
        }
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(format!("{key}.{CODE}"))
    }

    /// A file of its own in the folder, on the disk before it gets its name.
    fn write(&self, content: &[u8]) -> io::Result<tempfile::NamedTempFile> {
        // Mode 0600 is what this crate gives its files.
        let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.folder)?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        Ok(file)
    }

    /// The folder's secret, made at first use.
    fn secret(&self) -> Result<Secret, CacheError> {
        let io = |error| CacheError::Io(self.folder.clone(), error);
        private_folder(&self.folder).map_err(io)?;
        // The folder itself, not what a link of its name leads to.
        let facts = fs::symlink_metadata(&self.folder).map_err(io)?;
        if !facts.is_dir() {
            return Err(CacheError::Open(
                self.folder.clone(),
                "it is no folder",
                "name another, or move it away".into(),
            ));
        }
        is_private(&self.folder, &facts, 0o700)?;
        let path = self.folder.join(SECRET);
        let named = |error| CacheError::Io(path.clone(), error);
        // Another process may make it at the same time: whose is there first counts for both.
        for _ in 0..3 {
            let found = read_private(&path, 32)?;
            match found.map(|(_, bytes)| <[u8; 32]>::try_from(bytes)) {
                Some(Ok(secret)) => return Ok(Secret(secret)),
                // Cut off in a crash; what was sealed with it is made again.
                Some(Err(_)) => fs::remove_file(&path).map_err(named)?,
                None => {}
            }
            let mut secret = [0; 32];
            getrandom::fill(&mut secret).map_err(|error| named(io::Error::other(error.to_string())))?;
            match self.write(&secret).map_err(named)?.persist_noclobber(&path) {
                Ok(_) => return Ok(Secret(secret)),
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(named(error.error)),
            }
        }
        Err(named(io::Error::other(
            "something that is no plain file stands there, or it changes all the time; remove it",
        )))
    }

    /// Removes what was used longest ago until the rest fits, and what others began and left.
    fn make_room(&self, newest: &Path) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in entries.flatten() {
            let (path, Ok(facts)) = (entry.path(), entry.metadata()) else { continue };
            let used = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if path.extension() == Some(OsStr::new(CODE)) && facts.is_file() {
                files.push((used, facts.len(), path));
            } else if entry.file_name().to_string_lossy().starts_with(UNFINISHED)
                && used.elapsed().is_ok_and(|age| age > ABANDONED)
            {
                let _ = fs::remove_file(path);
            }
        }
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        files.sort();
        for (_, bytes, path) in files.iter().filter(|(_, _, path)| path != newest) {
            if total <= self.most_bytes {
                break;
            }
            // What is open in another process stays readable there.
            if fs::remove_file(path).is_ok() {
                total -= bytes;
            }
        }
    }

    /// What went well; what did not is said, once for each cache.
    fn or_say<T>(&self, result: Result<T, CacheError>) -> Option<T> {
        result
            .inspect_err(|error| {
                if !self.said.swap(true, Ordering::Relaxed) {
                    tracing::warn!(target: "foreshorten::plugin", "the cache of compiled plugins is not used: {error}");
                }
            })
            .ok()
    }
}

/// A file and its bytes, when it is there, is no link, and is the user's alone. Longer ones are cut, and then not opened.
fn read_private(path: &Path, most: u64) -> Result<Option<(File, Vec<u8>)>, CacheError> {
    let io = |error| CacheError::Io(path.to_owned(), error);
    let Some(file) = open_plain(path).map_err(io)? else { return Ok(None) };
    // Of the file that is open now, whatever happens to its name.
    is_private(path, &file.metadata().map_err(io)?, 0o600)?;
    let mut bytes = Vec::new();
    (&file).take(most.saturating_add(1 << 10)).read_to_end(&mut bytes).map_err(io)?;
    Ok(Some((file, bytes)))
}

#[cfg(unix)]
fn is_private(path: &Path, facts: &fs::Metadata, mode: u32) -> Result<(), CacheError> {
    use std::os::unix::fs::MetadataExt as _;
    let open = |wrong, mend| Err(CacheError::Open(path.to_owned(), wrong, mend));
    let Some(user) = user() else {
        let why = "it cannot be told whether it is yours, as no file can be made in the folder for temporary files";
        return open(why, "set TMPDIR to a folder you can write".into());
    };
    if facts.uid() != user {
        return open("it belongs to another user", format!("remove {}, or name another folder", path.display()));
    }
    if facts.mode() & 0o077 != 0 {
        return open("others can read or write it", format!("chmod {mode:o} {}", path.display()));
    }
    if facts.is_file() && facts.nlink() > 1 {
        return open("it has a second name elsewhere", format!("remove {}", path.display()));
    }
    Ok(())
}

/// Elsewhere the folder lies in the user's own profile, whose rights it inherits.
#[cfg(not(unix))]
fn is_private(_: &Path, _: &fs::Metadata, _: u32) -> Result<(), CacheError> {
    Ok(())
}

/// Who this process is to the file system: the owner of the files it makes.
#[cfg(unix)]
fn user() -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    static USER: std::sync::OnceLock<Option<u32>> = std::sync::OnceLock::new();
    *USER.get_or_init(|| Some(tempfile::tempfile().ok()?.metadata().ok()?.uid()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_files(cache: &CodeCache) -> Vec<PathBuf> {
        let all = fs::read_dir(cache.folder()).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|path| path.extension() == Some(OsStr::new(CODE))).collect()
    }

    #[test]
    fn what_was_kept_is_found_by_its_key_and_survives_the_cache_it_was_kept_in() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a/b");
        let cache = CodeCache::at(&folder);
        assert_eq!(cache.get(&Key([1; 32])), None);
        cache.put(&Key([1; 32]), b"code");
        assert_eq!(CodeCache::at(&folder).get(&Key([1; 32])).as_deref(), Some(&b"code"[..]));
        assert_eq!(cache.get(&Key([2; 32])), None);
        cache.put(&Key([1; 32]), b"other");
        assert_eq!(cache.get(&Key([1; 32])).as_deref(), Some(&b"other"[..]));
        assert_eq!(code_files(&cache).len(), 1);
    }

    #[test]
    fn a_file_with_any_byte_changed_or_missing_is_as_none_and_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let cache = CodeCache::at(home.path().join("c"));
        let key = Key([1; 32]);
        cache.put(&key, b"code");
        let whole = fs::read(cache.path(&key)).unwrap();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] = !changed[at];
            for bytes in [&changed[..], &whole[..at]] {
                fs::write(cache.path(&key), bytes).unwrap();
                assert_eq!(cache.get(&key), None, "byte {at}");
            }
        }
        cache.put(&key, b"code");
        assert_eq!(fs::read(cache.path(&key)).unwrap(), whole);
        assert!(cache.get(&key).is_some());
    }

    #[test]
    fn what_was_used_longest_ago_gives_way() {
        let home = tempfile::tempdir().unwrap();
        let cache = CodeCache::at(home.path().join("c")).most_bytes(3_500);
        let long_ago = SystemTime::now() - Duration::from_secs(1_000);
        for number in 0..3 {
            cache.put(&Key([number; 32]), &[number; 1_000]);
            let used = long_ago + Duration::from_secs(number.into());
            File::open(cache.path(&Key([number; 32]))).unwrap().set_modified(used).unwrap();
        }
        assert!(cache.get(&Key([0; 32])).is_some());
        let abandoned = cache.folder().join(".write-x");
        fs::write(&abandoned, b"").unwrap();
        File::open(&abandoned).unwrap().set_modified(SystemTime::now() - ABANDONED * 2).unwrap();
        cache.put(&Key([9; 32]), &[9; 1_000]);
        let there: Vec<u8> = [0, 1, 2, 9].into_iter().filter(|&at| cache.get(&Key([at; 32])).is_some()).collect();
        assert_eq!(there, [0, 2, 9], "1 was used longest ago");
        assert!(!abandoned.exists());
        cache.put(&Key([7; 32]), &[7; 4_000]);
        assert_eq!(code_files(&cache).len(), 3, "one that is larger than all of it is not kept");
    }

    #[test]
    fn a_secret_that_is_no_secret_is_made_again() {
        let home = tempfile::tempdir().unwrap();
        let cache = CodeCache::at(home.path().join("c"));
        cache.put(&Key([1; 32]), b"code");
        fs::write(cache.folder().join(SECRET), b"short").unwrap();
        assert_eq!(cache.get(&Key([1; 32])), None);
        cache.put(&Key([1; 32]), b"code");
        assert!(cache.get(&Key([1; 32])).is_some());
        // Another's, of the right length: nothing that was sealed before is opened.
        fs::write(cache.folder().join(SECRET), [5; 32]).unwrap();
        assert_eq!(cache.get(&Key([1; 32])), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_or_file_that_others_can_reach_is_not_used_and_said_how_to_mend() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("c");
        let cache = CodeCache::at(&folder);
        cache.put(&Key([1; 32]), b"code");
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        for wrong in [0o770, 0o707, 0o755] {
            mode(&folder, wrong);
            let error = cache.prepare().unwrap_err().to_string();
            assert!(error.contains("chmod 700"), "{error}");
            assert_eq!(cache.get(&Key([1; 32])), None);
            cache.put(&Key([2; 32]), b"code");
        }
        mode(&folder, 0o700);
        assert_eq!(code_files(&cache).len(), 1);
        let file = cache.path(&Key([1; 32]));
        mode(&file, 0o620);
        assert_eq!(cache.get(&Key([1; 32])), None);
        mode(&file, 0o600);
        assert!(cache.get(&Key([1; 32])).is_some());
        mode(&folder.join(SECRET), 0o644);
        assert!(cache.prepare().unwrap_err().to_string().contains("chmod 600"));
        mode(&folder.join(SECRET), 0o600);
        // A link is not followed, be it to a file or to the folder; a second name is one too many.
        let aside = home.path().join("aside");
        fs::rename(&file, &aside).unwrap();
        symlink(&aside, &file).unwrap();
        assert_eq!(cache.get(&Key([1; 32])), None);
        fs::remove_file(&file).unwrap();
        fs::hard_link(&aside, &file).unwrap();
        assert_eq!(cache.get(&Key([1; 32])), None);
        symlink(&folder, home.path().join("link")).unwrap();
        let error = CodeCache::at(home.path().join("link")).prepare().unwrap_err().to_string();
        assert!(error.contains("no folder"), "{error}");
    }

    #[test]
    fn where_nothing_can_be_written_there_is_no_cache_and_no_failure() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("file"), b"").unwrap();
        let cache = CodeCache::at(home.path().join("file/below"));
        cache.put(&Key([1; 32]), b"code");
        assert_eq!(cache.get(&Key([1; 32])), None);
        assert!(matches!(cache.prepare(), Err(CacheError::Io(..))));
        // A name that is taken by a folder: the file cannot get it, as on a disk that is full.
        let cache = CodeCache::at(home.path().join("c"));
        cache.prepare().unwrap();
        fs::create_dir(cache.path(&Key([1; 32]))).unwrap();
        cache.put(&Key([1; 32]), b"code");
        assert_eq!(cache.get(&Key([1; 32])), None);
    }

    #[test]
    fn several_at_once_agree_on_one_secret() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("c");
        std::thread::scope(|scope| {
            for number in 0..8 {
                let folder = &folder;
                scope.spawn(move || CodeCache::at(folder).put(&Key([number; 32]), &[number; 100]));
            }
        });
        let cache = CodeCache::at(&folder);
        assert!((0..8).all(|number| cache.get(&Key([number; 32])).is_some()));
    }
}
