//! `plugin.toml`: what an operator says about a plugin, beside its file.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{Limits, LoadError, OnFailure};

/// Settings of one plugin. For a bare file the defaults hold.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Name: label in notices, key of what is kept. Default: the file's, without its ending.
    pub name: Option<String>,
    /// Its version; a new major one begins with an empty memo. Default `0.0.0`.
    pub version: String,
    /// SHA-256 of the file, in hexadecimal. Default: not pinned.
    pub sha256: Option<String>,
    /// Its configuration, as JSON. Default `{}`.
    pub config: Option<String>,
    /// What it may do beyond what every plugin may: `condensing`. Default: nothing.
    pub grants: Vec<String>,
    /// Bounds of a call, within those of the operator.
    pub limits: Limits,
    /// What is done when it fails. Default: it is left out.
    pub on_failure: OnFailure,
}

/// A `plugin.toml`: the same, and the file it is about.
///
/// ```toml
/// file = "drop_images.wasm"
/// sha256 = "9f86d081…"
/// grants = []
/// on_failure = "builtin:clear_tool_results"
/// [config]
/// keep_last = 3
/// [limits]
/// wall_ms = 500
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub struct Manifest {
    file: PathBuf,
    name: Option<String>,
    #[serde(default)]
    version: String,
    sha256: Option<String>,
    config: Option<toml::Table>,
    #[serde(default)]
    grants: Vec<String>,
    #[serde(default)]
    limits: Limits,
    on_failure: Option<String>,
}

/// What can be granted.
pub(super) const GRANTS: [&str; 1] = ["condensing"];

impl Settings {
    /// The file that `path` means, and its settings: `path` is a `plugin.toml`, a folder with one, or the file itself,
    /// whose digest may be pinned as `FILE.sha256` beside it (the format of `sha256sum`).
    ///
    /// # Errors
    /// What cannot be read, and what is wrong in it.
    pub fn find(path: &Path) -> Result<(PathBuf, Self), LoadError> {
        let inside = path.join("plugin.toml");
        let manifest = if path.is_dir() {
            inside
        } else if path.extension().is_some_and(|ending| ending == "toml") {
            path.to_owned()
        } else {
            let mut lock = path.as_os_str().to_owned();
            lock.push(".sha256");
            let pinned = match std::fs::read_to_string(&lock) {
                Ok(text) => text.split_whitespace().next().map(str::to_owned),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
                Err(error) => return Err(LoadError::File(lock.into(), error)),
            };
            return Ok((path.to_owned(), Self { sha256: pinned, ..Self::default() }));
        };
        let wrong = |why: String| LoadError::Settings(manifest.clone(), why);
        let text = std::fs::read_to_string(&manifest).map_err(|error| LoadError::File(manifest.clone(), error))?;
        let read: Manifest = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if let Some(unknown) = read.grants.iter().find(|grant| !GRANTS.contains(&grant.as_str())) {
            return Err(wrong(format!("there is no grant `{unknown}`; there is {}", GRANTS.join(", "))));
        }
        let config = read.config.map(|table| serde_json::to_string(&table)).transpose();
        let on_failure = read.on_failure.as_deref().map(str::parse).transpose().map_err(wrong)?;
        let file = manifest.parent().unwrap_or(Path::new("")).join(&read.file);
        let settings = Self {
            name: read.name,
            version: read.version,
            sha256: read.sha256,
            config: config.map_err(|error| wrong(error.to_string()))?,
            grants: read.grants,
            limits: read.limits,
            on_failure: on_failure.unwrap_or_default(),
        };
        Ok((file, settings))
    }

    /// The name for a plugin from `file`: letters, digits, `-` and `_`, no longer than 64 bytes.
    pub(super) fn name_for(&self, file: &Path) -> String {
        let stem = || file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut name: String = self.name.clone().unwrap_or_else(stem);
        name.retain(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        name.truncate(64);
        if name.is_empty() { "plugin".into() } else { name }
    }
}

/// The bytes of a plugin: no more than allowed, and those that were pinned.
pub(super) fn read(file: &Path, pinned: Option<&str>, most: u64) -> Result<(Vec<u8>, String), LoadError> {
    use std::io::Read as _;
    let failed = |error| LoadError::File(file.to_owned(), error);
    let open = std::fs::File::open(file).map_err(failed)?;
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

/// SHA-256 in hexadecimal, as `sha256sum` prints it.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(settings.name_for(&file), "a");
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
