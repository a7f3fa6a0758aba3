//! An embedder can refuse entries rather than abort: growth is asked for first, and then nothing is.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    ptr::null_mut,
};

use foreshorten_core::{
    Compactor, OutOfMemory, Policy, Step, Turn,
    render::RenderCache,
    transcript::{Columns, Entry, OwnedTranscript, Transcript},
};
use foreshorten_testkit::Growing;

thread_local! {
    /// Bytes this thread may still have.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
    /// Requests of this thread.
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, out of memory when [`LEFT`] is used up.
struct Short;

// SAFETY: every call is passed on to the system's allocator as it came, or answered with null.
unsafe impl GlobalAlloc for Short {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        match LEFT.get().checked_sub(layout.size()) {
            None => null_mut(),
            Some(left) => {
                LEFT.set(left);
                // SAFETY: the caller keeps the contract of `alloc`.
                unsafe { System.alloc(layout) }
            }
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LEFT.set(LEFT.get().saturating_add(layout.size()));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Short = Short;

fn with_bytes<T>(bytes: usize, f: impl FnOnce() -> T) -> T {
    LEFT.set(bytes);
    let out = f();
    LEFT.set(usize::MAX);
    out
}

/// Calls, results, results nobody asked for, reused ids, chat.
fn entries(from: usize, to: usize) -> Vec<Entry> {
    (from..to)
        .map(|k| match k % 5 {
            0 => Entry::user(format!("question {k}")),
            1 => Entry::tool_call(format!("call_{}", k % 50), "read", format!("{{\"line\":{k}}}")),
            2 => Entry::tool_result(format!("call_{}", (k - 1) % 50), format!("line {k}")),
            3 => Entry::tool_result("nobody", "what is this?"),
            _ => Entry::assistant(format!("answer {k}")),
        })
        .collect()
}

fn turn(compactor: &mut Compactor<&Policy>, transcript: &dyn Transcript) {
    compactor.sync(transcript);
    compactor.begin(transcript, Turn { window: Some(10_000_000), scope: "a/model", ..Turn::default() });
    assert!(matches!(compactor.poll(transcript), Step::Done(outcome) if !outcome.compacted));
}

#[test]
fn growth_is_refused_at_every_size_and_what_was_there_goes_on_working() {
    let policy = Policy::default();
    let transcript = OwnedTranscript::from(entries(0, 100));
    let mut compactor = Compactor::new(&policy);
    turn(&mut compactor, &transcript);
    let (view, state) = (compactor.view().len(), compactor.state().encode());
    let (mut refused, mut room) = (0, 0);
    loop {
        match with_bytes(room, || compactor.try_reserve(2_000)) {
            Ok(()) => break,
            Err(OutOfMemory) => refused += 1,
        }
        assert_eq!((compactor.view().len(), compactor.state().encode()), (view, state.clone()));
        // What was got before the refusal is kept, so every round needs less.
        room += 1_000;
    }
    assert!(refused > 20, "refused {refused} times, up to {room} bytes");
    assert_eq!(compactor.try_reserve(usize::MAX), Err(OutOfMemory));
    turn(&mut compactor, &OwnedTranscript::from(entries(0, 200)));
    assert_eq!(compactor.columns().len(), 200);
}

#[test]
fn after_the_room_is_granted_nothing_is_asked_for() {
    let policy = Policy::default();
    let whole = OwnedTranscript::from(entries(0, 3_000));
    let mut transcript = Growing { whole: &whole, len: 20 };
    let mut compactor = Compactor::new(&policy);
    turn(&mut compactor, &transcript);
    compactor.try_reserve(2_980).unwrap();
    let before = CALLS.get();
    while transcript.len < 3_000 {
        transcript.len += 20;
        with_bytes(0, || turn(&mut compactor, &transcript));
    }
    assert_eq!(CALLS.get() - before, 0, "allocations in 149 turns");
    assert_eq!((compactor.columns().len(), compactor.columns().orphans().len()), (3_000, 600));
}

#[test]
fn an_entry_and_a_piece_cost_what_the_docs_say() {
    assert_eq!((Columns::bytes_per_entry(), RenderCache::bytes_per_piece()), (41, 28));
}
