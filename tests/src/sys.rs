//! The few calls that the standard library does not have.

#![expect(unsafe_code, reason = "a handler for the end of the process is registered with the C library")]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

static AT_EXIT: OnceLock<PathBuf> = OnceLock::new();

/// Removes a directory when this process ends, statics being never dropped.
pub(crate) fn remove_at_exit(directory: &Path) {
    if AT_EXIT.set(directory.to_owned()).is_ok() {
        // SAFETY: the handler is a plain function without arguments that cannot unwind.
        unsafe { libc::atexit(remove) };
    }
}

extern "C" fn remove() {
    if let Some(directory) = AT_EXIT.get() {
        let _ = std::fs::remove_dir_all(directory);
    }
}
