//! What may be reached: a name, all names below one, or addresses; on which ports; and of plain HTTP, what may be asked.
//! A rule is written as people write it in a list, and is kept as that text.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU16;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::{kept_as_text, number};

use super::{AddressRange, HostError, HostName, HttpRule, HttpRuleError, Method, RangeError};

/// The ports of a rule that names none.
pub(super) const WEB: [u16; 2] = [80, 443];

/// The port of a rule about HTTP that names none.
const HTTP: NonZeroU16 = NonZeroU16::new(80).expect("80 is not zero");

/// What a rule is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Target {
    /// This name.
    Name(HostName),
    /// All names below this one, which is not one of them: `*.NAME`.
    Below(HostName),
    /// These addresses, for those who use no name.
    Range(AddressRange),
}

/// On which ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// 80 and 443.
    Web,
    /// This one.
    One(NonZeroU16),
    /// All: `*`.
    All,
}

/// One line of a list: `HOST[:PORT]`, or `[METHOD[,METHOD…] ]http://HOST[:PORT]/PATH`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rule {
    /// What may be reached.
    pub target: Target,
    /// On which ports.
    pub ports: Ports,
    /// What may be asked there, where the rule says that; then nothing but plain HTTP is spoken.
    pub http: Option<HttpRule>,
}

/// One name and its ports, of whom more is allowed than of others: `HOST[:PORT]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostRule {
    /// The name.
    pub name: HostName,
    /// On which ports.
    pub ports: Ports,
}

impl HostRule {
    /// Whether it means this.
    #[must_use]
    pub fn has(&self, name: &HostName, port: NonZeroU16) -> bool {
        self.name == *name && self.ports.contain(port)
    }
}

/// Why a text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The name is none.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The addresses are none.
    #[error(transparent)]
    Range(#[from] RangeError),
    /// The port is none.
    #[error("'{0}' is not a port, from 1 to 65535 or * for all")]
    Port(String),
    /// What may be asked makes no sense.
    #[error(transparent)]
    Http(#[from] HttpRuleError),
    /// As a browser shows it.
    #[error("'{0}' is the address of a page; write the name alone, as what is asked over TLS is not seen")]
    Page(String),
    /// As other programs write a domain with all below it.
    #[error("'{0}' begins with a dot; write *{0} for all names below it, and the name itself for itself")]
    Dot(String),
    /// A star that stands for something else than all names below.
    #[error("'{0}' has a * that does not stand for all names below one, as in *.example.com")]
    Star(String),
    /// Words in a row.
    #[error("'{0}' is more than one rule")]
    Words(String),
    /// More than one name, or none.
    #[error("'{0}' is not one name")]
    NotOneName(String),
    /// Only a name is asked for by HTTP.
    #[error("'{0}' is about HTTP, and names no host")]
    Nameless(String),
}

impl Target {
    /// Whether it means this name.
    #[must_use]
    pub fn has_name(&self, name: &HostName) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Below(suffix) => name.is_below(suffix),
            Self::Range(_) => false,
        }
    }

    /// Whether it means this address.
    #[must_use]
    pub fn has_address(&self, address: IpAddr) -> bool {
        matches!(self, Self::Range(range) if range.contains(address))
    }
}

impl Ports {
    /// Whether it means this one.
    #[must_use]
    pub fn contain(self, port: NonZeroU16) -> bool {
        match self {
            Self::Web => WEB.contains(&port.get()),
            Self::One(own) => own == port,
            Self::All => true,
        }
    }
}

impl FromStr for Target {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let shown = || text.escape_debug().to_string();
        if text.starts_with('.') {
            return Err(RuleError::Dot(shown()));
        }
        let (below, name) = text.strip_prefix("*.").map_or((false, text), |name| (true, name));
        if name.contains('*') {
            return Err(RuleError::Star(shown()));
        }
        let is_range = name.contains(['/', '[', ']']) || name.parse::<IpAddr>().is_ok();
        match (below, is_range) {
            (false, true) => Ok(Self::Range(name.parse()?)),
            (false, false) => Ok(Self::Name(name.parse()?)),
            (true, _) => Ok(Self::Below(name.parse()?)),
        }
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let shown = || text.escape_debug().to_string();
        let mut words = text.split_ascii_whitespace();
        let (methods, place) = match (words.next(), words.next(), words.next()) {
            (Some(place), None, _) => (None, place),
            (Some(methods), Some(place), None) => (Some(methods), place),
            (None, ..) => return Err(HostError::Empty.into()),
            _ => return Err(RuleError::Words(shown())),
        };
        let Some(place) = place.strip_prefix("http://") else {
            if place.contains("://") {
                return Err(RuleError::Page(shown()));
            }
            if methods.is_some() {
                return Err(RuleError::Words(shown()));
            }
            let (host, port) = split_port(place)?;
            return Ok(Self { target: host.parse()?, ports: port.unwrap_or(Ports::Web), http: None });
        };
        let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
        let (host, port) = split_port(host)?;
        let target: Target = host.parse()?;
        if matches!(target, Target::Range(_)) {
            return Err(RuleError::Nameless(shown()));
        }
        let methods = methods.into_iter().flat_map(|methods| methods.split(','));
        let methods = methods.map(str::parse::<Method>).collect::<Result<_, _>>()?;
        let path = if path.is_empty() { "/*" } else { path }.parse()?;
        let ports = port.unwrap_or(Ports::One(HTTP));
        Ok(Self { target, ports, http: Some(HttpRule { methods, path }) })
    }
}

