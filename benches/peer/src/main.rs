//! Policies over one long session, side by side: `benches/peer/run` is the one command, and says what is measured.
//!
//! `play` drives this project's policy turn by turn, with the provider's count fed back, and writes the trace of its
//! requests; `bill` reads a trace, this project's or another's, and says what its requests were and what they cost.
//! What decides about the figures, `bill`, is the same for everybody and knows nothing of policies.

mod bill;
mod play;
mod trace;
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use foreshorten::options::PolicyOptions;

#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Drives this project's policy over the workload; writes the trace of its requests.
    Play {
        /// The workload that workload.py wrote.
        workload: PathBuf,
        /// What the policy is called in the table.
        #[arg(long)]
        name: String,
        /// Context window in tokens.
        #[arg(long)]
        window: u64,
        #[command(flatten)]
        policy: Box<PolicyOptions>,
    },
    /// Reads a trace from standard input; writes its figures as one line of JSON.
    Bill {
        /// The workload that workload.py wrote.
        workload: PathBuf,
        /// Rows of the price table.
        #[arg(long, value_delimiter = ',', default_value = "anthropic-5m,openai-5.5,openai-5.6,deepseek")]
        rows: Vec<String>,
    },
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Play { workload, name, window, policy } => play::play(&workload, &name, window, &policy),
        Command::Bill { workload, rows } => bill::bill(&workload, &rows),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("foreshorten-peer: {why}");
            ExitCode::FAILURE
        }
    }
}
