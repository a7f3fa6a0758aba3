//! A plugin that keeps failing is left alone for a while.
//!
//! Three faults in a row open the breaker. Then it is tried again after 1, 2, 4 … 32 turns, and whenever a rejected view
//! must shrink. Turns are the clock: the state of a session holds them, so a resumed session goes on where it was.

/// Faults in a row that open the breaker.
pub const FAULTS: u32 = 3;
/// Turns between two tries at most.
pub const LONGEST_WAIT: u64 = 32;

/// Faults of one plugin in one session. Kept as a label of the state, under the digest of the plugin: a new build of it
/// starts afresh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Breaker {
    /// Changes so far: of two states that join, the one with more holds.
    evidence: u64,
    /// Faults since the last success.
    faults: u32,
    /// Turn of the newest fault.
    at: u64,
    /// Turns to wait after it.
    wait: u64,
}

impl Breaker {
    /// Reads a label; what cannot be read is a closed breaker.
    #[must_use]
    pub fn parse(label: &str) -> Self {
        let mut numbers = label.split(' ').map(str::parse::<u64>);
        let mut next = || numbers.next().and_then(Result::ok);
        let parsed = (next(), next(), next(), next());
        let (Some(evidence), Some(faults), Some(at), Some(wait)) = parsed else { return Self::default() };
        Self { evidence, faults: u32::try_from(faults).unwrap_or(u32::MAX), at, wait: wait.min(LONGEST_WAIT) }
    }

    /// The label. The evidence comes first and in equal width, so that the greater text is the more recent one.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{:020} {:010} {:020} {:03}", self.evidence, self.faults, self.at, self.wait)
    }

    /// Faults since the last success.
    #[must_use]
    pub const fn faults(&self) -> u32 {
        self.faults
    }

    /// Whether a call may be made at `turn`.
    #[must_use]
    pub const fn allows(&self, turn: u64, aggressive: bool) -> bool {
        self.faults < FAULTS || aggressive || turn >= self.at.saturating_add(self.wait)
    }

    /// Turn of the next try.
    #[must_use]
    pub const fn next_try(&self) -> u64 {
        self.at.saturating_add(self.wait)
    }

    /// Notes a fault.
    pub fn fail(&mut self, turn: u64) {
        self.evidence = self.evidence.saturating_add(1);
        self.faults = self.faults.saturating_add(1);
        self.at = turn;
        if self.faults >= FAULTS {
            self.wait = (self.wait * 2).clamp(1, LONGEST_WAIT);
        }
    }

    /// Notes a success. Answers whether anything changed.
    pub fn succeed(&mut self) -> bool {
        let changed = self.faults > 0;
        if changed {
            *self = Self { evidence: self.evidence.saturating_add(1), ..Self::default() };
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_three_faults_the_waits_double_and_a_success_closes_it() {
        let mut breaker = Breaker::default();
        let mut turn = 0;
        let mut tries = Vec::new();
        while turn < 200 {
            if breaker.allows(turn, false) {
                breaker.fail(turn);
                tries.push(turn);
            }
            breaker = Breaker::parse(&breaker.label());
            turn += 1;
        }
        assert_eq!(tries, [0, 1, 2, 3, 5, 9, 17, 33, 65, 97, 129, 161, 193]);
        assert!(!breaker.allows(200, false) && breaker.allows(200, true));
        assert!(breaker.succeed() && !breaker.succeed());
        assert!(breaker.allows(200, false));
    }

    #[test]
    fn of_two_labels_the_greater_is_the_more_recent() {
        let mut older = Breaker::default();
        (0..9).for_each(|turn| older.fail(turn));
        let mut newer = older;
        newer.succeed();
        assert!(newer.label() > older.label());
        assert_eq!(Breaker::parse("nonsense"), Breaker::default());
    }
}
