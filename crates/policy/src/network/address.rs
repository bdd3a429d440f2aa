//! What an address is, to a policy: whether whoever answers there is out in the world, or somewhere that only this
//! machine reaches. An address that carries another one inside is what it carries.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

/// Where an address leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Out into the world.
    Public,
    /// Into a network of somebody's own: private ranges, and those of carriers.
    Private,
    /// To this machine.
    Loopback,
    /// To the wire next to it, where clouds keep their credentials.
    LinkLocal,
    /// To nobody or to everybody: unspecified, multicast, reserved, or of a kind that tunnels.
    Nowhere,
}

/// The services that give a cloud's machine its credentials, outside of the link-local ranges.
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// The address that is meant: one of IPv4 that came in one of IPv6, as a mapped one or by the well-known prefix of
/// translators, is what it carries.
#[must_use]
pub(super) fn carried(address: IpAddr) -> IpAddr {
    let IpAddr::V6(outer) = address else { return address };
    match outer.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
            Ipv4Addr::new(a, b, c, d).into()
        }
        _ => address.to_canonical(),
    }
}

impl Place {
    /// Where `address` leads.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        let address = carried(address);
        if METADATA.contains(&address) {
            return Self::LinkLocal;
        }
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

fn of_v4(address: Ipv4Addr) -> Place {
    let [first, second, third, _] = address.octets();
    match (first, second, third) {
        (127, ..) => Place::Loopback,
        (169, 254, _) => Place::LinkLocal,
        (10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => Place::Private,
        // "This network"; for protocols; for relays to IPv6; for measurements, where our own names live; from
        // multicast to the broadcast.
        (0, ..) | (192, 0, 0) | (192, 88, 99) | (198, 18..=19, _) | (224.., ..) => Place::Nowhere,
        _ => Place::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> Place {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Place::Loopback,
        // All that one cloud has of it.
        [0xfe80..=0xfebf, ..] | [0xfd00, 0xec2, ..] => Place::LinkLocal,
        // Site-local, which nobody should use, and the unique local ones.
        [0xfec0..=0xfeff, ..] | [0xfc00..=0xfdff, ..] => Place::Private,
        // For protocols and measurements, tunnels among them, whose addresses somebody else translates; for relays from
        // IPv4; for pages of books.
        [0x2001, 0..=0x1ff, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => Place::Nowhere,
        [0x2000..=0x3fff, ..] => Place::Public,
        // What is not given out to anybody.
        _ => Place::Nowhere,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_has_its_place() {
        for (place, addresses) in [
            (
                Place::Public,
                [
                    "1.1.1.1",
                    "203.0.113.7",
                    "192.0.2.1",
                    "198.51.100.9",
                    "172.32.0.1",
                    "100.128.0.1",
                    "198.20.0.1",
                ]
                .as_slice(),
            ),
            (Place::Public, &["2606:4700::1111", "2001:db8::1", "::ffff:1.1.1.1", "64:ff9b::101:101"]),
            (
                Place::Loopback,
                &["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"],
            ),
            (Place::LinkLocal, &["169.254.169.254", "169.254.0.1", "fe80::1", "::ffff:169.254.169.254"]),
            (
                Place::LinkLocal,
                &["100.100.100.200", "192.0.0.192", "fd00:ec2::254", "::ffff:100.100.100.200"],
            ),
            (Place::Private, &["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1"]),
            (Place::Private, &["fc00::1", "fd12::1", "fec0::1", "::ffff:10.0.0.1", "64:ff9b::a00:1"]),
            (
                Place::Nowhere,
                &["0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255", "240.0.0.1", "198.18.0.1"],
            ),
            (
                Place::Nowhere,
                &["::", "ff02::1", "2002:a00:1::", "2001::1", "::1.2.3.4", "64:ff9b:1::1", "4000::1"],
            ),
            (Place::Nowhere, &["2001:2::1", "2001:10::1", "2001:20::1", "3fff::1"]),
        ] {
            for address in addresses {
                assert_eq!(Place::of(address.parse().unwrap()), place, "{address}");
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_carried_counts(address in any::<Ipv4Addr>()) {
            let plain = Place::of(address.into());
            prop_assert_eq!(Place::of(address.to_ipv6_mapped().into()), plain);
            prop_assert!(address.is_loopback() <= (plain == Place::Loopback));
            prop_assert!(address.is_private() <= (plain == Place::Private));
            prop_assert!(address.is_link_local() <= (plain == Place::LinkLocal));
            prop_assert!((address.is_multicast() || address.is_unspecified()) <= (plain == Place::Nowhere));
        }
    }
}
