//! Host library of Foreshorten.
pub mod formats;
