//! A small agent with a few local tools, for 200 model calls against any endpoint.
//!
//! ```text
//! cargo run -p foreshorten-simulator -- --window 32000 --port 8080 &
//! cargo run --features http --example agent -- --protocol chat --base-url http://127.0.0.1:8080/v1 --key simulator-key
//! ```
//!
//! With a real key: `OPENAI_API_KEY=… cargo run --features http --example agent -- --protocol chat --model gpt-4.1-mini`.
//! It works in a folder of its own, which it fills first and removes at the end; nothing outside of it is read or written.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use clap::{Parser, ValueEnum};
use foreshorten::context::Compaction;
use foreshorten::provider::http::{AnthropicMessages, HttpOptions, OpenAiChat, OpenAiResponses};
use foreshorten::provider::{Provider, Settings};
use foreshorten::record::Message;
use foreshorten::runner::{Agent, Event, Runner, Stopped};
use foreshorten::session::FileSessions;
use foreshorten::stores::FileStore;
use foreshorten::tool::{Tool, ToolCall, ToolOutput, ToolSpec};
use foreshorten::window::WindowResolver;
use serde_json::{Value, json};

/// Runs a scripted task and prints every notice.
#[derive(Parser)]
struct Args {
    /// What the endpoint speaks.
    #[arg(long, value_enum, default_value = "chat")]
    protocol: Protocol,
    /// Where it is; OpenAI's base URLs end in /v1. Default: the vendor's own.
    #[arg(long)]
    base_url: Option<String>,
    /// The model.
    #[arg(long, default_value = "gpt-4.1-mini")]
    model: String,
    /// The key. Default: OPENAI_API_KEY or ANTHROPIC_API_KEY.
    #[arg(long)]
    key: Option<String>,
    /// The context window in tokens. Default: what the endpoint says.
    #[arg(long)]
    window: Option<u64>,
    /// Model calls to make.
    #[arg(long, default_value_t = 200)]
    turns: u32,
    /// Most output tokens a call may ask for.
    #[arg(long, default_value_t = 2_000)]
    max_tokens: u64,
    /// Where session and results are kept. Default: a folder that is removed at the end.
    #[arg(long)]
    folder: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Protocol {
    Chat,
    Responses,
    Messages,
}

fn provider(args: &Args) -> Result<Arc<dyn Provider>, Box<dyn Error>> {
    let mut options = match args.protocol {
        Protocol::Messages => HttpOptions::from_anthropic_env(),
        _ => HttpOptions::from_openai_env(),
    };
    if let Some(url) = &args.base_url {
        options = options.base_url(url.as_str());
    }
    if let Some(key) = &args.key {
        options = options.key(key.as_str());
    }
    Ok(match args.protocol {
        Protocol::Chat => Arc::new(OpenAiChat::new(options)?),
        Protocol::Responses => Arc::new(OpenAiResponses::new(options)?),
        Protocol::Messages => Arc::new(AnthropicMessages::new(options)?),
    })
}

/// What the user says, one after the other.
const TASKS: &[&str] = &[
    "List the folder and read the two longest files. What are they about?",
    "Search for the word `window` and tell me in which files it stands.",
    "Write a note that sums up what you know so far.",
    "Read the log and tell me the first error in it.",
    "Which file did I ask about first? Look again if you do not have it any more.",
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let scratch = tempfile::tempdir()?;
    let work = scratch.path().join("work");
    fill(&work)?;
    let kept = args.folder.clone().unwrap_or_else(|| scratch.path().join("kept"));

    let policy = Compaction::new().store(Arc::new(FileStore::open(&kept.join("results"))?));
    let mut windows = WindowResolver::new().remembered_in(&kept.join("windows.json"));
    if let Some(tokens) = args.window {
        windows = windows.configured(tokens);
    }
    let settings = Settings { max_tokens: Some(args.max_tokens), ..Settings::default() };
    let agent = Agent::new(provider(&args)?, &args.model)
        .system("You work in a small folder of files, with tools. Be brief.")
        .settings(settings)
        .tool(Arc::new(Files { folder: work.clone(), act: Act::List }))
        .tool(Arc::new(Files { folder: work.clone(), act: Act::Read }))
        .tool(Arc::new(Files { folder: work.clone(), act: Act::Search }))
        .tool(Arc::new(Files { folder: work, act: Act::Note }))
        .context_policy(Arc::new(policy.build()?));
    let runner =
        Runner::new().sessions(Arc::new(FileSessions::open(&kept.join("sessions"))?)).windows(Arc::new(windows));
    let mut events = runner.subscribe();
    let mut session = runner.open("agent-example").await?;

    let (mut calls, mut task) = (0, 0);
    let (mut sent, mut cached, mut written, mut asides) = (0, 0, 0, 0);
    while calls < args.turns {
        let said = TASKS[task % TASKS.len()];
        println!("\nuser: {said}");
        let outcome =
            runner.run(&agent.clone().max_rounds(args.turns - calls), &mut session, Message::user(said)).await?;
        while let Ok(event) = events.try_recv() {
            tell(&event);
        }
        calls += outcome.rounds;
        task += 1;
        sent += outcome.usage.input_tokens;
        cached += outcome.usage.cache_read_tokens;
        written += outcome.usage.output_tokens;
        asides += outcome.policy_usage.tokens.total_tokens();
        if let Stopped::Finished(_) = outcome.stopped {
            println!("model ({} calls): {}", outcome.rounds, one_line(&outcome.text));
        }
    }
    println!(
        "\n{calls} calls, {} entries recorded. Prompt tokens {sent}, of them cached {cached}; written {written}; for summaries \
         {asides}.",
        session.record().entries().count(),
    );
    Ok(())
}

fn tell(event: &Event) {
    match event {
        Event::ContextCompacted(event) => {
            let notice = &event.notice;
            println!(
                "  compacted ({}): {} -> {} tokens, {}% of the prefix kept; {}",
                event.reason.as_deref().unwrap_or_default(),
                notice.tokens_before,
                notice.tokens_after,
                notice.prefix_kept_percent,
                notice.detail.join("; "),
            );
        }
        Event::PromptRejected { rejection, retrying, .. } => {
            println!(
                "  turned down, {}: {}",
                if *retrying { "trying a smaller view" } else { "giving up" },
                rejection.message
            );
        }
        Event::Window { window, .. } => println!("  window: {} tokens ({:?})", window.tokens, window.source),
        Event::WindowUnknown { .. } => println!("  no window is known; the first rejection will tell"),
        Event::Truncated { what, .. } => println!("  {what}"),
        Event::SummaryFailed { why, .. } => println!("  no summary: {why}"),
        Event::StoreFailed { contents, .. } => println!("  {contents} results could not be stored"),
        Event::ToolCalled { name, is_error, .. } => println!("  {name}{}", if *is_error { " failed" } else { "" }),
        _ => {}
    }
}

fn one_line(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = line.join(" ");
    line.chars().take(160).collect()
}

/// A folder with something to read.
fn fill(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for number in 0..12 {
        let mut text = format!("# Chapter {number}\n");
        for line in 0..40 + number * 30 {
            text.push_str(&format!(
                "Line {line} of chapter {number} is about the window and what is seen through it.\n"
            ));
        }
        std::fs::write(folder.join(format!("chapter-{number}.md")), text)?;
    }
    let mut log = String::new();
    for line in 0..900 {
        let level = if line % 97 == 96 { "ERROR" } else { "INFO" };
        log.push_str(&format!(
            "2026-11-30T00:{:02}:{:02}Z {level} worker-{} step {line} done\n",
            line / 60 % 60,
            line % 60,
            line % 7
        ));
    }
    std::fs::write(folder.join("server.log"), log)
}

enum Act {
    List,
    Read,
    Search,
    Note,
}

/// The tools: all of them look at one folder and nowhere else.
struct Files {
    folder: PathBuf,
    act: Act,
}

impl Files {
    /// A file of the folder itself: of a path only the last part counts, so none leads out of it.
    fn file(&self, path: &str) -> Result<PathBuf, String> {
        let name = Path::new(path).file_name().ok_or_else(|| format!("`{path}` names no file"))?;
        Ok(self.folder.join(name))
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    fn act(&self, arguments: &Value) -> Result<String, String> {
        let text = |key: &str| {
            arguments[key].as_str().filter(|text| !text.is_empty()).ok_or_else(|| format!("`{key}` is missing"))
        };
        let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| error.to_string());
        match self.act {
            Act::List => {
                let size = |name: &String| std::fs::metadata(self.folder.join(name)).map_or(0, |facts| facts.len());
                Ok(self.names().iter().map(|name| format!("{name}\t{} bytes\n", size(name))).collect())
            }
            Act::Read => {
                let path = self.file(text("path")?)?;
                // A model that guesses gets the nearest thing to a file there is.
                read(&path).or_else(|error| match self.names().first() {
                    Some(first) => read(&self.folder.join(first)),
                    None => Err(error),
                })
            }
            Act::Search => {
                let word = text("pattern")?;
                let mut found = String::new();
                for name in self.names() {
                    let lines = read(&self.folder.join(&name))?;
                    for (number, line) in lines.lines().enumerate().filter(|(_, line)| line.contains(word)).take(20) {
                        found.push_str(&format!("{name}:{}: {line}\n", number + 1));
                    }
                }
                Ok(if found.is_empty() { "nothing found".into() } else { found })
            }
            Act::Note => {
                std::fs::write(self.folder.join("note.md"), text("text")?).map_err(|error| error.to_string())?;
                Ok("written".into())
            }
        }
    }
}

#[async_trait]
impl Tool for Files {
    fn spec(&self) -> ToolSpec {
        let object = |properties: Value, required: &[&str]| json!({"type": "object", "properties": properties, "required": required});
        let string = |what: &str| json!({"type": "string", "description": what});
        match self.act {
            Act::List => ToolSpec::new("list_dir", "Lists the files.", object(json!({}), &[])),
            Act::Read => {
                let path = json!({"path": string("Name of the file.")});
                ToolSpec::new("read_file", "Reads a file.", object(path, &["path"]))
            }
            Act::Search => {
                let pattern = json!({"pattern": string("Plain text.")});
                ToolSpec::new("grep", "Lists lines that hold a text.", object(pattern, &["pattern"]))
            }
            Act::Note => {
                let note = json!({"text": string("The note.")});
                ToolSpec::new("write_note", "Writes the note, in place of the last.", object(note, &["text"]))
            }
        }
    }

    async fn call(&self, call: ToolCall<'_>) -> ToolOutput {
        let arguments: Value = serde_json::from_str(call.arguments).unwrap_or_default();
        match self.act(&arguments) {
            Ok(text) => ToolOutput::text(text),
            Err(why) => ToolOutput::error(why),
        }
    }
}
