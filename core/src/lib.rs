//! Core.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
pub mod digest;
pub mod overflow;
pub mod transcript;
pub mod view;
/// Placeholder doc.
pub struct Compactor;
