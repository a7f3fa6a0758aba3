//! What a policy keeps with a session.

use std::any::Any;
use std::fmt;

use crate::session::Meta;

/// Bytes that are carried through checkpoints, and something live beside them that need not be: what a policy would
/// otherwise make anew from the bytes on every turn.
#[derive(Default)]
pub struct Scratch {
    /// What is stored.
    pub meta: Meta,
    live: Option<Box<dyn Any + Send + Sync>>,
}

impl Scratch {
    /// A scratch as stored.
    #[must_use]
    pub fn stored(meta: Meta) -> Self {
        Self { meta, live: None }
    }

    /// Takes the live part out. A policy puts it back when it is done; what it does not put back is made anew.
    pub fn take_live<T: Any>(&mut self) -> Option<T> {
        match self.live.take()?.downcast::<T>() {
            Ok(live) => Some(*live),
            // Another policy's.
            Err(_) => None,
        }
    }

    /// Puts the live part in. It must say the same as the bytes.
    pub fn put_live<T: Any + Send + Sync>(&mut self, live: T) {
        self.live = Some(Box::new(live));
    }

    /// Drops the live part: the record was replaced, so it is to be made anew from the bytes.
    pub fn settle(&mut self) {
        self.live = None;
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.meta.0.iter().map(|(key, value)| (key, value.len())).collect();
        f.debug_struct("Scratch").field("bytes", &keys).field("live", &self.live.is_some()).finish()
    }
}
