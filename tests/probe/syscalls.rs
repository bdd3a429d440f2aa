//! Every number, with arguments that do no harm, each in a child of its own.

use crate::sys::{Ended, bare_call, end, errno_name, in_child};

/// Beyond the last number of any kernel so far.
const LAST: usize = 600;
/// sync has no argument that would make it harmless to whoever else uses the disk.
const SYNC: usize = libc::SYS_sync as usize;
const X32: usize = 0x4000_0000;
/// Exit codes: error numbers stand for themselves.
const SUCCEEDED: i32 = 0;

/// Prints what becomes of each number.
pub(crate) fn attempt() {
    for number in (0..=LAST).filter(|number| *number != SYNC) {
        print("native", number, in_child(|| outcome(number)));
    }
    #[cfg(target_arch = "x86_64")]
    for number in (0..=LAST).step_by(7) {
        print("x32", number, in_child(|| outcome(X32 | number)));
    }
    #[cfg(target_arch = "x86_64")]
    print(
        "int80",
        20,
        in_child(|| {
            let result = crate::sys::old_entry();
            if result < 0 { -result as i32 } else { SUCCEEDED }
        }),
    );
}

#[inline(always)]
fn outcome(number: usize) -> i32 {
    // All bits set: no descriptor, no address, no signal, no process.
    let result = bare_call(number, usize::MAX);
    if result == 0 {
        // Perhaps in a child that shares this frame with its parent, as vfork makes it: nothing may be written.
        end(SUCCEEDED);
    }
    if (-4095..0).contains(&result) { -result as i32 & 0xff } else { SUCCEEDED }
}

fn print(entry: &str, number: usize, ended: Ended) {
    let outcome = match ended {
        Ended::Code(SUCCEEDED) => "ok".to_owned(),
        Ended::Code(errno) => errno_name(errno),
        Ended::Signal(libc::SIGSYS) => "killed".to_owned(),
        // It waits for ever, or came back to nowhere: the call was made.
        Ended::Signal(signal) => format!("signal-{signal}"),
    };
    println!("{entry} {number} {outcome}");
}
