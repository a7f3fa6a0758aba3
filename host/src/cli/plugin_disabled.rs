//! `plugin`, in a build without an engine.

use std::process::ExitCode;

use super::failure::Failure;

/// Make, build, check and look into plugins; this build has no engine for them (feature `wasm`).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What was asked for.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let asked = args.rest.first().map(|act| format!(" {act}")).unwrap_or_default();
    let how = "cargo build --release --features wasm";
    Err(Failure::Usage(format!("plugin{asked}: this build has no engine for plugins; build it so: {how}")))
}
