//! How much of the view handed out last still begins the new one.
//!
//! What the policy decided is known, but not what the caller changed around the conversation: a system prompt that
//! stands before it, moved cache marks, an edited message. So the state keeps fingerprints of the last view, a few
//! stretches of it each, and what the notice says was kept is checked against them.

/// Ends of stretches of a view, each with a fingerprint of the bytes since the one before.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stretches(Vec<(usize, u64)>);

/// Stretches that end at one of the newest messages, where most changes are.
const NEWEST: usize = 16;
/// Stretches over all that is older.
const OLDER: usize = 16;

impl Stretches {
    /// The stretches of a view whose messages start at `starts`, the last of which ends at `end`.
    pub(crate) fn of(view: &[u8], starts: &[usize], end: usize) -> Self {
        let (older, newest) = starts.split_at(starts.len().saturating_sub(NEWEST));
        let step = older.len().div_ceil(OLDER).max(1);
        let mut from = 0;
        let ends = older.iter().step_by(step).chain(newest).copied().chain((!starts.is_empty()).then_some(end));
        Self(ends.map(|to| (to, fingerprint(&view[std::mem::replace(&mut from, to)..to]))).collect())
    }

    /// Where the last of them ends.
    pub(crate) fn end(&self) -> usize {
        self.0.last().map_or(0, |last| last.0)
    }

    /// How many of the first `most` bytes of `view` are as they were, as far as stretches can tell: never too many.
    pub(crate) fn kept(&self, view: &[u8], most: usize) -> usize {
        let mut from = 0;
        for &(to, print) in &self.0 {
            if to > most {
                return most;
            }
            match view.get(from..to) {
                Some(stretch) if fingerprint(stretch) == print => from = to,
                _ => return from,
            }
        }
        from.min(most)
    }

    /// Reads what [`label`](Self::label) wrote; anything else is no stretches.
    pub(crate) fn parse(label: &str) -> Self {
        let one = |text: &str| {
            let (to, print) = text.split_once(':')?;
            Some((to.parse().ok()?, u64::from_str_radix(print, 16).ok()?))
        };
        let all: Option<Vec<(usize, u64)>> = label.split_whitespace().map(one).collect();
        Self(all.filter(|all| all.is_sorted_by_key(|stretch| stretch.0)).unwrap_or_default())
    }

    /// The stretches as text.
    pub(crate) fn label(&self) -> String {
        let words: Vec<String> = self.0.iter().map(|(to, print)| format!("{to}:{print:x}")).collect();
        words.join(" ")
    }
}

/// A fingerprint for telling change, not malice; the same on every machine.
fn fingerprint(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| {
        let hash = (hash ^ word).wrapping_mul(PRIME);
        hash ^ (hash >> 32)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(bytes.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    rest.iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_that_grew_is_kept_whole_and_a_changed_one_up_to_the_change() {
        let view: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        let starts: Vec<usize> = (0..300).map(|at| 500 + at * 1_000).collect();
        let seen = Stretches::of(&view, &starts, 300_400);
        assert!(seen.0.len() <= NEWEST + OLDER + 1);
        assert_eq!(Stretches::parse(&seen.label()), seen);
        assert_eq!((seen.end(), seen.kept(&view, 300_400)), (300_400, 300_400));
        assert_eq!(seen.kept(&view, 12_345), 12_345);
        for at in [0, 499, 500, 150_000, 299_499, 299_500, 300_399] {
            let mut other = view.clone();
            other[at] ^= 1;
            let kept = seen.kept(&other, 300_400);
            assert!(kept <= at, "{at}: {kept}");
            assert!(at - kept <= 20_000, "{at}: {kept}");
        }
        assert!(seen.kept(&view[..1_000], 300_400) <= 1_000);
        assert_eq!(Stretches::parse("5:zz"), Stretches::default());
    }
}
