//! The record as the core's stages want it, made of columns; texts are fetched when they are looked at.

use alloc::{format, string::String, vec, vec::Vec};
use core::cell::{OnceCell, RefCell};

use foreshorten_core::transcript::{Columns, EntryKind, EntryRef, Media, NONE, PartRef, Transcript};
use foreshorten_plugin::{Pass, mark};

/// What is known of every entry.
pub(crate) struct Facts {
    pub(crate) kinds: Vec<u8>,
    pub(crate) marks: Vec<u16>,
    /// The rule for each tool.
    pub(crate) rules: Vec<u8>,
    pub(crate) tools: Vec<String>,
    tool_ids: Vec<u32>,
    sizes: Vec<u32>,
    weights: Vec<u32>,
    /// Ids of calls and results. Those of the record may be used twice, and pairing by them is the host's business: here
    /// the place of the call is the id, so that pairs come out as the host made them.
    ids: Vec<String>,
}

impl Facts {
    pub(crate) fn read(pass: &impl Pass) -> Self {
        const ALL: u32 = u32::MAX;
        let (kinds, pairs) = (pass.kinds(0, ALL), pass.pairs(0, ALL));
        let id = |(at, (&kind, &pair)): (usize, (&u8, &u32))| match EntryKind::ALL.get(usize::from(kind)) {
            Some(EntryKind::ToolCall) => format!("{at}"),
            // A result without a call must not meet one.
            Some(EntryKind::ToolResult) if pair == NONE => format!("none {at}"),
            Some(EntryKind::ToolResult) => format!("{pair}"),
            _ => String::new(),
        };
        let ids = kinds.iter().zip(&pairs).enumerate().map(id).collect();
        let (tools, tool_ids) = (pass.tools(), pass.tool_ids(0, ALL));
        let mut rules = vec![0; tools.len()];
        for (&tool, rule) in tool_ids.iter().zip(pass.rules(0, ALL)) {
            if let Some(of) = rules.get_mut(tool as usize) {
                *of = rule;
            }
        }
        Self {
            marks: pass.marks(0, ALL),
            rules,
            tools,
            tool_ids,
            sizes: pass.sizes(0, ALL),
            weights: pass.weights(0, ALL),
            kinds,
            ids,
        }
    }

    /// The core's own columns: pairs, groups and facts come out as those of the host.
    pub(crate) fn columns(&self) -> Columns {
        let mut columns = Columns::new();
        columns.reserve(self.kinds.len());
        for &weight in &self.weights {
            columns.push(self, weight);
        }
        columns
    }

    fn has(&self, index: usize, mark: u16) -> bool {
        self.marks[index] & mark != 0
    }

    fn kind(&self, index: usize) -> EntryKind {
        EntryKind::ALL.get(usize::from(self.kinds[index])).copied().unwrap_or(EntryKind::Assistant)
    }
}

/// Without texts: whether there is one is all that columns ask.
impl Transcript for Facts {
    fn len(&self) -> usize {
        self.kinds.len()
    }

    fn entry(&self, index: usize) -> EntryRef<'_> {
        let kind = self.kind(index);
        let name = match kind {
            EntryKind::ToolCall => self.tools.get(self.tool_ids[index] as usize).map_or("", String::as_str),
            _ => "",
        };
        EntryRef {
            call_id: &self.ids[index],
            name,
            is_error: self.has(index, mark::ERROR),
            sealed: self.has(index, mark::SEALED),
            ..EntryRef::new(kind, 1 + u32::from(self.has(index, mark::MEDIA)))
        }
    }

    fn part(&self, index: usize, part: usize) -> PartRef<'_> {
        match part {
            0 => PartRef::Text(if self.sizes[index] > 0 { "x" } else { "" }),
            _ => PartRef::Image(Media { media_type: "", name: "", data: &[] }),
        }
    }
}

/// With texts: all of an entry as one part, as the core's stages only ever look at all of it.
pub(crate) struct Lazy<'a, 'p, P> {
    facts: &'a Facts,
    pass: &'a RefCell<&'p mut P>,
    texts: Vec<OnceCell<String>>,
}

impl<'a, 'p, P: Pass> Lazy<'a, 'p, P> {
    pub(crate) fn new(facts: &'a Facts, pass: &'a RefCell<&'p mut P>) -> Self {
        Self { facts, pass, texts: facts.kinds.iter().map(|_| OnceCell::new()).collect() }
    }
}

impl<P: Pass> Transcript for Lazy<'_, '_, P> {
    fn len(&self) -> usize {
        self.facts.len()
    }

    fn entry(&self, index: usize) -> EntryRef<'_> {
        self.facts.entry(index)
    }

    fn part(&self, index: usize, part: usize) -> PartRef<'_> {
        if part > 0 || self.facts.sizes[index] == 0 {
            return self.facts.part(index, part);
        }
        let fetch = || self.pass.borrow().texts(&[index as u32], u32::MAX).pop().unwrap_or_default();
        PartRef::Text(self.texts[index].get_or_init(fetch))
    }
}
