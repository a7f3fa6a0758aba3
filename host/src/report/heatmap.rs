//! Levels of all entries over time, small enough to embed.

use serde::Serialize;

use super::model::{LEVEL_ABSENT, LEVEL_NAMES, LevelColumn, ReplayReport};

/// Rows a page is given at most.
const MAX_ROWS: u64 = 2_000;

/// Columns a page is given at most.
const MAX_COLUMNS: usize = 600;

/// The heat map of one session, in rows of `per_row` entries.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct HeatMap {
    /// Entries in the record at the end.
    pub(super) entries: u64,
    /// Entries one row stands for.
    pub(super) per_row: u64,
    /// For each pass that is shown, its turn and the runs `[level, rows]`.
    pub(super) columns: Vec<(u64, Vec<(u8, u64)>)>,
}

/// Condenses the levels of `report`: a row shows the level most of its entries are at, the higher when two tie.
pub(super) fn condense(report: &ReplayReport) -> HeatMap {
    let entries = report.turns.iter().map(|turn| turn.entries).max().unwrap_or(0);
    let per_row = entries.div_ceil(MAX_ROWS).max(1);
    let stride = report.levels.len().div_ceil(MAX_COLUMNS).max(1);
    // The last of each stride, so that the final state is always there.
    let shown = report.levels.rchunks(stride).rev().filter_map(<[LevelColumn]>::last);
    HeatMap { entries, per_row, columns: shown.map(|column| (column.turn, rows(column, per_row, entries))).collect() }
}

/// `column` in rows of `per_row` entries, run-length encoded; nothing beyond `entries`.
fn rows(column: &LevelColumn, per_row: u64, entries: u64) -> Vec<(u8, u64)> {
    let mut rows: Vec<(u8, u64)> = Vec::new();
    let mut push = |level: u8, count: u64| match rows.last_mut() {
        Some((last, sum)) if *last == level => *sum += count,
        _ => rows.push((level, count)),
    };
    let mut row = Row::default();
    let mut left = entries;
    for run in &column.runs {
        let mut count = run.entries.min(left);
        left -= count;
        if row.filled > 0 {
            let part = count.min(per_row - row.filled);
            row.add(run.level, part);
            count -= part;
            if row.filled == per_row {
                push(std::mem::take(&mut row).level(), 1);
            }
        }
        if count >= per_row {
            push(known(run.level), count / per_row);
        }
        row.add(run.level, count % per_row);
    }
    if row.filled > 0 {
        push(row.level(), 1);
    }
    rows
}

/// Levels this version does not know are shown as not there.
fn known(level: u8) -> u8 {
    if usize::from(level) < LEVEL_NAMES.len() { level } else { LEVEL_ABSENT }
}

/// A row being filled.
#[derive(Default)]
struct Row {
    filled: u64,
    counts: [u64; LEVEL_NAMES.len()],
}

impl Row {
    fn add(&mut self, level: u8, entries: u64) {
        self.filled += entries;
        if let Some(count) = self.counts.get_mut(usize::from(level)) {
            *count += entries;
        }
    }

    fn level(&self) -> u8 {
        let most =
            (0_u8..).zip(self.counts).filter(|(_, count)| *count > 0).max_by_key(|(level, count)| (*count, *level));
        most.map_or(LEVEL_ABSENT, |(level, _)| level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::TurnRow;

    fn report(entries: u64, levels: Vec<LevelColumn>) -> ReplayReport {
        ReplayReport { turns: vec![TurnRow { entries, ..TurnRow::default() }], levels, ..ReplayReport::default() }
    }

    #[test]
    fn a_small_session_is_shown_entry_by_entry() {
        let column = LevelColumn::of(3, [0, 0, 4, 4, 4, 1, 0]);
        let map = condense(&report(6, vec![column]));
        assert_eq!((map.entries, map.per_row), (6, 1));
        assert_eq!(map.columns, [(3, vec![(0, 2), (4, 3), (1, 1)])], "nothing beyond the record");
    }

    #[test]
    fn a_long_session_shows_what_most_entries_of_a_row_are() {
        // 5,000 entries, three to a row: cleared, cleared, verbatim | condensed, cleared, verbatim | verbatim …
        let column = LevelColumn::of(9, [4, 4, 0, 2, 4, 0].into_iter().chain([0; 4_000]));
        let map = condense(&report(5_000, vec![column]));
        assert_eq!(map.per_row, 3);
        assert_eq!(map.columns[0].1, [(4, 2), (0, 1_334)]);
        let absent = condense(&report(5_000, vec![LevelColumn::of(1, [255, 77, 255])]));
        assert_eq!(absent.columns[0].1, [(255, 1)]);
    }

    #[test]
    fn many_passes_keep_the_last() {
        let levels: Vec<LevelColumn> = (1..=1_301).map(|turn| LevelColumn::of(turn, [0])).collect();
        let map = condense(&report(1, levels));
        assert!(map.columns.len() <= MAX_COLUMNS);
        assert_eq!(map.columns.last().map(|column| column.0), Some(1_301));
        assert_eq!(condense(&report(0, Vec::new())).columns, []);
    }
}
