//! Compiled code out of the cache: its key, and the one step that believes it.

use std::hash::{Hash as _, Hasher};

use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use super::super::code_cache::CodeCache;
use super::super::sealed::Key;

/// Feeds what is hashed into a digest. What `finish` answers is not used.
struct Digesting(Sha256);

impl Hasher for Digesting {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

/// What compiled code depends on: the component, the engine with its version, settings and target, and this crate.
pub(super) fn key(engine: &Engine, component: &[u8]) -> Key {
    let mut digest = Digesting(Sha256::new());
    digest.write(b"foreshorten.code/1\0");
    digest.write(env!("CARGO_PKG_VERSION").as_bytes());
    digest.write(&Sha256::digest(component));
    engine.precompile_compatibility_hash().hash(&mut digest);
    Key(digest.0.finalize().into())
}

/// The component compiled before, if its code is there and beyond doubt.
pub(super) fn take(engine: &Engine, cache: &CodeCache, key: &Key) -> Option<Component> {
    let code = cache.get(key)?;
    // SAFETY: `deserialize` must be given what `serialize` gave. `get` has answered bytes in our memory, where nobody else
    // can change them, under a code that only a holder of the folder's secret can make: 32 random bytes in a file of mode
    // 0600 that belongs to this user, in a folder of mode 0700 likewise, both looked at on what was opened. The one place
    // that seals is `keep` below, and it seals what `Component::serialize` gave. The key under the same code names the
    // component, the engine's settings, version and target, and this crate, so the bytes are those of this component for
    // such an engine; `deserialize` compares the engine once more. Whoever can read the secret is this user, who can run
    // code without us.
    let component = unsafe { Component::deserialize(engine, &code) };
    component.inspect_err(|error| tracing::debug!(target: "foreshorten::plugin", %error, "compiled again")).ok()
}

/// Keeps the code of a component that was compiled here. That it cannot be kept is no failure.
pub(super) fn keep(cache: &CodeCache, key: &Key, component: &Component) {
    match component.serialize() {
        Ok(code) => cache.put(key, &code),
        Err(error) => tracing::debug!(target: "foreshorten::plugin", %error, "code cannot be kept"),
    }
}
