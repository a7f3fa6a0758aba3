//! Clears results that are longer than 10,000 bytes, oldest first, until the target is reached.
#![cfg_attr(target_arch = "wasm32", no_std)]

use foreshorten_plugin::{Kind, Pass, Stage, String, mark};

/// The stage.
pub struct Plugin;

const LONG: u32 = 10_000;

impl Stage for Plugin {
    fn plan(pass: &mut impl Pass) -> Result<(), String> {
        let kinds = pass.kinds(0, u32::MAX);
        let marks = pass.marks(0, u32::MAX);
        let sizes = pass.sizes(0, u32::MAX);
        for entry in 0..kinds.len() {
            let open = Kind::from(kinds[entry]) == Kind::ToolResult && marks[entry] & mark::PROTECTED == 0;
            if open && sizes[entry] > LONG {
                if pass.reached_target() {
                    break;
                }
                // The answer is a code: 0 accepted, else why not.
                pass.clear(&[entry as u32]);
            }
        }
        Ok(())
    }
}

foreshorten_plugin::stage!(Plugin);

#[cfg(test)]
mod tests {
    use foreshorten_plugin::fake::{Did, Fake};

    use super::*;

    #[test]
    fn a_long_result_is_cleared_and_the_tail_is_left_alone() {
        let mut fake = Fake::default();
        let long = "x".repeat(20_000);
        fake.user("read it").call("read", "{}", &long).call("read", "{}", "short").call("read", "{}", &long).tail(1);
        Plugin::plan(&mut fake).unwrap();
        assert_eq!(fake.did, [Did::Clear(2)]);
    }
}
