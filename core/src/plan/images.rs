//! Old images and files give way to a marker.

use super::{Level, Proposal, Stage, StageContext};

/// Drops the images and files of all but the newest `keep_last` entries that have any, oldest first.
/// Text beside them stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropOldImages {
    /// Newest entries with media that are left alone. Default 3. On the aggressive path: none.
    pub keep_last: u32,
}

impl Default for DropOldImages {
    fn default() -> Self {
        Self { keep_last: 3 }
    }
}

impl Stage for DropOldImages {
    fn name(&self) -> &str {
        "drop_old_images"
    }

    fn plan(&self, ctx: &mut StageContext<'_>) {
        let columns = ctx.columns();
        let keep = if ctx.aggressive() { 0 } else { self.keep_last as usize };
        let in_tail = (columns.group_start(ctx.tail_start())..columns.len()).filter(|&e| columns.has_media(e)).count();
        let mut old = ctx.visible();
        old.retain(|&entry| columns.has_media(entry) && ctx.level(entry) < Level::Elided);
        old.truncate(old.len().saturating_sub(keep.saturating_sub(in_tail)));
        for entry in old {
            if ctx.reached_target() {
                break;
            }
            let _ = ctx.propose(Proposal::ElideMedia { entry, parts: None });
        }
    }
}
