//! 3. How much room there is.

mod economy;
mod tail;
mod watermark;

pub(crate) use economy::Holding;
pub use economy::{CachePrice, Economy};
pub use tail::tail_start;
pub use watermark::Watermark;

/// Smallest window that can be meant as one. Below it a figure is a typing error or a misreading.
pub const MIN_WINDOW: u64 = 256;
/// Largest window that can be meant as one.
pub const MAX_WINDOW: u64 = 20_000_000;

/// Why a pass is run, which decides how hard it tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// The view reached `compact_at`.
    Proactive,
    /// The provider rejected the view: tail 10 %, thresholds dropped, target 25 % of usable.
    Aggressive,
    /// The user asked for it now.
    Manual,
}

/// The room for one view. All figures are calibrated tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBudget {
    /// The context window, or what stands for it when it is not known.
    pub window: u64,
    /// Tokens kept free for the answer: `min(reserve_output_tokens, window / 2)`.
    pub reserve: u64,
    /// `window - reserve`: a view above this does not fit.
    pub usable: u64,
    /// A view of this size or more starts a pass.
    pub trigger: u64,
    /// A pass shrinks the view to this.
    pub target: u64,
    /// Size of the protected tail.
    pub tail: u64,
}

/// Share of usable that always lies between trigger and target: a twentieth. Closer watermarks would
/// start a pass on nearly every turn.
const MIN_GAP_DIVISOR: u64 = 20;

impl TokenBudget {
    /// Works out the room in `window`.
    ///
    /// `compact_to` is capped so that at least 5 % of usable lies between trigger and target.
    /// `keep_recent_tokens` defaults to a fifth of usable.
    #[must_use]
    pub fn new(
        window: u64,
        reserve_output_tokens: u64,
        compact_at: Watermark,
        compact_to: Watermark,
        keep_recent_tokens: Option<u64>,
        mode: Mode,
    ) -> Self {
        let window = window.max(2);
        let reserve = reserve_output_tokens.min(window / 2);
        let usable = window - reserve;
        let gap = (usable / MIN_GAP_DIVISOR).max(1);
        let trigger = compact_at.of(usable).max(2);
        let mut target = compact_to.of(usable).min(trigger.saturating_sub(gap)).max(1);
        let mut tail = keep_recent_tokens.unwrap_or(usable / 5).clamp(1, usable.max(1));
        if mode == Mode::Aggressive {
            target = target.min((usable / 4).max(1));
            tail = tail.min((usable / 10).max(1));
        }
        Self { window, reserve, usable, trigger, target, tail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(window: u64, reserve: u64, mode: Mode) -> TokenBudget {
        let fraction = |bp| Watermark::BasisPoints(bp);
        TokenBudget::new(window, reserve, fraction(8_500), fraction(6_000), None, mode)
    }

    #[test]
    fn the_seeds_defaults() {
        let budget = budget(200_000, 16_384, Mode::Proactive);
        assert_eq!(budget.usable, 183_616);
        assert_eq!((budget.trigger, budget.target, budget.tail), (156_073, 110_169, 36_723));
    }

    #[test]
    fn usable_is_never_nothing() {
        for (window, reserve) in
            [(16_000, 32_000), (8_192, 16_384), (4_096, 4_096), (1, 16_384), (0, 0), (16_385, 16_384)]
        {
            for mode in [Mode::Proactive, Mode::Aggressive] {
                let budget = budget(window, reserve, mode);
                assert!(budget.usable >= window / 2 && budget.usable >= 1, "{budget:?}");
                assert!(budget.target < budget.trigger && budget.tail >= 1, "{budget:?}");
            }
        }
    }

    #[test]
    fn absolute_watermarks_above_usable_keep_their_gap() {
        let budget = TokenBudget::new(
            100_000,
            16_384,
            Watermark::Tokens(500_000),
            Watermark::Tokens(400_000),
            None,
            Mode::Proactive,
        );
        assert_eq!(budget.trigger, budget.usable);
        assert!(budget.trigger - budget.target >= budget.usable / 20);
    }

    #[test]
    fn aggressive_tightens() {
        let budget = budget(32_768, 16_384, Mode::Aggressive);
        assert_eq!((budget.usable, budget.target, budget.tail), (16_384, 4_096, 1_638));
    }
}
