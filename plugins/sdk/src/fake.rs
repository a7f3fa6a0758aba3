//! A host for unit tests: a record made by hand, and what a plugin did to it.
//!
//! ```
//! use foreshorten_plugin::{Pass, Stage, fake::{Fake, Did}};
//!
//! struct ClearAll;
//! impl Stage for ClearAll {
//!     fn plan(pass: &mut impl Pass) -> Result<(), String> {
//!         let all: Vec<u32> = (0..foreshorten_plugin::History::len(pass)).collect();
//!         pass.clear(&all);
//!         Ok(())
//!     }
//! }
//!
//! let mut fake = Fake::default();
//! fake.user("hello").call("read", "{}", "a long result").call("read", "{}", "the newest").tail(1);
//! ClearAll::plan(&mut fake).unwrap();
//! assert_eq!(fake.did, [Did::Clear(2)]);
//! ```

use alloc::{string::String, vec, vec::Vec};

use crate::host::cut;
use crate::{Code, History, Kind, Pass, Reduction, Task, mark};

/// One entry.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// Code of its [`Kind`].
    pub kind: u8,
    /// Facts, as bits of [`mark`].
    pub marks: u16,
    /// Its group.
    pub group: u32,
    /// The matching call or result.
    pub pair: u32,
    /// Name of its tool.
    pub tool: String,
    /// Its text.
    pub text: String,
    /// Images.
    pub images: u32,
    /// What the view shows.
    pub level: u8,
    /// The rule for its tool.
    pub rule: u8,
}

/// A decision that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Did {
    /// A result gave way to a marker.
    Clear(u32),
    /// Likewise, for being superseded.
    Supersede(u32),
    /// A result gave way to a preview: entry, head, tail.
    Offload(u32, u32, u32),
    /// A result gave way to the marker of a persisted one: entry, head.
    Persist(u32, u32),
    /// Images did: entry, part (`None`: all).
    Elide(u32, Option<u32>),
    /// Arguments did.
    Clip(u32),
    /// Reasoning was left out.
    Omit(u32),
    /// Groups gave way to a note.
    Snip(u32, u32),
    /// A summary was asked for.
    RequestSummary(u32),
    /// An entry was pinned.
    Pin(u32),
    /// A result gave way to the plugin's text.
    Condense(u32, String),
}

/// The host. It checks the simplest rules only: kinds, tail, levels. The real one knows more.
#[derive(Clone, Debug, Default)]
pub struct Fake {
    /// The record.
    pub entries: Vec<Entry>,
    /// Configuration, as JSON.
    pub config: String,
    /// The target in tokens; a token is four bytes here.
    pub target: u64,
    /// The provider rejected the view.
    pub aggressive: bool,
    /// Groups in the tail.
    pub tail_groups: u32,
    /// What the plugin decided.
    pub did: Vec<Did>,
    /// Lines for the notice.
    pub lines: Vec<String>,
    /// What it keeps.
    pub memo: Vec<u8>,
    /// For summarizers: answers so far.
    pub replies: Vec<String>,
    /// The summary so far.
    pub prior: String,
    /// What it asked a model: system, user.
    pub asked: Vec<(String, String)>,
    /// What it wrote: heading, text.
    pub written: Vec<(String, String)>,
}

impl Fake {
    fn push(&mut self, kind: u8, group: u32, text: &str) -> &mut Entry {
        let entry = Entry { kind, group, pair: u32::MAX, text: text.into(), ..Entry::default() };
        self.entries.push(entry);
        let last = self.entries.len() - 1;
        &mut self.entries[last]
    }

    fn groups(&self) -> u32 {
        self.entries.iter().map(|entry| entry.group + 1).max().unwrap_or(0)
    }

    /// Adds something the user said.
    pub fn user(&mut self, text: &str) -> &mut Self {
        let group = self.groups();
        self.push(1, group, text);
        self
    }

    /// Adds a call and its result.
    pub fn call(&mut self, tool: &str, arguments: &str, result: &str) -> &mut Self {
        let (group, at) = (self.groups(), self.entries.len() as u32);
        let call = self.push(4, group, arguments);
        (call.tool, call.pair) = (tool.into(), at + 1);
        let answer = self.push(5, group, result);
        (answer.tool, answer.pair) = (tool.into(), at);
        self
    }

    /// Marks the newest entry as an error.
    pub fn failed(&mut self) -> &mut Self {
        if let Some(last) = self.entries.last_mut() {
            last.marks |= mark::ERROR;
        }
        self
    }

    /// Gives the newest entry an image.
    pub fn image(&mut self) -> &mut Self {
        if let Some(last) = self.entries.last_mut() {
            last.marks |= mark::MEDIA;
            last.images += 1;
        }
        self
    }

    /// Puts the newest groups into the tail.
    pub fn tail(&mut self, groups: u32) -> &mut Self {
        self.tail_groups = groups;
        self
    }

