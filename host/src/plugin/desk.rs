//! The pass's end of the line: answers what plugins ask.

use std::collections::HashMap;
use std::ops::Range;

use foreshorten_core::{
    plan::{Level, Refusal, StageContext, ToolRule},
    state::Ledger,
    text::floor_boundary,
    transcript::{Columns, EntryKind, NONE, PartRef, Transcript},
};

use super::line::{Answer, Ask, Cells, Column, Room};

/// The record as a plugin may look at it.
pub(super) trait Sight {
    fn record(&self) -> &dyn Transcript;
    fn columns(&self) -> &Columns;
    fn levels(&self, entries: Range<usize>) -> Vec<Level>;
    fn view_weights(&self, entries: Range<usize>) -> Vec<u64>;
    fn protections(&self, entries: Range<usize>) -> Vec<bool>;
    fn rule(&self, tool: &str) -> ToolRule;
    /// Whether there are notes at all.
    fn has_notes(&self) -> bool;
    /// Whether a note covers the group, be it shown or not.
    fn is_noted(&self, group: usize) -> bool;
}

impl Sight for StageContext<'_> {
    fn record(&self) -> &dyn Transcript {
        self.transcript()
    }
    fn columns(&self) -> &Columns {
        StageContext::columns(self)
    }
    fn levels(&self, entries: Range<usize>) -> Vec<Level> {
        StageContext::levels(self, entries)
    }
    fn view_weights(&self, entries: Range<usize>) -> Vec<u64> {
        StageContext::view_weights(self, entries)
    }
    fn protections(&self, entries: Range<usize>) -> Vec<bool> {
        StageContext::protections(self, entries)
    }
    fn rule(&self, tool: &str) -> ToolRule {
        self.tool_rule(tool)
    }
    fn has_notes(&self) -> bool {
        StageContext::has_notes(self)
    }
    fn is_noted(&self, group: usize) -> bool {
        self.open_groups(group..group + 1).is_empty()
    }
}

/// The record between decisions, for summarizers.
pub(super) struct Settled<'a> {
    pub(super) record: &'a dyn Transcript,
    pub(super) columns: &'a Columns,
    pub(super) ledger: &'a Ledger,
}

impl Sight for Settled<'_> {
    fn record(&self) -> &dyn Transcript {
        self.record
    }
    fn columns(&self) -> &Columns {
        self.columns
    }
    fn levels(&self, entries: Range<usize>) -> Vec<Level> {
        self.ledger.levels(self.columns, entries)
    }
    fn view_weights(&self, entries: Range<usize>) -> Vec<u64> {
        self.ledger.view_weights(self.columns, entries)
    }
    fn protections(&self, entries: Range<usize>) -> Vec<bool> {
        self.ledger.protections(self.columns, self.columns.groups(), entries)
    }
    // Rules are about reducing; who writes a summary reduces nothing.
    fn rule(&self, _: &str) -> ToolRule {
        ToolRule::Ordinary
    }
    fn has_notes(&self) -> bool {
        !self.ledger.state().notes().is_empty()
    }
    fn is_noted(&self, group: usize) -> bool {
        self.ledger.note_over(self.columns, group).is_some()
    }
}

/// Answers the questions of one call.
#[derive(Debug, Default)]
pub(super) struct Desk {
    /// Names of the tools, and which each call or result is of.
    tools: Option<(Vec<String>, Vec<u32>)>,
    /// Decisions accepted so far.
    pub(super) accepted: u64,
    /// Decisions refused so far, by reason.
    pub(super) refused: Vec<(Refusal, u64)>,
}

