//! What the markers weigh that stand in place of content.
//!
//! Markers are this crate's own text. What is learned about a session's content says little of them: where Chinese costs two
//! thirds of its estimate, an English marker beside it costs all of its own. So they have a ratio of their own. A count after a
//! pass that put markers, and no note, into the view tells it: what was counted beyond what was expected is theirs.

use serde::{Deserialize, Serialize};

use super::Ratio;

/// Least tokens of markers that say anything: rounding and framing drown fewer.
const LEAST: u32 = 256;

/// What the tables are believed to have seen of markers before a session begins, in tokens; and where learning slows down no
/// further. Markers of one session are alike, so a pass with a few dozen of them says nearly all there is to know.
const SEEN_BEFORE: u64 = 256;
const SEEN_AT_MOST: u32 = 16_000;

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
    /// Estimated tokens of other text that came in the place of content since (previews); all there can be when still more
    /// than that changed (a note, an undo, another model).
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

    /// Other text of this estimate came in the place of content.
    pub(crate) const fn beside(&mut self, raw: u32) {
        self.beside = self.beside.saturating_add(raw);
    }

    /// The view changed in another way: the next count says nothing of markers.
    pub(crate) const fn mixed(&mut self) {
        self.beside = u32::MAX;
    }

    /// Takes in a count of the view that was expected to have `expected` tokens, with `priced` as the ratio of its new markers.
    pub(crate) fn count(&mut self, priced: Ratio, expected: u64, real: u64) {
        let Self { came, beside, .. } = *self;
        (self.came, self.beside) = (0, 0);
        if came < LEAST || beside > came {
            return;
        }
        let (raw, all) = (u64::from(came), u64::from(came) + u64::from(beside));
        // What was not expected is shared by size. 32 bits times 64, hence 128.
        let share =
            |tokens: u64| u64::try_from(u128::from(tokens) * u128::from(raw) / u128::from(all)).unwrap_or(u64::MAX);
        let theirs = priced.scale(raw).saturating_add(share(real.saturating_sub(expected)));
        let theirs = theirs.saturating_sub(share(expected.saturating_sub(real)));
        // A ratio has 18 bits and an estimate 32: no sum overflows.
        let (told, known) = (u64::from(Ratio::of(theirs, raw).to_bits()), u64::from(priced.to_bits()));
        let weight = SEEN_BEFORE + u64::from(self.seen);
        let ratio = (known * weight + told * raw) / (weight + raw);
        self.ratio = Ratio::from_bits(u32::try_from(ratio).unwrap_or(u32::MAX));
        self.seen = self.seen.saturating_add(came).min(SEEN_AT_MOST);
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
            written.count(priced, 20_000 + priced.scale(raw), 20_000 + raw * percent / 100);
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
    fn previews_beside_markers_have_their_share_of_what_was_not_expected() {
        let mut written = Written::default();
        written.came(4_000);
        written.beside(4_000);
        written.count(Ratio::ONE, 28_000, 29_600);
        let halved = learned(&[(4_000, 120)]);
        assert_eq!(written, halved);
    }

    #[test]
    fn few_markers_and_other_changes_tell_nothing() {
        assert_eq!(learned(&[(LEAST - 1, 200)]).ratio(1, CHINESE), Ratio::ONE);
        let mut written = Written::default();
        written.came(5_000);
        written.mixed();
        written.beside(1);
        written.count(Ratio::ONE, 25_000, 29_000);
        assert_eq!(written, Written::default());
    }

    #[test]
    fn whatever_a_count_or_a_file_says_the_ratio_is_one_that_text_can_have() {
        let all = u64::MAX;
        for (came, expected, real) in [(256, 0, all), (u32::MAX, all, 0), (300, all, 1), (u32::MAX, 0, all)] {
            let mut written = Written { seen: u32::MAX, ..Written::default() };
            written.came(came);
            written.count(Ratio::MAX, expected, real);
            let sane = written.sane();
            assert!((Ratio::MIN..=Ratio::MAX).contains(&sane.ratio) && sane.seen <= SEEN_AT_MOST, "{sane:?}");
        }
    }
}
