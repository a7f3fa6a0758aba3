//! SHA-256 as this build has it. With the path of another build of the same program: the two in turn, as a row.

#![allow(clippy::unwrap_used, reason = "a bench has nobody to tell but its reader")]

use std::process::Command;
use std::time::Duration;

use foreshorten_benches::{
    Pairs,
    cpu::cpu_time,
    table::{Row, Table},
};
use foreshorten_core::digest::Digest;

/// Bytes of what is hashed: an offloaded result of a good size.
const BYTES: usize = 16_384;
const TIMES: u32 = 200;

fn one() -> Duration {
    let content = vec![b'x'; BYTES];
    (0..15).map(|_| cpu_time(|| (0..TIMES).fold(0, |sum, _| sum ^ Digest::of(&content).short()))).min().unwrap() / TIMES
}

fn main() {
    let Some(other) = std::env::args().nth(1) else {
        println!("{}", one().as_nanos());
        return;
    };
    let theirs = || {
        let out = Command::new(&other).output().unwrap();
        Duration::from_nanos(String::from_utf8_lossy(&out.stdout).trim().parse().unwrap())
    };
    let pairs = Pairs::take(5, one, theirs);
    let rate = |time: Duration| BYTES as f64 / 1e6 / time.as_secs_f64();
    let (fast, slow) = pairs.least();
    let measured = format!("{:.1}× ({:.0} to {:.0} MB/s)", pairs.ratio_of_least(), rate(fast), rate(slow));
    Table::default().row(&Row::new(
        "12 SHA-256, accelerated against portable",
        measured,
        "≥ 2.5× where the CPU has SHA instructions",
        pairs.ratio_of_least() >= 2.5,
    ));
}
