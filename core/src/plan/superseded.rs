//! Older results of a call that was made again.

use hashbrown::HashMap;

use super::{Level, Proposal, Stage, StageContext};
use crate::{
    digest::Digest,
    transcript::{EntryKind, text_of},
};

/// Clears the result of a call once a newer call of the same tool with the same arguments has succeeded:
/// earlier reads of the same file, earlier runs of the same tests.
///
/// An error does not supersede a success. Results in the tail are newer than anything outside it and count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropSuperseded {
    /// Results shorter than this many characters stay. Default 200.
    pub min_chars: u32,
}

impl Default for DropSuperseded {
    fn default() -> Self {
        Self { min_chars: 200 }
    }
}

impl Stage for DropSuperseded {
    fn name(&self) -> &str {
        "drop_superseded"
    }

    fn plan(&self, ctx: &mut StageContext<'_>) {
        let columns = ctx.columns();
        let mut newest: HashMap<Digest, usize> = HashMap::new();
        let mut results: alloc::vec::Vec<(usize, Digest)> = alloc::vec::Vec::new();
        for group in ctx.open_groups(0..columns.groups()) {
            for entry in columns.members(group) {
                let answered = columns.kind(entry) == EntryKind::ToolResult && !columns.is_orphan(entry);
                if !answered || columns.is_recall(entry) {
                    continue;
                }
                let call = columns.pair(entry) as usize;
                let mut key = alloc::string::String::from(ctx.transcript().entry(call).name);
                key.push('\0');
                key.push_str(&text_of(ctx.transcript(), call));
                let key = Digest::of(key.as_bytes());
                if !columns.is_error(entry) {
                    newest.insert(key, entry);
                }
                results.push((entry, key));
            }
        }
        for (entry, key) in results {
            if ctx.reached_target() {
                break;
            }
            let superseded = newest.get(&key).is_some_and(|&newer| newer > entry);
            if superseded && ctx.level(entry) < Level::Cleared && ctx.has_chars(entry, self.min_chars as usize) {
                let _ = ctx.propose(Proposal::ClearSuperseded { entry });
            }
        }
    }
}
