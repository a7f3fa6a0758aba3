//! What a policy costs: a prompt-cache simulator over abstract requests.
//!
//! Nothing here knows about transcripts, policies or wire formats. A caller describes each model call as a row of
//! [`Segment`]s (a hash, a size, a weight) and is told what a provider with a given [`PriceRow`] would have read from
//! its prompt cache, written to it and billed. The same simulator prices the policy under test and the
//! [`Baselines`] it is held against, so that a comparison never rests on two sets of rules.
//!
//! All money is integer: one token's price is a whole number of millionths of a millionth of a dollar
//! ([`Money`]), which is exact for every price list with at most six decimals per million tokens.
//!
//! ```
//! use foreshorten::economics::{PriceTable, Request, Segment, Simulator};
//!
//! let table = PriceTable::builtin()?;
//! let row = table.row("anthropic-5m")?;
//! let mut simulator = Simulator::new(row);
//! let head = [Segment { hash: 1, bytes: 40_000, tokens: 10_000 }];
//! let first = simulator.feed(&Request { segments: &head, output_tokens: 500, ..Request::default() });
//! assert_eq!((first.cached, first.written), (0, 10_000));
//!
//! // The next request repeats the first segment and adds one: only what is new is fed.
//! let more = [Segment { hash: 2, bytes: 4_000, tokens: 1_000 }];
//! let second = simulator.feed(&Request { common: 1, segments: &more, output_tokens: 500, ..Request::default() });
//! assert_eq!((second.cached, second.written), (10_000, 1_000));
//! assert!(!second.prefix_broken);
//! # Ok::<(), foreshorten::economics::PriceError>(())
//! ```

mod baselines;
mod break_even;
mod cache;
mod marked;
mod money;
mod pauses;
mod prices;
mod simulator;

pub use baselines::{BASELINE_COUNT, BASELINE_NAMES, Baselines, EntryFact, FactKind, STUB_BYTES, STUB_TOKENS};
pub use break_even::{BreakEven, break_even};
pub use money::{Money, parse_millionths};
pub use pauses::{Pauses, seconds_of};
pub use prices::{CacheRule, LongContext, PriceError, PriceRow, PriceTable};
pub use simulator::{Request, Segment, Simulator, Totals, TurnBill};
