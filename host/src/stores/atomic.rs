//! Files that are written whole or not at all, and seen by their owner only.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Makes a folder only its owner can look into.
pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Opens a plain file for reading; `None` when there is none, or something else stands under its name. A link is not
/// followed: it could lead out of the folder.
pub(crate) fn open_plain(path: &Path) -> io::Result<Option<File>> {
    let seen = match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_file() => facts,
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // Between the look and the opening a link could have taken its place.
    Ok(same_file(&seen, &file.metadata()?).then_some(file))
}

#[cfg(unix)]
fn same_file(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn same_file(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    a.is_file() && b.is_file() && a.len() == b.len()
}

/// Opens a file for reading and writing, made with mode 0600 when it is not there.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}

/// What the users of a folder lock: the folder itself.
#[cfg(unix)]
pub(crate) fn folder_lock(folder: &Path) -> io::Result<File> {
    File::open(folder).map_err(about(folder))
}

/// What the users of a folder lock. Folders cannot be opened here, so a file stands for it.
#[cfg(not(unix))]
pub(crate) fn folder_lock(folder: &Path) -> io::Result<File> {
    let path = folder.join(LOCK);
    open_private(&path).map_err(about(&path))
}

/// The file of [`folder_lock`], where there is one.
pub(crate) const LOCK: &str = ".lock";

/// Waits until the names in a folder are on the disk: a file is found again after a power cut only then.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    // Elsewhere folders cannot be opened; the file system keeps their order.
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

/// The error with the file it is about.
pub(crate) fn about(path: &Path) -> impl Fn(io::Error) -> io::Error + '_ {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
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
