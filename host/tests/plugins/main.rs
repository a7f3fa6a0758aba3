//! Stages and summarizers of others, loaded as components: good ones, built from source, and hostile ones, by hand.

#![allow(clippy::unwrap_used, reason = "helpers of tests are test code")]

mod asking;
mod builtin;
mod cache;
mod dylib;
mod guests;
mod hostile;
mod interpreters;
mod kit;
mod languages;
mod loading;
mod native;
#[path = "../oracles/plugin_abi.rs"]
mod plugin_abi;
mod program;
mod sessions;
mod signed;
mod spans;
mod support;
