//! `compact`: a filter between an agent and its provider.

use std::path::PathBuf;
use std::process::ExitCode;

use foreshorten::{
    core::{
        CompactionState, Compactor, Outcome, Policy, Turn,
        budget::{MAX_WINDOW, MIN_WINDOW, Mode},
        estimate::Refused,
        marker::RECALL_TOOL_DESCRIPTION,
        state::History,
        transcript::RECALL_TOOL,
        view::Piece,
    },
    drive::{Helpers, SummarizerChoice, settle_counted},
    formats::{Body, Format, FormatError, ToolsEdit, Written, parse_body, recall_tool_schema},
    options::PolicyOptions,
    plugin::Account,
    stores::{FileStore, Staged, stage},
};
use serde_json::{Value, json};

use super::{failure::Failure, files, plugin_options, prefix::Stretches};

/// Filter a request body: messages in, smaller messages out, decisions kept in a file.
///
/// Reads a request body on stdin and writes the same body, with the view in place of the conversation, on stdout.
/// The body is an object or a bare array of messages or items. Everything that is not the conversation is copied byte
/// for byte; the recall tool's schema is appended to `tools`. Called once per turn of a growing session with the same
/// --state, decisions stick and the prefix stays byte-stable.
#[derive(Debug, clap::Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Args {
    /// Format of the body: openai-chat, openai-responses or anthropic-messages. Default: recognised, and kept in the state.
    #[arg(long, value_name = "F")]
    format: Option<Format>,
    /// Context window of the model in tokens.
    #[arg(long, value_name = "N")]
    window: u64,
    /// Who writes summaries: none, extractive, or the file of a plugin.
    #[arg(long, value_name = "WHO", default_value = "none")]
    summarizer: SummarizerChoice,
    /// File that keeps the decisions of this session.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Folder that keeps the content of reduced results, unredacted.
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Prompt tokens the provider counted for the last view written.
    #[arg(long, value_name = "N")]
    last_input_tokens: Option<u64>,
    /// The provider rejected the last view as too long: make a much smaller one.
    #[arg(long)]
    overflow: bool,
    /// The window the provider named when it rejected.
    #[arg(long, value_name = "N")]
    reported_window: Option<u64>,
    /// The provider's prompt cache is probably cold, so that a pass costs nothing now.
    #[arg(long)]
    cache_cold: bool,
    /// File for the account of this call, as JSON.
    #[arg(long, value_name = "FILE")]
    notice: Option<PathBuf>,
    /// Do not offer the recall tool; markers then only name the reference.
    #[arg(long)]
    no_recall_tool: bool,
    /// TOML file with policy parameters; flags win.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    policy: PolicyOptions,
}

