//! Cache entries at marks: the one used longest ago is the first to go.

use std::collections::VecDeque;

use super::cache::{Branch, ByPrefix};

/// An entry.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Segments of the prefix.
    length: usize,
    /// Second of its last use.
    touched: u64,
    /// Which of all uses that was.
    use_number: u64,
}

/// The entries of one cache.
#[derive(Clone, Debug)]
pub(super) struct Marked {
    by_prefix: ByPrefix<Entry>,
    /// Every use, oldest first: prefix and number. One that is not its entry's last says nothing any more.
    uses: VecDeque<(u64, u64)>,
    count: u64,
    capacity: usize,
    /// How many segments before a mark an entry is found; none where only the entry's own place counts.
    lookback: Option<usize>,
}

impl Marked {
    pub(super) fn new(capacity: usize, lookback: Option<usize>) -> Self {
        Self { by_prefix: ByPrefix::default(), uses: VecDeque::new(), count: 0, capacity, lookback }
    }

    /// The longest prefix of `path` that has an entry used at or after second `since`, and in reach of one of `marks`
    /// (ascending) where there is a reach.
    pub(super) fn longest(&self, path: &Branch<'_>, marks: &[usize], since: u64) -> Option<usize> {
        let Some(reach) = self.lookback else {
            let entries =
                self.by_prefix.iter().filter(|(_, entry)| entry.touched >= since && entry.length <= path.len());
            let stands =
                |(hash, entry): (&u64, &Entry)| (path.prefix(entry.length).hash == *hash).then_some(entry.length);
            return entries.filter_map(stands).max();
        };
        // From the last mark back: the first that is found is the longest.
        let alive = |length: usize| {
            self.by_prefix
                .get(&path.prefix(length).hash)
                .is_some_and(|entry| entry.length == length && entry.touched >= since)
        };
        let mut above = usize::MAX;
        for &mark in marks.iter().rev() {
            let from = mark.min(above);
            let to = mark.saturating_sub(reach);
            if let Some(found) = (to..=from).rev().find(|&length| alive(length)) {
                return Some(found);
            }
            above = to.saturating_sub(1);
        }
        None
    }

    /// The entry of a prefix of `length` segments, made if need be, is used at second `now`.
    pub(super) fn touch(&mut self, hash: u64, length: usize, now: u64) {
        self.count += 1;
        self.by_prefix.insert(hash, Entry { length, touched: now, use_number: self.count });
        self.uses.push_back((hash, self.count));
    }

    /// Lets go of what was not used since second `since`.
    pub(super) fn forget_before(&mut self, since: u64) {
        while let Some(&(hash, number)) = self.uses.front() {
            if let Some(entry) = self.last_use(hash, number) {
                if entry.touched >= since {
                    break;
                }
                self.by_prefix.remove(&hash);
            }
            self.uses.pop_front();
        }
    }

    /// Lets go of what was used longest ago, down to the capacity.
    pub(super) fn trim(&mut self) {
        // An old entry that is never used again must not hold on to all uses since.
        if self.uses.len() > 64 + 4 * self.capacity {
            let by_prefix = &self.by_prefix;
            self.uses.retain(|(hash, number)| by_prefix.get(hash).is_some_and(|entry| entry.use_number == *number));
        }
        while self.by_prefix.len() > self.capacity {
            let Some((hash, number)) = self.uses.pop_front() else { return };
            if self.last_use(hash, number).is_some() {
                self.by_prefix.remove(&hash);
            }
        }
    }

    /// The entry of a prefix, if the use with this number was its last.
    fn last_use(&self, hash: u64, number: u64) -> Option<Entry> {
        self.by_prefix.get(&hash).copied().filter(|entry| entry.use_number == number)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cache::{PathSteps, Step, extend};
    use super::*;

    /// The same by looking at every entry: prefix, length, second of the last use; the one used last stands last.
    #[derive(Default)]
    struct Naive(Vec<(u64, usize, u64)>);

    impl Naive {
        fn longest(&self, path: &Branch<'_>, marks: &[usize], since: u64, reach: Option<usize>) -> Option<usize> {
            let near = |length: usize| {
                reach.is_none_or(|reach| marks.iter().any(|mark| (length..=length + reach).contains(mark)))
            };
            let stands = |(hash, length, _): &&(u64, usize, u64)| {
                *length <= path.len() && path.prefix(*length).hash == *hash && near(*length)
            };
            self.0.iter().filter(|(.., touched)| *touched >= since).filter(stands).map(|(_, length, _)| *length).max()
        }

        fn touch(&mut self, hash: u64, length: usize, now: u64) {
            self.0.retain(|(other, ..)| *other != hash);
            self.0.push((hash, length, now));
        }
    }

    fn path(segments: impl Iterator<Item = u64>) -> PathSteps {
        let mut steps = PathSteps::default();
        let mut last = Step::default();
        for segment in segments {
            last = Step { hash: extend(last.hash, segment), tokens: last.tokens + 10, bytes: last.bytes + 40 };
            let length = steps.len();
            steps.replace_after(length, &[last]);
        }
        steps
    }

    #[test]
    fn entries_are_found_and_forgotten_as_by_looking_at_all_of_them() {
        for (capacity, reach) in [(5, Some(3)), (5, None), (40, Some(20))] {
            let (mut marked, mut naive) = (Marked::new(capacity, reach), Naive::default());
            let mut state = 7u64;
            let mut roll = |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            let mut found_some = 0;
            for turn in 0..3_000u64 {
                let now = turn * 2;
                let since = now.saturating_sub(50);
                // Requests share beginnings of several lengths.
                let (shared, len) = (roll(12), 1 + roll(30));
                let branch = roll(3);
                let steps = path((0..len).map(|at| if at < shared { at } else { 100 * (1 + branch) + at }));
                let mut marks: Vec<usize> = (0..3).map(|_| 1 + roll(len) as usize).collect();
                marks.sort_unstable();
                marks.dedup();
                let whole = steps.branch(steps.len(), &[]);
                let found = marked.longest(&whole, &marks, since);
                assert_eq!(found, naive.longest(&whole, &marks, since, reach), "turn {turn}, {marks:?} of {len}");
                found_some += usize::from(found.is_some());
                marked.forget_before(since);
                naive.0.retain(|(.., touched)| *touched >= since);
                for &length in found.iter().chain(&marks) {
                    let hash = steps.prefix(length).hash;
                    marked.touch(hash, length, now);
                    naive.touch(hash, length, now);
                }
                marked.trim();
                let over = naive.0.len().saturating_sub(capacity);
                naive.0.drain(..over);
                assert_eq!(marked.by_prefix.len(), naive.0.len());
                assert!(marked.uses.len() <= 64 + 4 * capacity);
            }
            assert!(found_some > 1_000, "{found_some}");
        }
    }
}
