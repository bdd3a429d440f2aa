//! Counts what this thread has allocated, for the tests of memory. An allocator cannot be written without unsafe code.

#![expect(unsafe_code, reason = "the trait of allocators is unsafe")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that this thread has allocated and not freed.
pub(crate) fn held_by_this_thread() -> isize {
    HELD.get()
}

fn size(layout: Layout) -> isize {
    isize::try_from(layout.size()).unwrap_or(isize::MAX)
}

// SAFETY: everything is passed on as it came to the system's allocator, which keeps the trait's promises; counting
// allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that ends may free what another has allocated: only differences in one thread mean anything.
        let _ = HELD.try_with(|held| held.set(held.get() + size(layout)));
        // SAFETY: the caller's promises are the ones that are asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        let _ = HELD.try_with(|held| held.set(held.get() - size(layout)));
        // SAFETY: the caller's promises are the ones that are asked for.
        unsafe { System.dealloc(place, layout) }
    }
}