/// Where the state remembers the format of its session.
const FORMAT_LABEL: &str = "format";
/// Where the state remembers the bytes of the last view, as [`Stretches`].
const VIEW_LABEL: &str = "view";

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut options = match &args.config {
        Some(path) => args.policy.clone().or(PolicyOptions::read(path)?),
        None => args.policy.clone(),
    };
    let summarizer = plugin_options::load(&mut options, &args.summarizer)?;
    // A policy that cannot be meant is said before stdin is read.
    options.build(Some(args.window), "", true, false)?;
    let (state, mut state_reset) = files::state(args.state.as_deref())?;
    if let Some(reset) = &state_reset {
        say!("{reset}");
    }
    if let Some(window) = args.reported_window.filter(|window| !(MIN_WINDOW..=MAX_WINDOW).contains(window)) {
        say!("--reported-window {window} is not taken: no context window is of that size");
    }
    let body = read_body(args, files::stdin()?, state.as_ref())?;
    if let Some(why) = body.partial() {
        say!("passed through untouched: {why}");
        if let Some(notice) = staged_notice(args, &partial_notice(args.window, &options, state_reset.as_deref())?)? {
            notice.commit()?;
        }
        return files::print(body.bytes());
    }

    let store = args.store.as_deref().map(FileStore::open).transpose()?;
    if let Some(state) = &state {
        options.go_on(state);
    }
    let policy = options.build(Some(args.window), body.model().unwrap_or(""), !args.no_recall_tool, store.is_some())?;
    let weigher = &policy.config().weigher;
    let schema = recall_tool_schema(body.format(), RECALL_TOOL, RECALL_TOOL_DESCRIPTION);
    let edit =
        if args.no_recall_tool { ToolsEdit::Keep } else { ToolsEdit::Append { name: RECALL_TOOL, schema: &schema } };
    let tools = body.tools();
    let appended = !args.no_recall_tool && body.takes_tool(RECALL_TOOL);
    let schema_tokens: u64 = tools
        .iter()
        .copied()
        .chain(appended.then_some(schema.as_str()))
        .map(|tool| u64::from(weigher.framed(tool)))
        .sum();

    let transcript = body.transcript();
    let had_state = state.is_some();
    let mut compactor = match state {
        Some(state) => Compactor::resume(&policy, state),
        None => Compactor::new(&policy),
    };
    let history = compactor.sync(transcript);
    // Another conversation, or the beginning of this one alone: the state stays as it is.
    let aside = matches!(history, History::Foreign | History::Beginning);
    if let Some(tokens) = args.last_input_tokens
        && !aside
        && let Err(why) = compactor.handle_usage(tokens)
    {
        say!("--last-input-tokens {tokens} is not taken: {}", refused(why));
    }
    compactor.begin(
        transcript,
        Turn {
            scope: body.model().unwrap_or(""),
            schema_tokens,
            overflow: args.overflow,
            reported_window: args.reported_window,
            cache_cold: args.cache_cold,
            can_summarize: summarizer.any(),
            ..Turn::default()
        },
    );
    let helpers = Helpers { summarizer: &summarizer, store: store.as_ref(), plugins: options.plugins() };
    let mut plugins = Account::default();
    settle_counted(&mut compactor, transcript, helpers, &mut plugins)
        .map_err(|failed| Failure::Input(failed.to_string()))?;
    if let Some(why) = summarizer.lacks_model() {
        say!("{why}; a note stands in for the summary");
    }

    let pieces: Vec<Piece<'_>> = compactor.view().pieces().collect();
    let written = body.write(&pieces, edit);
    drop(pieces);
    let outcome = compactor.outcome().clone();
    let dropped = outcome.attachment.dropped;
    if had_state && dropped > 0 && !aside && state_reset.is_none() {
        let decisions =
            if dropped == 1 { "decision that no longer describes" } else { "decisions that no longer describe" };
        state_reset = Some(format!("{dropped} {decisions} the history"));
        say!("the history was edited; {dropped} {decisions} it went");
    }
    let mut notice = notice_of(&compactor, &outcome, &written, state_reset.as_deref());
    notice["plugins"] = json!(plugins);
    let notice = staged_notice(args, &notice)?;
    let mut ready: Vec<Staged> = Vec::new();
    if aside {
        let what = if history == History::Foreign { "not the conversation" } else { "only the beginning" };
        say!("this is {what} of the state, which is left alone");
    } else if let Some(path) = &args.state {
        let view = Stretches::of(&written.bytes, &written.message_starts, end_of_view(&written));
        compactor.set_label(FORMAT_LABEL, &body.format().to_string());
        compactor.set_label(VIEW_LABEL, &view.label());
        ready.push(stage(path, &compactor.state().encode())?);
    }
    // What can fail has failed before the first file is changed.
    for file in ready.into_iter().chain(notice) {
        file.commit()?;
    }
    files::print(&written.bytes)?;
    if outcome.archive_failures > 0 {
        say!("{} results could not be stored; they can be recalled from the transcript", outcome.archive_failures);
    }
    if let Some(floor) = outcome.cannot_fit {
        say!(
            "the view is {} tokens above the usable window, and nothing more can be reduced; the largest part: {} \
             (system {}, tools {}, pinned {}, newest {})",
            floor.over,
            floor.largest(),
            floor.system,
            floor.tools,
            floor.pinned,
            floor.newest
        );
        return Ok(ExitCode::from(4));
    }
    Ok(ExitCode::SUCCESS)
}

/// Why a count of prompt tokens is not believed, in words.
fn refused(why: Refused) -> &'static str {
    match why {
        Refused::Zero => "it is zero",
        Refused::NoView => "no view is known that it could belong to",
        Refused::Truncated => "it is less than half of what the view is thought to weigh",
        Refused::Absurd => "it is more than four times what the view is thought to weigh",
        _ => "it cannot be a count of the last view",
    }
}

/// Reads the body in the format asked for, in that of the session, or in the one it looks like.
fn read_body(args: &Args, input: Vec<u8>, state: Option<&CompactionState>) -> Result<Body, Failure> {
    let bad = |error: FormatError| Failure::Input(format!("stdin: {error}"));
    if args.format.is_some() {
        return parse_body(input, args.format).map_err(bad);
    }
    let known: Option<Format> = state.and_then(|state| state.label(FORMAT_LABEL)).and_then(|name| name.parse().ok());
    if known.is_some()
        && let Ok(body) = parse_body(input.clone(), known)
    {
        return Ok(body);
    }
    parse_body(input, None).map_err(bad)
}

