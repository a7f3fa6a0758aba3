//! Successes that betray a truncated prompt.
//!
//! Some servers do not turn a long prompt down: they drop its beginning and answer. What they count then is no count of
//! the view that was sent, and must not calibrate anything.

use std::fmt;

use crate::provider::{FinishReason, ModelReply};

/// What betrayed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Truncation {
    /// The model stopped because the window was full.
    WindowFull,
    /// The output was cut before the limit that the request set: the window was full.
    CutShort {
        /// Tokens written.
        written: u64,
        /// Tokens the request allowed.
        allowed: u64,
    },
    /// The view only grew, and the count fell.
    CountFell {
        /// Prompt tokens counted before.
        before: u64,
        /// Prompt tokens counted now.
        now: u64,
    },
    /// The count is less than half of the estimate. It may also be wrong. Not looked at while images or files are in
    /// the view: their estimate is flat.
    CountTooSmall {
        /// Prompt tokens estimated.
        estimated: u64,
        /// Prompt tokens counted.
        counted: u64,
    },
}

impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WindowFull => f.write_str("the model stopped because the context window was full"),
            Self::CutShort { written, allowed } => {
                write!(f, "the answer was cut after {written} of {allowed} tokens: the context window was full")
            }
            Self::CountFell { before, now } => write!(
                f,
                "the prompt grew and its count fell from {before} to {now}: the endpoint drops the beginning, or counts wrongly"
            ),
            Self::CountTooSmall { estimated, counted } => write!(
                f,
                "the prompt is about {estimated} tokens and {counted} were counted: the endpoint drops the beginning, or counts wrongly"
            ),
        }
    }
}

/// What is known about the call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    /// Calibrated tokens of the view.
    pub(super) estimated: u64,
    /// What was counted for the last view, when this one only grew from it.
    pub(super) grown_from: Option<u64>,
    /// The output limit of the request.
    pub(super) max_tokens: Option<u64>,
    /// Images or files are in the view, whose estimate is flat and no measure of anything.
    pub(super) flat: bool,
}

/// Prompts below this say nothing: what an estimate cannot see is a large part of them.
const SMALL: u64 = 1_000;
/// Counts of one provider differ by a few tokens between equal prompts.
const SLACK: u64 = 64;

/// What betrays a truncated prompt in an answer, if anything does.
pub(super) fn look(reply: &ModelReply, sent: Sent) -> Option<Truncation> {
    if reply.finish == FinishReason::ContextWindow {
        return Some(Truncation::WindowFull);
    }
    let usage = reply.usage.filter(|usage| usage.input_tokens > 0)?;
    let counted = usage.input_tokens;
    if let Some(before) = sent.grown_from
        && counted + before / 64 + SLACK < before
    {
        return Some(Truncation::CountFell { before, now: counted });
    }
    if sent.estimated > SMALL && !sent.flat && counted < sent.estimated / 2 {
        return Some(Truncation::CountTooSmall { estimated: sent.estimated, counted });
    }
    if let (FinishReason::Length, Some(allowed)) = (&reply.finish, sent.max_tokens)
        && usage.output_tokens > 0
        && usage.output_tokens + SLACK < allowed
    {
        return Some(Truncation::CutShort { written: usage.output_tokens, allowed });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Usage;

    fn reply(input: u64, output: u64, finish: FinishReason) -> ModelReply {
        ModelReply::new(Vec::new(), finish).counted(Usage {
            input_tokens: input,
            output_tokens: output,
            ..Usage::default()
        })
    }

    #[test]
    fn a_count_that_cannot_be_of_what_was_sent_is_seen_and_an_ordinary_one_is_not() {
        let sent = Sent { estimated: 20_000, grown_from: Some(19_000), max_tokens: Some(1_000), flat: false };
        assert_eq!(look(&reply(19_800, 100, FinishReason::Stop), sent), None);
        assert_eq!(look(&reply(19_800, 1_000, FinishReason::Length), sent), None);
        assert_eq!(look(&reply(0, 0, FinishReason::Stop), sent), None, "no count is no betrayal");
        assert!(matches!(look(&reply(16_000, 9, FinishReason::Stop), sent), Some(Truncation::CountFell { .. })));
        let first = Sent { grown_from: None, ..sent };
        assert!(matches!(look(&reply(4_096, 9, FinishReason::Stop), first), Some(Truncation::CountTooSmall { .. })));
        assert_eq!(look(&reply(4_096, 9, FinishReason::Stop), Sent { flat: true, ..first }), None);
        assert!(matches!(look(&reply(19_990, 300, FinishReason::Length), sent), Some(Truncation::CutShort { .. })));
        assert_eq!(look(&reply(1, 1, FinishReason::ContextWindow), sent), Some(Truncation::WindowFull));
    }
}