impl FromStr for HostRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        match text.parse()? {
            Rule { target: Target::Name(name), ports, http: None } => Ok(Self { name, ports }),
            _ => Err(RuleError::NotOneName(text.escape_debug().to_string())),
        }
    }
}

/// A host and what is behind its last colon. The colons of an address of IPv6 stand in brackets.
fn split_port(text: &str) -> Result<(&str, Option<Ports>), RuleError> {
    let Some((host, port)) = text.rsplit_once(':').filter(|(_, port)| !port.contains(']')) else {
        return Ok((text, None));
    };
    if text.parse::<Ipv6Addr>().is_ok() {
        return Err(RangeError::Malformed(text.to_owned()).into());
    }
    let ports = match port {
        "*" => Some(Ports::All),
        port => number(port).map(Ports::One),
    };
    let ports = ports.ok_or_else(|| RuleError::Port(port.escape_debug().to_string()))?;
    Ok((host, Some(ports)))
}

kept_as_text!(Rule, RuleError);

kept_as_text!(HostRule, RuleError);

impl fmt::Display for HostRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.name, self.ports)
    }
}

kept_as_text!(Target, RuleError);

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(formatter),
            Self::Below(suffix) => write!(formatter, "*.{suffix}"),
            Self::Range(range) => range.fmt(formatter),
        }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Web => Ok(()),
            Self::One(port) => write!(formatter, ":{port}"),
            Self::All => formatter.write_str(":*"),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, ports, http } = self;
        let Some(HttpRule { methods, path }) = http else { return write!(formatter, "{target}{ports}") };
        for (index, method) in methods.iter().enumerate() {
            write!(formatter, "{}{method}", if index > 0 { "," } else { "" })?;
        }
        let space = if methods.is_empty() { "" } else { " " };
        write!(formatter, "{space}http://{target}{ports}{path}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rules_are_read_and_shown() {
        for (text, shown) in [
            ("Example.COM.", "example.com"),
            ("example.com:8443", "example.com:8443"),
            ("example.com:*", "example.com:*"),
            ("*.example.com", "*.example.com"),
            ("203.0.113.7", "203.0.113.7/32"),
            ("203.0.113.0/24:22", "203.0.113.0/24:22"),
            ("[2001:db8::]/32", "[2001:db8::]/32"),
            ("[2001:db8::7]:22", "[2001:db8::7]/128:22"),
            ("http://example.com", "http://example.com:80/*"),
            ("GET,HEAD http://example.com:8080/a/*", "GET,HEAD http://example.com:8080/a/*"),
            ("  POST   http://*.example.com/a ", "POST http://*.example.com:80/a"),
        ] {
            let rule: Rule = text.parse().unwrap();
            assert_eq!(rule.to_string(), shown);
            assert_eq!(shown.parse::<Rule>(), Ok(rule));
        }
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in [
            "",
            " ",
            "*",
            "*.",
            "*.*.example.com",
            "a*.example.com",
            ".example.com",
            "https://example.com/",
            "ftp://a",
            "example.com:",
            "example.com:0",
            "example.com:+443",
            "example.com:65536",
            "example.com:http",
            "a b",
            "GET example.com",
            "GET http://a b",
            "get http://a",
            "http://203.0.113.7/",
            "2001:db8::1",
            "2001:db8::1:443",
            "[2001:db8::1",
            "1.2.3.4.5",
            "127.1",
            "127.0.0.1:80",
            "user@example.com",
            "example.com/path",
            "a\0b",
            "http://a/../b",
            "http://a/*/b",
        ] {
            assert!(text.parse::<Rule>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn one_name_is_one_name() {
        assert_eq!("Mirror.example:8080".parse::<HostRule>().unwrap().to_string(), "mirror.example:8080");
        for text in ["*.example.com", "203.0.113.7", "http://a.example/", "GET http://a.example/x", ""] {
            assert!(text.parse::<HostRule>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_rule_is_its_own_text(text in "(GET )?(http://)?[*]?[.]?[a-z0-9.:/*-]{1,30}|\\PC{0,30}") {
            if let Ok(rule) = text.parse::<Rule>() {
                prop_assert_eq!(rule.to_string().parse::<Rule>(), Ok(rule));
            }
        }
    }
}
