//! The summary without a model.

use async_trait::async_trait;
use foreshorten_core::Finish;
use foreshorten_core::estimate::{ByteEstimator, Weigher};
use foreshorten_core::marker::{MarkerStyle, SUMMARY_WRAPPER};
use foreshorten_core::state::Guard;
use foreshorten_core::summary::extractive_summary;
use foreshorten_core::transcript::{Columns, Transcript as _};

use super::{Summarizer, Summary, SummaryAsk, SummaryError};
use crate::drive::EXTRACT_CHARS;
use crate::provider::Usage;

/// Fills the required sections with lines taken from the record. Deterministic, and costs no call.
///
/// ```
/// use std::sync::Arc;
/// use foreshorten::{context::Compaction, summarizer::ExtractiveSummarizer};
/// let policy = Compaction::new().summarizer(Arc::new(ExtractiveSummarizer::default()));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ExtractiveSummarizer {
    /// Longest extract in characters. Default 4,000: long enough to carry on.
    pub max_chars: usize,
}

impl Default for ExtractiveSummarizer {
    fn default() -> Self {
        Self { max_chars: EXTRACT_CHARS }
    }
}

#[async_trait]
impl Summarizer for ExtractiveSummarizer {
    async fn summarize(&self, ask: SummaryAsk<'_>) -> Result<Summary, SummaryError> {
        // What entries weigh is not looked at here: the cheapest rule.
        let weigher = Weigher { bytes: ByteEstimator::BytesPer4, ..Weigher::default() };
        let mut columns = Columns::new();
        for index in 0..ask.record.len() {
            columns.push(ask.record, weigher.entry(ask.record, index));
        }
        let guard = Guard {
            transcript: ask.record,
            columns: &columns,
            weigher: &weigher,
            style: MarkerStyle::default(),
            summary_wrapper: SUMMARY_WRAPPER,
            tools: &[],
            may_condense: false,
            tail_start: columns.groups(),
            last_resort: false,
        };
        let most = (ask.request.max_chars as usize).min(self.max_chars);
        let text = extractive_summary(&guard, &ask.request.entries, ask.request.prior.as_deref(), most);
        Ok(Summary { text, finish: Finish::Complete, usage: Usage::default() })
    }
}
