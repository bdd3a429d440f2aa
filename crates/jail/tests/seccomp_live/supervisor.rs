//! What the supervisor can still do under its filter, and what ends it.

use std::io::{Error, Read as _, Result, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use jail::seccomp::{Architecture, Filter, Program};

use crate::sys::{Ended, call, under};

fn supervisor() -> Program {
    Filter::for_supervisor(Architecture::NATIVE)
}

#[test]
fn it_can_do_its_work() {
    let directory = tempfile::tempdir().unwrap();
    // The child has other ids than we.
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let ended = under(&supervisor(), || match work(directory.path()) {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(100),
    });
    assert_eq!(ended, Ended::Code(0));
}

/// Threads, TCP and UDP on loopback, a signal pipe, and files that are replaced atomically.
fn work(directory: &Path) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let dial = std::thread::Builder::new().name("dial".to_owned()).spawn(move || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.write_all(b"from the thread")
    })?;
    let mut text = String::new();
    listener.accept()?.0.read_to_string(&mut text)?;
    dial.join().map_err(|_| Error::other("the thread panicked"))??;
    UdpSocket::bind("127.0.0.1:0")?.set_nonblocking(true)?;
    UnixStream::pair()?.0.set_nonblocking(true)?;

    let (temporary, log) = (directory.join("log.tmp"), directory.join("log"));
    let mut file = std::fs::File::create(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&temporary, &log)?;
    assert_eq!(std::fs::read_dir(directory)?.count(), 1);
    assert_eq!(std::fs::read_to_string(&log)?, "from the thread");
    std::fs::remove_file(&log)
}

#[test]
fn an_attack_ends_it() {
    let program = supervisor();
    let (unix, stream, datagram) = (libc::AF_UNIX as u64, libc::SOCK_STREAM as u64, libc::SOCK_DGRAM as u64);
    let attacks = [
        (libc::SYS_socket, [unix, stream, 0, 0, 0, 0]),
        (libc::SYS_socketpair, [unix, datagram, 0, 0, 0, 0]),
        (libc::SYS_clone, [libc::CLONE_NEWUSER as u64 | libc::SIGCHLD as u64, 0, 0, 0, 0, 0]),
        (libc::SYS_execve, [0; 6]),
    ];
    for (number, arguments) in attacks {
        let ended = under(&program, || call(number, arguments));
        assert_eq!(ended, Ended::Signal(libc::SIGSYS), "{number} {arguments:?}");
    }
}

#[test]
fn it_gets_no_executable_memory_no_child_and_no_signal_out() {
    let program = supervisor();
    let parent = u64::from(std::process::id());
    let executable = libc::PROT_READ as u64 | libc::PROT_EXEC as u64;
    let anonymous = libc::MAP_PRIVATE as u64 | libc::MAP_ANONYMOUS as u64;
    let refused = [
        (libc::SYS_mmap, [0, 4096, executable, anonymous, u64::MAX, 0]),
        (libc::SYS_clone, [libc::SIGCHLD as u64, 0, 0, 0, 0, 0]),
        (libc::SYS_kill, [parent, 0, 0, 0, 0, 0]),
        (libc::SYS_tgkill, [parent, parent, 0, 0, 0, 0]),
        (libc::SYS_fcntl, [0, libc::F_SETOWN as u64, parent, 0, 0, 0]),
    ];
    for (number, arguments) in refused {
        let ended = under(&program, || call(number, arguments));
        assert_eq!(ended, Ended::Code(libc::EPERM), "{number} {arguments:?}");
    }
}

#[test]
fn it_can_still_abort() {
    assert!(matches!(under(&supervisor(), || std::process::abort()), Ended::Signal(_)));
}
