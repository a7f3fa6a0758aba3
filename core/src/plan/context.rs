//! What a stage sees, and how it proposes.

use alloc::{string::String, vec::Vec};
use core::{fmt, ops::Range};

use super::{Desk, Level, Proposal, Refusal, ToolRule};
use crate::{
    budget::TokenBudget,
    transcript::{Columns, EntryKind, Transcript},
};

/// What a stage sees.
pub struct StageContext<'a> {
    transcript: &'a dyn Transcript,
    columns: &'a Columns,
    budget: TokenBudget,
    aggressive: bool,
    tail_start: usize,
    desk: &'a mut dyn Desk,
}

impl fmt::Debug for StageContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StageContext").field("budget", &self.budget).field("aggressive", &self.aggressive).finish()
    }
}

impl<'a> StageContext<'a> {
    /// The context of one call; made by the planner, and by tests of stages.
    #[must_use]
    pub fn new(
        transcript: &'a dyn Transcript,
        columns: &'a Columns,
        budget: TokenBudget,
        aggressive: bool,
        tail_start: usize,
        desk: &'a mut dyn Desk,
    ) -> Self {
        Self { transcript, columns, budget, aggressive, tail_start, desk }
    }

    /// The record.
    #[must_use]
    pub fn transcript(&self) -> &'a dyn Transcript {
        self.transcript
    }

    /// Facts about every entry.
    #[must_use]
    pub fn columns(&self) -> &'a Columns {
        self.columns
    }

    /// The room.
    #[must_use]
    pub const fn budget(&self) -> TokenBudget {
        self.budget
    }

    /// Whether a rejected prompt is being made smaller: thresholds are to be dropped.
    #[must_use]
    pub const fn aggressive(&self) -> bool {
        self.aggressive
    }

    /// First group of the protected tail.
    #[must_use]
    pub const fn tail_start(&self) -> usize {
        self.tail_start
    }

    /// Groups of `range` that no note covers, ascending.
    #[must_use]
    pub fn open_groups(&self, range: Range<usize>) -> Vec<usize> {
        let mut groups = Vec::new();
        let mut group = self.desk.next_open_group(range.start);
        while group < range.end {
            groups.push(group);
            group = self.desk.next_open_group(group + 1);
        }
        groups
    }

    /// Entries before the tail that no note covers, in the order of the view.
    ///
    /// Pinned ones are among them; proposals about those are refused.
    #[must_use]
    pub fn visible(&self) -> Vec<usize> {
        self.open_groups(0..self.tail_start).into_iter().flat_map(|group| self.columns.members(group)).collect()
    }

    /// Tool results among [`visible`](Self::visible) that answer a call, oldest first; those of tools to be
    /// dropped first come first, those of tools never to be touched not at all.
    #[must_use]
    pub fn results(&self) -> Vec<usize> {
        let ruled = self.desk.has_tool_rules();
        let mut first = Vec::new();
        let mut group = self.desk.next_open_group(0);
        // A group has one as a rule.
        let mut others = Vec::with_capacity(self.tail_start.saturating_sub(group));
        while group < self.tail_start {
            for entry in self.columns.members(group) {
                if self.columns.kind(entry) != EntryKind::ToolResult || self.columns.is_orphan(entry) {
                    continue;
                }
                let rule = if ruled { self.desk.tool_rule(self.tool_name(entry)) } else { ToolRule::Ordinary };
                match rule {
                    ToolRule::Never => {}
                    ToolRule::DropFirst => first.push(entry),
                    _ => others.push(entry),
                }
            }
            group = self.desk.next_open_group(group + 1);
        }
        if first.is_empty() {
            return others;
        }
        first.extend(others);
        first
    }

    /// Name of the tool whose call or result an entry is.
    #[must_use]
    pub fn tool_name(&self, entry: usize) -> &'a str {
        let call = match self.columns.kind(entry) {
            EntryKind::ToolResult if !self.columns.is_orphan(entry) => self.columns.pair(entry) as usize,
            _ => entry,
        };
        self.transcript.entry(call).name
    }

    /// The operator's rule for the tool of that name.
    #[must_use]
    pub fn tool_rule(&self, name: &str) -> ToolRule {
        self.desk.tool_rule(name)
    }

    /// Level of an entry.
    #[must_use]
    pub fn level(&self, entry: usize) -> Level {
        self.desk.level(entry)
    }

    /// Weight of an entry in the view, in raw tokens.
    #[must_use]
    pub fn view_weight(&self, entry: usize) -> u64 {
        self.desk.view_weight(entry)
    }

    /// Whether notes cover anything.
    #[must_use]
    pub fn has_notes(&self) -> bool {
        self.desk.has_notes()
    }

    /// Levels of a range of entries, at less than a search for each.
    ///
    /// # Panics
    /// There is no such range.
    #[must_use]
    pub fn levels(&self, entries: Range<usize>) -> Vec<Level> {
        self.desk.levels(entries)
    }

    /// Weights of a range of entries in the view in raw tokens, likewise.
    ///
    /// # Panics
    /// There is no such range.
    #[must_use]
    pub fn view_weights(&self, entries: Range<usize>) -> Vec<u64> {
        self.desk.view_weights(entries)
    }

    /// Whether entries of a range are in the tail or pinned, likewise.
    ///
    /// # Panics
    /// There is no such range.
    #[must_use]
    pub fn protections(&self, entries: Range<usize>) -> Vec<bool> {
        self.desk.protections(entries)
    }

    /// Calibrated tokens of the view, everything accepted so far included.
    #[must_use]
    pub fn view_tokens(&self) -> u64 {
        self.desk.view_tokens()
    }

    /// Whether the view is at or below the target.
    #[must_use]
    pub fn reached_target(&self) -> bool {
        self.desk.view_tokens() <= self.budget.target
    }

    /// Whether an entry is in the tail or pinned.
    #[must_use]
    pub fn is_protected(&self, entry: usize) -> bool {
        self.desk.protection(entry).is_some()
    }

    /// What a proposal would save in raw tokens, without handing it in.
    ///
    /// # Errors
    /// The reason for which the ledger would refuse it.
    pub fn saving(&self, proposal: &Proposal) -> Result<u64, Refusal> {
        self.desk.saving(proposal)
    }

    /// Hands in a proposal; answers the raw tokens it saves.
    ///
    /// # Errors
    /// The reason for which the ledger refuses it. Nothing is changed then.
    pub fn propose(&mut self, proposal: Proposal) -> Result<u64, Refusal> {
        self.desk.propose(proposal)
    }

    /// Adds one human-readable line to the notice.
    pub fn explain(&mut self, line: impl Into<String>) {
        self.desk.explain(line.into());
    }

    /// Pins an entry for good: it stays verbatim wherever it stands. Pins of stages and of the user together may weigh
    /// a tenth of what is usable when a stage pins, so that no stage can fill the view with what cannot shrink.
    ///
    /// # Errors
    /// It is reduced already, or the budget is used up.
    pub fn pin(&mut self, entry: usize) -> Result<(), Refusal> {
        self.desk.pin(entry)
    }

    /// Has the next summary stage cover the groups before `end`, be the target reached or not.
    ///
    /// # Errors
    /// No summary stage follows, none can be made, or there is nothing before `end` for it to cover.
    pub fn request_summary(&mut self, end: usize) -> Result<(), Refusal> {
        self.desk.request_summary(end)
    }

    /// Raw tokens that `tokens` calibrated ones buy.
    #[must_use]
    pub fn raw_for(&self, tokens: u64) -> u64 {
        self.desk.raw_for(tokens)
    }

    /// Whether the text of an entry has at least `chars` characters (media count as any length).
    #[must_use]
    pub fn has_chars(&self, entry: usize, chars: usize) -> bool {
        if self.columns.has_media(entry) {
            return true;
        }
        crate::text::has_chars(&crate::transcript::text_of(self.transcript, entry), chars)
    }

    /// Bytes of the first `chars` characters of an entry's text.
    #[must_use]
    pub fn head_bytes(&self, entry: usize, chars: usize) -> u32 {
        let text = crate::transcript::text_of(self.transcript, entry);
        u32::try_from(crate::text::head_chars(&text, chars)).unwrap_or(u32::MAX)
    }
}
