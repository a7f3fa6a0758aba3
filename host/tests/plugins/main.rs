//! Stages and summarizers of others, loaded as components: good ones, built from source, and hostile ones, by hand.

#![allow(clippy::unwrap_used, reason = "helpers of tests are test code")]

mod dylib;
mod guests;
mod hostile;
mod interpreters;
mod kit;
mod languages;
mod loading;
mod program;
mod sessions;
mod support;
