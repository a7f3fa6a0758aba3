//! What a native library may call.
//!
//! A library is trusted, so pointers it hands in are believed; what it does with numbers is not: every decision goes to the
//! ledger like any other. A panic in one of these functions fails the call and goes no further.

use std::panic::{AssertUnwindSafe, catch_unwind};

use foreshorten_core::plan::{Proposal, Refusal};

use super::super::desk::{one_line, single};
use super::super::line::{self, Answer, Answering, Ask, Column, Room};
use super::super::load::nothing;
use super::super::{Done, Fault, Job, ModelAsk, Spent, code_of};
use super::abi::{self, Cells, HostTable, Str, decision, number, string};

/// One call.
pub(super) struct Call<'a> {
    /// Who answers, where that is not at the other end of the job's line.
    here: Option<Answering<'a>>,
    /// The room as of the last decision.
    room: Option<Room>,
    /// Names of the tools.
    tools: Option<Vec<String>>,
    /// Cells that are lent to the library.
    lent: Option<line::Cells>,
    /// Decisions tried so far.
    decisions: u64,
    pub(super) job: Job,
    pub(super) done: Done,
}

impl<'a> Call<'a> {
    pub(super) fn new(job: Job, here: Option<Answering<'a>>) -> Self {
        let done = Done {
            result: Ok(()),
            memo: None,
            lines: Vec::new(),
            asked: None,
            sections: Vec::new(),
            spent: Spent::default(),
        };
        Self { here, room: None, tools: None, lent: None, decisions: 0, job, done }
    }

    fn ask(&mut self, ask: Ask) -> Result<Answer, Fault> {
        self.done.spent.host_calls += 1;
        match (&mut self.here, &self.job.line) {
            (Some(answer), _) => answer(ask).ok_or_else(line::gone),
            (None, Some(line)) => line.ask(ask),
            (None, None) => Ok(nothing(ask)),
        }
    }

    fn room(&mut self) -> Result<Room, Fault> {
        if let Some(room) = self.room {
            return Ok(room);
        }
        match self.ask(Ask::Room)? {
            Answer::Room(room) => Ok(*self.room.insert(room)),
            _ => Err(odd()),
        }
    }

    fn tool(&mut self, at: u32) -> Result<String, Fault> {
        if self.tools.is_none() {
            match self.ask(Ask::Tools)? {
                Answer::Texts(names) => self.tools = Some(names),
                _ => return Err(odd()),
            }
        }
        Ok(self.tools.iter().flatten().nth(at as usize).cloned().unwrap_or_default())
    }

    /// A range of a column; none where there is no such column.
    fn column(&mut self, which: u32, start: u32, count: u32) -> Result<Option<line::Cells>, Fault> {
        const COLUMNS: [Column; 10] = [
            Column::Kinds,
            Column::Marks,
            Column::Levels,
            Column::Groups,
            Column::Pairs,
            Column::Weights,
            Column::ViewWeights,
            Column::Sizes,
            Column::ToolIds,
            Column::Rules,
        ];
        let Some(&column) = COLUMNS.get(which as usize) else { return Ok(None) };
        match self.ask(Ask::Column(column, start..start.saturating_add(count)))? {
            Answer::Cells(cells) => Ok(Some(cells)),
            _ => Err(odd()),
        }
    }

    /// Counts decisions, made or weighed, before anything of their size is made.
    fn judged(&mut self, decisions: usize) -> Result<(), Fault> {
        self.decisions = self.decisions.saturating_add(decisions as u64);
        if self.decisions > self.job.limits.decisions_for(self.job.entries.into()) {
            return Err(Fault::Decisions);
        }
        Ok(())
    }

