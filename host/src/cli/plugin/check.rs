//! `plugin check`: the conformance kit.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use foreshorten::plugin::{Limits, Loader, conformance};

use super::super::{failure::Failure, files};
use super::{bad, native};

/// Run the conformance kit on a plugin.
///
/// Every check says ok, warn or FAIL. A native library runs code of its own, so it must be allowed, and each of
/// its checks has a process of its own: one that crashes, exits or hangs fails that check, and the others go on.
///
/// Exit codes: 0 passed, be it with warnings; 3 a check failed, or there is no plugin to check; 2 a native library that is
/// not allowed.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Component, native library, plugin.toml, or folder with one.
    path: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Run a native library, which has all your rights then. What is pinned must be what was pinned.
    #[arg(long)]
    allow: bool,
    /// Most seconds that one check of a native library may take.
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let path = &args.path;
    let report = if native::is_library(path).map_err(bad(path))? {
        native::check(path, args.allow, Duration::from_secs(args.seconds))?
    } else {
        let loader = Loader::new(Limits::caps()).map_err(bad(path))?;
        conformance::check(&loader, path).map_err(bad(path))?
    };
    let good = report.passed();
    let out = if args.json {
        let mut out = serde_json::to_value(&report).map_err(std::io::Error::from)?;
        out["passed"] = good.into();
        format!("{out:#}\n")
    } else {
        report.to_string()
    };
    files::print(out.as_bytes())?;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(3) })
}
