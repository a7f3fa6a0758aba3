//! Whole agents against the simulated provider.

mod agent;
mod estimates;
mod runs;
