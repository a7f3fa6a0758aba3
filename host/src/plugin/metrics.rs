//! What a plugin did and what it cost: in one call, in one session, or since it was loaded.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use foreshorten_core::plan::Refusal;
use serde::{Serialize, Serializer};

use super::{Fault, Spent};

/// Counts of one plugin. [`StagePlugin::metrics`](super::StagePlugin::metrics) has those of all sessions of the process.
///
/// As JSON: the fields by their names, but `wall` as `wall_us`, in microseconds, and the newest fault in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Metrics {
    /// Calls made.
    pub calls: u64,
    /// Calls left out because the breaker was open.
    pub skipped: u64,
    /// Calls that failed, by kind ([`Fault::kind`]).
    pub faults: BTreeMap<&'static str, u64>,
    /// The newest fault.
    #[serde(serialize_with = "words")]
    pub last_fault: Option<Fault>,
    /// Instructions of all calls.
    pub fuel: u64,
    /// Wall clock of all calls.
    #[serde(rename = "wall_us", serialize_with = "micros")]
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
    /// Times that a changed file took the place of the one before ([`Reloading`](super::Reloading)).
    pub reloads: u64,
    /// Times that a changed file was not taken.
    pub reload_failures: u64,
}

fn words<S: Serializer>(fault: &Option<Fault>, out: S) -> Result<S::Ok, S::Error> {
    fault.as_ref().map(ToString::to_string).serialize(out)
}

pub(super) fn whole_micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn micros<S: Serializer>(time: &Duration, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_u64(whole_micros(*time))
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

    /// Adds what came later.
    pub fn add(&mut self, later: &Self) {
        self.calls += later.calls;
        self.skipped += later.skipped;
        for (kind, count) in &later.faults {
            *self.faults.entry(kind).or_default() += count;
        }
        if let Some(fault) = &later.last_fault {
            self.last_fault = Some(fault.clone());
        }
        self.fuel += later.fuel;
        self.wall += later.wall;
        self.peak_memory = self.peak_memory.max(later.peak_memory);
        self.host_calls += later.host_calls;
        self.text_bytes += later.text_bytes;
        self.accepted += later.accepted;
        for (why, count) in &later.refused {
            *self.refused.entry(why.clone()).or_default() += count;
        }
        self.tokens_saved += later.tokens_saved;
        self.log_dropped += later.log_dropped;
        self.reloads += later.reloads;
        self.reload_failures += later.reload_failures;
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

/// For people: what is zero is not said.
impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = |counts: &mut dyn Iterator<Item = (&str, u64)>| -> String {
            counts.map(|(what, count)| format!("{what} {count}")).collect::<Vec<_>>().join(", ")
        };
        write!(f, "{} {}", self.calls, if self.calls == 1 { "call" } else { "calls" })?;
        if self.skipped > 0 {
            write!(f, ", {} left out", self.skipped)?;
        }
        if !self.faults.is_empty() {
            let kinds = each(&mut self.faults.iter().map(|(kind, count)| (*kind, *count)));
            write!(f, ", {} failed ({kinds})", self.fault_count())?;
        }
        if self.accepted > 0 || !self.refused.is_empty() {
            write!(f, "; {} decisions taken", self.accepted)?;
        }
        if !self.refused.is_empty() {
            let reasons = each(&mut self.refused.iter().map(|(why, count)| (why.as_str(), *count)));
            write!(f, ", {} refused ({reasons})", self.refused_count())?;
        }
        if self.tokens_saved > 0 {
            write!(f, "; {} tokens saved", self.tokens_saved)?;
        }
        write!(f, "; {:.1} ms", self.wall.as_secs_f64() * 1_000.0)?;
        if self.fuel > 0 {
            write!(f, ", {} fuel", self.fuel)?;
        }
        if self.peak_memory > 0 {
            write!(f, ", {} KiB of memory", self.peak_memory.div_ceil(1 << 10))?;
        }
        write!(f, ", {} calls of the host, {} bytes read", self.host_calls, self.text_bytes)?;
        if self.log_dropped > 0 {
            write!(f, "; {} lines of log dropped", self.log_dropped)?;
        }
        if self.reloads > 0 || self.reload_failures > 0 {
            write!(f, "; reloaded {} times, {} failed", self.reloads, self.reload_failures)?;
        }
        if let Some(fault) = &self.last_fault {
            write!(f, "; last fault: {fault}")?;
        }
        Ok(())
    }
}

/// Counts of several plugins, by name: what those of one turn, run or session did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Account(pub BTreeMap<String, Metrics>);

impl Account {
    /// Adds what a plugin did.
    pub fn add(&mut self, name: &str, more: &Metrics) {
        match self.0.get_mut(name) {
            Some(metrics) => metrics.add(more),
            None => drop(self.0.insert(name.to_owned(), more.clone())),
        }
    }

    /// Adds another account.
    pub fn join(&mut self, other: &Self) {
        for (name, more) in &other.0 {
            self.add(name, more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_call() -> Metrics {
        let mut metrics = Metrics::default();
        metrics.spent(&Spent {
            fuel: 1_000,
            wall: Duration::from_micros(2_500),
            peak_memory: 65_536,
            host_calls: 7,
            text_bytes: 99,
            log_dropped: 0,
        });
        metrics
    }

    #[test]
    fn an_account_adds_up_and_keeps_peaks() {
        let mut account = Account::default();
        account.add("a", &one_call());
        let mut failed = one_call();
        failed.peak_memory = 1;
        failed.fault(&Fault::Fuel);
        let mut other = Account::default();
        other.add("a", &failed);
        other.add("b", &one_call());
        account.join(&other);
        let a = &account.0["a"];
        assert_eq!((a.calls, a.fuel, a.peak_memory, a.fault_count()), (2, 2_000, 65_536, 1));
        assert_eq!(a.last_fault, Some(Fault::Fuel));
        assert_eq!(account.0["b"], one_call());
        let json = serde_json::to_value(&account).unwrap();
        assert_eq!(json["a"]["wall_us"], 5_000);
        assert_eq!(json["a"]["faults"]["fuel"], 1);
        assert_eq!(json["a"]["last_fault"], "it ran out of fuel");
    }

    #[test]
    fn people_read_what_is_not_zero() {
        let mut metrics = one_call();
        assert_eq!(
            metrics.to_string(),
            "1 call; 2.5 ms, 1000 fuel, 64 KiB of memory, 7 calls of the host, 99 bytes read"
        );
        metrics.fault(&Fault::Memory);
        metrics.skipped = 3;
        metrics.accepted = 2;
        metrics.tokens_saved = 400;
        let said = metrics.to_string();
        assert!(
            said.starts_with("1 call, 3 left out, 1 failed (memory 1); 2 decisions taken; 400 tokens saved;"),
            "{said}"
        );
        assert!(said.ends_with("; last fault: it wanted more memory than allowed"), "{said}");
    }
}
