//! Plays the golden sessions on a bare Cortex-M, and says what they needed.
#![no_std]
#![no_main]

use core::{mem::MaybeUninit, ptr::addr_of_mut};

use cortex_m_semihosting::{debug, hprintln};
use embedded_alloc::LlffHeap;
use foreshorten_golden::{DIGEST, heap::Counting, hex, run};

#[global_allocator]
static HEAP: Counting<LlffHeap> = Counting::new(LlffHeap::empty());

/// Bytes of heap; `GOLDEN_HEAP_KIB` in the environment of the build says how many KiB.
const HEAP_SIZE: usize = kib(env!("GOLDEN_HEAP_KIB")) * 1024;

const fn kib(digits: &str) -> usize {
    let (bytes, mut at, mut value) = (digits.as_bytes(), 0, 0);
    while at < bytes.len() {
        value = value * 10 + (bytes[at] - b'0') as usize;
        at += 1;
    }
    value
}

static mut ARENA: [MaybeUninit<u8>; HEAP_SIZE] = [MaybeUninit::uninit(); HEAP_SIZE];

unsafe extern "C" {
    static _stack_start: u32;
    static _stack_end: u32;
}

/// What `paint-stack` fills unused stack with.
const PAINT: u32 = 0xcccc_cccc;

/// Bytes of stack that were ever used.
fn stack_used() -> usize {
    let (mut at, end) = (&raw const _stack_end, &raw const _stack_start);
    // SAFETY: the linker script puts the stack between these two, words apart; it is only read.
    while at < end && unsafe { at.read_volatile() } == PAINT {
        // SAFETY: still below `end`.
        at = unsafe { at.add(1) };
    }
    end as usize - at as usize
}

#[cortex_m_rt::entry]
fn main() -> ! {
    // SAFETY: once, before anything is allocated, with memory that nothing else uses.
    unsafe { HEAP.inner().init(addr_of_mut!(ARENA) as usize, HEAP_SIZE) }
    let mut fits = false;
    match run(|_| {}) {
        Ok(digest) => {
            let digest = hex(&digest);
            fits = digest == DIGEST;
            hprintln!("digest {}", digest);
            let (peak, stack) = (HEAP.peak(), stack_used());
            hprintln!("heap {} bytes at most, of {}; stack {} bytes at most", peak, HEAP_SIZE, stack);
        }
        Err(wrong) => hprintln!("{}", wrong),
    }
    end(fits)
}

fn end(good: bool) -> ! {
    debug::exit(if good { debug::EXIT_SUCCESS } else { debug::EXIT_FAILURE });
    loop {
        cortex_m::asm::wfi();
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    hprintln!("{}", info);
    end(false)
}
