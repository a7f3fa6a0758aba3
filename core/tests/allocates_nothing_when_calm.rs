//! A calm turn allocates nothing once room is reserved.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use foreshorten_core::{Compactor, PolicyConfig, Step, Turn, transcript::OwnedTranscript};
use foreshorten_testkit::{
    Counted,
    cases::{a, built, pair, s, t10, u},
};

thread_local!(static CALLS: Cell<u64> = const { Cell::new(0) });

/// The system's allocator, which counts what this thread asks for.
struct Counting;

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_thousand_calm_turns_allocate_nothing() {
    let policy = built(PolicyConfig { context_window: Some(2_000_000), ..t10_as_shares() });
    let mut entries = vec![s(200), u(60)];
    for k in 0..1_100 {
        // Ids, parallel results in any order, and users who speak now and then.
        let [call, result] = pair(&format!("call_{k}"), 20, 60);
        let [second, other] = pair(&format!("also_{k}"), 20, 30);
        entries.extend([a(10), call, second, other, result]);
        if k % 7 == 0 {
            entries.push(u(20));
        }
    }
    let whole = OwnedTranscript::from(entries);
    // The same turns after a pass has been made, with markers and a note in the view.
    for compacted in [false, true] {
        let mut transcript = Counted::new(&whole, 200);
        let mut compactor = Compactor::new(&policy);
        compactor.reserve(whole.entries().len());
        let mut turn = Turn { window: Some(2_000_000), schema_tokens: 500, scope: "a/model", ..Turn::default() };
        compactor.sync(&transcript);
        if compacted {
            compactor.begin(&transcript, Turn { overflow: true, ..turn });
            while matches!(compactor.poll(&transcript), Step::Effect(_)) {}
            assert!(compactor.outcome().compacted && !compactor.state().records().is_empty());
        }
        let before = CALLS.get();
        let mut pieces = 0;
        for _ in 0..1_000 {
            transcript.grow(5);
            compactor.sync(&transcript);
            turn.schema_tokens += 1;
            compactor.begin(&transcript, turn);
            assert!(matches!(compactor.poll(&transcript), Step::Done(outcome) if !outcome.compacted));
            pieces += compactor.view().pieces().count();
            let _ = compactor.handle_usage(compactor.tokens() + 100);
        }
        let calls = CALLS.get() - before;
        assert!(pieces > 1_000_000 && compactor.columns().len() == 5_200);
        assert_eq!(calls, 0, "allocations in 1,000 calm turns (compacted before: {compacted})");
    }
    // The counter counts.
    let before = CALLS.get();
    drop(std::hint::black_box(vec![1u8; 64]));
    assert!(CALLS.get() > before);
}

fn t10_as_shares() -> PolicyConfig {
    let shares = PolicyConfig::default();
    PolicyConfig { compact_at: shares.compact_at, compact_to: shares.compact_to, ..t10() }
}
