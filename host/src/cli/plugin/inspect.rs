//! `plugin inspect`: what a file is.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use foreshorten::plugin::{
    Settings,
    wasm::{Outline, WIT_VERSION},
};
use serde_json::json;

use super::super::{failure::Failure, files, plugin_keys};
use super::{bad, native};

/// Show what a plugin is: worlds, versions, imports and exports, digest.
///
/// Nothing of a component is compiled or run. A native library tells what it is only when it is loaded, which runs code of
/// it: that is done in a process of its own, and only when you allow it.
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
    /// File of public keys: also says whether one of them signed it. May be given again.
    #[arg(long, value_name = "FILE")]
    trust: Vec<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let path = &args.path;
    let (file, _) = Settings::find(path).map_err(bad(path))?;
    let signature = plugin_keys::verdict(path, &args.trust)?;
    if native::is_library(path).map_err(bad(path))? {
        return library(&file, args, signature);
    }
    let bytes = files::read(&file)?;
    let outline = Outline::read(&bytes).map_err(bad(&file))?;
    let digest = foreshorten::plugin::sha256(&bytes);
    if args.json {
        let out =
            json!({"file": file, "bytes": bytes.len(), "sha256": digest, "signature": signature, "component": outline});
        return files::print(format!("{out:#}\n").as_bytes());
    }
    let mut out = format!("{}\n{} bytes, SHA-256 {digest}\n", file.display(), bytes.len());
    let worlds: Vec<&str> = outline.worlds.iter().map(|world| world.name()).collect();
    let is = if worlds.is_empty() { "no plugin".to_owned() } else { worlds.join(", ") };
    let version = outline.version.as_deref().unwrap_or("no version of it");
    out.push_str(&format!("{is}, for foreshorten:plugin@{version} (this program offers {WIT_VERSION})\n"));
    if let Some(signature) = signature {
        out.push_str(&format!("{signature}\n"));
    }
    for (what, items) in [("imports", &outline.imports), ("exports", &outline.exports)] {
        for item in items {
            out.push_str(&format!("{what}  {}  {}\n", item.name, item.functions.join(" ")));
        }
    }
    files::print(out.as_bytes())
}

fn library(file: &Path, args: &Args, signature: Option<String>) -> Result<ExitCode, Failure> {
    let about = native::about(&args.path, args.allow)?;
    if args.json {
        let out = json!({"file": file, "signature": signature, "library": about});
        return files::print(format!("{out:#}\n").as_bytes());
    }
    let (major, minor) = about.abi;
    let (own_major, own_minor) = about.offered;
    let offers = if about.offers.is_empty() { "nothing".to_owned() } else { about.offers.join(", ") };
    let mut out = format!(
        "{}\n{} bytes, SHA-256 {}\nnative library {} {}, for plugin ABI {major}.{minor} (this program offers \
         {own_major}.{own_minor})\noffers  {offers}\n",
        file.display(),
        about.bytes,
        about.sha256,
        if about.name.is_empty() { "without a name" } else { &about.name },
        about.version,
    );
    if let Some(signature) = signature {
        out.push_str(&format!("{signature}\n"));
    }
    files::print(out.as_bytes())
}
