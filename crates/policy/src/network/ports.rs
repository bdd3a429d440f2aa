//! Which ports a policy speaks of, for machines on which each that is served has to be known at the start.

use std::collections::BTreeSet;

use super::rule::WEB;
use super::{Mode, NetworkPolicy, Ports};

impl NetworkPolicy {
    /// The ports that its rules and services name, and those of the web, which a rule means that names none.
    #[must_use]
    pub fn named_ports(&self) -> BTreeSet<u16> {
        let named = self.rules_ports().filter_map(|ports| match ports {
            Ports::One(port) => Some(port.get()),
            Ports::Web | Ports::All => None,
        });
        let services = self.services.iter().map(|service| service.inside.get());
        WEB.into_iter().chain(named).chain(services).collect()
    }

    /// Whether it also allows ports that nothing in it names.
    #[must_use]
    pub fn allows_unnamed_ports(&self) -> bool {
        self.mode == Mode::Full || self.rules_ports().any(|ports| ports == Ports::All)
    }

    fn rules_ports(&self) -> impl Iterator<Item = Ports> {
        let private = self.private.iter().map(|host| host.ports);
        self.allow.iter().map(|rule| rule.ports).chain(private)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_counted_once_and_the_web_is_always_there() {
        let rule = |text: &str| text.parse().unwrap();
        let policy = NetworkPolicy {
            mode: Mode::Allowlist,
            allow: ["a.example", "b.example:22", "c.example:22", "http://d.example:8080/"].map(rule).into(),
            private: vec!["e.example:8443".parse().unwrap()],
            services: vec!["model=127.0.0.1:11434@9000".parse().unwrap()],
            ..NetworkPolicy::default()
        };
        assert_eq!(Vec::from_iter(policy.named_ports()), [22, 80, 443, 8080, 8443, 9000]);
        assert!(!policy.allows_unnamed_ports());
        assert_eq!(Vec::from_iter(NetworkPolicy::default().named_ports()), [80, 443]);
    }

    #[test]
    fn all_ports_are_none_that_is_named() {
        let any = NetworkPolicy {
            mode: Mode::Allowlist,
            allow: vec!["a.example:*".parse().unwrap()],
            ..NetworkPolicy::default()
        };
        assert!(any.allows_unnamed_ports());
        assert_eq!(Vec::from_iter(any.named_ports()), [80, 443]);
        assert!(NetworkPolicy { mode: Mode::Full, ..NetworkPolicy::default() }.allows_unnamed_ports());
    }
}
