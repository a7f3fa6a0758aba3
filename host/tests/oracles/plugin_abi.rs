//! What holds for any native library, whatever its tables are and whatever it hands in: used by a test and by the fuzz
//! target of the same name.
//!
//! A pointer of a library is believed, so none here is wrong: what varies is where tables end, what stands in them, and
//! every number, room and order of calls.

#![allow(unsafe_code, reason = "what is tested is a boundary of unsafe code: this plays the library")]

use std::alloc::Layout;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use foreshorten::drive::{Helpers, Summaries, settle_with};
use foreshorten::plugin::dylib::{
    DylibLoader,
    abi::{ABI_MAJOR, ABI_MINOR, Call, Cells, Entry, Factory, HostTable, MAGIC, STAGE, Str, column},
};
use foreshorten::plugin::{Limits, Settings, Stages};
use foreshorten_core::transcript::{Entry as Said, OwnedTranscript, Part, Transcript as _};
use foreshorten_core::{CompactionState, Compactor, PolicyConfig, Turn, config::PipelineStage, plan};

/// Small choices out of bytes; zeros when they run out.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// Mostly a place in a small record; now and then far out.
    fn number(&mut self) -> u32 {
        match self.byte() {
            255 => u32::MAX,
            254 => 4_000_000_000,
            253 => u32::from(self.byte()) << 8,
            small => small.into(),
        }
    }

    fn numbers(&mut self) -> Vec<u32> {
        let count = self.byte() % 9;
        (0..count).map(|_| self.number()).collect()
    }

    fn bytes(&mut self) -> Vec<u8> {
        let count = usize::from(self.byte() % 40);
        (0..count).map(|_| self.byte()).collect()
    }
}

/// Bytes of a table: exactly as many as are asked for, so that a sanitizer sees who reads one more.
struct Exactly {
    at: *mut u8,
    layout: Layout,
}

impl Exactly {
    /// The first `len` bytes of `whole`, and zeros after those.
    fn of(whole: &[u8], len: usize) -> Self {
        let Ok(layout) = Layout::from_size_align(len.max(1), 8) else { panic!("no table has {len} bytes") };
        // SAFETY: the size is not zero.
        let at = unsafe { std::alloc::alloc_zeroed(layout) };
        assert!(!at.is_null(), "out of memory");
        // SAFETY: no more than there is on either side; the new bytes are nobody else's.
        unsafe { std::ptr::copy_nonoverlapping(whole.as_ptr(), at, whole.len().min(len)) };
        Self { at, layout }
    }
}

impl Drop for Exactly {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and nothing points to it any more.
        unsafe { std::alloc::dealloc(self.at, self.layout) };
    }
}

/// What the library of a run does: its calls, and the table it offers. One run at a time.
static PROGRAM: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static OFFERED: Mutex<usize> = Mutex::new(0);
static RUNNING: Mutex<()> = Mutex::new(());

unsafe extern "C" fn get_factory(key: Str) -> *const c_void {
    assert_eq!(key.len, STAGE.len());
    std::ptr::with_exposed_provenance(*OFFERED.lock().unwrap_or_else(PoisonError::into_inner))
}

unsafe extern "C" fn check(_: *const HostTable, _: *mut Call) -> i32 {
    0
}

