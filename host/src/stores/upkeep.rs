//! Looking after a [`FileStore`]: which files are sound, and which nobody has used for long.

use std::fs::{self, DirEntry, File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use foreshorten_core::digest::Digest;

use super::atomic::{LOCK, about, folder_lock, open_plain};
use super::file::{FileStore, UNFINISHED};

/// What [`FileStore::verify`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// Files whose content is what their name says.
    pub good: usize,
    /// Bytes in them.
    pub bytes: u64,
    /// Files whose content is another. They are never given out; the next `put` of the right content heals them.
    pub corrupt: Vec<PathBuf>,
    /// Whatever else lies in the folder: files of others, links, folders, what an interrupted write left.
    pub foreign: Vec<PathBuf>,
}

/// What [`FileStore::gc`] removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collected {
    /// Contents removed.
    pub removed: usize,
    /// Bytes freed, notes of parts included.
    pub bytes: u64,
    /// Contents left.
    pub kept: usize,
    /// Unfinished files of interrupted writes removed.
    pub unfinished: usize,
}

/// What a file in a store is, by its name and kind alone.
enum Kind {
    Content(Digest),
    Parts,
    Unfinished,
    Foreign,
}

/// No write takes longer.
const UNFINISHED_FOR: Duration = Duration::from_secs(24 * 60 * 60);

impl FileStore {
    /// Reads every file and compares it with its name. Changes nothing.
    ///
    /// # Errors
    /// When a folder or file cannot be read; the error names it.
    pub fn verify(&self) -> io::Result<Verified> {
        let mut found = Verified::default();
        for (entry, folder) in children(self.root())? {
            let path = entry.path();
            if entry.file_name() == LOCK {
                continue;
            }
            let Some(prefix) = folder.then(|| fan_out(&entry)).flatten() else {
                found.foreign.push(path);
                continue;
            };
            for (entry, _) in children(&path)? {
                let path = entry.path();
                match kind(&entry, &prefix) {
                    Kind::Content(digest) => match digest_of(&path)? {
                        Some((actual, bytes)) if actual == digest => {
                            found.good += 1;
                            found.bytes += bytes;
                        }
                        Some(_) => found.corrupt.push(path),
                        // Removed meanwhile.
                        None => {}
                    },
                    Kind::Parts => {}
                    Kind::Unfinished | Kind::Foreign => found.foreign.push(path),
                }
            }
        }
        found.corrupt.sort();
        found.foreign.sort();
        Ok(found)
    }

    /// Removes content that has not been used, put or got, for `older_than`, and what interrupted writes left a day
    /// ago. Foreign files stay, links are not followed.
    ///
    /// Safe beside writers of other processes: content that a `put` found to be there is used, and stays. Sessions may
    /// hold references to what is removed: those are then recalled from their record, if it was not trimmed.
    ///
    /// # Errors
    /// When a folder cannot be read, a file cannot be removed, or the file system has no locks. What was removed
    /// before stays removed.
    pub fn gc(&self, older_than: Duration) -> io::Result<Collected> {
        let mut done = Collected::default();
        let path = self.root();
        let lock = folder_lock(path)?;
        let now = SystemTime::now();
        let age = |facts: &Metadata| facts.modified().ok().and_then(|then| now.duration_since(then).ok());
        for (entry, folder) in children(self.root())? {
            let Some(prefix) = folder.then(|| fan_out(&entry)).flatten() else { continue };
            // One folder at a time, so that writers wait for a moment only.
            lock.lock().map_err(about(path))?;
            let swept = sweep(&entry.path(), &prefix, older_than, &age, &mut done);
            lock.unlock().map_err(about(path))?;
            swept?;
        }
        Ok(done)
    }
}

fn sweep(
    folder: &Path,
    prefix: &str,
    older_than: Duration,
    age: &dyn Fn(&Metadata) -> Option<Duration>,
    done: &mut Collected,
) -> io::Result<()> {
    let mut parts: Vec<(PathBuf, u64)> = Vec::new();
    for (entry, _) in children(folder)? {
        let path = entry.path();
        let Some(facts) = there(fs::symlink_metadata(&path)).map_err(about(&path))? else { continue };
        // A time in the future is no age: such a file is new.
        let age = age(&facts).unwrap_or_default();
        match kind(&entry, prefix) {
            Kind::Content(_) if age > older_than => {
                remove(&path)?;
                done.removed += 1;
                done.bytes += facts.len();
            }
            Kind::Content(_) => done.kept += 1,
            Kind::Parts if age > older_than => parts.push((path, facts.len())),
            Kind::Unfinished if age > UNFINISHED_FOR => {
                remove(&path)?;
                done.unfinished += 1;
            }
            _ => {}
        }
    }
    // The parts are written before the content and removed after it.
    for (path, bytes) in parts {
        if there(fs::symlink_metadata(path.with_extension(""))).map_err(about(&path))?.is_none() {
            remove(&path)?;
            done.bytes += bytes;
        }
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    there(fs::remove_file(path)).map(drop).map_err(about(path))
}

/// What is not there any more is no error.
fn there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What lies in a folder, by name, and whether it is a folder itself; links are neither followed nor folders.
fn children(folder: &Path) -> io::Result<Vec<(DirEntry, bool)>> {
    let read = || {
        let mut all = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let is_folder = entry.file_type()?.is_dir();
            all.push((entry, is_folder));
        }
        all.sort_by_key(|(entry, _)| entry.file_name());
        Ok(all)
    };
    read().map_err(about(folder))
}

