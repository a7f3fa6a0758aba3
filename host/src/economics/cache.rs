//! What a provider's prompt cache holds.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::marked::Marked;
use super::prices::{CacheRule, PriceRow};

/// Entries kept for [`CacheRule::Breakpoints`], far more than any conversation has alive.
const BREAKPOINT_ENTRIES: usize = 256;

/// Prefixes off the last request's path that are remembered before the older half is let go.
const GENERATION: usize = 1 << 19;

/// One position on the path of the last request: everything up to and including a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// Identity of the prefix that ends here.
    pub(super) hash: u64,
    /// Its weight.
    pub(super) tokens: u64,
    /// Its size.
    pub(super) bytes: u64,
}

/// The last request as a row of prefixes; position `n` is the prefix of the first `n` segments.
#[derive(Clone, Debug, Default)]
pub(super) struct PathSteps(Vec<Step>);

impl PathSteps {
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// The prefix of the first `length` segments.
    pub(super) fn prefix(&self, length: usize) -> Step {
        match length.checked_sub(1) {
            None => Step::default(),
            Some(at) => self.0.get(at).or_else(|| self.0.last()).copied().unwrap_or_default(),
        }
    }

    pub(super) fn after(&self, length: usize) -> &[Step] {
        self.0.get(length..).unwrap_or_default()
    }

    /// Keeps the first `length` segments and goes on with `rest`.
    pub(super) fn replace_after(&mut self, length: usize, rest: &[Step]) {
        self.0.truncate(length);
        self.0.extend_from_slice(rest);
    }

    /// The path of a request that begins as this one does.
    pub(super) const fn branch<'a>(&'a self, shared: usize, rest: &'a [Step]) -> Branch<'a> {
        Branch { path: self, shared, rest }
    }
}

/// A request that is looked at: the first `shared` segments of the last one, then others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Branch<'a> {
    path: &'a PathSteps,
    shared: usize,
    rest: &'a [Step],
}

impl Branch<'_> {
    pub(super) const fn len(&self) -> usize {
        self.shared + self.rest.len()
    }

    /// The prefix of the first `length` segments.
    pub(super) fn prefix(&self, length: usize) -> Step {
        match length.checked_sub(self.shared + 1) {
            None => self.path.prefix(length),
            Some(at) => self.rest.get(at).or_else(|| self.rest.last()).copied().unwrap_or_else(|| self.whole()),
        }
    }

    /// All of it.
    pub(super) fn whole(&self) -> Step {
        self.rest.last().copied().unwrap_or_else(|| self.path.prefix(self.shared))
    }
}

/// The identity of a prefix after one more segment.
///
/// Who drops the oldest messages makes the whole row anew at every call, each prefix from the one before: so what depends
/// on the prefix is one multiplication and one addition, and what mixes the segment stands beside it.
pub(super) const fn extend(prefix: u64, segment: u64) -> u64 {
    let mut own = segment.wrapping_add(0x9E37_79B9_7F4A_7C15);
    own = (own ^ (own >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    own = (own ^ (own >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    prefix.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(own ^ (own >> 31))
}

/// Keys are already mixed, so they are their own hash.
#[derive(Clone, Copy, Default)]
pub(super) struct Premixed(u64);

impl Hasher for Premixed {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// What is known of prefixes, by their identity.
pub(super) type ByPrefix<T> = HashMap<u64, T, BuildHasherDefault<Premixed>>;

/// Prefix to the second of its last use.
type Prefixes = ByPrefix<u64>;

/// What is alive, by the row's rule.
#[derive(Clone, Debug)]
pub(super) enum Cache {
    /// Prefixes that left the last request's path, with the second of their last use; in two generations, so that
    /// memory is bounded without ever walking the whole table. What is on the path was used by the last request.
    Anywhere { young: Prefixes, old: Prefixes },
    /// Entries at marks.
    Marked { entries: Marked, max_marks: usize },
}

impl Cache {
    pub(super) fn new(rule: CacheRule) -> Self {
        match rule {
            CacheRule::Automatic => Self::Anywhere { young: Prefixes::default(), old: Prefixes::default() },
            CacheRule::Breakpoints { max_marks, lookback } => {
                Self::Marked { entries: Marked::new(BREAKPOINT_ENTRIES, Some(lookback)), max_marks }
            }
            CacheRule::Exact { max_marks, remembered } => {
                Self::Marked { entries: Marked::new(remembered, None), max_marks }
            }
        }
    }

    /// Prefixes leave the path; they were last used at second `used`.
    pub(super) fn retire(&mut self, steps: &[Step], used: u64) {
        let Self::Anywhere { young, old } = self else { return };
        for step in steps {
            if young.len() >= GENERATION {
                *old = std::mem::take(young);
            }
            young.insert(step.hash, used);
        }
    }

    /// Whether the prefix `hash`, not on the last path, was used at or after second `since`.
    fn knows(&self, hash: u64, since: u64) -> bool {
        let Self::Anywhere { young, old } = self else { return false };
        young.get(&hash).or_else(|| old.get(&hash)).is_some_and(|used| *used >= since)
    }

    /// How many leading segments of `path` are still cached under the automatic rule.
    ///
    /// Those of the last request are alive exactly when `warm`. Whoever used a prefix used every shorter one, so the first
    /// miss ends the search.
    pub(super) fn longest(&self, path: &Branch<'_>, warm: bool, since: u64) -> usize {
        if !warm {
            return 0;
        }
        path.shared + path.rest.iter().take_while(|step| self.knows(step.hash, since)).count()
    }

    /// Under a rule with marks: how many leading segments are read, if any are.
    ///
    /// `marks` are ascending positions on `path`.
    pub(super) fn marked(&self, path: &Branch<'_>, marks: &[usize], since: u64) -> Option<usize> {
        let Self::Marked { entries, .. } = self else { return None };
        entries.longest(path, marks, since)
    }

    /// Under a rule with marks: the entry that was read and all marks are entries used at second `now`.
    pub(super) fn mark(&mut self, path: &PathSteps, found: Option<usize>, marks: &[usize], since: u64, now: u64) {
        let Self::Marked { entries, .. } = self else { return };
        entries.forget_before(since);
        for length in found.iter().chain(marks) {
            entries.touch(path.prefix(*length).hash, *length, now);
        }
        entries.trim();
    }
}

/// The marks of a request: those asked for, then the end of the last request when it is whole in this one and a mark
/// is left over, then the end. Ascending, without prefixes too short to be cached.
pub(super) fn place_marks(
    path: &Branch<'_>,
    asked: &[usize],
    last_end: Option<usize>,
    max_marks: usize,
    row: &PriceRow,
    marks: &mut Vec<usize>,
) {
    marks.clear();
    let long_enough = |length: usize| length > 0 && path.prefix(length).tokens >= row.min_tokens;
    let end = path.len();
    if long_enough(end) {
        marks.push(end);
    }
    for length in asked.iter().copied().chain(last_end) {
        if marks.len() < max_marks && length < end && long_enough(length) && !marks.contains(&length) {
            marks.push(length);
        }
    }
    marks.sort_unstable();
}