/// Runs the program: one call of the host after the other.
unsafe extern "C" fn plan(host: *const HostTable, call: *mut Call) -> i32 {
    let program = PROGRAM.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut choices = Choices(&program);
    // SAFETY: the host lends its table for the time of the call.
    let host = unsafe { &*host };
    while !choices.0.is_empty() {
        let what = choices.number();
        let (a, b, c) = (choices.number(), choices.number(), choices.number());
        // A room that may be nothing, and is then behind no pointer that could be written to.
        let cap = (c % 97) as usize;
        let (mut words, mut bytes) = (vec![0u32; cap], vec![0u8; cap]);
        // SAFETY: every room is as large as it is said to be, every text and list is lent for the call.
        unsafe {
            match choices.byte() % 16 {
                0 => drop((host.number)(call, what)),
                1 => {
                    let written = (host.column)(call, what, a, cap as u32, words.as_mut_ptr());
                    assert!(written as usize <= cap);
                }
                2 => drop((host.string)(call, what, a, bytes.as_mut_ptr(), cap)),
                3 => assert!((host.text)(call, what, a, b, bytes.as_mut_ptr(), cap) <= cap),
                4 => drop((host.part_kind)(call, what, a)),
                5..=7 => {
                    let entries = choices.numbers();
                    let mut codes = vec![0; entries.len()];
                    (host.decide)(call, what % 13, entries.as_ptr(), entries.len(), a, b, codes.as_mut_ptr());
                }
                8 => {
                    let entries = choices.numbers();
                    let mut saved = vec![0; entries.len()];
                    (host.would_save)(call, what % 13, entries.as_ptr(), entries.len(), a, b, saved.as_mut_ptr());
                }
                9 => {
                    let entries = choices.numbers();
                    let mut lens = vec![0; entries.len()];
                    let (ids, out) = (entries.as_ptr(), bytes.as_mut_ptr());
                    let told = (host.texts)(call, ids, entries.len(), a, out, cap, lens.as_mut_ptr());
                    assert!(told <= entries.len());
                    assert!(lens[..told].iter().map(|&len| len as usize).sum::<usize>() <= cap);
                }
                10 => drop((host.condense)(call, what, lend(&choices.bytes()))),
                11 => {
                    let memo = choices.bytes();
                    (host.keep)(call, memo.as_ptr(), memo.len());
                }
                12 => (host.explain)(call, lend(&choices.bytes())),
                13 => drop((host.raw)(call, u64::from(a) << (b % 33))),
                14 => assert!((host.span)(call, words.as_mut_ptr(), cap as u32) as usize <= cap),
                _ => match what % 16 {
                    0 => (host.fail)(call, lend(&choices.bytes())),
                    1 => (host.ask)(call, lend(&choices.bytes()), Str { ptr: std::ptr::null(), len: 9 }, a),
                    2 => (host.section)(call, lend(&choices.bytes()), lend(b"x")),
                    // The host may answer whom it does not know.
                    3 => drop((host.number)(std::ptr::null_mut(), a)),
                    4 => drop((host.column)(call, a, b, c, std::ptr::null_mut())),
                    5 => {
                        let cells = (host.cells)(call, a % 12, b, c);
                        assert!(cells.len <= c, "{cells:?} for {c}");
                        // What is lent stands while anything else is asked; a column is a column, wide or narrow.
                        let mut wide = vec![0; cells.len as usize];
                        let written = (host.column)(call, a % 12, b, cells.len, wide.as_mut_ptr());
                        assert!(written == cells.len || written == 0, "{written} numbers, {cells:?}");
                        if written > 0 {
                            assert_eq!(wide, numbers(a % 12, &cells));
                        }
                    }
                    _ => (host.log)(call, a as u8, lend(&choices.bytes())),
                },
            }
        }
    }
    0
}

/// What is lent, as wide numbers.
///
/// # Safety
/// They are there.
unsafe fn numbers(which: u32, cells: &Cells) -> Vec<u32> {
    let len = cells.len as usize;
    // SAFETY: the host lends `len` numbers of the width of that column.
    unsafe {
        match which {
            column::KINDS | column::LEVELS | column::RULES => {
                assert_eq!(cells.width, 1);
                std::slice::from_raw_parts(cells.ptr.cast::<u8>(), len).iter().map(|&cell| cell.into()).collect()
            }
            column::MARKS => {
                assert_eq!(cells.width, 2);
                std::slice::from_raw_parts(cells.ptr.cast::<u16>(), len).iter().map(|&cell| cell.into()).collect()
            }
            _ => {
                assert_eq!(cells.width, 4);
                std::slice::from_raw_parts(cells.ptr.cast::<u32>(), len).to_vec()
            }
        }
    }
}

fn lend(bytes: &[u8]) -> Str {
    Str { ptr: bytes.as_ptr(), len: bytes.len() }
}

/// Bytes of a plain table.
fn bytes_of<T>(table: &T) -> Vec<u8> {
    // SAFETY: the tables have no padding on 64-bit machines, and every byte of them is initialised.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(table).cast::<u8>(), size_of::<T>()) }.to_vec()
}

/// A record of every kind of entry.
fn record() -> OwnedTranscript {
    let mut record = OwnedTranscript::default();
    record.push(Said::system("You are an agent."));
    record.push(Said::user("Sieh dir alles an. 请看。").with(Part::Image("image/png".into(), vec![7; 40])));
    for call in 0..14 {
        let id = format!("c{}", call % 12);
        record.push(Said::reasoning("It may be the linker, or it may not."));
        record.push(Said::tool_call(&id, ["read", "run"][call % 2], format!("{{\"path\":\"{}\"}}", call % 4)));
        let result = Said::tool_result(&id, "ein Fehler: größer als erlaubt\n".repeat(8 + call));
        record.push(if call % 5 == 0 { result.failed() } else { result });
    }
    record.push(Said::tool_result("nobody", "asked"));
    record.push(Said::user("And now?"));
    record.push(Said::tool_call("last", "run", "{}"));
    record
}

