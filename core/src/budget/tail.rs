//! The protected tail: the newest groups that stay as they are.

use crate::transcript::Columns;

/// First group of the tail.
///
/// The newest group is always in it, whatever its size. Older groups join while the whole tail fits in
/// `raw_budget`; the first that does not fit ends it. `view_weight` answers what a group weighs in the view.
#[must_use]
pub fn tail_start(columns: &Columns, raw_budget: u64, view_weight: impl Fn(usize) -> u64) -> usize {
    let groups = columns.groups();
    let Some(mut start) = groups.checked_sub(1) else { return 0 };
    let mut total = view_weight(start);
    while start > 0 {
        total = total.saturating_add(view_weight(start - 1));
        if total > raw_budget {
            break;
        }
        start -= 1;
    }
    start
}
