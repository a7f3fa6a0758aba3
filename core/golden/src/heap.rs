//! An allocator that counts, to say what the sessions need.

use core::{
    alloc::{GlobalAlloc, Layout},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Passes every request on to `A` and keeps count of the bytes that are out, and of the most that ever were.
///
/// Only loads and stores are used, so that it works where there are no atomic read-modify-write instructions; with
/// more than one thread the counts are not to be relied on. A block that grows counts twice while it is copied.
#[derive(Debug)]
pub struct Counting<A> {
    inner: A,
    now: AtomicUsize,
    peak: AtomicUsize,
    calls: AtomicUsize,
}

impl<A> Counting<A> {
    /// Counts what is asked of `inner`.
    pub const fn new(inner: A) -> Self {
        Self { inner, now: AtomicUsize::new(0), peak: AtomicUsize::new(0), calls: AtomicUsize::new(0) }
    }

    /// The allocator behind it.
    pub const fn inner(&self) -> &A {
        &self.inner
    }

    /// Bytes that are out.
    pub fn now(&self) -> usize {
        self.now.load(Relaxed)
    }

    /// Most bytes that ever were out, by the lengths asked for.
    pub fn peak(&self) -> usize {
        self.peak.load(Relaxed)
    }

    /// Blocks asked for so far.
    pub fn calls(&self) -> usize {
        self.calls.load(Relaxed)
    }

    /// Forgets the most that ever was out.
    pub fn restart(&self) {
        self.peak.store(self.now(), Relaxed);
    }
}

// SAFETY: every call is passed on as it came. `realloc` is the default one: allocate, copy, free.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        let pointer = unsafe { self.inner.alloc(layout) };
        if !pointer.is_null() {
            let now = self.now().wrapping_add(layout.size());
            self.now.store(now, Relaxed);
            self.calls.store(self.calls().wrapping_add(1), Relaxed);
            if now > self.peak() {
                self.peak.store(now, Relaxed);
            }
        }
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.now.store(self.now().wrapping_sub(layout.size()), Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { self.inner.dealloc(pointer, layout) }
    }
}
