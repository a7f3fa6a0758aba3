//! Long arguments of old calls give way to a marker.

use super::{Level, Proposal, Stage, StageContext};
use crate::transcript::EntryKind;

/// Replaces the arguments of old calls by valid JSON that says so. Off by default: it edits an assistant
/// message, and models have been seen to imitate what they believe they wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClipToolArguments {
    /// Least length in bytes. Default 2,000.
    pub min_bytes: u32,
    /// Newest calls that are left alone. Default 3.
    pub keep_last: u32,
}

impl Default for ClipToolArguments {
    fn default() -> Self {
        Self { min_bytes: 2_000, keep_last: 3 }
    }
}

impl Stage for ClipToolArguments {
    fn name(&self) -> &str {
        "clip_tool_arguments"
    }

    fn plan(&self, ctx: &mut StageContext<'_>) {
        let mut calls = ctx.visible();
        calls.retain(|&entry| ctx.columns().kind(entry) == EntryKind::ToolCall);
        let keep = if ctx.aggressive() { 0 } else { self.keep_last as usize };
        calls.truncate(calls.len().saturating_sub(keep));
        for entry in calls {
            if ctx.reached_target() {
                break;
            }
            let long = crate::transcript::text_of(ctx.transcript(), entry).len() >= self.min_bytes as usize;
            if long && ctx.level(entry) < Level::Elided {
                let _ = ctx.propose(Proposal::ClipArguments { entry });
            }
        }
    }
}
