//! Who vouches for a plugin: Ed25519 signatures over its file, its name and its version.
//!
//! What is signed is this text, where the digest is that of the file in lower-case hexadecimal, and the version `0.0.0` when
//! none is given:
//!
//! ```text
//! foreshorten plugin signature 1
//! sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//! name my-stage
//! version 1.2.0
//! ```
//!
//! Every line ends in a line feed. A signature of other things cannot be taken for one, and one of a plugin not for one of the
//! same bytes under another name: the name is what its memo is kept under. Grants, limits and configuration are what an
//! operator says, not what an author vouches for, so they are not signed.
//!
//! Keys are files of text. A public one has a line `foreshorten-public-key`, a space, 32 bytes in base64, and perhaps a comment;
//! there may be several, and lines that begin with `#`. A secret one has one line, `foreshorten-secret-key`.

use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use sha2::{Digest as _, Sha256};

use super::{LoadError, Settings};

const PUBLIC: &str = "foreshorten-public-key";
const SECRET: &str = "foreshorten-secret-key";

/// What of a plugin is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject<'a> {
    /// SHA-256 of its file, in hexadecimal.
    pub sha256: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its version; an empty one is `0.0.0`.
    pub version: &'a str,
}

impl Subject<'_> {
    /// The bytes that are signed.
    fn message(&self) -> Vec<u8> {
        let version = if self.version.is_empty() { "0.0.0" } else { self.version };
        let Self { sha256, name, .. } = self;
        format!("foreshorten plugin signature 1\nsha256 {sha256}\nname {name}\nversion {version}\n").into_bytes()
    }
}

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = if self.version.is_empty() { "0.0.0" } else { self.version };
        write!(f, "name {}, version {version}, SHA-256 {}", self.name, self.sha256)
    }
}

/// What is wrong with a file of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError(String);

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for KeyError {}

/// A key that signs. Its secret is never shown.
pub struct SecretKey(SigningKey);

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey of {}", self.id())
    }
}

impl SecretKey {
    /// A new one, from the system's random numbers.
    ///
    /// # Errors
    /// The system has none.
    pub fn generate() -> Result<Self, KeyError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| KeyError(format!("there are no random numbers: {error}")))?;
        Ok(Self(SigningKey::from_bytes(&seed)))
    }

    /// Reads the text of its file.
    ///
    /// # Errors
    /// It is none; a public key is told apart.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut words = lines.next().unwrap_or_default().split_whitespace();
        match (words.next(), words.next().and_then(bytes), lines.next()) {
            (Some(SECRET), Some(seed), None) => Ok(Self(SigningKey::from_bytes(&seed))),
            (Some(PUBLIC), ..) => Err(KeyError("this is a public key; what signs is the secret one".into())),
            _ => Err(KeyError(format!("expected one line: {SECRET}, and 32 bytes in base64"))),
        }
    }

    /// The text of its file.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{SECRET} {}\n", STANDARD.encode(self.0.to_bytes()))
    }

    /// The text of the file with the public key.
    #[must_use]
    pub fn public_text(&self) -> String {
        format!("{PUBLIC} {}\n", STANDARD.encode(self.0.verifying_key().to_bytes()))
    }

    /// What the key is called: see [`TrustedKeys::ids`].
    #[must_use]
    pub fn id(&self) -> String {
        id(&self.0.verifying_key())
    }

    /// Signs a plugin; the signature is in base64.
    #[must_use]
    pub fn sign(&self, subject: &Subject<'_>) -> String {
        STANDARD.encode(self.0.sign(&subject.message()).to_bytes())
    }
}

/// The public keys that an operator trusts. With none, signatures are not looked at.
///
/// ```
/// use foreshorten::plugin::signature::{SecretKey, Subject, TrustedKeys};
/// let secret = SecretKey::generate()?;
/// let trusted = TrustedKeys::parse(&secret.public_text())?;
/// let subject = Subject { sha256: "00ff", name: "my-stage", version: "1.2.0" };
/// let signature = secret.sign(&subject);
/// assert_eq!(trusted.who(&subject, &signature), Some(secret.id()));
/// assert_eq!(trusted.who(&Subject { version: "1.3.0", ..subject }, &signature), None);
/// # Ok::<(), foreshorten::plugin::signature::KeyError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedKeys(Vec<VerifyingKey>);

