//! Host library of Foreshorten.

pub mod economics;
pub mod formats;
pub mod report;