impl Desk {
    /// Answers a stage.
    pub(super) fn answer(&mut self, stage: &mut StageContext<'_>, turn: u64, ask: Ask) -> Answer {
        match ask {
            Ask::Room => {
                let budget = stage.budget();
                Answer::Room(Room {
                    len: narrow(stage.columns().len() as u64),
                    window: budget.window,
                    usable: budget.usable,
                    target: budget.target,
                    view_tokens: stage.view_tokens(),
                    aggressive: stage.aggressive(),
                    tail_start: narrow(stage.tail_start() as u64),
                    turn,
                })
            }
            Ask::Decide(proposals) => {
                let codes = proposals.into_iter().map(|proposal| {
                    let verdict = stage.propose(proposal).map(drop);
                    self.count(verdict)
                });
                Answer::Codes(codes.collect())
            }
            Ask::WouldSave(proposals) => {
                let saving = |proposal| stage.saving(&proposal).map_or(0, narrow);
                Answer::Words(proposals.into_iter().map(saving).collect())
            }
            Ask::Raw(tokens) => Answer::Long(stage.raw_for(tokens)),
            Ask::RequestSummary(end) => {
                let verdict = stage.request_summary(end as usize);
                Answer::Codes(vec![self.count(verdict)])
            }
            Ask::Pin(entry) => {
                let verdict = stage.pin(entry as usize);
                Answer::Codes(vec![self.count(verdict)])
            }
            other => self.look(stage, other),
        }
    }

    fn count(&mut self, verdict: Result<(), Refusal>) -> u8 {
        match verdict {
            Ok(()) => self.accepted += 1,
            Err(why) => match self.refused.iter_mut().find(|(known, _)| *known == why) {
                Some((_, count)) => *count += 1,
                None => self.refused.push((why, 1)),
            },
        }
        code_of(verdict)
    }

    /// Answers what only looks.
    pub(super) fn look(&mut self, sight: &dyn Sight, ask: Ask) -> Answer {
        let record = sight.record();
        let len = sight.columns().len();
        let known = |entry: u32| (entry as usize) < len;
        match ask {
            Ask::Column(column, range) => Answer::Cells(self.column(sight, column, range)),
            Ask::Tools => Answer::Texts(self.tools(sight).0.clone()),
            Ask::CallId(entry) if known(entry) => Answer::Text(record.entry(entry as usize).call_id.to_owned()),
            Ask::PartCount(entry) if known(entry) => Answer::Word(record.entry(entry as usize).parts),
            Ask::PartKind(entry, part) if known(entry) && part < record.entry(entry as usize).parts => {
                Answer::Word(match record.part(entry as usize, part as usize) {
                    PartRef::Text(_) => 0,
                    PartRef::Image(_) => 1,
                    PartRef::File(_) => 2,
                    PartRef::Opaque(_) => 3,
                })
            }
            Ask::Text(entry, part, offset, max) if known(entry) && part < record.entry(entry as usize).parts => {
                let text = match record.part(entry as usize, part as usize) {
                    PartRef::Text(text) => cut(text, offset, max),
                    _ => "",
                };
                Answer::Text(text.to_owned())
            }
            Ask::Texts(entries, max, mut left) => {
                let mut texts = Vec::new();
                for entry in entries {
                    let text = if known(entry) { beginning(record, entry as usize, max) } else { String::new() };
                    let Some(rest) = left.checked_sub(text.len() as u64) else { break };
                    left = rest;
                    texts.push(text);
                }
                Answer::Texts(texts)
            }
            Ask::CallId(_) | Ask::Text(..) => Answer::Text(String::new()),
            Ask::PartCount(_) => Answer::Word(0),
            Ask::PartKind(..) => Answer::Word(u32::from(u8::MAX)),
            Ask::Room => Answer::Room(Room { len: narrow(len as u64), ..Room::default() }),
            // Only stages decide.
            Ask::Decide(proposals) => Answer::Codes(vec![REFUSED; proposals.len()]),
            Ask::WouldSave(proposals) => Answer::Words(vec![0; proposals.len()]),
            Ask::Raw(_) => Answer::Long(0),
            Ask::RequestSummary(_) | Ask::Pin(_) => Answer::Codes(vec![REFUSED]),
        }
    }

