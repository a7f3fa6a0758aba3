//! Three functions over memory: play, and where to read what came of it.
#![no_std]

extern crate alloc;

use dlmalloc::GlobalDlmalloc;
use foreshorten_golden::{heap::Counting, run};

#[global_allocator]
static HEAP: Counting<GlobalDlmalloc> = Counting::new(GlobalDlmalloc);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

/// Plays everything; the address of the 32 bytes of the digest, or 0 when the sessions cannot be played.
#[unsafe(no_mangle)]
pub extern "C" fn golden() -> *const u8 {
    match run(|_| {}) {
        Ok(digest) => alloc::boxed::Box::leak(alloc::boxed::Box::new(digest)).as_ptr(),
        Err(_) => core::ptr::null(),
    }
}

/// Most bytes of heap that were in use.
#[unsafe(no_mangle)]
pub extern "C" fn heap_peak() -> usize {
    HEAP.peak()
}
