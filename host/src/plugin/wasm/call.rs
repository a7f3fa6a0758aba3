//! One call of a component: a fresh store, bounded in everything, and thrown away.

use std::time::Instant;

use foreshorten_core::plan::Proposal;
use wasmtime::component::{ComponentExportIndex, InstancePre};
use wasmtime::{Engine, ResourceLimiter, Store, Trap};

use super::super::desk::one_line;
use super::super::line::{Answer, Ask, Cells, Column, Room};
use super::super::load::nothing;
use super::super::{Call, Done, Fault, Guest, Job, Limits, ModelAsk, Spent};
use super::engine::TICK_MS;

/// A component, ready to be called.
pub(super) struct Prepared {
    pub(super) engine: Engine,
    pub(super) pre: InstancePre<State>,
    pub(super) check: ComponentExportIndex,
    /// `plan` or `step`.
    pub(super) main: ComponentExportIndex,
}

/// What belongs to one call.
pub(super) struct State {
    pub(super) job: Job,
    limiter: Limiter,
    /// The room as of the last decision: stages ask for it all the time.
    room: Option<Room>,
    host_calls: u64,
    text_bytes: u64,
    decisions: u64,
    logged: u32,
    log_dropped: u64,
    pub(super) memo: Option<Vec<u8>>,
    pub(super) lines: Vec<String>,
    pub(super) asked: Option<ModelAsk>,
    pub(super) sections: Vec<(String, String)>,
    section_bytes: usize,
}

/// Lines for the notice that one call may give.
const MAX_LINES: usize = 32;
/// Bytes of one such line, and of one line of log.
const LINE_BYTES: usize = 500;
const LOG_BYTES: usize = 1 << 10;

impl State {
    fn new(job: Job) -> Self {
        let limiter = Limiter { limits: job.limits, total: 0, peak: 0 };
        Self {
            job,
            limiter,
            room: None,
            host_calls: 0,
            text_bytes: 0,
            decisions: 0,
            logged: 0,
            log_dropped: 0,
            memo: None,
            lines: Vec::new(),
            asked: None,
            sections: Vec::new(),
            section_bytes: 0,
        }
    }

    /// Counts a call of the host.
    pub(super) fn enter(&mut self) -> Result<&mut Self, Fault> {
        self.host_calls += 1;
        if self.host_calls > self.job.limits.host_calls_for(self.job.entries.into()) {
            Err(Fault::HostCalls)
        } else {
            Ok(self)
        }
    }

    fn ask(&mut self, ask: Ask) -> Result<Answer, Fault> {
        self.enter()?;
        match &self.job.line {
            Some(line) => line.ask(ask),
            None => Ok(nothing(ask)),
        }
    }

    pub(super) fn room(&mut self) -> Result<Room, Fault> {
        if let Some(room) = self.room {
            return self.enter().map(|_| room);
        }
        match self.ask(Ask::Room)? {
            Answer::Room(room) => Ok(*self.room.insert(room)),
            other => Err(odd(&other)),
        }
    }

    pub(super) fn column(&mut self, column: Column, start: u32, count: u32) -> Result<Cells, Fault> {
        match self.ask(Ask::Column(column, start..start.saturating_add(count)))? {
            Answer::Cells(cells) => Ok(cells),
            other => Err(odd(&other)),
        }
    }

    pub(super) fn word(&mut self, ask: Ask) -> Result<u32, Fault> {
        match self.ask(ask)? {
            Answer::Word(word) => Ok(word),
            other => Err(odd(&other)),
        }
    }

    pub(super) fn raw(&mut self, tokens: u64) -> Result<u64, Fault> {
        match self.ask(Ask::Raw(tokens))? {
            Answer::Long(raw) => Ok(raw),
            other => Err(odd(&other)),
        }
    }

    fn text_left(&self) -> u64 {
        self.job.limits.text_bytes.saturating_sub(self.text_bytes)
    }

