//! What may leave a sandbox. One pure function says it to everybody: the gateway that enforces it, and whoever explains
//! it. Nothing is allowed that nothing allows; what is denied stays denied, whatever allows it.

use std::net::IpAddr;
use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};

use crate::Size;

use super::{
    HOST_ALIAS, HostName, HostRule, HttpPath, Method, Place, Refusal, Rule, Service, Target, UpstreamProxy,
    carried,
};

/// Which way out there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// None.
    #[default]
    None,
    /// To what is named.
    Allowlist,
    /// To any public address.
    Full,
}

impl Mode {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Allowlist => "allowlist",
            Self::Full => "full",
        }
    }
}

/// What may leave a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkPolicy {
    /// Which way out there is.
    pub mode: Mode,
    /// What may be reached.
    #[serde(default)]
    pub allow: Vec<Rule>,
    /// What may not, whatever allows it.
    #[serde(default)]
    pub deny: Vec<Target>,
    /// What may be reached, also where it is in a private network.
    #[serde(default)]
    pub private: Vec<HostRule>,
    /// Services of the host.
    #[serde(default)]
    pub services: Vec<Service>,
    /// The owner's own proxy, through which all that is allowed goes but for services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<UpstreamProxy>,
    /// The most bytes a second that go each way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Size>,
}

/// What somebody inside wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// To know where a name is.
    Lookup(&'a HostName),
    /// A connection to a name.
    Connect(&'a HostName, NonZeroU16),
    /// A connection to an address that no name was asked for.
    Raw(IpAddr, NonZeroU16),
    /// To ask for this by plain HTTP.
    Http(&'a HostName, NonZeroU16, &'a Method, &'a HttpPath),
    /// The address that an allowed name was resolved to.
    Resolved(&'a HostName, NonZeroU16, IpAddr),
}

/// What is said to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// It may, by this rule.
    Rule(&'a Rule),
    /// It may, by this rule about one name, also where that is in a private network.
    Private(&'a HostRule),
    /// It may, as everything public may.
    Public,
    /// It is led to this service.
    Service(&'a Service),
    /// It may not.
    Refused(Refusal),
}

impl Verdict<'_> {
    /// Whether it may.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }
}

impl NetworkPolicy {
    /// Decides.
    #[must_use]
    pub fn decide(&self, request: &Request<'_>) -> Verdict<'_> {
        if self.mode == Mode::None {
            return Verdict::Refused(Refusal::NoNetwork);
        }
        match *request {
            Request::Lookup(name) => self.lookup(name),
            Request::Connect(name, port) => self.connect(name, port),
            Request::Raw(address, port) => self.raw(address, port),
            Request::Http(name, port, method, path) => self.http(name, port, method, path),
            Request::Resolved(name, port, address) => self.resolved(name, port, address),
        }
    }

    fn lookup(&self, name: &HostName) -> Verdict<'_> {
        if self.deny.iter().any(|target| target.has_name(name)) {
            return Verdict::Refused(Refusal::Denied);
        }
        if let Some(service) = self.services.iter().find(|service| service.has_name(name, service.inside)) {
            return Verdict::Service(service);
        }
        self.by_name(|rule| rule.target.has_name(name), |host| host.name == *name, Refusal::NotInAllowlist)
    }

    fn connect(&self, name: &HostName, port: NonZeroU16) -> Verdict<'_> {
        match self.lookup(name) {
            // Its name means the host, which has nothing else on this port.
            Verdict::Service(_) => {
                let service = self.services.iter().find(|service| service.has_name(name, port));
                service.map_or(Verdict::Refused(Refusal::PortNotAllowed), Verdict::Service)
            }
            Verdict::Refused(refusal) => Verdict::Refused(refusal),
            Verdict::Rule(_) | Verdict::Private(_) | Verdict::Public => self.by_name(
                |rule| rule.target.has_name(name) && rule.ports.contain(port),
                |host| host.has(name, port),
                Refusal::PortNotAllowed,
            ),
        }
    }

    /// The first that names it; or the refusal, where not everything public may be reached. A rule that says nothing of
    /// HTTP goes before one that does.
    fn by_name(
        &self,
        names: impl Fn(&Rule) -> bool,
        is_private: impl Fn(&HostRule) -> bool,
        refusal: Refusal,
    ) -> Verdict<'_> {
        let named = || self.allow.iter().filter(|rule| names(rule));
        let rule = named().find(|rule| rule.http.is_none()).map(Verdict::Rule);
        let rule = rule.or_else(|| self.private.iter().find(|host| is_private(host)).map(Verdict::Private));
        let rule = rule.or_else(|| named().next().map(Verdict::Rule));
        rule.unwrap_or(match self.mode {
            Mode::Full => Verdict::Public,
            Mode::None | Mode::Allowlist => Verdict::Refused(refusal),
        })
    }

    fn raw(&self, address: IpAddr, port: NonZeroU16) -> Verdict<'_> {
        let address = carried(address);
        if self.deny.iter().any(|target| target.has_address(address)) {
            return Verdict::Refused(Refusal::Denied);
        }
        if address == HOST_ALIAS {
            let service = self.services.iter().find(|service| service.inside == port);
            return service.map_or(Verdict::Refused(Refusal::PortNotAllowed), Verdict::Service);
        }
        let place = Place::of(address);
        // A private network is named for what it is: a range that also has public addresses means those.
        let means = |rule: &&Rule| match place {
            Place::Private => is_private(rule),
            _ => true,
        };
        let named = || self.allow.iter().filter(|rule| rule.target.has_address(address)).filter(means);
        let rule = named().find(|rule| rule.ports.contain(port));
        match (place, rule, self.mode) {
            (Place::Public | Place::Private, Some(rule), _) => Verdict::Rule(rule),
            (Place::Public, None, Mode::Full) => Verdict::Public,
            (Place::Public | Place::Private, None, _) if named().next().is_some() => {
                Verdict::Refused(Refusal::PortNotAllowed)
            }
            (Place::Public, None, _) => Verdict::Refused(Refusal::NotInAllowlist),
            (place, ..) => Verdict::Refused(Refusal::of(place)),
        }
    }

    fn http(&self, name: &HostName, port: NonZeroU16, method: &Method, path: &HttpPath) -> Verdict<'_> {
        let verdict = self.connect(name, port);
        let Verdict::Rule(Rule { http: Some(_), .. }) = verdict else { return verdict };
        let asked = self.allow.iter().find(|rule| {
            let allows = rule.http.as_ref().is_some_and(|http| http.allows(method, path));
            allows && rule.target.has_name(name) && rule.ports.contain(port)
        });
        asked.map_or(Verdict::Refused(Refusal::RequestNotAllowed), Verdict::Rule)
    }

    fn resolved(&self, name: &HostName, port: NonZeroU16, address: IpAddr) -> Verdict<'_> {
        let verdict = self.connect(name, port);
        if !verdict.is_allowed() || matches!(verdict, Verdict::Service(_)) {
            return verdict;
        }
        if self.deny.iter().any(|target| target.has_address(address)) {
            return Verdict::Refused(Refusal::Denied);
        }
        let private = self.private.iter().find(|host| host.has(name, port));
        match (Place::of(address), private) {
            (Place::Public, _) => verdict,
            (Place::Private, Some(host)) => Verdict::Private(host),
            (place, _) => Verdict::Refused(Refusal::of(place)),
        }
    }
}

fn is_private(rule: &Rule) -> bool {
    matches!(rule.target, Target::Range(range) if range.place() == Some(Place::Private))
}

#[cfg(test)]
mod tests;
