//! The owner's own HTTP proxy, through which all that is allowed goes. It finds out itself where a name leads.

use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::number;

use super::{HostError, HostName};

/// The longest credentials.
const LONGEST: usize = 1024;

/// How no proxy is called.
const NONE: &str = "none";

/// A proxy: `http://[USER:PASSWORD@]HOST:PORT`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UpstreamProxy {
    /// Where it is.
    pub host: ProxyHost,
    /// On which port.
    pub port: NonZeroU16,
    /// Who one is there; never shown.
    credentials: Option<String>,
}

/// What is said about a proxy where one may have been set before: which, or `none`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum ProxyChoice {
    /// None.
    Direct,
    /// That one.
    Through(UpstreamProxy),
}

/// Where a proxy is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyHost {
    /// By its name.
    Name(HostName),
    /// By its address.
    Address(IpAddr),
}

/// Why a text names no proxy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// Not of the form. What was written is not shown, for it may hold a password.
    #[error("it is not of the form http://[USER:PASSWORD@]HOST:PORT")]
    Malformed,
    /// The name is none.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The port is none.
    #[error("its port is none, from 1 to 65535")]
    Port,
    /// A letter that cannot be sent.
    #[error("its user or password holds a letter that cannot be sent, or is too long")]
    Credentials,
}

impl UpstreamProxy {
    /// The user and the password, as `USER:PASSWORD`.
    #[must_use]
    pub fn credentials(&self) -> Option<&str> {
        self.credentials.as_deref()
    }

    /// All of it, for the file of its owner alone.
    fn whole(&self) -> String {
        match &self.credentials {
            Some(credentials) => format!("http://{credentials}@{}:{}", self.host, self.port),
            None => self.to_string(),
        }
    }
}

impl ProxyChoice {
    /// The proxy, where there is one.
    #[must_use]
    pub fn proxy(self) -> Option<UpstreamProxy> {
        match self {
            Self::Direct => None,
            Self::Through(proxy) => Some(proxy),
        }
    }
}

impl FromStr for ProxyChoice {
    type Err = UpstreamError;

    fn from_str(text: &str) -> Result<Self, UpstreamError> {
        if text == NONE { Ok(Self::Direct) } else { text.parse().map(Self::Through) }
    }
}

impl TryFrom<String> for ProxyChoice {
    type Error = UpstreamError;

    fn try_from(text: String) -> Result<Self, UpstreamError> {
        text.parse()
    }
}

impl fmt::Display for ProxyChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direct => formatter.write_str(NONE),
            Self::Through(proxy) => proxy.fmt(formatter),
        }
    }
}

impl FromStr for UpstreamProxy {
    type Err = UpstreamError;

    fn from_str(text: &str) -> Result<Self, UpstreamError> {
        let rest = text.strip_prefix("http://").ok_or(UpstreamError::Malformed)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        // A password may hold one.
        let (credentials, place) =
            rest.rsplit_once('@').map_or((None, rest), |(who, place)| (Some(who), place));
        let is_sendable = |who: &str| {
            who.len() <= LONGEST && who.contains(':') && who.bytes().all(|byte| matches!(byte, b'!'..=b'~'))
        };
        if credentials.is_some_and(|who| !is_sendable(who)) {
            return Err(UpstreamError::Credentials);
        }
        let (host, port) = place.rsplit_once(':').ok_or(UpstreamError::Malformed)?;
        let port = number(port).ok_or(UpstreamError::Port)?;
        let in_brackets = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = match (in_brackets, host.parse::<std::net::Ipv4Addr>()) {
            (Some(host), _) => {
                let address: std::net::Ipv6Addr = host.parse().map_err(|_| UpstreamError::Malformed)?;
                ProxyHost::Address(address.into())
            }
            (None, Ok(address)) => ProxyHost::Address(address.into()),
            (None, Err(_)) => ProxyHost::Name(host.parse()?),
        };
        Ok(Self { host, port, credentials: credentials.map(str::to_owned) })
    }
}

impl TryFrom<String> for UpstreamProxy {
    type Error = UpstreamError;

    fn try_from(text: String) -> Result<Self, UpstreamError> {
        text.parse()
    }
}

impl From<UpstreamProxy> for String {
    fn from(proxy: UpstreamProxy) -> Self {
        proxy.whole()
    }
}

/// Without the password.
impl fmt::Display for UpstreamProxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = if self.credentials.is_some() { "…@" } else { "" };
        write!(formatter, "http://{who}{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for UpstreamProxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Display for ProxyHost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(formatter),
            Self::Address(IpAddr::V4(address)) => address.fmt(formatter),
            Self::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_read_and_kept() {
        for text in [
            "http://proxy.example.com:3128",
            "http://10.0.0.1:8080",
            "http://[2001:db8::1]:80",
            "http://me:p@ss:w@proxy:3128",
        ] {
            let proxy: UpstreamProxy = text.parse().unwrap();
            let json = serde_json::to_string(&proxy).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<UpstreamProxy>(&json).unwrap(), proxy);
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let proxy: UpstreamProxy = "http://me:secret@proxy:3128".parse().unwrap();
        assert_eq!(proxy.credentials(), Some("me:secret"));
        assert_eq!(format!("{proxy} {proxy:?}"), "http://…@proxy:3128 http://…@proxy:3128");
        let error = "http://me:secret@pro xy:3128".parse::<UpstreamProxy>().unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn what_is_no_proxy_is_refused() {
        for text in [
            "",
            "proxy:3128",
            "https://proxy:3128",
            "http://proxy",
            "http://proxy:0",
            "http://proxy:x",
            "http://:3128",
            "http://user@proxy:3128",
            "http://us er:x@proxy:3128",
            "http://a:b\n@proxy:1",
            "http://proxy:3128/path",
            "http://[::1:3128",
        ] {
            assert!(text.parse::<UpstreamProxy>().is_err(), "{text:?}");
        }
    }
}
