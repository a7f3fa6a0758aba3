//! Line plots as inline SVG, complete without scripts.
//!
//! All plots of a page share [`WIDTH`], [`LEFT`] and [`RIGHT`], so that a turn stands at the same place in each.

use std::fmt::Write as _;

use super::numbers::{escape, short, thousands};
use crate::economics::Money;

/// Width of a plot in its own units.
pub(super) const WIDTH: f64 = 1000.0;
/// Where the plotting area begins, room for the labels of the y axis.
pub(super) const LEFT: f64 = 84.0;
/// Room for labels to the right of the plotting area.
pub(super) const RIGHT: f64 = 172.0;
/// Room above it.
pub(super) const TOP: f64 = 16.0;
/// Room below it for the x axis.
pub(super) const BOTTOM: f64 = 44.0;

/// What the y axis counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Tokens,
    Entries,
    /// Microdollars.
    Money,
}

/// The coordinates of one plot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Height in its own units.
    pub(super) height: f64,
    /// Number of the last turn; turn `n` owns the n-th of so many equal strips.
    pub(super) turns: u64,
    /// Value at the top.
    pub(super) max: u64,
    /// Zero is at the top instead.
    pub(super) downward: bool,
}

/// A line with a label at its right end.
pub(super) struct Label {
    /// Where the label would like to be.
    pub(super) y: f64,
    /// Its text.
    pub(super) text: String,
    /// Its class.
    pub(super) class: &'static str,
}

impl Frame {
    /// The middle of a turn's strip.
    pub(super) fn x(&self, turn: u64) -> f64 {
        LEFT + (turn as f64 - 0.5) / self.turns.max(1) as f64 * (WIDTH - LEFT - RIGHT)
    }

    pub(super) fn y(&self, value: u64) -> f64 {
        let room = self.height - TOP - BOTTOM;
        let share = (value as f64 / self.max.max(1) as f64).min(1.0);
        if self.downward { TOP + share * room } else { self.height - BOTTOM - share * room }
    }

    /// The opening tag, title and description.
    pub(super) fn open(&self, id: &str, title: &str, description: &str) -> String {
        format!(
            "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\"><title id=\"{id}-t\">{}</title>\
             <desc id=\"{id}-d\">{}</desc>",
            self.height,
            escape(title),
            escape(description)
        )
    }

    /// Grid, ticks and axis titles.
    pub(super) fn axes(&self, unit: Unit, y_title: &str) -> String {
        let mut svg = String::from("<g class=\"axes\">");
        let (right, bottom) = (WIDTH - RIGHT, self.height - BOTTOM);
        let step = step(self.max, 5);
        for value in (0..=self.max).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            let y = self.y(value);
            let text = match unit {
                Unit::Tokens => short(value),
                Unit::Entries => thousands(value),
                Unit::Money => dollars(value, step),
            };
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"tick end\" x=\"{:.1}\" y=\"{:.1}\">{text}</text>",
                LEFT - 8.0,
                y + 4.0
            );
        }
        let across = step_whole(self.turns, 10);
        let mut turn = 1;
        while turn <= self.turns {
            let x = self.x(turn);
            let _ = write!(
                svg,
                "<line class=\"axis\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom}\" y2=\"{:.1}\"/>\
                 <text class=\"tick middle\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                bottom + 4.0,
                bottom + 18.0,
                thousands(turn)
            );
            turn = if turn == 1 { across.max(2) } else { turn.saturating_add(across) };
        }
        let middle = (LEFT + right) / 2.0;
        let half = (TOP + bottom) / 2.0;
        let _ = write!(
            svg,
            "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{bottom}\" y2=\"{bottom}\"/>\
             <text class=\"axis-title middle\" x=\"{middle:.1}\" y=\"{:.1}\">turn (model call)</text>\
             <text class=\"axis-title middle\" transform=\"translate(13 {half:.1}) rotate(-90)\">{}</text></g>",
            self.height - 6.0,
            escape(y_title)
        );
        svg
    }

    /// Labels beside the right edge, moved apart where they would overlap.
    pub(super) fn labels(&self, mut labels: Vec<Label>) -> String {
        const LINE: f64 = 15.0;
        labels.sort_by(|a, b| a.y.total_cmp(&b.y));
        let mut floor = TOP - 4.0;
        for label in &mut labels {
            label.y = label.y.max(floor);
            floor = label.y + LINE;
        }
        let mut ceiling = self.height - BOTTOM + 4.0;
        for label in labels.iter_mut().rev() {
            label.y = label.y.min(ceiling);
            ceiling = label.y - LINE;
        }
        let mut svg = String::new();
        for Label { y, text, class } in labels {
            let x = WIDTH - RIGHT + 8.0;
            let _ =
                write!(svg, "<text class=\"label {class}\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>", y + 4.0, escape(&text));
        }
        svg
    }

    /// A horizontal line across the plot.
    pub(super) fn level(&self, value: u64, class: &str) -> String {
        let y = self.y(value);
        format!("<line class=\"{class}\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>", WIDTH - RIGHT)
    }
}

