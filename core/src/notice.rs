//! The true account of a pass.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::plan::Refusal;

/// What one pass did: reasons, both numbers, what was decided and what it costs the prompt cache. One a pass,
/// and only about what was applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompactionNotice {
    /// Names of the stages that decided something, in order; `manual_summary` when the user asked; rungs of the ladder of
    /// last resorts as `last_resort:…`.
    pub reasons: Vec<String>,
    /// The pass answered a rejected prompt.
    pub aggressive: bool,
    /// The user asked for it.
    pub manual: bool,
    /// Calibrated tokens of the view before.
    pub tokens_before: u64,
    /// Calibrated tokens of the view after.
    pub tokens_after: u64,
    /// Tokens that a warm prompt cache would have held of the next request without the pass, and does not hold with it,
    /// less those that are not sent any more: how many more tokens that request has outside of the cached prefix. What is
    /// new since the last view is sent for the first time either way, and not among them. An upper bound on the first turn
    /// after a restart of a state whose last usage had been taken in, and of one whose history was edited: how much of the
    /// view was new is not known then.
    pub resent_tokens: u64,
    /// Lines for people: how full the window was, what each stage did, what plugins explained.
    pub detail: Vec<String>,
    /// Decisions by what they do.
    pub decided: Decided,
    /// First piece of the view that changed.
    pub first_changed: usize,
    /// Raw tokens before the first changed piece, in per cent of the view before: the part of the prompt cache that stays warm.
    pub prefix_kept_percent: u8,
    /// Tokens of the record, instructions aside, that the view after the pass shows as they came: what the model still has
    /// word for word. The rest stands as previews, markers and notes, or can be recalled.
    pub verbatim_tokens: u64,
    /// The same in per cent of the record, rounded down.
    pub verbatim_percent: u8,
    /// The ladder of last resorts was used.
    pub last_resort: bool,
    /// Text of the newest summary, when one was made.
    pub summary: Option<String>,
    /// Summarizer calls made.
    pub summary_calls: u32,
}

impl CompactionNotice {
    /// Later requests until what the pass costs a warm cache is repaid, in tenths, rounded up; `None` when it frees nothing.
    ///
    /// `write` and `read` are the prices of a token outside of the cached prefix and of one within, in any unit. The next
    /// request costs `resent_tokens · (write − read) − freed · read` more than it would have without the pass, and each
    /// later one `freed · read` less, where `freed` is what the view lost.
    ///
    /// ```
    /// use foreshorten_core::CompactionNotice;
    /// let mut notice = CompactionNotice::default();
    /// (notice.tokens_before, notice.tokens_after, notice.resent_tokens) = (170_000, 100_000, 80_000);
    /// assert_eq!(notice.turns_to_break_even(125, 10), Some(122));
    /// ```
    #[must_use]
    pub fn turns_to_break_even(&self, write: u64, read: u64) -> Option<u64> {
        let saving = u128::from(self.tokens_before.saturating_sub(self.tokens_after)) * u128::from(read);
        let extra = u128::from(self.resent_tokens) * u128::from(write.saturating_sub(read));
        let tenths = extra.saturating_sub(saving).saturating_mul(10).checked_add(saving.saturating_sub(1))?;
        u64::try_from(tenths.checked_div(saving)?).ok()
    }
}

/// New decisions of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// Entries of which media or arguments were elided.
    pub elided: u32,
    /// Results condensed by a plugin.
    pub condensed: u32,
    /// Results offloaded.
    pub offloaded: u32,
    /// Results and reasoning cleared.
    pub cleared: u32,
    /// Entries newly covered by a note.
    pub covered: u32,
    /// Notes shortened.
    pub shortened: u32,
}

impl Decided {
    /// Whether anything was decided.
    #[must_use]
    pub const fn any(&self) -> bool {
        self.elided + self.condensed + self.offloaded + self.cleared + self.covered + self.shortened > 0
    }
}

/// Proposals of one stage that the ledger refused, counted by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// (stage, reason, count)
    pub counts: Vec<(String, Refusal, u32)>,
}

/// What cannot shrink and is too large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CannotFit {
    /// Tokens by which the view is above usable.
    pub over: u64,
    /// Tokens of instructions.
    pub system: u64,
    /// Tokens of tool schemas.
    pub tools: u64,
    /// Tokens of pinned messages, the newest user message among them.
    pub pinned: u64,
    /// Tokens of the newest group, its results reduced to markers.
    pub newest: u64,
    /// Tokens of notes in their shortest form.
    pub notes: u64,
}

impl CannotFit {
    /// The largest of the parts, by name.
    #[must_use]
    pub fn largest(&self) -> &'static str {
        let mut best = ("the system prompt", self.system);
        for part in
            [("the tool schemas", self.tools), ("pinned messages", self.pinned), ("the newest messages", self.newest)]
        {
            if part.1 > best.1 {
                best = part;
            }
        }
        best.0
    }
}
