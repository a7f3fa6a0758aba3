//! `plugin`: for who writes plugins, and for who is to trust one.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use foreshorten::plugin::{
    Limits, LoadError, Loader,
    conformance::{self, Report},
    scaffold,
    wasm::{Outline, WIT_VERSION, encode},
};
use foreshorten::stores::write_atomically;
use serde_json::json;

use super::{failure::Failure, files, plugin_keys};

/// Make, build, check and look into plugins: stages and summarizers that are loaded at run time.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    act: Act,
}

#[derive(Debug, clap::Subcommand)]
enum Act {
    /// Make a folder with a working plugin, its tests, and all it needs.
    New {
        /// Name, and folder, of the plugin.
        name: PathBuf,
        /// Its language.
        #[arg(long, value_parser = ["rust"], default_value = "rust")]
        lang: String,
        /// What it is: a stage or a summarizer.
        #[arg(long, value_parser = ["stage", "summarizer"], default_value = "stage")]
        world: String,
    },
    /// Build a plugin, and print the path of the component.
    ///
    /// A folder with a Cargo.toml is built for wasm32-unknown-unknown; a core module is encoded as it is. Where rustup has
    /// no such target, FORESHORTEN_WASM_CARGO names a cargo whose compiler has the library's sources.
    Build {
        /// Folder, or core module.
        #[arg(default_value = ".")]
        path: PathBuf,
        /// Where the component goes. Default: beside what it was made of.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Run the conformance kit on a plugin.
    Check {
        /// Component, plugin.toml, or folder with one.
        path: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what a component is, imports and exports. Nothing of it is compiled or run.
    Inspect {
        /// The component.
        path: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// File of public keys: also says whether one of them signed it. May be given again.
        #[arg(long, value_name = "FILE")]
        trust: Vec<PathBuf>,
    },
    /// Make keys that sign plugins.
    #[command(subcommand)]
    Keys(plugin_keys::Keys),
    /// Sign a plugin, and print the path of the signature: FILE.sig beside it.
    Sign(plugin_keys::Sign),
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    match &args.act {
        Act::New { name, world, .. } => new(name, world),
        Act::Build { path, out } => build(path, out.as_deref()),
        Act::Check { path, json } => check(path, *json),
        Act::Inspect { path, json, trust } => inspect(path, *json, trust),
        Act::Keys(act) => plugin_keys::keys(act),
        Act::Sign(args) => plugin_keys::sign(args),
    }
}

fn bad(path: &Path) -> impl Fn(LoadError) -> Failure + '_ {
    move |error| Failure::Input(format!("{}: {error}", path.display()))
}

fn new(path: &Path, world: &str) -> Result<ExitCode, Failure> {
    if path.exists() {
        return Err(Failure::Usage(format!("{} exists already", path.display())));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic())
        || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    {
        return Err(Failure::Usage(format!("`{name}` is no name for a plugin: letters, digits, - and _")));
    }
    for (file, text) in scaffold::rust(&name, world == "stage") {
        let file = path.join(file);
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        write_atomically(&file, text.as_bytes())?;
    }
    say!("made {}; next: foreshorten plugin build {0}", path.display());
    files::print(format!("{}\n", path.display()).as_bytes())
}

fn build(path: &Path, out: Option<&Path>) -> Result<ExitCode, Failure> {
    let module = if path.is_dir() { cargo_build(path)? } else { path.to_owned() };
    let bytes = files::read(&module)?;
    let component = encode(&bytes).map_err(bad(&module))?;
    let outline = Outline::read(&component).map_err(bad(&module))?;
    let default = if path.is_dir() {
        let name = module.file_name().unwrap_or_default().to_string_lossy().replace('_', "-");
        path.join(name)
    } else {
        path.with_extension("component.wasm")
    };
    let out = out.map_or(default, Path::to_owned);
    write_atomically(&out, &component)?;
    let worlds: Vec<&str> = outline.worlds.iter().map(|world| world.name()).collect();
    say!("{} bytes, {}, for foreshorten:plugin@{WIT_VERSION}", component.len(), worlds.join(" and "));
    files::print(format!("{}\n", out.display()).as_bytes())
}

/// Builds the crate in `folder`; answers the core module.
fn cargo_build(folder: &Path) -> Result<PathBuf, Failure> {
    const TARGET: &str = "wasm32-unknown-unknown";
    let has_target = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .is_ok_and(|found| Path::new(String::from_utf8_lossy(&found.stdout).trim()).is_dir());
    let other = std::env::var_os("FORESHORTEN_WASM_CARGO");
    let mut cargo = match (&other, has_target) {
        (_, true) => Command::new("cargo"),
        (Some(cargo), false) => Command::new(cargo),
        (None, false) => {
            return Err(Failure::Usage(format!(
                "the Rust compiler has no {TARGET}: `rustup target add {TARGET}`, or name a cargo in \
                 FORESHORTEN_WASM_CARGO that can build its library"
            )));
        }
    };
    cargo.current_dir(folder).args(["build", "--release", "--target", TARGET]);
    cargo.args(["--message-format", "json-render-diagnostics"]);
    if !has_target {
        cargo.arg("-Zbuild-std=core,alloc");
    }
    let done = cargo.stderr(std::process::Stdio::inherit()).output()?;
    if !done.status.success() {
        return Err(Failure::Input(format!("{}: cargo failed", folder.display())));
    }
    let lines = String::from_utf8_lossy(&done.stdout);
    let artifact = |line: &str| -> Option<PathBuf> {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let files = message.get("filenames")?.as_array()?;
        files.iter().filter_map(|file| file.as_str()).find(|file| file.ends_with(".wasm")).map(PathBuf::from)
    };
    lines.lines().rev().find_map(artifact).ok_or_else(|| {
        Failure::Input(format!("{}: no .wasm came of it; crate-type must be \"cdylib\"", folder.display()))
    })
}

fn check(path: &Path, as_json: bool) -> Result<ExitCode, Failure> {
    let loader = Loader::new(Limits::caps()).map_err(bad(path))?;
    let report: Report = conformance::check(&loader, path).map_err(bad(path))?;
    let good = report.passed();
    let out = if as_json {
        let mut out = serde_json::to_vec_pretty(&report).map_err(std::io::Error::from)?;
        out.push(b'\n');
        out
    } else {
        report.to_string().into_bytes()
    };
    files::print(&out)?;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

fn inspect(path: &Path, as_json: bool, trust: &[PathBuf]) -> Result<ExitCode, Failure> {
    let bytes = files::read(path)?;
    let outline = Outline::read(&bytes).map_err(bad(path))?;
    let digest = foreshorten::plugin::sha256(&bytes);
    let signature = plugin_keys::verdict(path, trust)?;
    if as_json {
        let out =
            json!({"file": path, "bytes": bytes.len(), "sha256": digest, "signature": signature, "component": outline});
        return files::print(format!("{out:#}\n").as_bytes());
    }
    let mut out = format!("{}\n{} bytes, SHA-256 {digest}\n", path.display(), bytes.len());
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
