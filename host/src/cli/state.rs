//! `state`: what a state file holds, for people.

use std::path::PathBuf;
use std::process::ExitCode;

use foreshorten::core::CompactionState;

use super::{failure::Failure, files};

/// Print a session's state as JSON: its decisions, notes, pins, and what was learned.
///
/// The form is for reading; it may change from one version to the next.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file given to `compact --state`.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let bytes = files::read(&args.file)?;
    let bad = |why: String| Failure::Input(format!("{}: {why}", args.file.display()));
    let state = CompactionState::decode(&bytes).map_err(|error| bad(error.to_string()))?;
    let mut text = serde_json::to_string_pretty(&state).map_err(|error| bad(error.to_string()))?;
    text.push('\n');
    files::print(text.as_bytes())
}
