//! 2. From bytes to tokens.
//!
//! An entry is weighed once, when it is pushed ([`Weigher`]). What triggers is not the raw sum but the
//! sum anchored on the provider's last real count ([`Calibration`]).
//!
//! [`ByteEstimator::BytesPer4`] is the rule everybody knows. [`ByteEstimator::Automaton`] walks a small
//! automaton with weights fitted to one tokenizer family: on the mixed things tools print it is six
//! times nearer than bytes/4, and it errs high rather than low.
//!
//! Both are functions of the bytes alone: integers, no state kept between texts, the same answer on
//! every machine.
//!
//! **Where the weights come from.** From the project's own fit to true counts by eleven tokenizers, on 7,700 texts of
//! fifteen kinds: prose, code, what tools print, JSON, hex, base64, fifty languages. It can be done again with one command
//! (`benches/estimator`), which also writes `tables.rs`. The tables are fitted so that few texts are
//! estimated much too low. What came of it is in `docs/calibration.md`: on texts of other sources the mean error is 5-6 % with
//! 0.5-2 % of texts more than 10 % low, on texts of kinds not seen before 5-6 % with 1-4 %.
//!
//! **What they do not promise.** A single text may be off by a third either way, and languages are the weakest part: on
//! 22 short samples that were never fitted the mean error is 5-8 %, the worst 12 % low and 37 % high. Runs of one
//! sign (`-----`, `─────`, `aaaa`) are known; runs of two or four signs over and over are not. The Claude tables were fitted to
//! an unofficial reconstruction of Claude's counts. No table stands for a tokenizer it was not fitted to. Ids and names stay;
//! numbers may change with a fit.

mod automaton;
mod bytes;
mod calibration;
mod measured;
mod models;
mod repeats;
#[cfg(test)]
mod samples;
mod tables;
mod weigher;
mod written;

pub use bytes::{ByteEstimator, Family};
pub use calibration::{Calibration, Ratio, Refused};
pub(crate) use measured::Measured;
pub use weigher::{TokenEstimator, Weigher};
pub(crate) use written::Written;
