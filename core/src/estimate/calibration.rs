//! Anchoring the estimate on what the provider counted.
//!
//! The provider's count of one view is exact and contains everything an estimate cannot see (templates,
//! hidden instructions). So the estimate of the next view is that count plus the *calibrated* weight of
//! what changed since. The ratio follows the ratio of differences, and is clamped and in fixed point. How
//! fast depends on what is known before: bytes/4 may be off by half, so the first count sets the ratio and
//! every later one moves it half way; the tables are right to a few percent, so a count moves it by as much
//! as it has seen.

use serde::{Deserialize, Serialize};

/// A ratio in Q16.16 fixed point: the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ratio(u32);

impl Ratio {
    /// One.
    pub const ONE: Self = Self(1 << 16);
    /// The least ratio a calibration takes on: half. A tokenizer twice as thrifty as the estimate.
    pub const MIN: Self = Self(1 << 15);
    /// The greatest ratio a calibration takes on: two and a half.
    pub const MAX: Self = Self((5 << 16) / 2);

    /// `numerator / denominator`, clamped to the calibration's range; one when the denominator is zero.
    #[must_use]
    pub fn of(numerator: u64, denominator: u64) -> Self {
        if denominator == 0 {
            return Self::ONE;
        }
        let raw = (u128::from(numerator) << 16) / u128::from(denominator);
        Self(u32::try_from(raw).unwrap_or(u32::MAX)).clamp(Self::MIN, Self::MAX)
    }

    /// Whatever the bits, a ratio within the calibration's range.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        if bits < Self::MIN.0 {
            Self::MIN
        } else if bits > Self::MAX.0 {
            Self::MAX
        } else {
            Self(bits)
        }
    }

    /// The Q16.16 bits.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// `tokens` times the ratio, rounded up, saturating.
    #[must_use]
    pub fn scale(self, tokens: u64) -> u64 {
        let product = u128::from(tokens) * u128::from(self.0);
        u64::try_from(product.div_ceil(1 << 16)).unwrap_or(u64::MAX)
    }

    /// `tokens` times the ratio, to the nearest, saturating: for parts whose sum matters.
    pub(crate) fn scale_to_nearest(self, tokens: u64) -> u64 {
        let product = u128::from(tokens) * u128::from(self.0) + (1 << 15);
        u64::try_from(product >> 16).unwrap_or(u64::MAX)
    }

    /// `tokens` divided by the ratio: how much raw weight a calibrated allowance buys.
    #[must_use]
    pub fn unscale(self, tokens: u64) -> u64 {
        let product = u128::from(tokens) << 16;
        u64::try_from(product / u128::from(self.0.max(1))).unwrap_or(u64::MAX)
    }
}

/// Why a usage figure was not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The provider reported nothing.
    Zero,
    /// No view is known to which the figure could belong.
    NoView,
    /// Less than half of the estimate: the server cut the prompt, or leaves something out.
    Truncated,
    /// More than four times the estimate.
    Absurd,
}

/// What was learned about the provider's counting, and the view it counted last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    ratio: Ratio,
    /// Raw estimate of the view the provider counted last; 0 before the first count.
    anchor_raw: u64,
    /// What it counted.
    anchor_real: u64,
    /// Number of counts believed so far: which of two calibrations has the more recent evidence.
    evidence: u64,
    /// Estimator whose raw numbers these are.
    estimator: u8,
}

impl Default for Calibration {
    fn default() -> Self {
        Self { ratio: Ratio::ONE, anchor_raw: 0, anchor_real: 0, evidence: 0, estimator: 0 }
    }
}

/// A change smaller than this says nothing about the ratio of bytes/4: framing and rounding drown it.
const MIN_DELTA: u64 = 256;

/// What the tables are believed to have seen before a session begins, and what each count adds to it, in tokens: a count of
/// X new tokens moves the ratio by the share X / (X + what was seen). Fitted to 1,745 recorded calls of eighteen
/// sessions (`docs/calibration-sessions.md`), flat around these values.
const SEEN_BEFORE: u64 = 8_000;
const SEEN_BY_A_COUNT: u64 = 500;
/// Where that ends: a session goes on learning.
const SEEN_AT_MOST: u64 = 60_000;
/// A count this far off moves the ratio no further than one half as far: something else was in it.
const FURTHEST: u32 = 1 << 15;

