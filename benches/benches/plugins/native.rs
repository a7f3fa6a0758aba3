//! The interface of plugins over a pass in this process: the same source then runs natively, with nothing in between.

use foreshorten_core::plan::{Level, Proposal, Refusal, StageContext, ToolRule};
use foreshorten_core::transcript::{EntryKind, NONE, PartRef, text_of};
use foreshorten_plugin::{Code, History, Pass, Reduction};

/// A pass as the SDK sees one.
pub(crate) struct Native<'a, 'c> {
    pub(crate) stage: &'a mut StageContext<'c>,
    pub(crate) config: String,
    pub(crate) memo: Vec<u8>,
}

/// `start .. start + count`, clipped.
fn range(stage: &StageContext<'_>, start: u32, count: u32) -> std::ops::Range<usize> {
    let end = (start.saturating_add(count) as usize).min(stage.columns().len());
    (start as usize).min(end)..end
}

fn code(verdict: Result<u64, Refusal>) -> Code {
    foreshorten::plugin::code_of(verdict.map(drop))
}

impl Native<'_, '_> {
    fn each(&mut self, entries: &[u32], proposal: impl Fn(usize) -> Proposal) -> Vec<Code> {
        entries.iter().map(|&entry| code(self.stage.propose(proposal(entry as usize)))).collect()
    }
}

fn reduction(what: Reduction, entry: usize) -> Option<Proposal> {
    Some(match what {
        Reduction::Clear => Proposal::Clear { entry },
        Reduction::ClearSuperseded => Proposal::ClearSuperseded { entry },
        Reduction::Offload { head, tail } => Proposal::Offload { entry, head, tail },
        Reduction::ElideMedia => Proposal::ElideMedia { entry, parts: None },
        Reduction::ElidePart { part } => Proposal::ElideMedia { entry, parts: Some(vec![part]) },
        Reduction::ClipArguments => Proposal::ClipArguments { entry },
        Reduction::OmitReasoning => Proposal::OmitReasoning { entry },
        Reduction::Persist { head } => Proposal::Persist { entry, head },
        _ => return None,
    })
}

