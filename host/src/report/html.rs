//! The report as one self-contained page.
//!
//! No resource outside the file is named and none could be loaded (the page carries a content policy that forbids it),
//! so it works from a disk, in a mail and in ten years. Line plots are SVG and need no script; the heat map is painted
//! by a script onto a canvas, with a table of the same counts below it. All foreign text is escaped, and data for the
//! script is JSON in which no `<` occurs.

use std::fmt::Write as _;
use std::io;

use super::embed::{data, sampled};
use super::heatmap::{HeatMap, condense};
use super::model::{LEVEL_NAMES, PassRow, ReplayReport};
use super::numbers::{escape, percent, thousands, versus};
use super::plots::{cost, fill, heat, line_class};
use super::table::{price_words, summary_rows};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Rows of the fallback tables; of more, every n-th.
const MAX_TABLE_ROWS: usize = 200;

/// Writes the page for `reports`, one section each.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(reports: &[ReplayReport], mut out: impl io::Write) -> io::Result<()> {
    out.write_all(page(reports).as_bytes())
}

/// The page for `reports`, one section each.
#[must_use]
pub fn page(reports: &[ReplayReport]) -> String {
    let title = match reports {
        [only] => format!("{} · Foreshorten replay", only.session),
        _ => format!("{} sessions · Foreshorten replay", reports.len()),
    };
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
        escape(&title)
    );
    match reports {
        [] => html.push_str("<p class=\"empty\">No session was replayed.</p>\n"),
        [only] => html.push_str(&section(only, 0, true)),
        several => {
            html.push_str(&overview(several));
            for (index, report) in several.iter().enumerate() {
                let open = if index == 0 { " open" } else { "" };
                let _ = writeln!(
                    html,
                    "<details class=\"session\" id=\"s{index}\"{open}><summary>{}</summary>\n{}</details>",
                    escape(&report.session),
                    section(report, index, false)
                );
            }
        }
    }
    let _ = write!(
        html,
        "</main>\n<div id=\"tip\" role=\"status\" hidden></div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    );
    html
}

fn overview(reports: &[ReplayReport]) -> String {
    let mut html = format!(
        "<header><p class=\"eyebrow\">Foreshorten replay</p><h1>{} sessions</h1></header>\n<div class=\"scroll\"><table class=\"data\">\
         <thead><tr><th class=\"text\">session</th><th>turns</th><th>passes</th><th>tokens sent</th><th>prefix</th><th>cost</th>\
         <th>no policy</th></tr></thead><tbody>\n",
        reports.len()
    );
    for (index, report) in reports.iter().enumerate() {
        let totals = &report.totals;
        let without = report.baselines.first().and_then(|first| first.totals.cost.ratio_thousandths(totals.cost));
        let _ = writeln!(
            html,
            "<tr><td class=\"text\"><a href=\"#s{index}\">{}</a></td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&report.session),
            thousands(totals.turns),
            thousands(report.passes.len() as u64),
            thousands(totals.sent_tokens),
            percent(totals.prefix_bytes, totals.bytes),
            totals.cost,
            without.map_or_else(|| "–".to_owned(), versus)
        );
    }
    html.push_str("</tbody></table></div>\n");
    html
}

