//! The adapters, against endpoints that play a script and the simulated provider.

mod failures;
mod requests;
mod script;
mod simulator;
