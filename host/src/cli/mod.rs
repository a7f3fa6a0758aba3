//! Command line: arguments in, data on stdout, everything else on stderr.

mod compact;
mod estimate;
mod explain;
mod failure;
mod files;
mod recall;
mod replay;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use failure::Failure;

/// View-only context management for LLM agents.
///
/// The record of a conversation is kept whole; what shrinks is the view that one model call is sent.
#[derive(Debug, Parser)]
#[command(name = "foreshorten", version, after_help = EXITS)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXITS: &str = "Exit codes: 0 done; 2 usage; 3 bad input (nothing written); 4 protected content cannot fit; \
                     5 nothing found; 6 ambiguous.\nstdout carries data only.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Play recorded sessions: what would this policy have done, turn by turn, in tokens, cache and money?
    Replay(replay::Args),
    /// Filter a request body: messages in, smaller messages out, decisions kept in a file.
    Compact(compact::Args),
    /// Bring back what a marker, preview or note stands for.
    Recall(recall::Args),
    /// Show what is in the window and who put it there.
    Estimate(estimate::Args),
    /// Say what a provider's error means, and the window it names.
    ExplainError(explain::Args),
    /// List the stages a pipeline can be made of.
    Stages,
    /// Print a shell completion script.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    Man,
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
        Command::Man => {
            let mut out = Vec::new();
            clap_mangen::Man::new(Cli::command())
                .render(&mut out)
                .map_err(Failure::from)
                .and_then(|()| files::print(&out))
        }
    };
    match done {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