impl History for Native<'_, '_> {
    fn config(&self) -> String {
        self.config.clone()
    }
    fn log(&self, _: u8, message: &str) {
        eprintln!("{message}");
    }
    fn len(&self) -> u32 {
        self.stage.columns().len() as u32
    }
    fn kinds(&self, start: u32, count: u32) -> Vec<u8> {
        range(self.stage, start, count).map(|entry| self.stage.columns().kind(entry) as u8).collect()
    }
    fn marks(&self, start: u32, count: u32) -> Vec<u16> {
        let (columns, entries) = (self.stage.columns(), range(self.stage, start, count));
        let bit = |at: u16, set: bool| u16::from(set) << at;
        let protections = self.stage.protections(entries.clone());
        let mut marks: Vec<u16> = entries
            .clone()
            .zip(protections)
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
        if self.stage.has_notes() {
            for ((entry, mark), level) in entries.clone().zip(&mut marks).zip(self.stage.levels(entries)) {
                let group = columns.group(entry);
                let noted = self.stage.open_groups(group..group + 1).is_empty();
                *mark |= bit(7, level != Level::Covered && noted);
            }
        }
        marks
    }
    fn levels(&self, start: u32, count: u32) -> Vec<u8> {
        self.stage.levels(range(self.stage, start, count)).into_iter().map(|level| level as u8).collect()
    }
    fn groups(&self, start: u32, count: u32) -> Vec<u32> {
        self.stage.columns().group_of_each()[range(self.stage, start, count)].to_vec()
    }
    fn pairs(&self, start: u32, count: u32) -> Vec<u32> {
        self.stage.columns().pairs()[range(self.stage, start, count)].to_vec()
    }
    fn weights(&self, start: u32, count: u32) -> Vec<u32> {
        self.stage.columns().weights()[range(self.stage, start, count)].to_vec()
    }
    fn view_weights(&self, start: u32, count: u32) -> Vec<u32> {
        self.stage.view_weights(range(self.stage, start, count)).into_iter().map(|weight| weight as u32).collect()
    }
    fn sizes(&self, start: u32, count: u32) -> Vec<u32> {
        range(self.stage, start, count).map(|entry| text_of(self.stage.transcript(), entry).len() as u32).collect()
    }
    fn tool_ids(&self, start: u32, count: u32) -> Vec<u32> {
        let names = self.tools();
        let id = |entry: usize| match self.stage.columns().kind(entry) {
            EntryKind::ToolCall | EntryKind::ToolResult => {
                let name = self.stage.tool_name(entry);
                names.iter().position(|known| known == name).map_or(NONE, |at| at as u32)
            }
            _ => NONE,
        };
        range(self.stage, start, count).map(id).collect()
    }
    fn rules(&self, start: u32, count: u32) -> Vec<u8> {
        let rule = |entry: usize| match self.stage.tool_rule(self.stage.tool_name(entry)) {
            ToolRule::Ordinary => 0,
            ToolRule::Never => 1,
            ToolRule::KeepArguments => 2,
            ToolRule::DropFirst => 3,
            _ => u8::MAX,
        };
        range(self.stage, start, count).map(rule).collect()
    }
    fn tools(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for entry in 0..self.stage.columns().len() {
            let name = self.stage.tool_name(entry);
            if self.stage.columns().kind(entry) == EntryKind::ToolCall && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }
    fn call_id(&self, entry: u32) -> String {
        self.stage.transcript().entry(entry as usize).call_id.to_owned()
    }
    fn part_count(&self, entry: u32) -> u32 {
        self.stage.transcript().entry(entry as usize).parts
    }
    fn part_kind(&self, entry: u32, part: u32) -> u8 {
        match self.stage.transcript().part(entry as usize, part as usize) {
            PartRef::Text(_) => 0,
            PartRef::Image(_) => 1,
            PartRef::File(_) => 2,
            PartRef::Opaque(_) => 3,
        }
    }
    fn text(&self, entry: u32, part: u32, offset: u32, max: u32) -> String {
        let PartRef::Text(text) = self.stage.transcript().part(entry as usize, part as usize) else {
            return String::new();
        };
        let start = text.floor_char_boundary(offset as usize);
        text[start..text.floor_char_boundary(start.saturating_add(max as usize))].to_owned()
    }
    fn texts(&self, entries: &[u32], max: u32) -> Vec<String> {
        let text = |&entry: &u32| {
            let whole = text_of(self.stage.transcript(), entry as usize);
            whole[..whole.floor_char_boundary(max as usize)].to_owned()
        };
        entries.iter().map(text).collect()
    }
}

impl Pass for Native<'_, '_> {
    fn window(&self) -> u64 {
        self.stage.budget().window
    }
    fn usable(&self) -> u64 {
        self.stage.budget().usable
    }
    fn target(&self) -> u64 {
        self.stage.budget().target
    }
    fn view_tokens(&self) -> u64 {
        self.stage.view_tokens()
    }
    fn aggressive(&self) -> bool {
        self.stage.aggressive()
    }
    fn tail_start(&self) -> u32 {
        self.stage.tail_start() as u32
    }
    fn turn(&self) -> u64 {
        0
    }
    fn raw(&self, tokens: u64) -> u64 {
        self.stage.raw_for(tokens)
    }
    fn clear(&mut self, entries: &[u32]) -> Vec<Code> {
        self.each(entries, |entry| Proposal::Clear { entry })
    }
    fn clear_superseded(&mut self, entries: &[u32]) -> Vec<Code> {
        self.each(entries, |entry| Proposal::ClearSuperseded { entry })
    }
    fn offload(&mut self, entries: &[u32], head: u32, tail: u32) -> Vec<Code> {
        self.each(entries, |entry| Proposal::Offload { entry, head, tail })
    }
    fn persist(&mut self, entries: &[u32], head: u32) -> Vec<Code> {
        self.each(entries, |entry| Proposal::Persist { entry, head })
    }
    fn would_save(&self, what: Reduction, entries: &[u32]) -> Vec<u32> {
        let saved = |&entry: &u32| {
            let proposal = reduction(what, entry as usize)?;
            self.stage.saving(&proposal).ok()
        };
        entries.iter().map(|entry| saved(entry).unwrap_or(0) as u32).collect()
    }
    fn elide_media(&mut self, entries: &[u32]) -> Vec<Code> {
        self.each(entries, |entry| Proposal::ElideMedia { entry, parts: None })
    }
    fn elide_part(&mut self, entry: u32, part: u32) -> Code {
        self.each(&[entry], |entry| Proposal::ElideMedia { entry, parts: Some(vec![part]) })[0]
    }
    fn clip_arguments(&mut self, entries: &[u32]) -> Vec<Code> {
        self.each(entries, |entry| Proposal::ClipArguments { entry })
    }
    fn omit_reasoning(&mut self, entries: &[u32]) -> Vec<Code> {
        self.each(entries, |entry| Proposal::OmitReasoning { entry })
    }
    fn snip(&mut self, start: u32, end: u32) -> Code {
        code(self.stage.propose(Proposal::Snip { from: start as usize, to: end as usize }))
    }
    fn request_summary(&mut self, end: u32) -> Code {
        code(self.stage.request_summary(end as usize).map(|()| 0))
    }
    fn pin(&mut self, entry: u32) -> Code {
        code(self.stage.pin(entry as usize).map(|()| 0))
    }
    fn condense(&mut self, entry: u32, text: &str) -> Code {
        let (by, text) = ("native".to_owned(), text.to_owned());
        code(self.stage.propose(Proposal::Condense { entry: entry as usize, by, text }))
    }
    fn explain(&mut self, line: &str) {
        self.stage.explain(line);
    }
    fn load_memo(&self) -> Vec<u8> {
        self.memo.clone()
    }
    fn store_memo(&mut self, bytes: &[u8]) -> bool {
        self.memo = bytes.to_vec();
        true
    }
}
