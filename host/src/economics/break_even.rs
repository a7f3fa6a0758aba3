//! What one pass costs a warm cache, and when it has paid for itself.

use serde::Serialize;

use super::money::Money;
use super::prices::PriceRow;

/// A pass as a loan: paid at once, repaid turn by turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BreakEven {
    /// What the request after the pass costs more than it would have cost without, cache warm. Nothing when it costs
    /// less.
    #[serde(rename = "loss_microdollars")]
    pub loss: Money,
    /// What every later request costs less.
    #[serde(rename = "saving_microdollars")]
    pub saving: Money,
    /// Later requests until the loss is repaid, in tenths, rounded up; `None` when nothing is saved.
    pub turns_tenths: Option<u64>,
}

/// Prices a pass on a warm cache: a request of `prompt` tokens whose first changed byte stands after `kept` tokens
/// becomes one of `prompt − removed`.
///
/// `loss = (prompt − removed − kept)·write + kept·read − prompt·read`, `saving = removed·read`. Minimum, granularity
/// and price cliff are left out: the figure is for a notice, not for a bill.
#[must_use]
pub fn break_even(row: &PriceRow, prompt: u64, kept: u64, removed: u64) -> BreakEven {
    let read = u128::from(row.read);
    let removed = removed.min(prompt);
    let kept = kept.min(prompt - removed);
    let after = u128::from(prompt - removed - kept) * u128::from(row.write);
    let loss = after.saturating_add(u128::from(kept) * read).saturating_sub(u128::from(prompt) * read);
    let saving = u128::from(removed) * read;
    let turns =
        loss.saturating_mul(10).checked_add(saving.saturating_sub(1)).and_then(|tenths| tenths.checked_div(saving));
    BreakEven {
        loss: Money::from_picodollars(loss),
        saving: Money::from_picodollars(saving),
        turns_tenths: turns.and_then(|tenths| u64::try_from(tenths).ok()),
    }
}
