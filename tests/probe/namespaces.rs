//! New namespaces, by each of the three calls.

use crate::sys::{Ended, call, errno_name, in_child};

const KINDS: [(&str, i32); 8] = [
    ("user", libc::CLONE_NEWUSER),
    ("mount", libc::CLONE_NEWNS),
    ("pid", libc::CLONE_NEWPID),
    ("net", libc::CLONE_NEWNET),
    ("ipc", libc::CLONE_NEWIPC),
    ("uts", libc::CLONE_NEWUTS),
    ("cgroup", libc::CLONE_NEWCGROUP),
    ("time", 0x80),
];

/// Tries each kind by each call, every one in a child of its own.
pub(crate) fn attempt() {
    for (name, flag) in KINDS {
        let flag = flag as u32 as usize;
        attempt_one("unshare", name, || call(libc::SYS_unshare, &[flag]));
        if name == "time" {
            // To clone these bits are a signal number.
            continue;
        }
        let signal = libc::SIGCHLD as usize;
        attempt_one("clone", name, || call(libc::SYS_clone, &[flag | signal, 0, 0, 0, 0]));
        // Only what the first words of the structure hold matters: flags and, as the fifth, the signal.
        let arguments: [usize; 11] = [flag, 0, 0, 0, signal, 0, 0, 0, 0, 0, 0];
        let size = size_of_val(&arguments);
        attempt_one("clone3", name, || call(libc::SYS_clone3, &[arguments.as_ptr() as usize, size]));
    }
    let limit = std::fs::read_to_string("/proc/sys/user/max_user_namespaces").unwrap_or_default();
    println!("limit user {}", limit.trim());
}

/// A child of the child that a clone made ends with the same code; only the first is waited for.
fn attempt_one(how: &str, kind: &str, attempt: impl FnOnce() -> Result<usize, i32>) {
    let ended = in_child(|| attempt().err().unwrap_or_default());
    let outcome = match ended {
        Ended::Code(0) => "ok".to_owned(),
        Ended::Code(errno) => errno_name(errno),
        Ended::Signal(signal) => format!("signal-{signal}"),
    };
    println!("{how} {kind} {outcome}");
}