fn section(report: &ReplayReport, index: usize, alone: bool) -> String {
    let id = format!("r{index}");
    let map = condense(report);
    let mut html = format!("<section class=\"report\" id=\"{id}\" aria-label=\"{}\">\n", escape(&report.session));
    html.push_str(&head(report, alone));
    if report.turns.is_empty() {
        html.push_str("<p class=\"empty\">No model call is recorded in this session, so there was nothing to play.</p>\n</section>\n");
        return html;
    }
    html.push_str(&cards(report));
    figure(
        &mut html,
        "Fill of the window",
        "What each model call was sent. A triangle marks a pass, and the drop below it what the pass took away.",
        &fill(report, &format!("{id}-fill")),
        "",
        "",
    );
    let seen = !report.levels.is_empty() || report.passes.is_empty();
    if seen {
        figure(
            &mut html,
            "Level of every entry over time",
            &format!(
                "Each row is {}, each column a turn. Levels change at passes only, and never fall.",
                rows_are(&map)
            ),
            &heat(report, &map, &format!("{id}-heat")),
            "<canvas class=\"heat\" aria-hidden=\"true\"></canvas>",
            "",
        );
    }
    html.push_str("<noscript><p class=\"hint\">The heat map needs scripts; its counts are in the tables at the end.</p></noscript>\n");
    figure(
        &mut html,
        "Cumulative cost",
        "The policy against the same session without it. Input at cache prices, and output.",
        &cost(report, &format!("{id}-cost")),
        "",
        &legend(report),
    );
    html.push_str(&passes(report));
    html.push_str(&summary(report));
    html.push_str(&fallback(report));
    let _ = writeln!(html, "<footer>{}</footer>", escape(&price_words(&report.price)));
    let _ =
        writeln!(html, "<script type=\"application/json\" class=\"data\">{}</script>\n</section>", data(report, &map));
    html
}

fn rows_are(map: &HeatMap) -> String {
    if map.per_row == 1 {
        "an entry".to_owned()
    } else {
        format!("{} entries (the level most are at)", thousands(map.per_row))
    }
}

fn head(report: &ReplayReport, alone: bool) -> String {
    let mut html = String::from("<header>");
    if alone {
        let _ = write!(html, "<p class=\"eyebrow\">Foreshorten replay</p><h1>{}</h1>", escape(&report.session));
    }
    let _ = write!(html, "<p class=\"meta item\"><b>Format</b>{}", escape(&report.format));
    if !report.format_reason.is_empty() {
        let _ = write!(html, " <span class=\"soft\">({})</span>", escape(&report.format_reason));
    }
    let _ = write!(
        html,
        "</p><p class=\"meta item\"><b>Policy</b>{}</p><p class=\"meta item\"><b>Window</b>{} tokens, {} usable; compacts above {} down to {}</p>",
        escape(&report.policy),
        thousands(report.window),
        thousands(report.usable),
        thousands(report.trigger),
        thousands(report.target)
    );
    for note in &report.notes {
        let _ = write!(html, "<p class=\"meta note\">{}</p>", escape(note));
    }
    for (name, metrics) in &report.plugins.0 {
        let did = escape(&metrics.to_string());
        let _ = write!(html, "<p class=\"meta item\"><b>Plugin</b>{}: {did}</p>", escape(name));
    }
    html.push_str("</header>\n");
    html
}

fn cards(report: &ReplayReport) -> String {
    let totals = &report.totals;
    let without = report.baselines.first();
    let against =
        without.and_then(|first| totals.cost.ratio_thousandths(first.totals.cost).map(|ratio| (first, ratio)));
    let refused = without.map_or(0, |first| first.totals.over_window);
    let largest = format!("{} of usable", percent(totals.largest_tokens, report.usable));
    let turns =
        if totals.turns == 1 { "in 1 turn".to_owned() } else { format!("in {} turns", thousands(totals.turns)) };
    let passes = match report.ladders() {
        0 => turns,
        count => format!("{turns}; {} needed the last resorts", thousands(count as u64)),
    };
    let cards = [
        (
            "Cost",
            totals.cost.to_string(),
            against.map_or_else(String::new, |(first, ratio)| format!("{} against {}", versus(ratio), first.name)),
        ),
        ("Passes", thousands(report.passes.len() as u64), passes),
        (
            "Tokens sent",
            thousands(totals.sent_tokens),
            format!("{} from the cache", percent(totals.cached, totals.sent_tokens)),
        ),
        (
            "Prefix kept",
            percent(totals.prefix_bytes, totals.previous_bytes),
            format!("of the request before; {} of all bytes sent", percent(totals.prefix_bytes, totals.bytes)),
        ),
        (
            "Largest request",
            thousands(totals.largest_tokens),
            if refused > 0 {
                format!("{largest}; without policy {} would not fit", thousands(refused))
            } else {
                largest
            },
        ),
    ];
    let mut html = String::from("<dl class=\"cards\">\n");
    for (name, value, aside) in cards {
        let aside = aside.replace(" %", "\u{a0}%");
        let _ = writeln!(
            html,
            "<div><dt>{name}</dt><dd>{}</dd><dd class=\"soft\">{}</dd></div>",
            escape(&value),
            escape(&aside)
        );
    }
    html.push_str("</dl>\n");
    html
}