/// Bytes of the written body up to the end of its last message: what the next view can begin with.
fn end_of_view(written: &Written) -> usize {
    let Some(&start) = written.message_starts.last() else { return 0 };
    // The list's closing bracket, and what follows it, come after the last message.
    let mut stream =
        serde_json::Deserializer::from_slice(&written.bytes[start..]).into_iter::<&serde_json::value::RawValue>();
    let _ = stream.next();
    start + stream.byte_offset()
}

fn notice_of(compactor: &Compactor<&Policy>, outcome: &Outcome, written: &Written, state_reset: Option<&str>) -> Value {
    let first_message =
        |piece: usize| written.message_of_piece.get(piece..).unwrap_or_default().iter().find_map(|&message| message);
    let mut first_changed = outcome.first_changed.and_then(first_message);
    let before = compactor.state().label(VIEW_LABEL).map(Stretches::parse).unwrap_or_default();
    let most = match (outcome.first_changed, first_changed) {
        (None, _) => before.end(),
        (Some(_), Some(message)) => written.message_starts.get(message).copied().unwrap_or(0),
        (Some(_), None) => 0,
    };
    let kept = before.kept(&written.bytes, most);
    if outcome.attachment.history == History::Edited && kept < before.end() {
        // The caller changed something, and before here it changed nothing.
        let edited = written.message_starts.iter().position(|&start| start >= kept);
        first_changed = first_changed.into_iter().chain(edited).min();
    }
    let foreign = outcome.attachment.history == History::Foreign;
    let notice = outcome.notice.as_ref();
    json!({
        "compacted": outcome.compacted,
        "aggressive": notice.is_some_and(|notice| notice.aggressive),
        "reasons": notice.map(|notice| notice.reasons.clone()).unwrap_or_default(),
        "tokens_before": outcome.tokens_before,
        "tokens_after": outcome.tokens_after,
        "resent_tokens": notice.map(|notice| notice.resent_tokens),
        "usable": outcome.budget.map(|budget| budget.usable),
        "trigger": outcome.budget.map(|budget| budget.trigger),
        "target": outcome.budget.map(|budget| budget.target),
        "detail": notice.map(|notice| notice.detail.clone()).unwrap_or_default(),
        "first_changed": first_changed,
        "prefix_bytes_kept": if foreign { 0 } else { kept },
        "verbatim_tokens": notice.filter(|_| outcome.compacted).map(|notice| notice.verbatim_tokens),
        "verbatim_percent": notice.filter(|_| outcome.compacted).map(|notice| notice.verbatim_percent),
        "last_resort": notice.is_some_and(|notice| notice.last_resort),
        "history": match outcome.attachment.history {
            History::Edited | History::Beginning => Some("edited"),
            History::Foreign => Some("foreign"),
            _ => None,
        },
        "state_reset": state_reset,
        "retry": outcome.retry,
        "cannot_fit": outcome.cannot_fit.map(|floor| json!({
            "what": floor.largest(),
            "over": floor.over,
            "system": floor.system,
            "tools": floor.tools,
            "pinned": floor.pinned,
            "newest": floor.newest,
            "notes": floor.notes,
        })),
        "repaired": json!({
            "results_without_call": compactor.view().orphans(),
            "calls_without_result": compactor.view().stand_ins(),
        }),
        "archive_failures": outcome.archive_failures,
    })
}

fn partial_notice(window: u64, options: &PolicyOptions, state_reset: Option<&str>) -> Result<Value, Failure> {
    let budget = options.build(Some(window), "", true, false)?.budget(window, Mode::Proactive);
    Ok(json!({
        "compacted": false, "aggressive": false, "reasons": [], "tokens_before": 0, "tokens_after": 0,
        "usable": budget.usable, "trigger": budget.trigger, "target": budget.target, "detail": [],
        "first_changed": null, "prefix_bytes_kept": 0, "last_resort": false, "history": "partial",
        "state_reset": state_reset, "retry": null, "cannot_fit": null,
        "repaired": {"results_without_call": 0, "calls_without_result": 0}, "archive_failures": 0, "plugins": {},
    }))
}

/// The notice, written beside its place.
fn staged_notice(args: &Args, notice: &Value) -> Result<Option<Staged>, Failure> {
    let file = args.notice.as_ref().map(|path| stage(path, format!("{notice}\n").as_bytes()));
    Ok(file.transpose()?)
}
