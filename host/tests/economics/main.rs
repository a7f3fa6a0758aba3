//! What policies cost: the simulated cache and its bills, what is predicted of them, and the report.

#[path = "../common/mod.rs"]
mod common;

mod baselines;
mod cache;
mod costs;
mod prediction;
mod report;
