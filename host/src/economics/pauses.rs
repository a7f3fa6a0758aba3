//! Time between the model calls of a session.

use std::fmt;
use std::str::FromStr;

/// How much time passes before each call. The simulator has no clock of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pauses {
    /// None: the cache never gets cold.
    #[default]
    None,
    /// As the session's own timestamps say, where it has any.
    Recorded,
    /// After every `calls` calls, `seconds`.
    Every {
        /// Calls without a pause between them.
        calls: u64,
        /// How long a pause is.
        seconds: u64,
    },
}

impl Pauses {
    /// Seconds before the call of this number, from 0; `times` are the seconds at which it and the one before were made,
    /// where the session says.
    ///
    /// ```
    /// use foreshorten::economics::Pauses;
    /// let pauses: Pauses = "40:600".parse()?;
    /// assert_eq!(pauses.before(39, None), None);
    /// assert_eq!(pauses.before(40, None), Some(600));
    /// assert_eq!(Pauses::Recorded.before(7, Some((1_000, 1_030))), Some(30));
    /// # Ok::<(), String>(())
    /// ```
    #[must_use]
    pub fn before(self, call: u64, times: Option<(u64, u64)>) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Recorded => times.map(|(before, now)| now.saturating_sub(before)),
            Self::Every { calls, seconds } => (call > 0 && call.is_multiple_of(calls)).then_some(seconds),
        }
    }
}

impl FromStr for Pauses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let every = || {
            let (calls, seconds) = text.split_once(':')?;
            let (calls, seconds) = (calls.parse().ok()?, seconds.parse().ok()?);
            (calls > 0).then_some(Self::Every { calls, seconds })
        };
        match text {
            "none" => Ok(Self::None),
            "recorded" => Ok(Self::Recorded),
            _ => every().ok_or_else(|| {
                "expected none, recorded, or CALLS:SECONDS, as in 40:600 for ten minutes after every 40 calls".into()
            }),
        }
    }
}

impl fmt::Display for Pauses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Recorded => f.write_str("recorded"),
            Self::Every { calls, seconds } => write!(f, "{calls}:{seconds}"),
        }
    }
}

/// The second that an RFC 3339 timestamp names, counted from 1970; fractions are left out.
///
/// `None` for anything else, and for years before 1970.
///
/// ```
/// use foreshorten::economics::seconds_of;
/// assert_eq!(seconds_of("1970-01-02T00:00:01Z"), Some(86_401));
/// assert_eq!(seconds_of("2026-06-30T07:42:05.612Z"), Some(1_782_805_325));
/// assert_eq!(seconds_of("2026-06-30T09:42:05+02:00"), Some(1_782_805_325));
/// assert_eq!(seconds_of("yesterday"), None);
/// ```
#[must_use]
pub fn seconds_of(timestamp: &str) -> Option<u64> {
    let (date, rest) = timestamp.split_once(['T', ' '])?;
    let number = |text: &str, length: usize| -> Option<i64> {
        let plain = text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
        if plain { text.parse().ok() } else { None }
    };
    let mut parts = date.split('-');
    let (year, month, day) = (number(parts.next()?, 4)?, number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    if parts.next().is_some()
        || !(1970..=9999).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
    {
        return None;
    }
    let zone_at = rest.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = rest.split_at_checked(zone_at)?;
    let time = time.split_once('.').map_or(time, |(whole, _)| whole);
    let mut parts = time.split(':');
    let (hour, minute, second) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let shift = match zone {
        "Z" | "z" => 0,
        _ => {
            let (hours, minutes) = zone.get(1..)?.split_once(':')?;
            let minutes = number(hours, 2)? * 60 + number(minutes, 2)?;
            if zone.starts_with('-') { -minutes } else { minutes }
        }
    };
    // Days from 1970, with years that begin in March, so that the day of a leap year is the last.
    let years = if month > 2 { year } else { year - 1 };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = years * 365 + years / 4 - years / 100 + years / 400 + day_of_year - 719_468;
    u64::try_from(days * 86_400 + hour * 3_600 + (minute - shift) * 60 + second).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_read_as_they_are_written() {
        for text in ["none", "recorded", "40:600", "1:0"] {
            assert_eq!(text.parse::<Pauses>().unwrap().to_string(), text);
        }
        for wrong in ["", "40", "0:600", ":", "40:", "-1:5", "often"] {
            assert!(wrong.parse::<Pauses>().unwrap_err().contains("CALLS:SECONDS"), "{wrong}");
        }
    }

    #[test]
    fn days_are_counted_over_leap_years() {
        assert_eq!(seconds_of("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(seconds_of("2000-02-29T00:00:00Z"), Some(951_782_400));
        assert_eq!(seconds_of("2000-03-01T00:00:00Z"), Some(951_868_800));
        assert_eq!(seconds_of("2026-12-31T23:59:59Z").map(|at| at + 1), seconds_of("2027-01-01T00:00:00Z"));
        assert_eq!(seconds_of("2026-01-01T00:30:00-01:00"), seconds_of("2026-01-01T01:30:00Z"));
        for wrong in ["", "2026-13-01T00:00:00Z", "2026-01-01", "2026-01-01T25:00:00Z", "1969-12-31T23:59:59Z", "é-T:"]
        {
            assert_eq!(seconds_of(wrong), None, "{wrong}");
        }
    }
}
