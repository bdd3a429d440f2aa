//! The same memory for what is written in C: musl's own few needs, as for the entries of a directory, would else begin a
//! second heap in each of our processes, of five calls and three pages, and libraries would fill it.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use super::HEAP;

type Place = *mut c_void;

/// What every block lies at a multiple of.
const NATURAL: usize = 2 * size_of::<usize>();

/// C's name for a block of so many bytes; like all of these it may be of none.
///
/// # Safety
/// Nothing is asked of whoever calls.
#[unsafe(no_mangle)]
unsafe extern "C" fn malloc(size: usize) -> Place {
    // SAFETY: any size will do.
    unsafe { HEAP.blocks().c_malloc(size) }.cast()
}

/// The same of so many of a size, empty.
///
/// # Safety
/// Nothing is asked of whoever calls.
#[unsafe(no_mangle)]
unsafe extern "C" fn calloc(count: usize, size: usize) -> Place {
    let Some(size) = count.checked_mul(size) else { return null_mut() };
    // SAFETY: any size will do.
    unsafe { HEAP.blocks().calloc(size, NATURAL) }.cast()
}

/// The same block with another size, here or elsewhere.
///
/// # Safety
/// The place is nothing, or one of these functions gave it and nobody gave it back.
#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(place: Place, size: usize) -> Place {
    if place.is_null() {
        // SAFETY: any size will do.
        return unsafe { malloc(size) };
    }
    // SAFETY: the caller has it from here.
    unsafe { HEAP.blocks().c_realloc(place.cast(), size) }.cast()
}

/// Gives a block back.
///
/// # Safety
/// As for `realloc`.
#[unsafe(no_mangle)]
unsafe extern "C" fn free(place: Place) {
    if !place.is_null() {
        // SAFETY: the caller has it from here.
        unsafe { HEAP.blocks().c_free(place.cast()) }
    }
}

/// A block at a multiple of a power of two.
///
/// # Safety
/// Nothing is asked of whoever calls.
#[unsafe(no_mangle)]
unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> Place {
    if !align.is_power_of_two() {
        return null_mut();
    }
    // SAFETY: it is a power of two.
    unsafe { HEAP.blocks().c_memalign(align, size) }.cast()
}

/// Its older name.
///
/// # Safety
/// Nothing is asked of whoever calls.
#[unsafe(no_mangle)]
unsafe extern "C" fn memalign(align: usize, size: usize) -> Place {
    // SAFETY: nothing is asked.
    unsafe { aligned_alloc(align, size) }
}

/// The same told by an error number.
///
/// # Safety
/// There is room for a place at `told`.
#[unsafe(no_mangle)]
unsafe extern "C" fn posix_memalign(told: *mut Place, align: usize, size: usize) -> c_int {
    const INVALID: c_int = 22;
    const NO_MEMORY: c_int = 12;
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