    fn read(&mut self, bytes: u64) -> Result<(), Fault> {
        self.text_bytes = self.text_bytes.saturating_add(bytes);
        if self.text_bytes > self.job.limits.text_bytes { Err(Fault::Text) } else { Ok(()) }
    }

    pub(super) fn string(&mut self, ask: Ask) -> Result<String, Fault> {
        // No more is fetched than is needed to see that it is too much.
        let most = u32::try_from(self.text_left().saturating_add(4)).unwrap_or(u32::MAX);
        let ask = match ask {
            Ask::Text(entry, part, offset, max) => Ask::Text(entry, part, offset, max.min(most)),
            other => other,
        };
        match self.ask(ask)? {
            Answer::Text(text) => self.read(text.len() as u64).map(|()| text),
            other => Err(odd(&other)),
        }
    }

    pub(super) fn strings(&mut self, entries: Vec<u32>, max: u32) -> Result<Vec<String>, Fault> {
        let asked = entries.len();
        let left = self.text_left();
        match self.ask(Ask::Texts(entries, max, left))? {
            Answer::Texts(texts) if texts.len() == asked => {
                // An empty string costs something too.
                self.read(texts.iter().map(|text| text.len() as u64).sum::<u64>() + asked as u64 / 8)?;
                Ok(texts)
            }
            Answer::Texts(_) => Err(Fault::Text),
            other => Err(odd(&other)),
        }
    }

    pub(super) fn tools(&mut self) -> Result<Vec<String>, Fault> {
        match self.ask(Ask::Tools)? {
            Answer::Texts(names) => {
                self.read(names.iter().map(|name| name.len() as u64).sum())?;
                Ok(names)
            }
            other => Err(odd(&other)),
        }
    }

    /// Counts decisions, made or weighed: each costs the pass as much.
    fn judged(&mut self, decisions: usize) -> Result<(), Fault> {
        self.affords(decisions)?;
        self.decisions = self.decisions.saturating_add(decisions as u64);
        Ok(())
    }

    /// Whether so many decisions may still be judged: looked at before anything of their size is made, as a list of numbers
    /// is a twentieth of what it becomes.
    pub(super) fn affords(&self, decisions: usize) -> Result<(), Fault> {
        let more = self.decisions.saturating_add(decisions as u64);
        if more > self.job.limits.decisions_for(self.job.entries.into()) { Err(Fault::Decisions) } else { Ok(()) }
    }

    pub(super) fn would_save(&mut self, proposals: Vec<Proposal>) -> Result<Vec<u32>, Fault> {
        self.judged(proposals.len())?;
        match self.ask(Ask::WouldSave(proposals))? {
            Answer::Words(saved) => Ok(saved),
            other => Err(odd(&other)),
        }
    }

    pub(super) fn decide(&mut self, ask: Ask) -> Result<Vec<u8>, Fault> {
        self.judged(if let Ask::Decide(proposals) = &ask { proposals.len() } else { 1 })?;
        self.room = None;
        match self.ask(ask)? {
            Answer::Codes(codes) => Ok(codes),
            other => Err(odd(&other)),
        }
    }

    pub(super) fn explain(&mut self, line: &str) -> Result<(), Fault> {
        self.enter()?;
        if self.lines.len() < MAX_LINES {
            self.lines.push(one_line(line, LINE_BYTES));
        }
        Ok(())
    }

    pub(super) fn log(&mut self, level: u8, message: &str) -> Result<(), Fault> {
        self.enter()?;
        if self.logged >= self.job.limits.log_lines {
            self.log_dropped += 1;
            return Ok(());
        }
        self.logged += 1;
        let message = one_line(message, LOG_BYTES);
        match level {
            0 => tracing::error!(target: "foreshorten::plugin", "{message}"),
            1 => tracing::warn!(target: "foreshorten::plugin", "{message}"),
            2 => tracing::info!(target: "foreshorten::plugin", "{message}"),
            3 => tracing::debug!(target: "foreshorten::plugin", "{message}"),
            _ => tracing::trace!(target: "foreshorten::plugin", "{message}"),
        }
        Ok(())
    }

