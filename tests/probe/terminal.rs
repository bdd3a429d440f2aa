//! Types into the terminal that the probe was given, as if its owner did.

use crate::sys::{call, report, text};

/// Tries each way, plain and with bits set that the kernel does not look at.
pub(crate) fn attempt() {
    // Paste the selection: the second byte on is the request's own.
    const PASTE: u8 = 3;
    let paste = [PASTE, 0, 0, 0, 0, 0, 0, 0];
    let hidden = 1 << 32;
    let (push, linux, discipline) =
        (libc::TIOCSTI as usize, libc::TIOCLINUX as usize, libc::TIOCSETD as usize);
    let typed = text("x");
    let zero = 0u32;
    for high in [0, hidden] {
        report("push", call(libc::SYS_ioctl, &[0, push | high, typed]));
        report("paste", call(libc::SYS_ioctl, &[0, linux | high, paste.as_ptr() as usize]));
        report("discipline", call(libc::SYS_ioctl, &[0, discipline | high, (&raw const zero) as usize]));
    }
}
