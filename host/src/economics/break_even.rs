//! What one pass costs a prompt cache, and when it has paid for itself.

use serde::Serialize;

use super::money::Money;
use super::prices::PriceRow;
use super::simulator::TurnBill;

/// A pass as a loan: paid at once, repaid turn by turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BreakEven {
    /// Tokens of the request after the pass that are outside of the cached prefix only because of it: what it has
    /// uncached, less what it would have had without the pass. Nothing on a cold cache.
    pub resent_tokens: u64,
    /// What the request after the pass costs more than it would have cost without. Nothing when it costs less.
    #[serde(rename = "loss_microdollars")]
    pub loss: Money,
    /// What every later request costs less, cache warm.
    #[serde(rename = "saving_microdollars")]
    pub saving: Money,
    /// Later requests until the loss is repaid, in tenths, rounded up; `None` when nothing is saved.
    pub turns_tenths: Option<u64>,
}

impl BreakEven {
    /// The exact figures of one pass, by what the request after it costs `with` it and would have cost `without`.
    ///
    /// The two bills are quotes of one [`Simulator`](super::Simulator) at one moment, so minimum, granularity, marks, a
    /// cold cache and the price cliff are all in the loss. `saving` is what the removed tokens cost to read at the plain
    /// price, without the cliff.
    ///
    /// ```
    /// use foreshorten::economics::{BreakEven, PriceTable, Request, Segment, Simulator};
    ///
    /// let table = PriceTable::builtin()?;
    /// let mut simulator = Simulator::new(table.row("openai-5.5")?);
    /// let segment = |hash, tokens| Segment { hash, bytes: tokens * 4, tokens };
    /// let view = [segment(1, 8_192), segment(2, 40_960), segment(3, 20_480)];
    /// simulator.feed(&Request { segments: &view, ..Request::default() });
    /// // The second segment gives way to a marker.
    /// let shrunk = [segment(1, 8_192), segment(4, 20), segment(3, 20_480)];
    /// let with = simulator.quote(&Request { segments: &shrunk, ..Request::default() });
    /// let without = simulator.quote(&Request { segments: &view, ..Request::default() });
    /// let pass = BreakEven::between(simulator.row(), &with, &without);
    /// assert_eq!(pass.resent_tokens, 20 + 20_480);
    /// # Ok::<(), foreshorten::economics::PriceError>(())
    /// ```
    #[must_use]
    pub fn between(row: &PriceRow, with: &TurnBill, without: &TurnBill) -> Self {
        let uncached = |bill: &TurnBill| bill.written.saturating_add(bill.uncached);
        let removed = without.sent_tokens.saturating_sub(with.sent_tokens);
        Self::new(
            uncached(with).saturating_sub(uncached(without)),
            with.cost.saturating_sub(without.cost).picodollars(),
            u128::from(removed) * u128::from(row.read),
        )
    }

    fn new(resent_tokens: u64, loss: u128, saving: u128) -> Self {
        let turns =
            loss.saturating_mul(10).checked_add(saving.saturating_sub(1)).and_then(|tenths| tenths.checked_div(saving));
        Self {
            resent_tokens,
            loss: Money::from_picodollars(loss),
            saving: Money::from_picodollars(saving),
            turns_tenths: turns.and_then(|tenths| u64::try_from(tenths).ok()),
        }
    }
}

/// Prices a pass on a warm cache that holds all of the request before: a request of `prompt` tokens whose first changed
/// byte stands after `kept` tokens becomes one of `prompt − removed`.
///
/// `loss = (prompt − removed − kept)·write + kept·read − prompt·read`, `saving = removed·read`. Minimum, granularity, marks
/// and price cliff are left out: a figure for who has no simulator. [`BreakEven::between`] has them.
#[must_use]
pub fn break_even(row: &PriceRow, prompt: u64, kept: u64, removed: u64) -> BreakEven {
    let read = u128::from(row.read);
    let removed = removed.min(prompt);
    let kept = kept.min(prompt - removed);
    let resent = prompt - removed - kept;
    let after = u128::from(resent) * u128::from(row.write);
    let loss = after.saturating_add(u128::from(kept) * read).saturating_sub(u128::from(prompt) * read);
    BreakEven::new(resent, loss, u128::from(removed) * read)
}
