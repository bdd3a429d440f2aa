//! Services of the host that a sandbox may use: a model server, a search service. Each is one port of one address,
//! reached inside by its name or by the alias of the host; no other port of the host is.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU16;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::{kept_as_text, number};

use super::{HostError, HostName, Place};

/// The host as a sandbox knows it.
pub const HOST_ALIAS: Ipv4Addr = Ipv4Addr::new(10, 200, 200, 1);

/// The domain of the services' names.
const DOMAIN: &str = "agentbox.internal";

/// What other programs call the host.
const OTHERS_ALIAS: &str = "host.docker.internal";

/// A service: `NAME=ADDRESS:PORT[@PORT]`, with the port inside where it is another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Service {
    /// Its name, one word.
    pub name: HostName,
    /// Where it is on the host.
    pub address: SocketAddr,
    /// Its port inside.
    pub inside: NonZeroU16,
}

/// Why a text names no service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// Not of the form.
    #[error("'{0}' is not a service: NAME=ADDRESS:PORT or NAME=ADDRESS:PORT@PORT")]
    Malformed(String),
    /// The name is none.
    #[error(transparent)]
    Name(#[from] HostError),
    /// The name is a domain's, or means this machine already.
    #[error("'{0}' is not one word that means nothing else")]
    Word(String),
    /// The address is where nobody answers, or where a cloud keeps its credentials.
    #[error("'{0}' is no address of a service")]
    Address(IpAddr),
    /// A port is none.
    #[error("'{0}' is not a port, from 1 to 65535")]
    Port(String),
}

impl Service {
    /// Whether this name and port, as seen inside, mean it.
    #[must_use]
    pub fn has_name(&self, name: &HostName, port: NonZeroU16) -> bool {
        self.inside == port && (self.is_called(name) || name.as_str() == OTHERS_ALIAS)
    }

    /// Whether this name, as seen inside, means the host for its sake.
    #[must_use]
    pub fn is_called(&self, name: &HostName) -> bool {
        let name = name.as_str();
        let word = name.strip_suffix(DOMAIN).and_then(|word| word.strip_suffix('.')).unwrap_or(name);
        word == self.name.as_str()
    }
}

impl FromStr for Service {
    type Err = ServiceError;

    fn from_str(text: &str) -> Result<Self, ServiceError> {
        let malformed = || ServiceError::Malformed(text.escape_debug().to_string());
        let (name, place) = text.split_once('=').ok_or_else(malformed)?;
        let (address, inside) =
            place.split_once('@').map_or((place, None), |(address, port)| (address, Some(port)));
        let name: HostName = name.parse()?;
        if name.as_str().contains('.') || name.as_str() == "localhost" {
            return Err(ServiceError::Word(name.to_string()));
        }
        let address: SocketAddr = address.parse().map_err(|_| malformed())?;
        if matches!(Place::of(address.ip()), Place::Nowhere | Place::LinkLocal) {
            return Err(ServiceError::Address(address.ip()));
        }
        let port =
            |text: &str| number(text).ok_or_else(|| ServiceError::Port(text.escape_debug().to_string()));
        let own = NonZeroU16::new(address.port()).ok_or_else(|| ServiceError::Port("0".to_owned()))?;
        Ok(Self { name, address, inside: inside.map_or(Ok(own), port)? })
    }
}

kept_as_text!(Service, ServiceError);

impl fmt::Display for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, address, inside } = self;
        write!(formatter, "{name}={address}")?;
        if inside.get() == address.port() { Ok(()) } else { write!(formatter, "@{inside}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_read_and_shown() {
        for text in ["ollama=127.0.0.1:11434", "search=192.168.1.5:8080@80", "v6=[::1]:80"] {
            let service: Service = text.parse().unwrap();
            assert_eq!(service.to_string(), text);
        }
        assert_eq!("a=127.0.0.1:80@80".parse::<Service>().unwrap().to_string(), "a=127.0.0.1:80");
    }

    #[test]
    fn what_is_no_service_is_refused() {
        for text in [
            "",
            "ollama",
            "ollama=",
            "=127.0.0.1:80",
            "a=127.0.0.1",
            "a=localhost:80",
            "a=127.0.0.1:0",
            "a=127.0.0.1:80@0",
            "a=127.0.0.1:80@+8",
            "a.b=127.0.0.1:80",
            "localhost=127.0.0.1:80",
            "a=169.254.169.254:80",
            "a=0.0.0.0:80",
            "a=::1:80",
            "a b=127.0.0.1:80",
        ] {
            assert!(text.parse::<Service>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_service_has_three_names() {
        let service: Service = "ollama=127.0.0.1:11434@80".parse().unwrap();
        let has =
            |name: &str, port: u16| service.has_name(&name.parse().unwrap(), NonZeroU16::new(port).unwrap());
        assert!(has("ollama", 80) && has("ollama.agentbox.internal", 80) && has("host.docker.internal", 80));
        assert!(!has("ollama", 11434) && !has("ollama.example", 80) && !has("agentbox.internal", 80));
        assert!(!has("x.ollama.agentbox.internal", 80) && !has("ollamaagentbox.internal", 80));
    }
}
