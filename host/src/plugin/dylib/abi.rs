//! The shapes of `plugins/abi/foreshorten_plugin.h`, as Rust has them.

use super::host::Call;

pub(super) const MAGIC: u32 = 0x4e4c_5046;
pub(super) const ABI_MAJOR: u32 = 0;
pub(super) const ABI_MINOR: u32 = 1;
pub(super) const SYMBOL: &[u8] = b"foreshorten_plugin_entry\0";

/// Borrowed text.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Str {
    pub(super) ptr: *const u8,
    pub(super) len: usize,
}

impl Str {
    pub(super) const fn of(text: &'static str) -> Self {
        Self { ptr: text.as_ptr(), len: text.len() }
    }
}

/// `fs_host`.
#[repr(C)]
pub(super) struct HostTable {
    pub(super) struct_size: usize,
    pub(super) number: extern "C" fn(*mut Call, u32) -> u64,
    pub(super) column: extern "C" fn(*mut Call, u32, u32, u32, *mut u32) -> u32,
    pub(super) string: extern "C" fn(*mut Call, u32, u32, *mut u8, usize) -> usize,
    pub(super) text: extern "C" fn(*mut Call, u32, u32, u32, *mut u8, usize) -> usize,
    pub(super) part_kind: extern "C" fn(*mut Call, u32, u32) -> u32,
    pub(super) decide: extern "C" fn(*mut Call, u32, *const u32, usize, u32, u32, *mut u8),
    pub(super) condense: extern "C" fn(*mut Call, u32, Str) -> u8,
    pub(super) keep: extern "C" fn(*mut Call, *const u8, usize) -> u8,
    pub(super) span: extern "C" fn(*mut Call, *mut u32, u32) -> u32,
    pub(super) ask: extern "C" fn(*mut Call, Str, Str, u32),
    pub(super) section: extern "C" fn(*mut Call, Str, Str),
    pub(super) explain: extern "C" fn(*mut Call, Str),
    pub(super) log: extern "C" fn(*mut Call, u8, Str),
    pub(super) fail: extern "C" fn(*mut Call, Str),
}

/// `fs_stage` and `fs_summarizer`, which have one shape.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Factory {
    pub(super) struct_size: usize,
    pub(super) check: Option<unsafe extern "C" fn(*const HostTable, *mut Call) -> i32>,
    pub(super) main: Option<unsafe extern "C" fn(*const HostTable, *mut Call) -> i32>,
}

/// `fs_entry`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Entry {
    pub(super) magic: u32,
    pub(super) struct_size: u32,
    pub(super) abi_major: u32,
    pub(super) abi_minor: u32,
    pub(super) name: Str,
    pub(super) version: Str,
    pub(super) get_factory: Option<unsafe extern "C" fn(Str) -> *const Factory>,
}
