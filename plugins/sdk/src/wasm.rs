//! The glue: imports and exports in the canonical ABI, written by hand because there is little of it.
//!
//! All `unsafe` of the SDK is here. What it rests on: the host writes results into the area given to it and into memory
//! that it got from `cabi_realloc`, before the import returns (the canonical ABI); an instance has one thread.

use alloc::{string::String, vec::Vec};
use core::alloc::{GlobalAlloc, Layout};

use crate::{Code, History, Pass, Reduction, Task};

/// What an export returns: `result<_, string>` in memory.
#[repr(C)]
pub struct Verdict {
    is_error: u32,
    text: *const u8,
    len: usize,
}

/// Leaks the verdict: the instance ends with the call.
pub fn verdict(result: Result<(), String>) -> *const Verdict {
    let verdict = match result {
        Ok(()) => Verdict { is_error: 0, text: core::ptr::null(), len: 0 },
        Err(why) => {
            let why = why.leak();
            Verdict { is_error: 1, text: why.as_ptr(), len: why.len() }
        }
    };
    alloc::boxed::Box::leak(alloc::boxed::Box::new(verdict))
}

/// Where the host leaves a list or string.
#[repr(C)]
struct List<T> {
    at: *mut T,
    len: usize,
}

impl<T> List<T> {
    const NEW: Self = Self { at: core::ptr::null_mut(), len: 0 };

    fn take(self) -> Vec<T> {
        if self.len == 0 {
            return Vec::new();
        }
        // SAFETY: the host allocated exactly `len` elements with `cabi_realloc`, that is with the global allocator,
        // and initialised them. They are lifted once.
        unsafe { Vec::from_raw_parts(self.at, self.len, self.len) }
    }
}

