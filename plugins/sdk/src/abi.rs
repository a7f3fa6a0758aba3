//! The shapes of `plugins/abi/foreshorten_plugin.h`, as Rust has them. The host is compiled with this very file, and a
//! test compares it with the header: sizes, offsets and numbers.
//!
//! Tables grow at their end only: a member is there if it lies below the size that the table states.

use core::ffi::c_void;

/// What an entry begins with: "FPLN", little endian.
pub const MAGIC: u32 = 0x4e4c_5046;
/// Another major number is refused.
pub const ABI_MAJOR: u32 = 0;
/// Before 1.0, another minor number is refused too.
pub const ABI_MINOR: u32 = 1;
/// "No entry", "no part".
pub const NONE: u32 = u32::MAX;
/// Key of a stage.
pub const STAGE: &str = "stage/0.1";
/// Key of a summarizer.
pub const SUMMARIZER: &str = "summarizer/0.1";

/// `FS_KINDS` and so on: columns.
pub mod column {
    #![allow(missing_docs, reason = "named as in the header")]
    pub const KINDS: u32 = 0;
    pub const MARKS: u32 = 1;
    pub const LEVELS: u32 = 2;
    pub const GROUPS: u32 = 3;
    pub const PAIRS: u32 = 4;
    pub const WEIGHTS: u32 = 5;
    pub const VIEW_WEIGHTS: u32 = 6;
    pub const SIZES: u32 = 7;
    pub const TOOL_IDS: u32 = 8;
    pub const RULES: u32 = 9;
}

/// `FS_CLEAR` and so on: decisions.
pub mod decision {
    #![allow(missing_docs, reason = "named as in the header")]
    pub const CLEAR: u32 = 0;
    pub const CLEAR_SUPERSEDED: u32 = 1;
    pub const OFFLOAD: u32 = 2;
    pub const ELIDE_MEDIA: u32 = 3;
    pub const ELIDE_PART: u32 = 4;
    pub const CLIP_ARGUMENTS: u32 = 5;
    pub const OMIT_REASONING: u32 = 6;
    pub const SNIP: u32 = 7;
    pub const REQUEST_SUMMARY: u32 = 8;
    pub const PIN: u32 = 9;
    pub const PERSIST: u32 = 10;
}

/// `FS_CONFIG` and so on: texts of a call.
pub mod string {
    #![allow(missing_docs, reason = "named as in the header")]
    pub const CONFIG: u32 = 0;
    pub const TOOL: u32 = 1;
    pub const CALL_ID: u32 = 2;
    pub const MEMO: u32 = 3;
    pub const SPAN_TEXT: u32 = 4;
    pub const PRIOR: u32 = 5;
    pub const SECTION: u32 = 6;
    pub const REPLY: u32 = 7;
}

/// `FS_LEN` and so on: numbers of a call.
pub mod number {
    #![allow(missing_docs, reason = "named as in the header")]
    pub const LEN: u32 = 0;
    pub const WINDOW: u32 = 1;
    pub const USABLE: u32 = 2;
    pub const TARGET: u32 = 3;
    pub const VIEW_TOKENS: u32 = 4;
    pub const AGGRESSIVE: u32 = 5;
    pub const TAIL_START: u32 = 6;
    pub const TURN: u32 = 7;
    pub const MAX_CHARS: u32 = 8;
    pub const MAX_OUTPUT_TOKENS: u32 = 9;
    pub const SECTIONS: u32 = 10;
    pub const REPLIES: u32 = 11;
    pub const SPAN_LEN: u32 = 12;
}

/// `fs_call`: one call. Opaque to a plugin.
#[derive(Debug)]
#[repr(C)]
pub struct Call {
    _opaque: [u8; 0],
}

/// `fs_str`: borrowed text.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Str {
    /// Its first byte.
    pub ptr: *const u8,
    /// Its bytes.
    pub len: usize,
}

impl Str {
    /// Lends a text.
    #[must_use]
    pub const fn of(text: &str) -> Self {
        Self { ptr: text.as_ptr(), len: text.len() }
    }
}

/// `fs_cells`: a range of a column, lent.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Cells {
    /// The first number; null where there is none.
    pub ptr: *const c_void,
    /// How many there are.
    pub len: u32,
    /// Bytes of each: 1, 2 or 4. The first is aligned to it.
    pub width: u32,
}

