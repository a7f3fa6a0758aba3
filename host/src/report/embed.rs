//! What a page's script is told, as JSON inside the page.

use serde::Serialize;

use super::chart::{BOTTOM, LEFT, RIGHT, TOP, WIDTH};
use super::heatmap::HeatMap;
use super::model::{LEVEL_NAMES, ReplayReport};
use super::numbers::percent;
use crate::economics::Money;

/// Turns the script is told about; of more, every n-th.
const MAX_SAMPLES: usize = 4_000;

/// Every `n`-th of `items` so that at most `limit` and the last remain.
pub(super) fn sampled<T>(items: &[T], limit: usize) -> impl Iterator<Item = (usize, &T)> {
    let stride = items.len().div_ceil(limit).max(1);
    let last = items.len().saturating_sub(1);
    items.iter().enumerate().filter(move |(at, _)| at.is_multiple_of(stride) || *at == last)
}

/// What the script is told.
#[derive(Serialize)]
struct Data<'a> {
    width: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    usable: u64,
    levels: [&'static str; LEVEL_NAMES.len()],
    turn: Vec<u64>,
    tokens: Vec<u64>,
    entries: Vec<u64>,
    cached: Vec<u64>,
    cost: Vec<u64>,
    baselines: Vec<(&'a str, Vec<u64>)>,
    passes: Vec<PassData<'a>>,
    heat: &'a HeatMap,
}

#[derive(Serialize)]
struct PassData<'a> {
    turn: u64,
    reasons: &'a [String],
    before: u64,
    after: u64,
    decided: String,
    kept: String,
    detail: &'a [String],
}

/// The data as JSON that cannot end the element it stands in.
pub(super) fn data(report: &ReplayReport, heat: &HeatMap) -> String {
    let cumulative = report.cumulative();
    let samples: Vec<usize> = sampled(&report.turns, MAX_SAMPLES).map(|(at, _)| at).collect();
    let turns = || samples.iter().filter_map(|at| report.turns.get(*at));
    let micro = |costs: &[Money]| {
        samples.iter().filter_map(|at| costs.get(*at)).map(|cost| cost.microdollars()).collect::<Vec<_>>()
    };
    let passes = report.passes.iter().map(|row| PassData {
        turn: row.turn,
        reasons: &row.reasons,
        before: row.tokens_before,
        after: row.tokens_after,
        decided: row.decided.words(),
        kept: percent(row.prefix_kept_bytes, row.bytes_before),
        // A tooltip shows a few lines; all of them are in the table.
        detail: row.detail.get(..8).unwrap_or(&row.detail),
    });
    let data = Data {
        width: WIDTH,
        left: LEFT,
        right: RIGHT,
        top: TOP,
        bottom: BOTTOM,
        usable: report.usable,
        levels: LEVEL_NAMES,
        turn: turns().map(|turn| turn.turn).collect(),
        tokens: turns().map(|turn| turn.tokens).collect(),
        entries: turns().map(|turn| turn.entries).collect(),
        cached: turns().map(|turn| turn.cached).collect(),
        cost: micro(&cumulative),
        baselines: report.baselines.iter().map(|row| (row.name.as_str(), micro(&row.cumulative))).collect(),
        passes: passes.collect(),
        heat,
    };
    let json = serde_json::to_string(&data).unwrap_or_else(|_| "null".to_owned());
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => safe.push_str("\\u003c"),
            '>' => safe.push_str("\\u003e"),
            '&' => safe.push_str("\\u0026"),
            '\u{2028}' => safe.push_str("\\u2028"),
            '\u{2029}' => safe.push_str("\\u2029"),
            c => safe.push(c),
        }
    }
    safe
}
