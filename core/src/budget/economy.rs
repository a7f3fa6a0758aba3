//! A trigger and a target that follow from the prices of a prompt cache rather than from the window.

use serde::{Deserialize, Serialize};

use super::TokenBudget;

/// Prices of a token in ten-thousandths of the plain input price.
///
/// ```
/// use foreshorten_core::budget::CachePrice;
/// // Writing costs a quarter more than plain input, reading a tenth, output five times as much.
/// let price = CachePrice::default();
/// assert_eq!((price.write, price.read, price.output), (12_500, 1_000, 50_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachePrice {
    /// A token that no live cache entry covers. `10_000` where writing to the cache is free.
    pub write: u32,
    /// A token read from the cache. With 0 nothing is gained by holding less.
    pub read: u32,
    /// A token of output: what a summary costs to write.
    pub output: u32,
}

impl Default for CachePrice {
    /// The row most providers are near: 1.25, 0.1 and 5 times the plain price.
    fn default() -> Self {
        Self { write: 12_500, read: 1_000, output: 50_000 }
    }
}

/// The lowest bill for given prices, above a floor of what stays verbatim.
///
/// Holding a view costs its reading price every turn; a pass costs writing anew what it leaves, and a summary. With growth
/// `g`, reading price `r`, and pass cost `P`, the bill is lowest when the view may grow by `√(2·P·g / r)` above the floor
/// before the next pass. That is often well before the window is full; where it is not, the watermark stays the trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Economy {
    /// The prices.
    pub price: CachePrice,
    /// The floor: the newest groups that fit so many tokens stay verbatim, where `keep_recent_tokens` does not say
    /// otherwise; no more than a fifth of usable. Default 6,000.
    pub floor_tokens: u64,
    /// Tokens a turn adds. Default `None`: the mean over the record.
    pub growth_tokens: Option<u64>,
    /// Turns the session will have in all, where that is known. Near its end no pass pays for itself any more. Default
    /// `None`: many.
    pub expected_turns: Option<u32>,
}

impl Default for Economy {
    fn default() -> Self {
        Self { price: CachePrice::default(), floor_tokens: 6_000, growth_tokens: None, expected_turns: None }
    }
}

/// What prices are applied to, in calibrated tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holding {
    /// What no pass can shrink: instructions, schemas.
    pub(crate) fixed: u64,
    /// What notes weigh, or a first one would.
    pub(crate) notes: u64,
    /// All of the record but instructions, as it came.
    pub(crate) body: u64,
    /// How often the model was asked.
    pub(crate) turns: u32,
    /// The view now.
    pub(crate) view: u64,
}

/// Part of the way from the floor to the trigger where a pass ends that needs no summary: a quarter. At the floor every
/// pass would need one; half way costs a tenth more on the reference workload.
const RESIDUE_DIVISOR: u64 = 4;

impl Economy {
    /// The room with trigger and target by prices, and the floor to which a summary folds.
    pub(crate) fn applied(&self, budget: TokenBudget, holding: Holding) -> (TokenBudget, u64) {
        let Holding { fixed, notes, body, turns, view } = holding;
        let floor = fixed.saturating_add(notes).saturating_add(budget.tail);
        let CachePrice { write, read, output } = self.price;
        let wide = |price: u32, tokens: u64| u128::from(price) * u128::from(tokens);
        // All that is left is written instead of read, and the summary call reads what is there and writes a note.
        let cost = wide(write.saturating_sub(read), floor) + wide(read, floor) + wide(output, notes);
        let growth = self.growth_tokens.unwrap_or_else(|| body / u64::from(turns.max(1))).max(1);
        let gap = match u128::from(read) {
            0 => u64::MAX,
            read => u64::try_from((cost / read).saturating_mul(2 * u128::from(growth)).isqrt()).unwrap_or(u64::MAX),
        };
        // Nearer than a quarter of the floor, estimates decide more than prices.
        let mut trigger = floor.saturating_add(gap.max(floor / 4)).min(budget.trigger);
        let target = floor.saturating_add(trigger.saturating_sub(floor) / RESIDUE_DIVISOR);
        if let Some(expected) = self.expected_turns {
            let left = u64::from(expected.saturating_sub(turns));
            if wide(read, view.saturating_sub(floor)).saturating_mul(u128::from(left)) < cost {
                trigger = budget.trigger;
            }
        }
        let target = target.min(trigger - (trigger / 20).max(1)).max(1);
        (TokenBudget { trigger, target, ..budget }, floor.min(target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: TokenBudget = TokenBudget {
        window: 200_000,
        reserve: 16_384,
        usable: 183_616,
        trigger: 156_073,
        target: 110_169,
        tail: 6_000,
    };
    const HOLDING: Holding = Holding { fixed: 1_000, notes: 1_000, body: 1_200_000, turns: 600, view: 30_000 };

    #[test]
    fn the_trigger_is_where_holding_costs_what_passes_do() {
        let (budget, floor) = Economy::default().applied(ROOM, HOLDING);
        // A pass costs 1.25 × 8,000 and a summary of 1,000 at 5: 15,000 plain tokens; √(2 × 150,000 × 2,000) = 24,494.
        assert_eq!((budget.trigger, budget.target, floor), (32_494, 14_123, 8_000));
        let cheap = CachePrice { write: 10_000, read: 200, output: 50_000 };
        let cheap = Economy { price: cheap, ..Economy::default() }.applied(ROOM, HOLDING).0;
        assert!(cheap.trigger > budget.trigger);
    }

    #[test]
    fn a_view_that_is_read_for_nothing_is_held_until_the_window_is_full() {
        let price = CachePrice { read: 0, ..CachePrice::default() };
        let (budget, _) = Economy { price, ..Economy::default() }.applied(ROOM, HOLDING);
        assert_eq!(budget.trigger, ROOM.trigger);
    }

    #[test]
    fn near_the_end_no_pass_pays() {
        let of = |expected| Economy { expected_turns: Some(expected), ..Economy::default() };
        // 22,000 tokens less, read at a tenth, pay for a pass of 15,000 in seven turns.
        assert_eq!(of(606).applied(ROOM, HOLDING).0.trigger, ROOM.trigger);
        assert_eq!(of(607).applied(ROOM, HOLDING).0.trigger, 32_494);
    }

    #[test]
    fn extremes_leave_a_gap() {
        for number in [0, 1, u64::MAX / 4] {
            for price in [0, 1, u32::MAX] {
                let price = CachePrice { write: price, read: price / 2, output: price };
                let economy =
                    Economy { price, floor_tokens: number, growth_tokens: Some(number), expected_turns: Some(1) };
                let holding = Holding { fixed: number, notes: number, body: number, turns: u32::MAX, view: number };
                let (budget, floor) = economy.applied(ROOM, holding);
                assert!(budget.target < budget.trigger && budget.trigger <= ROOM.trigger && floor <= budget.target);
            }
        }
    }
}
