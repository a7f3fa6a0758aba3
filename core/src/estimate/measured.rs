//! What entries really weighed, as far as the provider's counts tell.
//!
//! Two successive counts differ by what came in between. That difference is kept as a *run*: from which entry on, what the
//! estimate said of the stretch, what the provider said. When an entry leaves the view later, it takes with it what it was
//! measured to weigh, not what it was estimated to; so the view that remains is known almost as well as one that was
//! counted.
//!
//! An entry's share of its run goes by estimate. Entries before the first count are in no run: a first count holds much that
//! is not in the record (templates, hidden instructions), and nobody knows how much.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Calibration, Ratio, Written};

/// Most runs that are kept, some nine bytes each; beyond, the two neighbours that differ least become one.
const MAX_RUNS: usize = 96;

/// Neighbours whose ratios differ by no more than this, in 1/65,536, are one run: a sixty-fourth.
const ALIKE: u64 = 1 << 10;

/// A stretch of entries, to the start of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Run {
    /// Its first entry.
    from: u32,
    /// Estimated tokens.
    raw: u64,
    /// Counted tokens.
    real: u64,
}

impl Run {
    fn ratio(self) -> Ratio {
        Ratio::of(self.real, self.raw)
    }

    /// How much of what is known is lost, at most, when two neighbours become one.
    fn loss(self, next: Self) -> u128 {
        u128::from(self.bits().abs_diff(next.bits())) * u128::from(self.raw.min(next.raw))
    }

    /// The ratio in Q16.16, whatever it is.
    fn bits(self) -> u64 {
        u64::try_from((u128::from(self.real) << 16) / u128::from(self.raw.max(1))).unwrap_or(u64::MAX)
    }

    fn take_in(&mut self, next: Self) {
        self.raw = self.raw.saturating_add(next.raw);
        self.real = self.real.saturating_add(next.real);
    }
}

/// The measured weights of a session. Ordered by how much of the record was counted, so that of two the greater is the more
/// recent.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Measured {
    /// Entries of the record when the view was made that was counted last.
    counted: u32,
    /// Entries of the record when the view was made that was handed out last.
    handed: u32,
    /// Decisions changed the view since it was counted: the next count says nothing of single entries.
    moved: bool,
    /// Fingerprint of the (endpoint, model) that the views go to: another one counts otherwise.
    scope: u32,
    /// Ascending by first entry.
    runs: Vec<Run>,
    /// What markers weigh.
    written: Written,
}

impl Measured {
    /// What the entry at `index`, estimated at `weight`, was measured to weigh, with its share of all that came and went
    /// with it (hidden reasoning, reminders), to the nearest; `None` when it was never measured.
    pub(crate) fn weight(&self, index: usize, weight: u64) -> Option<u64> {
        let run = self.run(index)?;
        let (raw, real) = (u128::from(run.raw.max(1)), u128::from(run.real));
        u64::try_from((u128::from(weight) * real + raw / 2) / raw).ok()
    }

    /// The counted by the estimated weight of the entry at `index`, within what text can cost; `None` when it was never
    /// measured.
    pub(crate) fn ratio(&self, index: usize) -> Option<Ratio> {
        self.run(index).map(Run::ratio)
    }

    fn run(&self, index: usize) -> Option<Run> {
        if index >= self.counted as usize {
            return None;
        }
        let at = self.runs.partition_point(|run| run.from as usize <= index);
        self.runs[..at].last().copied()
    }

    /// A view of the first `entries` entries is handed out.
    pub(crate) const fn handed_out(&mut self, entries: u32) {
        self.handed = entries;
    }

    /// The view changes otherwise than by growing, or by what stands in place of single entries.
    pub(crate) const fn changed(&mut self) {
        self.moved = true;
        self.written.mixed();
    }

    /// A marker of this estimate, priced as markers are, stands in place of an entry now.
    pub(crate) const fn marked(&mut self, raw: u32) {
        self.moved = true;
        self.written.came(raw);
    }

    /// Other text of this estimate stands in place of an entry now, or an entry of this estimate left that was never measured.
    pub(crate) const fn replaced(&mut self, raw: u32) {
        self.moved = true;
        self.written.beside(raw);
    }

