//! Instructions, counted by callgrind: the same on a busy machine as on a quiet one.
//!
//! A program that counts runs itself again under `valgrind --tool=callgrind`, which collects only inside of
//! [`gate_measured`] and writes one file for every time it returns. What stands around it, making sessions and so on, is run
//! but not counted.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// By its whole name: with a pattern, callgrind collects in it and then does not write when it returns.
const MEASURED: &str = "foreshorten_benches::measured::gate_measured";

static RUNS: AtomicU64 = AtomicU64::new(0);

/// Runs `act` so that callgrind counts it.
#[inline(never)]
pub fn gate_measured(act: &mut dyn FnMut()) {
    act();
    // Something to do after it, or it would be jumped to and never returned from.
    RUNS.fetch_add(1, Ordering::Relaxed);
}

/// Runs this program again with `argument` under callgrind and answers the instructions of every [`gate_measured`], in
/// the order in which they returned.
///
/// # Errors
/// Why there are none: no valgrind, or the program failed.
pub fn instructions(argument: &str) -> Result<Vec<u64>, String> {
    let (_, dumps) = dumps(argument)?;
    dumps.iter().map(|dump| total(dump)).collect()
}

/// How often a function was called within all [`gate_measured`], by its whole name; and what the program printed.
///
/// # Errors
/// As of [`instructions`].
pub fn calls(argument: &str, function: &str) -> Result<(u64, String), String> {
    let (said, dumps) = dumps(argument)?;
    let callee = format!("cfn={function}");
    let mut count = 0;
    for dump in &dumps {
        let mut ours = false;
        for line in dump.lines() {
            match line.strip_prefix("calls=") {
                Some(numbers) if ours => {
                    let number = numbers.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
                    count += number.ok_or_else(|| format!("no number in `{line}`"))?;
                }
                None if line.starts_with("cfn=") => ours = line == callee,
                _ => {}
            }
        }
    }
    Ok((count, said))
}

/// What a run printed, and what callgrind wrote at the end of every [`gate_measured`].
fn dumps(argument: &str) -> Result<(String, Vec<String>), String> {
    let program = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
    let folder = tempfile::tempdir().map_err(|error| format!("no folder for what callgrind writes: {error}"))?;
    let file = folder.path().join("counts");
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--compress-strings=no"])
        .arg(format!("--toggle-collect={MEASURED}"))
        .arg(format!("--dump-after={MEASURED}"))
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program)
        .arg(argument)
        .output()
        .map_err(|error| format!("valgrind does not run ({error}); the Debian package is called valgrind"))?;
    if !ran.status.success() {
        return Err(format!("{argument}: {}: {}", ran.status, String::from_utf8_lossy(&ran.stderr)));
    }
    let mut dumps = Vec::new();
    for number in 1.. {
        let part = folder.path().join(format!("counts.{number}"));
        if !part.exists() {
            break;
        }
        let text = std::fs::read_to_string(&part).map_err(|error| format!("{}: {error}", part.display()))?;
        if text.lines().any(|line| line.starts_with("desc: Trigger:") && line.contains(MEASURED)) {
            dumps.push(text);
        }
    }
    Ok((String::from_utf8_lossy(&ran.stdout).into_owned(), dumps))
}

fn total(dump: &str) -> Result<u64, String> {
    let line = dump.lines().find_map(|line| line.strip_prefix("totals:").or_else(|| line.strip_prefix("summary:")));
    let number = line.and_then(|line| line.split_whitespace().next()).and_then(|word| word.parse().ok());
    number.ok_or_else(|| "callgrind wrote no total".into())
}
