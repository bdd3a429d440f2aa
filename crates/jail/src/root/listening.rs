//! Sockets that someone on the host listens on, by the kernel's own list: the system's trees are too large to be
//! searched at each start, and connect() works through any bind. It finds those of the host's network namespace, by
//! the names that they were bound to.
//!
//! The kernel is asked for those alone that can be connected or sent to: a machine has thousands that are connected, each
//! sandbox some of its own, and all of them written down take longer than the rest of a plan. A kernel that cannot be
//! asked has a file of all.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use rustix::net::netlink::SOCK_DIAG;

use crate::error::JailError;
use crate::netlink::{self, ALL, REQUEST, message};
use crate::read;
use crate::step::{Step, inside};

const LIST: &str = "/proc/net/unix";

/// Questions about sockets of one family, and what their answers begin with.
const BY_FAMILY: u16 = 20;
const BEGINNING: usize = 16;
/// The name that a socket was bound to, as it is asked for and as it is told.
const WITH_NAME: u32 = 1;
const NAME: u16 = 0;
/// What a socket is in that waits for others: it listens, or it is for datagrams and takes anybody's.
const UNCONNECTED: u32 = 7;
const LISTENING: u32 = 10;

/// The steps that cover every such socket below a tree that is bound by `steps`.
pub(super) fn cover(steps: &[Step]) -> Result<Vec<Step>, JailError> {
    let trees: Vec<_> = steps.iter().filter_map(Step::bound_tree).collect();
    let mut sockets = Vec::new();
    let mut take = |path: &Path| {
        if trees.iter().any(|(source, _)| path.starts_with(source)) {
            sockets.push(path.to_owned());
        }
    };
    if netlink::list(SOCK_DIAG, &question(), |told| name_in(told).into_iter().for_each(&mut take)).is_err() {
        read_all(&mut take)?;
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

fn question() -> Vec<u8> {
    let states: u32 = 1 << UNCONNECTED | 1 << LISTENING;
    let family = [libc::AF_UNIX as u8, 0, 0, 0];
    let numbers = [states, 0, WITH_NAME, 0, 0].map(u32::to_ne_bytes).concat();
    message(BY_FAMILY, REQUEST | ALL, &[&family[..], &numbers].concat(), &[])
}

/// The path in what the kernel tells of a socket; other names begin with a zero.
fn name_in(told: &[u8]) -> Option<&Path> {
    let name = netlink::find(told.get(BEGINNING..)?, NAME)?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Some(Path::new(OsStr::from_bytes(&name[..end]))).filter(|path| path.is_absolute())
}

/// Every path in the file of all sockets.
fn read_all(take: &mut impl FnMut(&Path)) -> Result<(), JailError> {
    match read::lines(Path::new(LIST), |line| path_of(line).into_iter().for_each(&mut *take)) {
        // A kernel without such sockets has no list of them.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        read => read.map_err(|source| JailError::File { path: LIST.into(), source }),
    }
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

    #[test]
    fn who_waits_for_others_is_told_by_both_ways() {
        use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
        let tree = tempfile::tempdir().unwrap();
        let path = |name: &str| tree.path().join(name);
        let listener = UnixListener::bind(path("stream")).unwrap();
        let _datagrams = UnixDatagram::bind(path("datagrams")).unwrap();
        // Whose name is its listener's, of which there is one.
        let _connected = (UnixStream::connect(path("stream")).unwrap(), listener.accept().unwrap());
        let sorted = |mut all: Vec<std::path::PathBuf>| {
            all.retain(|found| found.starts_with(tree.path()));
            all.sort();
            all
        };
        let (mut asked, mut read) = (Vec::new(), Vec::new());
        netlink::list(SOCK_DIAG, &question(), |told| asked.extend(name_in(told).map(Path::to_owned)))
            .unwrap();
        read_all(&mut |path: &Path| read.push(path.to_owned())).unwrap();
        assert_eq!(sorted(asked), [path("datagrams"), path("stream")]);
        let mut read = sorted(read);
        read.dedup();
        assert_eq!(read, [path("datagrams"), path("stream")]);
    }
}
