//! The program that becomes PID 1 of every sandbox. A file of its own, small and static, so that one copy in
//! memory serves all sandboxes and none of the owner's code is inside.
//!
//! It begins where C programs do: what the language does before its own `main` are calls that nothing here needs, and on
//! gVisor's kernel calls are what a start consists of.

#![no_main]
#![expect(
    unsafe_code,
    reason = "a program without the language's own start is given its words by the loader"
)]

use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;

#[global_allocator]
static HEAP: heap::Heap = heap::Heap::new();

// SAFETY: there is no other function of that name: this program has no `main` of the language's.
#[unsafe(no_mangle)]
extern "C" fn main(count: c_int, words: *const *const c_char) -> c_int {
    let word = |number: usize| -> OsString {
        // SAFETY: the loader gives as many words as it says, each with its end, and they stay.
        let word = unsafe { CStr::from_ptr(*words.add(number)) };
        OsStr::from_bytes(word.to_bytes()).to_owned()
    };
    let words = (1..usize::try_from(count).unwrap_or(0)).map(word);
    // What was written and not sent yet goes with this.
    std::process::exit(init::main(words).into())
}
