//! Host library of Foreshorten.

pub mod economics;
pub mod report;
