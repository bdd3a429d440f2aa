//! The allocator itself, and where its pages come from.

#![expect(unsafe_code, reason = "an allocator is no safe thing")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::fmt;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlmalloc::{Allocator, Dlmalloc};
use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap_anonymous, mremap, munmap};

// glibc keeps its own, which it has used by the time that a program begins.
#[cfg(any(target_env = "musl", test))]
mod c;

/// The one of the program.
#[global_allocator]
static HEAP: Heap = Heap::new();

/// What is asked for at a time is mostly all used; more than this is somebody's large buffer, which may stay empty.
const THERE_AT_ONCE: usize = 256 << 10;

const PAGE: usize = 4096;

/// An allocator for all threads of a program.
struct Heap {
    blocks: Mutex<Dlmalloc<Pages>>,
}

impl Heap {
    /// One that has nothing yet.
    const fn new() -> Self {
        Self { blocks: Mutex::new(Dlmalloc::new_with_allocator(Pages { are_first: Cell::new(true) })) }
    }

    fn blocks(&self) -> MutexGuard<'_, Dlmalloc<Pages>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Heap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Heap")
    }
}

// SAFETY: all of it is dlmalloc's, which is used by one thread at a time. Nothing of it allocates or panics by itself.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller gives a layout that is none of nothing.
        unsafe { self.blocks().malloc(layout.size(), layout.align()) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller gives back what it had from here, by the same layout.
        unsafe { self.blocks().free(block, layout.size(), layout.align()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for `alloc`.
        unsafe { self.blocks().calloc(layout.size(), layout.align()) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as for `dealloc`, and the new size is not nothing.
        unsafe { self.blocks().realloc(block, layout.size(), layout.align(), size) }
    }
}

/// The kernel's pages. The first ones come as they are used: a program that forks first of all has used few of them by
/// then, and what is there both sides would have to copy.
struct Pages {
    are_first: Cell<bool>,
}

// SAFETY: what is given is mapped for us alone until it is freed, and is zero.
unsafe impl Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let is_filled = size <= THERE_AT_ONCE && !self.are_first.replace(false);
        let at_once = if is_filled { MapFlags::POPULATE } else { MapFlags::empty() };
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the place, where nothing is yet.
        match unsafe { mmap_anonymous(null_mut(), size, access, MapFlags::PRIVATE | at_once) } {
            Ok(pages) => (pages.cast(), size, 0),
            Err(_) => (null_mut(), 0, 0),
        }
    }

    fn remap(&self, pages: *mut u8, old: usize, new: usize, can_move: bool) -> *mut u8 {
        let flags = if can_move { MremapFlags::MAYMOVE } else { MremapFlags::empty() };
        // SAFETY: dlmalloc gives what it had from `alloc`, and takes the new place for it.
        unsafe { mremap(pages.cast(), old, new, flags) }.map_or(null_mut(), |pages| pages.cast())
    }

    fn free_part(&self, pages: *mut u8, old: usize, new: usize) -> bool {
        // SAFETY: it is the end of what dlmalloc had from `alloc`, and uses no more.
        unsafe { munmap(pages.add(new).cast(), old - new) }.is_ok()
    }

    fn free(&self, pages: *mut u8, size: usize) -> bool {
        // SAFETY: it is what dlmalloc had from `alloc`, and uses no more.
        unsafe { munmap(pages.cast(), size) }.is_ok()
    }

    fn can_release_part(&self, _flags: u32) -> bool {
        true
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        PAGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_many_sizes_keep_what_is_in_them() {
        let heap = Heap::new();
        let sizes = [1, 24, 100, 4096, 70_000, 300_000, 3 << 20];
        let layouts = sizes.map(|size| Layout::from_size_align(size, 16).unwrap());
        let mut blocks: Vec<(*mut u8, Layout)> = Vec::new();
        for (mark, layout) in layouts.into_iter().cycle().take(70).enumerate() {
            // SAFETY: each block is written within its size, and given back by the layout that it was taken by.
            unsafe {
                let block = heap.alloc_zeroed(layout);
                assert!(!block.is_null() && block.addr() % 16 == 0);
                assert_eq!((*block, *block.add(layout.size() - 1)), (0, 0));
                block.write_bytes(mark as u8, layout.size());
                blocks.push((block, layout));
            }
        }
        for (mark, (block, layout)) in blocks.into_iter().enumerate() {
            // SAFETY: as above; what is grown has its new size from then on.
            unsafe {
                let grown = heap.realloc(block, layout, layout.size() * 2);
                assert_eq!((*grown, *grown.add(layout.size() - 1)), (mark as u8, mark as u8));
                heap.dealloc(grown, Layout::from_size_align(layout.size() * 2, 16).unwrap());
            }
        }
    }
}
