//! The same memory for what is written in C: musl's own few needs, as for the entries of a directory, would else begin a
//! second heap in each of our processes, of five calls and three pages, and libraries would fill it.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use super::HEAP;

type Place = *mut c_void;

const NO_MEMORY: c_int = 12;
const INVALID: c_int = 22;

unsafe extern "C" {
    /// Where the last error's number is, in every libc.
    safe fn __errno_location() -> *mut c_int;
}

/// Gives a block to C, which is told by a number why there is none.
fn give(place: *mut u8) -> Place {
    if place.is_null() {
        set_error(NO_MEMORY);
    }
    place.cast()
}

fn set_error(number: c_int) {
    // SAFETY: it is this thread's own, and always there.
    unsafe { *__errno_location() = number }
}

/// What every block lies at a multiple of.
const NATURAL: usize = 2 * size_of::<usize>();

/// C's name for a block of so many bytes; like all of these it may be of none.
///
/// # Safety
/// Nothing is asked of whoever calls.
#[cfg_attr(target_env = "musl", unsafe(no_mangle))]
unsafe extern "C" fn malloc(size: usize) -> Place {
    // SAFETY: any size will do.
    give(unsafe { HEAP.blocks().c_malloc(size) })
}

/// The same of so many of a size, empty.
///
/// # Safety
/// Nothing is asked of whoever calls.
#[cfg_attr(target_env = "musl", unsafe(no_mangle))]
unsafe extern "C" fn calloc(count: usize, size: usize) -> Place {
    let Some(size) = count.checked_mul(size) else { return give(null_mut()) };
    // SAFETY: any size will do.
    give(unsafe { HEAP.blocks().calloc(size, NATURAL) })
}

/// The same block with another size, here or elsewhere.
///
/// # Safety
/// The place is nothing, or one of these functions gave it and nobody gave it back.
#[cfg_attr(target_env = "musl", unsafe(no_mangle))]
unsafe extern "C" fn realloc(place: Place, size: usize) -> Place {
    if place.is_null() {
        // SAFETY: any size will do.
        return unsafe { malloc(size) };
    }
    // SAFETY: the caller has it from here.
    give(unsafe { HEAP.blocks().c_realloc(place.cast(), size) })
}

/// Gives a block back.
///
/// # Safety
/// As for `realloc`.
#[cfg_attr(target_env = "musl", unsafe(no_mangle))]
unsafe extern "C" fn free(place: Place) {
    if place.is_null() {
        return;
    }
    // Whoever gives something back on the way out of a failure still wants to know which it was.
    // SAFETY: it is this thread's own, and always there.
    let error = unsafe { *__errno_location() };
    // SAFETY: the caller has it from here.
    unsafe { HEAP.blocks().c_free(place.cast()) }
    set_error(error);
}

/// A block at a multiple of a power of two.
///
/// # Safety
/// Nothing is asked of whoever calls.
#[cfg_attr(target_env = "musl", unsafe(no_mangle))]
unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> Place {
    if !align.is_power_of_two() {
        set_error(INVALID);
        return null_mut();
    }
    // SAFETY: it is a power of two.
    give(unsafe { HEAP.blocks().c_memalign(align, size) })
}

/// Its older name.
///
/// # Safety
/// Nothing is asked of whoever calls.
#[cfg_attr(target_env = "musl", unsafe(no_mangle))]
unsafe extern "C" fn memalign(align: usize, size: usize) -> Place {
    // SAFETY: nothing is asked.
    unsafe { aligned_alloc(align, size) }
}

/// The same told by an error number.
///
/// # Safety
/// There is room for a place at `told`.
#[cfg_attr(target_env = "musl", unsafe(no_mangle))]
unsafe extern "C" fn posix_memalign(told: *mut Place, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || align < size_of::<Place>() {
        return INVALID;
    }
    // SAFETY: nothing is asked.
    let place = unsafe { aligned_alloc(align, size) };
    if place.is_null() {
        return NO_MEMORY;
    }
    // SAFETY: the caller has room there.
    unsafe { told.write(place) };
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many bytes of a block are something.
    fn count_dirty(place: Place, size: usize) -> usize {
        // SAFETY: each caller has a block of that size.
        unsafe { std::slice::from_raw_parts(place.cast::<u8>(), size) }
            .iter()
            .filter(|byte| **byte != 0)
            .count()
    }

    #[test]
    fn c_gets_blocks_as_it_expects_them() {
        const SIZE: usize = 300;
        // SAFETY: each block is written within its size, and given back once.
        unsafe {
            let block = malloc(SIZE);
            block.cast::<u8>().write_bytes(7, SIZE);
            let block = realloc(block, 70 * SIZE);
            assert_eq!(count_dirty(block, SIZE), SIZE);
            free(block);
            // Taken again from what was given back.
            let (empty, none) = (calloc(10, SIZE / 10), malloc(0));
            assert_eq!(count_dirty(empty, SIZE), 0);
            let from_nothing = realloc(null_mut(), SIZE);
            assert!(!from_nothing.is_null());
            for block in [empty, none, from_nothing, null_mut()] {
                free(block);
            }
        }
    }

    #[test]
    fn what_cannot_be_given_is_told_by_a_number_that_stays() {
        // SAFETY: nothing of what is asked for is ever used.
        unsafe {
            set_error(0);
            assert!(calloc(usize::MAX, 2).is_null());
            assert_eq!(*__errno_location(), NO_MEMORY);
            let block = malloc(1);
            set_error(INVALID);
            free(block);
            assert_eq!(*__errno_location(), INVALID);
        }
    }

    #[test]
    fn a_place_is_at_a_multiple_or_nowhere() {
        let mut told = null_mut();
        for align in [0, 3, 4] {
            // SAFETY: there is room for a place.
            assert_eq!(unsafe { posix_memalign(&raw mut told, align, 10) }, INVALID, "{align}");
        }
        for align in [8, 64, 4096] {
            // SAFETY: as above; what was given is given back.
            unsafe {
                assert_eq!(posix_memalign(&raw mut told, align, 10), 0);
                assert_eq!(told.addr() % align, 0);
                free(told);
                let block = memalign(align, 10);
                assert_eq!(block.addr() % align, 0);
                free(block);
            }
        }
    }
}