    /// What markers weigh, counted by estimated.
    pub(crate) fn of_markers(&self, calibration: &Calibration) -> Ratio {
        self.written.ratio(calibration.estimator(), calibration.ratio())
    }

    /// The next view goes to this (endpoint, model). What another one counts is no difference to what was counted before.
    pub(crate) fn goes_to(&mut self, scope: &str) {
        // FNV-1a.
        let scope =
            scope.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        if scope != self.scope && self.counted > 0 {
            self.changed();
            self.written.other_model();
        }
        self.scope = scope;
    }

    /// Whether the view changed since it was counted.
    pub(crate) const fn is_moved(&self) -> bool {
        self.moved
    }

    /// Takes in a count of the view handed out last, which was estimated at `raw`. `before` is what was known before it,
    /// `ratio` the ratio since.
    pub(crate) fn count(&mut self, before: &Calibration, ratio: Ratio, raw: u64, real: u64) {
        if before.evidence() > 0 && self.handed > self.counted {
            let (known_raw, known_real) = before.anchor();
            let came = raw.saturating_sub(known_raw);
            let counted = real.saturating_sub(known_real);
            if came > 0 {
                // Where the count shrank, something was taken back that the record still holds.
                let real = if self.moved || counted == 0 { ratio.scale(came) } else { counted };
                self.push(Run { from: self.counted, raw: came, real });
            }
        }
        // Before the first count markers were priced like all else, and what it holds beside the record is not known.
        if before.evidence() == 0 {
            self.written.mixed();
        }
        // What differs from what was counted, and did not come or go at a known weight.
        let others = raw.abs_diff(before.anchor().0);
        self.written.count(self.of_markers(before), others, before.tokens(raw), real);
        self.counted = self.handed;
        self.moved = false;
    }

    fn push(&mut self, run: Run) {
        if let Some(last) = self.runs.last_mut()
            && last.bits().abs_diff(run.bits()) <= ALIKE
        {
            last.take_in(run);
            return;
        }
        self.runs.push(run);
        if self.runs.len() > MAX_RUNS {
            let losses = self.runs.windows(2).map(|pair| pair[0].loss(pair[1]));
            let least = losses.enumerate().min_by_key(|&(_, loss)| loss).map_or(0, |(at, _)| at);
            let next = self.runs.remove(least + 1);
            self.runs[least].take_in(next);
        }
    }

    /// Starts over with another estimator.
    pub(crate) fn forget_all(&mut self, entries: u32) {
        self.forget(entries);
        self.written = Written::default();
        self.written.mixed();
    }

    /// Starts over on a record of `entries` entries: places have moved. What markers weigh has no place.
    pub(crate) fn forget(&mut self, entries: u32) {
        *self = Self {
            counted: entries,
            handed: entries,
            moved: true,
            scope: self.scope,
            runs: Vec::new(),
            written: self.written,
        };
        self.written.mixed();
    }

    /// Room for all runs there can be, so that a calm turn never allocates.
    pub(crate) fn make_room(&mut self) {
        self.runs.reserve((MAX_RUNS + 1).saturating_sub(self.runs.len()));
    }

