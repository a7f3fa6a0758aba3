//! One golden program: a fixed set of sessions through the whole core, and one digest over all views and states.
//!
//! The sessions are small text files in `testdata/golden/` ([`script`] says how they are written). Each is played
//! under every setup of [`setups`]: other windows, pipelines, estimators and summarizers. After every turn all
//! that can be seen of the core is hashed: the effects it asked for, the outcome, every piece of the view with its
//! content, the encoded state. The digest must be the same on every machine and in every build (I2); `tools/golden`
//! runs it natively, as a wasm module and on a bare Arm core.
//!
//! No std, no floats, nothing from outside but an allocator.
#![no_std]
#![warn(missing_docs)]

extern crate alloc;

mod feed;
pub mod heap;
mod play;
mod record;
pub mod script;
pub mod setups;
mod tally;

pub use tally::{Played, Tally, Wrong};

use sha2::{Digest, Sha256};

use feed::Feed;

/// The digest over everything, as 64 hexadecimal digits.
///
/// It changes when a view, an encoded state or an outcome does, so a change here is a change for every live
/// session: `core/golden/tests/digest.rs` says how one is accepted.
pub const DIGEST: &str = "8c3cc76f157f458a394c8e34b75749dd2a3ffe823e3227ed02620ed22de2e2c5";

/// Plays everything; answers the digest. `report` is told of every session under every setup.
///
/// # Errors
/// A session file that cannot be read, or a policy that cannot be built: a mistake in this crate or its files.
pub fn run(mut report: impl FnMut(&Played)) -> Result<[u8; 32], Wrong> {
    let mut all = Sha256::new();
    for setup in setups::ALL {
        let policy = (setup.policy)().build().map_err(|error| Wrong::Policy { setup: setup.name, error })?;
        for session in script::SESSIONS {
            let played = play::play(session, setup, &policy)?;
            all.field(session.name.as_bytes());
            all.field(setup.name.as_bytes());
            all.field(&played.digest);
            report(&played);
        }
    }
    Ok(all.finalize().into())
}

/// Bytes as lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> alloc::string::String {
    use core::fmt::Write as _;
    let mut out = alloc::string::String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing into a string cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}