impl List<u8> {
    fn text(self) -> String {
        // The host sends UTF-8 only; should it not, the text is mended rather than believed.
        String::from_utf8(self.take()).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

fn texts(list: List<List<u8>>) -> Vec<String> {
    list.take().into_iter().map(List::text).collect()
}

macro_rules! imports {
    ($($module:literal { $($link:literal $name:ident($($arg:ident: $kind:ty),*) $(-> $result:ty)?;)* })*) => {
        $(
            #[link(wasm_import_module = $module)]
            unsafe extern "C" {
                $(#[link_name = $link] fn $name($($arg: $kind),*) $(-> $result)?;)*
            }
        )*
    };
}

imports! {
    "foreshorten:plugin/env@0.1.0" {
        "config" env_config(out: *mut List<u8>);
        "log" env_log(level: u32, at: *const u8, len: usize);
    }
    "foreshorten:plugin/history@0.1.0" {
        "len" history_len() -> u32;
        "kinds" history_kinds(start: u32, count: u32, out: *mut List<u8>);
        "marks" history_marks(start: u32, count: u32, out: *mut List<u16>);
        "levels" history_levels(start: u32, count: u32, out: *mut List<u8>);
        "groups" history_groups(start: u32, count: u32, out: *mut List<u32>);
        "pairs" history_pairs(start: u32, count: u32, out: *mut List<u32>);
        "weights" history_weights(start: u32, count: u32, out: *mut List<u32>);
        "view-weights" history_view_weights(start: u32, count: u32, out: *mut List<u32>);
        "sizes" history_sizes(start: u32, count: u32, out: *mut List<u32>);
        "tool-ids" history_tool_ids(start: u32, count: u32, out: *mut List<u32>);
        "tools" history_tools(out: *mut List<List<u8>>);
        "call-id" history_call_id(entry: u32, out: *mut List<u8>);
        "part-count" history_part_count(entry: u32) -> u32;
        "part-kind" history_part_kind(entry: u32, part: u32) -> u32;
        "text" history_text(entry: u32, part: u32, offset: u32, max: u32, out: *mut List<u8>);
        "rules" history_rules(start: u32, count: u32, out: *mut List<u8>);
        "texts" history_texts(at: *const u32, len: usize, max: u32, out: *mut List<List<u8>>);
    }
    "foreshorten:plugin/budget@0.1.0" {
        "window" budget_window() -> u64;
        "usable" budget_usable() -> u64;
        "target" budget_target() -> u64;
        "view-tokens" budget_view_tokens() -> u64;
        "aggressive" budget_aggressive() -> u32;
        "tail-start" budget_tail_start() -> u32;
        "turn" budget_turn() -> u64;
        "raw" budget_raw(tokens: u64) -> u64;
    }
    "foreshorten:plugin/decisions@0.1.0" {
        "clear" decisions_clear(at: *const u32, len: usize, out: *mut List<u8>);
        "clear-superseded" decisions_clear_superseded(at: *const u32, len: usize, out: *mut List<u8>);
        "offload" decisions_offload(at: *const u32, len: usize, head: u32, tail: u32, out: *mut List<u8>);
        "persist" decisions_persist(at: *const u32, len: usize, head: u32, out: *mut List<u8>);
        "would-save" decisions_would_save(what: u32, at: *const u32, len: usize, a: u32, b: u32, out: *mut List<u32>);
        "elide-media" decisions_elide_media(at: *const u32, len: usize, out: *mut List<u8>);
        "elide-part" decisions_elide_part(entry: u32, part: u32) -> u32;
        "clip-arguments" decisions_clip_arguments(at: *const u32, len: usize, out: *mut List<u8>);
        "omit-reasoning" decisions_omit_reasoning(at: *const u32, len: usize, out: *mut List<u8>);
        "snip" decisions_snip(start: u32, end: u32) -> u32;
        "request-summary" decisions_request_summary(end: u32) -> u32;
        "pin" decisions_pin(entry: u32) -> u32;
        "explain" decisions_explain(at: *const u8, len: usize);
    }
    "foreshorten:plugin/condensing@0.1.0" {
        "condense" condensing_condense(entry: u32, at: *const u8, len: usize) -> u32;
    }
    "foreshorten:plugin/memo@0.1.0" {
        "load" memo_load(out: *mut List<u8>);
        "store" memo_store(at: *const u8, len: usize) -> u32;
    }
    "foreshorten:plugin/summarizing@0.1.0" {
        "span" summarizing_span(out: *mut List<u32>);
        "span-text" summarizing_span_text(offset: u32, max: u32, out: *mut List<u8>);
        "prior" summarizing_prior(out: *mut List<u8>);
        "sections" summarizing_sections(out: *mut List<List<u8>>);
        "max-chars" summarizing_max_chars() -> u32;
        "max-output-tokens" summarizing_max_output_tokens() -> u32;
        "replies" summarizing_replies(out: *mut List<List<u8>>);
        "ask" summarizing_ask(a: *const u8, a_len: usize, b: *const u8, b_len: usize, max: u32);
        "section" summarizing_section(a: *const u8, a_len: usize, b: *const u8, b_len: usize);
        "explain" summarizing_explain(at: *const u8, len: usize);
    }
}

/// The host, as imports. What a plugin does not use is not imported.
#[derive(Debug)]
pub struct Host;

/// The plugin's configuration.
pub fn config() -> String {
    Host.config()
}

/// Calls an import that leaves a list behind.
macro_rules! list {
    ($import:ident($($arg:expr),*)) => {{
        let mut out = List::NEW;
        // SAFETY: `out` is a valid area for the one list the import writes; arguments are plain numbers, or a pointer
        // and length of a slice that outlives the call.
        unsafe { $import($($arg,)* &mut out) };
        out
    }};
}

/// Calls an import that returns a plain number, or nothing.
macro_rules! plain {
    ($import:ident($($arg:expr),*)) => {{
        // SAFETY: arguments are plain numbers, or a pointer and length of a slice that outlives the call.
        unsafe { $import($($arg),*) }
    }};
}

impl History for Host {
    fn config(&self) -> String {
        list!(env_config()).text()
    }
    fn log(&self, level: u8, message: &str) {
        plain!(env_log(level.into(), message.as_ptr(), message.len()));
    }
    fn len(&self) -> u32 {
        plain!(history_len())
    }
    fn kinds(&self, start: u32, count: u32) -> Vec<u8> {
        list!(history_kinds(start, count)).take()
    }
    fn marks(&self, start: u32, count: u32) -> Vec<u16> {
        list!(history_marks(start, count)).take()
    }
    fn levels(&self, start: u32, count: u32) -> Vec<u8> {
        list!(history_levels(start, count)).take()
    }
    fn groups(&self, start: u32, count: u32) -> Vec<u32> {
        list!(history_groups(start, count)).take()
    }
    fn pairs(&self, start: u32, count: u32) -> Vec<u32> {
        list!(history_pairs(start, count)).take()
    }
    fn weights(&self, start: u32, count: u32) -> Vec<u32> {
        list!(history_weights(start, count)).take()
    }
    fn view_weights(&self, start: u32, count: u32) -> Vec<u32> {
        list!(history_view_weights(start, count)).take()
    }
    fn sizes(&self, start: u32, count: u32) -> Vec<u32> {
        list!(history_sizes(start, count)).take()
    }
    fn tool_ids(&self, start: u32, count: u32) -> Vec<u32> {
        list!(history_tool_ids(start, count)).take()
    }
    fn rules(&self, start: u32, count: u32) -> Vec<u8> {
        list!(history_rules(start, count)).take()
    }
    fn tools(&self) -> Vec<String> {
        texts(list!(history_tools()))
    }
    fn call_id(&self, entry: u32) -> String {
        list!(history_call_id(entry)).text()
    }
    fn part_count(&self, entry: u32) -> u32 {
        plain!(history_part_count(entry))
    }
    fn part_kind(&self, entry: u32, part: u32) -> u8 {
        plain!(history_part_kind(entry, part)) as u8
    }
    fn text(&self, entry: u32, part: u32, offset: u32, max: u32) -> String {
        list!(history_text(entry, part, offset, max)).text()
    }
    fn texts(&self, entries: &[u32], max: u32) -> Vec<String> {
        texts(list!(history_texts(entries.as_ptr(), entries.len(), max)))
    }
}

impl Pass for Host {
    fn window(&self) -> u64 {
        plain!(budget_window())
    }
    fn usable(&self) -> u64 {
        plain!(budget_usable())
    }
    fn target(&self) -> u64 {
        plain!(budget_target())
    }
    fn view_tokens(&self) -> u64 {
        plain!(budget_view_tokens())
    }
    fn aggressive(&self) -> bool {
        plain!(budget_aggressive()) != 0
    }
    fn tail_start(&self) -> u32 {
        plain!(budget_tail_start())
    }
    fn turn(&self) -> u64 {
        plain!(budget_turn())
    }
    fn raw(&self, tokens: u64) -> u64 {
        plain!(budget_raw(tokens))
    }
    fn clear(&mut self, entries: &[u32]) -> Vec<Code> {
        list!(decisions_clear(entries.as_ptr(), entries.len())).take()
    }
    fn clear_superseded(&mut self, entries: &[u32]) -> Vec<Code> {
        list!(decisions_clear_superseded(entries.as_ptr(), entries.len())).take()
    }
    fn offload(&mut self, entries: &[u32], head: u32, tail: u32) -> Vec<Code> {
        list!(decisions_offload(entries.as_ptr(), entries.len(), head, tail)).take()
    }
    fn persist(&mut self, entries: &[u32], head: u32) -> Vec<Code> {
        list!(decisions_persist(entries.as_ptr(), entries.len(), head)).take()
    }
    fn would_save(&self, what: Reduction, entries: &[u32]) -> Vec<u32> {
        let (what, a, b) = what.codes();
        list!(decisions_would_save(what, entries.as_ptr(), entries.len(), a, b)).take()
    }
    fn elide_media(&mut self, entries: &[u32]) -> Vec<Code> {
        list!(decisions_elide_media(entries.as_ptr(), entries.len())).take()
    }
    fn elide_part(&mut self, entry: u32, part: u32) -> Code {
        plain!(decisions_elide_part(entry, part)) as Code
    }
    fn clip_arguments(&mut self, entries: &[u32]) -> Vec<Code> {
        list!(decisions_clip_arguments(entries.as_ptr(), entries.len())).take()
    }
    fn omit_reasoning(&mut self, entries: &[u32]) -> Vec<Code> {
        list!(decisions_omit_reasoning(entries.as_ptr(), entries.len())).take()
    }
    fn snip(&mut self, start: u32, end: u32) -> Code {
        plain!(decisions_snip(start, end)) as Code
    }
    fn request_summary(&mut self, end: u32) -> Code {
        plain!(decisions_request_summary(end)) as Code
    }
    fn pin(&mut self, entry: u32) -> Code {
        plain!(decisions_pin(entry)) as Code
    }
    fn condense(&mut self, entry: u32, text: &str) -> Code {
        plain!(condensing_condense(entry, text.as_ptr(), text.len())) as Code
    }
    fn explain(&mut self, line: &str) {
        plain!(decisions_explain(line.as_ptr(), line.len()));
    }
    fn load_memo(&self) -> Vec<u8> {
        list!(memo_load()).take()
    }
    fn store_memo(&mut self, bytes: &[u8]) -> bool {
        plain!(memo_store(bytes.as_ptr(), bytes.len())) != 0
    }
}

impl Task for Host {
    fn span(&self) -> Vec<u32> {
        list!(summarizing_span()).take()
    }
    fn span_text(&self, offset: u32, max: u32) -> String {
        list!(summarizing_span_text(offset, max)).text()
    }
    fn prior(&self) -> String {
        list!(summarizing_prior()).text()
    }
    fn sections(&self) -> Vec<String> {
        texts(list!(summarizing_sections()))
    }
    fn max_chars(&self) -> u32 {
        plain!(summarizing_max_chars())
    }
    fn max_output_tokens(&self) -> u32 {
        plain!(summarizing_max_output_tokens())
    }
    fn replies(&self) -> Vec<String> {
        texts(list!(summarizing_replies()))
    }
    fn ask(&mut self, system: &str, user: &str, max_output_tokens: u32) {
        plain!(summarizing_ask(system.as_ptr(), system.len(), user.as_ptr(), user.len(), max_output_tokens));
    }
    fn section(&mut self, heading: &str, text: &str) {
        plain!(summarizing_section(heading.as_ptr(), heading.len(), text.as_ptr(), text.len()));
    }
    fn explain(&mut self, line: &str) {
        plain!(summarizing_explain(line.as_ptr(), line.len()));
    }
}

/// Memory for what the host hands over.
///
/// # Safety
/// Called by the host alone, as the canonical ABI says: `old` is null, or was returned for `old_size` and `align`.
#[unsafe(no_mangle)]
unsafe extern "C" fn cabi_realloc(old: *mut u8, old_size: usize, align: usize, new_size: usize) -> *mut u8 {
    if new_size == 0 {
        return core::ptr::without_provenance_mut(align);
    }
    // SAFETY: the host passes a power of two as alignment, and sizes that fit a 32-bit memory.
    let at = unsafe {
        let layout = Layout::from_size_align_unchecked(if old_size == 0 { new_size } else { old_size }, align);
        if old_size == 0 { alloc::alloc::alloc(layout) } else { alloc::alloc::realloc(old, layout, new_size) }
    };
    if at.is_null() {
        core::arch::wasm32::unreachable();
    }
    at
}

/// Hands out memory and takes none back, save the piece handed out last: an instance lives for one call.
struct Bump;

/// First free byte; 0 before the first use.
static mut NEXT: usize = 0;

// SAFETY: pieces are disjoint, as `NEXT` only goes back to the start of the piece handed out last, when that one is freed
// or moved by its owner; memory up to `NEXT` has been grown. One thread.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        const PAGE: usize = 1 << 16;
        // SAFETY: one thread, so nobody else uses `NEXT`.
        let mut next = unsafe { NEXT };
        if next == 0 {
            // Everything the linker placed lies below the memory's first size.
            next = core::arch::wasm32::memory_size(0) * PAGE;
        }
        let start = next.next_multiple_of(layout.align());
        let Some(end) = start.checked_add(layout.size()) else { return core::ptr::null_mut() };
        let have = core::arch::wasm32::memory_size(0) * PAGE;
        // Grown by a sixteenth more than needed, so that many small pieces do not grow it one by one.
        if end > have && core::arch::wasm32::memory_grow(0, (end - have + end / 16).div_ceil(PAGE)) == usize::MAX {
            return core::ptr::null_mut();
        }
        // SAFETY: as above.
        unsafe { NEXT = end };
        core::ptr::with_exposed_provenance_mut(start)
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above; the piece ends where the free memory begins, so it is the newest one.
        unsafe {
            if at.addr() + layout.size() == NEXT {
                NEXT = at.addr();
            }
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's layout is valid; the newest piece grows in place, as the bytes after it are free.
        unsafe {
            if at.addr() + layout.size() == NEXT {
                NEXT = at.addr();
                let again = self.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
                if again.is_null() {
                    NEXT = at.addr() + layout.size();
                }
                return again;
            }
            let new = self.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
            if !new.is_null() {
                core::ptr::copy_nonoverlapping(at, new, layout.size().min(new_size));
            }
            new
        }
    }
}

#[cfg(not(feature = "std"))]
#[global_allocator]
static ALLOCATOR: Bump = Bump;

#[cfg(not(feature = "std"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
