//! 2. From bytes to tokens.
//!
//! An entry is weighed once, when it is pushed ([`Weigher`]). What triggers is not the raw sum but the
//! sum anchored on the provider's last real count ([`Calibration`]).

mod calibration;
mod weigher;

pub use calibration::{Calibration, Ratio, Refused};
pub use weigher::{ByteEstimator, TokenEstimator, Weigher};