impl Cells {
    /// None.
    pub const NONE: Self = Self { ptr: core::ptr::null(), len: 0, width: 0 };

    /// Lends numbers; none where there are none. `T` is a plain number of 1, 2 or 4 bytes.
    #[must_use]
    pub const fn of<T: Copy>(cells: &[T]) -> Self {
        if cells.is_empty() {
            return Self::NONE;
        }
        Self { ptr: cells.as_ptr().cast(), len: cells.len() as u32, width: size_of::<T>() as u32 }
    }
}

impl Default for Cells {
    fn default() -> Self {
        Self::NONE
    }
}

/// `fs_host`: what a plugin may call.
#[derive(Debug)]
#[repr(C)]
pub struct HostTable {
    /// Bytes of the table.
    pub struct_size: usize,
    /// A number of the call; 0 where there is none.
    pub number: unsafe extern "C" fn(*mut Call, u32) -> u64,
    /// A range of a column; answers how many were written.
    pub column: unsafe extern "C" fn(*mut Call, u32, u32, u32, *mut u32) -> u32,
    /// A text of the call; answers how many bytes there are.
    pub string: unsafe extern "C" fn(*mut Call, u32, u32, *mut u8, usize) -> usize,
    /// A range of a part's text; answers how many bytes were written.
    pub text: unsafe extern "C" fn(*mut Call, u32, u32, u32, *mut u8, usize) -> usize,
    /// Kind of a part; [`NONE`] past the last.
    pub part_kind: unsafe extern "C" fn(*mut Call, u32, u32) -> u32,
    /// Decisions.
    pub decide: unsafe extern "C" fn(*mut Call, u32, *const u32, usize, u32, u32, *mut u8),
    /// The plugin's own text in place of a result.
    pub condense: unsafe extern "C" fn(*mut Call, u32, Str) -> u8,
    /// Keeps a memo; 1: kept.
    pub keep: unsafe extern "C" fn(*mut Call, *const u8, usize) -> u8,
    /// Entries to be summarized; answers how many were written.
    pub span: unsafe extern "C" fn(*mut Call, *mut u32, u32) -> u32,
    /// Asks a model.
    pub ask: unsafe extern "C" fn(*mut Call, Str, Str, u32),
    /// Writes a section.
    pub section: unsafe extern "C" fn(*mut Call, Str, Str),
    /// A line for the notice.
    pub explain: unsafe extern "C" fn(*mut Call, Str),
    /// A line for the log.
    pub log: unsafe extern "C" fn(*mut Call, u8, Str),
    /// Says why the call fails.
    pub fail: unsafe extern "C" fn(*mut Call, Str),
    /// What decisions would save.
    pub would_save: unsafe extern "C" fn(*mut Call, u32, *const u32, usize, u32, u32, *mut u32),
    /// Tokens as weights count them.
    pub raw: unsafe extern "C" fn(*mut Call, u64) -> u64,
    /// Beginnings of the texts of several entries; answers of how many.
    pub texts: unsafe extern "C" fn(*mut Call, *const u32, usize, u32, *mut u8, usize, *mut u32) -> usize,
    /// A range of a column as it is, lent until this is called again or the call returns.
    pub cells: unsafe extern "C" fn(*mut Call, u32, u32, u32) -> Cells,
}

/// `check`, `plan` or `step`.
pub type Export = unsafe extern "C" fn(*const HostTable, *mut Call) -> i32;

/// `fs_stage` and `fs_summarizer`, which have one shape.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Factory {
    /// Bytes of the table.
    pub struct_size: usize,
    /// Looks at the configuration.
    pub check: Option<Export>,
    /// `plan` or `step`.
    pub main: Option<Export>,
}

/// `fs_entry`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Entry {
    /// [`MAGIC`].
    pub magic: u32,
    /// Bytes of the table.
    pub struct_size: u32,
    /// [`ABI_MAJOR`].
    pub abi_major: u32,
    /// [`ABI_MINOR`].
    pub abi_minor: u32,
    /// Name of the plugin.
    pub name: Str,
    /// Its version.
    pub version: Str,
    /// The table for a key; null where there is none.
    pub get_factory: Option<unsafe extern "C" fn(Str) -> *const c_void>,
}

// SAFETY: what an entry points to are constants of the program, and nothing in it is ever changed.
unsafe impl Sync for Entry {}
