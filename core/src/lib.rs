//! Deterministic planning, rendering and estimation of view-only context compaction for LLM agents.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod budget;
pub mod config;
pub mod digest;
pub mod error;
pub mod estimate;
pub mod marker;
pub mod notice;
pub mod overflow;
pub mod plan;
pub mod policy;
pub mod recall;
pub mod render;
pub mod state;
pub mod summary;
pub mod text;
pub mod transcript;
pub mod view;

pub use config::{PipelineStage, Policy, PolicyConfig, default_pipeline, five_stage_pipeline};
pub use error::ConfigError;
pub use notice::CompactionNotice;
pub use policy::{Compactor, Effect, Finish, Outcome, Step, SummaryFailure, SummaryReply, SummaryRequest, Turn};
pub use render::render_view;
pub use state::CompactionState;
