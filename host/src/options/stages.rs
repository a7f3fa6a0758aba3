//! Which stages a policy runs, in order, and with which of the parameters.

use foreshorten_core::{ConfigError, PipelineStage, plan};

use super::{OptionError, PolicyOptions};
use crate::drive::is_plugin;

/// Names of all stages, with what they do.
pub const STAGES: [(&str, &str); 12] = [
    ("offload_tool_results", "huge tool results give way to a preview"),
    ("clear_tool_results", "older tool results give way to a marker"),
    ("summarize_history", "the oldest stretch gives way to a summary (needs --summarizer)"),
    ("drop_superseded", "older results of a call that was made again are cleared"),
    ("drop_old_images", "old images and files give way to a marker"),
    ("clip_tool_arguments", "long arguments of old calls give way to a marker"),
    ("clear_reasoning", "old unsigned reasoning is left out"),
    ("tool_result_budget", "five-stage: large results and batches are persisted"),
    ("middle_snip", "five-stage: the middle of a long conversation gives way to a note"),
    ("tool_result_retention", "five-stage: all but the newest results give way to a marker"),
    ("auto_summary", "five-stage: the summary when the cheap stages were not enough (needs --summarizer)"),
    ("reactive_summary", "five-stage: the summary after a rejection (needs --summarizer)"),
];

impl PolicyOptions {
    pub(super) fn pipeline(&self) -> Result<Vec<PipelineStage>, OptionError> {
        // The same file may stand in a pipeline twice.
        let mut loaded = self.loaded.paths.iter();
        let stage = |name: String| {
            if !is_plugin(&name) {
                return self.stage_named(&name);
            }
            match loaded.find(|(path, _)| *path == name) {
                Some((_, plugin)) => Ok(PipelineStage::External(plugin.clone())),
                None => Err(OptionError::Name("stages", name, "plugins that were loaded".into())),
            }
        };
        self.names()?.into_iter().map(stage).collect()
    }

    /// Names and files of the pipeline, in order.
    pub(super) fn names(&self) -> Result<Vec<String>, OptionError> {
        let first = self.stage.iter().flatten();
        let rest = match &self.stages {
            Some(names) => names.clone(),
            None => self.preset()?.iter().map(|&name| name.to_owned()).collect(),
        };
        Ok(first.cloned().chain(rest).map(|name| name.trim().to_owned()).collect())
    }

    fn preset(&self) -> Result<&'static [&'static str], OptionError> {
        Ok(match self.preset.as_deref() {
            None | Some("default" | "steady" | "economy") => {
                &["offload_tool_results", "clear_tool_results", "summarize_history"]
            }
            Some("five-stage") => {
                &["tool_result_budget", "middle_snip", "tool_result_retention", "auto_summary", "reactive_summary"]
            }
            Some(other) => {
                return Err(OptionError::Name("preset", other.into(), "default, steady, economy, five-stage".into()));
            }
        })
    }

    fn stage_named(&self, name: &str) -> Result<PipelineStage, OptionError> {
        let summary = plan::SummarizeHistory::default();
        let percent = match self.min_savings_ratio {
            None => summary.min_savings_percent,
            Some(ratio) if (0.0..1.0).contains(&ratio) => (ratio * 100.0).round().min(99.0) as u8,
            Some(_) => {
                return Err(OptionError::Config(ConfigError { field: "min_savings_ratio", expected: "in [0, 1)" }));
            }
        };
        let summary = plan::SummarizeHistory {
            min_savings_percent: percent,
            max_failures: self.max_failures.unwrap_or(summary.max_failures),
            max_summary_chars: self.max_summary_chars.unwrap_or(summary.max_summary_chars),
            layers_percent: self.layers_percent.unwrap_or(summary.layers_percent),
            ..summary
        };
        Ok(match name.replace('-', "_").as_str() {
            "offload_tool_results" | "offload" => {
                let d = plan::OffloadToolResults::default();
                PipelineStage::plan(plan::OffloadToolResults {
                    min_chars: self.offload_min_chars.unwrap_or(d.min_chars),
                    keep_last: self.offload_keep_last.unwrap_or(d.keep_last),
                    preview_chars: self.preview_chars.unwrap_or(d.preview_chars),
                })
            }
            "clear_tool_results" | "clear" => {
                let d = plan::ClearToolResults::default();
                PipelineStage::plan(plan::ClearToolResults {
                    keep_last: self.clear_keep_last.unwrap_or(d.keep_last),
                    min_chars: self.clear_min_chars.unwrap_or(d.min_chars),
                    clear_at_least_tokens: self.clear_at_least_tokens,
                })
            }
            "summarize_history" | "summarize" => PipelineStage::Summarize(summary),
            "drop_superseded" => PipelineStage::plan(plan::DropSuperseded::default()),
            "drop_old_images" => {
                let d = plan::DropOldImages::default();
                PipelineStage::plan(plan::DropOldImages { keep_last: self.images_keep_last.unwrap_or(d.keep_last) })
            }
            "clip_tool_arguments" => {
                let d = plan::ClipToolArguments::default();
                let min_bytes = self.clip_min_bytes.unwrap_or(d.min_bytes);
                PipelineStage::plan(plan::ClipToolArguments { min_bytes, ..d })
            }
            "clear_reasoning" => PipelineStage::plan(plan::ClearReasoning::default()),
            "tool_result_budget" => {
                let d = plan::ToolResultBudget::default();
                PipelineStage::plan(plan::ToolResultBudget {
                    tool_result_budget_chars: self.tool_result_budget_chars.unwrap_or(d.tool_result_budget_chars),
                    large_tool_result_chars: self.large_tool_result_chars.unwrap_or(d.large_tool_result_chars),
                    tool_result_preview_chars: self.tool_result_preview_chars.unwrap_or(d.tool_result_preview_chars),
                })
            }
            "middle_snip" => {
                let d = plan::MiddleSnip::default();
                PipelineStage::plan(plan::MiddleSnip {
                    max_entries: self.max_entries.map_or(d.max_entries, |max| (max > 0).then_some(max)),
                    keep_initial_entries: self.keep_initial_entries.unwrap_or(d.keep_initial_entries),
                    keep_recent_entries: self.keep_recent_entries.unwrap_or(d.keep_recent_entries),
                })
            }
            "tool_result_retention" => {
                let d = plan::ToolResultRetention::default();
                let keep = self.keep_recent_tool_results.unwrap_or(d.keep_recent_tool_results);
                PipelineStage::plan(plan::ToolResultRetention { keep_recent_tool_results: keep })
            }
            "auto_summary" => PipelineStage::Summarize(plan::SummarizeHistory { name: "auto_summary", ..summary }),
            "reactive_summary" => {
                let d = plan::ReactiveSummary::default();
                let keep = self.reactive_keep_recent_entries.unwrap_or(d.reactive_keep_recent_entries);
                let stage: plan::SummarizeHistory = plan::ReactiveSummary { reactive_keep_recent_entries: keep }.into();
                PipelineStage::Summarize(plan::SummarizeHistory {
                    max_failures: summary.max_failures,
                    max_summary_chars: summary.max_summary_chars,
                    ..stage
                })
            }
            _ => {
                let known: Vec<&str> = STAGES.iter().map(|(name, _)| *name).collect();
                return Err(OptionError::Name("stages", name.into(), known.join(", ")));
            }
        })
    }
}