    fn range(&self, start: u32, count: u32) -> &[Entry] {
        let end = start.saturating_add(count).min(self.len()) as usize;
        &self.entries[(start as usize).min(end)..end]
    }

    fn decide(&mut self, entry: u32, kind: Kind, level: u8, did: Did) -> Code {
        let tail = self.tail_start();
        let Some(at) = self.entries.get_mut(entry as usize) else { return 1 };
        let code = if at.group >= tail {
            3
        } else if Kind::from(at.kind) != kind && kind != Kind::Other {
            2
        } else if at.level >= level {
            6
        } else {
            at.level = level;
            0
        };
        if code == 0 {
            self.did.push(did);
        }
        code
    }

    fn each(&mut self, entries: &[u32], kind: Kind, level: u8, did: impl Fn(u32) -> Did) -> Vec<Code> {
        entries.iter().map(|&entry| self.decide(entry, kind, level, did(entry))).collect()
    }
}

impl History for Fake {
    fn config(&self) -> String {
        if self.config.is_empty() { "{}".into() } else { self.config.clone() }
    }
    fn log(&self, _level: u8, _message: &str) {}
    fn len(&self) -> u32 {
        self.entries.len() as u32
    }
    fn kinds(&self, start: u32, count: u32) -> Vec<u8> {
        self.range(start, count).iter().map(|entry| entry.kind).collect()
    }
    fn marks(&self, start: u32, count: u32) -> Vec<u16> {
        let tail = self.tail_start();
        let mark = |entry: &Entry| entry.marks | if entry.group >= tail { mark::PROTECTED } else { 0 };
        self.range(start, count).iter().map(mark).collect()
    }
    fn levels(&self, start: u32, count: u32) -> Vec<u8> {
        self.range(start, count).iter().map(|entry| entry.level).collect()
    }
    fn groups(&self, start: u32, count: u32) -> Vec<u32> {
        self.range(start, count).iter().map(|entry| entry.group).collect()
    }
    fn pairs(&self, start: u32, count: u32) -> Vec<u32> {
        self.range(start, count).iter().map(|entry| entry.pair).collect()
    }
    fn weights(&self, start: u32, count: u32) -> Vec<u32> {
        self.range(start, count).iter().map(|entry| entry.text.len() as u32 / 4 + entry.images * 1_600).collect()
    }
    fn view_weights(&self, start: u32, count: u32) -> Vec<u32> {
        let levels = self.levels(start, count);
        let weight = |(weight, level): (u32, &u8)| if *level == 0 { weight } else { weight.min(20) };
        self.weights(start, count).into_iter().zip(&levels).map(weight).collect()
    }
    fn sizes(&self, start: u32, count: u32) -> Vec<u32> {
        self.range(start, count).iter().map(|entry| entry.text.len() as u32).collect()
    }
    fn tool_ids(&self, start: u32, count: u32) -> Vec<u32> {
        let tools = self.tools();
        let id = |entry: &Entry| tools.iter().position(|tool| *tool == entry.tool).map_or(u32::MAX, |at| at as u32);
        self.range(start, count).iter().map(id).collect()
    }
    fn rules(&self, start: u32, count: u32) -> Vec<u8> {
        self.range(start, count).iter().map(|entry| entry.rule).collect()
    }
    fn tools(&self) -> Vec<String> {
        let mut tools = Vec::new();
        for entry in self.entries.iter().filter(|entry| entry.kind == 4) {
            if !tools.contains(&entry.tool) {
                tools.push(entry.tool.clone());
            }
        }
        tools
    }
    fn call_id(&self, entry: u32) -> String {
        self.entries.get(entry as usize).map_or_else(String::new, |at| alloc::format!("call_{}", entry.min(at.pair)))
    }
    fn part_count(&self, entry: u32) -> u32 {
        self.entries.get(entry as usize).map_or(0, |at| 1 + at.images)
    }
    fn part_kind(&self, entry: u32, part: u32) -> u8 {
        match (self.part_count(entry), part) {
            (0, _) => u8::MAX,
            (_, 0) => 0,
            (parts, part) if part < parts => 1,
            _ => u8::MAX,
        }
    }
    fn text(&self, entry: u32, part: u32, offset: u32, max: u32) -> String {
        match self.entries.get(entry as usize) {
            Some(at) if part == 0 => cut(&at.text, offset, max),
            _ => String::new(),
        }
    }
    fn texts(&self, entries: &[u32], max: u32) -> Vec<String> {
        entries.iter().map(|&entry| self.text(entry, 0, 0, max)).collect()
    }
}

