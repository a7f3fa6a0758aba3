//! The windows, policies and worlds under which every session is played.

use alloc::{borrow::ToOwned as _, string::String, vec, vec::Vec};

use foreshorten_core::{
    PipelineStage, PolicyConfig,
    budget::{CachePrice, Economy, Watermark},
    config,
    estimate::{ByteEstimator, Family, Weigher},
    marker::MarkerStyle,
    plan::{
        AutoSummary, ClearReasoning, ClearToolResults, ClipToolArguments, DropOldImages, DropSuperseded, MiddleSnip,
        OffloadToolResults, ReactiveSummary, SummarizeHistory, ToolResultBudget, ToolResultRetention, ToolRule,
    },
};

/// One way to play a session.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Its name.
    pub name: &'static str,
    /// The window, in tokens.
    pub window: u64,
    /// The policy.
    pub policy: fn() -> PolicyConfig,
    /// How the summarizer answers.
    pub answers: Answers,
}

/// How the summarizer answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// There is none.
    None,
    /// With the model-free summary of the core.
    Extractive,
    /// Its prompt is too long the first time in a pass, then as above.
    Overflowing,
    /// It fails.
    Failing,
    /// By turns empty, cut, without sections, far too long, and good.
    Lying,
}

/// The setups, in the order in which they are played.
pub const ALL: &[Setup] = &[
    Setup { name: "default", window: 4_800, policy: PolicyConfig::default, answers: Answers::Extractive },
    Setup { name: "small", window: 2_400, policy: seeds_rule, answers: Answers::Overflowing },
    Setup { name: "roomy", window: 200_000, policy: PolicyConfig::default, answers: Answers::None },
    Setup { name: "no-summary", window: 4_400, policy: no_summary, answers: Answers::None },
    Setup { name: "five-stages", window: 4_400, policy: five_stages, answers: Answers::Lying },
    Setup { name: "hostile-stage", window: 1_600, policy: hostile, answers: Answers::Failing },
    Setup { name: "economy", window: 6_000, policy: economy, answers: Answers::Extractive },
    Setup { name: "tight", window: 700, policy: tight, answers: Answers::None },
];

/// The defaults, weighed as the seeds do: a token for every four bytes.
fn seeds_rule() -> PolicyConfig {
    PolicyConfig {
        weigher: Weigher { bytes: ByteEstimator::BytesPer4, ..Weigher::default() },
        ..PolicyConfig::default()
    }
}

/// Every stage but those that cover, an estimator with weights, an archive that fails half the time.
fn no_summary() -> PolicyConfig {
    PolicyConfig {
        stages: vec![
            PipelineStage::plan(DropOldImages { keep_last: 1 }),
            PipelineStage::plan(DropSuperseded::default()),
            PipelineStage::plan(ClearReasoning { keep_last: 1 }),
            PipelineStage::plan(ClipToolArguments { min_bytes: 200, keep_last: 1 }),
            PipelineStage::plan(OffloadToolResults { min_chars: 1_200, preview_chars: 120, ..Default::default() }),
            PipelineStage::plan(ClearToolResults { clear_at_least_tokens: Some(60), ..Default::default() }),
        ],
        reserve_output_tokens: Some(800),
        weigher: Weigher {
            bytes: ByteEstimator::Automaton(Family::O200k),
            image_tokens: 400,
            file_tokens: 100,
            ..Weigher::default()
        },
        tools: rules(),
        archive: true,
        ..PolicyConfig::default()
    }
}

fn rules() -> Vec<(String, ToolRule)> {
    vec![
        ("plan".to_owned(), ToolRule::Never),
        ("edit".to_owned(), ToolRule::KeepArguments),
        ("list".to_owned(), ToolRule::DropFirst),
    ]
}

/// The five stages of the earlier proposal, small enough to act here; markers without a recall tool.
fn five_stages() -> PolicyConfig {
    PolicyConfig {
        stages: vec![
            PipelineStage::plan(ToolResultBudget {
                tool_result_budget_chars: 3_000,
                large_tool_result_chars: 1_600,
                tool_result_preview_chars: 160,
            }),
            PipelineStage::plan(MiddleSnip { max_entries: Some(36), keep_initial_entries: 3, keep_recent_entries: 18 }),
            PipelineStage::plan(ToolResultRetention::default()),
            PipelineStage::Summarize(AutoSummary::default().into()),
            PipelineStage::Summarize(ReactiveSummary::default().into()),
        ],
        style: MarkerStyle { recall_tool: false },
        keep_recent_tokens: Some(400),
        weigher: Weigher { bytes: ByteEstimator::Automaton(Family::Claude), ..Weigher::default() },
        ..PolicyConfig::default()
    }
}

/// A foreign stage that asks for everything, first; its text is let through.
fn hostile() -> PolicyConfig {
    PolicyConfig {
        context_window: Some(1_600),
        compact_at: Watermark::Tokens(1_000),
        compact_to: Watermark::Tokens(640),
        reserve_output_tokens: Some(400),
        keep_recent_tokens: Some(200),
        stages: vec![PipelineStage::External("hostile".into()), PipelineStage::Summarize(SummarizeHistory::default())],
        weigher: Weigher {
            bytes: ByteEstimator::Automaton(Family::Glm),
            image_tokens: 120,
            file_tokens: 90,
            entry_overhead: 2,
            exact: None,
        },
        summary_wrapper: "[history]\n{summary}\n[/history]".to_owned(),
        may_condense: true,
        min_gain_percent: 0,
        ..PolicyConfig::default()
    }
}

/// A trigger by prices, and summaries that stand beside each other.
fn economy() -> PolicyConfig {
    let price = CachePrice { write: 12_500, read: 3_000, output: 20_000 };
    let mut stages = config::default_pipeline();
    for stage in &mut stages {
        if let PipelineStage::Summarize(summary) = stage {
            *summary = SummarizeHistory { layers_percent: 50, max_summary_chars: 1_200, ..*summary };
        }
    }
    let economy = Economy { price, floor_tokens: 300, growth_tokens: None, expected_turns: Some(500) };
    PolicyConfig { stages, ..PolicyConfig::economy(economy) }
}

/// Next to no room: the ladder of last resorts, and views that cannot fit.
fn tight() -> PolicyConfig {
    PolicyConfig { reserve_output_tokens: Some(100), ..PolicyConfig::default() }
}
