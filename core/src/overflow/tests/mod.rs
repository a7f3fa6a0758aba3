//! Tests.
mod fixture;
mod variants;
