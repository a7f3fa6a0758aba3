//! What can be wrong with a configuration, and memory that is not there.

use core::fmt;

/// A policy that cannot be built: which field, and what was expected of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The parameter, as the seeds name it.
    pub field: &'static str,
    /// What would have been right.
    pub expected: &'static str,
}

impl ConfigError {
    pub(crate) const fn new(field: &'static str, expected: &'static str) -> Self {
        Self { field, expected }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` must be {}", self.field, self.expected)
    }
}

impl core::error::Error for ConfigError {}

/// There is no memory for the growth asked for. Nothing has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no memory to grow")
    }
}

impl core::error::Error for OutOfMemory {}

impl From<alloc::collections::TryReserveError> for OutOfMemory {
    fn from(_: alloc::collections::TryReserveError) -> Self {
        Self
    }
}

impl From<hashbrown::TryReserveError> for OutOfMemory {
    fn from(_: hashbrown::TryReserveError) -> Self {
        Self
    }
}
