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
    std::fs::write(directory.path().join("log"), "").unwrap();
    std::fs::set_permissions(directory.path().join("log"), std::fs::Permissions::from_mode(0o666)).unwrap();
    let ended = under(&supervisor(), || match work(directory.path()) {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(100),
    });
    assert_eq!(ended, Ended::Code(0));
}

/// Threads, TCP and UDP on loopback, a signal pipe, and a file that is added to.
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

    let mut log = std::fs::File::options().append(true).open(directory.join("log"))?;
    log.write_all(text.as_bytes())?;
    log.sync_data()
}

/// What it may do to a file that it was given: add to it, and nothing else.
#[test]
fn what_it_wrote_cannot_be_changed_again() {
    use std::os::fd::AsRawFd as _;
    let log = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(log.path(), "before ").unwrap();
    let file = std::fs::File::options().append(true).open(log.path()).unwrap();
    let (descriptor, place) = (file.as_raw_fd() as u64, 0u64);
    let ended = under(&supervisor(), || {
        // Even without its flag it goes on where it stands, and cannot go elsewhere.
        let refused = [
            (libc::SYS_ftruncate, [descriptor, 0, 0, 0, 0, 0]),
            (libc::SYS_lseek, [descriptor, 0, 0, 0, 0, 0]),
            (libc::SYS_pwrite64, [descriptor, c"X".as_ptr().addr() as u64, 1, 0, 0, 0]),
            // At a place of its own; without one it goes on where the file stands, as any write.
            (libc::SYS_splice, [descriptor, 0, descriptor, (&raw const place).addr() as u64, 1, 0]),
            (libc::SYS_fallocate, [descriptor, 0, 0, 1, 0, 0]),
            (libc::SYS_copy_file_range, [descriptor, 0, descriptor, 0, 1, 0]),
            (libc::SYS_sendfile, [descriptor, descriptor, 0, 1, 0, 0]),
        ];
        let all = refused.iter().all(|(number, arguments)| call(*number, *arguments) == libc::EPERM);
        let written = (&file).write_all(b"after");
        i32::from(!all || written.is_err())
    });
    assert_eq!(ended, Ended::Code(0));
    assert_eq!(std::fs::read_to_string(log.path()).unwrap(), "before after");
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
