//! Errors in hundredths of a per cent, and what is said of many of them.

/// Errors of estimates, against the count each came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Errors(Vec<i64>);

impl Errors {
    pub(crate) fn note(&mut self, estimate: u64, truth: u64) {
        let (estimate, truth) = (i128::from(estimate), i128::from(truth.max(1)));
        self.0.push(i64::try_from((estimate - truth) * 10_000 / truth).unwrap_or(i64::MAX));
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    /// The error that `per_mille` of all are below, by size; `-` where there are none.
    pub(crate) fn quantile(&self, per_mille: usize) -> String {
        let mut sizes: Vec<i64> = self.0.iter().map(|error| error.abs()).collect();
        sizes.sort_unstable();
        let at = (sizes.len() * per_mille / 1_000).min(sizes.len().saturating_sub(1));
        sizes.get(at).map_or_else(|| "-".into(), |size| percent(*size, ""))
    }

    /// The worst, with its sign.
    pub(crate) fn worst(&self) -> String {
        let worst = self.0.iter().max_by_key(|error| error.abs());
        worst.map_or_else(|| "-".into(), |error| percent(error.abs(), if *error < 0 { "-" } else { "+" }))
    }
}

fn percent(hundredths: i64, sign: &str) -> String {
    format!("{sign}{}.{:02}", hundredths / 100, hundredths % 100)
}
