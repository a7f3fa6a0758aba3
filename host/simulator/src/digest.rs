//! Hashes: of pieces of a request, to know them again, and keyed ones, to know what this server has signed.

use std::hash::{DefaultHasher, Hasher};

use sha2::{Digest, Sha256};

/// Hash of a list of byte strings. The lists `["ab"]` and `["a", "b"]` differ. Not for adversaries.
pub(crate) fn hash(parts: &[&[u8]]) -> u128 {
    let mut halves = [DefaultHasher::new(), DefaultHasher::new()];
    halves[1].write_u8(1);
    for half in &mut halves {
        for part in parts {
            half.write_usize(part.len());
            half.write(part);
        }
    }
    (u128::from(halves[0].finish()) << 64) | u128::from(halves[1].finish())
}

/// Hash of a prefix followed by one more piece.
pub(crate) fn chain(prefix: u128, piece: u128) -> u128 {
    hash(&[&prefix.to_le_bytes(), &piece.to_le_bytes()])
}

/// The key with which this server signs reasoning. One seed, one key: a session can go on at another simulator.
#[derive(Debug, Clone)]
pub(crate) struct Signer {
    key: [u8; 32],
}

impl Signer {
    pub(crate) fn new(seed: u64) -> Self {
        Self { key: Sha256::digest(format!("simulated provider, seed {seed}").as_bytes()).into() }
    }

    /// The signature of a thinking block.
    pub(crate) fn sign(&self, text: &str) -> String {
        format!("Sim{}", self.mac("thinking", text))
    }

    pub(crate) fn signed(&self, text: &str, signature: &str) -> bool {
        self.sign(text) == signature
    }

    /// Reasoning of this many tokens as an opaque string, about as long as real ones are.
    pub(crate) fn seal(&self, text: &str, tokens: u64) -> String {
        let mut sealed = format!("gAAAAA{tokens:08x}");
        let mut block = self.mac("pad", text);
        let long = sealed.len() + usize::try_from(tokens).unwrap_or(0).saturating_mul(6);
        while sealed.len() < long {
            sealed.push_str(&block);
            block = self.mac("pad", &block);
        }
        let mac = self.mac("sealed", &sealed);
        sealed + &mac
    }

    /// The tokens inside a sealed reasoning, if this server has sealed it.
    pub(crate) fn unseal(&self, sealed: &str) -> Option<u64> {
        let split = sealed.len().checked_sub(64).filter(|at| sealed.is_char_boundary(*at))?;
        let (body, mac) = sealed.split_at(split);
        if self.mac("sealed", body) != mac {
            return None;
        }
        u64::from_str_radix(body.strip_prefix("gAAAAA")?.get(..8)?, 16).ok()
    }

    fn mac(&self, purpose: &str, text: &str) -> String {
        let mut inner = Sha256::new();
        inner.update(self.key);
        inner.update(purpose.as_bytes());
        inner.update(text.as_bytes());
        let mut outer = Sha256::new();
        outer.update(self.key);
        outer.update(inner.finalize());
        outer.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_is_known_again_and_nothing_else() {
        let signer = Signer::new(7);
        let sealed = signer.seal("a thought", 123);
        assert_eq!(signer.unseal(&sealed), Some(123));
        assert_eq!(Signer::new(8).unseal(&sealed), None);
        assert_eq!(signer.unseal(&sealed.replacen("gAAAAA0", "gAAAAA1", 1)), None);
        assert_eq!(signer.unseal("ü"), None);
        assert!(signer.signed("a", &signer.sign("a")) && !signer.signed("b", &signer.sign("a")));
    }
}
