//! What can be wrong with a configuration.

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
