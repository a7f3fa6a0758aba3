//! Tests.
mod fixture;
