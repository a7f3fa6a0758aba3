//! Numbers and words out of a seed.

/// A small generator (SplitMix64). Its numbers are fixed for ever by the seed.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Dice of their own for every purpose, so that one more throw for one changes nothing for the others.
    pub(crate) fn new(seed: u64, turn: u64, purpose: u64) -> Self {
        let mut dice = Self(seed);
        for part in [turn, purpose] {
            dice.0 = dice.next() ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        dice
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 to `sides` − 1; 0 for no sides.
    pub(crate) const fn below(&mut self, sides: u64) -> u64 {
        match self.next().checked_rem(sides) {
            Some(number) => number,
            None => 0,
        }
    }

    pub(crate) const fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// One of a list; nothing of an empty one.
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> Option<&'a T> {
        let at = usize::try_from(self.below(list.len() as u64)).ok()?;
        list.get(at).copied()
    }

    pub(crate) fn word(&mut self) -> &'static str {
        self.pick(&WORDS).unwrap_or_default()
    }

    pub(crate) fn path(&mut self) -> String {
        let folder = self.pick(&["src", "src/billing", "tests", "lib/reader", "docs"]).unwrap_or_default();
        let ending = self.pick(&["rs", "py", "md", "toml", "ts"]).unwrap_or_default();
        format!("{folder}/{}_{}.{ending}", self.word(), self.word())
    }

    pub(crate) fn sentence(&mut self) -> String {
        let (a, b, c) = (self.word(), self.word(), self.word());
        let path = self.path();
        match self.below(6) {
            0 => format!("The {a} in `{path}` looks right, but its {b} is never checked against the {c}."),
            1 => format!("Next I compare the {a} with the {b}; {} of them differ.", self.below(40) + 2),
            2 => format!("`{path}` sets the {a} before the {b} is read, which explains the {c}."),
            3 => format!("That leaves the {a}: it comes from `{path}`, line {}.", self.below(900) + 1),
            4 => format!("The {a} – „{b}“ in the naïve version – still fails for the {c}."),
            _ => format!("I keep the {a} as it is, since the {b} depends on it, and look at the {c} now."),
        }
    }

    pub(crate) fn sentences(&mut self, count: u64) -> String {
        (0..count).map(|_| self.sentence()).collect::<Vec<_>>().join(" ")
    }
}

const WORDS: [&str; 40] = [
    "invoice",
    "ledger",
    "booking",
    "total",
    "rounding",
    "migration",
    "cache",
    "index",
    "window",
    "parser",
    "lexer",
    "session",
    "branch",
    "commit",
    "fixture",
    "timeout",
    "retry",
    "socket",
    "header",
    "schema",
    "cursor",
    "batch",
    "queue",
    "worker",
    "token",
    "digest",
    "receipt",
    "currency",
    "balance",
    "report",
    "filter",
    "column",
    "record",
    "checksum",
    "archive",
    "snapshot",
    "replica",
    "quota",
    "deadline",
    "module",
];
