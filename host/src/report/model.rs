//! The outcome of one replay as plain data.

use serde::Serialize;

use crate::economics::{BreakEven, Money, PriceRow, Totals};
use crate::plugin::Account;

/// Names of the levels, by code.
pub const LEVEL_NAMES: [&str; 6] = ["verbatim", "elided", "condensed", "preview", "cleared", "covered"];

/// The code of an entry that is not there yet.
pub const LEVEL_ABSENT: u8 = 255;

/// One recorded session, played with one policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReplayReport {
    /// What the session is called: its file name.
    pub session: String,
    /// The format it was read as.
    pub format: String,
    /// Why it was read as that; `""` when it was asked for.
    pub format_reason: String,
    /// The policy in one line.
    pub policy: String,
    /// The model's window in tokens.
    pub window: u64,
    /// The window without the reserve for output.
    pub usable: u64,
    /// A view above this is compacted.
    pub trigger: u64,
    /// What a pass aims for.
    pub target: u64,
    /// The prices all costs are computed with.
    pub price: PriceLabel,
    /// Every recorded model call, in order.
    pub turns: Vec<TurnRow>,
    /// Every pass, in order.
    pub passes: Vec<PassRow>,
    /// The policy's bills added up.
    pub totals: Totals,
    /// The same session without the policy.
    pub baselines: Vec<BaselineRow>,
    /// The level of every entry after each pass: one column for each of `passes`, or none at all.
    pub levels: Vec<LevelColumn>,
    /// Anything the reader should know: entries skipped, parts read as text, a window assumed.
    pub notes: Vec<String>,
    /// What plugins did, by name.
    pub plugins: Account,
}

impl ReplayReport {
    /// Lets go of what is told turn by turn: totals stay, and how many passes there were. A folder of sessions is told in one
    /// table, and must not cost memory for all of their turns.
    pub fn keep_totals(&mut self) {
        (self.turns, self.levels) = (Vec::new(), Vec::new());
        self.baselines.iter_mut().for_each(|baseline| baseline.cumulative = Vec::new());
        for pass in &mut self.passes {
            (pass.reasons, pass.detail) = (Vec::new(), Vec::new());
        }
    }
}

/// The chosen row of the price table, for show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PriceLabel {
    /// The row's name.
    pub id: String,
    /// Who bills.
    pub provider: String,
    /// The models it describes.
    pub models: Vec<String>,
    /// When the figures were read.
    pub date: String,
    /// Where they come from.
    pub source: String,
    /// What is assumed.
    pub note: String,
    /// Writing to the cache is billed apart, so `written` says something.
    pub bills_writes: bool,
    /// Output is billed.
    pub bills_output: bool,
}

impl From<&PriceRow> for PriceLabel {
    fn from(row: &PriceRow) -> Self {
        Self {
            id: row.id.clone(),
            provider: row.provider.clone(),
            models: row.models.clone(),
            date: row.date.clone(),
            source: row.source.clone(),
            note: row.note.clone(),
            bills_writes: row.bills_writes(),
            bills_output: row.output.is_some(),
        }
    }
}

/// One model call under the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TurnRow {
    /// Number of the call, from 1.
    pub turn: u64,
    /// Entries in the record at this call.
    pub entries: u64,
    /// Weight of the view that was sent.
    pub tokens: u64,
    /// Size of the view that was sent.
    pub bytes: u64,
    /// Leading bytes that were those of the view before.
    pub prefix_kept_bytes: u64,
    /// Tokens read from the cache.
    pub cached: u64,
    /// Tokens written to the cache at the write price.
    pub written: u64,
    /// Tokens billed as plain input.
    pub uncached: u64,
    /// What the call cost.
    #[serde(rename = "cost_microdollars")]
    pub cost: Money,
}

/// How many entries a pass brought to each level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Decided {
    /// Parts of them replaced (old images, arguments).
    pub elided: u64,
    /// Condensed.
    pub condensed: u64,
    /// Offloaded, a preview stands.
    pub preview: u64,
    /// Cleared to a marker.
    pub cleared: u64,
    /// Covered by a note.
    pub covered: u64,
}

