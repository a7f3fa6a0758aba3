//! Clears the result of a call once a newer call of the same tool with the same arguments has succeeded: earlier reads of
//! the same file, earlier runs of the same tests.
#![cfg_attr(target_arch = "wasm32", no_std)]

extern crate alloc;

use alloc::{collections::BTreeMap, format};

use foreshorten_plugin::{Kind, Pass, Stage, String, Vec, mark};

/// The stage.
pub struct DedupeReads;

/// Results shorter than this many characters stay: a marker would hardly be shorter.
const LEAST: u32 = 200;
/// Levels from which nothing is left to clear, and from which nothing is seen.
const CLEARED: u8 = 4;
const COVERED: u8 = 5;

impl Stage for DedupeReads {
    fn plan(pass: &mut impl Pass) -> Result<(), String> {
        let kinds = pass.kinds(0, u32::MAX);
        let marks = pass.marks(0, u32::MAX);
        let levels = pass.levels(0, u32::MAX);
        let pairs = pass.pairs(0, u32::MAX);
        let sizes = pass.sizes(0, u32::MAX);
        let tools = pass.tool_ids(0, u32::MAX);
        let no = mark::RECALL | mark::ORPHAN;
        let results: Vec<usize> = (0..kinds.len())
            .filter(|&at| Kind::from(kinds[at]) == Kind::ToolResult && marks[at] & no == 0 && levels[at] < COVERED)
            .collect();
        let calls: Vec<u32> = results.iter().map(|&at| pairs[at]).collect();
        let arguments = pass.texts(&calls, u32::MAX);
        // The newest success of each call; results stand in the order in which they came.
        let mut newest: BTreeMap<(u32, &str), usize> = BTreeMap::new();
        for (&at, arguments) in results.iter().zip(&arguments) {
            if marks[at] & mark::ERROR == 0 {
                newest.insert((tools[at], arguments), at);
            }
        }
        let mut cleared = 0;
        for (&at, arguments) in results.iter().zip(&arguments) {
            if pass.reached_target() {
                break;
            }
            let superseded = newest.get(&(tools[at], arguments.as_str())).is_some_and(|&newer| newer > at);
            if superseded
                && levels[at] < CLEARED
                && marks[at] & mark::PROTECTED == 0
                && is_long(pass, at, &marks, &sizes)
            {
                cleared += u32::from(pass.clear_superseded(&[at as u32]) == [0]);
            }
        }
        if cleared > 0 {
            pass.explain(&format!("{cleared} results of calls that were made again"));
        }
        Ok(())
    }
}

/// Whether a result has enough characters; those with images do, whatever their text.
fn is_long(pass: &impl Pass, at: usize, marks: &[u16], sizes: &[u32]) -> bool {
    if marks[at] & mark::MEDIA != 0 || sizes[at] >= LEAST * 4 {
        return true;
    }
    sizes[at] >= LEAST && pass.texts(&[at as u32], u32::MAX)[0].chars().count() >= LEAST as usize
}

foreshorten_plugin::stage!(DedupeReads);

#[cfg(test)]
mod tests {
    use foreshorten_plugin::fake::{Did, Fake};

    use super::*;

    #[test]
    fn an_older_read_goes_and_an_error_supersedes_nothing() {
        let long = "x".repeat(300);
        let mut fake = Fake::default();
        fake.call("read", "{\"path\":\"a\"}", &long)
            .call("read", "{\"path\":\"b\"}", &long)
            .call("read", "{\"path\":\"a\"}", &long)
            .call("read", "{\"path\":\"b\"}", "no such file")
            .failed()
            .user("and now?")
            .tail(1);
        DedupeReads::plan(&mut fake).unwrap();
        assert_eq!(fake.did, [Did::Supersede(1)]);
        assert_eq!(fake.lines, ["1 results of calls that were made again"]);
    }
}
