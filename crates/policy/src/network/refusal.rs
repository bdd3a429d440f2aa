//! Why something may not leave. The words are for programs, and stay; a person, the record and a test read the same.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{HostName, Place, Rule};

macro_rules! refusals {
    ($($refusal:ident $code:literal $meaning:literal,)*) => {
        /// Why not.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Refusal {
            $(#[doc = $meaning] $refusal,)*
        }

        impl Refusal {
            /// Every reason.
            pub const ALL: &[Self] = &[$(Self::$refusal,)*];

            /// The stable word for it.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Self::$refusal => $code,)* }
            }

            /// The same for people.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$refusal => $meaning,)* }
            }
        }
    };
}

refusals! {
    // What a policy says.
    NoNetwork "no-network" "the sandbox has no network",
    NotInAllowlist "not-in-allowlist" "not in allowlist",
    PortNotAllowed "port-not-allowed" "allowed, but not on this port",
    Denied "denied" "denied",
    RequestNotAllowed "request-not-allowed" "only other requests are allowed there",
    PrivateAddress "private-address" "it leads into a private network",
    LoopbackAddress "loopback-address" "it leads to this machine",
    LinkLocalAddress "link-local-address" "it leads to the wire next to this machine",
    UnusableAddress "unusable-address" "it leads nowhere",
    // What the gateway finds.
    NotAName "not-a-name" "it is no name of a host",
    TooManyNames "too-many-names" "too many new names have been asked for",
    TooManyConnections "too-many-connections" "too many connections are open",
    NeverAsked "never-asked" "no name was asked for that has this address",
    NoSuchHost "no-such-host" "there is no such host",
    NotResolved "not-resolved" "its address could not be found out",
    Unreachable "unreachable" "nobody answers there",
    RefusedUpstream "refused-upstream" "the upstream proxy refuses it",
    OwnAddress "own-address" "it leads to this machine by one of its own addresses",
    ServerNameMissing "server-name-missing" "the TLS client does not say which host it means",
    ServerNameDiffers "server-name-differs" "the TLS client means another host",
    HostDiffers "host-differs" "the request is for another host",
    MalformedHello "malformed-hello" "the TLS client's first message is none",
    MalformedRequest "malformed-request" "the HTTP request can be read in more than one way",
    MalformedResponse "malformed-response" "the HTTP response can be read in more than one way",
    NotHttp "not-http" "only plain HTTP is allowed there, and this is something else",
    Stalled "stalled" "the client began and did not go on",
    NoLongerAllowed "no-longer-allowed" "the policy has been changed",
    Unrecorded "unrecorded" "there is no room to put it on record",
    // What the explicit proxy finds.
    TokenMissing "token-missing" "there is no token",
    TokenInvalid "token-invalid" "the token is none of this proxy's",
    TokenNotYet "token-not-yet" "the token is not valid yet",
    TokenExpired "token-expired" "the token has expired",
    NotForProxy "not-for-proxy" "the proxy itself has nothing to be asked for",
    NeedsTunnel "needs-tunnel" "what goes over TLS needs a tunnel",
}

impl Refusal {
    /// The option with a rule that would let this host be reached on this port, 0 for any, where one would.
    #[must_use]
    pub fn remedy(self, host: &str, port: u16) -> Option<String> {
        // Only what a rule can be about is said to be allowed by one.
        let (rule, is_address) = match host.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) => (format!("[{address}]"), true),
            Ok(IpAddr::V4(address)) => (address.to_string(), true),
            Err(_) => (host.parse::<HostName>().ok()?.to_string(), false),
        };
        let rule = if matches!(port, 0 | 80 | 443) { rule } else { format!("{rule}:{port}") };
        let is_rule = rule.parse::<Rule>().is_ok();
        match self {
            Self::NotInAllowlist | Self::PortNotAllowed if is_rule => Some(format!("--allow {rule}")),
            Self::PrivateAddress if is_address && is_rule => Some(format!("--allow {rule}")),
            Self::PrivateAddress if is_rule => Some(format!("--allow-private {rule}")),
            _ => None,
        }
    }

    pub(super) const fn of(place: Place) -> Self {
        match place {
            Place::Private => Self::PrivateAddress,
            Place::Loopback => Self::LoopbackAddress,
            Place::LinkLocal => Self::LinkLocalAddress,
            Place::Nowhere | Place::Public => Self::UnusableAddress,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.meaning())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_in_a_file_are_the_codes() {
        for refusal in Refusal::ALL {
            assert_eq!(serde_json::to_string(refusal).unwrap(), format!("\"{}\"", refusal.code()));
        }
    }
}
