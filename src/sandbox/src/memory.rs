//! A counting memory limiter for the global allocator, active only in workers; and the return of free memory.
//!
//! An allocator requires `unsafe`; every method here forwards its arguments unchanged and only counts.
#![allow(
    unsafe_code,
    reason = "GlobalAlloc is an unsafe trait, an allocator may end its process only by _exit, and mimalloc is written in C"
)]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use monty_types::{BASELINE_MEMORY, LIVE_MEMORY, OOM_EXIT_CODE};

static ARMED: AtomicBool = AtomicBool::new(false);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Memory allocated before counting starts may be freed later, so the counter starts well above zero.
const START: usize = 1 << 40;

/// An allocator that ends the process when a limit is exceeded, with a status that the parent recognises.
///
/// Inactive in the service: each allocator call then costs one load and a well-predicted branch.
#[derive(Debug)]
pub struct Limiter<A>(A);

impl<A> Limiter<A> {
    /// Wraps `inner`.
    pub const fn new(inner: A) -> Self {
        Self(inner)
    }
}

/// Returns the process's free memory to the operating system, if mimalloc is its global allocator.
///
/// mimalloc does so itself, but only while its threads allocate: without this call, an idle service would keep the
/// memory of its last load. Takes milliseconds for each 100 MiB.
pub fn release_free_memory() {
    // SAFETY: `mi_collect` takes no pointer and may be called at any time by any thread.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

/// Starts counting. Called once, in a worker.
pub(crate) fn arm() {
    LIVE_MEMORY.store(START, Relaxed);
    ARMED.store(true, Relaxed);
}

/// Allows `bytes` more to be allocated. Monty reads both counters and stops cleanly at its own limit.
pub(crate) fn allow(bytes: usize) {
    let live = LIVE_MEMORY.load(Relaxed);
    BASELINE_MEMORY.store(live, Relaxed);
    LIMIT.store(live.saturating_add(bytes), Relaxed);
}

/// Removes the limit.
pub(crate) fn lift() {
    LIMIT.store(usize::MAX, Relaxed);
}

#[inline]
fn charge(size: usize) {
    if ARMED.load(Relaxed) {
        let live = LIVE_MEMORY.fetch_add(size, Relaxed).saturating_add(size);
        if live > LIMIT.load(Relaxed) {
            end();
        }
    }
}

#[inline]
fn refund(size: usize) {
    if ARMED.load(Relaxed) {
        LIVE_MEMORY.fetch_sub(size, Relaxed);
    }
}

/// In a worker, a null pointer means that the second limit, the address space, is exhausted.
#[inline]
fn given(pointer: *mut u8) -> *mut u8 {
    if pointer.is_null() && ARMED.load(Relaxed) {
        end();
    }
    pointer
}

#[cold]
#[inline(never)]
fn end() -> ! {
    // SAFETY: `_exit` takes no pointer and does not return. `exit` would run code that may allocate.
    unsafe { libc::_exit(OOM_EXIT_CODE) }
}

// SAFETY: every method forwards its arguments unchanged to the inner allocator and returns its result, or does not
// return at all, so the inner allocator's guarantees hold.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Limiter<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        charge(layout.size());
        // SAFETY: forwarded unchanged.
        given(unsafe { self.0.alloc(layout) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        refund(layout.size());
        // SAFETY: forwarded unchanged.
        unsafe { self.0.dealloc(pointer, layout) };
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        charge(layout.size());
        // SAFETY: forwarded unchanged.
        given(unsafe { self.0.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match size.checked_sub(layout.size()) {
            Some(more) => charge(more),
            None => refund(layout.size().saturating_sub(size)),
        }
        // SAFETY: forwarded unchanged.
        given(unsafe { self.0.realloc(pointer, layout, size) })
    }
}