fn figure(html: &mut String, title: &str, caption: &str, svg: &str, over: &str, below: &str) {
    let _ = writeln!(
        html,
        "<figure><figcaption><h2>{title}</h2><p>{caption}</p></figcaption>\n<div class=\"scroll\"><div class=\"plot\">{svg}{over}\
         <div class=\"cross\" hidden></div></div></div>{below}</figure>"
    );
}

fn legend(report: &ReplayReport) -> String {
    let swatch = |class: &str, name: &str| {
        format!(
            "<li><svg viewBox=\"0 0 28 10\" width=\"28\" height=\"10\" aria-hidden=\"true\"><path class=\"{class}\" d=\"M0 5H28\"/></svg>{}</li>",
            escape(name)
        )
    };
    let mut html = format!("<ul class=\"legend\">{}", swatch("line-policy", "this policy"));
    for (index, baseline) in report.baselines.iter().enumerate() {
        let name = match baseline.totals.over_window {
            0 => baseline.name.clone(),
            count => format!("{} ({} requests would be refused)", baseline.name, thousands(count)),
        };
        html.push_str(&swatch(line_class(index), &name));
    }
    html.push_str("</ul>\n");
    html
}

fn passes(report: &ReplayReport) -> String {
    let mut html = String::from("<h2>Passes</h2>\n");
    if report.passes.is_empty() {
        let largest = report.turns.iter().map(|turn| turn.tokens).max().unwrap_or(0);
        let _ = writeln!(
            html,
            "<p class=\"empty\">No pass: the largest view had {} tokens, the trigger is {}.</p>",
            thousands(largest),
            thousands(report.trigger)
        );
        return html;
    }
    html.push_str(
        "<div class=\"scroll\"><table class=\"data passes-table\"><thead><tr><th>turn</th><th class=\"text\">reason</th><th>tokens before</th>\
         <th>after</th><th class=\"text\">decided</th><th>from entry</th><th>prefix kept</th><th>repaid after</th>\
         <th class=\"text\">detail</th></tr></thead><tbody>\n",
    );
    for (at, pass) in report.passes.iter().enumerate() {
        html.push_str(&pass_row(at, pass));
    }
    html.push_str("</tbody></table></div>\n");
    html
}

fn pass_row(at: usize, pass: &PassRow) -> String {
    let mut reason = escape(&pass.reasons.join(", "));
    if pass.aggressive {
        reason.push_str(" <span class=\"badge\">aggressive</span>");
    }
    if pass.ladder {
        reason.push_str(" <span class=\"badge warn\">last resorts</span>");
    }
    let repaid = match pass.break_even.and_then(|even| even.turns_tenths) {
        None => "–".to_owned(),
        Some(0) => "at once".to_owned(),
        Some(tenths) => format!("{} turns", thousands(tenths.div_ceil(10))),
    };
    let detail = match pass.detail.as_slice() {
        [] => String::new(),
        lines => {
            let items: String = lines.iter().map(|line| format!("<li>{}</li>", escape(line))).collect();
            let word = if lines.len() == 1 { "line" } else { "lines" };
            format!("<details><summary>{} {word}</summary><ul>{items}</ul></details>", thousands(lines.len() as u64))
        }
    };
    format!(
        "<tr tabindex=\"0\" data-pass=\"{at}\"><td>{}</td><td class=\"text\">{reason}</td><td>{}</td><td>{}</td><td class=\"text\">{}</td>\
         <td>{}</td><td>{}</td><td>{repaid}</td><td class=\"text\">{detail}</td></tr>\n",
        thousands(pass.turn),
        thousands(pass.tokens_before),
        thousands(pass.tokens_after),
        pass.decided.words(),
        pass.first_changed.map_or_else(|| "–".to_owned(), thousands),
        percent(pass.prefix_kept_bytes, pass.bytes_before)
    )
}