/// `M … L …` through the points, without those that no screen could show.
pub(super) fn line_path(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (x, y) in thin(points) {
        let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' });
    }
    path
}

/// Of the points in a strip half a unit wide: the first, the lowest, the highest and the last, in their order.
fn thin(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let strip = |point: &(f64, f64)| (point.0 * 2.0).floor();
    let mut kept = Vec::new();
    for group in points.chunk_by(|a, b| strip(a) == strip(b)) {
        if group.len() <= 4 {
            kept.extend_from_slice(group);
            continue;
        }
        let at = |order: fn(&f64, &f64) -> std::cmp::Ordering| {
            group.iter().enumerate().min_by(|(_, a), (_, b)| order(&a.1, &b.1)).map_or(0, |(at, _)| at)
        };
        let mut places = [0, at(f64::total_cmp), at(|a, b| b.total_cmp(a)), group.len() - 1];
        places.sort_unstable();
        let mut last = usize::MAX;
        for place in places {
            if place != last {
                kept.extend(group.get(place));
            }
            last = place;
        }
    }
    kept
}

/// A round step (1, 2 or 5 times a power of ten) that divides `max` into at most about `parts`.
fn step(max: u64, parts: u64) -> u64 {
    let least = max.div_ceil(parts).max(1);
    let mut power: u64 = 1;
    loop {
        for factor in [1, 2, 5] {
            let step = power.saturating_mul(factor);
            if step >= least {
                return step;
            }
        }
        match power.checked_mul(10) {
            Some(next) => power = next,
            None => return u64::MAX,
        }
    }
}

fn step_whole(turns: u64, parts: u64) -> u64 {
    step(turns, parts)
}

/// A value at the top of the axis a little above `max`.
pub(super) fn headroom(max: u64) -> u64 {
    max.saturating_add(max / 20).max(1)
}

/// An amount beside a plot: whole dollars from $1,000 on, cents from ten cents on.
pub(super) fn brief(cost: Money) -> String {
    match cost.microdollars() {
        micro @ 1_000_000_000.. => format!("${}", thousands((micro + 500_000) / 1_000_000)),
        micro @ 100_000.. => {
            let cents = (micro + 5_000) / 10_000;
            format!("${}.{:02}", cents / 100, cents % 100)
        }
        _ => cost.to_string(),
    }
}

/// Microdollars on an axis with ticks `step` apart.
fn dollars(value: u64, step: u64) -> String {
    let (whole, fraction) = (value / 1_000_000, value % 1_000_000);
    let decimals = match step {
        1_000_000.. => return format!("${}", thousands(whole)),
        10_000.. => 2,
        1_000.. => 3,
        _ => 6,
    };
    format!("${}.{:0decimals$}", thousands(whole), fraction / 10_u64.pow(6 - decimals as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        assert_eq!([1, 5, 6, 100, 150, 200_000, 1_234_567].map(|max| step(max, 5)), [1, 1, 2, 20, 50, 50_000, 500_000]);
        assert_eq!(step(u64::MAX, 1), u64::MAX);
        assert_eq!((dollars(1_500_000, 500_000), dollars(20_000_000, 5_000_000)), ("$1.50".into(), "$20".into()));
        assert_eq!(dollars(120, 20), "$0.000120");
        let shown = |micro| brief(Money::from_microdollars(micro));
        assert_eq!([80, 289_000, 10_250_000, 2_878_499_999].map(shown), ["$0.000080", "$0.29", "$10.25", "$2,878"]);
    }

    #[test]
    fn a_dense_line_keeps_its_peaks() {
        let dense: Vec<(f64, f64)> =
            (0..10_000).map(|n| (f64::from(n) / 1e5, if n == 77 { 99.0 } else { 1.0 })).collect();
        let thinned = thin(&dense);
        assert!(thinned.len() <= 4 && thinned.iter().any(|point| point.1 > 98.0));
        assert_eq!(thinned.first(), dense.first());
        assert_eq!(thinned.last(), dense.last());
        assert_eq!(line_path(&[(1.0, 2.0), (3.0, 4.0)]), "M1.0 2.0L3.0 4.0");
    }

    #[test]
    fn labels_do_not_overlap() {
        let frame = Frame { height: 200.0, turns: 1, max: 10, downward: false };
        let labels = (0..4).map(|n| Label { y: 100.0, text: n.to_string(), class: "c" }).collect();
        let svg = frame.labels(labels);
        let ys: Vec<f64> =
            svg.split("y=\"").skip(1).map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect();
        assert!(ys.windows(2).all(|pair| pair[1] - pair[0] >= 14.9), "{ys:?}");
    }
}
