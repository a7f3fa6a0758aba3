//! Exact money.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Picodollars in a microdollar.
const PICO_PER_MICRO: u128 = 1_000_000;

/// An amount of money in picodollars (10⁻¹² $): the price of one token at $1 per million is 1,000,000 of them.
///
/// Serialised as whole microdollars, rounded half up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(u128);

impl Money {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// So many picodollars.
    #[must_use]
    pub const fn from_picodollars(picodollars: u128) -> Self {
        Self(picodollars)
    }

    /// So many microdollars.
    #[must_use]
    pub const fn from_microdollars(microdollars: u64) -> Self {
        Self(microdollars as u128 * PICO_PER_MICRO)
    }

    /// The exact amount.
    #[must_use]
    pub const fn picodollars(self) -> u128 {
        self.0
    }

    /// The amount in millionths of a dollar, rounded half up; saturates.
    #[must_use]
    pub fn microdollars(self) -> u64 {
        u64::try_from(self.0.saturating_add(PICO_PER_MICRO / 2) / PICO_PER_MICRO).unwrap_or(u64::MAX)
    }

    /// What is left after taking `other` away, or nothing.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This amount as a multiple of `other`, in thousandths; `None` when `other` is nothing.
    #[must_use]
    pub fn ratio_thousandths(self, other: Self) -> Option<u64> {
        if other.0 == 0 {
            return None;
        }
        Some(u64::try_from(self.0.saturating_mul(1000).saturating_add(other.0 / 2) / other.0).unwrap_or(u64::MAX))
    }
}

impl Add for Money {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

/// Dollars with as many decimals as say something: `$1,204.50`, `$0.0431`, `$0`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micro = self.microdollars();
        if micro == 0 {
            return f.pad("$0");
        }
        let decimals: u32 = if micro >= 1_000_000 {
            2
        } else if micro >= 10_000 {
            4
        } else {
            6
        };
        let step = 10_u64.pow(6 - decimals);
        let rounded = (micro.saturating_add(step / 2)) / step;
        let unit = 10_u64.pow(decimals);
        let whole = rounded / unit;
        let fraction = rounded % unit;
        let mut text = String::from("$");
        let digits = whole.to_string();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        text.push_str(&format!(".{fraction:0width$}", width = decimals as usize));
        f.pad(&text)
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.microdollars())
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Self::from_microdollars)
    }
}

/// Reads a plain decimal number (`12`, `0.025`, `.5`) as millionths, exactly.
///
/// `None` for anything else: a sign, an exponent, more than six decimals that matter, or too large a number.
#[must_use]
pub fn parse_millionths(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let fraction = fraction.trim_end_matches('0');
    if !all_digits(whole) || !all_digits(fraction) || fraction.len() > 6 {
        return None;
    }
    let mut value: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    value = value.checked_mul(1_000_000)?;
    if !fraction.is_empty() {
        let places = u32::try_from(fraction.len()).ok()?;
        value = value.checked_add(fraction.parse::<u64>().ok()? * 10_u64.pow(6 - places))?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_exactly_or_not_at_all() {
        assert_eq!(parse_millionths("5"), Some(5_000_000));
        assert_eq!(parse_millionths("0.025"), Some(25_000));
        assert_eq!(parse_millionths(".5"), Some(500_000));
        assert_eq!(parse_millionths("0.0028"), Some(2_800));
        assert_eq!(parse_millionths("1.2500000000"), Some(1_250_000));
        for bad in ["", ".", "-1", "+1", "1e3", "0.0000001", "1.2.3", "1,5", "99999999999999999999"] {
            assert_eq!(parse_millionths(bad), None, "{bad}");
        }
    }

    #[test]
    fn amounts_read_like_amounts() {
        let shown = |micro| Money::from_microdollars(micro).to_string();
        assert_eq!(shown(0), "$0");
        assert_eq!(shown(7), "$0.000007");
        assert_eq!(shown(43_100), "$0.0431");
        assert_eq!(shown(999_999), "$1.0000");
        assert_eq!(shown(1_204_499_999), "$1,204.50");
        assert_eq!(format!("{:>9}", Money::from_microdollars(1_500_000)), "    $1.50");
    }

    #[test]
    fn rounding_happens_only_when_shown() {
        let third = Money::from_picodollars(400_000);
        assert_eq!(third.microdollars(), 0);
        assert_eq!((third + third).microdollars(), 1);
        assert_eq!(Money::from_microdollars(3).ratio_thousandths(Money::from_microdollars(2)), Some(1500));
        assert_eq!(Money::from_microdollars(3).ratio_thousandths(Money::ZERO), None);
    }
}
