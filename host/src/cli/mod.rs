//! Command line: arguments in, data on stdout, everything else on stderr.

/// Says something to people, on stderr. That nobody listens there is no failure.
macro_rules! say {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "foreshorten: {}", format_args!($($words)*));
    }};
}

mod compact;
mod estimate;
mod explain;
mod failure;
mod files;
#[cfg(feature = "wasm")]
mod plugin;
#[cfg(not(feature = "wasm"))]
#[path = "plugin_disabled.rs"]
mod plugin;
mod prefix;
mod recall;
mod replay;
mod state;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use failure::Failure;
use foreshorten::drive::{Summaries, SummarizerChoice};
use foreshorten::plugin::{Limits, Loader, Loaders};

/// View-only context management for LLM agents.
///
/// The record of a conversation is kept whole; what shrinks is the view that one model call is sent.
#[derive(Debug, Parser)]
#[command(name = "foreshorten", version, after_help = EXITS)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXITS: &str = "Exit codes: 0 done; 1 a file cannot be written; 2 usage; 3 bad input (nothing written); \
                     4 protected content cannot fit; 5 nothing found; 6 ambiguous.\nstdout carries data only.";

// The help of a command is the text of its arguments.
#[derive(Debug, Subcommand)]
enum Command {
    Replay(replay::Args),
    Compact(compact::Args),
    Recall(recall::Args),
    Estimate(estimate::Args),
    ExplainError(explain::Args),
    State(state::Args),
    Plugin(plugin::Args),
    /// List the stages a pipeline can be made of.
    Stages,
    /// Print a shell completion script.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print a manual page: the program's, or that of one command.
    Man {
        /// The command.
        command: Option<String>,
    },
}

/// Runs the program.
pub(crate) fn run() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        Command::Replay(args) => replay::run(&args),
        Command::Compact(args) => compact::run(&args),
        Command::Recall(args) => recall::run(&args),
        Command::Estimate(args) => estimate::run(&args),
        Command::ExplainError(args) => explain::run(&args),
        Command::State(args) => state::run(&args),
        Command::Plugin(args) => plugin::run(&args),
        Command::Stages => {
            let lines: Vec<String> =
                foreshorten::options::STAGES.iter().map(|(name, what)| format!("{name:<24}{what}\n")).collect();
            files::print(lines.concat().as_bytes())
        }
        Command::Completions { shell } => {
            let mut out = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "foreshorten", &mut out);
            files::print(&out)
        }
        Command::Man { command } => manual(command.as_deref()),
    };
    match done {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

/// The summarizer that was chosen.
fn load_summarizer(choice: &SummarizerChoice, allow_native: bool) -> Result<Summaries, Failure> {
    let loaded = choice.load(&mut Loaders::new(|| Loader::new(Limits::caps()), allow_native));
    loaded.map_err(|error| Failure::Usage(format!("--summarizer {choice}: {error}")))
}

/// The manual page of the program or of one of its commands.
fn manual(command: Option<&str>) -> Result<ExitCode, Failure> {
    let mut cli = Cli::command();
    cli.build();
    let page = match command {
        None => cli,
        Some(name) => cli.find_subcommand(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
            Failure::Usage(format!("there is no command `{name}`; there are {}", known.join(", ")))
        })?,
    };
    let title = format!("foreshorten{}", command.map(|name| format!("-{name}")).unwrap_or_default());
    let mut out = Vec::new();
    clap_mangen::Man::new(page.version(env!("CARGO_PKG_VERSION"))).title(title).render(&mut out)?;
    files::print(&out)
}
