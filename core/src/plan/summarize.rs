//! Old history gives way to a summary. The text comes from outside: the planner asks for it as an effect.

/// The seeds' third stage: an incremental summary replaces the oldest stretch, only as far as the target needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummarizeHistory {
    /// Least saving, in per cent of the view, for which a summary is asked. Default 10. Not applied to a view that
    /// does not fit.
    pub min_savings_percent: u8,
    /// Failures in a row after which the breaker opens. Default 3.
    pub max_failures: u32,
    /// Longest summary accepted, in characters. Default 16,000.
    pub max_summary_chars: u32,
    /// Layers: a later summary is a note of its own beside the earlier ones, which stay byte for byte, as long as all
    /// notes together take no more than so many per cent of the target; then one takes their place. Default 0: there is
    /// one note, and a later summary takes the earlier in.
    ///
    /// With layers the prompt cache keeps the earlier notes, nothing is summarized twice, and a summary is as short as
    /// its stretch; but what several notes weigh is read on every turn. Beyond 50 they are not kept.
    pub layers_percent: u8,
    /// Most summarizer calls in one pass. Default 4: bounded work (I9).
    pub max_calls: u32,
    /// Refuse a summary in which a required section is missing or empty. Default true.
    pub require_sections: bool,
    /// Name under which a pass reports it.
    pub name: &'static str,
    /// Take part in aggressive passes only.
    pub aggressive_only: bool,
    /// Entries kept at the end on the aggressive path, if fewer than the tail holds.
    pub reactive_keep_recent_entries: Option<u32>,
}

impl Default for SummarizeHistory {
    fn default() -> Self {
        Self {
            min_savings_percent: 10,
            max_failures: 3,
            max_summary_chars: 16_000,
            layers_percent: 0,
            max_calls: 4,
            require_sections: true,
            name: "summarize_history",
            aggressive_only: false,
            reactive_keep_recent_entries: None,
        }
    }
}

/// Fourth stage of the earlier proposal: the summary that runs when the cheap stages were not enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoSummary {
    /// Failures in a row after which no summary is tried. Default 3.
    pub max_summary_failures: u32,
}

impl Default for AutoSummary {
    fn default() -> Self {
        Self { max_summary_failures: 3 }
    }
}

impl From<AutoSummary> for SummarizeHistory {
    fn from(stage: AutoSummary) -> Self {
        Self { max_failures: stage.max_summary_failures, name: "auto_summary", ..Self::default() }
    }
}

/// Fifth stage of the earlier proposal: the summary made when the provider rejected the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReactiveSummary {
    /// Entries kept at the end. Default 8.
    pub reactive_keep_recent_entries: u32,
}

impl Default for ReactiveSummary {
    fn default() -> Self {
        Self { reactive_keep_recent_entries: 8 }
    }
}

impl From<ReactiveSummary> for SummarizeHistory {
    fn from(stage: ReactiveSummary) -> Self {
        Self {
            name: "reactive_summary",
            aggressive_only: true,
            reactive_keep_recent_entries: Some(stage.reactive_keep_recent_entries),
            ..Self::default()
        }
    }
}
