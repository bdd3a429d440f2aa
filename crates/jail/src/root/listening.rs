//! Sockets that someone on the host listens on, by the kernel's own list: the system's trees are too large to be
//! searched at each start, and connect() works through any bind. It finds those of the host's network namespace, by
//! the names that they were bound to.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::error::JailError;
use crate::read;
use crate::step::{Step, inside};

/// The steps that cover every such socket below a tree that is bound by `steps`.
pub(super) fn cover(steps: &[Step]) -> Result<Vec<Step>, JailError> {
    let sockets = sockets(&read::text(Path::new("/proc/net/unix")).unwrap_or_default());
    let mut covers = Vec::new();
    for (source, target) in steps.iter().filter_map(Step::bound_tree) {
        for below in sockets.iter().filter_map(|socket| socket.strip_prefix(&source).ok()) {
            let is_socket =
                fs::symlink_metadata(source.join(below)).is_ok_and(|it| it.file_type().is_socket());
            if is_socket {
                let path = inside(&target.join(below))?;
                covers.push(Step::Again { source: inside(Path::new("/dev/null"))?, path, flags: 0 });
            }
        }
    }
    Ok(covers)
}

/// The paths in the kernel's list: the eighth column, where there is one.
fn sockets(list: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let (at, _) = line.match_indices('/').next()?;
        Some(PathBuf::from(&line[at..]))
    };
    let mut paths: Vec<PathBuf> = list.lines().filter_map(path).collect();
    paths.sort();
    paths.dedup();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_list() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 17044 /run/dbus/a b\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 19014\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 17044 @/tmp/.X11-unix/X0\n";
        assert_eq!(sockets(list), [Path::new("/run/dbus/a b"), Path::new("/tmp/.X11-unix/X0")]);
    }
}
