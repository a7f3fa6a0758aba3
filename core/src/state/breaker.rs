//! The breaker in front of the summarizer.

use serde::{Deserialize, Serialize};

/// Turns an open breaker waits before it lets one call through to see whether the summarizer is well again.
pub const HALF_OPEN_AFTER_TURNS: u64 = 8;

/// Counts failures in a row. Turns are the clock: there is no other in the core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Breaker {
    /// Changes so far: which of two breakers has the more recent evidence.
    evidence: u64,
    /// Failures since the last success.
    failures: u32,
    /// Turn of the newest failure.
    failed_at: u64,
}

impl Breaker {
    /// Failures since the last success.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether a call may be made at `turn`: the breaker is closed, or half open.
    #[must_use]
    pub const fn allows(&self, turn: u64, max_failures: u32) -> bool {
        self.failures < max_failures || turn.saturating_sub(self.failed_at) >= HALF_OPEN_AFTER_TURNS
    }

    /// Notes a failure.
    pub fn fail(&mut self, turn: u64) {
        self.evidence = self.evidence.saturating_add(1);
        self.failures = self.failures.saturating_add(1);
        self.failed_at = turn;
    }

    /// Notes a success.
    pub fn succeed(&mut self) {
        if self.failures > 0 {
            self.evidence = self.evidence.saturating_add(1);
            self.failures = 0;
        }
    }

    /// The one with the more recent evidence; ties by value.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        self.max(other)
    }
}
