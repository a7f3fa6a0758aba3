//! What the kit found.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::super::Metrics;
use super::World;

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It holds.
    Passed,
    /// It holds, but its author should know.
    Warned,
    /// It does not hold.
    Failed,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its id: one word, the same in every version.
    pub id: String,
    /// What is checked, in words.
    pub name: String,
    /// What came of it.
    pub verdict: Verdict,
    /// What was found.
    pub detail: String,
}

/// The most that one call used up, over all checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Costs {
    /// Instructions. 0 for a native library, where nobody counts them.
    pub fuel: u64,
    /// Bytes of linear memory; 0 for a native library.
    pub memory_bytes: usize,
    /// Milliseconds.
    pub wall_ms: u64,
    /// Bytes of text read.
    pub text_bytes: u64,
    /// Calls of the host.
    pub host_calls: u64,
}

impl Costs {
    /// The larger of both, in everything.
    #[must_use]
    pub fn most(self, other: Self) -> Self {
        Self {
            fuel: self.fuel.max(other.fuel),
            memory_bytes: self.memory_bytes.max(other.memory_bytes),
            wall_ms: self.wall_ms.max(other.wall_ms),
            text_bytes: self.text_bytes.max(other.text_bytes),
            host_calls: self.host_calls.max(other.host_calls),
        }
    }

    /// Of one call.
    pub(super) fn of(metrics: &Metrics) -> Self {
        Self {
            fuel: metrics.fuel,
            memory_bytes: metrics.peak_memory,
            wall_ms: u64::try_from(metrics.wall.as_millis()).unwrap_or(u64::MAX),
            text_bytes: metrics.text_bytes,
            host_calls: metrics.host_calls,
        }
    }
}

/// What the kit found.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// Bytes of the file.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: String,
    /// Whether it is a stage or a summarizer.
    pub world: World,
    /// What was checked.
    pub checks: Vec<Check>,
    /// What it used up at most.
    pub costs: Costs,
}

impl Report {
    /// An empty one.
    #[must_use]
    pub const fn new(world: World, bytes: u64, sha256: String) -> Self {
        let costs = Costs { fuel: 0, memory_bytes: 0, wall_ms: 0, text_bytes: 0, host_calls: 0 };
        Self { bytes, sha256, world, checks: Vec::new(), costs }
    }

    /// Whether no check failed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.with(Verdict::Failed) == 0
    }

    fn with(&self, verdict: Verdict) -> usize {
        self.checks.iter().filter(|check| check.verdict == verdict).count()
    }

    pub(super) fn add(&mut self, id: &str, name: &str, finding: Finding) {
        let Finding { verdict, detail } = finding;
        self.checks.push(Check { id: id.into(), name: name.into(), verdict, detail });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, {} bytes, SHA-256 {}", self.world.name(), self.bytes, self.sha256)?;
        for check in &self.checks {
            let sign = match check.verdict {
                Verdict::Passed => "ok  ",
                Verdict::Warned => "warn",
                Verdict::Failed => "FAIL",
            };
            writeln!(f, "{sign}  {:<14}{}", check.id, check.name)?;
            if !check.detail.is_empty() {
                writeln!(f, "{:20}{}", "", check.detail)?;
            }
        }
        let Costs { fuel, memory_bytes, wall_ms, text_bytes, host_calls } = self.costs;
        writeln!(
            f,
            "most of one call: {fuel} fuel, {} KiB memory, {wall_ms} ms, {text_bytes} bytes of text read, {host_calls} calls \
             of the host",
            memory_bytes >> 10
        )?;
        let (failed, warned) = (self.with(Verdict::Failed), self.with(Verdict::Warned));
        match (failed, warned) {
            (0, 0) => writeln!(f, "passed"),
            (0, warned) => writeln!(f, "passed, with {warned} to look at"),
            (failed, _) => writeln!(f, "failed: {failed} of {}", self.checks.len()),
        }
    }
}

/// What one check came to.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) verdict: Verdict,
    pub(super) detail: String,
}

impl Finding {
    pub(super) fn passed(detail: impl Into<String>) -> Self {
        Self { verdict: Verdict::Passed, detail: detail.into() }
    }

    pub(super) fn warned(detail: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warned, detail: detail.into() }
    }

    pub(super) fn failed(detail: impl Into<String>) -> Self {
        Self { verdict: Verdict::Failed, detail: detail.into() }
    }

    /// Failed with what was found wrong, or passed.
    pub(super) fn none(wrong: &[String], otherwise: impl Into<String>) -> Self {
        match wrong {
            [] => Self::passed(otherwise),
            wrong => Self::failed(listed(wrong)),
        }
    }

    /// As [`none`](Self::none), with a warning.
    pub(super) fn few(wrong: &[String], otherwise: impl Into<String>) -> Self {
        match wrong {
            [] => Self::passed(otherwise),
            wrong => Self::warned(listed(wrong)),
        }
    }
}

/// The first three, and how many more there are.
fn listed(wrong: &[String]) -> String {
    let more = wrong.len().saturating_sub(3);
    let mut out = wrong[..wrong.len() - more].join("; ");
    if more > 0 {
        out.push_str(&format!("; and {more} more"));
    }
    out
}
