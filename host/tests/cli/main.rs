//! The program, as its users run it.

#[path = "../common/mod.rs"]
mod common;

mod compact;
mod estimate;
mod history;
mod odd_inputs;
mod policy;
mod recall;
mod replay;
mod session;