/// The two digits of a folder of ours.
fn fan_out(entry: &DirEntry) -> Option<String> {
    let name = entry.file_name().into_string().ok()?;
    let ours = name.len() == 2 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    ours.then_some(name)
}

fn kind(entry: &DirEntry, prefix: &str) -> Kind {
    let Ok(name) = entry.file_name().into_string() else { return Kind::Foreign };
    if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
        return Kind::Foreign;
    }
    if name.starts_with(UNFINISHED) {
        return Kind::Unfinished;
    }
    let (stem, parts) = name.strip_suffix(".parts").map_or((name.as_str(), false), |stem| (stem, true));
    match Digest::parse(stem) {
        Some(_) if !stem.starts_with(prefix) => Kind::Foreign,
        Some(_) if parts => Kind::Parts,
        Some(digest) => Kind::Content(digest),
        None => Kind::Foreign,
    }
}

fn digest_of(path: &Path) -> io::Result<Option<(Digest, u64)>> {
    let read = |mut file: File| {
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        Ok((Digest::of(&content), content.len() as u64))
    };
    open_plain(path).and_then(|file| file.map(read).transpose()).map_err(about(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::FileTimes;

    fn age(path: &Path, by: Duration) {
        let then = SystemTime::now() - by;
        File::options().write(true).open(path).unwrap().set_times(FileTimes::new().set_modified(then)).unwrap();
    }

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn verify_tells_good_from_corrupt_from_foreign() {
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::open(folder.path()).unwrap();
        for content in [&b"one"[..], b"two", b"three"] {
            store.put(&Digest::of(content), content).unwrap();
        }
        let bad = store.path(&Digest::of(b"two"));
        fs::write(&bad, b"tow").unwrap();
        let foreign = [folder.path().join("notes.txt"), bad.with_file_name("notes.txt"), folder.path().join("zz")];
        foreign.iter().for_each(|path| fs::write(path, b"mine").unwrap());
        let misplaced = bad.with_file_name(Digest::of(b"three").to_string());
        fs::write(&misplaced, b"three").unwrap();
        let found = store.verify().unwrap();
        assert_eq!((found.good, found.bytes), (2, 8));
        assert_eq!(found.corrupt, [bad]);
        let mut all = foreign.to_vec();
        all.push(misplaced);
        all.sort();
        assert_eq!(found.foreign, all);
    }

    #[test]
    fn gc_removes_what_was_not_used_and_leaves_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::open(folder.path()).unwrap();
        for content in [&b"old"[..], b"got", b"put", b"new"] {
            store.put(&Digest::of(content), content).unwrap();
            age(&store.path(&Digest::of(content)), DAY * 30);
        }
        store.get(&Digest::of(b"got")).unwrap();
        store.put(&Digest::of(b"put"), b"put").unwrap();
        store.put(&Digest::of(b"new"), b"new").unwrap();
        let foreign = store.path(&Digest::of(b"old")).with_file_name("notes.txt");
        fs::write(&foreign, b"mine").unwrap();
        age(&foreign, DAY * 30);
        let unfinished = foreign.with_file_name(".put-abc");
        fs::write(&unfinished, b"half").unwrap();
        age(&unfinished, DAY * 2);
        let done = store.gc(DAY).unwrap();
        assert_eq!(done, Collected { removed: 1, bytes: 3, kept: 3, unfinished: 1 });
        assert!(foreign.exists() && !unfinished.exists());
        assert_eq!(store.get(&Digest::of(b"old")).unwrap(), None);
        assert!(store.get(&Digest::of(b"got")).unwrap().is_some());
    }

    #[cfg(unix)]
    #[test]
    fn neither_follows_a_link_out_of_the_folder() {
        let outside = tempfile::tempdir().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::open(folder.path()).unwrap();
        let digest = Digest::of(b"theirs");
        let name = digest.to_string();
        let theirs = outside.path().join(&name);
        fs::write(&theirs, b"theirs").unwrap();
        age(&theirs, DAY * 30);
        std::os::unix::fs::symlink(outside.path(), folder.path().join(&name[..2])).unwrap();
        assert_eq!(store.gc(DAY).unwrap(), Collected::default());
        assert_eq!(store.verify().unwrap().foreign.len(), 1);
        assert_eq!(store.get(&digest).unwrap(), None);
        assert!(store.put(&digest, b"theirs").is_err());
        assert!(theirs.exists());
    }

    #[test]
    fn what_a_writer_was_told_is_there_is_there_after_gc_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::open(folder.path()).unwrap().without_sync();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    store.gc(DAY).unwrap();
                }
            });
            for round in 0..400u32 {
                let content = (round % 7).to_string();
                let digest = Digest::of(content.as_bytes());
                store.put(&digest, content.as_bytes()).unwrap();
                assert!(store.path(&digest).exists(), "round {round}");
                if round % 3 == 0
                    && let Ok(file) = File::options().write(true).open(store.path(&digest))
                {
                    let _ = file.set_times(FileTimes::new().set_modified(SystemTime::now() - DAY * 9));
                }
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}