impl Calibration {
    /// Calibrated tokens of a view whose raw estimate is `raw`.
    #[must_use]
    pub fn tokens(&self, raw: u64) -> u64 {
        if self.evidence == 0 {
            return raw;
        }
        if raw >= self.anchor_raw {
            self.anchor_real.saturating_add(self.ratio.scale(raw - self.anchor_raw))
        } else {
            // Shrinking by a ratio learned on growth can overshoot on what an anchor also contains (hidden
            // text); never below the clamp's floor of the raw estimate.
            let less = self.anchor_real.saturating_sub(self.ratio.scale(self.anchor_raw - raw));
            less.max(Ratio::MIN.scale(raw))
        }
    }

    /// Raw weight that `tokens` calibrated tokens buy, for sizes of parts rather than of whole views.
    #[must_use]
    pub fn raw_for(&self, tokens: u64) -> u64 {
        self.ratio.unscale(tokens)
    }

    /// The ratio now in force.
    #[must_use]
    pub const fn ratio(&self) -> Ratio {
        self.ratio
    }

    /// Number of counts believed so far.
    #[must_use]
    pub const fn evidence(&self) -> u64 {
        self.evidence
    }

    /// [Id](super::ByteEstimator::id) of the estimator whose raw numbers these are.
    #[must_use]
    pub const fn estimator(&self) -> u8 {
        self.estimator
    }

    /// Takes in the provider's count `real` for a view estimated at `raw`.
    ///
    /// # Errors
    /// Refuses figures that cannot be a count of that view; the calibration is unchanged then.
    pub fn observe(&mut self, raw: u64, real: u64) -> Result<(), Refused> {
        let before = *self;
        self.anchor_at(raw, real)?;
        self.learn(&before, raw, real);
        Ok(())
    }

    /// As [`observe`](Self::observe), for a view that decisions have changed since the last count: nothing is learned about
    /// the ratio, since what they left behind is in the difference, too.
    ///
    /// # Errors
    /// As [`observe`](Self::observe).
    pub(crate) fn anchor_at(&mut self, raw: u64, real: u64) -> Result<(), Refused> {
        if real == 0 {
            return Err(Refused::Zero);
        }
        if raw == 0 {
            return Err(Refused::NoView);
        }
        if real < raw / 2 {
            return Err(Refused::Truncated);
        }
        // Small prompts are dominated by what an estimate cannot see.
        if real > raw.saturating_mul(4).saturating_add(4_096) {
            return Err(Refused::Absurd);
        }
        self.anchor_raw = raw;
        self.anchor_real = real;
        self.evidence = self.evidence.saturating_add(1);
        Ok(())
    }

    fn learn(&mut self, before: &Self, raw: u64, real: u64) {
        let came = raw.saturating_sub(before.anchor_raw);
        if before.evidence > 0 && (came == 0 || real <= before.anchor_real) {
            return;
        }
        // Before the first count both anchors are zero.
        let seen = Ratio::of(real - before.anchor_real, came).to_bits();
        let ratio = self.ratio.to_bits();
        if self.estimator == 0 {
            if before.evidence == 0 {
                self.ratio = Ratio::from_bits(seen);
            } else if came > MIN_DELTA {
                // Half way: one dense log must not turn the ratio for everything after it.
                self.ratio = Ratio::from_bits((ratio + seen) / 2);
            }
            return;
        }
        let counts = before.evidence.min(SEEN_AT_MOST);
        let known = (SEEN_BEFORE + SEEN_BY_A_COUNT * counts).min(SEEN_AT_MOST);
        let step =
            u128::from(ratio.abs_diff(seen).min(FURTHEST)) * u128::from(came) / (u128::from(came) + u128::from(known));
        // Below `FURTHEST`, since it is a share of it.
        let step = u32::try_from(step).unwrap_or(FURTHEST);
        self.ratio = Ratio::from_bits(if seen > ratio { ratio + step } else { ratio - step });
    }

    /// The estimate of the view that was counted last, and its count; zeros before the first count.
    pub(crate) const fn anchor(&self) -> (u64, u64) {
        (self.anchor_raw, self.anchor_real)
    }

