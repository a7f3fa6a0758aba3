//! The glue for native libraries: the host as a table of functions, and the plugin as another.
//!
//! What its `unsafe` rests on is what `plugins/abi/foreshorten_plugin.h` promises: the table and the call that the host
//! hands in hold for the time of the call, on the thread that runs it; a buffer is written up to the room it is said to
//! have; what is lent is read before the function returns, and cells before others are asked for. No panic leaves an export: it comes back as a failure.

use std::any::Any;
use std::cell::OnceCell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::{self, Call, Entry, Factory, HostTable, NONE, Str, column, decision, number, string};
use crate::host::cut;
use crate::{Code, History, Pass, Reduction, Stage, Summarizer, Task};

#[cfg(panic = "abort")]
compile_error!("a native library must not abort its host: build it with a profile that has no `panic = \"abort\"`");

/// The host of one call.
#[derive(Debug)]
pub struct Host {
    table: *const HostTable,
    call: *mut Call,
    /// Number of entries, which does not change during a call.
    len: OnceCell<u32>,
}

/// Runs one export; 0 when it went well.
///
/// # Safety
/// Both pointers are what the host handed to the export that is running.
unsafe fn run(table: *const HostTable, call: *mut Call, act: impl FnOnce(&mut Host) -> Result<(), String>) -> i32 {
    const OLDER: i32 = 2;
    if table.is_null() || call.is_null() {
        return OLDER;
    }
    // SAFETY: the size is the first member of every table.
    let size = unsafe { (&raw const (*table).struct_size).read() };
    if size < size_of::<HostTable>() {
        if size >= core::mem::offset_of!(HostTable, would_save) {
            // SAFETY: `fail` stands below `would_save`, so the host has it.
            unsafe { ((&raw const (*table).fail).read())(call, Str::of("it was built for a later host than this")) };
        }
        return OLDER;
    }
    let mut host = Host { table, call, len: OnceCell::new() };
    // What the plugin had under its hands is not used again, whatever state it is in.
    let why = match catch_unwind(AssertUnwindSafe(|| act(&mut host))) {
        Ok(Ok(())) => return 0,
        Ok(Err(why)) => why,
        Err(payload) => said(payload),
    };
    // SAFETY: as for every function of the table, see `Host::table`; the text outlives the call.
    unsafe { (host.table().fail)(call, Str::of(&why)) };
    1
}

/// What a panic said.
fn said(payload: Box<dyn Any + Send>) -> String {
    let message = match payload.downcast_ref::<&str>() {
        Some(message) => Some(*message),
        None => payload.downcast_ref::<String>().map(String::as_str),
    };
    let why = message.map_or_else(|| "it panicked".into(), |message| format!("it panicked: {message}"));
    // Dropping it may panic once more, and nothing would catch that.
    std::mem::forget(payload);
    why
}

/// `check` of a stage.
///
/// # Safety
/// Called by the host alone, as the header says.
pub unsafe extern "C" fn check_stage<S: Stage>(table: *const HostTable, call: *mut Call) -> i32 {
    // SAFETY: the host's pointers are handed on as they came.
    unsafe { run(table, call, |host| S::check(&host.config())) }
}

/// `plan` of a stage.
///
/// # Safety
/// As [`check_stage`].
pub unsafe extern "C" fn plan<S: Stage>(table: *const HostTable, call: *mut Call) -> i32 {
    // SAFETY: as above.
    unsafe { run(table, call, |host| S::plan(host)) }
}

/// `check` of a summarizer.
///
/// # Safety
/// As [`check_stage`].
pub unsafe extern "C" fn check_summarizer<S: Summarizer>(table: *const HostTable, call: *mut Call) -> i32 {
    // SAFETY: as above.
    unsafe { run(table, call, |host| S::check(&host.config())) }
}

/// `step` of a summarizer.
///
/// # Safety
/// As [`check_stage`].
pub unsafe extern "C" fn step<S: Summarizer>(table: *const HostTable, call: *mut Call) -> i32 {
    // SAFETY: as above.
    unsafe { run(table, call, |host| S::step(host)) }
}

/// The table for `key`, if it is the one that is offered.
///
/// # Safety
/// `key` is text that the host lends.
#[must_use]
pub unsafe fn factory(key: Str, offered: &str, table: &'static Factory) -> *const c_void {
    if key.ptr.is_null() || key.len != offered.len() {
        return core::ptr::null();
    }
    // SAFETY: the host lends `len` bytes.
    let key = unsafe { core::slice::from_raw_parts(key.ptr, key.len) };
    if key == offered.as_bytes() { (&raw const *table).cast() } else { core::ptr::null() }
}

