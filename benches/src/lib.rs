//! What the benches share: pairs measured in turn, so that a busy machine is busy for both; counts that no machine disturbs;
//! sessions; the table.

pub mod cpu;
pub mod heap;
pub mod measured;
pub mod naive;
pub mod sessions;
pub mod table;

use std::time::{Duration, Instant};

/// Times of two things, taken alternately.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// Of the first, and of the second, in the order they were taken.
    pub times: Vec<(Duration, Duration)>,
}

impl Pairs {
    /// Runs both `count` times after one run that does not count; every other pair the second goes first.
    pub fn take(count: usize, mut first: impl FnMut() -> Duration, mut second: impl FnMut() -> Duration) -> Self {
        first();
        second();
        let pair = |at: usize| {
            if at.is_multiple_of(2) {
                let a = first();
                (a, second())
            } else {
                let b = second();
                (first(), b)
            }
        };
        Self { times: (0..count).map(pair).collect() }
    }

    /// Least time of the first, and of the second: what it costs when nobody interferes.
    #[must_use]
    pub fn least(&self) -> (Duration, Duration) {
        let least = |of: fn(&(Duration, Duration)) -> Duration| self.times.iter().map(of).min().unwrap_or_default();
        (least(|pair| pair.0), least(|pair| pair.1))
    }

    /// The second's least time as a multiple of the first's.
    #[must_use]
    pub fn ratio_of_least(&self) -> f64 {
        let (a, b) = self.least();
        b.as_secs_f64() / a.as_secs_f64()
    }

    /// Median over the pairs of the second's time as a multiple of the first's.
    #[must_use]
    pub fn median_ratio(&self) -> f64 {
        let mut ratios: Vec<f64> = self.times.iter().map(|(a, b)| b.as_secs_f64() / a.as_secs_f64()).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// How long something took.
pub fn time(act: impl FnOnce()) -> Duration {
    let start = Instant::now();
    act();
    start.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_pairs_and_of_the_best_of_each() {
        let (mut a, mut b) = (0, 0);
        let pairs = Pairs::take(
            4,
            || {
                a += 1;
                Duration::from_millis(a)
            },
            || {
                b += 1;
                Duration::from_millis(3 * b)
            },
        );
        // The first run of each does not count.
        assert_eq!(pairs.least(), (Duration::from_millis(2), Duration::from_millis(6)));
        assert!((pairs.ratio_of_least() - 3.0).abs() < 1e-9 && (pairs.median_ratio() - 3.0).abs() < 1e-9);
    }
}
