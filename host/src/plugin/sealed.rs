//! Files that only who sealed them opens: the format of the cache of compiled plugins.
//!
//! ```text
//! offset  bytes
//!      0      8  magic, "FRSTSEAL"
//!      8      4  version of this format, little endian: 1
//!     12     32  key: what the content is of
//!     44      8  length of the content, little endian
//!     52      n  content
//!   52+n     32  HMAC-SHA-256 over all that precedes, under the secret of who sealed it
//! ```
//!
//! Nothing here reads a file or needs an engine, so all of it can be tried on hostile bytes.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

const MAGIC: [u8; 8] = *b"FRSTSEAL";
const VERSION: u32 = 1;
/// Bytes before the content.
const HEAD: usize = 52;
/// Bytes of the code at the end.
const TAG: usize = 32;

/// What a content is of: a digest of everything that it depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(pub [u8; 32]);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What a seal is made with: 32 random bytes that nobody else knows. Never shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret(pub [u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Why a sealed file is not opened. Each means the same to a cache: make the content again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doubt {
    /// It does not begin as one, or is of another version of the format.
    Format,
    /// It is of something else.
    Key,
    /// Its length is not what it says.
    Length,
    /// It was changed, or sealed by somebody else.
    Seal,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Format => "not a sealed file of this version",
            Self::Key => "sealed for something else",
            Self::Length => "cut off, or longer than it says",
            Self::Seal => "changed, or sealed by another installation",
        })
    }
}

impl std::error::Error for Doubt {}

fn code(secret: &Secret, sealed: &[u8]) -> Hmac<Sha256> {
    // The key of an HMAC is a block, a shorter one followed by zeros.
    let mut block = hmac::digest::common::Key::<Hmac<Sha256>>::default();
    block[..secret.0.len()].copy_from_slice(&secret.0);
    let mut mac = Hmac::<Sha256>::new(&block);
    mac.update(sealed);
    mac
}

/// Seals `content` as that of `key`.
///
/// ```
/// use foreshorten::plugin::sealed::{Doubt, Key, Secret, open, seal};
/// let (mine, theirs) = (Secret([1; 32]), Secret([2; 32]));
/// let file = seal(&mine, &Key([7; 32]), b"machine code");
/// assert_eq!(open(&mine, &Key([7; 32]), &file), Ok(&b"machine code"[..]));
/// assert_eq!(open(&theirs, &Key([7; 32]), &file), Err(Doubt::Seal));
/// ```
#[must_use]
pub fn seal(secret: &Secret, key: &Key, content: &[u8]) -> Vec<u8> {
    let mut file = Vec::with_capacity(HEAD + content.len() + TAG);
    file.extend_from_slice(&MAGIC);
    file.extend_from_slice(&VERSION.to_le_bytes());
    file.extend_from_slice(&key.0);
    file.extend_from_slice(&(content.len() as u64).to_le_bytes());
    file.extend_from_slice(content);
    let tag = code(secret, &file).finalize().into_bytes();
    file.extend_from_slice(&tag);
    file
}

/// The content of a file that this secret sealed as that of `key`. The code is compared in constant time.
///
/// # Errors
/// Anything else about it.
pub fn open<'a>(secret: &Secret, key: &Key, file: &'a [u8]) -> Result<&'a [u8], Doubt> {
    let head = file.get(..HEAD).ok_or(Doubt::Length)?;
    if head[..8] != MAGIC || head[8..12] != VERSION.to_le_bytes() {
        return Err(Doubt::Format);
    }
    if head[12..44] != key.0 {
        return Err(Doubt::Key);
    }
    let mut length = [0; 8];
    length.copy_from_slice(&head[44..]);
    let length = usize::try_from(u64::from_le_bytes(length)).map_err(|_| Doubt::Length)?;
    let end = HEAD.checked_add(length).filter(|end| end.checked_add(TAG) == Some(file.len())).ok_or(Doubt::Length)?;
    let (sealed, tag) = file.split_at(end);
    code(secret, sealed).verify_slice(tag).map_err(|_| Doubt::Seal)?;
    Ok(&sealed[HEAD..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts_and_so_does_the_length() {
        let (secret, key) = (Secret([3; 32]), Key([5; 32]));
        for content in [&b""[..], b"x", b"some machine code"] {
            let file = seal(&secret, &key, content);
            assert_eq!(open(&secret, &key, &file), Ok(content));
            for at in 0..file.len() {
                for bit in 0..8 {
                    let mut other = file.clone();
                    other[at] ^= 1 << bit;
                    assert!(open(&secret, &key, &other).is_err(), "byte {at}, bit {bit}");
                }
                assert!(open(&secret, &key, &file[..at]).is_err(), "the first {at}");
            }
            assert_eq!(open(&secret, &key, &[&file[..], b"y"].concat()), Err(Doubt::Length));
            assert_eq!(open(&secret, &Key([6; 32]), &file), Err(Doubt::Key));
            assert_eq!(open(&Secret([4; 32]), &key, &file), Err(Doubt::Seal));
        }
        assert_eq!(format!("{secret:?} {}", Key([10; 32])), format!("Secret(…) {}", "0a".repeat(32)));
    }
}
