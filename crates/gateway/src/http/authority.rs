//! The host and port that a request names. There is one reading of each, or none.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;

use policy::network::HostName;

use crate::call::HTTP;

use super::fields::Malformed;

/// Whom a request is for: `HOST[:PORT]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authority {
    /// The host.
    pub(crate) host: Host,
    /// The port, where it is named.
    pub(crate) port: Option<NonZeroU16>,
}

/// A host, as a request names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// By its name.
    Name(HostName),
    /// By its address.
    Address(IpAddr),
}

impl Authority {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(bytes).map_err(|_| Malformed)?;
        let (host, port) = match text.strip_prefix('[') {
            Some(text) => {
                let (address, port) = text.split_once(']').ok_or(Malformed)?;
                let address: Ipv6Addr = address.parse().map_err(|_| Malformed)?;
                let port = match port {
                    "" => None,
                    port => Some(port.strip_prefix(':').ok_or(Malformed)?),
                };
                (Host::Address(address.into()), port)
            }
            None => {
                let (host, port) =
                    text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
                let address = host.parse::<Ipv4Addr>().map(|address| Host::Address(address.into()));
                let host = address.or_else(|_| host.parse().map(Host::Name)).map_err(|_| Malformed)?;
                (host, port)
            }
        };
        Ok(Self { host, port: port.map(parse_port).transpose()? })
    }

    /// The port that is meant by plain HTTP.
    pub(crate) fn http_port(&self) -> NonZeroU16 {
        self.port.unwrap_or(HTTP)
    }

    /// Whether both mean the same by plain HTTP.
    pub(super) fn means(&self, other: &Self) -> bool {
        self.host == other.host && self.http_port() == other.http_port()
    }
}

/// Digits alone: `parse` would also take a sign, and zeros in front.
fn parse_port(text: &str) -> Result<NonZeroU16, Malformed> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| is_number).ok_or(Malformed)
}

impl fmt::Display for Authority {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Name(name) => name.fmt(formatter)?,
            Host::Address(IpAddr::V4(address)) => address.fmt(formatter)?,
            Host::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]")?,
        }
        self.port.map_or(Ok(()), |port| write!(formatter, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_spelling_of_each() {
        for (text, shown) in [
            ("example.com", "example.com"),
            ("EXAMPLE.com.:8080", "example.com:8080"),
            ("203.0.113.7", "203.0.113.7"),
            ("203.0.113.7:1", "203.0.113.7:1"),
            ("[2001:DB8:0::1]", "[2001:db8::1]"),
            ("[::1]:65535", "[::1]:65535"),
        ] {
            assert_eq!(Authority::parse(text.as_bytes()).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn what_has_two_readings_has_none() {
        for text in [
            "",
            ":80",
            "example.com:",
            "example.com:0",
            "example.com:+443",
            "example.com:-1",
            "example.com:080",
            "example.com:65536",
            "example.com: 80",
            "example.com:80:80",
            "example.com:http",
            "user@example.com",
            "example.com:80@evil.example",
            "example.com\\evil.example",
            "example.com%00",
            "example.com\0",
            "example.com\r\nX: y",
            "example.com/",
            "example.com?",
            "example.com#",
            "example.com, evil.example",
            "example.com evil.example",
            "ｅｘａｍｐｌｅ.com",
            "example\u{3002}com",
            "fe80::1",
            "::1:80",
            "[fe80::1%eth0]",
            "[fe80::1%25eth0]",
            "[::1",
            "::1]",
            "[::1]80",
            "[::1]:",
            "[::1]:080",
            "[127.0.0.1]",
            "[v1.x]",
            "[]",
            "127.1",
            "0177.0.0.1",
            "0x7f.0.0.1",
            "2130706433",
            "127.0.0.1.",
            "http://example.com",
        ] {
            assert_eq!(Authority::parse(text.as_bytes()), Err(Malformed), "{text:?}");
        }
        assert_eq!(Authority::parse(b"example.com\xff"), Err(Malformed));
    }

    proptest! {
        #[test]
        fn an_authority_is_its_own_text(text in "[\\[\\]a-zA-Z0-9.:@%+\\\\_-]{0,40}|\\PC{0,40}") {
            if let Ok(authority) = Authority::parse(text.as_bytes()) {
                prop_assert_eq!(Authority::parse(authority.to_string().as_bytes()), Ok(authority));
            }
        }
    }
}
