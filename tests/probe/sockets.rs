//! Every family of sockets with every type, and the protocols that matter.

use crate::sys::{call, name};

const FAMILIES: usize = 64;
const TYPES: usize = 12;
const PROTOCOLS: [usize; 10] = [0, 1, 2, 6, 9, 15, 17, 33, 132, 262];

/// Prints each socket that could be made.
pub(crate) fn attempt() {
    for family in 0..FAMILIES {
        for kind in 0..TYPES {
            for protocol in PROTOCOLS {
                if let Ok(socket) = call(libc::SYS_socket, &[family, kind, protocol]) {
                    println!("made {family} {kind} {protocol}");
                    let _ = call(libc::SYS_close, &[socket]);
                }
            }
        }
    }
    // A family hidden behind bits that the kernel does not look at.
    let hidden = libc::AF_NETLINK as usize | 1 << 32;
    println!("hidden-netlink {}", name(call(libc::SYS_socket, &[hidden, libc::SOCK_RAW as usize, 9])));
    let hidden = libc::AF_PACKET as usize | 1 << 32;
    println!("hidden-packet {}", name(call(libc::SYS_socket, &[hidden, libc::SOCK_RAW as usize, 3])));
}
