//! `replay`: the main job.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use foreshorten::{
    drive::SummarizerChoice,
    economics::{Pauses, PriceTable},
    formats::{Conversation, Format, read_session},
    options::PolicyOptions,
    replay::{Setting, replay},
    report::{ReplayReport, html, json, table},
    stores::write_atomically,
};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use rayon::prelude::*;

use super::{failure::Failure, files, plugin_options};

/// Play recorded sessions: what would this policy have done, turn by turn, in tokens, cache and money?
///
/// At every model call recorded in them the policy produces a view. Prints the passes (turn, reason, tokens before and after, what was decided, the first piece changed, how much of the
/// prefix was kept) and what the session costs under a price table with prompt caching, beside three baselines: no compaction,
/// dropping the oldest messages each turn, and keeping the newest three tool results each turn.
#[derive(Debug, clap::Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Args {
    /// Sessions: files, folders or patterns. Claude Code, Codex, Gemini CLI, SWE-agent, OpenHands, or request bodies
    /// of the three protocols.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Format of the files; recognised when not given.
    #[arg(long, value_name = "F")]
    format: Option<Format>,
    /// Context window in tokens.
    #[arg(long, value_name = "N")]
    window: u64,
    /// Who writes summaries: none, extractive, or the file of a plugin.
    #[arg(long, value_name = "WHO", default_value = "extractive")]
    summarizer: SummarizerChoice,
    /// Price row; see the file named by --prices, or testdata/prices.toml. Default: the table's own.
    #[arg(long, value_name = "ID")]
    price: Option<String>,
    /// Price table to use instead of the built-in one.
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Time between the calls, which the prompt cache may not outlive: CALLS:SECONDS (40:600 is ten minutes after every 40
    /// calls), or `recorded`, as the session's timestamps say. The policy is told when the cache has expired.
    #[arg(long, value_name = "HOW", default_value = "none")]
    pause: Pauses,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Write one self-contained page with plots.
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
    /// Print every turn.
    #[arg(long)]
    every_turn: bool,
    /// TOML file with policy parameters; flags win.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    policy: PolicyOptions,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut options = match &args.config {
        Some(path) => args.policy.clone().or(PolicyOptions::read(path)?),
        None => args.policy.clone(),
    };
    let summarizer = plugin_options::load(&mut options, &args.summarizer)?;
    let prices = match &args.prices {
        Some(path) => PriceTable::load(path),
        None => PriceTable::builtin(),
    };
    let prices = prices.map_err(|error| Failure::Usage(error.to_string()))?;
    let row =
        prices.row(args.price.as_deref().unwrap_or(&prices.default)).map_err(|e| Failure::Usage(e.to_string()))?;
    options.price_by(row);
    options.build(Some(args.window), "", true, false)?;

    let (paths, named) = expand(&args.files)?;
    // Of more sessions than this only the overview is printed, so no more are kept whole.
    let in_full = args.json || args.every_turn || args.html.is_some();
    let made = AtomicUsize::new(0);
    let bars = MultiProgress::new();
    let terminal = std::io::stderr().is_terminal();
    let one = |path: &PathBuf| -> Result<Vec<ReplayReport>, Failure> {
        let conversations = read(path, args.format)?;
        let several = conversations.len() > 1;
        let mut reports = Vec::with_capacity(conversations.len());
        for conversation in &conversations {
            let policy = options.build(Some(args.window), conversation.model.as_deref().unwrap_or(""), true, false)?;
            let description = options.describe(&policy);
            let bar = terminal.then(|| bars.add(bar(path, conversation.calls.len())));
            let setting = Setting {
                policy: &policy,
                description: &description,
                window: args.window,
                summarizer: &summarizer,
                plugins: options.plugins(),
                price: row,
                pauses: args.pause,
                tell_cold: true,
            };
            let mut report = replay(conversation, setting, &mut |turn| {
                if let Some(bar) = &bar {
                    bar.set_position(turn as u64);
                }
            });
            let name = path.display().to_string();
            report.session =
                if several && !report.session.is_empty() { format!("{name}: {}", report.session) } else { name };
            if made.fetch_add(1, Ordering::Relaxed) >= MANY && !in_full {
                report.keep_totals();
            }
            reports.push(report);
            if let Some(bar) = bar {
                bar.finish_and_clear();
            }
        }
        Ok(reports)
    };
    let results: Vec<Result<Vec<ReplayReport>, Failure>> = paths.par_iter().map(one).collect();
    let mut reports = Vec::new();
    let mut failed = None;
    for (result, explicit) in results.into_iter().zip(named) {
        match result {
            Ok(found) => reports.extend(found),
            // In a folder or pattern other files are expected; a file that was named is not.
            Err(Failure::Input(why)) if !explicit => say!("skipped: {why}"),
            Err(failure) => failed = failed.or(Some(failure)),
        }
    }
    if let Some(failure) = failed {
        return Err(failure);
    }
    if reports.is_empty() {
        return Err(Failure::Input("no session among the files".into()));
    }
    if let Some(path) = &args.html {
        write_atomically(path, html::page(&reports).as_bytes())?;
    }
    if args.json {
        let mut out = Vec::new();
        json::write(&reports, &mut out)?;
        return files::print(&out);
    }
    let style = table::Style { colour: std::io::stdout().is_terminal() };
    let mut text = String::new();
    for report in &reports {
        if reports.len() <= MANY || args.every_turn {
            if args.every_turn {
                text.push_str(&table::head(report, style));
                text.push_str(&table::turns(report, style));
                text.push_str(&table::passes(report, style));
                text.push_str(&table::summary(report, style));
            } else {
                text.push_str(&table::report(report, style));
            }
            text.push('\n');
        }
    }
    if reports.len() > 1 {
        text.push_str(&table::overview(&reports, style));
    }
    files::print(text.as_bytes())
}

/// Sessions up to which each is printed in full.
const MANY: usize = 8;

fn read(path: &Path, format: Option<Format>) -> Result<Vec<Conversation>, Failure> {
    let bytes = files::read(path)?;
    read_session(bytes, format).map_err(|error| Failure::Input(format!("{}: {error}", path.display())))
}

/// The files meant by paths, folders and patterns, and whether each was named itself.
fn expand(given: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<bool>), Failure> {
    let (mut paths, mut named) = (Vec::new(), Vec::new());
    for path in given {
        if path.is_dir() {
            let mut found = Vec::new();
            walk(path, &mut found)?;
            found.sort();
            named.resize(named.len() + found.len(), false);
            paths.extend(found);
        } else if path.exists() {
            paths.push(path.clone());
            named.push(true);
        } else {
            let pattern = path.to_string_lossy();
            let found = glob::glob(&pattern).map_err(|error| Failure::Usage(format!("{pattern}: {error}")))?;
            let mut found: Vec<PathBuf> = found.filter_map(Result::ok).filter(|path| path.is_file()).collect();
            if found.is_empty() {
                return Err(Failure::Input(format!("{pattern}: no such file")));
            }
            found.sort();
            named.resize(named.len() + found.len(), false);
            paths.extend(found);
        }
    }
    Ok((paths, named))
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(&entry.path(), found)?;
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    Ok(())
}

fn bar(path: &Path, turns: usize) -> ProgressBar {
    let bar = ProgressBar::new(turns as u64);
    if let Ok(style) = ProgressStyle::with_template("{msg:40!} {wide_bar} {pos}/{len} turns") {
        bar.set_style(style);
    }
    bar.set_message(path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default());
    bar
}
