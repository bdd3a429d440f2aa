//! What the caller started this process with, where the kernel has laid it: the words and variables at the top of the stack.

use std::ffi::{CStr, CString, c_char};
use std::ptr;

/// More words than the kernel takes.
const MOST_WORDS: usize = 1 << 23;

unsafe extern "C" {
    /// The list of variables, as every libc has it.
    static mut environ: *const *mut c_char;
}

/// Words and variables as they lie there. Nothing of them is copied by looking.
#[derive(Clone, Copy, Debug)]
pub struct Heritage {
    /// The list of words, with nothing at its end.
    words: *const *mut c_char,
    /// The same of variables.
    variables: *const *mut c_char,
}

impl Heritage {
    /// Looks for it; there is nothing to be found once somebody has changed a variable, or kept a copy of one.
    #[must_use]
    pub fn find() -> Option<Self> {
        Self::where_it_lies().filter(|heritage| !heritage.was_taken())
    }

    /// glibc has looked for what is meant for itself before a program begins, and keeps what it found.
    fn was_taken(&self) -> bool {
        let is_for_libc =
            |text: &CStr| [&b"LD_"[..], b"GLIBC_"].iter().any(|it| text.to_bytes().starts_with(it));
        cfg!(target_env = "gnu") && self.variables().any(is_for_libc)
    }

    fn where_it_lies() -> Option<Self> {
        // SAFETY: the process has one thread when this is asked for, and libc has set the list before `main`.
        let variables = unsafe { environ };
        if variables.is_null() || !is_on_the_stack(variables) {
            return None;
        }
        // The kernel lays down how many words there are, the words, nothing, and then the variables.
        for count in 0..MOST_WORDS {
            // SAFETY: between the number of words and the variables is nothing but words, and the loop ends at the number:
            // no address is as small as that.
            let before = unsafe { variables.sub(count + 2) };
            // SAFETY: as above.
            if unsafe { *before }.addr() == count {
                // SAFETY: what comes after the number is the first word.
                return Some(Self { words: unsafe { before.add(1) }, variables });
            }
        }
        None
    }

    /// The words, our name first.
    pub fn words(&self) -> impl Iterator<Item = &CStr> {
        // SAFETY: each leads to a string of the kernel's, which stays where it is.
        list(self.words).map(|word| unsafe { CStr::from_ptr(word) })
    }

    fn variables(&self) -> impl Iterator<Item = &CStr> {
        // SAFETY: as for the words.
        list(self.variables).map(|text| unsafe { CStr::from_ptr(text) })
    }

    /// Overwrites all of it, for whoever reads our memory or asks the kernel for it. What is left are `title`, as the
    /// words that others see, as far as there is room, and `variables`.
    pub(crate) fn wipe(self, title: &[u8], variables: Vec<CString>) {
        // One behind the other, as far as the last word's end.
        let end = self.words().last().map_or(0, |last| last.as_ptr().addr() + last.count_bytes());
        // Behind the variables the kernel names the file once more.
        // SAFETY: this asks for a number.
        let file = ptr::with_exposed_provenance_mut(unsafe { libc::getauxval(libc::AT_EXECFN) } as usize);
        let file = Some(file).filter(|file: &*mut c_char| !file.is_null());
        for text in list(self.words).chain(list(self.variables)).chain(file) {
            // SAFETY: the kernel has made these strings for us to write to; none of their ends is touched.
            unsafe { ptr::write_bytes(text, 0, CStr::from_ptr(text).count_bytes()) };
        }
        if let Some(first) = list(self.words).next() {
            let room = end.saturating_sub(first.addr());
            // SAFETY: the words lie there in a row, and nobody reads them as ours any more.
            unsafe { ptr::copy_nonoverlapping(title.as_ptr().cast(), first, title.len().min(room)) };
        }
        let list: Vec<_> = variables.into_iter().map(CString::into_raw).chain([ptr::null_mut()]).collect();
        // SAFETY: the process has one thread, and the list is never freed.
        unsafe { environ = Vec::leak(list).as_ptr() };
    }
}

/// Whether this is where the kernel has put it: above whatever is on the stack by now.
fn is_on_the_stack(variables: *const *mut c_char) -> bool {
    let here = 0_u8;
    (&raw const here).addr() < variables.addr()
}

/// What a list leads to, up to its end.
fn list(first: *const *mut c_char) -> impl Iterator<Item = *mut c_char> {
    // SAFETY: the kernel ends both of its lists with nothing, and they stay where they are.
    (0..).map(move |at| unsafe { *first.add(at) }).take_while(|text| !text.is_null())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn what_the_kernel_laid_is_what_everybody_is_told() {
        let heritage = Heritage::where_it_lies().unwrap();
        let words: Vec<_> = std::env::args_os().map(OsStringExt::into_vec).collect();
        assert_eq!(heritage.words().map(|word| word.to_bytes().to_vec()).collect::<Vec<_>>(), words);
        // SAFETY: each leads to a string of the kernel's, which stays where it is.
        let variables =
            list(heritage.variables).map(|text| unsafe { CStr::from_ptr(text) }.to_bytes().to_vec());
        let told = std::env::vars_os()
            .map(|(name, value)| [name.into_vec(), b"=".to_vec(), value.into_vec()].concat());
        assert_eq!(variables.collect::<Vec<_>>(), told.collect::<Vec<_>>());
    }
}
