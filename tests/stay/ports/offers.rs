//! Whoever reaches the socket on which a supervisor takes ports: what is no port is closed and refused, and harms nothing.

use std::io::{IoSlice, Read as _};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use harness::callers;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::listed;
use super::server::{Server, ask};
use crate::home::Home;

/// A port as it is offered: a letter, a version, the port inside.
const OFFER: &[u8] = b"P\x01\xa1\x0f";

/// Sends bytes with descriptors, and gives the byte that is answered, if any.
fn offer(home: &Home, id: &str, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Option<u8> {
    let mut stream = UnixStream::connect(home.socket(id, "ports.sock")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(descriptors)));
    }
    sendmsg(&stream, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL).unwrap();
    let mut answer = [0];
    let read = stream.read(&mut answer).inspect_err(|error| eprintln!("{} bytes: {error}", bytes.len()));
    read.ok().filter(|count| *count == 1).map(|_| answer[0])
}

callers!(what_is_no_port_is_closed_and_harms_nothing, |caller| {
    let home = Home::new(caller);
    let id = home.create(&[]);
    let _server = Server::start(&home, &id);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connected = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    let directory = caller.directory();
    let local = UnixListener::bind(directory.path().join("local.sock")).unwrap();
    let file = std::fs::File::open("/etc/passwd").unwrap();
    let unbound =
        rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None);
    let unbound: OwnedFd = unbound.unwrap();
    let good = listener.as_fd();
    let before = home.held(&id);

    for descriptors in [
        &[][..],
        &[good, good],
        &[good; 60],
        &[good, file.as_fd()],
        &[file.as_fd()],
        &[connected.as_fd()],
        &[datagrams.as_fd()],
        &[local.as_fd()],
        &[unbound.as_fd()],
    ] {
        assert_eq!(offer(&home, &id, OFFER, descriptors), Some(b'u'), "{descriptors:?}");
    }
    let long = [0x50; 100_000];
    for bytes in
        [&b"P"[..], b"P\x01\x00", b"P\x01\x00\x00", b"P\x02\xa1\x0f", b"GET / HTTP/1.1\r\n\r\n", &long]
    {
        assert_eq!(offer(&home, &id, bytes, &[good]).unwrap_or(b'u'), b'u', "{} bytes", bytes.len());
    }
    // Whoever says nothing at all is not waited for.
    let silent: Vec<UnixStream> =
        (0..9).map(|_| UnixStream::connect(home.socket(&id, "ports.sock")).unwrap()).collect();
    home.exec(&id, &["true"]);
    assert!(listed(&home, &id).is_empty());
    let said = home.say(&["port", &id, "add", "0:4001"]).assert_success().stdout();
    drop(silent);
    let port = said.trim().strip_prefix("127.0.0.1:").unwrap().parse().unwrap();
    assert_eq!(ask(port, b"still"), b"still");
    home.say(&["port", &id, "rm", &port.to_string()]).assert_success();

    // The same as one of ours sends it; it is the very socket that was offered so often.
    let address = listener.local_addr().unwrap();
    assert_eq!(offer(&home, &id, OFFER, &[good]), Some(b'p'));
    assert_eq!(offer(&home, &id, OFFER, &[good]), Some(b't'));
    drop(connected);
    home.say(&["port", &id, "rm", &address.to_string()]).assert_success();
    // What asked for that may still be about to go.
    let deadline = Instant::now() + Duration::from_secs(5);
    while home.held(&id) != before {
        assert!(Instant::now() < deadline, "{} descriptors, and {before} before", home.held(&id));
        std::thread::sleep(Duration::from_millis(5));
    }
});
