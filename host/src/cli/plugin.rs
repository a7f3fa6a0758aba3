//! `plugin`: for who writes plugins, and for who is to trust one.

mod build;
mod check;
mod inspect;
mod languages;
#[cfg(feature = "dylib")]
mod native;
#[cfg(not(feature = "dylib"))]
#[path = "plugin/native_disabled.rs"]
mod native;
mod tools;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use foreshorten::plugin::{
    LoadError,
    scaffold::{self, Language},
    wasm::World,
};
use foreshorten::stores::write_atomically;

use super::{failure::Failure, files, plugin_keys};

/// Make, build, check and look into plugins: stages and summarizers that are loaded at run time.
#[derive(Debug, clap::Args)]
#[command(after_help = "From nothing to a replay:\n  \
    foreshorten plugin new --lang c my-stage\n  \
    foreshorten plugin build my-stage\n  \
    foreshorten plugin check my-stage\n  \
    foreshorten replay SESSION --window 32000 --stage my-stage/plugin.toml")]
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
        #[arg(long, value_parser = ["rust", "c", "js", "python"], default_value = "rust")]
        lang: String,
        /// What it is: a stage or a summarizer.
        #[arg(long, value_parser = ["stage", "summarizer"], default_value = "stage")]
        world: String,
    },
    Build(build::Args),
    Check(check::Args),
    Inspect(inspect::Args),
    /// Make keys that sign plugins.
    #[command(subcommand)]
    Keys(plugin_keys::Keys),
    /// Sign a plugin, and print the path of the signature: FILE.sig beside it.
    Sign(plugin_keys::Sign),
    #[command(hide = true)]
    Child(native::Child),
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    match &args.act {
        Act::New { name, lang, world } => new(name, lang, world),
        Act::Build(args) => build::run(args),
        Act::Check(args) => check::run(args),
        Act::Inspect(args) => inspect::run(args),
        Act::Keys(act) => plugin_keys::keys(act),
        Act::Sign(args) => plugin_keys::sign(args),
        Act::Child(args) => native::child(args),
    }
}

fn bad(path: &Path) -> impl Fn(LoadError) -> Failure + '_ {
    move |error| Failure::Input(format!("{}: {error}", path.display()))
}

fn new(path: &Path, language: &str, world: &str) -> Result<ExitCode, Failure> {
    if path.exists() {
        return Err(Failure::Usage(format!("{} exists already", path.display())));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic())
        || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    {
        return Err(Failure::Usage(format!(
            "`{name}` is no name for a plugin: a letter, then letters, digits, - and _"
        )));
    }
    let language = Language::ALL.into_iter().find(|known| known.name() == language).unwrap_or(Language::Rust);
    let world = if world == "summarizer" { World::Summarizer } else { World::Stage };
    for (file, text) in scaffold::files(language, world, &name) {
        let file = path.join(file);
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        write_atomically(&file, text.as_bytes())?;
    }
    let folder = path.display();
    match language {
        Language::JavaScript => {
            say!("made {folder}; next: (cd {folder} && npm install), foreshorten plugin build {folder}")
        }
        Language::Python => say!(
            "made {folder}; next: (cd {folder} && python3 -m venv .venv && .venv/bin/pip install -r requirements.txt), \
             foreshorten plugin build {folder}"
        ),
        _ => say!("made {folder}; next: foreshorten plugin build {folder}"),
    }
    files::print(format!("{folder}\n").as_bytes())
}
