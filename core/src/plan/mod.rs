//! 4. Proposals, cheap first.
//!
//! A [`Stage`] looks at the record through a [`StageContext`] and proposes. It never edits a view and
//! stores nothing: what it proposes is checked by the ledger at once and either accepted or refused with
//! a reason, so no stage can break an invariant.
//!
//! ```
//! use foreshorten_core::plan::{Proposal, Stage, StageContext};
//!
//! /// Drops the images of everything but the newest three entries that have any.
//! struct DropOldImages;
//!
//! impl Stage for DropOldImages {
//!     fn name(&self) -> &str {
//!         "drop_images"
//!     }
//!
//!     fn plan(&self, ctx: &mut StageContext<'_>) {
//!         let mut with_images: Vec<usize> =
//!             ctx.visible().into_iter().filter(|&entry| ctx.columns().has_media(entry)).collect();
//!         with_images.truncate(with_images.len().saturating_sub(3));
//!         for entry in with_images {
//!             if ctx.reached_target() {
//!                 break;
//!             }
//!             // A refusal (tail, pin, nothing saved …) is an answer, not a failure.
//!             let _ = ctx.propose(Proposal::ElideMedia { entry, parts: None });
//!         }
//!     }
//! }
//! ```

mod arguments;
mod clear;
mod context;
mod images;
mod offload;
mod reasoning;
mod snip;
mod summarize;
mod superseded;

pub use arguments::ClipToolArguments;
pub use clear::{ClearToolResults, ToolResultRetention};
pub use context::StageContext;
pub use images::DropOldImages;
pub use offload::{OffloadToolResults, ToolResultBudget};
pub use reasoning::ClearReasoning;
pub use snip::MiddleSnip;
pub use summarize::{AutoSummary, ReactiveSummary, SummarizeHistory};
pub use superseded::DropSuperseded;

use alloc::{string::String, vec::Vec};
use core::{fmt, ops::Range};

use serde::{Deserialize, Serialize};

/// How much of an entry a view still shows. Levels only rise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum Level {
    /// As it stands in the record.
    #[default]
    Verbatim = 0,
    /// Images or files, or the arguments of a call, are replaced by a marker.
    Elided = 1,
    /// A plugin's own text stands in its place.
    Condensed = 2,
    /// A preview stands in its place (offloaded).
    Preview = 3,
    /// A marker stands in its place; for reasoning: nothing does.
    Cleared = 4,
    /// A note covers it.
    Covered = 5,
}

/// What a stage may ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Proposal {
    /// Replace a tool result by a short marker.
    Clear {
        /// The result.
        entry: usize,
    },
    /// The same, because a newer call with the same arguments has the current result.
    ClearSuperseded {
        /// The result.
        entry: usize,
    },
    /// Replace a tool result by its beginning and end, in bytes (moved to character boundaries).
    Offload {
        /// The result.
        entry: usize,
        /// Bytes kept from the beginning.
        head: u32,
        /// Bytes kept from the end.
        tail: u32,
    },
    /// Replace a tool result by the persisted-result marker with a preview of `head` bytes.
    Persist {
        /// The result.
        entry: usize,
        /// Bytes of the preview.
        head: u32,
    },
    /// Replace images and files of a user message or tool result by a marker.
    ElideMedia {
        /// The entry.
        entry: usize,
        /// Part numbers; `None` for all media parts.
        parts: Option<Vec<u32>>,
    },
    /// Replace the arguments of an old call by valid JSON that says so.
    ClipArguments {
        /// The call.
        entry: usize,
    },
    /// Leave an old reasoning entry out.
    OmitReasoning {
        /// The reasoning entry.
        entry: usize,
    },
    /// Replace a tool result by a plugin's own text, labelled as the plugin's. Needs a grant in the policy.
    Condense {
        /// The result.
        entry: usize,
        /// The plugin's name, as the label shows it.
        by: String,
        /// Its text.
        text: String,
    },
    /// Cover the groups `from..to` by a model-free note.
    Snip {
        /// First group.
        from: usize,
        /// One past the last group.
        to: usize,
    },
}

impl Proposal {
    /// The entry the proposal is about; `None` for notes.
    #[must_use]
    pub const fn entry(&self) -> Option<usize> {
        match self {
            Self::Clear { entry }
            | Self::ClearSuperseded { entry }
            | Self::Offload { entry, .. }
            | Self::Persist { entry, .. }
            | Self::ElideMedia { entry, .. }
            | Self::ClipArguments { entry }
            | Self::OmitReasoning { entry }
            | Self::Condense { entry, .. } => Some(*entry),
            Self::Snip { .. } => None,
        }
    }
}

