//! Where the tools of other languages are, and what to install where they are not.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::failure::Failure;

/// What the settings name; an error where it is not there.
fn named(variable: &str) -> Result<Option<PathBuf>, Failure> {
    let Some(value) = std::env::var_os(variable).filter(|value| !value.is_empty()) else { return Ok(None) };
    let path = PathBuf::from(value);
    if path.is_file() || on_path(&path).is_some() {
        return Ok(Some(path));
    }
    Err(Failure::Usage(format!("{variable} names {}, which is not there", path.display())))
}

/// A program on PATH.
fn on_path(name: &Path) -> Option<PathBuf> {
    if name.components().count() != 1 {
        return None;
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The program itself, or the one with the highest number after its name, as Debian has them.
fn newest(name: &str) -> Option<PathBuf> {
    on_path(Path::new(name))
        .or_else(|| (11..40).rev().find_map(|number| on_path(Path::new(&format!("{name}-{number}")))))
}

/// A clang that can compile for WebAssembly.
pub(super) fn clang() -> Result<PathBuf, Failure> {
    const INSTALL: &str = "on Debian and Ubuntu `apt install clang lld`, on macOS `brew install llvm lld`, or name one in \
                           FORESHORTEN_CLANG";
    let Some(clang) = named("FORESHORTEN_CLANG")?.or_else(|| newest("clang")) else {
        return Err(Failure::Usage(format!("plugins in C need clang, which is not on PATH: {INSTALL}")));
    };
    let targets = Command::new(&clang).arg("--print-targets").output();
    match targets {
        Ok(out) if String::from_utf8_lossy(&out.stdout).contains("wasm32") => Ok(clang),
        // Apple's has none.
        Ok(_) => Err(Failure::Usage(format!(
            "{} cannot compile for WebAssembly (it has no target wasm32): {INSTALL}",
            clang.display()
        ))),
        Err(error) => Err(Failure::Usage(format!("{} cannot be run: {error}", clang.display()))),
    }
}

/// A linker, and how it is told that it links WebAssembly.
pub(super) struct Linker {
    program: PathBuf,
    flavor: bool,
}

impl Linker {
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if self.flavor {
            command.args(["-flavor", "wasm"]);
        }
        command
    }
}

/// A linker for WebAssembly: wasm-ld beside clang or on PATH, or the rust-lld of a Rust compiler.
pub(super) fn wasm_ld(clang: &Path) -> Result<Linker, Failure> {
    if let Some(program) = named("FORESHORTEN_WASM_LD")? {
        let flavor = program.file_stem().is_some_and(|stem| stem == "rust-lld");
        return Ok(Linker { program, flavor });
    }
    let beside = clang.parent().map(|folder| folder.join("wasm-ld")).filter(|file| file.is_file());
    if let Some(program) = beside.or_else(|| newest("wasm-ld")) {
        return Ok(Linker { program, flavor: false });
    }
    if let Some(program) = rust_lld() {
        return Ok(Linker { program, flavor: true });
    }
    Err(Failure::Usage(
        "plugins in C need wasm-ld, which is neither beside clang nor on PATH: on Debian and Ubuntu `apt install lld`, on \
         macOS `brew install lld`, or name one in FORESHORTEN_WASM_LD"
            .into(),
    ))
}

/// The linker that comes with Rust.
fn rust_lld() -> Option<PathBuf> {
    let out = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let version = Command::new("rustc").arg("-vV").output().ok()?;
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let host = version.lines().find_map(|line| line.strip_prefix("host: "))?;
    let folder = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim()).join("lib/rustlib").join(host).join("bin");
    let name = if cfg!(windows) { "rust-lld.exe" } else { "rust-lld" };
    Some(folder.join(name)).filter(|file| file.is_file())
}

/// The componentizer for JavaScript: of the project, or named.
pub(super) fn componentize_qjs(folder: &Path) -> Result<PathBuf, Failure> {
    if let Some(tool) = named("FORESHORTEN_COMPONENTIZE_QJS")? {
        return Ok(tool);
    }
    let name = if cfg!(windows) { "componentize-qjs.cmd" } else { "componentize-qjs" };
    let own = folder.join("node_modules/.bin").join(name);
    if own.is_file() {
        return Ok(own);
    }
    on_path(Path::new(name)).ok_or_else(|| {
        Failure::Usage(format!(
            "plugins in JavaScript need componentize-qjs, which is not in {}: run `npm install` in {}, or name it in \
             FORESHORTEN_COMPONENTIZE_QJS",
            own.display(),
            folder.display()
        ))
    })
}

/// The componentizer for Python: of the project's .venv, on PATH, or named.
pub(super) fn componentize_py(folder: &Path) -> Result<PathBuf, Failure> {
    if let Some(tool) = named("FORESHORTEN_COMPONENTIZE_PY")? {
        return Ok(tool);
    }
    let own =
        folder.join(if cfg!(windows) { ".venv/Scripts/componentize-py.exe" } else { ".venv/bin/componentize-py" });
    if own.is_file() {
        return Ok(own);
    }
    on_path(Path::new("componentize-py")).ok_or_else(|| {
        Failure::Usage(format!(
            "plugins in Python need componentize-py, which is neither at {} nor on PATH: in {} run `python3 -m venv .venv \
             && .venv/bin/pip install -r requirements.txt`, or name it in FORESHORTEN_COMPONENTIZE_PY",
            own.display(),
            folder.display()
        ))
    })
}
