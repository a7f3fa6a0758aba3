//! Time on a machine that others use, too: CPU time of this thread, and of programs that were run.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike as _};
use nix::time::{ClockId, clock_gettime};

fn thread() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

/// CPU time that `act` takes of this thread.
pub fn cpu_time<T>(act: impl FnOnce() -> T) -> Duration {
    let before = thread();
    let made = std::hint::black_box(act());
    let spent = thread().saturating_sub(before);
    // Letting go of what was made is not part of it.
    drop(made);
    spent
}

/// What a program took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// From its start to its end.
    pub wall: Duration,
    /// CPU time, all threads, user and system together.
    pub cpu: Duration,
    /// Most memory held at once, in bytes, of all programs run by this one so far.
    pub peak: u64,
}

/// Runs a program to its end, with `stdin` as its input and without its output.
///
/// # Errors
/// It does not start, or says that it failed.
pub fn run(command: &mut Command, stdin: Option<&std::path::Path>) -> Result<Spent, String> {
    let input = match stdin {
        Some(path) => Stdio::from(std::fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?),
        None => Stdio::null(),
    };
    command.stdin(input).stdout(Stdio::null()).stderr(Stdio::null());
    let before = children();
    let start = Instant::now();
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    let wall = start.elapsed();
    if !status.success() {
        return Err(format!("{command:?}: {status}"));
    }
    let after = children();
    Ok(Spent { wall, cpu: after.0.saturating_sub(before.0), peak: after.1 })
}

fn children() -> (Duration, u64) {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return Default::default() };
    let micros = |time: TimeVal| Duration::from_micros(u64::try_from(time.num_microseconds()).unwrap_or_default());
    let kilobytes = u64::try_from(usage.max_rss()).unwrap_or_default();
    (micros(usage.user_time()) + micros(usage.system_time()), kilobytes * 1024)
}
