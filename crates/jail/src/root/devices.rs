//! /dev inside: six harmless nodes of the host's, terminals of the sandbox's own, and nothing else.

use std::path::Path;

use crate::error::JailError;
use crate::root::link;
use crate::step::{Bound, Step, host_path, inside};

const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const LINKS: [(&str, &str); 5] = [
    ("pts/ptmx", "/dev/ptmx"),
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
];

pub(super) fn steps() -> Result<Vec<Step>, JailError> {
    let mut steps = Vec::new();
    for name in NODES {
        let node = Path::new("/dev").join(name);
        steps.push(Step::File { path: inside(&node)?, contents: Vec::new() });
        steps.push(Step::Bind { source: host_path(&node)?, path: inside(&node)?, bound: Bound::Device });
    }
    for (target, path) in LINKS {
        steps.push(link(target, path)?);
    }
    // A new instance: terminals of the host are not in it. No gid=5: not every id map has a group 5.
    steps.push(Step::FileSystem {
        kind: c"devpts".to_owned(),
        path: inside(Path::new("/dev/pts"))?,
        flags: libc::MS_NOSUID | libc::MS_NOEXEC,
        options: Some(host_path(Path::new("newinstance,ptmxmode=0666,mode=0620"))?),
    });
    Ok(steps)
}
