//! Where the loader enters. It gives the program its words, and nothing else comes before.

#![expect(
    unsafe_code,
    reason = "a program without the language's own start is given its words by the loader"
)]

use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;

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