fn summary(report: &ReplayReport) -> String {
    let mut html = String::from(
        "<h2>Against going without</h2>\n<div class=\"scroll\"><table class=\"data\"><thead><tr><th class=\"text\"></th><th>this policy</th>",
    );
    for baseline in &report.baselines {
        let _ = write!(html, "<th>{}</th>", escape(&baseline.name));
    }
    html.push_str("</tr></thead><tbody>\n");
    for (name, cells) in summary_rows(report) {
        let _ = write!(html, "<tr><th scope=\"row\" class=\"text\">{}</th>", escape(&name));
        for cell in cells {
            let _ = write!(html, "<td>{}</td>", escape(&cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    for baseline in report.baselines.iter().filter(|baseline| baseline.totals.over_window > 0) {
        let _ = writeln!(
            html,
            "<p class=\"hint\">* {} of {} requests of “{}” are larger than the window: a provider would have refused them.</p>",
            thousands(baseline.totals.over_window),
            thousands(baseline.totals.turns),
            escape(&baseline.name)
        );
    }
    html
}

/// What the plots show, as tables.
fn fallback(report: &ReplayReport) -> String {
    let mut html = String::from("<details class=\"numbers\"><summary>The plots as tables</summary>\n");
    if report.turns.len() > MAX_TABLE_ROWS {
        let stride = report.turns.len().div_ceil(MAX_TABLE_ROWS);
        let _ = writeln!(html, "<p class=\"hint\">One turn in {stride} is listed.</p>");
    }
    html.push_str(
        "<div class=\"scroll\"><table class=\"data\"><caption>Turns</caption><thead><tr><th>turn</th><th>entries</th><th>tokens</th>\
         <th>cached</th><th>not cached</th><th>cost so far</th>",
    );
    for baseline in &report.baselines {
        let _ = write!(html, "<th>{}</th>", escape(&baseline.name));
    }
    html.push_str("</tr></thead><tbody>\n");
    let cumulative = report.cumulative();
    for (at, turn) in sampled(&report.turns, MAX_TABLE_ROWS) {
        let _ = write!(
            html,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>",
            thousands(turn.turn),
            thousands(turn.entries),
            thousands(turn.tokens),
            thousands(turn.cached),
            thousands(turn.written.saturating_add(turn.uncached)),
            cumulative.get(at).copied().unwrap_or_default()
        );
        for baseline in &report.baselines {
            let cost = baseline.cumulative.get(at).map_or_else(|| "–".to_owned(), ToString::to_string);
            let _ = write!(html, "<td>{cost}</td>");
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    if !report.levels.is_empty() {
        html.push_str("<div class=\"scroll\"><table class=\"data\"><caption>Entries at each level after a pass</caption><thead><tr><th>turn</th>");
        for name in LEVEL_NAMES {
            let _ = write!(html, "<th>{name}</th>");
        }
        html.push_str("</tr></thead><tbody>\n");
        for (_, column) in sampled(&report.levels, MAX_TABLE_ROWS) {
            let _ = write!(html, "<tr><td>{}</td>", thousands(column.turn));
            for count in column.counts() {
                let _ = write!(html, "<td>{}</td>", thousands(count));
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody></table></div>\n");
    }
    html.push_str("</details>\n");
    html
}
