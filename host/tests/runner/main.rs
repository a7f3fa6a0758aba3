//! The runner, with a model in this process.

mod model;
mod overflow;
mod plugins;
mod policies;
mod reload;
mod reports;
mod review;
mod sessions;
mod weaknesses;
