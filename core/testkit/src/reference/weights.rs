//! What entries weighed, by the difference of counts: entry by entry, with nothing laid together.

use std::ops::Range;

/// A naive account of a session in which every view was counted and nothing left it.
///
/// Written from the words of the rule: two successive counts differ by what came between them, and an entry's share of that
/// goes by its estimate.
#[derive(Clone, Debug, Default)]
pub struct MeasuredWeights {
    /// For every entry, its estimate, and estimate and count of all that came with it; `None` before the first count.
    entries: Vec<(u64, Option<(u64, u64)>)>,
    first: Option<u64>,
    last: u64,
}

impl MeasuredWeights {
    /// Entries of these estimated weights came, and then the view was counted.
    pub fn count(&mut self, came: &[u64], counted: u64) {
        let all: u64 = came.iter().sum();
        let known = self.first.is_some().then(|| (all, counted.saturating_sub(self.last)));
        self.entries.extend(came.iter().map(|&raw| (raw, known)));
        self.first.get_or_insert(counted);
        self.last = counted;
    }

    /// What the first count was.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first.unwrap_or_default()
    }

    /// What entries weighed that came after the first count, to the nearest.
    ///
    /// # Panics
    /// When one of them came before.
    #[must_use]
    pub fn sum(&self, range: Range<usize>) -> u64 {
        let thousandths = |&(raw, known): &(u64, Option<(u64, u64)>)| {
            let (all, counted) = known.expect("an entry after the first count");
            raw * 1_000 * counted / all.max(1)
        };
        self.entries[range].iter().map(thousandths).sum::<u64>() / 1_000
    }
}