    /// Text that the library lends, if it is not more than one call may bring.
    fn read(&self, text: Str) -> Result<String, Fault> {
        if text.ptr.is_null() || text.len == 0 {
            return Ok(String::new());
        }
        if text.len > self.job.limits.call_bytes {
            return Err(Fault::Text);
        }
        // SAFETY: the library lends `len` bytes for the time of this call; they are copied.
        let bytes = unsafe { std::slice::from_raw_parts(text.ptr, text.len) };
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    fn codes(&mut self, ask: Ask) -> Result<Vec<u8>, Fault> {
        self.room = None;
        match self.ask(ask)? {
            Answer::Codes(codes) => Ok(codes),
            _ => Err(odd()),
        }
    }
}

fn odd() -> Fault {
    Fault::Host("a wrong answer".into())
}

pub(super) static TABLE: HostTable = HostTable {
    struct_size: size_of::<HostTable>(),
    number,
    column,
    string,
    text,
    part_kind,
    decide,
    condense,
    keep,
    span,
    ask,
    section,
    explain,
    log,
    fail,
    would_save,
    raw,
    texts,
    cells,
};

/// Runs one function of the host. What fails in it fails the call.
fn with<R: Default>(call: *mut abi::Call, act: impl FnOnce(&mut Call<'_>) -> Result<R, Fault>) -> R {
    // SAFETY: `call` is the pointer that this host handed to the call that is running, on the thread that runs it, and the
    // host does not touch the call meanwhile. The header says that it must not be kept, so whoever answers is still there.
    let Some(call) = (unsafe { call.cast::<Call<'_>>().as_mut() }) else { return R::default() };
    match catch_unwind(AssertUnwindSafe(|| act(call))) {
        Ok(Ok(value)) => value,
        Ok(Err(fault)) => {
            call.done.result = Err(fault);
            R::default()
        }
        Err(_) => {
            call.done.result = Err(Fault::Host("a function of the host panicked".into()));
            R::default()
        }
    }
}

/// Writes as much as fits into the library's buffer.
fn write<T: Copy>(items: &[T], out: *mut T, cap: usize) -> usize {
    let count = items.len().min(cap);
    if count > 0 && !out.is_null() {
        // SAFETY: the library says that `out` has room for `cap` items, and it is not ours.
        unsafe { std::ptr::copy_nonoverlapping(items.as_ptr(), out, count) };
    }
    count
}

/// As [`write`], numbers made wider.
fn widen<T: Copy + Into<u32>>(cells: &[T], out: *mut u32, cap: u32) -> u32 {
    let count = cells.len().min(cap as usize);
    if !out.is_null() {
        for (at, &cell) in cells[..count].iter().enumerate() {
            // SAFETY: the library says that `out` has room for `cap` numbers, and `at` is below that.
            unsafe { out.add(at).write(cell.into()) };
        }
    }
    count as u32
}

extern "C" fn number(call: *mut abi::Call, which: u32) -> u64 {
    with(call, |call| {
        let task = call.job.summary.clone();
        let task = task.as_deref();
        Ok(match which {
            number::MAX_CHARS => task.map_or(0, |task| task.max_chars.into()),
            number::MAX_OUTPUT_TOKENS => task.map_or(0, |task| task.max_output_tokens.into()),
            number::SECTIONS => task.map_or(0, |task| task.sections.len() as u64),
            number::REPLIES => task.map_or(0, |task| task.replies.len() as u64),
            number::SPAN_LEN => task.map_or(0, |task| task.span.len() as u64),
            number::LEN => call.room()?.len.into(),
            number::WINDOW => call.room()?.window,
            number::USABLE => call.room()?.usable,
            number::TARGET => call.room()?.target,
            number::VIEW_TOKENS => call.room()?.view_tokens,
            number::AGGRESSIVE => call.room()?.aggressive.into(),
            number::TAIL_START => call.room()?.tail_start.into(),
            number::TURN => call.room()?.turn,
            _ => 0,
        })
    })
}

extern "C" fn column(call: *mut abi::Call, which: u32, start: u32, count: u32, out: *mut u32) -> u32 {
    with(call, |call| {
        Ok(match call.column(which, start, count)? {
            None => 0,
            Some(line::Cells::Bytes(cells)) => widen(&cells, out, count),
            Some(line::Cells::Halves(cells)) => widen(&cells, out, count),
            Some(line::Cells::Words(cells)) => write(&cells, out, count as usize) as u32,
        })
    })
}

extern "C" fn cells(call: *mut abi::Call, which: u32, start: u32, count: u32) -> Cells {
    with(call, |call| {
        // What was lent before goes with this call, as the header says.
        call.lent = None;
        let Some(cells) = call.column(which, start, count)? else { return Ok(Cells::NONE) };
        Ok(match call.lent.insert(cells) {
            line::Cells::Bytes(cells) => Cells::of(cells),
            line::Cells::Halves(cells) => Cells::of(cells),
            line::Cells::Words(cells) => Cells::of(cells),
        })
    })
}

extern "C" fn string(call: *mut abi::Call, which: u32, at: u32, out: *mut u8, cap: usize) -> usize {
    with(call, |call| {
        let task = call.job.summary.clone().unwrap_or_default();
        let text: Vec<u8> = match which {
            string::CONFIG => call.job.config.as_bytes().to_vec(),
            string::TOOL => call.tool(at)?.into_bytes(),
            string::CALL_ID => match call.ask(Ask::CallId(at))? {
                Answer::Text(id) => id.into_bytes(),
                _ => return Err(odd()),
            },
            string::MEMO => call.done.memo.clone().unwrap_or_else(|| call.job.memo.clone()),
            string::SPAN_TEXT => task.text.clone().into_bytes(),
            string::PRIOR => task.prior.clone().into_bytes(),
            string::SECTION => task.sections.get(at as usize).cloned().unwrap_or_default().into_bytes(),
            string::REPLY => task.replies.get(at as usize).cloned().unwrap_or_default().into_bytes(),
            _ => Vec::new(),
        };
        write(&text, out, cap);
        Ok(text.len())
    })
}

extern "C" fn text(call: *mut abi::Call, entry: u32, part: u32, offset: u32, out: *mut u8, cap: usize) -> usize {
    with(call, |call| {
        let max = u32::try_from(cap).unwrap_or(u32::MAX);
        match call.ask(Ask::Text(entry, part, offset, max))? {
            Answer::Text(text) => {
                call.done.spent.text_bytes += text.len() as u64;
                Ok(write(text.as_bytes(), out, cap))
            }
            _ => Err(odd()),
        }
    })
}

extern "C" fn part_kind(call: *mut abi::Call, entry: u32, part: u32) -> u32 {
    // Who counts parts goes on until there is none: a call that failed has none.
    with(call, |call| match call.ask(Ask::PartKind(entry, part))? {
        Answer::Word(255) => Ok(None),
        Answer::Word(kind) => Ok(Some(kind)),
        _ => Err(odd()),
    })
    .unwrap_or(u32::MAX)
}

/// Numbers that the library lends.
///
/// # Safety
/// They are there for the time of this call, `count` of them, unless `entries` is null. No more than a call may try.
unsafe fn lent<'a>(entries: *const u32, count: usize) -> &'a [u32] {
    if entries.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: as the caller says; a bounded count is below what a slice may have.
    unsafe { std::slice::from_raw_parts(entries, count) }
}

/// A decision about one entry, by its number in the header.
fn proposal(what: u32, entry: u32, a: u32, b: u32) -> Option<Proposal> {
    match what {
        decision::SNIP => Some(Proposal::Snip { from: entry as usize, to: a as usize }),
        // The only one that has another number in `plugins/wit`.
        decision::PERSIST => single(7, entry, a, b),
        _ => single(u8::try_from(what).ok().filter(|&what| what < 7)?, entry, a, b),
    }
}

extern "C" fn decide(
    call: *mut abi::Call,
    what: u32,
    entries: *const u32,
    count: usize,
    a: u32,
    b: u32,
    codes: *mut u8,
) {
    with(call, |call| {
        call.judged(count)?;
        // SAFETY: the library lends `count` numbers for the time of this call, and they were counted.
        let entries = unsafe { lent(entries, count) };
        let answers = match (what, entries) {
            (decision::REQUEST_SUMMARY, [end, ..]) => call.codes(Ask::RequestSummary(*end))?,
            (decision::PIN, [entry, ..]) => call.codes(Ask::Pin(*entry))?,
            _ => match entries.iter().map(|&entry| proposal(what, entry, a, b)).collect() {
                Some(proposals) => call.codes(Ask::Decide(proposals))?,
                // A decision of a later host.
                None => vec![u8::MAX; entries.len()],
            },
        };
        write(&answers, codes, count);
        Ok(())
    });
}

extern "C" fn would_save(
    call: *mut abi::Call,
    what: u32,
    entries: *const u32,
    count: usize,
    a: u32,
    b: u32,
    saved: *mut u32,
) {
    with(call, |call| {
        call.judged(count)?;
        // SAFETY: the library lends `count` numbers for the time of this call, and they were counted.
        let entries = unsafe { lent(entries, count) };
        let answers = match entries.iter().map(|&entry| proposal(what, entry, a, b)).collect() {
            Some(proposals) => match call.ask(Ask::WouldSave(proposals))? {
                Answer::Words(saved) => saved,
                _ => return Err(odd()),
            },
            None => vec![0; entries.len()],
        };
        write(&answers, saved, count);
        Ok(())
    });
}

extern "C" fn raw(call: *mut abi::Call, tokens: u64) -> u64 {
    with(call, |call| match call.ask(Ask::Raw(tokens))? {
        Answer::Long(raw) => Ok(raw),
        _ => Err(odd()),
    })
}

extern "C" fn texts(
    call: *mut abi::Call,
    entries: *const u32,
    count: usize,
    max: u32,
    out: *mut u8,
    cap: usize,
    lens: *mut u32,
) -> usize {
    with(call, |call| {
        if count > call.job.limits.call_bytes {
            return Err(Fault::Text);
        }
        // SAFETY: the library lends `count` numbers for the time of this call, and there are not too many.
        let entries = unsafe { lent(entries, count) };
        match call.ask(Ask::Texts(entries.to_vec(), max, cap as u64))? {
            Answer::Texts(texts) => {
                let lengths: Vec<u32> =
                    texts.iter().map(|text| u32::try_from(text.len()).unwrap_or(u32::MAX)).collect();
                let all = texts.concat();
                call.done.spent.text_bytes += all.len() as u64;
                write(all.as_bytes(), out, cap);
                Ok(write(&lengths, lens, count))
            }
            _ => Err(odd()),
        }
    })
}

extern "C" fn condense(call: *mut abi::Call, entry: u32, text: Str) -> u8 {
    with(call, |call| {
        let Some(by) = call.job.condenses_as.clone() else { return Ok(code_of(Err(Refusal::NotGranted))) };
        let proposal = Proposal::Condense { entry: entry as usize, by, text: call.read(text)? };
        call.judged(1)?;
        Ok(call.codes(Ask::Decide(vec![proposal]))?.first().copied().unwrap_or(u8::MAX))
    })
}

extern "C" fn keep(call: *mut abi::Call, memo: *const u8, len: usize) -> u8 {
    with(call, |call| {
        if len > call.job.limits.memo_bytes {
            return Ok(0);
        }
        let mut bytes = vec![0; len];
        if len > 0 && !memo.is_null() {
            // SAFETY: the library lends `len` bytes for the time of this call.
            bytes.copy_from_slice(unsafe { std::slice::from_raw_parts(memo, len) });
        }
        call.done.memo = Some(bytes);
        Ok(1)
    })
}

extern "C" fn span(call: *mut abi::Call, out: *mut u32, cap: u32) -> u32 {
    with(call, |call| {
        let task = call.job.summary.clone().unwrap_or_default();
        Ok(write(&task.span, out, cap as usize) as u32)
    })
}

extern "C" fn ask(call: *mut abi::Call, system: Str, user: Str, max_output_tokens: u32) {
    with(call, |call| {
        call.done.asked = Some(ModelAsk { system: call.read(system)?, user: call.read(user)?, max_output_tokens });
        Ok(())
    });
}

extern "C" fn section(call: *mut abi::Call, heading: Str, text: Str) {
    with(call, |call| {
        let written = (call.read(heading)?, call.read(text)?);
        call.done.sections.push(written);
        Ok(())
    });
}

extern "C" fn explain(call: *mut abi::Call, line: Str) {
    with(call, |call| {
        if call.done.lines.len() < 32 {
            call.done.lines.push(one_line(&call.read(line)?, 500));
        }
        Ok(())
    });
}

extern "C" fn log(call: *mut abi::Call, level: u8, message: Str) {
    with(call, |call| {
        let message = one_line(&call.read(message)?, 1 << 10);
        if level <= 1 {
            tracing::warn!(target: "foreshorten::plugin", "{message}");
        } else {
            tracing::debug!(target: "foreshorten::plugin", "{message}");
        }
        Ok(())
    });
}

extern "C" fn fail(call: *mut abi::Call, why: Str) {
    with::<()>(call, |call| Err(Fault::Refused(one_line(&call.read(why)?, 500))));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::Limits;
    use crate::plugin::line::Line;

    fn call(change: impl FnOnce(&mut Job)) -> Call<'static> {
        let mut job = Job::check("{}".into(), Limits::default());
        change(&mut job);
        Call::new(job, None)
    }

    fn lend(text: &str) -> Str {
        Str { ptr: text.as_ptr(), len: text.len() }
    }

    #[test]
    fn where_nobody_waits_any_more_there_are_no_parts_to_count() {
        let mut gone = call(|job| job.line = Some(Line::new(|_| false).0));
        assert_eq!(part_kind((&raw mut gone).cast(), 0, 0), u32::MAX);
        assert!(matches!(gone.done.result, Err(Fault::Host(_))));
    }

    #[test]
    fn every_condensed_result_is_a_decision_that_counts() {
        let mut call = call(|job| {
            job.condenses_as = Some("me".into());
            job.limits.decisions = 2;
        });
        let call_ = (&raw mut call).cast();
        for _ in 0..2 {
            condense(call_, 0, lend("short"));
        }
        assert_eq!(call.done.result, Ok(()));
        condense((&raw mut call).cast(), 0, lend("short"));
        assert_eq!(call.done.result, Err(Fault::Decisions));
    }

    #[test]
    fn what_people_read_is_one_line() {
        let mut call = call(|_| ());
        explain((&raw mut call).cast(), lend("a\nforeshorten: b\x1b[2J"));
        fail((&raw mut call).cast(), lend("a\r\nb"));
        assert_eq!(call.done.lines, ["a foreshorten: b [2J"]);
        assert_eq!(call.done.result, Err(Fault::Refused("a  b".into())));
    }
}
