//! What may leave a sandbox. One pure function says it to everybody: the gateway that enforces it, and whoever explains
//! it. Nothing is allowed that nothing allows; what is denied stays denied, whatever allows it.

use std::net::IpAddr;
use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};

use super::{HOST_ALIAS, HostName, HttpPath, Method, Place, Rule, Service, Target};

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
    /// What may be reached although it is in a private network.
    #[serde(default)]
    pub private: Vec<Rule>,
    /// Services of the host.
    #[serde(default)]
    pub services: Vec<Service>,
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
    /// It may, as everything public may.
    Public,
    /// It is led to this service.
    Service(&'a Service),
    /// It may not.
    Refused(Refusal),
}

/// Why not. The words are for programs, and stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The sandbox has no network.
    NoNetwork,
    /// Nothing names it.
    NotInAllowlist,
    /// Something names it, on another port.
    PortNotAllowed,
    /// It is denied by name.
    Denied,
    /// Only some questions may be asked there by plain HTTP, and this is none of them.
    RequestNotAllowed,
    /// It leads into a private network.
    PrivateAddress,
    /// It leads to this machine.
    LoopbackAddress,
    /// It leads to the wire next to this machine.
    LinkLocalAddress,
    /// It leads nowhere.
    UnusableAddress,
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
        self.by_rule(|rule| rule.target.has_name(name), Refusal::NotInAllowlist)
    }

    fn connect(&self, name: &HostName, port: NonZeroU16) -> Verdict<'_> {
        match self.lookup(name) {
            // Its name means the host, which has nothing else on this port.
            Verdict::Service(_) => {
                let service = self.services.iter().find(|service| service.has_name(name, port));
                service.map_or(Verdict::Refused(Refusal::PortNotAllowed), Verdict::Service)
            }
            Verdict::Refused(refusal) => Verdict::Refused(refusal),
            Verdict::Rule(_) | Verdict::Public => {
                let names = |rule: &Rule| rule.target.has_name(name) && rule.ports.contain(port);
                self.by_rule(names, Refusal::PortNotAllowed)
            }
        }
    }

    /// The first rule that names it; or the refusal, where not everything public may be reached. A rule that says nothing
    /// of HTTP goes before one that does.
    fn by_rule(&self, names: impl Fn(&Rule) -> bool, refusal: Refusal) -> Verdict<'_> {
        let named = || self.allow.iter().chain(&self.private).filter(|rule| names(rule));
        let rule = named().find(|rule| rule.http.is_none()).or_else(|| named().next());
        match (rule, self.mode) {
            (Some(rule), _) => Verdict::Rule(rule),
            (None, Mode::Full) => Verdict::Public,
            (None, Mode::None | Mode::Allowlist) => Verdict::Refused(refusal),
        }
    }

    fn raw(&self, address: IpAddr, port: NonZeroU16) -> Verdict<'_> {
        let address = address.to_canonical();
        if address == HOST_ALIAS {
            let service = self.services.iter().find(|service| service.inside == port);
            return service.map_or(Verdict::Refused(Refusal::PortNotAllowed), Verdict::Service);
        }
        if self.deny.iter().any(|target| target.has_address(address)) {
            return Verdict::Refused(Refusal::Denied);
        }
        let is_named = self.allow.iter().any(|rule| rule.target.has_address(address));
        let refusal = if is_named { Refusal::PortNotAllowed } else { Refusal::NotInAllowlist };
        let verdict =
            self.by_rule(|rule| rule.target.has_address(address) && rule.ports.contain(port), refusal);
        match (Place::of(address), verdict) {
            (_, Verdict::Refused(refusal)) => Verdict::Refused(refusal),
            (Place::Public, verdict) => verdict,
            // Named for what it is: a range that also has public addresses means those.
            (Place::Private, Verdict::Rule(rule)) if is_private(rule) => verdict,
            (place, _) => Verdict::Refused(Refusal::of(place)),
        }
    }

    fn http(&self, name: &HostName, port: NonZeroU16, method: &Method, path: &HttpPath) -> Verdict<'_> {
        let verdict = self.connect(name, port);
        let Verdict::Rule(rule) = verdict else { return verdict };
        if rule.http.is_none() {
            return verdict;
        }
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
        let address = address.to_canonical();
        if self.deny.iter().any(|target| target.has_address(address)) {
            return Verdict::Refused(Refusal::Denied);
        }
        let private = self.private.iter().find(|rule| rule.target.has_name(name) && rule.ports.contain(port));
        match (Place::of(address), private) {
            (Place::Public, _) => verdict,
            (Place::Private, Some(rule)) => Verdict::Rule(rule),
            (place, _) => Verdict::Refused(Refusal::of(place)),
        }
    }
}

fn is_private(rule: &Rule) -> bool {
    matches!(rule.target, Target::Range(range) if range.place() == Some(Place::Private))
}

impl Refusal {
    const fn of(place: Place) -> Self {
        match place {
            Place::Private => Self::PrivateAddress,
            Place::Loopback => Self::LoopbackAddress,
            Place::LinkLocal => Self::LinkLocalAddress,
            Place::Nowhere | Place::Public => Self::UnusableAddress,
        }
    }
}

#[cfg(test)]
mod tests;
