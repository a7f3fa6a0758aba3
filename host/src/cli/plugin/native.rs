//! Native libraries: nothing bounds what they do, so each check has a process of its own, of this program.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use foreshorten::plugin::{
    FileKind, LoadError, Settings,
    conformance::{Check, Kit, Report, Verdict},
    dylib::{About, DylibLoader},
    sha256,
    wasm::World,
};

use super::super::{failure::Failure, files};
use super::bad;

/// A check, or a look, in a process of its own. Only this program runs it.
#[derive(Debug, clap::Args)]
pub(super) struct Child {
    /// Pinned library, or its plugin.toml.
    path: PathBuf,
    /// Where the report goes: what a library prints is no report.
    report: PathBuf,
    /// Id of a check; none: what the library says about itself.
    only: Option<String>,
}

pub(super) fn child(args: &Child) -> Result<ExitCode, Failure> {
    let out = match &args.only {
        None => serde_json::to_vec(&About::read(&args.path).map_err(bad(&args.path))?),
        Some(only) => {
            let kit = Kit::library(&DylibLoader::new(), &args.path).map_err(bad(&args.path))?;
            serde_json::to_vec(&kit.run(Some(only)))
        }
    };
    std::fs::write(&args.report, out.map_err(std::io::Error::from)?)?;
    Ok(ExitCode::SUCCESS)
}

/// A library that its user allows: as it is pinned, or, where nothing pins it, as a pinned copy. A pin alone is no
/// permission: whoever sends a library can send its `FILE.sha256` along.
struct Pinned {
    path: PathBuf,
    /// The copy, for as long as it is used.
    _copy: Option<tempfile::TempDir>,
}

impl Pinned {
    fn new(path: &Path, allow: bool) -> Result<Self, Failure> {
        let (file, settings) = Settings::find(path).map_err(bad(path))?;
        if !allow {
            return Err(Failure::Usage(format!(
                "{}: a native library runs code of its own, with all your rights, pinned or not: if you trust it, say --allow",
                path.display()
            )));
        }
        if settings.sha256.is_some() {
            return Ok(Self { path: path.to_owned(), _copy: None });
        }
        let bytes = files::read(&file)?;
        let digest = sha256(&bytes);
        let folder = tempfile::tempdir()?;
        let name = file.file_name().unwrap_or_default();
        write_private(&folder.path().join(name), &bytes)?;
        let manifest = if path.is_dir() { path.join("plugin.toml") } else { path.to_owned() };
        let copied = if manifest.extension().is_some_and(|ending| ending == "toml") {
            // The same settings; only the library is found, and pinned, elsewhere.
            let text = std::fs::read_to_string(&manifest)?;
            let mut table: toml::Table =
                text.parse().map_err(|error| Failure::Input(format!("{}: {error}", manifest.display())))?;
            table.insert("file".into(), name.to_string_lossy().into_owned().into());
            table.insert("sha256".into(), digest.into());
            let copied = folder.path().join("plugin.toml");
            std::fs::write(&copied, table.to_string())?;
            copied
        } else {
            let copied = folder.path().join(name);
            let mut lock = copied.clone().into_os_string();
            lock.push(".sha256");
            write_private(Path::new(&lock), digest.as_bytes())?;
            copied
        };
        Ok(Self { path: copied, _copy: Some(folder) })
    }
}

/// Writes a file that nobody else can write, whatever the habits of this user are.
fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    std::fs::write(path, bytes)?;
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}

/// Runs every check on a library, each in a child, which may take so long.
pub(super) fn check(path: &Path, allow: bool, limit: Duration) -> Result<Report, Failure> {
    let pinned = Pinned::new(path, allow)?;
    let (file, _) = Settings::find(&pinned.path).map_err(bad(path))?;
    let bytes = files::read(&file)?;
    let mut report = Report::new(World::Stage, bytes.len() as u64, sha256(&bytes));
    let died = |id: &str, world: World, why: String| Check {
        id: id.to_owned(),
        name: Kit::name_of(world, id).to_owned(),
        verdict: Verdict::Failed,
        detail: why,
    };
    let first = match one::<Report>(&pinned.path, Some("loads"), limit)? {
        Ok(first) => first,
        Err(why) => {
            report.checks.push(died("loads", World::Stage, why));
            return Ok(report);
        }
    };
    report.world = first.world;
    let loaded = first.passed();
    report.checks.extend(first.checks);
    // What cannot be loaded is not loaded a dozen times.
    for id in Kit::ids(report.world).into_iter().skip(1).filter(|_| loaded) {
        match one::<Report>(&pinned.path, Some(id), limit)? {
            Ok(found) => {
                report.costs = report.costs.most(found.costs);
                report.checks.extend(found.checks);
            }
            Err(why) => report.checks.push(died(id, report.world, why)),
        }
    }
    Ok(report)
}

/// What a library says about itself.
pub(super) fn about(path: &Path, allow: bool) -> Result<About, Failure> {
    let pinned = Pinned::new(path, allow)?;
    let about = one(&pinned.path, None, Duration::from_secs(30))?;
    about.map_err(|why| Failure::Input(format!("{}: {why}", path.display())))
}

/// Whether the path means a native library.
pub(super) fn is_library(path: &Path) -> Result<bool, LoadError> {
    Ok(FileKind::of(path)? == FileKind::Library)
}

/// Runs one child; answers its report, or what became of it.
fn one<T: serde::de::DeserializeOwned>(
    path: &Path,
    only: Option<&str>,
    limit: Duration,
) -> Result<Result<T, String>, Failure> {
    let folder = tempfile::tempdir()?;
    let report = folder.path().join("report.json");
    let mut child = Command::new(std::env::current_exe()?);
    child.env("RUST_BACKTRACE", "0").args(["plugin", "child"]).arg(path).arg(&report).args(only);
    let said = folder.path().join("said");
    let mut child = child.stdin(Stdio::null()).stdout(Stdio::null()).stderr(std::fs::File::create(&said)?).spawn()?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if start.elapsed() > limit => {
                let _ = child.kill();
                let _ = child.wait();
                return Ok(Err(format!("it still ran after {} s, and was killed", limit.as_secs())));
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    match std::fs::read(&report) {
        Ok(bytes) if status.success() => {
            let read = serde_json::from_slice(&bytes);
            read.map(Ok).map_err(|error| Failure::Io(std::io::Error::other(error)))
        }
        _ => {
            let said = std::fs::read(&said).unwrap_or_default();
            let last = String::from_utf8_lossy(&said)
                .lines()
                .rfind(|line| !line.is_empty() && !line.starts_with("note:"))
                .unwrap_or_default()
                .to_owned();
            let mut why = ended(status);
            if !last.is_empty() {
                why.push_str(&format!("; it said: {}", last.chars().take(300).collect::<String>()));
            }
            Ok(Err(why))
        }
    }
}

/// How a process ended that left no report.
fn ended(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let name = match signal {
            4 => "SIGILL, an illegal instruction",
            6 => "SIGABRT, abort()",
            7 | 10 => "SIGBUS, a bad address",
            8 => "SIGFPE, a bad division",
            9 => "SIGKILL",
            11 => "SIGSEGV, an access to memory that is not its own",
            15 => "SIGTERM",
            _ => "a signal",
        };
        return format!("its process was ended by signal {signal} ({name})");
    }
    match status.code() {
        // Our own codes for what cannot be loaded.
        Some(2 | 3) => "it is not loaded".to_owned(),
        Some(code) => format!("it ended its process, with exit code {code}"),
        None => "its process ended".to_owned(),
    }
}