/// Why the ledger refused a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such entry, group or part.
    OutOfRange,
    /// Entries of this kind cannot be reduced that way.
    WrongKind,
    /// The entry is in the protected tail.
    Tail,
    /// The entry is pinned.
    Pinned,
    /// A note covers it already.
    Covered,
    /// Its level would not rise.
    NotRising,
    /// It belongs to an assistant message that is signed or encrypted.
    Sealed,
    /// A policy for its tool, or its nature (a recall result), exempts it.
    Exempt,
    /// It waits for a result.
    Pending,
    /// The view would not get smaller.
    NotSmaller,
    /// The policy does not grant it: condensing, or a summary where no summary stage follows.
    NotGranted,
    /// What may be used of it is used up: pins of stages weigh no more than a tenth of what is usable.
    NoBudget,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfRange => "no such entry, group or part",
            Self::WrongKind => "entries of this kind cannot be reduced that way",
            Self::Tail => "in the protected tail",
            Self::Pinned => "pinned",
            Self::Covered => "already covered by a note",
            Self::NotRising => "already reduced as far or further",
            Self::Sealed => "part of a signed or encrypted assistant message",
            Self::Exempt => "exempt",
            Self::Pending => "waiting for a result",
            Self::NotSmaller => "would not make the view smaller",
            Self::NotGranted => "not granted",
            Self::NoBudget => "more than the budget allows",
        })
    }
}

impl core::error::Error for Refusal {}

/// What can be done with the results and calls of one tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolRule {
    /// Like any other tool.
    #[default]
    Ordinary,
    /// Results and arguments stay verbatim until a note covers them.
    Never,
    /// Results may be reduced, arguments stay.
    KeepArguments,
    /// Results are cleared before any other's.
    DropFirst,
}

/// The desk at which proposals are handed in: implemented by the ledger.
pub trait Desk {
    /// Level of an entry, all decisions accepted so far included.
    fn level(&self, entry: usize) -> Level;
    /// Weight of an entry in the view, in raw tokens.
    fn view_weight(&self, entry: usize) -> u64;
    /// Calibrated tokens of the view.
    fn view_tokens(&self) -> u64;
    /// Whether an entry is protected (tail or pin), and why.
    fn protection(&self, entry: usize) -> Option<Refusal>;
    /// What a proposal would save in raw tokens, without taking it.
    ///
    /// # Errors
    /// The reason for which it would be refused.
    fn saving(&self, proposal: &Proposal) -> Result<u64, Refusal>;
    /// Takes a proposal and answers what it saved in raw tokens.
    ///
    /// # Errors
    /// The reason for which it is refused.
    fn propose(&mut self, proposal: Proposal) -> Result<u64, Refusal>;
    /// The rule for a tool.
    fn tool_rule(&self, name: &str) -> ToolRule;
    /// Whether there are rules for tools; true when that is not known. Without any no name is looked up.
    fn has_tool_rules(&self) -> bool {
        true
    }
    /// The first group at or after `group` that no note covers; the number of groups when there is none.
    fn next_open_group(&self, group: usize) -> usize;
    /// One line for the notice.
    fn explain(&mut self, line: String);
    /// Raw tokens that `tokens` calibrated ones buy.
    fn raw_for(&self, tokens: u64) -> u64;
    /// Whether notes cover anything; true when that is not known.
    fn has_notes(&self) -> bool {
        true
    }
    /// Levels of a range of entries.
    fn levels(&self, entries: Range<usize>) -> Vec<Level> {
        entries.map(|entry| self.level(entry)).collect()
    }
    /// Weights of a range of entries in the view, in raw tokens.
    fn view_weights(&self, entries: Range<usize>) -> Vec<u64> {
        entries.map(|entry| self.view_weight(entry)).collect()
    }
    /// Whether entries of a range are protected.
    fn protections(&self, entries: Range<usize>) -> Vec<bool> {
        entries.map(|entry| self.protection(entry).is_some()).collect()
    }
    /// Pins an entry for good.
    ///
    /// # Errors
    /// It is reduced already, or pins weigh too much.
    fn pin(&mut self, entry: usize) -> Result<(), Refusal> {
        let _ = entry;
        Err(Refusal::NotGranted)
    }
    /// Has the next summary stage cover the groups before `end`, be the target reached or not.
    ///
    /// # Errors
    /// There is no such stage, or nothing for it to cover.
    fn request_summary(&mut self, end: usize) -> Result<(), Refusal> {
        let _ = end;
        Err(Refusal::NotGranted)
    }
}

/// A strategy: it proposes, the ledger disposes.
pub trait Stage {
    /// Short snake-case name, used as reason code in notices.
    fn name(&self) -> &str;

    /// Hands in proposals, oldest entries first as a rule, until the target is reached or ideas run out.
    ///
    /// Must be deterministic in what `ctx` shows.
    fn plan(&self, ctx: &mut StageContext<'_>);

    /// Whether this stage asks for a pass although the view is below the trigger (an entry-count limit).
    ///
    /// `entries` is the number of pieces in the present view.
    fn wants_pass(&self, entries: usize) -> bool {
        let _ = entries;
        false
    }
}
