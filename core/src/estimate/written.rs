//! What the markers weigh that stand in place of content.
//!
//! Markers are this crate's own text. What is learned about a session's content says little of them: where Chinese costs two
//! thirds of its estimate, an English marker beside it costs all of its own. So they have a ratio of their own. A count after a
//! pass that put markers, and no note, into the view tells it: what was counted beyond what was expected is theirs, as far as
//! nothing else can have been.

use serde::{Deserialize, Serialize};

use super::Ratio;

/// Least tokens of markers that say anything: rounding and framing drown fewer.
const LEAST: u32 = 256;

/// What the tables are believed to have seen of markers before a session begins, in tokens; and where learning slows down no
/// further. Markers of one session are alike, so a pass with a few dozen of them says nearly all there is to know.
const SEEN_BEFORE: u32 = 256;
const SEEN_AT_MOST: u32 = 16_000;

/// How much surer a token of other text is than one of a marker: content is off by some per cent, a marker at first by a third.
const SURER: u64 = 4;

/// What is known of the markers of a session, and those that came since the last count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Written {
    /// Counted by estimated tokens.
    ratio: Ratio,
    /// Estimated tokens of the markers that the ratio was learned from.
    seen: u32,
    /// Estimated tokens of the markers that came since the last count.
    came: u32,
    /// Estimated tokens of other text that came in the place of content since (previews), and of content that was never
    /// measured and left; all there can be when still more than that changed (a note, an undo, another model), and the next
    /// count says nothing of markers.
    beside: u32,
}

impl Default for Written {
    fn default() -> Self {
        Self { ratio: Ratio::ONE, seen: 0, came: 0, beside: 0 }
    }
}

impl Written {
    /// What markers weigh, counted by estimated. Before anything was learned, what the tables say of English, which they are
    /// right about to a few per cent; bytes/4 may be off by half, and then `ratio`, which was learned on other text, is nearer.
    pub(crate) fn ratio(&self, estimator: u8, ratio: Ratio) -> Ratio {
        if self.seen == 0 && estimator == 0 { ratio } else { self.ratio }
    }

    /// A marker of this estimate came into the view, priced at [`ratio`](Self::ratio).
    pub(crate) const fn came(&mut self, raw: u32) {
        self.came = self.came.saturating_add(raw);
    }

    /// Other text of this estimate came in the place of content, or content left that was never measured.
    pub(crate) const fn beside(&mut self, raw: u32) {
        self.beside = self.beside.saturating_add(raw);
    }

    /// Another model counts: what was learned is worth no more than what is known before a session begins.
    pub(crate) fn other_model(&mut self) {
        self.mixed();
        self.seen = self.seen.min(SEEN_BEFORE);
    }

    /// The view changed in another way: the next count says nothing of markers.
    pub(crate) const fn mixed(&mut self) {
        self.beside = u32::MAX;
    }

    /// Takes in a count of the view that was expected to have `expected` tokens, with `priced` as the ratio of its new markers,
    /// and `others` as the estimate of what else in it goes by a ratio learned on other text.
    ///
    /// What was not expected is shared by how far each part can be off, and counts for as much as the markers' share of that.
    pub(crate) fn count(&mut self, priced: Ratio, others: u64, expected: u64, real: u64) {
        let Self { came, beside, .. } = *self;
        (self.came, self.beside) = (0, 0);
        if came < LEAST || beside == u32::MAX {
            return;
        }
        let raw = u64::from(came);
        let others = u128::from(others.saturating_add(u64::from(beside)) / SURER);
        // Variances: 64 bits, and 124.
        let (theirs, all) = (u128::from(raw).pow(2), u128::from(raw).pow(2) + others.pow(2));
        let share = u64::try_from((theirs << 16) / all).unwrap_or(u64::MAX);
        let of = |tokens: u64| u64::try_from((u128::from(tokens) * u128::from(share)) >> 16).unwrap_or(u64::MAX);
        let theirs = priced.scale(raw).saturating_add(of(real.saturating_sub(expected)));
        let theirs = theirs.saturating_sub(of(expected.saturating_sub(real)));
        // A ratio has 18 bits and an estimate 32: no sum overflows.
        let (told, known) = (u64::from(Ratio::of(theirs, raw).to_bits()), u64::from(priced.to_bits()));
        let (new, old) = (of(raw), u64::from(SEEN_BEFORE) + u64::from(self.seen));
        self.ratio = Ratio::from_bits(u32::try_from((known * old + told * new) / (old + new)).unwrap_or(u32::MAX));
        self.seen = self.seen.saturating_add(u32::try_from(new).unwrap_or(u32::MAX)).min(SEEN_AT_MOST);
    }

