//! A fill level: a share of usable, or absolute tokens.

use core::fmt;

use serde::{Deserialize, Serialize};

/// A fill level of the usable window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Watermark {
    /// A share of usable in hundredths of a per cent: `8_500` is 0.85. Valid: 1..=10,000.
    BasisPoints(u16),
    /// Absolute tokens, clamped to usable. Valid: 1 and up.
    Tokens(u64),
}

impl Watermark {
    /// Reads `0.85` or `85%` (a fraction of usable) or `150000` (tokens). A number of one or less is a
    /// fraction when it has a point, as in the seeds: `1.0` is all of usable, `1` is one token.
    ///
    /// ```
    /// use foreshorten_core::budget::Watermark;
    /// assert_eq!(Watermark::parse("0.85"), Some(Watermark::BasisPoints(8_500)));
    /// assert_eq!(Watermark::parse("150_000"), Some(Watermark::Tokens(150_000)));
    /// assert_eq!(Watermark::parse("1.5"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let found = if let Some(percent) = text.strip_suffix('%') {
            decimal(percent.trim(), 2)
        } else if text.contains('.') {
            decimal(text, 4)
        } else {
            let mut value = 0u64;
            let mut digits = false;
            for c in text.chars().filter(|&c| c != '_' && c != ',') {
                value = value.checked_mul(10)?.checked_add(u64::from(c.to_digit(10)?))?;
                digits = true;
            }
            return (digits && value > 0).then_some(Self::Tokens(value));
        };
        let points = found?;
        (1..=10_000).contains(&points).then_some(Self::BasisPoints(points as u16))
    }

    /// Whether the value is one that means something.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        match self {
            Self::BasisPoints(points) => points >= 1 && points <= 10_000,
            Self::Tokens(tokens) => tokens >= 1,
        }
    }

    /// The level in tokens, between 1 and `usable`.
    #[must_use]
    pub fn of(self, usable: u64) -> u64 {
        let tokens = match self {
            Self::BasisPoints(points) => (u128::from(usable) * u128::from(points) / 10_000) as u64,
            Self::Tokens(tokens) => tokens,
        };
        tokens.clamp(1, usable.max(1))
    }
}

/// A decimal number times ten to the `places`, further digits dropped.
fn decimal(text: &str, places: u32) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0u64;
    for c in whole.chars() {
        value = value.checked_mul(10)?.checked_add(u64::from(c.to_digit(10)?))?;
    }
    let mut digits = fraction.chars();
    for _ in 0..places {
        let digit = match digits.next() {
            Some(c) => c.to_digit(10)?,
            None => 0,
        };
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    digits.all(|c| c.is_ascii_digit()).then_some(value)
}

impl fmt::Display for Watermark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BasisPoints(points) => write!(f, "{}.{:04}", points / 10_000, points % 10_000),
            Self::Tokens(tokens) => write!(f, "{tokens}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling() {
        assert_eq!(Watermark::parse("85%"), Some(Watermark::BasisPoints(8_500)));
        assert_eq!(Watermark::parse(".6"), Some(Watermark::BasisPoints(6_000)));
        assert_eq!(Watermark::parse("1.0"), Some(Watermark::BasisPoints(10_000)));
        assert_eq!(Watermark::parse("1"), Some(Watermark::Tokens(1)));
        for wrong in ["", "0", "0.0", "-1", "1.01", "nan", "inf", "0x5", ".", "1e3", "101%"] {
            assert_eq!(Watermark::parse(wrong), None, "{wrong}");
        }
    }
}