impl TrustedKeys {
    /// Reads the text of a file of public keys.
    ///
    /// # Errors
    /// The first line that is none; a secret key is told apart, and so is a key that any signature would fit.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut keys = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let at = number + 1;
            let mut words = line.split_whitespace();
            let key = match (words.next(), words.next().and_then(bytes)) {
                (Some(PUBLIC), Some(key)) => VerifyingKey::from_bytes(&key).ok().filter(|key| !key.is_weak()),
                (Some(SECRET), _) => {
                    return Err(KeyError(format!(
                        "line {at}: this is a secret key; give the public one, and keep this one to yourself"
                    )));
                }
                _ => None,
            };
            let wrong = || {
                KeyError(format!("line {at}: expected {PUBLIC}, a space, and the 32 bytes of an Ed25519 key in base64"))
            };
            keys.push(key.ok_or_else(wrong)?);
        }
        if keys.is_empty() { Err(KeyError("there is no key in it".into())) } else { Ok(Self(keys)) }
    }

    /// Reads a file of public keys.
    ///
    /// # Errors
    /// It cannot be read, or what is wrong in it, with the line.
    pub fn read(path: &Path) -> Result<Self, LoadError> {
        let none = || LoadError::File(path.to_owned(), std::io::ErrorKind::NotFound.into());
        let bytes = super::manifest::small(path)?.ok_or_else(none)?;
        Self::parse(&String::from_utf8_lossy(&bytes))
            .map_err(|error| LoadError::Settings(path.to_owned(), error.to_string()))
    }

    /// These and others.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Whether there is none, so that signatures are not looked at.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the keys are called: the first 16 digits of the SHA-256 of each.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        self.0.iter().map(id).collect()
    }

    /// The key that signed this, if it is one of these.
    #[must_use]
    pub fn who(&self, subject: &Subject<'_>, signature: &str) -> Option<String> {
        // A line feed in one field could pass for the next one.
        if [subject.sha256, subject.name, subject.version].iter().any(|field| field.contains(char::is_control)) {
            return None;
        }
        let signature = Signature::from_bytes(&STANDARD.decode(signature.trim()).ok()?.try_into().ok()?);
        let message = subject.message();
        self.0.iter().find(|key| key.verify_strict(&message, &signature).is_ok()).map(id)
    }

    /// Lets a plugin pass that one of the keys signed; without keys, any. `name` is that of the plugin
    /// ([`Settings::name_for`]).
    ///
    /// # Errors
    /// It is not signed, or not by one of these keys, with what to do.
    pub fn check(&self, bytes: &[u8], name: &str, settings: &Settings) -> Result<(), LoadError> {
        if self.is_empty() {
            return Ok(());
        }
        let sha256 = super::sha256(bytes);
        let subject = Subject { sha256: &sha256, name, version: &settings.version };
        let trusted = self.ids().join(", ");
        match &settings.signature {
            None => Err(LoadError::Signature(format!(
                "it is not signed, and only what one of the trusted keys signed is loaded ({trusted}); let its author sign \
                 it, or sign it yourself once you have looked at it: foreshorten plugin sign FILE --key SECRET"
            ))),
            Some(signature) => match self.who(&subject, signature) {
                Some(id) => {
                    tracing::debug!(target: "foreshorten::plugin", name, key = %id, "its signature holds");
                    Ok(())
                }
                None => Err(LoadError::Signature(format!(
                    "its signature is by none of the trusted keys ({trusted}), or not of {subject}; get the signature of \
                     this file, or trust the key that made it, if you do"
                ))),
            },
        }
    }
}

fn bytes(text: &str) -> Option<[u8; 32]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

fn id(key: &VerifyingKey) -> String {
    Sha256::digest(key.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_one_file_one_name_and_one_version() {
        let key = SecretKey(SigningKey::from_bytes(&[9; 32]));
        let trusted = TrustedKeys::parse(&key.public_text()).unwrap();
        let subject = Subject { sha256: "ab", name: "a", version: "" };
        let signature = key.sign(&subject);
        assert_eq!(trusted.who(&subject, &signature), Some(key.id()));
        assert_eq!(trusted.who(&Subject { version: "0.0.0", ..subject }, &signature), Some(key.id()));
        for other in [
            Subject { sha256: "ac", ..subject },
            Subject { name: "b", ..subject },
            Subject { version: "1", ..subject },
            Subject { name: "a\nversion 0.0.0\n", ..subject },
        ] {
            assert_eq!(trusted.who(&other, &signature), None, "{other}");
        }
        let odd = Subject { name: "a\nversion 1", version: "2", ..subject };
        assert_eq!(trusted.who(&odd, &key.sign(&odd)), None);
        let stranger = SecretKey(SigningKey::from_bytes(&[8; 32]));
        assert_eq!(trusted.who(&subject, &stranger.sign(&subject)), None);
        for wrong in ["", "AAAA", "not base64", &"A".repeat(86)] {
            assert_eq!(trusted.who(&subject, wrong), None);
        }
        let mut both = TrustedKeys::parse(&stranger.public_text()).unwrap();
        both.extend(trusted);
        assert_eq!(both.who(&subject, &signature), Some(key.id()));
    }

    #[test]
    fn keys_are_read_back_and_what_is_none_is_told() {
        let key = SecretKey::generate().unwrap();
        assert_eq!(SecretKey::parse(&key.text()).unwrap().text(), key.text());
        assert!(!format!("{key:?}").contains(key.text().split(' ').nth(1).unwrap().trim()));
        let several = format!("# mine\n\n{} me\n{}", key.public_text().trim(), key.public_text());
        assert_eq!(TrustedKeys::parse(&several).unwrap().ids(), [key.id(), key.id()]);
        assert!(SecretKey::parse(&key.public_text()).unwrap_err().to_string().contains("public key"));
        let said = |text: &str| TrustedKeys::parse(text).unwrap_err().to_string();
        assert!(said(&key.text()).contains("secret key"));
        assert!(said("# nothing").contains("no key"));
        assert!(said(&format!("{}x\n", key.public_text())).contains("line 2"));
        assert!(said("foreshorten-public-key AAAA").contains("line 1"));
        // A point of small order: anything would be signed by it.
        let weak = format!("foreshorten-public-key {}", STANDARD.encode([0; 32]));
        assert!(said(&weak).contains("line 1"));
        assert!(SecretKey::parse("").is_err());
    }
}
