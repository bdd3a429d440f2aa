//! Who the probe is, as the kernel tells it.

use std::fs;

use crate::sys::{call, errno_name};

/// Prints ids, groups and capabilities.
pub(crate) fn print() {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    for line in status.lines() {
        let wanted = ["Uid:", "Gid:", "Groups:", "CapPrm:", "CapEff:", "CapAmb:", "NoNewPrivs:"];
        if wanted.iter().any(|name| line.starts_with(name)) {
            println!("{}", line.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
}

/// Prints how many Landlock domains can still be entered. The kernel takes sixteen, one in the other.
pub(crate) fn landlock_layers() {
    #[repr(C)]
    struct Rules {
        files: u64,
    }
    const EXECUTE: u64 = 1;
    let rules = Rules { files: EXECUTE };
    call(libc::SYS_prctl, &[libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0]).unwrap();
    let mut entered = 0;
    let refused = loop {
        let ruleset =
            call(libc::SYS_landlock_create_ruleset, &[(&raw const rules) as usize, size_of::<Rules>(), 0]);
        match ruleset.and_then(|ruleset| call(libc::SYS_landlock_restrict_self, &[ruleset, 0])) {
            Ok(_) => entered += 1,
            Err(errno) => break errno,
        }
    };
    let refused = if refused == libc::E2BIG { "E2BIG".to_owned() } else { errno_name(refused) };
    println!("layers {entered} {refused}");
}
