//! Aligned columns of text.

use super::numbers::width;
use super::table::{Style, wrapped};

/// On which side of its column a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

struct Column {
    head: String,
    align: Align,
    limit: usize,
}

/// A table whose columns are as wide as their widest cell, up to a limit beyond which cells wrap.
pub(super) struct Table {
    columns: Vec<Column>,
    rows: Vec<(Vec<Vec<String>>, bool)>,
}

/// Between two columns.
const GAP: &str = "  ";

impl Table {
    /// Columns by head, side and widest width.
    pub(super) fn new(columns: &[(&str, Align, usize)]) -> Self {
        let column = |(head, align, limit): &(&str, Align, usize)| Column {
            head: (*head).to_owned(),
            align: *align,
            limit: (*limit).max(width(head)).max(1),
        };
        Self { columns: columns.iter().map(column).collect(), rows: Vec::new() }
    }

    /// One more row; missing cells are empty.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut cells = cells.into_iter();
        let wrap = |column: &Column| wrapped(&cells.next().unwrap_or_default(), column.limit);
        self.rows.push((self.columns.iter().map(wrap).collect(), false));
    }

    /// The last row is one to look at.
    pub(super) fn mark_last(&mut self) {
        if let Some((_, marked)) = self.rows.last_mut() {
            *marked = true;
        }
    }

    /// The table, a line feed after every line, no blanks at the ends of lines.
    pub(super) fn text(&self, style: Style) -> String {
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| {
                let cells = self.rows.iter().filter_map(|(cells, _)| cells.get(at)).flatten().map(|line| width(line));
                cells.fold(width(&column.head), usize::max)
            })
            .collect();
        let line = |cells: &[&str]| {
            let mut text = String::new();
            for (at, ((cell, column), room)) in cells.iter().zip(&self.columns).zip(&widths).enumerate() {
                text.push_str(if at > 0 { GAP } else { "" });
                let blanks = " ".repeat(room.saturating_sub(width(cell)));
                match column.align {
                    Align::Left => text.extend([cell, blanks.as_str()]),
                    Align::Right => text.extend([blanks.as_str(), cell]),
                }
            }
            text.truncate(text.trim_end().len());
            text.replace('\u{a0}', " ")
        };
        let heads: Vec<&str> = self.columns.iter().map(|column| column.head.as_str()).collect();
        let mut text = style.bold(&line(&heads));
        text.push('\n');
        for (cells, marked) in &self.rows {
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for at in 0..height {
                let parts: Vec<&str> = cells.iter().map(|cell| cell.get(at).map_or("", String::as_str)).collect();
                let part = line(&parts);
                text.push_str(&if *marked { style.warning(&part) } else { part });
                text.push('\n');
            }
        }
        text
    }
}