    /// A part of the counted view that is known leaves it, and another known one comes in its place: of both, what is
    /// estimated, and what it weighs. What remains is known as before. By all that changed, the view lost `saved` estimated
    /// tokens.
    ///
    /// Answers false, and changes nothing, where the view would not become smaller by that, or the rest not be one that could
    /// have been counted.
    pub(crate) fn exchange(&mut self, saved: u64, leaves: (u64, u64), comes: (u64, u64)) -> bool {
        let whole = |tokens: u64| i128::from(tokens) << 16;
        // What is in neither goes by the ratio.
        let others = i128::from(saved) + i128::from(comes.0) - i128::from(leaves.0);
        let less = whole(leaves.1) - whole(comes.1) + others * i128::from(self.ratio.to_bits());
        let raw = self.anchor_raw.saturating_add(comes.0);
        // Less than two tokens would vanish in the rounding.
        if self.evidence == 0 || leaves.0 >= raw || less < whole(2) {
            return false;
        }
        let raw = raw - leaves.0;
        let real = self.anchor_real.saturating_add(comes.1).saturating_sub(leaves.1);
        let plausible = raw / 2..=raw.saturating_mul(4).saturating_add(4_096);
        if plausible.contains(&real) {
            (self.anchor_raw, self.anchor_real) = (raw, real);
        }
        plausible.contains(&real)
    }

    /// Forgets everything when the raw numbers come from another estimator than before.
    pub fn use_estimator(&mut self, id: u8) {
        if self.estimator != id {
            *self = Self { estimator: id, ..Self::default() };
        }
    }

    /// The one with the more recent evidence; ties by value, so that joining commutes.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        let key = |c: &Self| (c.evidence, c.anchor_real, c.anchor_raw, c.ratio, c.estimator);
        if key(&self) >= key(&other) { self } else { other }
    }

    /// The same calibration with every figure in its legal range, whatever a stored state held.
    #[must_use]
    pub fn sane(mut self) -> Self {
        self.ratio = Ratio::from_bits(self.ratio.to_bits());
        let plausible = self.anchor_raw > 0
            && self.anchor_real >= self.anchor_raw / 2
            && self.anchor_real <= self.anchor_raw.saturating_mul(4).saturating_add(4_096);
        if self.evidence > 0 && !plausible {
            return Self { estimator: self.estimator, ..Self::default() };
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_count_sets_the_ratio_and_the_anchor() {
        let mut calibration = Calibration::default();
        calibration.observe(10_000, 14_000).unwrap();
        assert_eq!(calibration.tokens(10_000), 14_000);
        assert_eq!(calibration.tokens(11_000), 15_400);
        calibration.observe(11_000, 15_000).unwrap();
        assert_eq!(calibration.tokens(11_000), 15_000, "anchored, whatever the ratio");
    }

    #[test]
    fn impossible_counts_are_refused() {
        let mut calibration = Calibration::default();
        assert_eq!(calibration.observe(12_000, 0), Err(Refused::Zero));
        assert_eq!(calibration.observe(12_000, 5_001), Err(Refused::Truncated));
        assert_eq!(calibration.observe(12_000, 120_000), Err(Refused::Absurd));
        assert_eq!(calibration.observe(0, 10), Err(Refused::NoView));
        assert_eq!(calibration, Calibration::default());
    }

    #[test]
    fn a_stored_ratio_is_clamped() {
        for bits in [0, 1, u32::MAX, 50 << 16] {
            let stored = Calibration { ratio: Ratio(bits), ..Calibration::default() };
            let ratio = stored.sane().ratio();
            assert!(ratio >= Ratio::MIN && ratio <= Ratio::MAX);
        }
    }

    #[test]
    fn nothing_is_exchanged_that_would_make_a_view_larger_whatever_else_was_counted() {
        // A view of 8,000 beside schemas of 30,000 that cost half.
        let mut calibration = Calibration { estimator: 1, ..Calibration::default() };
        calibration.observe(38_000, 23_000).unwrap();
        let before = calibration;
        assert!(!calibration.exchange(4, (64, 32), (60, 60)), "an entry of 32 for a marker of 60");
        assert_eq!(calibration, before);
        assert!(calibration.exchange(140, (200, 180), (60, 60)));
        assert_eq!(calibration.tokens(38_000 - 140), 23_000 - 120);
        // What was never measured goes by the ratio, and the marker in its place does not.
        let ratio = calibration.ratio();
        let before = calibration.tokens(37_860);
        assert!(calibration.exchange(140, (0, 0), (60, 60)));
        assert!((before - ratio.scale(200) + 60).abs_diff(calibration.tokens(37_720)) <= 1);
    }

    #[test]
    fn additive_schemas_do_not_move_the_ratio() {
        let mut calibration = Calibration::default();
        for turn in 0..40u64 {
            let raw = 500 + turn * 500 + 6_000;
            calibration.observe(raw, raw).unwrap();
            let ratio = calibration.ratio();
            assert!(ratio >= Ratio::of(95, 100) && ratio <= Ratio::of(105, 100));
        }
    }
}
