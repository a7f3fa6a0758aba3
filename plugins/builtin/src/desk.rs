//! The host's ledger, as the core's stages see it.

use alloc::{string::String, vec::Vec};
use core::cell::RefCell;

use foreshorten_core::{
    plan::{Desk, Level, Proposal, Refusal, ToolRule},
    transcript::Columns,
};
use foreshorten_plugin::{Code, Pass, Reduction, mark};

use crate::facts::Facts;

const LEVELS: [Level; 6] =
    [Level::Verbatim, Level::Elided, Level::Condensed, Level::Preview, Level::Cleared, Level::Covered];

/// What the view shows of every entry, as of the last decision.
struct Shown {
    levels: Vec<u8>,
    marks: Vec<u16>,
}

pub(crate) struct Remote<'a, 'p, P> {
    facts: &'a Facts,
    columns: &'a Columns,
    pass: &'a RefCell<&'p mut P>,
    shown: Shown,
}

impl<'a, 'p, P: Pass> Remote<'a, 'p, P> {
    pub(crate) fn new(facts: &'a Facts, columns: &'a Columns, pass: &'a RefCell<&'p mut P>) -> Self {
        let shown = Shown { levels: pass.borrow().levels(0, u32::MAX), marks: facts.marks.clone() };
        Self { facts, columns, pass, shown }
    }

    fn weight(&self, entry: usize) -> u64 {
        self.pass.borrow().view_weights(entry as u32, 1).first().copied().unwrap_or(0).into()
    }
}

/// A proposal about one entry, as the interface weighs it.
fn reduction(proposal: &Proposal) -> Option<Reduction> {
    Some(match *proposal {
        Proposal::Clear { .. } => Reduction::Clear,
        Proposal::ClearSuperseded { .. } => Reduction::ClearSuperseded,
        Proposal::Offload { head, tail, .. } => Reduction::Offload { head, tail },
        Proposal::Persist { head, .. } => Reduction::Persist { head },
        Proposal::ElideMedia { parts: None, .. } => Reduction::ElideMedia,
        Proposal::ClipArguments { .. } => Reduction::ClipArguments,
        Proposal::OmitReasoning { .. } => Reduction::OmitReasoning,
        _ => return None,
    })
}

/// What a code means to a stage; none of the core's looks at the reason.
fn verdict(code: Code) -> Result<(), Refusal> {
    match code {
        0 => Ok(()),
        1 => Err(Refusal::OutOfRange),
        2 => Err(Refusal::WrongKind),
        3 => Err(Refusal::Tail),
        4 => Err(Refusal::Pinned),
        5 => Err(Refusal::Covered),
        6 => Err(Refusal::NotRising),
        7 => Err(Refusal::Sealed),
        8 => Err(Refusal::Exempt),
        9 => Err(Refusal::Pending),
        10 => Err(Refusal::NotSmaller),
        12 => Err(Refusal::NoBudget),
        _ => Err(Refusal::NotGranted),
    }
}

impl<P: Pass> Desk for Remote<'_, '_, P> {
    fn level(&self, entry: usize) -> Level {
        LEVELS[usize::from(self.shown.levels[entry]).min(LEVELS.len() - 1)]
    }

    fn view_weight(&self, entry: usize) -> u64 {
        self.weight(entry)
    }

    fn view_tokens(&self) -> u64 {
        self.pass.borrow().view_tokens()
    }

    fn protection(&self, entry: usize) -> Option<Refusal> {
        (self.shown.marks[entry] & mark::PROTECTED != 0).then_some(Refusal::Tail)
    }

    fn saving(&self, proposal: &Proposal) -> Result<u64, Refusal> {
        let (Some(what), Some(entry)) = (reduction(proposal), proposal.entry()) else {
            return Err(Refusal::NotGranted);
        };
        match self.pass.borrow().would_save(what, &[entry as u32])[..] {
            [saved] if saved > 0 => Ok(saved.into()),
            _ => Err(Refusal::NotSmaller),
        }
    }

    fn propose(&mut self, proposal: Proposal) -> Result<u64, Refusal> {
        if let Proposal::Snip { from, to } = proposal {
            let before = self.view_tokens();
            verdict(self.pass.borrow_mut().snip(from as u32, to as u32))?;
            let pass = self.pass.borrow();
            self.shown = Shown { levels: pass.levels(0, u32::MAX), marks: pass.marks(0, u32::MAX) };
            return Ok(before.saturating_sub(pass.view_tokens()));
        }
        let (Some(what), Some(entry)) = (reduction(&proposal), proposal.entry()) else {
            return Err(Refusal::NotGranted);
        };
        let before = self.weight(entry);
        let one = &[entry as u32][..];
        let codes = {
            let mut pass = self.pass.borrow_mut();
            match what {
                Reduction::Clear => pass.clear(one),
                Reduction::ClearSuperseded => pass.clear_superseded(one),
                Reduction::Offload { head, tail } => pass.offload(one, head, tail),
                Reduction::Persist { head } => pass.persist(one, head),
                Reduction::ElideMedia => pass.elide_media(one),
                Reduction::ClipArguments => pass.clip_arguments(one),
                _ => pass.omit_reasoning(one),
            }
        };
        verdict(codes.first().copied().unwrap_or(Code::MAX))?;
        self.shown.levels[entry] = self.pass.borrow().levels(entry as u32, 1).first().copied().unwrap_or(0);
        Ok(before.saturating_sub(self.weight(entry)))
    }

    fn tool_rule(&self, name: &str) -> ToolRule {
        let tool = self.facts.tools.iter().position(|tool| tool == name);
        match tool.and_then(|tool| self.facts.rules.get(tool).copied()) {
            Some(1) => ToolRule::Never,
            Some(2) => ToolRule::KeepArguments,
            Some(3) => ToolRule::DropFirst,
            _ => ToolRule::Ordinary,
        }
    }

    fn next_open_group(&self, group: usize) -> usize {
        let is_open = |&group: &usize| {
            let first = self.columns.group_start(group);
            self.shown.levels[first] != Level::Covered as u8 && self.shown.marks[first] & mark::KEPT == 0
        };
        (group..self.columns.groups()).find(is_open).unwrap_or_else(|| self.columns.groups())
    }

    fn explain(&mut self, line: String) {
        self.pass.borrow_mut().explain(&line);
    }

    fn raw_for(&self, tokens: u64) -> u64 {
        self.pass.borrow().raw(tokens)
    }
}