    /// The same with its runs in order and no more of them than there may be, whatever a file held.
    pub(crate) fn sane(mut self) -> Self {
        self.runs.retain(|run| run.raw > 0 && run.from < self.counted);
        self.runs.sort_unstable();
        self.runs.dedup_by(|b, a| a.from == b.from);
        self.runs.truncate(MAX_RUNS);
        self.written = self.written.sane();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts `real` for a view of `entries` entries estimated at `raw`.
    fn count(session: &mut (Calibration, Measured), entries: u32, raw: u64, real: u64) {
        session.1.handed_out(entries);
        let before = session.0;
        session.0.observe(raw, real).unwrap();
        session.1.count(&before, session.0.ratio(), raw, real);
    }

    #[test]
    fn entries_weigh_what_the_counts_around_them_say() {
        let mut session = Default::default();
        count(&mut session, 3, 10_000, 14_000);
        assert_eq!(session.1.weight(2, 1_000), None, "what a first count holds beside the record is not known");
        count(&mut session, 5, 11_000, 14_800);
        count(&mut session, 6, 12_000, 16_500);
        assert_eq!(session.1.weight(2, 1_000), None);
        assert_eq!([3, 4, 5].map(|entry| session.1.weight(entry, 1_000)), [Some(800), Some(800), Some(1_700)]);
        assert_eq!(session.1.weight(3, 333), Some(266));
        assert_eq!(session.1.weight(6, 1_000), None, "not counted yet");
    }

    #[test]
    fn what_came_along_unseen_goes_with_its_entries_and_not_with_their_text() {
        let mut session = Default::default();
        count(&mut session, 3, 10_000, 10_000);
        count(&mut session, 5, 10_100, 12_000);
        assert_eq!(session.1.weight(4, 100), Some(2_000));
        assert_eq!(session.1.ratio(4), Some(Ratio::MAX));
    }

    #[test]
    fn a_count_that_shrank_says_nothing_of_what_came() {
        for real in [13_900, 14_000] {
            let mut session = Default::default();
            count(&mut session, 3, 10_000, 14_000);
            count(&mut session, 5, 11_000, real);
            assert_eq!(session.1.weight(4, 1_000), Some(1_400));
        }
    }

    #[test]
    fn after_decisions_a_count_says_nothing_of_single_entries() {
        let mut session: (Calibration, Measured) = Default::default();
        count(&mut session, 3, 10_000, 10_000);
        session.1.changed();
        count(&mut session, 5, 11_000, 12_000);
        assert_eq!(session.1.ratio(4), Some(session.0.ratio()));
        count(&mut session, 6, 12_000, 12_700);
        assert_eq!(session.1.ratio(5), Some(Ratio::of(7, 10)));
    }

    #[test]
    fn markers_are_learned_from_the_count_after_them_and_from_no_first_one() {
        let learned = |first: bool| {
            let mut session: (Calibration, Measured) = Default::default();
            session.0.use_estimator(1);
            if !first {
                count(&mut session, 3, 10_000, 10_000);
            }
            session.1.marked(4_000);
            count(&mut session, 5, 10_000, 11_000);
            count(&mut session, 6, 10_500, 12_000);
            session.1.of_markers(&session.0)
        };
        assert_eq!(learned(true), Ratio::ONE);
        assert!(learned(false) > Ratio::of(120, 100) && learned(false) < Ratio::of(125, 100));
    }

    #[test]
    fn what_another_model_counts_says_nothing_of_single_entries() {
        let mut session: (Calibration, Measured) = Default::default();
        session.1.goes_to("one");
        count(&mut session, 3, 10_000, 10_000);
        session.1.goes_to("one");
        assert!(!session.1.is_moved());
        session.1.goes_to("other");
        assert!(session.1.is_moved());
        count(&mut session, 5, 11_000, 15_000);
        assert_eq!(session.1.ratio(4), Some(session.0.ratio()));
    }

    #[test]
    fn many_runs_become_fewer_and_keep_their_sum() {
        let mut session: (Calibration, Measured) = Default::default();
        count(&mut session, 1, 1_000, 1_000);
        let (mut raw, mut real) = (1_000, 1_000);
        for turn in 0..300u32 {
            raw += 500;
            real += if turn % 2 == 0 { 400 } else { 450 + u64::from(turn) };
            count(&mut session, turn + 2, raw, real);
        }
        assert!((MAX_RUNS / 2..=MAX_RUNS).contains(&session.1.runs.len()));
        assert_eq!(session.1.runs.iter().map(|run| run.raw).sum::<u64>(), raw - 1_000);
        assert_eq!(session.1.runs.iter().map(|run| run.real).sum::<u64>(), real - 1_000);
        assert_eq!(session.1.clone().sane(), session.1);
    }

    #[test]
    fn a_stored_mess_is_put_in_order() {
        let run = |from, raw| Run { from, raw, real: u64::MAX };
        let runs = (0..400).rev().map(|n| run(n / 2, u64::from(n))).collect();
        let sane =
            Measured { counted: 190, handed: 7, moved: false, scope: 0, runs, written: Written::default() }.sane();
        assert!(sane.runs.is_sorted_by(|a, b| a.from < b.from) && sane.runs.len() == MAX_RUNS);
        assert_eq!(sane.ratio(40), Some(Ratio::MAX));
        assert_eq!(sane.weight(40, 0), Some(0));
    }
}
