//! The report for a terminal: plain text, at most [`WIDTH`] columns.

use std::fmt::Write as _;

use super::data_table::{Align, Table};
use super::model::{BaselineRow, PassRow, PriceLabel, ReplayReport};
use super::numbers::{percent, plain, thousands, versus, width};
use crate::economics::{BreakEven, Money, Totals};

/// Columns no line is wider than.
pub const WIDTH: usize = 100;

/// How tables are dressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Bold heads and marked last resorts. For terminals only.
    pub colour: bool,
}

impl Style {
    pub(super) fn bold(self, text: &str) -> String {
        if self.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(super) fn warning(self, text: &str) -> String {
        if self.colour { format!("\x1b[33m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Everything about one session: head, passes, summary.
#[must_use]
pub fn report(report: &ReplayReport, style: Style) -> String {
    format!("{}\n{}\n{}", head(report, style), passes(report, style), summary(report, style))
}

/// Which session, which window, which policy.
#[must_use]
pub fn head(report: &ReplayReport, style: Style) -> String {
    let mut text = String::new();
    for (at, line) in wrapped(&plain(&report.session), WIDTH - 2).iter().enumerate() {
        let indent = if at > 0 { "  " } else { "" };
        let _ = writeln!(text, "{indent}{}", style.bold(line));
    }
    let mut format = plain(&report.format);
    if !report.format_reason.is_empty() {
        format = format!("{format} ({})", plain(&report.format_reason));
    }
    labelled(&mut text, "format", &format);
    labelled(&mut text, "policy", &plain(&report.policy));
    let window = format!(
        "{} tokens, {} usable; compacts above {} down to {}",
        thousands(report.window),
        thousands(report.usable),
        thousands(report.trigger),
        thousands(report.target),
    );
    labelled(&mut text, "window", &window);
    for note in &report.notes {
        labelled(&mut text, "note", &plain(note));
    }
    for (name, metrics) in &report.plugins.0 {
        labelled(&mut text, "plugin", &plain(&format!("{name}: {metrics}")));
    }
    text
}

/// The passes, one a row.
#[must_use]
pub fn passes(report: &ReplayReport, style: Style) -> String {
    if report.passes.is_empty() {
        let largest = report.turns.iter().map(|turn| turn.tokens).max().unwrap_or(0);
        return format!(
            "No pass: the largest view had {} tokens, the trigger is {}.\n",
            thousands(largest),
            thousands(report.trigger)
        );
    }
    let mut table = Table::new(&[
        ("turn", Align::Right, 7),
        ("reason", Align::Left, 23),
        ("tokens before → after", Align::Right, 21),
        ("decided", Align::Left, 18),
        ("from entry", Align::Right, 10),
        ("prefix kept", Align::Right, 11),
    ]);
    for pass in &report.passes {
        let mut turn = thousands(pass.turn);
        if pass.ladder {
            turn.insert(0, '!');
        }
        table.row([
            turn,
            reasons(pass),
            format!("{} →\u{a0}{:\u{a0}>7}", thousands(pass.tokens_before), thousands(pass.tokens_after)),
            unbroken(&pass.decided.words()),
            pass.first_changed.map_or_else(|| "–".to_owned(), thousands),
            percent(pass.prefix_kept_bytes, pass.bytes_before),
        ]);
        if pass.ladder {
            table.mark_last();
        }
    }
    let mut text = table.text(style);
    if report.ladders() > 0 {
        text.push_str("! the ladder of last resorts was needed\n");
    }
    if let Some(words) = losses(report) {
        paragraph(&mut text, &words);
    }
    if let Some(least) = report.passes.iter().min_by_key(|pass| pass.verbatim_tokens) {
        let (tokens, share) = (thousands(least.verbatim_tokens), least.verbatim_percent);
        let _ =
            writeln!(text, "at least {tokens} tokens of the record ({share} %) stood word for word after every pass");
    }
    text
}

/// What the passes cost the prompt cache, and when that was repaid.
fn losses(report: &ReplayReport) -> Option<String> {
    let loans: Vec<_> = report.passes.iter().filter_map(|pass| pass.break_even).collect();
    let resent = loans.iter().map(|loan| loan.resent_tokens).fold(0, u64::saturating_add);
    let loss: Money = loans.iter().map(|loan| loan.loss).sum();
    let turns = |loan: &BreakEven| loan.turns_tenths.map(|tenths| tenths.div_ceil(10));
    let longest = loans.iter().filter_map(turns).max()?;
    let shortest = loans.iter().filter_map(turns).min().filter(|least| *least < longest);
    let range = shortest.map_or_else(String::new, |least| format!("{} to ", thousands(least)));
    let plural = if longest == 1 { "turn" } else { "turns" };
    Some(format!(
        "Because of passes {} tokens were sent again, {loss} more on the turns of passes; repaid after {range}{} {plural}.",
        thousands(resent),
        thousands(longest)
    ))
}

fn reasons(pass: &PassRow) -> String {
    let words: Vec<String> = pass.reasons.iter().map(|reason| plain(reason)).collect();
    let aggressive = if pass.aggressive { " (aggressive)" } else { "" };
    words.join(", ") + aggressive
}

/// `3 preview, 12 cleared`, to be broken after the comma only.
fn unbroken(words: &str) -> String {
    words.replace(' ', "\u{a0}").replace(",\u{a0}", ", ")
}

/// Every turn, one a row; turns before which a pass ran are marked.
#[must_use]
pub fn turns(report: &ReplayReport, style: Style) -> String {
    let mut table = Table::new(&[
        ("turn", Align::Right, 7),
        ("entries", Align::Right, 9),
        ("tokens", Align::Right, 11),
        ("of usable", Align::Right, 9),
        ("prefix kept", Align::Right, 11),
        ("cached", Align::Right, 11),
        ("not cached", Align::Right, 11),
        ("cost", Align::Right, 11),
    ]);
    let mut before = 0;
    let mut passes = report.passes.iter().map(|pass| pass.turn).peekable();
    for turn in &report.turns {
        let mut passed = false;
        while passes.next_if(|at| *at <= turn.turn).is_some() {
            passed = true;
        }
        table.row([
            format!("{}{}", if passed { "*" } else { "" }, thousands(turn.turn)),
            thousands(turn.entries),
            thousands(turn.tokens),
            percent(turn.tokens, report.usable),
            percent(turn.prefix_kept_bytes, before),
            thousands(turn.cached),
            thousands(turn.written.saturating_add(turn.uncached)),
            turn.cost.to_string(),
        ]);
        before = turn.bytes;
    }
    let mut text = table.text(style);
    text.push_str("* a pass ran before this call\n");
    text
}

/// The policy beside its baselines.
#[must_use]
pub fn summary(report: &ReplayReport, style: Style) -> String {
    let columns: Vec<(&str, &Totals)> = std::iter::once(("this policy", &report.totals))
        .chain(report.baselines.iter().map(|baseline| (baseline.name.as_str(), &baseline.totals)))
        .collect();
    let names: Vec<String> = columns.iter().map(|(name, _)| plain(name)).collect();
    let heads = std::iter::once(("", Align::Left, 26));
    let mut table =
        Table::new(&heads.chain(names.iter().map(|name| (name.as_str(), Align::Right, 16))).collect::<Vec<_>>());
    for (label, cells) in summary_rows(report) {
        table.row(std::iter::once(label).chain(cells));
    }
    let mut text = table.text(style);
    let refused = report.baselines.iter().filter(|baseline| baseline.totals.over_window > 0);
    for BaselineRow { name, totals, .. } in refused {
        let line = format!(
            "* {} of {} requests of `{}` are larger than the window: a provider would have refused them.",
            thousands(totals.over_window),
            thousands(totals.turns),
            plain(name)
        );
        paragraph(&mut text, &line);
    }
    paragraph(&mut text, &price_words(&report.price));
    text
}

/// The rows of the summary: what it is, then one cell for the policy and one for each baseline.
pub(super) fn summary_rows(report: &ReplayReport) -> Vec<(String, Vec<String>)> {
    let totals: Vec<&Totals> =
        std::iter::once(&report.totals).chain(report.baselines.iter().map(|baseline| &baseline.totals)).collect();
    let each = |cell: &dyn Fn(&Totals) -> String| totals.iter().map(|total| cell(total)).collect::<Vec<_>>();
    let mut passes = vec![thousands(report.passes.len() as u64)];
    passes.resize(totals.len(), "–".to_owned());
    let mut rows = vec![
        ("turns".to_owned(), each(&|total| thousands(total.turns))),
        ("passes".to_owned(), passes),
        ("tokens sent".to_owned(), each(&|total| thousands(total.sent_tokens))),
        ("largest request".to_owned(), each(&|total| thousands(total.largest_tokens))),
        ("requests over the window".to_owned(), each(&|total| thousands(total.over_window))),
        ("prefix, of bytes sent".to_owned(), each(&|total| percent(total.prefix_bytes, total.bytes))),
        ("prefix, of request before".to_owned(), each(&|total| percent(total.prefix_bytes, total.previous_bytes))),
        ("requests that broke it".to_owned(), each(&|total| thousands(total.prefix_breaks))),
        ("cached tokens".to_owned(), each(&|total| thousands(total.cached))),
    ];
    if report.price.bills_writes {
        rows.push(("written to the cache".to_owned(), each(&|total| thousands(total.written))));
    }
    rows.push(("uncached tokens".to_owned(), each(&|total| thousands(total.uncached))));
    let mark = |total: &Totals| if total.over_window > 0 { "*" } else { "" };
    rows.push(("cost".to_owned(), each(&|total| format!("{}{}", total.cost, mark(total)))));
    if report.price.bills_output {
        rows.push(("\u{a0}\u{a0}of which output".to_owned(), each(&|total| total.output_cost.to_string())));
    }
    let against = |total: &Totals| match total.cost.ratio_thousandths(report.totals.cost) {
        Some(_) if std::ptr::eq(total, &raw const report.totals) => "–".to_owned(),
        Some(ratio) => versus(ratio),
        None => "–".to_owned(),
    };
    rows.push(("\u{a0}\u{a0}against this policy".to_owned(), each(&against)));
    rows
}

/// Several sessions, one a row, and their sum.
#[must_use]
pub fn overview(reports: &[ReplayReport], style: Style) -> String {
    let mut table = Table::new(&[
        ("session", Align::Left, 30),
        ("turns", Align::Right, 9),
        ("passes", Align::Right, 7),
        ("tokens sent", Align::Right, 14),
        ("prefix", Align::Right, 7),
        ("cost", Align::Right, 11),
        ("no policy", Align::Right, 9),
    ]);
    let mut sum = [0_u64; 5];
    let mut costs = [Money::ZERO; 2];
    for report in reports {
        let total = &report.totals;
        let without = report.baselines.first().map_or(Money::ZERO, |baseline| baseline.totals.cost);
        table.row([
            plain(&report.session),
            thousands(total.turns),
            thousands(report.passes.len() as u64),
            thousands(total.sent_tokens),
            percent(total.prefix_bytes, total.bytes),
            total.cost.to_string(),
            without.ratio_thousandths(total.cost).map_or_else(|| "–".to_owned(), versus),
        ]);
        let more = [total.turns, report.passes.len() as u64, total.sent_tokens, total.prefix_bytes, total.bytes];
        for (sum, more) in sum.iter_mut().zip(more) {
            *sum = sum.saturating_add(more);
        }
        costs[0] += total.cost;
        costs[1] += without;
    }
    table.row([
        format!("all {}", thousands(reports.len() as u64)),
        thousands(sum[0]),
        thousands(sum[1]),
        thousands(sum[2]),
        percent(sum[3], sum[4]),
        costs[0].to_string(),
        costs[1].ratio_thousandths(costs[0]).map_or_else(|| "–".to_owned(), versus),
    ]);
    table.text(style)
}

/// One sentence about the prices.
pub(super) fn price_words(price: &PriceLabel) -> String {
    let mut words = format!("Simulated with price row `{}`", plain(&price.id));
    if !price.models.is_empty() {
        let _ = write!(words, " ({}, {})", plain(&price.provider), plain(&price.models.join(", ")));
    }
    let _ = write!(words, " of {}.", plain(&price.date));
    if !price.source.is_empty() {
        let _ = write!(words, " Source: {}.", plain(&price.source));
    }
    if !price.note.is_empty() {
        let _ = write!(words, " Assumed: {}.", plain(&price.note));
    }
    words
}

fn labelled(text: &mut String, label: &str, value: &str) {
    if value.is_empty() {
        return;
    }
    for (at, line) in wrapped(value, WIDTH - 8).iter().enumerate() {
        let _ = writeln!(text, "{:<8}{line}", if at == 0 { label } else { "" });
    }
}

fn paragraph(text: &mut String, value: &str) {
    for line in wrapped(value, WIDTH) {
        text.push_str(&line);
        text.push('\n');
    }
}

/// `text` in lines of at most `limit` columns, broken at spaces where there are any. Unbreakable ones
/// stay until a [`Table`] is put together.
pub(super) fn wrapped(text: &str, limit: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if !line.is_empty() && width(&line) + 1 + width(word) > limit {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        for c in word.chars() {
            if width(&line) + super::numbers::columns_of(c) > limit && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}
