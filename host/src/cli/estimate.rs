//! `estimate`: what is in the window and who put it there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use foreshorten::{
    core::{
        estimate::Weigher,
        text,
        transcript::{Columns, EntryKind, Transcript, text_of},
    },
    formats::{Format, WireTranscript, parse_body, read_session},
    options::PolicyOptions,
    report::thousands,
};
use serde_json::{Value, json};

use super::{failure::Failure, files};

/// Show what is in the window and who put it there.
///
/// Lists the tokens of a conversation by kind and by tool, and its largest entries.
#[derive(Debug, clap::Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Args {
    /// A request body or a recorded session.
    file: PathBuf,
    /// Format of the file; recognised when not given.
    #[arg(long, value_name = "F")]
    format: Option<Format>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// TOML file with policy parameters; flags win.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    policy: PolicyOptions,
}

/// Largest entries shown.
const LARGEST: usize = 10;

struct Conversation {
    name: String,
    transcript: WireTranscript,
    tools: Vec<String>,
    model: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let options = match &args.config {
        Some(path) => args.policy.clone().or(PolicyOptions::read(path)?),
        None => args.policy.clone(),
    };
    let mut reports = Vec::new();
    let mut text = String::new();
    for conversation in read(args)? {
        let policy = options.build(None, conversation.model.as_deref().unwrap_or(""), true, false)?;
        let found = Account::of(&conversation, &policy.config().weigher);
        if args.json {
            reports.push(found.json(&conversation));
        } else {
            found.push_table(&conversation, &mut text);
        }
    }
    if args.json {
        let whole = if reports.len() == 1 { reports.remove(0) } else { Value::Array(reports) };
        text = format!("{whole}\n");
    }
    files::print(text.as_bytes())
}

fn read(args: &Args) -> Result<Vec<Conversation>, Failure> {
    let bytes = files::read(&args.file)?;
    if let Ok(body) = parse_body(bytes.clone(), args.format) {
        return Ok(vec![Conversation {
            name: "request".into(),
            transcript: body.transcript().clone(),
            tools: body.tools().into_iter().map(String::from).collect(),
            model: body.model().map(String::from),
        }]);
    }
    let read = read_session(bytes, args.format)
        .map_err(|error| Failure::Input(format!("{}: {error}", args.file.display())))?;
    Ok(read
        .into_iter()
        .map(|one| Conversation { name: one.name, transcript: one.transcript, tools: one.tools, model: one.model })
        .collect())
}

/// Tokens and number of entries.
#[derive(Clone, Copy, Default)]
struct Sum {
    tokens: u64,
    entries: u64,
}

#[derive(Default)]
struct Account {
    total: u64,
    kinds: BTreeMap<EntryKind, Sum>,
    tools: BTreeMap<String, Sum>,
    schemas: Sum,
    largest: Vec<(u32, usize)>,
    calls: Vec<Option<usize>>,
}

impl Account {
    fn of(conversation: &Conversation, weigher: &Weigher) -> Self {
        let transcript = &conversation.transcript;
        let mut columns = Columns::new();
        for entry in 0..transcript.len() {
            columns.push(transcript, weigher.entry(transcript, entry));
        }
        let mut out = Self::default();
        for schema in &conversation.tools {
            out.schemas.tokens += u64::from(weigher.framed(schema));
            out.schemas.entries += 1;
        }
        out.total = out.schemas.tokens;
        for entry in 0..columns.len() {
            let tokens = u64::from(columns.weight(entry));
            let kind = columns.kind(entry);
            let add = |sum: &mut Sum| {
                sum.tokens += tokens;
                sum.entries += 1;
            };
            add(out.kinds.entry(kind).or_default());
            let call = match kind {
                EntryKind::ToolCall => Some(entry),
                EntryKind::ToolResult if !columns.is_orphan(entry) => Some(columns.pair(entry) as usize),
                _ => None,
            };
            if let Some(call) = call {
                add(out.tools.entry(transcript.entry(call).name.to_owned()).or_default());
            }
            out.calls.push(call);
            out.total += tokens;
            out.largest.push((columns.weight(entry), entry));
        }
        out.largest.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        out.largest.truncate(LARGEST);
        out
    }

    fn json(&self, conversation: &Conversation) -> Value {
        let sums = |name: &str, sum: &Sum| json!({"name": name, "tokens": sum.tokens, "entries": sum.entries});
        let largest: Vec<Value> = self
            .largest
            .iter()
            .map(|&(tokens, entry)| {
                let facts = conversation.transcript.entry(entry);
                let tool = self.calls[entry].map(|call| conversation.transcript.entry(call).name);
                json!({"entry": entry, "kind": facts.kind.as_str(), "tool": tool, "tokens": tokens})
            })
            .collect();
        json!({
            "conversation": conversation.name,
            "tokens": self.total,
            "entries": self.calls.len(),
            "kinds": self.kinds.iter().map(|(kind, sum)| sums(kind.as_str(), sum)).collect::<Vec<_>>(),
            "tools": self.tools.iter().map(|(name, sum)| sums(name, sum)).collect::<Vec<_>>(),
            "schemas": {"tokens": self.schemas.tokens, "tools": self.schemas.entries},
            "largest": largest,
        })
    }

    fn push_table(&self, conversation: &Conversation, out: &mut String) {
        let total = self.total.max(1);
        let row = |name: &str, sum: &Sum| {
            let share = sum.tokens * 1000 / total;
            let (tokens, entries) = (thousands(sum.tokens), thousands(sum.entries));
            format!("  {:<28}{tokens:>12}{:>7}.{}%{entries:>10}\n", shown(name), share / 10, share % 10)
        };
        let table = |title: &str, mut rows: Vec<(&str, Sum)>| {
            rows.sort_by_key(|row| std::cmp::Reverse(row.1.tokens));
            let lines: String = rows.iter().map(|(name, sum)| row(name, sum)).collect();
            format!("\n{title:<30}{:>12}{:>9}{:>10}\n{lines}", "tokens", "share", "entries")
        };
        out.push_str(&format!("{}: {} tokens\n", shown(&conversation.name), thousands(self.total)));
        let mut kinds: Vec<(&str, Sum)> = self.kinds.iter().map(|(kind, sum)| (kind.as_str(), *sum)).collect();
        kinds.push(("tool schemas", self.schemas));
        out.push_str(&table("by kind", kinds));
        if !self.tools.is_empty() {
            let tools = self.tools.iter().map(|(name, sum)| (name.as_str(), *sum)).collect();
            out.push_str(&table("by tool (calls and results)", tools));
        }
        out.push_str("\nlargest entries\n");
        for &(tokens, entry) in &self.largest {
            let facts = conversation.transcript.entry(entry);
            let tool = self.calls[entry].map_or("", |call| conversation.transcript.entry(call).name);
            let start = text_of(&conversation.transcript, entry);
            let start: String = text::head(&start, 200).split_whitespace().collect::<Vec<_>>().join(" ");
            out.push_str(&format!(
                "  {:>7}  {:<12}{:<16}{:>10}  {}\n",
                entry,
                facts.kind.as_str(),
                shown(tool),
                thousands(u64::from(tokens)),
                shown(text::head(&start, 44))
            ));
        }
        out.push('\n');
    }
}

/// Text that a terminal shows as it is: no control characters.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
