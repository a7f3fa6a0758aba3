//! The three plots of a session.

use std::fmt::Write as _;

use super::chart::{Frame, LEFT, Label, RIGHT, TOP, Unit, WIDTH, brief, headroom, line_path};
use super::heatmap::HeatMap;
use super::model::{LEVEL_NAMES, PassRow, ReplayReport};
use super::numbers::{escape, short, thousands};
use crate::economics::Money;

/// Passes that get a mark of their own; more are drawn as one path.
const MAX_MARKS: usize = 120;

/// Dash patterns and colours of the baselines, as classes.
const LINES: [&str; 3] = ["line-a", "line-b", "line-c"];

/// The class of the baseline at `index`.
pub(super) fn line_class(index: usize) -> &'static str {
    LINES.get(index % LINES.len()).copied().unwrap_or("line-a")
}

fn last_turn(report: &ReplayReport) -> u64 {
    report.turns.last().map_or(1, |turn| turn.turn).max(1)
}

/// Fill of the window over turns.
pub(super) fn fill(report: &ReplayReport, id: &str) -> String {
    let sent = report.turns.iter().map(|turn| turn.tokens);
    let peak = sent.chain(report.passes.iter().map(|pass| pass.tokens_before)).max().unwrap_or(0);
    // A session far below its window would be a line along the bottom.
    let roomy = peak < report.window / 5;
    let max = headroom(if roomy { peak.saturating_add(peak / 2) } else { peak.max(report.window) });
    let frame = Frame { height: 360.0, turns: last_turn(report), max, downward: false };
    let crowded = if report.passes.len() > MAX_MARKS { " crowded" } else { "" };
    let description = format!(
        "{} model calls. The largest view has {} tokens; the window has {}. {} passes.",
        thousands(report.turns.len() as u64),
        thousands(report.totals.largest_tokens.max(report.turns.iter().map(|turn| turn.tokens).max().unwrap_or(0))),
        thousands(report.window),
        report.passes.len()
    );
    let mut svg = frame.open(id, "Fill of the window over turns", &description);
    svg.push_str(&frame.axes(Unit::Tokens, "tokens in the view"));

    let points = sawtooth(report, &frame);
    let line = line_path(&points);
    if let (Some(first), Some(last)) = (points.first(), points.last()) {
        let bottom = frame.y(0);
        let _ =
            write!(svg, "<path class=\"area\" d=\"{line}L{:.1} {bottom:.1}L{:.1} {bottom:.1}Z\"/>", last.0, first.0);
    }
    let limits =
        [("window", report.window), ("usable", report.usable), ("trigger", report.trigger), ("target", report.target)];
    let mut labels = Vec::new();
    for (name, value) in limits.into_iter().filter(|(_, value)| *value > 0 && *value <= max) {
        svg.push_str(&frame.level(value, &format!("limit {name}")));
        labels.push(Label { y: frame.y(value), text: format!("{name} {}", short(value)), class: limit_class(name) });
    }
    let above: Vec<String> = limits
        .into_iter()
        .filter(|(_, value)| *value > max)
        .map(|(name, value)| format!("{name} {}", short(value)))
        .collect();
    let _ = write!(svg, "<path class=\"line-policy{crowded}\" d=\"{line}\"/>");
    if let [only] = points.as_slice() {
        let _ = write!(svg, "<circle class=\"dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"4.5\"/>", only.0, only.1);
    }
    svg.push_str(&marks(report, &frame));
    svg.push_str(&frame.labels(labels));
    let mut asides = Vec::new();
    if !above.is_empty() {
        asides.push(format!("above this plot: {}", above.join(", ")));
    }
    match report.passes.len() {
        0 => asides.push("no pass".to_owned()),
        count if count > MAX_MARKS => {
            asides.push(format!("{} passes, too many to mark one by one", thousands(count as u64)))
        }
        _ => {}
    }
    if !asides.is_empty() {
        let x = LEFT + 10.0;
        let _ = write!(
            svg,
            "<text class=\"aside\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
            TOP - 2.0,
            escape(&asides.join("; "))
        );
    }
    svg.push_str("</svg>");
    svg
}

fn limit_class(name: &str) -> &'static str {
    match name {
        "window" => "c-window",
        "usable" => "c-usable",
        "trigger" => "c-trigger",
        _ => "c-target",
    }
}

/// What was sent turn by turn; where a pass ran, first what would have been.
fn sawtooth(report: &ReplayReport, frame: &Frame) -> Vec<(f64, f64)> {
    let mut points = Vec::with_capacity(report.turns.len() + report.passes.len());
    let mut passes = report.passes.iter().peekable();
    for turn in &report.turns {
        let x = frame.x(turn.turn);
        while let Some(pass) = passes.next_if(|pass| pass.turn <= turn.turn) {
            points.push((x, frame.y(pass.tokens_before)));
            points.push((x, frame.y(pass.tokens_after)));
        }
        points.push((x, frame.y(turn.tokens)));
    }
    points.dedup();
    points
}