/// The entry of a plugin.
#[must_use]
pub const fn entry(
    name: &'static str,
    version: &'static str,
    get_factory: unsafe extern "C" fn(Str) -> *const c_void,
) -> Entry {
    Entry {
        magic: abi::MAGIC,
        struct_size: size_of::<Entry>() as u32,
        abi_major: abi::ABI_MAJOR,
        abi_minor: abi::ABI_MINOR,
        name: Str::of(name),
        version: Str::of(version),
        get_factory: Some(get_factory),
    }
}

/// Text of the host, mended should it not be UTF-8.
fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// What columns have: plain numbers, for which any bits are a value.
trait Number: Copy {}
impl Number for u8 {}
impl Number for u16 {}
impl Number for u32 {}

/// Bytes that a buffer has at first: most texts are shorter.
const FIRST: usize = 4 << 10;

impl Host {
    fn table(&self) -> &HostTable {
        // SAFETY: `run` made this host, from a table as large as ours that holds for the time of the call; the host of a
        // call does not outlive `run`.
        unsafe { &*self.table }
    }

    fn number(&self, which: u32) -> u64 {
        // SAFETY: a function of the host with the call it belongs to, as for all below.
        unsafe { (self.table().number)(self.call, which) }
    }

    /// A range of a column. Empty when the call failed, or the column is of another width than `T`.
    fn cells<T: Number>(&self, which: u32, start: u32, count: u32) -> Vec<T> {
        // SAFETY: only numbers are handed over.
        let cells = unsafe { (self.table().cells)(self.call, which, start, count) };
        if cells.ptr.is_null() || cells.width as usize != size_of::<T>() {
            return Vec::new();
        }
        // SAFETY: the host lends `len` numbers of this width, aligned, until it is asked for others; they are copied here.
        // Any bits are a `Number`.
        unsafe { core::slice::from_raw_parts(cells.ptr.cast::<T>(), cells.len as usize) }.to_vec()
    }

    fn string(&self, which: u32, at: u32) -> Vec<u8> {
        let mut out = Vec::with_capacity(FIRST);
        loop {
            // SAFETY: `out` has the room that is said; of it, the host writes as much as there is and fits.
            let has = unsafe { (self.table().string)(self.call, which, at, out.as_mut_ptr(), out.capacity()) };
            if has <= out.capacity() {
                // SAFETY: all of it fitted, so all of it was written.
                unsafe { out.set_len(has) };
                return out;
            }
            out.reserve(has);
        }
    }

    fn strings(&self, which: u32, count: u32) -> Vec<String> {
        let count = u32::try_from(self.number(count)).unwrap_or(0);
        (0..count).map(|at| text_of(self.string(which, at))).collect()
    }

    fn decide(&self, what: u32, entries: &[u32], a: u32, b: u32) -> Vec<Code> {
        let mut codes = vec![Code::MAX; entries.len()];
        // SAFETY: the numbers are lent, and there is room for one code each.
        unsafe { (self.table().decide)(self.call, what, entries.as_ptr(), entries.len(), a, b, codes.as_mut_ptr()) };
        codes
    }

    fn one(&self, what: u32, entry: u32, a: u32) -> Code {
        self.decide(what, &[entry], a, 0)[0]
    }

    fn line(&self, line: &str) {
        // SAFETY: the text is lent.
        unsafe { (self.table().explain)(self.call, Str::of(line)) };
    }
}

