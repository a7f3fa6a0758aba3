//! `plugin check`: the conformance kit.

use std::path::PathBuf;
use std::process::ExitCode;

use foreshorten::plugin::{
    Limits, Loader,
    conformance::{self, Report},
};

use super::super::{failure::Failure, files};
use super::bad;

/// Run the conformance kit on a plugin.
///
/// Exit codes: 0 passed, be it with warnings; 3 a check failed, or there is no plugin to check.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Component, plugin.toml, or folder with one.
    path: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let path = &args.path;
    let loader = Loader::new(Limits::caps()).map_err(bad(path))?;
    let report: Report = conformance::check(&loader, path).map_err(bad(path))?;
    let good = report.passed();
    let out = if args.json {
        let mut out = serde_json::to_vec_pretty(&report).map_err(std::io::Error::from)?;
        out.push(b'\n');
        out
    } else {
        report.to_string().into_bytes()
    };
    files::print(&out)?;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(3) })
}
