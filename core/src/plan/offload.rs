//! Huge tool results give way to a preview.

use super::{Level, Proposal, Stage, StageContext};

/// The seeds' first stage: results of `min_chars` and more are replaced by their first `preview_chars`
/// characters and the way back. Oldest first, until the target is reached.
///
/// On the aggressive path a quarter of `min_chars` is enough and none is kept for being new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffloadToolResults {
    /// Least length in characters. Default 4,000 (the seeds): about 1,000 tokens, ten times the preview.
    pub min_chars: u32,
    /// Newest results that are left alone, wherever they stand. Default 2.
    pub keep_last: u32,
    /// Length of the preview in characters. Default 400.
    pub preview_chars: u32,
}

impl Default for OffloadToolResults {
    fn default() -> Self {
        Self { min_chars: 4_000, keep_last: 2, preview_chars: 400 }
    }
}

impl Stage for OffloadToolResults {
    fn name(&self) -> &str {
        "offload_tool_results"
    }

    fn plan(&self, ctx: &mut StageContext<'_>) {
        let (min, keep) = if ctx.aggressive() { (self.min_chars / 4, 0) } else { (self.min_chars, self.keep_last) };
        for entry in but_newest(ctx, keep) {
            if ctx.reached_target() {
                break;
            }
            let fits = ctx.level(entry) < Level::Preview
                && !ctx.columns().is_recall(entry)
                && !ctx.is_protected(entry)
                && ctx.has_chars(entry, min.max(1) as usize);
            if fits {
                let head = ctx.head_bytes(entry, self.preview_chars as usize);
                let _ = ctx.propose(Proposal::Offload { entry, head, tail: 0 });
            }
        }
    }
}

/// The results a stage may look at, oldest first, without the newest `keep` results of the whole record.
pub(super) fn but_newest(ctx: &StageContext<'_>, keep: u32) -> alloc::vec::Vec<usize> {
    let columns = ctx.columns();
    // Results in the tail count among the newest ones.
    let mut in_tail = 0usize;
    for group in (ctx.tail_start()..columns.groups()).rev() {
        if in_tail >= keep as usize {
            break;
        }
        in_tail +=
            columns.members(group).filter(|&e| columns.kind(e) == crate::transcript::EntryKind::ToolResult).count();
    }
    let mut results = ctx.results();
    let spare = (keep as usize).saturating_sub(in_tail);
    if spare > 0 {
        let mut by_age = results.clone();
        by_age.sort_unstable();
        let newest = by_age.split_off(by_age.len().saturating_sub(spare));
        results.retain(|entry| newest.binary_search(entry).is_err());
    }
    results
}

/// First stage of the earlier proposal: one result, or one batch of results, that is too large is replaced by
/// the persisted-result marker. It runs before retention, so that nothing large is replaced before it is archived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolResultBudget {
    /// Characters the results of one group may have together. Default 200,000.
    pub tool_result_budget_chars: u32,
    /// Characters one result may have. Default 20,000.
    pub large_tool_result_chars: u32,
    /// Length of the preview in characters. Default 2,000.
    pub tool_result_preview_chars: u32,
}

impl Default for ToolResultBudget {
    fn default() -> Self {
        Self { tool_result_budget_chars: 200_000, large_tool_result_chars: 20_000, tool_result_preview_chars: 2_000 }
    }
}

impl Stage for ToolResultBudget {
    fn name(&self) -> &str {
        "tool_result_budget"
    }

    fn plan(&self, ctx: &mut StageContext<'_>) {
        let large = if ctx.aggressive() { self.large_tool_result_chars / 4 } else { self.large_tool_result_chars };
        let mut batch: alloc::vec::Vec<(usize, usize)> = alloc::vec::Vec::new(); // (characters, entry)
        let mut group = usize::MAX;
        for entry in ctx.results() {
            if ctx.level(entry) >= Level::Preview || ctx.columns().is_recall(entry) || ctx.is_protected(entry) {
                continue;
            }
            if ctx.columns().group(entry) != group {
                self.trim_batch(ctx, &mut batch);
                group = ctx.columns().group(entry);
            }
            if ctx.has_chars(entry, large.max(1) as usize) {
                self.persist(ctx, entry);
            } else {
                let chars = crate::transcript::text_of(ctx.transcript(), entry).chars().count();
                batch.push((chars, entry));
            }
        }
        self.trim_batch(ctx, &mut batch);
    }
}

impl ToolResultBudget {
    fn persist(&self, ctx: &mut StageContext<'_>, entry: usize) {
        let head = ctx.head_bytes(entry, self.tool_result_preview_chars as usize);
        let _ = ctx.propose(Proposal::Persist { entry, head });
    }

    /// Persists the largest of a batch until the rest is within the batch's budget.
    fn trim_batch(&self, ctx: &mut StageContext<'_>, batch: &mut alloc::vec::Vec<(usize, usize)>) {
        let mut total: usize = batch.iter().map(|&(chars, _)| chars).sum();
        batch.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        for (chars, entry) in batch.drain(..) {
            if total <= self.tool_result_budget_chars as usize {
                break;
            }
            total -= chars;
            self.persist(ctx, entry);
        }
        batch.clear();
    }
}
