//! One source for all three: run natively over the same traits, as a component, and as a native library.
#![cfg_attr(target_arch = "wasm32", no_std)]

extern crate alloc;

use foreshorten_plugin::{Kind, Pass, Stage, String, Vec, mark};

/// Looks at three columns of every entry, as a stage does that is about to clear, and keeps what it found.
pub struct Marginal;

impl Stage for Marginal {
    fn plan(pass: &mut impl Pass) -> Result<(), String> {
        match pass.config().as_str() {
            "\"nothing\"" => {}
            _ => {
                let found = candidates(pass);
                pass.store_memo(&found.to_le_bytes());
            }
        }
        Ok(())
    }
}

/// What a stage that clears would do about the record: how many results are worth it, and their weight.
pub fn candidates(pass: &impl Pass) -> u64 {
    let kinds = pass.kinds(0, u32::MAX);
    let marks = pass.marks(0, u32::MAX);
    let weights = pass.weights(0, u32::MAX);
    let mut candidates: Vec<(u32, u32)> = Vec::new();
    for (entry, ((&kind, &marks), &weight)) in (0u32..).zip(kinds.iter().zip(&marks).zip(&weights)) {
        let protected = marks & (mark::PROTECTED | mark::ORPHAN | mark::RECALL) != 0;
        if Kind::from(kind) == Kind::ToolResult && !protected && weight > 40 {
            candidates.push((entry, weight));
        }
    }
    // In the order in which they would be cleared: the heaviest of each sixteen first.
    for some in candidates.chunks_mut(16) {
        some.sort_unstable_by_key(|&(_, weight)| core::cmp::Reverse(weight));
    }
    candidates.iter().map(|&(entry, weight)| u64::from(weight) ^ u64::from(entry)).sum()
}

foreshorten_plugin::stage!(Marginal);