fn marks(report: &ReplayReport, frame: &Frame) -> String {
    let place = |pass: &PassRow| (frame.x(pass.turn), frame.y(pass.tokens_before), frame.y(pass.tokens_after));
    let mut svg = String::from("<g class=\"passes\">");
    if report.passes.len() > MAX_MARKS {
        let mut path = String::new();
        for pass in &report.passes {
            let (x, before, after) = place(pass);
            let _ = write!(path, "M{x:.1} {before:.1}V{after:.1}");
        }
        let _ = write!(svg, "<path class=\"drop crowded\" d=\"{path}\"/>");
    } else {
        for pass in &report.passes {
            let (x, before, after) = place(pass);
            let class = if pass.ladder { "mark ladder" } else { "mark" };
            let title = format!(
                "Turn {}: {}, {} to {} tokens, {}",
                thousands(pass.turn),
                pass.reasons.join(", "),
                thousands(pass.tokens_before),
                thousands(pass.tokens_after),
                pass.decided.words()
            );
            let _ = write!(
                svg,
                "<g class=\"{class}\" data-turn=\"{}\"><title>{}</title><path class=\"drop\" d=\"M{x:.1} {before:.1}V{after:.1}\"/>\
                 <path class=\"head\" d=\"M{:.1} {:.1}h9l-4.5 7.5z\"/></g>",
                pass.turn,
                escape(&title),
                x - 4.5,
                before - 10.0
            );
        }
    }
    svg.push_str("</g>");
    svg
}

/// Axes of the heat map, whose cells a script paints onto the canvas that lies over them.
pub(super) fn heat(report: &ReplayReport, map: &HeatMap, id: &str) -> String {
    let frame = Frame { height: 400.0, turns: last_turn(report), max: map.entries.max(1), downward: true };
    let description = format!(
        "One column for each turn, one row for {} of the {} entries, oldest at the top. The table below has the counts.",
        if map.per_row == 1 { "each".to_owned() } else { format!("every {}", map.per_row) },
        thousands(map.entries)
    );
    let mut svg = frame.open(id, "Level of every entry over time", &description);
    svg.push_str(&frame.axes(Unit::Entries, "entry, oldest at the top"));
    let used = map.columns.iter().flat_map(|(_, runs)| runs.iter().map(|(level, _)| *level));
    let used: std::collections::BTreeSet<u8> = used.chain([0]).collect();
    for (row, level) in used.iter().copied().filter(|level| usize::from(*level) < LEVEL_NAMES.len()).enumerate() {
        let y = TOP + 6.0 + row as f64 * 22.0;
        let left = WIDTH - RIGHT + 12.0;
        let name = LEVEL_NAMES.get(usize::from(level)).copied().unwrap_or("");
        let _ = write!(
            svg,
            "<rect class=\"cell level-{level}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"14\" height=\"14\" rx=\"3\"/>\
             <text class=\"label\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
            y - 8.0,
            left + 21.0,
            y + 4.0
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Cumulative cost of the policy and its baselines.
pub(super) fn cost(report: &ReplayReport, id: &str) -> String {
    let policy = report.cumulative();
    let ends = report.baselines.iter().filter_map(|baseline| baseline.cumulative.last()).chain(policy.last());
    let max = headroom(ends.map(|cost| cost.microdollars()).max().unwrap_or(0));
    let frame = Frame { height: 340.0, turns: last_turn(report), max, downward: false };
    let description = format!(
        "After {} turns the policy has cost {}. {}",
        thousands(report.turns.len() as u64),
        report.totals.cost,
        report
            .baselines
            .iter()
            .map(|baseline| format!("{}: {}.", baseline.name, baseline.totals.cost))
            .collect::<Vec<_>>()
            .join(" ")
    );
    let mut svg = frame.open(id, "Cumulative cost of the policy and of going without", &description);
    svg.push_str(&frame.axes(Unit::Money, "cost so far"));
    let mut labels = Vec::new();
    let mut draw = |costs: &[Money], name: &str, class: &'static str| {
        let points: Vec<(f64, f64)> = report
            .turns
            .iter()
            .zip(costs)
            .map(|(turn, cost)| (frame.x(turn.turn), frame.y(cost.microdollars())))
            .collect();
        let Some(last) = points.last() else { return };
        let _ = write!(svg, "<path class=\"{class}\" d=\"{}\"/>", line_path(&points));
        if points.len() == 1 {
            let _ = write!(svg, "<circle class=\"dot {class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\"/>", last.0, last.1);
        }
        let end = costs.last().copied().unwrap_or_default();
        labels.push(Label { y: last.1, text: format!("{} {}", clipped(name), brief(end)), class });
    };
    for (index, baseline) in report.baselines.iter().enumerate() {
        draw(&baseline.cumulative, &baseline.name, line_class(index));
    }
    draw(&policy, "this policy", "line-policy");
    svg.push_str(&frame.labels(labels));
    svg.push_str("</svg>");
    svg
}

/// A name short enough to stand beside a plot.
fn clipped(name: &str) -> String {
    if name.chars().count() <= 14 {
        return name.to_owned();
    }
    name.chars().take(13).chain(['…']).collect()
}
