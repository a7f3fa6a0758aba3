//! Old reasoning is left out.

use super::{Level, Proposal, Stage, StageContext};
use crate::transcript::EntryKind;

/// Leaves the reasoning of all but the newest `keep_last` groups that have any out of the view. Off by
/// default. Signed or encrypted reasoning is never touched: its whole turn goes under a note or stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClearReasoning {
    /// Newest reasoning entries that are left alone. Default 3.
    pub keep_last: u32,
}

impl Default for ClearReasoning {
    fn default() -> Self {
        Self { keep_last: 3 }
    }
}

impl Stage for ClearReasoning {
    fn name(&self) -> &str {
        "clear_reasoning"
    }

    fn plan(&self, ctx: &mut StageContext<'_>) {
        let mut old = ctx.visible();
        old.retain(|&entry| ctx.columns().kind(entry) == EntryKind::Reasoning && ctx.level(entry) < Level::Cleared);
        let keep = if ctx.aggressive() { 0 } else { self.keep_last as usize };
        old.truncate(old.len().saturating_sub(keep));
        for entry in old {
            if ctx.reached_target() {
                break;
            }
            let _ = ctx.propose(Proposal::OmitReasoning { entry });
        }
    }
}