/// One library over one record.
///
/// # Panics
/// When a table is read beyond its size (under a sanitizer), when a table is taken that lacks something, or when the
/// session is not as it must be afterwards.
pub(crate) fn plugin_abi(input: &[u8]) {
    let _one = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut choices = Choices(input);
    let shape = choices.byte();
    let odd = |bit: u8| shape & (1 << bit) != 0;
    // Half of all inputs have sound tables, so that the calls are reached.
    let sound = shape & 1 == 0;
    let (entry_len, factory_len) = if sound {
        (size_of::<Entry>(), size_of::<Factory>())
    } else {
        (usize::from(choices.byte() % 80).max(8), usize::from(choices.byte() % 48).max(8))
    };
    let function = |there: bool, export: foreshorten::plugin::dylib::abi::Export| there.then_some(export);
    let factory = Factory {
        struct_size: factory_len,
        check: function(sound || !odd(1), check),
        main: function(sound || !odd(2), plan),
    };
    let factory = Exactly::of(&bytes_of(&factory), factory_len);
    let entry = Entry {
        magic: if sound || !odd(3) { MAGIC } else { choices.number() },
        struct_size: entry_len as u32,
        abi_major: if sound || !odd(4) { ABI_MAJOR } else { choices.number() },
        abi_minor: if sound || !odd(4) { ABI_MINOR } else { choices.number() },
        name: Str { ptr: std::ptr::null(), len: usize::MAX },
        version: Str { ptr: std::ptr::null(), len: 0 },
        get_factory: (sound || !odd(5)).then_some(get_factory),
    };
    let entry = Exactly::of(&bytes_of(&entry), entry_len);
    *OFFERED.lock().unwrap_or_else(PoisonError::into_inner) =
        if !sound && odd(6) { 0 } else { factory.at.expose_provenance() };
    choices.0.clone_into(&mut PROGRAM.lock().unwrap_or_else(PoisonError::into_inner));

    let settings = Settings { limits: Limits::default(), ..Settings::default() };
    // SAFETY: the entry is as large as it says, its function may be called, and so may those of what that answers.
    let loaded = unsafe { DylibLoader::new().linked_stage(entry.at.cast(), "odd", &settings) };
    let whole = entry_len >= size_of::<Entry>() && factory_len >= size_of::<Factory>();
    let Ok(plugin) = loaded else {
        assert!(!sound, "sound tables were refused: {loaded:?}");
        return;
    };
    assert!(whole, "tables of {entry_len} and {factory_len} bytes were taken");

    let mut plugins = Stages::default();
    plugins.push(plugin);
    let stages = vec![PipelineStage::External("odd".into()), PipelineStage::plan(plan::ClearToolResults::default())];
    let Ok(policy) = (PolicyConfig { stages, ..PolicyConfig::default() }).build() else { return };
    let record = record();
    let mut compactor = Compactor::new(&policy);
    for overflow in [false, true] {
        compactor.sync(&record);
        compactor.begin(&record, Turn { window: Some(1_400), overflow, ..Turn::default() });
        let helpers = Helpers { summarizer: &Summaries::None, store: None, plugins: &plugins };
        assert!(settle_with(&mut compactor, &record, helpers).is_ok(), "a plugin that is not required stopped a turn");
        // What is stored says all: whoever resumes from it has the same view.
        let stored = compactor.state().encode();
        let state = CompactionState::decode(&stored).unwrap_or_else(|error| panic!("the state is none: {error:?}"));
        assert!(state == *compactor.state(), "the state came back another");
        let mut resumed = Compactor::resume(&policy, state);
        resumed.sync(&record);
        assert!(resumed.view().pieces().eq(compactor.view().pieces()), "another view after resuming");
        // What the user said last, and instructions, stand in it as they are.
        let (ledger, columns) = (compactor.ledger(), compactor.columns());
        for entry in 0..record.len() {
            if columns.kind(entry) == foreshorten_core::transcript::EntryKind::System
                || columns.newest_user() as usize == entry
            {
                assert_eq!(ledger.level(columns, entry), plan::Level::Verbatim, "entry {entry}");
            }
        }
    }
}