    fn column(&mut self, sight: &dyn Sight, column: Column, range: Range<u32>) -> Cells {
        let columns = sight.columns();
        let record = sight.record();
        let end = (range.end as usize).min(columns.len());
        let entries = (range.start as usize).min(end)..end;
        match column {
            Column::Kinds => Cells::Bytes(entries.map(|entry| columns.kind(entry) as u8).collect()),
            Column::Marks => Cells::Halves(marks(sight, entries)),
            Column::Levels => Cells::Bytes(sight.levels(entries).into_iter().map(|level| level as u8).collect()),
            Column::Groups => Cells::Words(columns.group_of_each()[entries].to_vec()),
            Column::Pairs => Cells::Words(columns.pairs()[entries].to_vec()),
            Column::Weights => Cells::Words(columns.weights()[entries].to_vec()),
            Column::ViewWeights => Cells::Words(sight.view_weights(entries).into_iter().map(narrow).collect()),
            Column::Sizes => Cells::Words(entries.map(|entry| text_bytes(record, entry)).collect()),
            Column::ToolIds => Cells::Words(self.tools(sight).1[entries].to_vec()),
            Column::Rules => {
                let (names, ids) = self.tools(sight);
                let rules: Vec<u8> = names.iter().map(|name| rule_code(sight.rule(name))).collect();
                Cells::Bytes(ids[entries].iter().map(|&id| rules.get(id as usize).copied().unwrap_or(0)).collect())
            }
        }
    }

    fn tools(&mut self, sight: &dyn Sight) -> &(Vec<String>, Vec<u32>) {
        self.tools.get_or_insert_with(|| {
            let (columns, record) = (sight.columns(), sight.record());
            let mut places: HashMap<String, u32> = HashMap::new();
            let mut names = Vec::new();
            let mut ids = vec![NONE; columns.len()];
            for entry in 0..columns.len() {
                ids[entry] = match columns.kind(entry) {
                    EntryKind::ToolCall => {
                        let name = record.entry(entry).name;
                        match places.get(name) {
                            Some(&place) => place,
                            None => {
                                let place = narrow(names.len() as u64);
                                places.insert(name.to_owned(), place);
                                names.push(name.to_owned());
                                place
                            }
                        }
                    }
                    // A result stands after its call.
                    EntryKind::ToolResult => ids.get(columns.pair(entry) as usize).copied().unwrap_or(NONE),
                    _ => NONE,
                };
            }
            (names, ids)
        })
    }
}

/// A decision about one entry, as `decisions.would-save` numbers them; `None` for one of a later host.
#[cfg(any(feature = "dylib", feature = "wasm"))]
pub(super) fn single(what: u8, entry: u32, a: u32, b: u32) -> Option<foreshorten_core::plan::Proposal> {
    use foreshorten_core::plan::Proposal;

    let entry = entry as usize;
    Some(match what {
        0 => Proposal::Clear { entry },
        1 => Proposal::ClearSuperseded { entry },
        2 => Proposal::Offload { entry, head: a, tail: b },
        3 => Proposal::ElideMedia { entry, parts: None },
        4 => Proposal::ElideMedia { entry, parts: Some(vec![a]) },
        5 => Proposal::ClipArguments { entry },
        6 => Proposal::OmitReasoning { entry },
        7 => Proposal::Persist { entry, head: a },
        _ => return None,
    })
}

/// The code of a rule, as `plugins/wit` numbers them.
const fn rule_code(rule: ToolRule) -> u8 {
    match rule {
        ToolRule::Ordinary => 0,
        ToolRule::Never => 1,
        ToolRule::KeepArguments => 2,
        ToolRule::DropFirst => 3,
        _ => REFUSED,
    }
}

fn marks(sight: &dyn Sight, entries: Range<usize>) -> Vec<u16> {
    let columns = sight.columns();
    let bit = |at: u16, set: bool| u16::from(set) << at;
    let mut marks: Vec<u16> = entries
        .clone()
        .zip(sight.protections(entries.clone()))
        .map(|(entry, protected)| {
            bit(0, columns.is_error(entry))
                | bit(1, columns.has_media(entry))
                | bit(2, protected)
                | bit(3, columns.is_sealed(entry))
                | bit(4, columns.is_recall(entry))
                | bit(5, columns.is_orphan(entry))
                | bit(6, columns.is_pending(entry))
        })
        .collect();
    // Only where there are notes does one keep anything.
    if sight.has_notes() {
        let levels = sight.levels(entries.clone());
        for ((entry, mark), level) in entries.zip(&mut marks).zip(levels) {
            *mark |= bit(7, level != Level::Covered && sight.is_noted(columns.group(entry)));
        }
    }
    marks
}