impl History for Host {
    fn config(&self) -> String {
        text_of(self.string(string::CONFIG, 0))
    }
    fn log(&self, level: u8, message: &str) {
        // SAFETY: the text is lent.
        unsafe { (self.table().log)(self.call, level, Str::of(message)) };
    }
    fn len(&self) -> u32 {
        *self.len.get_or_init(|| u32::try_from(self.number(number::LEN)).unwrap_or(u32::MAX))
    }
    fn kinds(&self, start: u32, count: u32) -> Vec<u8> {
        self.cells(column::KINDS, start, count)
    }
    fn marks(&self, start: u32, count: u32) -> Vec<u16> {
        self.cells(column::MARKS, start, count)
    }
    fn levels(&self, start: u32, count: u32) -> Vec<u8> {
        self.cells(column::LEVELS, start, count)
    }
    fn groups(&self, start: u32, count: u32) -> Vec<u32> {
        self.cells(column::GROUPS, start, count)
    }
    fn pairs(&self, start: u32, count: u32) -> Vec<u32> {
        self.cells(column::PAIRS, start, count)
    }
    fn weights(&self, start: u32, count: u32) -> Vec<u32> {
        self.cells(column::WEIGHTS, start, count)
    }
    fn view_weights(&self, start: u32, count: u32) -> Vec<u32> {
        self.cells(column::VIEW_WEIGHTS, start, count)
    }
    fn sizes(&self, start: u32, count: u32) -> Vec<u32> {
        self.cells(column::SIZES, start, count)
    }
    fn tool_ids(&self, start: u32, count: u32) -> Vec<u32> {
        self.cells(column::TOOL_IDS, start, count)
    }
    fn rules(&self, start: u32, count: u32) -> Vec<u8> {
        self.cells(column::RULES, start, count)
    }
    fn tools(&self) -> Vec<String> {
        // Every tool has a call, so the highest number tells how many there are.
        let ids = self.tool_ids(0, u32::MAX);
        let count = ids.into_iter().filter(|&id| id != NONE).max().map_or(0, |id| id + 1);
        (0..count).map(|at| text_of(self.string(string::TOOL, at))).collect()
    }
    fn call_id(&self, entry: u32) -> String {
        text_of(self.string(string::CALL_ID, entry))
    }
    fn part_count(&self, entry: u32) -> u32 {
        // SAFETY: only numbers are handed over.
        let kind = |part| unsafe { (self.table().part_kind)(self.call, entry, part) };
        (0..NONE).find(|&part| kind(part) == NONE).unwrap_or(0)
    }
    fn part_kind(&self, entry: u32, part: u32) -> u8 {
        // SAFETY: only numbers are handed over.
        let kind = unsafe { (self.table().part_kind)(self.call, entry, part) };
        u8::try_from(kind).unwrap_or(u8::MAX)
    }
    fn text(&self, entry: u32, part: u32, offset: u32, max: u32) -> String {
        let mut room = FIRST.min(max as usize);
        loop {
            let mut out: Vec<u8> = Vec::with_capacity(room);
            // SAFETY: `out` has the room that is said, and the bytes that are said to be written are.
            unsafe {
                let written = (self.table().text)(self.call, entry, part, offset, out.as_mut_ptr(), room);
                out.set_len(written.min(room));
            }
            // Whole characters are written, so up to three bytes of a buffer may stay empty though there is more.
            if out.len() + 4 <= room || room >= max as usize {
                return text_of(out);
            }
            // From the beginning: where that was moved to is not known.
            room = room.saturating_mul(8).min(max as usize);
        }
    }
    fn texts(&self, entries: &[u32], max: u32) -> Vec<String> {
        let mut all: Vec<String> = Vec::with_capacity(entries.len());
        let mut buffer: Vec<u8> = Vec::with_capacity(entries.len().saturating_mul(max as usize).min(1 << 20));
        while let rest @ [_, ..] = &entries[all.len()..] {
            let mut lens = vec![0u32; rest.len()];
            // SAFETY: the numbers are lent, and both buffers have the room that is said.
            let told = unsafe {
                (self.table().texts)(
                    self.call,
                    rest.as_ptr(),
                    rest.len(),
                    max,
                    buffer.as_mut_ptr(),
                    buffer.capacity(),
                    lens.as_mut_ptr(),
                )
            };
            lens.truncate(told);
            let whole: usize = lens.iter().map(|&len| len as usize).sum();
            // SAFETY: as many bytes as the lengths come to were written, and no more than fitted.
            unsafe { buffer.set_len(whole.min(buffer.capacity())) };
            let mut bytes = buffer.as_slice();
            for len in lens {
                let (text, after) = bytes.split_at(bytes.len().min(len as usize));
                all.push(text_of(text.to_vec()));
                bytes = after;
            }
            if told == 0 {
                // The next one does not fit. None is longer than this; a call that failed is answered nothing for ever, and
                // that must not end in gigabytes that cannot be had.
                if buffer.capacity() > u32::MAX as usize || self.sizes(rest[0], 1).is_empty() {
                    all.resize(entries.len(), String::new());
                    break;
                }
                buffer = Vec::with_capacity(buffer.capacity().max(FIRST).saturating_mul(8));
            }
        }
        all
    }
}

