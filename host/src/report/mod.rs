//! What a replay found out, for people and for programs.
//!
//! A replay fills a [`ReplayReport`], plain data without a reference to anything, and one of three renderers shows it:
//! [`table`] for a terminal, [`json`] for programs, [`html`] for a browser. The renderers decide nothing and measure
//! nothing: every number they show is in the report, or is a sum or share of numbers that are.

pub mod html;
pub mod json;
pub mod table;

mod chart;
mod data_table;
mod embed;
mod heatmap;
mod model;
mod numbers;
mod plots;

pub use model::{
    BaselineRow, Decided, LEVEL_ABSENT, LEVEL_NAMES, LevelColumn, LevelRun, PassRow, PriceLabel, ReplayReport, TurnRow,
};
pub use numbers::{percent, thousands};
