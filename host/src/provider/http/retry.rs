//! When to try again, and how long to wait.

use std::time::Duration;

use foreshorten_core::overflow::{ErrorClass, explain};
use reqwest::header::HeaderMap;

use super::options::HttpOptions;
use crate::provider::ProviderError;

/// What the headers of a refusal say about another try.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Advice {
    /// How long to wait.
    pub(super) after: Option<Duration>,
    /// Whether to try at all.
    pub(super) retry: Option<bool>,
}

impl Advice {
    /// Reads `retry-after-ms`, `retry-after` (seconds; a date is not understood, because that needs a clock both sides
    /// agree on) and `x-should-retry`.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        let number = |name: &str| text(name).and_then(|value| value.parse::<f64>().ok());
        let seconds = number("retry-after-ms").map(|millis| millis / 1_000.0).or_else(|| number("retry-after"));
        Self {
            after: seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            retry: text("x-should-retry").and_then(|value| match value {
                "true" => Some(true),
                "false" => Some(false),
                _ => None,
            }),
        }
    }
}

/// The tries left to one call.
#[derive(Clone, Debug)]
pub(super) struct Retries<'a> {
    options: &'a HttpOptions,
    /// Number of the call, from which the jitter comes: calls made at once part ways, and a test sees the same pauses.
    call: u64,
    made: u32,
}

impl<'a> Retries<'a> {
    pub(super) const fn new(options: &'a HttpOptions, call: u64) -> Self {
        Self { options, call, made: 0 }
    }

    /// How long to wait before another try, or `None` when there is to be none.
    pub(super) fn next(&mut self, error: &ProviderError, advice: Advice) -> Option<Duration> {
        let sensible = advice.retry.unwrap_or_else(|| error.is_transient() && !is_hopeless(error));
        // An overflow is answered by a smaller view, whatever a header says.
        if !sensible || self.made >= self.options.retries || matches!(error, ProviderError::Overflow(_)) {
            return None;
        }
        let wait = match advice.after {
            Some(wait) if wait > self.options.longest_wait => return None,
            Some(wait) => wait,
            None => self.backoff(),
        };
        self.made += 1;
        Some(wait)
    }

    fn backoff(&self) -> Duration {
        let full = self.options.backoff.saturating_mul(1 << self.made.min(20)).min(self.options.backoff_cap);
        // Up to a quarter less.
        let share = mixed(self.call.wrapping_mul(31).wrapping_add(u64::from(self.made))) % 1_024;
        full.saturating_sub(full.saturating_mul(u32::try_from(share).unwrap_or_default()) / 4_096)
    }
}

/// A limit that waiting for a minute does not lift: money is missing, or the account may not use the long window.
fn is_hopeless(error: &ProviderError) -> bool {
    let ProviderError::RateLimited { message, .. } = error else { return false };
    ["insufficient_quota", "billing", "credit balance"].iter().any(|word| message.contains(word))
        || explain(Some(429), message).class == ErrorClass::Tier
}

/// Spreads a number over all 64 bits (the finalizer of SplitMix64).
const fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited() -> ProviderError {
        ProviderError::from_answer(Some(429), "slow down")
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_differ_between_calls() {
        let options = HttpOptions::new().retries(9);
        let pauses = |call| {
            let mut retries = Retries::new(&options, call);
            std::iter::from_fn(|| retries.next(&limited(), Advice::default())).collect::<Vec<_>>()
        };
        let first = pauses(1);
        assert_eq!(first.len(), 9);
        for (at, pause) in first.iter().enumerate() {
            let full = (0.5 * f64::from(1 << at.min(4))).min(8.0);
            assert!((0.75 * full..=full).contains(&pause.as_secs_f64()), "{at}: {pause:?}");
        }
        assert_eq!(first, pauses(1));
        assert_ne!(first, pauses(2));
    }

    #[test]
    fn an_endpoint_says_when_and_whether() {
        let options = HttpOptions::new();
        let advice = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, value.parse().unwrap());
            }
            Retries::new(&options, 1).next(&limited(), Advice::of(&headers))
        };
        assert_eq!(advice(&[("retry-after", "3")]), Some(Duration::from_secs(3)));
        assert_eq!(advice(&[("retry-after", "3"), ("retry-after-ms", "250")]), Some(Duration::from_millis(250)));
        assert_eq!(advice(&[("retry-after", "61")]), None);
        assert_eq!(advice(&[("x-should-retry", "false")]), None);
        for odd in ["-1", "soon", "nan", "inf", "1e300"] {
            assert!(advice(&[("retry-after", odd)]).is_some_and(|wait| wait < Duration::from_secs(1)), "{odd}");
        }
        let invalid = ProviderError::from_answer(Some(400), "no");
        let mut retries = Retries::new(&options, 1);
        assert_eq!(retries.next(&invalid, Advice::default()), None);
        assert!(retries.next(&invalid, Advice { retry: Some(true), after: None }).is_some());
        let overflow = ProviderError::from_answer(Some(400), "prompt is too long: 9 tokens > 8 maximum");
        assert_eq!(retries.next(&overflow, Advice { retry: Some(true), after: None }), None);
    }

    #[test]
    fn an_empty_account_is_not_waited_for() {
        let options = HttpOptions::new();
        for body in [r#"{"error":{"code":"insufficient_quota"}}"#, "Extra usage is required for long context requests"]
        {
            let error = ProviderError::from_answer(Some(429), body);
            assert_eq!(Retries::new(&options, 1).next(&error, Advice::default()), None, "{body}");
        }
    }
}
