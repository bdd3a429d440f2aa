//! The one call that is not safe while other threads run.

#![expect(unsafe_code, reason = "changing the environment beside other threads is what is tested")]

/// Sets a variable of this process.
pub(crate) fn set_variable(name: &str, value: &str) {
    // SAFETY: every reader of the environment in this program is Rust's standard library, which holds the lock
    // that this call takes; the C library's own readers (time zones, locales, host names) are not called.
    unsafe { std::env::set_var(name, value) };
}
