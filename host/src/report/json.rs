//! The report for programs.
//!
//! One object:
//!
//! ```text
//! { "schema": "foreshorten.replay/1", "sessions": [ SESSION… ] }
//! ```
//!
//! A session has the fields of [`ReplayReport`] under their own names: `session`, `format`, `format_reason`, `policy`,
//! `window`, `usable`, `trigger`, `target`, `price`, `turns`, `passes`, `totals`, `baselines`, `levels`, `notes`, `plugins`
//! (by name, the fields of [`Metrics`](crate::plugin::Metrics)).
//! Those of its parts are documented at [`TurnRow`](super::TurnRow), [`PassRow`](super::PassRow),
//! [`Totals`](crate::economics::Totals) and so on. Besides:
//!
//! * money is a whole number of microdollars, in fields that end in `_microdollars`; a sum is rounded once, so that it
//!   can differ from the sum of rounded parts;
//! * a run of levels is a pair `[level, entries]`, levels by code 0 to 5 as in [`LEVEL_NAMES`](super::LEVEL_NAMES),
//!   255 for an entry not there yet;
//! * `break_even` is `null` or `{ "resent_tokens", "loss_microdollars", "saving_microdollars", "turns_tenths" }`.
//!
//! Fields may be added under the same schema name; none is renamed or removed.

use std::io;

use serde::Serialize;

use super::ReplayReport;

/// The value of `schema`.
pub const SCHEMA: &str = "foreshorten.replay/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    sessions: &'a [ReplayReport],
}

/// Writes the reports as one document on one line.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(reports: &[ReplayReport], mut out: impl io::Write) -> io::Result<()> {
    serde_json::to_writer(&mut out, &Document { schema: SCHEMA, sessions: reports })?;
    out.write_all(b"\n")
}