impl Pass for Host {
    fn window(&self) -> u64 {
        self.number(number::WINDOW)
    }
    fn usable(&self) -> u64 {
        self.number(number::USABLE)
    }
    fn target(&self) -> u64 {
        self.number(number::TARGET)
    }
    fn view_tokens(&self) -> u64 {
        self.number(number::VIEW_TOKENS)
    }
    fn aggressive(&self) -> bool {
        self.number(number::AGGRESSIVE) != 0
    }
    fn tail_start(&self) -> u32 {
        u32::try_from(self.number(number::TAIL_START)).unwrap_or(u32::MAX)
    }
    fn turn(&self) -> u64 {
        self.number(number::TURN)
    }
    fn raw(&self, tokens: u64) -> u64 {
        // SAFETY: only numbers are handed over.
        unsafe { (self.table().raw)(self.call, tokens) }
    }
    fn clear(&mut self, entries: &[u32]) -> Vec<Code> {
        self.decide(decision::CLEAR, entries, 0, 0)
    }
    fn clear_superseded(&mut self, entries: &[u32]) -> Vec<Code> {
        self.decide(decision::CLEAR_SUPERSEDED, entries, 0, 0)
    }
    fn offload(&mut self, entries: &[u32], head: u32, tail: u32) -> Vec<Code> {
        self.decide(decision::OFFLOAD, entries, head, tail)
    }
    fn persist(&mut self, entries: &[u32], head: u32) -> Vec<Code> {
        self.decide(decision::PERSIST, entries, head, 0)
    }
    fn would_save(&self, what: Reduction, entries: &[u32]) -> Vec<u32> {
        let (code, a, b) = what.codes();
        let code = if let Reduction::Persist { .. } = what { decision::PERSIST } else { code };
        let mut saved = vec![0; entries.len()];
        // SAFETY: the numbers are lent, and there is room for one each.
        unsafe {
            (self.table().would_save)(self.call, code, entries.as_ptr(), entries.len(), a, b, saved.as_mut_ptr())
        };
        saved
    }
    fn elide_media(&mut self, entries: &[u32]) -> Vec<Code> {
        self.decide(decision::ELIDE_MEDIA, entries, 0, 0)
    }
    fn elide_part(&mut self, entry: u32, part: u32) -> Code {
        self.one(decision::ELIDE_PART, entry, part)
    }
    fn clip_arguments(&mut self, entries: &[u32]) -> Vec<Code> {
        self.decide(decision::CLIP_ARGUMENTS, entries, 0, 0)
    }
    fn omit_reasoning(&mut self, entries: &[u32]) -> Vec<Code> {
        self.decide(decision::OMIT_REASONING, entries, 0, 0)
    }
    fn snip(&mut self, start: u32, end: u32) -> Code {
        self.one(decision::SNIP, start, end)
    }
    fn request_summary(&mut self, end: u32) -> Code {
        self.one(decision::REQUEST_SUMMARY, end, 0)
    }
    fn pin(&mut self, entry: u32) -> Code {
        self.one(decision::PIN, entry, 0)
    }
    fn condense(&mut self, entry: u32, text: &str) -> Code {
        // SAFETY: the text is lent.
        unsafe { (self.table().condense)(self.call, entry, Str::of(text)) }
    }
    fn explain(&mut self, line: &str) {
        self.line(line);
    }
    fn load_memo(&self) -> Vec<u8> {
        self.string(string::MEMO, 0)
    }
    fn store_memo(&mut self, bytes: &[u8]) -> bool {
        // SAFETY: the bytes are lent.
        unsafe { (self.table().keep)(self.call, bytes.as_ptr(), bytes.len()) == 1 }
    }
}

impl Task for Host {
    fn span(&self) -> Vec<u32> {
        let count = u32::try_from(self.number(number::SPAN_LEN)).unwrap_or(0);
        let mut out = Vec::with_capacity(count as usize);
        // SAFETY: `out` has room for `count` numbers, and those that are said to be written are.
        unsafe {
            let written = (self.table().span)(self.call, out.as_mut_ptr(), count);
            out.set_len(written.min(count) as usize);
        }
        out
    }
    fn span_text(&self, offset: u32, max: u32) -> String {
        cut(&text_of(self.string(string::SPAN_TEXT, 0)), offset, max)
    }
    fn prior(&self) -> String {
        text_of(self.string(string::PRIOR, 0))
    }
    fn sections(&self) -> Vec<String> {
        self.strings(string::SECTION, number::SECTIONS)
    }
    fn max_chars(&self) -> u32 {
        u32::try_from(self.number(number::MAX_CHARS)).unwrap_or(u32::MAX)
    }
    fn max_output_tokens(&self) -> u32 {
        u32::try_from(self.number(number::MAX_OUTPUT_TOKENS)).unwrap_or(u32::MAX)
    }
    fn replies(&self) -> Vec<String> {
        self.strings(string::REPLY, number::REPLIES)
    }
    fn ask(&mut self, system: &str, user: &str, max_output_tokens: u32) {
        // SAFETY: both texts are lent.
        unsafe { (self.table().ask)(self.call, Str::of(system), Str::of(user), max_output_tokens) };
    }
    fn section(&mut self, heading: &str, text: &str) {
        // SAFETY: both texts are lent.
        unsafe { (self.table().section)(self.call, Str::of(heading), Str::of(text)) };
    }
    fn explain(&mut self, line: &str) {
        self.line(line);
    }
}
