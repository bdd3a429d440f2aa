//! The filter before a kernel of the sandbox's own that speaks TCP itself: it answers for pings and their like, and leaves all
//! else to that kernel.

use jail::seccomp::{Action, Architecture, Filter};

use crate::golden::{ask, telling_values};

const MACHINES: [Architecture; 2] = [Architecture::X86_64, Architecture::Aarch64];

#[test]
fn every_call_but_one_is_its_kernels_to_decide() {
    for architecture in MACHINES {
        let program = Filter::for_own_stack(architecture);
        let names = (0..=architecture.last_number()).filter_map(|n| Some((n, architecture.name_of(n)?)));
        for (number, name) in names.filter(|(_, name)| *name != "socket") {
            for value in telling_values() {
                let found = ask(&program, architecture, number, [value; 6]);
                assert_eq!(found, Action::Allow, "{architecture:?} {name} {value:x}");
            }
        }
    }
}

#[test]
fn there_are_no_datagrams_of_the_internet_but_udps() {
    for architecture in MACHINES {
        let program = Filter::for_own_stack(architecture);
        let number = (0..=architecture.last_number()).find(|n| architecture.name_of(*n) == Some("socket"));
        for (family, kind, protocol) in crate::arguments::sockets() {
            let is_refused = matches!(family, libc::AF_INET | libc::AF_INET6)
                && kind == libc::SOCK_DGRAM
                && !matches!(protocol, 0 | libc::IPPROTO_UDP);
            let expected = match is_refused {
                true => Action::Errno(libc::EPROTONOSUPPORT as u16),
                false => Action::Allow,
            };
            for flags in [0, libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC] {
                let arguments = [family, kind | flags, protocol, 0, 0, 0].map(|value| value as u64);
                let found = ask(&program, architecture, number.unwrap(), arguments);
                assert_eq!(found, expected, "{architecture:?} {family} {kind} {protocol}");
            }
        }
    }
}
