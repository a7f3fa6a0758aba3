//! Between the types of the interface and those of the core.

use alloc::{format, string::String, vec::Vec};

use foreshorten_core::{
    self as core_, PipelineStage, PolicyConfig,
    budget::Watermark,
    default_pipeline,
    estimate::{ByteEstimator, Weigher},
    plan,
    transcript::{Entry as CoreEntry, EntryKind, Part as CorePart},
    view,
};

use crate::bindings::exports::foreshorten::planner::planning::{Entry, Outcome, Part, Piece, Policy, SummaryRequest};

pub(crate) fn narrow(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// A stage by the name under which notices report it, with its default parameters.
fn stage(name: &str) -> Result<PipelineStage, String> {
    Ok(match name {
        "offload_tool_results" => PipelineStage::plan(plan::OffloadToolResults::default()),
        "clear_tool_results" => PipelineStage::plan(plan::ClearToolResults::default()),
        "drop_superseded" => PipelineStage::plan(plan::DropSuperseded::default()),
        "drop_old_images" => PipelineStage::plan(plan::DropOldImages::default()),
        "clip_tool_arguments" => PipelineStage::plan(plan::ClipToolArguments::default()),
        "clear_reasoning" => PipelineStage::plan(plan::ClearReasoning::default()),
        "tool_result_budget" => PipelineStage::plan(plan::ToolResultBudget::default()),
        "tool_result_retention" => PipelineStage::plan(plan::ToolResultRetention::default()),
        "middle_snip" => PipelineStage::plan(plan::MiddleSnip::default()),
        "summarize_history" => PipelineStage::Summarize(plan::SummarizeHistory::default()),
        "auto_summary" => PipelineStage::Summarize(plan::AutoSummary::default().into()),
        "reactive_summary" => PipelineStage::Summarize(plan::ReactiveSummary::default().into()),
        other => return Err(format!("stages: there is no built-in stage `{other}`")),
    })
}

pub(crate) fn policy(wanted: Policy) -> Result<core_::Policy, String> {
    let share = |points: Option<u16>, default| points.map_or(default, Watermark::BasisPoints);
    let stages = match wanted.stages.as_slice() {
        [] => default_pipeline(),
        names => names.iter().map(|name| stage(name)).collect::<Result<_, _>>()?,
    };
    let defaults = PolicyConfig::default();
    let weigher = if wanted.model.is_empty() {
        Weigher::default()
    } else {
        Weigher { bytes: ByteEstimator::for_model(&wanted.model), ..Weigher::default() }
    };
    let config = PolicyConfig {
        context_window: wanted.context_window,
        compact_at: share(wanted.compact_at, defaults.compact_at),
        compact_to: share(wanted.compact_to, defaults.compact_to),
        keep_recent_tokens: wanted.keep_recent_tokens,
        reserve_output_tokens: wanted.reserve_output_tokens,
        stages,
        weigher,
        archive: wanted.archive,
        ..PolicyConfig::default()
    };
    config.build().map_err(|error| format!("{error}"))
}

fn part(part: Part) -> Result<CorePart, String> {
    Ok(match part.kind {
        0 => CorePart::Text(part.text),
        1 => CorePart::Image(part.media_type, part.data),
        2 => CorePart::File(part.media_type, part.name, part.data),
        3 => CorePart::Opaque(part.data),
        other => return Err(format!("kind of a part: {other}; expected 0 to 3")),
    })
}

pub(crate) fn entry(entry: Entry) -> Result<CoreEntry, String> {
    let kind = match entry.kind {
        0 => EntryKind::System,
        1 => EntryKind::User,
        2 => EntryKind::Assistant,
        3 => EntryKind::Reasoning,
        4 => EntryKind::ToolCall,
        5 => EntryKind::ToolResult,
        other => return Err(format!("kind of an entry: {other}; expected 0 to 5")),
    };
    Ok(CoreEntry {
        kind,
        call_id: entry.call_id,
        name: entry.name,
        is_error: entry.error,
        sealed: entry.sealed,
        parts: entry.parts.into_iter().map(part).collect::<Result<_, _>>()?,
    })
}

pub(crate) fn request(request: &core_::SummaryRequest) -> SummaryRequest {
    SummaryRequest {
        entries: request.entries.iter().copied().map(narrow).collect(),
        text: request.text.clone(),
        prior: request.prior.clone(),
        sections: request.sections.iter().copied().map(String::from).collect(),
        max_chars: request.max_chars,
        max_output_tokens: request.max_output_tokens,
    }
}

pub(crate) fn outcome(outcome: &core_::Outcome) -> Outcome {
    let lines = |notice: &core_::CompactionNotice| notice.reasons.iter().chain(&notice.detail).cloned().collect();
    Outcome {
        compacted: outcome.compacted,
        tokens_before: outcome.tokens_before,
        tokens_after: outcome.tokens_after,
        first_changed: outcome.first_changed.map(narrow),
        retry: outcome.retry,
        cannot_fit: outcome.cannot_fit.as_ref().map(|fit| (fit.over, fit.largest().into())),
        notice: outcome.notice.as_ref().map_or_else(Vec::new, lines),
    }
}

pub(crate) fn piece(piece: view::Piece<'_>) -> Piece {
    match piece {
        view::Piece::Entry { entry } => Piece::Entry(narrow(entry)),
        view::Piece::Text { entry, text } => Piece::Text((narrow(entry), text.into())),
        view::Piece::Elided { entry, parts, text } => Piece::Elided((narrow(entry), parts.to_vec(), text.into())),
        view::Piece::Arguments { entry, json } => Piece::Arguments((narrow(entry), json.into())),
        view::Piece::Note { text } => Piece::Note(text.into()),
        view::Piece::StandIn { call, text } => Piece::StandIn((narrow(call), text.into())),
    }
}