    pub(super) fn keep(&mut self, memo: Vec<u8>) -> Result<bool, Fault> {
        self.enter()?;
        let fits = memo.len() <= self.job.limits.memo_bytes;
        if fits {
            self.memo = Some(memo);
        }
        Ok(fits)
    }

    pub(super) fn write(&mut self, heading: String, text: String) -> Result<(), Fault> {
        self.enter()?;
        self.section_bytes = self.section_bytes.saturating_add(heading.len() + text.len() + 4);
        // Four bytes a character, and as much again for headings and what the host cuts off.
        let most = self.job.summary.as_ref().map_or(0, |job| job.max_chars as usize).saturating_mul(8).max(1 << 16);
        if self.section_bytes > most {
            return Err(Fault::Text);
        }
        self.sections.push((heading, text));
        Ok(())
    }
}

fn odd(answer: &Answer) -> Fault {
    Fault::Host(format!("a wrong answer: {answer:?}").chars().take(100).collect())
}

/// Bounds memories and tables, and remembers the peak.
struct Limiter {
    limits: Limits,
    total: usize,
    peak: usize,
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.total.saturating_add(desired.saturating_sub(current));
        if total > self.limits.memory_bytes {
            return Err(Fault::Memory.into());
        }
        self.total = total;
        self.peak = self.peak.max(total);
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired > self.limits.table_elements { Err(Fault::Memory.into()) } else { Ok(true) }
    }

    fn instances(&self) -> usize {
        self.limits.instances
    }

    fn tables(&self) -> usize {
        self.limits.instances
    }

    fn memories(&self) -> usize {
        self.limits.instances
    }
}

impl Guest for Prepared {
    fn call(&self, job: Job) -> (Done, Option<super::super::line::Line>) {
        let start = Instant::now();
        let limits = job.limits;
        let fuel = limits.fuel_for(job.entries.into());
        let main = match job.call {
            Call::Check => self.check,
            Call::Plan | Call::Step => self.main,
        };
        let mut store = Store::new(&self.engine, State::new(job));
        store.limiter(|state| &mut state.limiter);
        store.set_hostcall_fuel(limits.call_bytes);
        store.set_epoch_deadline(limits.wall_ms.div_ceil(TICK_MS).max(1) + 1);
        let called = store.set_fuel(fuel).and_then(|()| {
            let instance = self.pre.instantiate(&mut store)?;
            let main = instance.get_typed_func::<(), (Result<(), String>,)>(&mut store, &main)?;
            main.call(&mut store, ())
        });
        let left = store.get_fuel().unwrap_or(0);
        let result = match called {
            Ok((Ok(()),)) => Ok(()),
            Ok((Err(why),)) => Err(Fault::Refused(one_line(&why, LINE_BYTES))),
            Err(error) => Err(fault_of(&error)),
        };
        let state = store.into_data();
        let spent = Spent {
            fuel: fuel.saturating_sub(left),
            wall: start.elapsed(),
            peak_memory: state.limiter.peak,
            host_calls: state.host_calls,
            text_bytes: state.text_bytes,
            log_dropped: state.log_dropped,
        };
        let State { job, memo, lines, asked, sections, .. } = state;
        (Done { result, memo, lines, asked, sections, spent }, job.line)
    }
}

fn fault_of(error: &wasmtime::Error) -> Fault {
    if let Some(fault) = error.downcast_ref::<Fault>() {
        return fault.clone();
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => Fault::Fuel,
        Some(Trap::Interrupt) => Fault::WallClock,
        Some(Trap::StackOverflow) => Fault::Stack,
        Some(trap) => Fault::Trap(trap.to_string()),
        None => {
            let text = error.root_cause().to_string();
            if text.contains("fuel allocated for hostcalls") { Fault::Text } else { Fault::Trap(one_line(&text, 200)) }
        }
    }
}
