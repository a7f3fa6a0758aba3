//! Where reduced content is kept: one file per digest.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use foreshorten_core::digest::Digest;

/// A folder of content, one file per digest: `ab/abcdef…`.
///
/// Files are written beside their place and renamed into it, mode 0600 in folders of mode 0700. File names are
/// digests made here, never names from outside. A file whose content does not match its name is not found.
/// The files hold what the tools printed, unredacted.
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
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new().prefix(".write-").tempfile_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    // A device such as /dev/null is written to, not replaced.
    if fs::metadata(path).is_ok_and(|facts| !facts.is_file()) {
        return OpenOptions::new().write(true).open(path)?.write_all(content);
    }
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
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
