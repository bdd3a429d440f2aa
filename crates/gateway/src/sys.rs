//! Datagrams with what the kernel tells of their way, which the standard library does not take.

#![expect(unsafe_code, reason = "system calls take raw pointers")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// As much as the address that a datagram was sent to takes in either family, and more. Words, as the kernel reads it so.
type Control = [u64; 8];

/// The way of a datagram: whom it is from, and which address it was sent to where the socket is told. It is kept as the
/// kernel wrote it, and means the way back when it is given to the kernel again.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    peer: libc::sockaddr_storage,
    peer_length: libc::socklen_t,
    control: Control,
    /// A type of its own, as C libraries differ in theirs.
    control_length: u64,
}

/// Receives a datagram.
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, Way)> {
    // SAFETY: for both of these plain structures all bits may be zero.
    let (mut header, peer) =
        unsafe { (MaybeUninit::<libc::msghdr>::zeroed().assume_init(), MaybeUninit::zeroed().assume_init()) };
    let mut way = Way { peer, peer_length: 0, control: [0; 8], control_length: 0 };
    let mut bytes = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    header.msg_name = (&raw mut way.peer).cast();
    header.msg_namelen = size_of_val(&way.peer) as libc::socklen_t;
    header.msg_iov = &raw mut bytes;
    header.msg_iovlen = 1;
    header.msg_control = (&raw mut way.control).cast();
    header.msg_controllen = size_of::<Control>() as _;
    // SAFETY: the header points to memory that lives here and is as long as it says.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) };
    let length = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    if header.msg_flags & libc::MSG_CTRUNC != 0 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    way.peer_length = header.msg_namelen.min(size_of_val(&way.peer) as libc::socklen_t);
    way.control_length = (header.msg_controllen as u64).min(size_of::<Control>() as u64);
    Ok((length, way))
}

/// Answers a datagram: to whom it was from, from where it was sent to.
pub(crate) fn answer(socket: BorrowedFd<'_>, answer: &[u8], mut way: Way) -> io::Result<()> {
    // SAFETY: all bits of this plain structure may be zero.
    let mut header = unsafe { MaybeUninit::<libc::msghdr>::zeroed().assume_init() };
    let mut bytes = libc::iovec { iov_base: answer.as_ptr().cast_mut().cast(), iov_len: answer.len() };
    header.msg_name = (&raw mut way.peer).cast();
    header.msg_namelen = way.peer_length;
    header.msg_iov = &raw mut bytes;
    header.msg_iovlen = 1;
    if way.control_length > 0 {
        header.msg_control = (&raw mut way.control).cast();
        header.msg_controllen = way.control_length as _;
    }
    // SAFETY: the header points to memory that lives here and is as long as it says; nothing of it is written to.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn an_answer_comes_from_where_the_question_was_sent_to() {
        let server = UdpSocket::bind("0.0.0.0:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let on = 1i32;
        // SAFETY: the value lives here and is as long as it is said to be.
        let set = unsafe {
            let value = (&raw const on).cast();
            libc::setsockopt(server.as_raw_fd(), libc::IPPROTO_IP, libc::IP_PKTINFO, value, 4)
        };
        assert_eq!(set, 0);
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        for place in ["127.0.0.2", "127.9.9.9"] {
            client.send_to(b"question", (place, port)).unwrap();
            let mut buffer = [0; 64];
            let (length, way) = receive(server.as_fd(), &mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"question");
            answer(server.as_fd(), b"answer", way).unwrap();
            let (length, from) = client.recv_from(&mut buffer).unwrap();
            assert_eq!((&buffer[..length], from.to_string()), (&b"answer"[..], format!("{place}:{port}")));
        }
    }
}
