//! `plugin inspect`: what a file is.

use std::path::PathBuf;
use std::process::ExitCode;

use foreshorten::plugin::wasm::{Outline, WIT_VERSION};
use serde_json::json;

use super::super::{failure::Failure, files};
use super::bad;

/// Show what a component is, imports and exports. Nothing of it is compiled or run.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The component.
    path: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let path = &args.path;
    let bytes = files::read(path)?;
    let outline = Outline::read(&bytes).map_err(bad(path))?;
    let digest = foreshorten::plugin::sha256(&bytes);
    if args.json {
        let out = json!({"file": path, "bytes": bytes.len(), "sha256": digest, "component": outline});
        return files::print(format!("{out:#}\n").as_bytes());
    }
    let mut out = format!("{}\n{} bytes, SHA-256 {digest}\n", path.display(), bytes.len());
    let worlds: Vec<&str> = outline.worlds.iter().map(|world| world.name()).collect();
    let is = if worlds.is_empty() { "no plugin".to_owned() } else { worlds.join(", ") };
    let version = outline.version.as_deref().unwrap_or("no version of it");
    out.push_str(&format!("{is}, for foreshorten:plugin@{version} (this program offers {WIT_VERSION})\n"));
    for (what, items) in [("imports", &outline.imports), ("exports", &outline.exports)] {
        for item in items {
            out.push_str(&format!("{what}  {}  {}\n", item.name, item.functions.join(" ")));
        }
    }
    files::print(out.as_bytes())
}
