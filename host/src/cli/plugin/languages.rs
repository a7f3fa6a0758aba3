//! How a project of each language becomes WebAssembly.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use foreshorten::plugin::{scaffold, wasm::WIT};

use super::super::failure::Failure;
use super::tools;

/// Builds the project in `folder`; answers the core module, or the component. Whatever is left over goes to `scratch`.
pub(super) fn build(folder: &Path, scratch: &Path) -> Result<PathBuf, Failure> {
    let has = |file: &str| folder.join(file).is_file();
    if has("Cargo.toml") {
        return rust(folder);
    }
    if has("package.json") {
        return javascript(folder, scratch);
    }
    if !sources(folder, "py")?.is_empty() {
        return python(folder, scratch);
    }
    let code = sources(folder, "c")?;
    if !code.is_empty() {
        return c(folder, &code, scratch);
    }
    Err(Failure::Usage(format!(
        "{}: there is no plugin to build: a folder with Cargo.toml, package.json, a .py or a .c file was expected; \
         `foreshorten plugin new` makes one",
        folder.display()
    )))
}

/// Files of `folder` with that ending, save tests, in order of their names.
fn sources(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_test = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("test"));
        if path.is_file() && !is_test && path.extension().is_some_and(|has| has == ending) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Runs a tool. What it prints goes to our stderr, which is for people.
fn run(tool: &mut Command, folder: &Path) -> Result<(), Failure> {
    let name = Path::new(tool.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let done = tool.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).output();
    let done = done.map_err(|error| Failure::Usage(format!("{name} cannot be run: {error}")))?;
    if done.status.success() {
        return Ok(());
    }
    // Some say what is wrong on their stdout.
    say!("{}", String::from_utf8_lossy(&done.stdout).trim_end());
    Err(Failure::Input(format!("{}: {name} failed ({})", folder.display(), done.status)))
}

/// Builds the crate in `folder`; answers the core module.
fn rust(folder: &Path) -> Result<PathBuf, Failure> {
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
    let done = cargo.stderr(Stdio::inherit()).output()?;
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

/// Compiles and links the files; answers the core module.
fn c(folder: &Path, code: &[PathBuf], scratch: &Path) -> Result<PathBuf, Failure> {
    let clang = tools::clang()?;
    let linker = tools::wasm_ld(&clang)?;
    // A folder without copies of its own gets those of this program.
    let mut code = code.to_vec();
    let ours = scratch.join("interface");
    std::fs::create_dir(&ours)?;
    for (name, text) in scaffold::HEADER {
        if !folder.join(name).is_file() {
            std::fs::write(ours.join(name), text)?;
            code.extend(name.ends_with(".c").then(|| ours.join(name)));
        }
    }
    let mut objects = Vec::new();
    for file in &code {
        let mut object = scratch.join(file.file_name().unwrap_or_default());
        object.set_extension("o");
        let mut compile = Command::new(&clang);
        // Freestanding: there is no C library, and a loop that copies must not become a call of itself.
        compile.args([
            "--target=wasm32-unknown-unknown",
            "-std=c11",
            "-O2",
            "-ffreestanding",
            "-Wall",
            "-Wextra",
            "-c",
        ]);
        run(compile.arg("-I").arg(folder).arg("-I").arg(&ours).arg(file).arg("-o").arg(&object), folder)?;
        objects.push(object);
    }
    let module = scratch.join("module.wasm");
    let mut link = linker.command();
    // With the stack first, overflow is a trap and not an overwritten static.
    link.args(["--no-entry", "--stack-first", "-z", "stack-size=65536", "--gc-sections", "--strip-all"]);
    run(link.args(&objects).arg("-o").arg(&module), folder)?;
    Ok(module)
}

/// The world that the project's wit/ describes, and a folder with that and the interface.
fn world(folder: &Path, scratch: &Path) -> Result<(&'static str, PathBuf), Failure> {
    let file = folder.join("wit/world.wit");
    let text = std::fs::read_to_string(&file).map_err(|error| {
        Failure::Input(format!("{}: {error}; `foreshorten plugin new` makes a project that has it", file.display()))
    })?;
    let known = ["stage", "summarizer"].into_iter().find(|world| text.contains(&format!("world {world} ")));
    let world = known.ok_or_else(|| {
        Failure::Input(format!("{}: it has neither a world stage nor a world summarizer", file.display()))
    })?;
    if folder.join("wit/deps").is_dir() {
        return Ok((world, folder.join("wit")));
    }
    // A project without a copy of its own gets that of this program.
    let wit = scratch.join("wit");
    std::fs::create_dir_all(wit.join("deps/foreshorten-plugin"))?;
    std::fs::write(wit.join("world.wit"), text)?;
    std::fs::write(wit.join("deps/foreshorten-plugin/plugin.wit"), WIT)?;
    Ok((world, wit))
}

fn javascript(folder: &Path, scratch: &Path) -> Result<PathBuf, Failure> {
    let tool = tools::componentize_qjs(folder)?;
    let (world, wit) = world(folder, scratch)?;
    let manifest = folder.join("package.json");
    let text = std::fs::read_to_string(&manifest)?;
    let read: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| Failure::Input(format!("{}: {error}", manifest.display())))?;
    let main = read.get("main").and_then(|main| main.as_str()).map_or_else(|| format!("{world}.js"), str::to_owned);
    let component = scratch.join("component.wasm");
    let mut make = Command::new(tool);
    // --stub-wasi: plugins have no WASI. --sync: nothing inside a plugin waits.
    make.arg("--wit").arg(wit).args(["--world", world, "--sync", "--stub-wasi", "--opt-size"]);
    run(make.arg("--js").arg(folder.join(main)).arg("--output").arg(&component), folder)?;
    Ok(component)
}

fn python(folder: &Path, scratch: &Path) -> Result<PathBuf, Failure> {
    let tool = tools::componentize_py(folder)?;
    let (world, wit) = world(folder, scratch)?;
    if !folder.join("app.py").is_file() {
        return Err(Failure::Input(format!("{}: there is no app.py, where the plugin begins", folder.display())));
    }
    let component = scratch.join("component.wasm");
    let mut make = Command::new(tool);
    // Its own idea of where packages are is the environment it is in; plugins have what is in their folder.
    make.env_remove("VIRTUAL_ENV").env("PYTHONHASHSEED", "0").env("PYTHONDONTWRITEBYTECODE", "1");
    make.arg("--wit-path").arg(wit).args(["--world", world, "componentize", "app", "--stub-wasi"]);
    run(make.arg("--python-path").arg(folder).arg("--output").arg(&component), folder)?;
    Ok(component)
}