impl Pass for Fake {
    fn window(&self) -> u64 {
        200_000
    }
    fn usable(&self) -> u64 {
        180_000
    }
    fn target(&self) -> u64 {
        self.target
    }
    fn view_tokens(&self) -> u64 {
        self.view_weights(0, u32::MAX).iter().map(|&weight| u64::from(weight)).sum()
    }
    fn aggressive(&self) -> bool {
        self.aggressive
    }
    fn tail_start(&self) -> u32 {
        self.groups().saturating_sub(self.tail_groups)
    }
    fn turn(&self) -> u64 {
        1
    }
    fn raw(&self, tokens: u64) -> u64 {
        tokens
    }
    fn clear(&mut self, entries: &[u32]) -> Vec<Code> {
        self.each(entries, Kind::ToolResult, 4, Did::Clear)
    }
    fn clear_superseded(&mut self, entries: &[u32]) -> Vec<Code> {
        self.each(entries, Kind::ToolResult, 4, Did::Supersede)
    }
    fn offload(&mut self, entries: &[u32], head: u32, tail: u32) -> Vec<Code> {
        self.each(entries, Kind::ToolResult, 3, |entry| Did::Offload(entry, head, tail))
    }
    fn persist(&mut self, entries: &[u32], head: u32) -> Vec<Code> {
        self.each(entries, Kind::ToolResult, 3, |entry| Did::Persist(entry, head))
    }
    fn would_save(&self, what: Reduction, entries: &[u32]) -> Vec<u32> {
        let save = |&entry: &u32| {
            let mut trial = self.clone();
            let before = trial.view_tokens();
            match what {
                Reduction::Clear => trial.clear(&[entry]),
                Reduction::ClearSuperseded => trial.clear_superseded(&[entry]),
                Reduction::Offload { head, tail } => trial.offload(&[entry], head, tail),
                Reduction::ElideMedia => trial.elide_media(&[entry]),
                Reduction::ElidePart { part } => vec![trial.elide_part(entry, part)],
                Reduction::ClipArguments => trial.clip_arguments(&[entry]),
                Reduction::OmitReasoning => trial.omit_reasoning(&[entry]),
                Reduction::Persist { head } => trial.persist(&[entry], head),
            };
            u32::try_from(before - trial.view_tokens()).unwrap_or(u32::MAX)
        };
        entries.iter().map(save).collect()
    }
    fn elide_media(&mut self, entries: &[u32]) -> Vec<Code> {
        self.each(entries, Kind::Other, 1, |entry| Did::Elide(entry, None))
    }
    fn elide_part(&mut self, entry: u32, part: u32) -> Code {
        self.decide(entry, Kind::Other, 1, Did::Elide(entry, Some(part)))
    }
    fn clip_arguments(&mut self, entries: &[u32]) -> Vec<Code> {
        self.each(entries, Kind::ToolCall, 1, Did::Clip)
    }
    fn omit_reasoning(&mut self, entries: &[u32]) -> Vec<Code> {
        self.each(entries, Kind::Reasoning, 4, Did::Omit)
    }
    fn snip(&mut self, start: u32, end: u32) -> Code {
        if start >= end || end > self.tail_start() {
            return 3;
        }
        self.did.push(Did::Snip(start, end));
        0
    }
    fn request_summary(&mut self, end: u32) -> Code {
        self.did.push(Did::RequestSummary(end));
        0
    }
    fn pin(&mut self, entry: u32) -> Code {
        self.did.push(Did::Pin(entry));
        0
    }
    fn condense(&mut self, entry: u32, text: &str) -> Code {
        self.decide(entry, Kind::ToolResult, 2, Did::Condense(entry, text.into()))
    }
    fn explain(&mut self, line: &str) {
        self.lines.push(line.into());
    }
    fn load_memo(&self) -> Vec<u8> {
        self.memo.clone()
    }
    fn store_memo(&mut self, bytes: &[u8]) -> bool {
        self.memo = bytes.into();
        true
    }
}

impl Task for Fake {
    fn span(&self) -> Vec<u32> {
        (0..self.len()).collect()
    }
    fn span_text(&self, offset: u32, max: u32) -> String {
        let all: Vec<&str> = self.entries.iter().map(|entry| entry.text.as_str()).collect();
        cut(&all.join("\n"), offset, max)
    }
    fn prior(&self) -> String {
        self.prior.clone()
    }
    fn sections(&self) -> Vec<String> {
        vec!["Session intent".into(), "Current state".into(), "Next steps".into()]
    }
    fn max_chars(&self) -> u32 {
        16_000
    }
    fn max_output_tokens(&self) -> u32 {
        4_000
    }
    fn replies(&self) -> Vec<String> {
        self.replies.clone()
    }
    fn ask(&mut self, system: &str, user: &str, _max_output_tokens: u32) {
        self.asked.push((system.into(), user.into()));
    }
    fn section(&mut self, heading: &str, text: &str) {
        self.written.push((heading.into(), text.into()));
    }
    fn explain(&mut self, line: &str) {
        self.lines.push(line.into());
    }
}
