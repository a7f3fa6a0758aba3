//! What both loaders need.

use std::path::Path;

use foreshorten_core::{
    state::Ledger,
    transcript::{Columns, OwnedTranscript},
};

use super::desk::{Desk, Settled};
use super::line::{Answer, Ask};
use super::manifest::open_file;
use super::{LoadError, Settings, sha256};

/// The name for a plugin from `file`.
pub(super) fn name_for(settings: &Settings, file: &Path) -> String {
    settings.name_for(file)
}

/// The bytes of a plugin: no more than allowed, and those that were pinned.
pub(super) fn read(file: &Path, pinned: Option<&str>, most: u64) -> Result<(Vec<u8>, String), LoadError> {
    use std::io::Read as _;
    let failed = |error| LoadError::File(file.to_owned(), error);
    let open = open_file(file).map_err(failed)?;
    let has = open.metadata().map_err(failed)?.len();
    if has > most {
        return Err(LoadError::Size(has, most));
    }
    let mut bytes = Vec::new();
    // The file may grow in between.
    open.take(most + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > most {
        return Err(LoadError::Size(bytes.len() as u64, most));
    }
    let digest = sha256(&bytes);
    match pinned {
        Some(pinned) if !pinned.eq_ignore_ascii_case(&digest) => Err(LoadError::Digest(digest, pinned.to_owned())),
        _ => Ok((bytes, digest)),
    }
}

/// What a call without a record is answered.
pub(super) fn nothing(ask: Ask) -> Answer {
    let record = OwnedTranscript::default();
    let sight = Settled { record: &record, columns: &Columns::new(), ledger: &Ledger::default() };
    Desk::default().look(&sight, ask)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::{Limits, OnFailure};

    #[test]
    fn a_manifest_is_read_and_its_mistakes_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let write = |text: &str| std::fs::write(folder.path().join("plugin.toml"), text).unwrap();
        write(
            "file = \"a.wasm\"\nversion = \"2.1.0\"\non_failure = \"required\"\n[config]\nkeep = 3\n[limits]\nwall_ms = 50",
        );
        let (file, settings) = Settings::find(folder.path()).unwrap();
        assert_eq!(file, folder.path().join("a.wasm"));
        assert_eq!(settings.config.as_deref(), Some("{\"keep\":3}"));
        assert_eq!((settings.limits.wall_ms, settings.limits.fuel), (50, Limits::default().fuel));
        assert!(matches!(settings.on_failure, OnFailure::Required));
        assert_eq!(name_for(&settings, &file), "a");
        for (text, told) in [
            ("file = \"a\"\ngrants = [\"network\"]", "network"),
            ("file = \"a\"\non_failure = \"panic\"", "panic"),
            ("file = \"a\"\nfuel = 3", "fuel"),
        ] {
            write(text);
            let error = Settings::find(folder.path()).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_or_a_device_is_no_plugin_and_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("a.wasm");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for odd in [&pipe, Path::new("/dev/zero"), folder.path()] {
            assert!(matches!(read(odd, None, 1 << 20), Err(LoadError::File(..))), "{}", odd.display());
        }
        std::os::unix::fs::symlink("/dev/zero", folder.path().join("b.wasm.sha256")).unwrap();
        assert!(matches!(Settings::find(&folder.path().join("b.wasm")), Err(LoadError::File(..))));
        assert!(super::super::FileKind::of(&pipe).is_err());
        assert!(super::super::TrustedKeys::read(Path::new("/dev/zero")).is_err());
    }

    #[test]
    fn a_file_that_is_not_the_pinned_one_is_refused_before_anything_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.wasm");
        std::fs::write(&file, b"abc").unwrap();
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        std::fs::write(folder.path().join("a.wasm.sha256"), format!("{digest}  a.wasm\n")).unwrap();
        let (path, settings) = Settings::find(&file).unwrap();
        assert_eq!(read(&path, settings.sha256.as_deref(), 3).unwrap().1, digest);
        assert!(matches!(read(&path, None, 2), Err(LoadError::Size(3, 2))));
        std::fs::write(&file, b"abd").unwrap();
        let error = read(&path, settings.sha256.as_deref(), 3).unwrap_err().to_string();
        assert!(error.contains(digest), "{error}");
    }
}
