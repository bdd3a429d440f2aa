//! Tries to reach something of the host's: a socket, a process, shared memory.

use std::io::Read as _;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use crate::sys::{call, errno_name, report};

/// Connects and says hello; the listener outside is the judge.
pub(crate) fn connect(kind: &str, address: &str) {
    let connected = match kind {
        "unix" => UnixStream::connect(address).and_then(|stream| greet(&stream, &stream)),
        "abstract" => SocketAddr::from_abstract_name(address)
            .and_then(|address| UnixStream::connect_addr(&address))
            .and_then(|stream| greet(&stream, &stream)),
        "tcp" => tcp(address),
        _ => panic!("no such kind of socket: {kind}"),
    };
    let outcome = connected.map_err(|error| error.raw_os_error().unwrap_or_default());
    match outcome {
        Ok(()) => println!("connect {kind} {address} ok"),
        Err(errno) => println!("connect {kind} {address} {}", errno_name(errno)),
    }
}

fn tcp(address: &str) -> std::io::Result<()> {
    let address = address.to_socket_addrs()?.next().expect("an address");
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(2))?;
    greet(&stream, &stream)
}

fn greet(mut write: impl std::io::Write, mut read: impl std::io::Read) -> std::io::Result<()> {
    write.write_all(b"hello from inside\n")?;
    let _ = read.by_ref().take(1).read(&mut [0]);
    Ok(())
}

/// Signals a process by its number on the host.
pub(crate) fn signal(pid: &str, signal: &str) {
    let (pid, signal): (i32, i32) = (pid.parse().expect("a pid"), signal.parse().expect("a signal"));
    report("kill", call(libc::SYS_kill, &[pid as usize, signal as usize]));
}

/// Looks for a shared memory segment and a message queue by their key.
pub(crate) fn shared_memory(key: &str) {
    let key: i32 = key.parse().expect("a key");
    report("shmget", call(libc::SYS_shmget, &[key as usize, 0, 0]));
    report("msgget", call(libc::SYS_msgget, &[key as usize, 0]));
}
