//! What a native library may call.
//!
//! A library is trusted, so pointers it hands in are believed; what it does with numbers is not: every decision goes to the
//! ledger like any other. A panic in one of these functions fails the call and goes no further.

use std::panic::{AssertUnwindSafe, catch_unwind};

use foreshorten_core::plan::{Proposal, Refusal};
use foreshorten_core::text::floor_boundary;

use super::super::desk::cut;
use super::super::line::{Answer, Ask, Column, Room};
use super::super::load::nothing;
use super::super::{Done, Fault, Job, ModelAsk, Spent, code_of};
use super::abi::{HostTable, Str};

/// One call.
pub(super) struct Call {
    /// The room as of the last decision.
    room: Option<Room>,
    pub(super) job: Job,
    pub(super) done: Done,
}

impl Call {
    pub(super) fn new(job: Job) -> Self {
        let done = Done {
            result: Ok(()),
            memo: None,
            lines: Vec::new(),
            asked: None,
            sections: Vec::new(),
            spent: Spent::default(),
        };
        Self { room: None, job, done }
    }

    fn ask(&mut self, ask: Ask) -> Result<Answer, Fault> {
        self.done.spent.host_calls += 1;
        match &self.job.line {
            Some(line) => line.ask(ask),
            None => Ok(nothing(ask)),
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
};

/// Runs one function of the host. What fails in it fails the call.
fn with<R: Default>(call: *mut Call, act: impl FnOnce(&mut Call) -> Result<R, Fault>) -> R {
    // SAFETY: `call` is the pointer that this host handed to the call that is running, on the thread that runs it, and the
    // host does not touch the call meanwhile. The header says that it must not be kept.
    let Some(call) = (unsafe { call.as_mut() }) else { return R::default() };
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

/// Text that the library lends.
fn read(text: Str) -> String {
    if text.ptr.is_null() || text.len == 0 {
        return String::new();
    }
    // SAFETY: the library lends `len` bytes for the time of this call; they are copied.
    let bytes = unsafe { std::slice::from_raw_parts(text.ptr, text.len) };
    String::from_utf8_lossy(bytes).into_owned()
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

extern "C" fn number(call: *mut Call, which: u32) -> u64 {
    with(call, |call| {
        let task = call.job.summary.clone();
        let task = task.as_deref();
        Ok(match which {
            8 => task.map_or(0, |task| task.max_chars.into()),
            9 => task.map_or(0, |task| task.max_output_tokens.into()),
            10 => task.map_or(0, |task| task.sections.len() as u64),
            11 => task.map_or(0, |task| task.replies.len() as u64),
            12 => task.map_or(0, |task| task.span.len() as u64),
            0..=7 => {
                let room = call.room()?;
                match which {
                    0 => room.len.into(),
                    1 => room.window,
                    2 => room.usable,
                    3 => room.target,
                    4 => room.view_tokens,
                    5 => room.aggressive.into(),
                    6 => room.tail_start.into(),
                    _ => room.turn,
                }
            }
            _ => 0,
        })
    })
}

extern "C" fn column(call: *mut Call, which: u32, start: u32, count: u32, out: *mut u32) -> u32 {
    const COLUMNS: [Column; 9] = [
        Column::Kinds,
        Column::Marks,
        Column::Levels,
        Column::Groups,
        Column::Pairs,
        Column::Weights,
        Column::ViewWeights,
        Column::Sizes,
        Column::ToolIds,
    ];
    with(call, |call| {
        let Some(&column) = COLUMNS.get(which as usize) else { return Ok(0) };
        match call.ask(Ask::Column(column, start..start.saturating_add(count)))? {
            Answer::Words(words) => Ok(write(&words, out, count as usize) as u32),
            _ => Err(odd()),
        }
    })
}

extern "C" fn string(call: *mut Call, which: u32, at: u32, out: *mut u8, cap: usize) -> usize {
    with(call, |call| {
        let task = call.job.summary.clone().unwrap_or_default();
        let text: Vec<u8> = match which {
            0 => call.job.config.as_bytes().to_vec(),
            1 => match call.ask(Ask::Tools)? {
                Answer::Texts(names) => names.into_iter().nth(at as usize).unwrap_or_default().into_bytes(),
                _ => return Err(odd()),
            },
            2 => match call.ask(Ask::CallId(at))? {
                Answer::Text(id) => id.into_bytes(),
                _ => return Err(odd()),
            },
            3 => call.done.memo.clone().unwrap_or_else(|| call.job.memo.clone()),
            4 => task.text.clone().into_bytes(),
            5 => task.prior.clone().into_bytes(),
            6 => task.sections.get(at as usize).cloned().unwrap_or_default().into_bytes(),
            7 => task.replies.get(at as usize).cloned().unwrap_or_default().into_bytes(),
            _ => Vec::new(),
        };
        write(&text, out, cap);
        Ok(text.len())
    })
}

extern "C" fn text(call: *mut Call, entry: u32, part: u32, offset: u32, out: *mut u8, cap: usize) -> usize {
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

extern "C" fn part_kind(call: *mut Call, entry: u32, part: u32) -> u32 {
    with(call, |call| match call.ask(Ask::PartKind(entry, part))? {
        Answer::Word(255) => Ok(u32::MAX),
        Answer::Word(kind) => Ok(kind),
        _ => Err(odd()),
    })
}

extern "C" fn decide(call: *mut Call, what: u32, entries: *const u32, count: usize, a: u32, b: u32, codes: *mut u8) {
    with(call, |call| {
        let entries: &[u32] = if entries.is_null() || count == 0 {
            &[]
        } else {
            // SAFETY: the library lends `count` numbers for the time of this call.
            unsafe { std::slice::from_raw_parts(entries, count) }
        };
        let proposal = |&entry: &u32| {
            let entry = entry as usize;
            Some(match what {
                0 => Proposal::Clear { entry },
                1 => Proposal::ClearSuperseded { entry },
                2 => Proposal::Offload { entry, head: a, tail: b },
                3 => Proposal::ElideMedia { entry, parts: None },
                4 => Proposal::ElideMedia { entry, parts: Some(vec![a]) },
                5 => Proposal::ClipArguments { entry },
                6 => Proposal::OmitReasoning { entry },
                7 => Proposal::Snip { from: entry, to: a as usize },
                _ => return None,
            })
        };
        let answers = match (what, entries) {
            (8, [end, ..]) => call.codes(Ask::RequestSummary(*end))?,
            (9, [entry, ..]) => call.codes(Ask::Pin(*entry))?,
            _ => match entries.iter().map(proposal).collect() {
                Some(proposals) => call.codes(Ask::Decide(proposals))?,
                // A decision of a later host.
                None => vec![u8::MAX; count],
            },
        };
        write(&answers, codes, count);
        Ok(())
    });
}

extern "C" fn condense(call: *mut Call, entry: u32, text: Str) -> u8 {
    with(call, |call| {
        let Some(by) = call.job.condenses_as.clone() else { return Ok(code_of(Err(Refusal::NotGranted))) };
        let proposal = Proposal::Condense { entry: entry as usize, by, text: read(text) };
        Ok(call.codes(Ask::Decide(vec![proposal]))?.first().copied().unwrap_or(u8::MAX))
    })
}

extern "C" fn keep(call: *mut Call, memo: *const u8, len: usize) -> u8 {
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

extern "C" fn span(call: *mut Call, out: *mut u32, cap: u32) -> u32 {
    with(call, |call| {
        let task = call.job.summary.clone().unwrap_or_default();
        Ok(write(&task.span, out, cap as usize) as u32)
    })
}

extern "C" fn ask(call: *mut Call, system: Str, user: Str, max_output_tokens: u32) {
    with(call, |call| {
        call.done.asked = Some(ModelAsk { system: read(system), user: read(user), max_output_tokens });
        Ok(())
    });
}

extern "C" fn section(call: *mut Call, heading: Str, text: Str) {
    with(call, |call| {
        call.done.sections.push((read(heading), read(text)));
        Ok(())
    });
}

extern "C" fn explain(call: *mut Call, line: Str) {
    with(call, |call| {
        if call.done.lines.len() < 32 {
            call.done.lines.push(cut(&read(line), 0, 500).to_owned());
        }
        Ok(())
    });
}

extern "C" fn log(call: *mut Call, level: u8, message: Str) {
    with(call, |_| {
        let message = read(message);
        let message = &message[..floor_boundary(&message, 1 << 10)];
        if level <= 1 {
            tracing::warn!(target: "foreshorten::plugin", "{message}");
        } else {
            tracing::debug!(target: "foreshorten::plugin", "{message}");
        }
        Ok(())
    });
}

extern "C" fn fail(call: *mut Call, why: Str) {
    with::<()>(call, |_| Err(Fault::Refused(cut(&read(why), 0, 500).to_owned())));
}
