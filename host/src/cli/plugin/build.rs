//! `plugin build`: from a project, or a core module, to a component.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use foreshorten::plugin::{
    Settings,
    wasm::{Outline, WIT_VERSION, encode},
};
use foreshorten::stores::write_atomically;

use super::super::{failure::Failure, files};
use super::{bad, languages};

/// Build a plugin, and print the path of the component.
///
/// What a folder has in it tells its language: Cargo.toml, package.json, a .py or a .c file. Tools are looked for on
/// PATH, in the project, and where these variables say: FORESHORTEN_WASM_CARGO (Rust, where rustup has no
/// wasm32-unknown-unknown: a cargo whose compiler has the library's sources), FORESHORTEN_CLANG and FORESHORTEN_WASM_LD
/// (C), FORESHORTEN_COMPONENTIZE_QJS (JavaScript), FORESHORTEN_COMPONENTIZE_PY (Python). What a loader would refuse to
/// load is not written.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder of the project, or a core module of any language, which is encoded as it is.
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Where the component goes. Default: the file that the project's plugin.toml names, or NAME.wasm in it.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let path = &args.path;
    // Compilers leave more than one file behind.
    let scratch = tempfile::tempdir()?;
    let module = if path.is_dir() { languages::build(path, scratch.path())? } else { path.clone() };
    let component = encode(&files::read(&module)?).map_err(bad(&module))?;
    let outline = Outline::read(&component).map_err(bad(&module))?;
    // A plugin.toml says what is granted; where there is none, building is no reason to refuse what may be granted.
    let grants = match Settings::find(path) {
        Ok((_, settings)) if path.is_dir() => settings.grants,
        _ => vec!["condensing".to_owned()],
    };
    outline.verify(&grants).map_err(bad(path))?;
    let out = match &args.out {
        Some(out) => out.clone(),
        None => destination(path, &module)?,
    };
    write_atomically(&out, &component)?;
    let worlds: Vec<&str> = outline.worlds.iter().map(|world| world.name()).collect();
    say!("{} bytes, {}, for foreshorten:plugin@{WIT_VERSION}", component.len(), worlds.join(" and "));
    let next = if path.join("plugin.toml").is_file() { path } else { &out };
    say!("next: foreshorten plugin check {}", next.display());
    files::print(format!("{}\n", out.display()).as_bytes())
}

/// Where the component goes when nobody says: what the settings name, the crate's name, or that of the folder.
fn destination(path: &Path, module: &Path) -> Result<PathBuf, Failure> {
    if !path.is_dir() {
        return Ok(path.with_extension("component.wasm"));
    }
    let manifest = path.join("plugin.toml");
    if manifest.is_file() {
        return Ok(Settings::find(path).map_err(bad(&manifest))?.0);
    }
    if path.join("Cargo.toml").is_file() {
        let name = module.file_name().unwrap_or_default().to_string_lossy().replace('_', "-");
        return Ok(path.join(name));
    }
    let whole = std::path::absolute(path)?;
    let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(path.join(format!("{name}.wasm")))
}
