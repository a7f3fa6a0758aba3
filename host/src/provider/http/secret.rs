//! Keys and header values that never show.

use std::fmt;
use std::sync::Arc;

/// A key, a token, or another value that must not reach a log, an error or a panic message.
///
/// It has no `Display`, and its `Debug` shows nothing of it, not even how long it is.
///
/// ```
/// use foreshorten::provider::http::Secret;
/// assert_eq!(format!("{:?}", Secret::from("sk-123")), "Secret(…)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// The value itself, for the one place that sends it.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }

    /// Shorter values would also be found in innocent text.
    const LEAST_REDACTED: usize = 6;

    /// Takes the value out of a text that an endpoint wrote: some repeat the key they were given.
    pub(super) fn redact(&self, text: String) -> String {
        if self.0.len() >= Self::LEAST_REDACTED && text.contains(&*self.0) {
            text.replace(&*self.0, "[redacted]")
        } else {
            text
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self(value.into())
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(value.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_an_endpoint_repeats_is_taken_out() {
        let key = Secret::from("sk-verysecret");
        assert_eq!(key.redact("bad key sk-verysecret!".into()), "bad key [redacted]!");
        assert_eq!(Secret::from("a").redact("banana".into()), "banana");
        assert_eq!(Secret::from("").redact("x".into()), "x");
    }
}
