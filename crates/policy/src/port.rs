//! Ports inside that their owner reaches on the host. Addresses are numbers: a name could mean another machine tomorrow.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::number;

/// Most ports that one sandbox publishes at a time.
pub const PORTS_LIMIT: usize = 64;

/// An address of the host's and a port on it: `[ADDR:]PORT`, on the loopback unless told otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPort {
    /// The address.
    pub address: IpAddr,
    /// The port; zero is one that the kernel chooses.
    pub port: u16,
}

/// A port inside and where it is reached: `[ADDR:]PORT:PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedPort {
    /// Where on the host.
    #[serde(flatten)]
    pub host: HostPort,
    /// The port inside.
    pub inside: NonZeroU16,
}

/// Why a text is no port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// Not of the form.
    #[error("'{0}' is not a port of the host's: PORT, ADDRESS:PORT or [ADDRESS]:PORT")]
    Host(String),
    /// Not of the form.
    #[error("'{0}' does not publish a port: PORT:PORT, ADDRESS:PORT:PORT or [ADDRESS]:PORT:PORT")]
    Malformed(String),
    /// The address is none.
    #[error("'{0}' is not an address; an IPv6 address stands in brackets")]
    Address(String),
    /// The host's port is none.
    #[error("'{0}' is not a port of the host's, from 0 to 65535")]
    Port(String),
    /// The port inside is none.
    #[error("'{0}' is not a port inside, from 1 to 65535")]
    Inside(String),
}

impl HostPort {
    /// Whether nobody but this machine reaches it.
    #[must_use]
    pub const fn is_loopback(&self) -> bool {
        self.address.to_canonical().is_loopback()
    }
}

impl From<HostPort> for SocketAddr {
    fn from(HostPort { address, port }: HostPort) -> Self {
        Self::new(address, port)
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::from(*self).fmt(formatter)
    }
}

impl FromStr for HostPort {
    type Err = PortError;

    fn from_str(text: &str) -> Result<Self, PortError> {
        let Some((address, port)) = text.rsplit_once(':') else {
            let port = number(text).ok_or_else(|| PortError::Host(shown(text)))?;
            return Ok(Self { address: Ipv4Addr::LOCALHOST.into(), port });
        };
        let in_brackets = address.strip_prefix('[').and_then(|address| address.strip_suffix(']'));
        let parsed = match in_brackets {
            Some(address) => address.parse::<Ipv6Addr>().map(IpAddr::from).ok(),
            None => address.parse::<Ipv4Addr>().map(IpAddr::from).ok(),
        };
        let address = parsed.ok_or_else(|| PortError::Address(shown(address)))?;
        let port = number(port).ok_or_else(|| PortError::Port(shown(port)))?;
        Ok(Self { address, port })
    }
}

impl FromStr for PublishedPort {
    type Err = PortError;

    fn from_str(text: &str) -> Result<Self, PortError> {
        let malformed = || PortError::Malformed(shown(text));
        let (host, inside) = text.rsplit_once(':').ok_or_else(malformed)?;
        if host.is_empty() || inside.ends_with(']') {
            return Err(malformed());
        }
        let port = number(inside).and_then(NonZeroU16::new);
        let inside = port.ok_or_else(|| PortError::Inside(shown(inside)))?;
        let host = host.parse().map_err(|error| match error {
            PortError::Host(port) => PortError::Port(port),
            error => error,
        })?;
        Ok(Self { host, inside })
    }
}

impl fmt::Display for PublishedPort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.host, self.inside)
    }
}

fn shown(text: &str) -> String {
    text.escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parses() {
        for (text, whole) in [
            ("8080:80", "127.0.0.1:8080:80"),
            ("0:80", "127.0.0.1:0:80"),
            ("0.0.0.0:8080:80", "0.0.0.0:8080:80"),
            ("[::1]:8080:65535", "[::1]:8080:65535"),
            ("[::]:0:1", "[::]:0:1"),
        ] {
            assert_eq!(text.parse::<PublishedPort>().unwrap().to_string(), whole);
        }
        assert_eq!("8080".parse::<HostPort>().unwrap().to_string(), "127.0.0.1:8080");
        assert_eq!("[::1]:8080".parse::<HostPort>().unwrap().to_string(), "[::1]:8080");
    }

    #[test]
    fn refuses() {
        for text in [
            "",
            "80",
            ":80",
            "80:",
            "80:0",
            "80:65536",
            "65536:80",
            "-1:80",
            "+1:80",
            "80:+1",
            "a:80",
            "80:a",
            "::1:80:80",
            "[::1]",
            "[::1]:80",
            "[::1:80:80",
            "[127.0.0.1]:80:80",
            "localhost:80:80",
            "1.2.3:80:80",
            "127.0.0.1:80",
            "127.0.0.1:80:80:80",
            " 80:80",
            "80:80/tcp",
            "80:80\0",
            "*:80:80",
        ] {
            assert!(text.parse::<PublishedPort>().is_err(), "{text:?}");
        }
        for text in ["", ":", "a", "65536", "::1", "[::1]", "localhost:80", "127.0.0.1:", "127.0.0.1:80:80"] {
            assert!(text.parse::<HostPort>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_other_machines_reach_is_told_apart() {
        for (text, is_loopback) in [
            ("80", true),
            ("127.9.9.9:80", true),
            ("[::1]:80", true),
            ("[::ffff:127.0.0.1]:80", true),
            ("0.0.0.0:80", false),
            ("[::]:80", false),
            ("192.168.1.2:80", false),
        ] {
            assert_eq!(text.parse::<HostPort>().unwrap().is_loopback(), is_loopback, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_much(text in "\\PC{0,40}") {
            let _ = text.parse::<PublishedPort>();
        }

        #[test]
        fn what_is_shown_is_read_again(address in any::<IpAddr>(), port in any::<u16>(), inside in 1_u16..) {
            let port = PublishedPort { host: HostPort { address, port }, inside: inside.try_into().unwrap() };
            prop_assert_eq!(port.to_string().parse::<PublishedPort>().unwrap(), port);
            let text = serde_json::to_string(&port).unwrap();
            prop_assert_eq!(serde_json::from_str::<PublishedPort>(&text).unwrap(), port);
        }
    }
}
