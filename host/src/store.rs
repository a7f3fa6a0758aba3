//! Where reduced content is kept: one file per digest.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use foreshorten_core::{
    digest::Digest,
    transcript::{PartRef, Transcript},
};

/// A folder of content, one file per digest: `ab/abcdef…`.
///
/// Files are written beside their place and renamed into it, mode 0600 in folders of mode 0700. File names are
/// digests made here, never names from outside. A file whose content does not match its name is not found.
/// The files hold what the tools printed, unredacted. Beside the content of an entry that is more than one text lies
/// `abcdef….parts`, which says where its parts are.
#[derive(Clone, Debug)]
pub struct FileStore {
    root: PathBuf,
}

impl FileStore {
    /// Opens the store at `root`, making the folder when it is not there.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn open(root: &Path) -> io::Result<Self> {
        private_folder(root)?;
        Ok(Self { root: root.into() })
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        let name = digest.to_string();
        self.root.join(&name[..2]).join(name)
    }

    /// Keeps `content` under its digest. Content that is already there is left as it is.
    ///
    /// # Errors
    /// When it cannot be written; nothing half-written is left under the digest.
    pub fn put(&self, digest: &Digest, content: &[u8]) -> io::Result<()> {
        let path = self.path(digest);
        if self.get(digest)?.is_some() {
            return Ok(());
        }
        let folder = path.parent().unwrap_or(&self.root);
        private_folder(folder)?;
        let mut file = tempfile::Builder::new().prefix(".put-").tempfile_in(folder)?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Keeps the content of an entry under its digest, and how it is made of parts.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put_entry(&self, digest: &Digest, transcript: &dyn Transcript, entry: usize) -> io::Result<()> {
        let stored = Stored::of(transcript, entry);
        if stored.parts.iter().any(|part| !part.text) || stored.parts.len() > 1 {
            let path = self.path(digest).with_extension("parts");
            private_folder(path.parent().unwrap_or(&self.root))?;
            write_atomically(&path, stored.shape().as_bytes())?;
        }
        self.put(digest, &stored.content)
    }

    /// The content of an entry under a digest, verified. Without a note of its parts it is one text.
    ///
    /// # Errors
    /// When a file is there and cannot be read.
    pub fn get_entry(&self, digest: &Digest) -> io::Result<Option<Stored>> {
        let Some(content) = self.get(digest)? else { return Ok(None) };
        let path = self.path(digest).with_extension("parts");
        let shape = match fs::symlink_metadata(&path) {
            Ok(facts) if facts.is_file() => fs::read_to_string(&path)?,
            _ => String::new(),
        };
        let whole = vec![StoredPart { text: true, from: 0, to: content.len() }];
        let parts = cut(&content, &shape).unwrap_or(whole);
        Ok(Some(Stored { content, parts }))
    }

    /// The content under a digest, verified.
    ///
    /// # Errors
    /// When a file is there and cannot be read.
    pub fn get(&self, digest: &Digest) -> io::Result<Option<Vec<u8>>> {
        let path = self.path(digest);
        // A link could lead out of the store.
        match fs::symlink_metadata(&path) {
            Ok(facts) if facts.is_file() => {}
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        let mut content = Vec::new();
        File::open(&path)?.read_to_end(&mut content)?;
        Ok((Digest::of(&content) == *digest).then_some(content))
    }
}

/// The content of one entry: its texts joined by line feeds, then every other payload after a NUL. Its digest is
/// [`Digest::of_entry`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    content: Vec<u8>,
    parts: Vec<StoredPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct StoredPart {
    text: bool,
    from: usize,
    to: usize,
}

impl Stored {
    /// The content of an entry of a record.
    #[must_use]
    pub fn of(transcript: &dyn Transcript, entry: usize) -> Self {
        let count = transcript.entry(entry).parts as usize;
        let mut stored = Self { content: Vec::new(), parts: Vec::new() };
        let mut parts = vec![StoredPart { text: false, from: 0, to: 0 }; count];
        let mut push = |at: usize, text: bool, data: &[u8]| {
            let seen = parts.iter().any(|part| part.text);
            match text {
                true if seen => stored.content.push(b'\n'),
                true => {}
                false => stored.content.push(0),
            }
            let from = stored.content.len();
            stored.content.extend_from_slice(data);
            parts[at] = StoredPart { text, from, to: stored.content.len() };
        };
        for at in 0..count {
            if let PartRef::Text(text) = transcript.part(entry, at) {
                push(at, true, text.as_bytes());
            }
        }
        for at in 0..count {
            match transcript.part(entry, at) {
                PartRef::Text(_) => {}
                PartRef::Image(media) | PartRef::File(media) => push(at, false, media.data),
                PartRef::Opaque(data) => push(at, false, data),
            }
        }
        stored.parts = parts;
        stored
    }

    /// All of it.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// The text parts, joined by a line feed: what recall prints.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        let end = self.parts.iter().filter(|part| part.text).map(|part| part.to).max().unwrap_or(0);
        &self.content[..end]
    }

    /// One part as recorded, and whether it is text.
    #[must_use]
    pub fn part(&self, at: usize) -> Option<(&[u8], bool)> {
        self.parts.get(at).map(|part| (&self.content[part.from..part.to], part.text))
    }

    /// Number of parts.
    #[must_use]
    pub const fn parts(&self) -> usize {
        self.parts.len()
    }

    fn shape(&self) -> String {
        let line = |part: &StoredPart| format!("{} {}\n", if part.text { "text" } else { "data" }, part.to - part.from);
        self.parts.iter().map(line).collect()
    }
}

