//! The world around a compactor: summarizers, good and bad.

use foreshorten_core::{
    Finish, SummaryFailure, SummaryReply, SummaryRequest, state::Guard, summary::extractive_summary,
};

/// How the world answers.
#[derive(Clone, Copy, Debug)]
pub enum Answers {
    /// No summarizer at all.
    NoSummarizer,
    /// The model-free one of the core.
    Extractive,
    /// It always fails.
    Failing,
    /// Its prompt is always too long.
    Overflowing,
    /// It lies: empty, cut, headings only, far too long, by turns.
    Lying,
    /// What this function says.
    By(Summarizer),
}

/// A summarizer that keeps nothing between calls.
pub type Summarizer = fn(&SummaryRequest) -> Result<SummaryReply, SummaryFailure>;

impl Answers {
    /// What the summarizer says; `lies` counts the answers of one that lies.
    ///
    /// # Errors
    /// When it fails.
    ///
    /// # Panics
    /// When there is none.
    pub fn summarize(
        self,
        request: &SummaryRequest,
        guard: &Guard<'_>,
        lies: usize,
    ) -> Result<SummaryReply, SummaryFailure> {
        match self {
            Self::By(summarizer) => summarizer(request),
            Self::NoSummarizer => panic!("a summary is asked for without a summarizer"),
            Self::Failing => Err(SummaryFailure::Failed),
            Self::Overflowing => Err(SummaryFailure::Overflow),
            Self::Extractive => {
                let text = extractive_summary(
                    guard,
                    &request.entries,
                    request.prior.as_deref(),
                    2_000.min(request.max_chars as usize),
                );
                Ok(SummaryReply { text, finish: Finish::Complete })
            }
            Self::Lying => {
                let text = match lies % 5 {
                                0 => String::new(),
                                1 => "I can't help with that.".into(),
                                2 => "## Session intent\n## Current state\n## Key facts and decisions\n## Artifacts\n## Constraints\n## Next steps\n".into(),
                                3 => "## Session intent\nx\n".repeat(20_000),
                                _ => request.text.clone(),
                            };
                let finish = if lies.is_multiple_of(7) { Finish::Cut } else { Finish::Complete };
                Ok(SummaryReply { text, finish })
            }
        }
    }
}
