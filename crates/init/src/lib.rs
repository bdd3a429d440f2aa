//! PID 1 of every sandbox: starts processes, moves their bytes over the control channel, reaps.
//!
//! It runs inside, next to hostile processes, and the host distrusts it as it distrusts them. It stands apart
//! from them all the same: not dumpable, outside their Landlock domain, with no descriptor that they could
//! inherit. It must never listen on anything, never read a file that a process inside could have written and
//! act on it, and never outlive its channel: its end is the end of the sandbox.
//!
//! What a time-out or a vanished client does not reach are processes that left the process group (`setsid`).
//! They go on, as daemons do, and end with the sandbox.

mod arguments;
mod boot;
mod channel;
mod dial;
mod domain;
mod ends;
mod exec;
mod files;
mod plan;
mod processes;
mod reaper;
mod remainder;
mod spawner;
mod streams;
mod sys;
mod terminal;
mod vigil;
mod weaken;

use std::ffi::OsString;

/// Runs init until its channel ends. `arguments` come without the program's name:
/// `[--landlock off|required] [--write PATH]… [--read PATH]… [--single] [--own-kernel] [--filter PATH]`. With `files` first it is no init at all, but a process
/// inside that does one thing with files; with `processes`, one that tells which processes there are.
///
/// The exit code is 0 when the other side closed the channel, 1 when the channel broke or init could not
/// start, 2 for wrong arguments and 3 when Landlock is required and cannot be had.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    // Whoever does not read any more is an error where something is written, and no end.
    sys::ignore_broken_pipes();
    let mut arguments = arguments.into_iter().peekable();
    match arguments.peek().and_then(|first| first.to_str()) {
        Some("files") => return files::run(),
        Some("processes") => return processes::run(),
        _ => {}
    }
    match boot::run(arguments) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("agentbox-init: {error}");
            error.exit_code()
        }
    }
}
