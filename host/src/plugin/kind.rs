//! What kind of plugin a file is, by its first bytes.

use std::io::Read as _;
use std::path::Path;

use super::manifest::open_file;
use super::{LoadError, Settings};

/// The two kinds of file that a plugin can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// WebAssembly; also whatever is nothing known, so that the loader of components says what it lacks.
    Component,
    /// A native library.
    Library,
}

impl FileKind {
    /// The kind of what `path` means: a file, a `plugin.toml`, or a folder with one. Its ending does not count.
    ///
    /// # Errors
    /// What cannot be read, or what is wrong in the settings.
    pub fn of(path: &Path) -> Result<Self, LoadError> {
        let (file, _) = Settings::find(path)?;
        let failed = |error| LoadError::File(file.clone(), error);
        let mut first = Vec::new();
        open_file(&file).map_err(failed)?.take(4).read_to_end(&mut first).map_err(failed)?;
        Ok(Self::of_bytes(&first))
    }

    /// The kind of a file that begins with these bytes.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        // ELF; Mach-O of 64 bits, in both byte orders, and with several architectures in it; PE.
        const LIBRARIES: [&[u8]; 5] =
            [b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xfe\xed\xfa\xcf", b"\xca\xfe\xba\xbe", b"MZ"];
        if LIBRARIES.iter().any(|magic| bytes.starts_with(magic)) { Self::Library } else { Self::Component }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_told_by_their_first_bytes() {
        let me = std::env::current_exe().unwrap();
        assert_eq!(FileKind::of(&me).unwrap(), FileKind::Library);
        assert_eq!(FileKind::of_bytes(b"\0asm\x0d\0\x01\0"), FileKind::Component);
        assert_eq!(FileKind::of_bytes(b""), FileKind::Component);
    }
}
