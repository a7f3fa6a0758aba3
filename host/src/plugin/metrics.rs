//! What a plugin did and what it cost, since it was loaded.

use std::collections::BTreeMap;
use std::time::Duration;

use foreshorten_core::plan::Refusal;

use super::{Fault, Spent};

/// Counts of one plugin, over all sessions of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Calls made.
    pub calls: u64,
    /// Calls left out because the breaker was open.
    pub skipped: u64,
    /// Calls that failed, by kind ([`Fault::kind`]).
    pub faults: BTreeMap<&'static str, u64>,
    /// The newest fault.
    pub last_fault: Option<Fault>,
    /// Instructions of all calls.
    pub fuel: u64,
    /// Wall clock of all calls.
    pub wall: Duration,
    /// Most bytes of linear memory that one call had.
    pub peak_memory: usize,
    /// Calls of the host.
    pub host_calls: u64,
    /// Bytes of text read.
    pub text_bytes: u64,
    /// Decisions accepted, in calls that were taken.
    pub accepted: u64,
    /// Decisions refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Calibrated tokens freed.
    pub tokens_saved: u64,
    /// Lines of log that were above the limit.
    pub log_dropped: u64,
}

impl Metrics {
    pub(super) fn spent(&mut self, spent: &Spent) {
        self.calls += 1;
        self.fuel += spent.fuel;
        self.wall += spent.wall;
        self.peak_memory = self.peak_memory.max(spent.peak_memory);
        self.host_calls += spent.host_calls;
        self.text_bytes += spent.text_bytes;
        self.log_dropped += spent.log_dropped;
    }

    pub(super) fn fault(&mut self, fault: &Fault) {
        *self.faults.entry(fault.kind()).or_default() += 1;
        self.last_fault = Some(fault.clone());
    }

    pub(super) fn refusals(&mut self, refused: &[(Refusal, u64)]) {
        for (why, count) in refused {
            *self.refused.entry(why.to_string()).or_default() += count;
        }
    }

    /// All faults.
    #[must_use]
    pub fn fault_count(&self) -> u64 {
        self.faults.values().sum()
    }

    /// All refused decisions.
    #[must_use]
    pub fn refused_count(&self) -> u64 {
        self.refused.values().sum()
    }
}
