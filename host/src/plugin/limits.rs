//! What one call of a plugin may use up.

use serde::Deserialize;

/// Bounds of one call. What a plugin's settings ask for is capped by what the operator allows ([`Limits::within`]).
///
/// The defaults are those of `Limits::default()`: first guesses with wide room, to be set by what the conformance kit
/// prints for real plugins. A stage that scans three columns of 50,000 entries needs some millions of instructions and a
/// megabyte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "snake_case")]
pub struct Limits {
    /// Instructions, roughly: the same count on every machine for one version of the engine. Default 50,000,000.
    pub fuel: u64,
    /// Instructions more for every entry of the record, so that a long session is no reason to fail. Default 2,000.
    pub fuel_per_entry: u64,
    /// Wall clock in milliseconds, in steps of ten; what the host needs to answer is included. Default 2,000.
    pub wall_ms: u64,
    /// Bytes of all linear memories together. Default 32 MiB.
    pub memory_bytes: usize,
    /// Elements of one table. Default 20,000: an interpreter of another language has 6,000.
    pub table_elements: usize,
    /// Instances, memories and tables of each kind. Default 64: an interpreter compiled to a component is made of 32.
    pub instances: usize,
    /// Bytes of stack. Default 512 KiB; one value for the engine, so that of the operator holds.
    pub stack_bytes: usize,
    /// Calls of the host, besides eight for every entry. Default 100,000: each costs some microseconds.
    pub host_calls: u64,
    /// Bytes of text read. Default 64 MiB.
    pub text_bytes: u64,
    /// Bytes that one call of the host may bring: lists, notes, a memo. Default 8 MiB.
    pub call_bytes: usize,
    /// Decisions tried, besides four for every entry. Default 1,000.
    pub decisions: u64,
    /// Bytes of the memo. Default 64 KiB: it is part of every checkpoint.
    pub memo_bytes: usize,
    /// Lines of log, of 1 KiB at most; those above are counted. Default 64.
    pub log_lines: u32,
    /// Bytes of a component. Default 8 MiB: a stage in Rust has 10 KiB, one with a JavaScript engine 1 MiB.
    pub file_bytes: u64,
    /// Calls of one summary, each with one answer of a model more. Default 4.
    pub steps: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel: 50_000_000,
            fuel_per_entry: 2_000,
            wall_ms: 2_000,
            memory_bytes: 32 << 20,
            table_elements: 20_000,
            instances: 64,
            stack_bytes: 512 << 10,
            host_calls: 100_000,
            text_bytes: 64 << 20,
            call_bytes: 8 << 20,
            decisions: 1_000,
            memo_bytes: 64 << 10,
            log_lines: 64,
            file_bytes: 8 << 20,
            steps: 4,
        }
    }
}

impl Limits {
    /// The most an operator allows unless told otherwise: ten times the defaults, for plugins in languages that bring an
    /// interpreter along.
    #[must_use]
    pub fn caps() -> Self {
        let d = Self::default();
        Self {
            fuel: d.fuel * 10,
            fuel_per_entry: d.fuel_per_entry * 10,
            wall_ms: d.wall_ms * 5,
            memory_bytes: d.memory_bytes * 8,
            table_elements: d.table_elements * 5,
            host_calls: d.host_calls * 5,
            file_bytes: d.file_bytes * 4,
            ..d
        }
    }

    /// These, and none above `caps`.
    #[must_use]
    pub fn within(self, caps: &Self) -> Self {
        Self {
            fuel: self.fuel.min(caps.fuel),
            fuel_per_entry: self.fuel_per_entry.min(caps.fuel_per_entry),
            wall_ms: self.wall_ms.min(caps.wall_ms),
            memory_bytes: self.memory_bytes.min(caps.memory_bytes),
            table_elements: self.table_elements.min(caps.table_elements),
            instances: self.instances.min(caps.instances),
            stack_bytes: self.stack_bytes.min(caps.stack_bytes),
            host_calls: self.host_calls.min(caps.host_calls),
            text_bytes: self.text_bytes.min(caps.text_bytes),
            call_bytes: self.call_bytes.min(caps.call_bytes),
            decisions: self.decisions.min(caps.decisions),
            memo_bytes: self.memo_bytes.min(caps.memo_bytes),
            log_lines: self.log_lines.min(caps.log_lines),
            file_bytes: self.file_bytes.min(caps.file_bytes),
            steps: self.steps.min(caps.steps),
        }
    }

    /// Fuel of one call over a record of `entries`; no more than 2 G, so that a session of any length stays bounded.
    #[must_use]
    pub fn fuel_for(&self, entries: u64) -> u64 {
        self.fuel.saturating_add(self.fuel_per_entry.saturating_mul(entries)).min(2_000_000_000.max(self.fuel))
    }

    /// Calls of the host that one call over a record of `entries` may make.
    #[must_use]
    pub const fn host_calls_for(&self, entries: u64) -> u64 {
        self.host_calls.saturating_add(entries.saturating_mul(8))
    }

    /// Decisions that one call over a record of `entries` may try.
    #[must_use]
    pub const fn decisions_for(&self, entries: u64) -> u64 {
        self.decisions.saturating_add(entries.saturating_mul(4))
    }
}
