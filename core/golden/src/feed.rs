//! How values go into the digest: each with its length, so that no two sequences are the same bytes.

use sha2::{Digest, Sha256};

pub(crate) trait Feed {
    fn field(&mut self, bytes: &[u8]);

    fn number(&mut self, value: u64) {
        self.field(&value.to_le_bytes());
    }

    fn count(&mut self, value: usize) {
        self.number(value as u64);
    }

    fn text(&mut self, text: &str) {
        self.field(text.as_bytes());
    }

    fn option(&mut self, value: Option<u64>) {
        self.number(u64::from(value.is_some()));
        self.number(value.unwrap_or(0));
    }
}

impl Feed for Sha256 {
    fn field(&mut self, bytes: &[u8]) {
        Digest::update(self, (bytes.len() as u64).to_le_bytes());
        Digest::update(self, bytes);
    }
}
