//! Builds the guest, in both forms, from the source that is linked in here too.

use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/marginal")
}

/// Runs cargo in the guest's folder; answers the file with this ending that it made.
fn cargo(program: &Path, arguments: &[&str], ending: &str) -> Vec<u8> {
    let done = Command::new(program)
        .current_dir(folder())
        .args(["build", "--lib", "--locked", "--message-format", "json-render-diagnostics"])
        .args(arguments)
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests"))
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let file = |line: &str| -> Option<PathBuf> {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let files = message.get("filenames")?.as_array()?;
        files.iter().filter_map(|file| file.as_str()).find(|file| file.ends_with(ending)).map(PathBuf::from)
    };
    let lines = String::from_utf8_lossy(&done.stdout);
    let made = lines.lines().filter_map(file).next_back().unwrap_or_else(|| panic!("cargo made no {ending}"));
    std::fs::read(&made).unwrap_or_else(|error| panic!("{}: {error}", made.display()))
}

/// The core module; `None` where nothing here builds for wasm32.
pub(crate) fn module() -> Option<Vec<u8>> {
    let libdir = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output().ok()?;
    if Path::new(String::from_utf8_lossy(&libdir.stdout).trim()).is_dir() {
        return Some(cargo(Path::new("cargo"), &["--release", "--target", TARGET], ".wasm"));
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    let other = std::env::var_os("FORESHORTEN_WASM_CARGO").map(PathBuf::from);
    let other = other.or_else(|| Some(cache?.join("foreshorten/bare-toolchain/bin/cargo-bare")))?;
    other.exists().then(|| cargo(&other, &["--release", "--target", TARGET, "-Zbuild-std=core,alloc"], ".wasm"))
}

/// The native library.
pub(crate) fn library() -> Vec<u8> {
    let arguments = ["--profile", "native", "--features", "foreshorten-plugin/dylib"];
    cargo(Path::new(env!("CARGO")), &arguments, std::env::consts::DLL_SUFFIX)
}