impl Decided {
    /// The counts with their level's name, cheapest level first.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, u64); 5] {
        [
            ("elided", self.elided),
            ("condensed", self.condensed),
            ("preview", self.preview),
            ("cleared", self.cleared),
            ("covered", self.covered),
        ]
    }

    /// `12 cleared, 3 preview`, or `nothing`.
    #[must_use]
    pub fn words(&self) -> String {
        let counts = self.named().into_iter().filter(|(_, count)| *count > 0);
        let words: Vec<String> =
            counts.map(|(name, count)| format!("{} {name}", super::numbers::thousands(count))).collect();
        if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
    }
}

/// One pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PassRow {
    /// The call it preceded.
    pub turn: u64,
    /// Reason codes of what took effect.
    pub reasons: Vec<String>,
    /// It ran after an overflow, or was told to be.
    pub aggressive: bool,
    /// Weight of the view before.
    pub tokens_before: u64,
    /// Weight of the view after.
    pub tokens_after: u64,
    /// What was decided.
    pub decided: Decided,
    /// The first entry whose place in the view changed.
    pub first_changed: Option<u64>,
    /// Size of the view before the pass.
    pub bytes_before: u64,
    /// Leading bytes of it that stayed.
    pub prefix_kept_bytes: u64,
    /// Tokens of the record, instructions aside, that the view shows as they came.
    pub verbatim_tokens: u64,
    /// The same in per cent of the record, rounded down.
    pub verbatim_percent: u8,
    /// The ladder of last resorts was needed.
    pub ladder: bool,
    /// What the pass costs a warm cache.
    pub break_even: Option<BreakEven>,
    /// The notice's detail lines.
    pub detail: Vec<String>,
}

/// One way of going without the policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BaselineRow {
    /// Its name.
    pub name: String,
    /// Its bills added up.
    pub totals: Totals,
    /// What it has cost after each turn; as long as the report's `turns`, or empty.
    #[serde(rename = "cumulative_microdollars")]
    pub cumulative: Vec<Money>,
}

/// The level of every entry after one pass, oldest entry first. Entries after the last run are verbatim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LevelColumn {
    /// The call the pass preceded.
    pub turn: u64,
    /// The levels, run by run.
    pub runs: Vec<LevelRun>,
}

/// So many entries in a row at one level; in JSON, the pair `[level, entries]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(into = "(u8, u64)")]
pub struct LevelRun {
    /// Code of the level: an index into [`LEVEL_NAMES`], or [`LEVEL_ABSENT`].
    pub level: u8,
    /// Entries.
    pub entries: u64,
}

impl From<LevelRun> for (u8, u64) {
    fn from(run: LevelRun) -> Self {
        (run.level, run.entries)
    }
}

impl LevelColumn {
    /// A column from the level of each entry.
    pub fn of(turn: u64, levels: impl IntoIterator<Item = u8>) -> Self {
        let mut runs: Vec<LevelRun> = Vec::new();
        for level in levels {
            match runs.last_mut() {
                Some(last) if last.level == level => last.entries += 1,
                _ => runs.push(LevelRun { level, entries: 1 }),
            }
        }
        Self { turn, runs }
    }

    /// Entries at each level, by code; absent ones are not counted.
    #[must_use]
    pub fn counts(&self) -> [u64; LEVEL_NAMES.len()] {
        let mut counts = [0_u64; LEVEL_NAMES.len()];
        for run in &self.runs {
            if let Some(count) = counts.get_mut(usize::from(run.level)) {
                *count = count.saturating_add(run.entries);
            }
        }
        counts
    }
}

impl ReplayReport {
    /// Passes that took the ladder of last resorts.
    #[must_use]
    pub fn ladders(&self) -> usize {
        self.passes.iter().filter(|pass| pass.ladder).count()
    }

    /// What the policy has cost after each turn.
    #[must_use]
    pub fn cumulative(&self) -> Vec<Money> {
        let mut sum = Money::ZERO;
        let add = |turn: &TurnRow| {
            sum += turn.cost;
            sum
        };
        self.turns.iter().map(add).collect()
    }
}
