//! Sockets that someone on the host listens on, by the kernel's own list: the system's trees are too large to be
//! searched at each start, and connect() works through any bind. It finds those of the host's network namespace, by
//! the names that they were bound to.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use crate::error::JailError;
use crate::read;
use crate::step::{Step, inside};

const LIST: &str = "/proc/net/unix";

/// The steps that cover every such socket below a tree that is bound by `steps`.
pub(super) fn cover(steps: &[Step]) -> Result<Vec<Step>, JailError> {
    let trees: Vec<_> = steps.iter().filter_map(Step::bound_tree).collect();
    let mut sockets = Vec::new();
    let read = read::lines(Path::new(LIST), |line| {
        let below = |path: &&Path| trees.iter().any(|(source, _)| path.starts_with(source));
        sockets.extend(path_of(line).filter(below).map(Path::to_owned));
    });
    match read {
        // A kernel without such sockets has no list of them.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        read => read.map_err(|source| JailError::File { path: LIST.into(), source })?,
    }
    sockets.sort();
    sockets.dedup();
    let mut covers = Vec::new();
    for (source, target) in trees {
        for below in sockets.iter().filter_map(|socket| socket.strip_prefix(&source).ok()) {
            let is_socket =
                fs::symlink_metadata(source.join(below)).is_ok_and(|it| it.file_type().is_socket());
            if is_socket {
                let path = inside(&target.join(below))?;
                covers.push(Step::Cover { with: inside(Path::new("/dev/null"))?, path });
            }
        }
    }
    Ok(covers)
}

/// The path in a line of the kernel's list: the eighth column, where there is one.
fn path_of(line: &[u8]) -> Option<&Path> {
    let at = line.iter().position(|byte| *byte == b'/')?;
    Some(Path::new(OsStr::from_bytes(&line[at..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_list() {
        let list = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 17044 /run/dbus/a b\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 19014\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 17044 @/tmp/.X11-unix/X0\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 17044 /usr/not-\xff-text\n";
        let strange = Path::new(OsStr::from_bytes(b"/usr/not-\xff-text"));
        let paths: Vec<_> = list.split(|byte| *byte == b'\n').filter_map(path_of).collect();
        assert_eq!(paths, [Path::new("/run/dbus/a b"), Path::new("/tmp/.X11-unix/X0"), strange]);
    }
}