fn text_bytes(record: &dyn Transcript, entry: usize) -> u32 {
    let parts = record.entry(entry).parts as usize;
    let bytes = (0..parts).map(|part| match record.part(entry, part) {
        PartRef::Text(text) => text.len() as u64,
        _ => 0,
    });
    narrow(bytes.sum())
}

/// The first `max` bytes of what `text_of` answers. A plugin may ask for no bytes of one large entry two million times in
/// one call, in the thread of the turn: no more is put together than is given.
fn beginning(record: &dyn Transcript, entry: usize, max: u32) -> String {
    let mut all = String::new();
    let mut seen = false;
    for part in 0..record.entry(entry).parts as usize {
        let left = (max as usize).saturating_sub(all.len());
        if left == 0 {
            break;
        }
        if let PartRef::Text(text) = record.part(entry, part) {
            if seen {
                all.push('\n');
            }
            seen = true;
            let fits = floor_boundary(text, (max as usize).saturating_sub(all.len()));
            all.push_str(&text[..fits]);
            if fits < text.len() {
                break;
            }
        }
    }
    all
}

/// At most `max` bytes from `offset`, at character boundaries.
pub(super) fn cut(text: &str, offset: u32, max: u32) -> &str {
    let start = floor_boundary(text, offset as usize);
    let rest = &text[start..];
    &rest[..floor_boundary(rest, max as usize)]
}

/// A line that people read: cut, and without control characters.
#[cfg(any(feature = "dylib", feature = "wasm"))]
pub(super) fn one_line(text: &str, most: usize) -> String {
    let cut = &text[..floor_boundary(text, most)];
    cut.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The code of a refusal that has none of its own.
const REFUSED: u8 = 255;

/// The code of a verdict, as `plugins/wit` numbers them. Codes are never given another meaning.
#[must_use]
pub const fn code_of(verdict: Result<(), Refusal>) -> u8 {
    match verdict {
        Ok(()) => 0,
        Err(Refusal::OutOfRange) => 1,
        Err(Refusal::WrongKind) => 2,
        Err(Refusal::Tail) => 3,
        Err(Refusal::Pinned) => 4,
        Err(Refusal::Covered) => 5,
        Err(Refusal::NotRising) => 6,
        Err(Refusal::Sealed) => 7,
        Err(Refusal::Exempt) => 8,
        Err(Refusal::Pending) => 9,
        Err(Refusal::NotSmaller) => 10,
        Err(Refusal::NotGranted) => 11,
        Err(Refusal::NoBudget) => 12,
        Err(_) => REFUSED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreshorten_core::transcript::{Entry, OwnedTranscript, Part, text_of};

    #[test]
    fn the_beginning_of_an_entry_is_that_of_its_whole_text() {
        let mut record = OwnedTranscript::default();
        let parts =
            |texts: &[&str]| texts.iter().fold(Entry::user(""), |entry, text| entry.with(Part::Text((*text).into())));
        record.push(Entry::user("aa€b"));
        record.push(parts(&["aa€b", "", "é", "x"]));
        record.push(Entry::user("é").with(Part::Image(String::new(), b"x".to_vec())).with(Part::Text("€".into())));
        record.push(Entry::user("").with(Part::Image(String::new(), b"x".to_vec())));
        for entry in 0..record.len() {
            let whole = text_of(&record, entry);
            for max in 0..30 {
                assert_eq!(beginning(&record, entry, max), cut(&whole, 0, max), "{entry}, {max}");
            }
            assert_eq!(beginning(&record, entry, u32::MAX), whole);
        }
    }
}
