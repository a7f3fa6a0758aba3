//! Native libraries, in a build that does not load them.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use foreshorten::plugin::{FileKind, LoadError, conformance::Report};

use super::super::failure::Failure;

/// Nothing: there are no children in this build.
#[derive(Debug, clap::Args)]
pub(super) struct Child {}

/// What a library would say about itself; none is ever made.
#[derive(Debug, serde::Serialize)]
pub(super) struct About {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) abi: (u32, u32),
    pub(super) offered: (u32, u32),
    pub(super) offers: Vec<String>,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

pub(super) fn child(_: &Child) -> Result<ExitCode, Failure> {
    Err(unsupported(Path::new("child")))
}

pub(super) fn check(path: &Path, _: bool, _: Duration) -> Result<Report, Failure> {
    Err(unsupported(path))
}

pub(super) fn about(path: &Path, _: bool) -> Result<About, Failure> {
    Err(unsupported(path))
}

pub(super) fn is_library(path: &Path) -> Result<bool, LoadError> {
    Ok(FileKind::of(path)? == FileKind::Library)
}

fn unsupported(path: &Path) -> Failure {
    let how = "cargo build --release --features wasm,dylib";
    Failure::Usage(format!("{}: this build does not load native libraries; build it so: {how}", path.display()))
}
