//! Addresses that a rule names, for those who use no name: one, or all that begin alike.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::text::number;

use super::{Place, carried};

/// All addresses that begin alike: `ADDRESS[/BITS]`, one of IPv6 in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    first: IpAddr,
    bits: u8,
}

/// Why a text means no addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// Not of the form.
    #[error("'{0}' is not an address: 203.0.113.7, 203.0.113.0/24, [2001:db8::7] or [2001:db8::]/32")]
    Malformed(String),
    /// More bits than an address has, or a sign.
    #[error("'{0}' is not a number of bits that addresses of this kind have")]
    Bits(String),
    /// An address in the middle.
    #[error("'{0}' is not where such a range begins; write {1}")]
    Middle(String, AddressRange),
    /// Another spelling of addresses of IPv4.
    #[error("'{0}' means addresses of IPv4; write those")]
    Carried(String),
    /// Addresses that nobody is reached at from inside, whatever a rule says.
    #[error("'{0}' never leads out of a sandbox; a service of this machine is named by --service")]
    Never(String),
}

impl AddressRange {
    fn of(address: IpAddr, bits: u8) -> Self {
        let first = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                Ipv4Addr::from_bits(address.to_bits() & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
        };
        Self { first, bits }
    }

    fn last(self) -> IpAddr {
        match self.first {
            IpAddr::V4(first) => {
                let rest = u32::MAX.checked_shr(u32::from(self.bits)).unwrap_or(0);
                Ipv4Addr::from_bits(first.to_bits() | rest).into()
            }
            IpAddr::V6(first) => {
                let rest = u128::MAX.checked_shr(u32::from(self.bits)).unwrap_or(0);
                Ipv6Addr::from_bits(first.to_bits() | rest).into()
            }
        }
    }

    /// Whether this address, or the one that it carries, is one of them.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        let address = carried(address);
        address.is_ipv4() == self.first.is_ipv4() && Self::of(address, self.bits) == self
    }

    /// The place that all of them are at, where it is one and the same.
    #[must_use]
    pub fn place(self) -> Option<Place> {
        let place = Place::of(self.first);
        (place == Place::of(self.last())).then_some(place)
    }
}

impl FromStr for AddressRange {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, RangeError> {
        let shown = || text.escape_debug().to_string();
        let malformed = || RangeError::Malformed(shown());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let in_brackets = address.strip_prefix('[').and_then(|address| address.strip_suffix(']'));
        let address: IpAddr = match in_brackets {
            Some(address) => address.parse::<Ipv6Addr>().map_err(|_| malformed())?.into(),
            None => address.parse::<Ipv4Addr>().map_err(|_| malformed())?.into(),
        };
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => {
                number(bits).filter(|bits| *bits <= most).ok_or_else(|| RangeError::Bits(shown()))?
            }
            None => most,
        };
        let range = Self::of(address, bits);
        if range.first != address {
            return Err(RangeError::Middle(shown(), range));
        }
        if carried(address) != address && bits >= 96 {
            return Err(RangeError::Carried(shown()));
        }
        match range.place() {
            Some(Place::Loopback | Place::LinkLocal | Place::Nowhere) if bits > 0 => {
                Err(RangeError::Never(shown()))
            }
            _ => Ok(range),
        }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first {
            IpAddr::V4(first) => write!(formatter, "{first}/{}", self.bits),
            IpAddr::V6(first) => write!(formatter, "[{first}]/{}", self.bits),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_are_read_and_shown() {
        for (text, shown) in [
            ("203.0.113.7", "203.0.113.7/32"),
            ("203.0.113.0/24", "203.0.113.0/24"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("[2001:db8::]/32", "[2001:db8::]/32"),
            ("[2001:db8::7]", "[2001:db8::7]/128"),
            ("[::]/0", "[::]/0"),
        ] {
            assert_eq!(text.parse::<AddressRange>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in [
            "",
            "/",
            "1.2.3",
            "1.2.3.4/",
            "1.2.3.4/33",
            "1.2.3.4/+8",
            "1.2.3.4/-1",
            "01.2.3.4",
            "203.0.113.7/24",
            "2001:db8::/32",
            "[2001:db8::]/129",
            "[1.2.3.4]",
            "127.0.0.1",
            "127.0.0.0/8",
            "169.254.169.254",
            "[::1]",
            "[fe80::]/10",
            "0.0.0.0",
            "224.0.0.0/4",
            "[::ffff:127.0.0.1]",
            "100.100.100.200",
            "[::ffff:1.1.1.1]",
            "[::ffff:0:0]/96",
            "[64:ff9b::]/96",
        ] {
            assert!(text.parse::<AddressRange>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_range_has_its_addresses() {
        let range: AddressRange = "203.0.113.0/24".parse().unwrap();
        assert!(range.contains("203.0.113.255".parse().unwrap()));
        assert!(range.contains("::ffff:203.0.113.5".parse().unwrap()));
        assert!(range.contains("64:ff9b::cb00:7105".parse().unwrap()));
        assert!(!range.contains("203.0.114.0".parse().unwrap()));
        assert!(!range.contains("2001:db8::1".parse().unwrap()));
        let all: AddressRange = "[::]/0".parse().unwrap();
        assert!(all.contains("2001:db8::1".parse().unwrap()));
        assert!(!all.contains("1.1.1.1".parse().unwrap()));
    }

    proptest! {
        #[test]
        fn a_range_has_its_ends(address in any::<IpAddr>(), bits in 0u8..=32) {
            let range = AddressRange::of(carried(address), bits);
            prop_assert!(range.contains(address));
            prop_assert!(range.contains(range.first) && range.contains(range.last()));
            if let Ok(read) = range.to_string().parse::<AddressRange>() {
                prop_assert_eq!(read, range);
            }
        }
    }
}
