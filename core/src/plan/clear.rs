//! Old tool results give way to a marker.

use super::{Level, Proposal, Stage, StageContext, offload::but_newest};

/// The seeds' second stage: older results are replaced by a short marker, oldest first, in one batch a pass.
///
/// The newest few stay because a pass leaves them alone, not because a window slides: between passes
/// nothing is cleared. On the aggressive path only the tail protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClearToolResults {
    /// Newest results that are left alone. Default 3.
    pub keep_last: u32,
    /// Results shorter than this many characters stay: a marker would save next to nothing. Default 200.
    pub min_chars: u32,
    /// Clear nothing unless at least this many tokens would be freed (the prompt cache is broken for less).
    /// Does not apply to a view that does not fit. Default none.
    pub clear_at_least_tokens: Option<u64>,
}

impl Default for ClearToolResults {
    fn default() -> Self {
        Self { keep_last: 3, min_chars: 200, clear_at_least_tokens: None }
    }
}

impl Stage for ClearToolResults {
    fn name(&self) -> &str {
        "clear_tool_results"
    }

    fn plan(&self, ctx: &mut StageContext<'_>) {
        let (keep, min) = if ctx.aggressive() { (0, 0) } else { (self.keep_last, self.min_chars) };
        let least = self.clear_at_least_tokens.map_or(0, |tokens| ctx.raw_for(tokens));
        clear_oldest(ctx, keep, min, least);
    }
}

/// Third stage of the earlier proposal: all but the newest `keep_recent_tool_results` give way to a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolResultRetention {
    /// Newest results that are left alone. Default 3.
    pub keep_recent_tool_results: u32,
}

impl Default for ToolResultRetention {
    fn default() -> Self {
        Self { keep_recent_tool_results: 3 }
    }
}

impl Stage for ToolResultRetention {
    fn name(&self) -> &str {
        "tool_result_retention"
    }

    fn plan(&self, ctx: &mut StageContext<'_>) {
        let keep = if ctx.aggressive() { 0 } else { self.keep_recent_tool_results };
        clear_oldest(ctx, keep, 0, 0);
    }
}

fn clear_oldest(ctx: &mut StageContext<'_>, keep: u32, min_chars: u32, least: u64) {
    let mut candidates = but_newest(ctx, keep);
    candidates.retain(|&entry| {
        // Below a preview an entry may be short and still worth clearing, so the length of a preview does not count.
        ctx.level(entry) < Level::Cleared
            && !ctx.is_protected(entry)
            && (min_chars == 0 || ctx.has_chars(entry, min_chars as usize))
    });
    if least > 0 && ctx.view_tokens() <= ctx.budget().usable {
        let possible: u64 = candidates.iter().filter_map(|&entry| ctx.saving(&Proposal::Clear { entry }).ok()).sum();
        if possible < least {
            return;
        }
    }
    let mut freed = 0u64;
    for entry in candidates {
        if ctx.reached_target() && freed >= least {
            break;
        }
        if let Ok(saved) = ctx.propose(Proposal::Clear { entry }) {
            freed += saved;
        }
    }
}