/// The parts that `shape` says content is made of; `None` unless they add up to it.
fn cut(content: &[u8], shape: &str) -> Option<Vec<StoredPart>> {
    let lines: Vec<(bool, usize)> = shape
        .lines()
        .map(|line| {
            let (kind, length) = line.split_once(' ')?;
            Some((kind == "text", length.parse().ok()?))
        })
        .collect::<Option<_>>()?;
    let mut parts = vec![StoredPart { text: false, from: 0, to: 0 }; lines.len()];
    let mut at = 0usize;
    for text in [true, false] {
        for (part, _) in lines.iter().enumerate().filter(|(_, line)| line.0 == text) {
            let first_text = text && !parts.iter().any(|part| part.text);
            if !first_text {
                let separator = if text { b'\n' } else { 0 };
                (content.get(at) == Some(&separator)).then_some(())?;
                at += 1;
            }
            let to = at.checked_add(lines[part].1).filter(|&to| to <= content.len())?;
            parts[part] = StoredPart { text, from: at, to };
            at = to;
        }
    }
    (at == content.len() && !parts.is_empty()).then_some(parts)
}

/// Makes a folder only its owner can look into.
fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Writes a file whole or not at all, readable by its owner only.
///
/// # Errors
/// When it cannot be written; the file that was there before is then still there.
pub fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    stage(path, content)?.commit()
}

/// Writes `content` beside `path`. Nothing is seen under `path` before [`Staged::commit`]; several files can be made
/// ready so, and what can fail has failed before the first of them is changed.
///
/// # Errors
/// When it cannot be written; the error names `path`.
pub fn stage(path: &Path, content: &[u8]) -> io::Result<Staged> {
    let named = |error: io::Error| naming(path, &error);
    // A link stays, what it leads to is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.into());
    match fs::metadata(&path) {
        Ok(facts) if facts.is_dir() => return Err(named(io::Error::other("it is a folder"))),
        // A device such as /dev/null is written to, not replaced.
        Ok(facts) if !facts.is_file() => return Ok(Staged { path, ready: Ready::Device(content.into()) }),
        _ => {}
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new().prefix(".write-").tempfile_in(folder).map_err(named)?;
    file.write_all(content).and_then(|()| file.as_file().sync_all()).map_err(named)?;
    Ok(Staged { path, ready: Ready::File(file) })
}

/// A file that is written and not yet in its place.
#[derive(Debug)]
pub struct Staged {
    path: PathBuf,
    ready: Ready,
}

#[derive(Debug)]
enum Ready {
    File(tempfile::NamedTempFile),
    Device(Vec<u8>),
}

impl Staged {
    /// Puts the file into its place.
    ///
    /// # Errors
    /// When that fails; the file that was there before is then still there.
    pub fn commit(self) -> io::Result<()> {
        let done = match self.ready {
            Ready::File(file) => file.persist(&self.path).map(drop).map_err(|error| error.error),
            Ready::Device(content) => {
                OpenOptions::new().write(true).open(&self.path).and_then(|mut device| device.write_all(&content))
            }
        };
        done.map_err(|error| naming(&self.path, &error))
    }
}

/// The error with the file that was meant, not the one beside it.
fn naming(path: &Path, error: &io::Error) -> io::Error {
    use std::error::Error as _;
    let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    io::Error::new(error.kind(), format!("{} cannot be written: {cause}", path.display()))
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
        fs::write(store.path(&digest), b"changed").unwrap();
        assert_eq!(store.get(&digest).unwrap(), None);
        store.put(&digest, b"kept").unwrap();
        assert_eq!(store.get(&digest).unwrap().as_deref(), Some(&b"kept"[..]));
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
        assert_eq!(Digest::of(Stored::of(&record, 0).content()), digest);
        store.put_entry(&digest, &record, 0).unwrap();
        let stored = store.get_entry(&digest).unwrap().unwrap();
        assert_eq!(stored, Stored::of(&record, 0));
        assert_eq!(stored.text(), b"a\0b\nlast");
        assert_eq!(stored.part(0), Some((&b"first"[..], false)));
        assert_eq!(stored.part(2), Some((&b"last"[..], true)));
        for wrong in ["", "text 3\n", "text 999999999999999999999\n", "data 5\ntext 2\ntext 5\n"] {
            fs::write(store.path(&digest).with_extension("parts"), wrong).unwrap();
            let stored = store.get_entry(&digest).unwrap().unwrap();
            assert_eq!((stored.parts(), stored.text()), (1, stored.content()), "{wrong:?}");
        }
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
    }
}
