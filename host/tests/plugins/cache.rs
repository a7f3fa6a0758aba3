//! The cache of compiled plugins: what is taken from it, and that whatever is in doubt is compiled again.

use std::fs;
use std::path::{Path, PathBuf};

use foreshorten::plugin::{CodeCache, Limits, LoadError, Loader, Loads, wasm::encode};

use crate::support::module;

fn loader(folder: &Path) -> Loader {
    Loader::new(Limits::caps()).unwrap().cached(CodeCache::at(folder))
}

/// A plugin that does nothing, in a folder, and the folder for its code.
fn plugin() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let (file, cache) = (home.path().join("idle.wasm"), home.path().join("cache"));
    fs::write(&file, encode(&module("", "(i32.const 16)")).unwrap()).unwrap();
    (home, file, cache)
}

/// Loads with a loader of its own, as the next process would.
fn load(cache: &Path, file: &Path) -> Loads {
    let loader = loader(cache);
    loader.stage(file).unwrap();
    loader.loads()
}

const COMPILED: Loads = Loads { compiled: 1, from_cache: 0 };
const CACHED: Loads = Loads { compiled: 0, from_cache: 1 };

fn code(cache: &Path) -> PathBuf {
    let mut files = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|ending| ending == "code")).unwrap()
}

#[test]
fn the_second_load_compiles_nothing_and_checks_everything() {
    let (home, file, cache) = plugin();
    assert_eq!(load(&cache, &file), COMPILED);
    assert_eq!(load(&cache, &file), CACHED);
    // Without one asked for, nothing is taken and nothing is left.
    let plain = Loader::new(Limits::caps()).unwrap();
    plain.stage(&file).unwrap();
    assert_eq!(plain.loads(), COMPILED);
    // Another file is another entry; the same file under another name is the same.
    let other = home.path().join("other.wasm");
    fs::copy(&file, &other).unwrap();
    assert_eq!(load(&cache, &other), CACHED);
    fs::write(&other, encode(&module("", "(drop (i32.const 1)) (i32.const 16)")).unwrap()).unwrap();
    assert_eq!(load(&cache, &other), COMPILED);
    // What is pinned is looked at before the cache.
    fs::write(home.path().join("idle.wasm.sha256"), "00ff  idle.wasm").unwrap();
    assert!(matches!(loader(&cache).stage(&file), Err(LoadError::Digest(..))));
}

#[test]
fn what_did_not_pass_is_not_kept() {
    let (_home, file, cache) = plugin();
    let loader = loader(&cache);
    fs::write(&file, wat::parse_str(r#"(component (import "wasi:cli/exit@0.2.0" (instance)))"#).unwrap()).unwrap();
    assert!(matches!(loader.stage(&file), Err(LoadError::Imports(..))));
    let check = r#"(func (export "foreshorten:plugin/stage-api@0.1.0#check") (result i32)"#;
    let text = format!(
        r#"(module (memory (export "memory") 1)
          (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096))
          {check} unreachable)
          (func (export "foreshorten:plugin/stage-api@0.1.0#plan") (result i32) (i32.const 16)))"#
    );
    fs::write(&file, encode(&wat::parse_str(text).unwrap()).unwrap()).unwrap();
    assert!(matches!(loader.stage(&file), Err(LoadError::Check("check", _))));
    assert!(!cache.exists() || fs::read_dir(&cache).unwrap().count() <= 1, "no code");
}

#[test]
fn code_that_was_tampered_with_is_compiled_again_and_replaced() {
    let (_home, file, cache) = plugin();
    load(&cache, &file);
    let path = code(&cache);
    let whole = fs::read(&path).unwrap();
    let step = whole.len() / 12;
    for at in (0..whole.len()).step_by(step).chain([whole.len() - 1]) {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&path, changed).unwrap();
        assert_eq!(load(&cache, &file), COMPILED, "byte {at} of {}", whole.len());
        assert_eq!(load(&cache, &file), CACHED, "replaced");
    }
    for cut in [&whole[..0], &whole[..50], &whole[..whole.len() - 1]] {
        fs::write(&path, cut).unwrap();
        assert_eq!(load(&cache, &file), COMPILED);
    }
    // Sealed by another installation, byte for byte the same code.
    fs::write(cache.join("key"), [7; 32]).unwrap();
    assert_eq!(load(&cache, &file), COMPILED);
    assert_eq!(load(&cache, &file), CACHED);
    // The engine's own format, without our seal: refused in the cache as anywhere else.
    fs::write(&path, &whole[52..whole.len() - 32]).unwrap();
    assert_eq!(load(&cache, &file), COMPILED);
}

#[test]
fn code_of_others_is_never_loaded_as_a_plugin() {
    let (home, file, cache) = plugin();
    load(&cache, &file);
    let whole = fs::read(code(&cache)).unwrap();
    for bytes in [&whole[..], &whole[52..whole.len() - 32]] {
        let precompiled = home.path().join("theirs.cwasm");
        fs::write(&precompiled, bytes).unwrap();
        let error = loader(&cache).stage(&precompiled).unwrap_err();
        assert!(matches!(error, LoadError::NotAComponent(_)), "{error}");
    }
}

#[test]
fn loaders_at_once_share_a_cache() {
    let (_home, file, cache) = plugin();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (file, cache) = (&file, &cache);
            scope.spawn(move || load(cache, file));
        }
    });
    assert_eq!(load(&cache, &file), CACHED);
}

#[cfg(unix)]
#[test]
fn in_a_folder_that_is_not_private_or_not_there_plugins_load_without_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let (home, file, cache) = plugin();
    load(&cache, &file);
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(load(&cache, &file), COMPILED);
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(load(&cache, &file), CACHED);
    assert_eq!(load(&file.join("no/folder"), &file), COMPILED);
    drop(home);
}
