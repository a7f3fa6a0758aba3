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
        let file = manifest.parent().unwrap_or_else(|| Path::new("")).join(&read.file);
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
}

/// SHA-256 in hexadecimal, as `sha256sum` prints it.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
