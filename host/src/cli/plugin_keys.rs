//! `plugin keys` and `plugin sign`: who vouches for a plugin.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use foreshorten::plugin::signature::{SecretKey, Subject, TrustedKeys};
use foreshorten::plugin::{LoadError, Settings, sha256};

use super::{failure::Failure, files};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Keys {
    /// Make a pair of keys, and print the path of the public one.
    ///
    /// FILE gets the secret key, which only you can read; FILE.pub the public one, for those who trust you.
    New {
        /// File for the secret key. It must not be there yet.
        file: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Sign {
    /// Plugin: its file, its plugin.toml, or the folder with one. Name and version are signed too.
    path: PathBuf,
    /// File with the secret key.
    #[arg(long, value_name = "SECRET")]
    key: PathBuf,
}

pub(crate) fn keys(act: &Keys) -> Result<ExitCode, Failure> {
    let Keys::New { file } = act;
    let key = SecretKey::generate().map_err(|error| Failure::Io(std::io::Error::other(error.to_string())))?;
    let mut public = file.as_os_str().to_owned();
    public.push(".pub");
    let public = PathBuf::from(public);
    if public.exists() {
        return Err(Failure::Usage(format!("{} exists already", public.display())));
    }
    new_file(file, key.text().as_bytes(), true)?;
    new_file(&public, key.public_text().as_bytes(), false)?;
    say!("key {}; the secret in {} signs: whoever has it can sign in your name", key.id(), file.display());
    files::print(format!("{}\n", public.display()).as_bytes())
}

/// Writes a file that is not there yet.
fn new_file(path: &Path, content: &[u8], secret: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if secret {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    #[cfg(not(unix))]
    let _ = secret;
    let named = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::Usage(format!("{} exists already", path.display())),
        _ => Failure::Io(std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
    };
    let mut file = options.open(path).map_err(named)?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(named)
}

fn bad(path: &Path) -> impl Fn(LoadError) -> Failure + '_ {
    move |error| Failure::Input(format!("{}: {error}", path.display()))
}

pub(crate) fn sign(args: &Sign) -> Result<ExitCode, Failure> {
    let text = files::read(&args.key)?;
    let key = SecretKey::parse(&String::from_utf8_lossy(&text))
        .map_err(|error| Failure::Input(format!("{}: {error}", args.key.display())))?;
    let (file, settings) = Settings::find(&args.path).map_err(bad(&args.path))?;
    let digest = sha256(&files::read(&file)?);
    if let Some(pinned) = settings.sha256.as_deref().filter(|pinned| !pinned.eq_ignore_ascii_case(&digest)) {
        return Err(bad(&file)(LoadError::Digest(digest, pinned.to_owned())));
    }
    let name = settings.name_for(&file);
    let subject = Subject { sha256: &digest, name: &name, version: &settings.version };
    let signature = key.sign(&subject);
    let mut beside = file.as_os_str().to_owned();
    beside.push(".sig");
    let beside = PathBuf::from(beside);
    std::fs::write(&beside, format!("{signature}\n"))
        .map_err(|error| std::io::Error::new(error.kind(), format!("{}: {error}", beside.display())))?;
    say!("signed {subject} with key {}", key.id());
    let (_, now) = Settings::find(&args.path).map_err(bad(&args.path))?;
    if now.signature.as_deref() != Some(&signature) {
        say!("{} has a signature of its own, which is the one that counts: remove it there", args.path.display());
    }
    files::print(format!("{}\n", beside.display()).as_bytes())
}

/// What its signature is worth, in words; `None` when no keys are given.
pub(crate) fn verdict(path: &Path, trust: &[PathBuf]) -> Result<Option<String>, Failure> {
    let mut trusted = TrustedKeys::default();
    for file in trust {
        trusted.extend(TrustedKeys::read(file).map_err(|error| Failure::Usage(format!("--trust {error}")))?);
    }
    if trusted.is_empty() {
        return Ok(None);
    }
    let (file, settings) = Settings::find(path).map_err(bad(path))?;
    let digest = sha256(&files::read(&file)?);
    let name = settings.name_for(&file);
    let subject = Subject { sha256: &digest, name: &name, version: &settings.version };
    let signed_by = settings.signature.as_deref().map(|signature| trusted.who(&subject, signature));
    Ok(Some(match signed_by {
        Some(Some(id)) => format!("signed by trusted key {id}: {subject}"),
        Some(None) => {
            format!("its signature is by none of the trusted keys ({}), or not of {subject}", trusted.ids().join(", "))
        }
        None => "not signed".into(),
    }))
}