    /// The same with its figures in range, whatever a file held.
    pub(crate) fn sane(mut self) -> Self {
        self.ratio = Ratio::from_bits(self.ratio.to_bits());
        self.seen = self.seen.min(SEEN_AT_MOST);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHINESE: Ratio = Ratio::MIN;

    /// Passes with markers that were estimated at `came` and weigh `percent` of that.
    fn learned(passes: &[(u32, u64)]) -> Written {
        let mut written = Written::default();
        for &(came, percent) in passes {
            let (priced, raw) = (written.ratio(1, CHINESE), u64::from(came));
            written.came(came);
            written.count(priced, 0, 20_000 + priced.scale(raw), 20_000 + raw * percent / 100);
        }
        written
    }

    #[test]
    fn before_any_count_markers_weigh_what_a_table_says_and_with_bytes_per_4_what_content_does() {
        assert_eq!(Written::default().ratio(1, CHINESE), Ratio::ONE);
        assert_eq!(Written::default().ratio(0, CHINESE), CHINESE);
    }

    #[test]
    fn one_pass_tells_nearly_all_and_no_later_one_turns_it_over() {
        let near = |written: Written, percent: u64| {
            let apart = written.ratio(0, CHINESE).to_bits().abs_diff(Ratio::of(percent, 100).to_bits());
            assert!(apart < 1_500, "{written:?} where {percent} % are meant");
        };
        near(learned(&[(2_560, 130)]), 128);
        near(learned(&[(2_560, 130); 6]), 130);
        near(learned(&[(8_000, 130), (8_000, 130), (800, 90)]), 128);
    }

    #[test]
    fn what_else_may_be_off_takes_its_share() {
        let told = |others: u64, beside: u32| {
            let mut written = Written::default();
            written.came(2_000);
            written.beside(beside);
            written.count(Ratio::ONE, others, 30_000, 31_000);
            written.ratio(1, CHINESE).to_bits() - Ratio::ONE.to_bits()
        };
        // The markers' own, were there nothing else: half as much again.
        let alone = told(0, 0);
        assert!(alone > 28_000, "{alone}");
        assert!(told(4_000, 0) > alone / 2 && told(4_000, 0) < alone);
        assert_eq!(told(4_000, 4_000), told(8_000, 0));
        assert!((1..alone / 5).contains(&told(16_000, 0)), "{}", told(16_000, 0));
        assert!(told(100_000, 0) < alone / 100, "{}", told(100_000, 0));
    }

    #[test]
    fn another_model_is_learned_as_quickly_as_the_first_one_was() {
        let mut written = learned(&[(8_000, 130), (8_000, 130)]);
        written.other_model();
        assert_eq!(written.ratio(0, CHINESE), learned(&[(8_000, 130), (8_000, 130)]).ratio(0, CHINESE));
        written.count(Ratio::ONE, 0, 20_000, 20_000);
        let priced = written.ratio(1, CHINESE);
        written.came(4_000);
        written.count(priced, 0, 20_000 + priced.scale(4_000), 20_000 + 3_600);
        assert!(written.ratio(1, CHINESE).to_bits().abs_diff(Ratio::of(90, 100).to_bits()) < 3_500, "{written:?}");
    }

    #[test]
    fn few_markers_and_other_changes_tell_nothing() {
        assert_eq!(learned(&[(LEAST - 1, 200)]).ratio(1, CHINESE), Ratio::ONE);
        let mut written = Written::default();
        written.came(5_000);
        written.mixed();
        written.beside(1);
        written.count(Ratio::ONE, 0, 25_000, 29_000);
        assert_eq!(written, Written::default());
    }

    #[test]
    fn whatever_a_count_or_a_file_says_the_ratio_is_one_that_text_can_have() {
        let all = u64::MAX;
        for (came, expected, real) in [(256, 0, all), (u32::MAX, all, 0), (300, all, 1), (u32::MAX, 0, all)] {
            for others in [0, 1, 1 << 33, all] {
                let mut written = Written { seen: u32::MAX, ..Written::default() }.sane();
                assert_eq!(written.seen, SEEN_AT_MOST);
                written.came(came);
                written.count(Ratio::MAX, others, expected, real);
                assert!((Ratio::MIN..=Ratio::MAX).contains(&written.ratio), "{written:?}");
                assert!(written.seen <= SEEN_AT_MOST, "{written:?}");
            }
        }
    }
}
