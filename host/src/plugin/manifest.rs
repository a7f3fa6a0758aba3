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
    /// Signature in base64 ([`signature`](super::signature)). Default: none.
    pub signature: Option<String>,
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
    signature: Option<String>,
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
    /// The file that `path` means, and its settings: `path` is a `plugin.toml`, a folder with one, or the file itself.
    /// Where the settings do not say them, the digest is pinned by `FILE.sha256` beside the file (the format of
    /// `sha256sum`), and its signature is in `FILE.sig`.
    ///
    /// # Errors
    /// What cannot be read, and what is wrong in it.
    pub fn find(path: &Path) -> Result<(PathBuf, Self), LoadError> {
        let (file, mut settings) = match manifest_of(path) {
            Some(manifest) => {
                let none = || LoadError::File(manifest.clone(), std::io::ErrorKind::NotFound.into());
                let text = String::from_utf8(small(&manifest)?.ok_or_else(none)?)
                    .map_err(|error| LoadError::Settings(manifest.clone(), error.to_string()))?;
                Self::parse(&text, &manifest)?
            }
            None => (path.to_owned(), Self::default()),
        };
        if settings.sha256.is_none() {
            settings.sha256 = small(&beside(&file, ".sha256"))?.as_deref().map(first_word);
        }
        if settings.signature.is_none() {
            settings.signature = small(&beside(&file, ".sig"))?.as_deref().map(first_word);
        }
        Ok((file, settings))
    }

    /// Reads the text of a `plugin.toml` that lies at `manifest`: the file it is about, and what it says.
    ///
    /// ```
    /// use foreshorten::plugin::Settings;
    /// let text = "file = \"a.wasm\"\nversion = \"1.2.0\"\n[config]\nkeep_last = 3";
    /// let (file, settings) = Settings::parse(text, "plugins/plugin.toml".as_ref())?;
    /// assert_eq!(file, std::path::Path::new("plugins/a.wasm"));
    /// assert_eq!(settings.config.as_deref(), Some("{\"keep_last\":3}"));
    /// # Ok::<(), foreshorten::plugin::LoadError>(())
    /// ```
    ///
    /// # Errors
    /// What is wrong in it.
    pub fn parse(text: &str, manifest: &Path) -> Result<(PathBuf, Self), LoadError> {
        let wrong = |why: String| LoadError::Settings(manifest.to_owned(), why);
        let read: Manifest = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if let Some(unknown) = read.grants.iter().find(|grant| !GRANTS.contains(&grant.as_str())) {
            return Err(wrong(format!("there is no grant `{unknown}`; there is {}", GRANTS.join(", "))));
        }
        if read.version.contains(char::is_control) {
            return Err(wrong("version: expected one line, such as 1.2.0".into()));
        }
        let config = read.config.map(|table| serde_json::to_string(&table)).transpose();
        let on_failure = read.on_failure.as_deref().map(str::parse).transpose().map_err(wrong)?;
        let file = manifest.parent().unwrap_or_else(|| Path::new("")).join(&read.file);
        let settings = Self {
            name: read.name,
            version: read.version,
            sha256: read.sha256,
            signature: read.signature,
            config: config.map_err(|error| wrong(error.to_string()))?,
            grants: read.grants,
            limits: read.limits,
            on_failure: on_failure.unwrap_or_default(),
        };
        Ok((file, settings))
    }
}

impl Settings {
    /// The name of the plugin in `file`: the one given, else the file's without its ending; letters, digits, `-` and `_` of it,
    /// no more than 64.
    #[must_use]
    pub fn name_for(&self, file: &Path) -> String {
        let stem = || file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut name: String = self.name.clone().unwrap_or_else(stem);
        name.retain(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        name.truncate(64);
        if name.is_empty() { "plugin".into() } else { name }
    }
}

/// The `plugin.toml` that `path` means, if it means one.
pub(super) fn manifest_of(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        Some(path.join("plugin.toml"))
    } else {
        path.extension().is_some_and(|ending| ending == "toml").then(|| path.to_owned())
    }
}

/// The name of a file with more at its end.
pub(super) fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Bytes of a `plugin.toml`, or of a file beside a plugin, at most.
const SMALL: u64 = 1 << 20;

/// Opens a plain file, or what a link leads to. A pipe would be waited for without end, and a device has none.
pub(super) fn open_file(path: &Path) -> std::io::Result<std::fs::File> {
    if std::fs::metadata(path)?.is_file() {
        std::fs::File::open(path)
    } else {
        Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "expected a file, and it is none"))
    }
}

/// The bytes of a small file; `None` when there is none.
pub(super) fn small(path: &Path) -> Result<Option<Vec<u8>>, LoadError> {
    use std::io::Read as _;
    let failed = |error| LoadError::File(path.to_owned(), error);
    let file = match open_file(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    file.take(SMALL + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > SMALL {
        return Err(LoadError::Settings(path.to_owned(), format!("it is longer than {SMALL} bytes")));
    }
    Ok(Some(bytes))
}

/// The first word of a file that may be anything: a `FILE.sig` may be that of another program.
fn first_word(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).split_whitespace().next().unwrap_or_default().to_owned()
}

/// SHA-256 in hexadecimal, as `sha256sum` prints it.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
