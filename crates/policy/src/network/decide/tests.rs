//! The decision by tables, and what holds of every policy.

use proptest::prelude::*;

use super::*;

/// `connect example.com 443`, `lookup NAME`, `raw ADDRESS PORT`, `http METHOD NAME PORT PATH`, `resolved NAME PORT ADDRESS`.
fn check(policy: &NetworkPolicy, request: &str) -> String {
    let words: Vec<&str> = request.split(' ').collect();
    let name = |index: usize| words[index].parse::<HostName>().unwrap();
    let port = |index: usize| words[index].parse::<NonZeroU16>().unwrap();
    let verdict = match words[0] {
        "lookup" => policy.decide(&Request::Lookup(&name(1))),
        "connect" => policy.decide(&Request::Connect(&name(1), port(2))),
        "raw" => policy.decide(&Request::Raw(words[1].parse().unwrap(), port(2))),
        "http" => {
            let (method, path) = (words[1].parse().unwrap(), words[4].parse().unwrap());
            policy.decide(&Request::Http(&name(2), port(3), &method, &path))
        }
        "resolved" => policy.decide(&Request::Resolved(&name(1), port(2), words[3].parse().unwrap())),
        other => panic!("{other}"),
    };
    match verdict {
        Verdict::Rule(rule) => format!("by {rule}"),
        Verdict::Private(host) => format!("privately by {host}"),
        Verdict::Public => "public".to_owned(),
        Verdict::Service(service) => format!("to {}", service.name),
        Verdict::Refused(refusal) => serde_json::to_value(refusal).unwrap().as_str().unwrap().to_owned(),
    }
}

fn policy(mode: Mode, allow: &[&str], deny: &[&str]) -> NetworkPolicy {
    NetworkPolicy {
        mode,
        allow: allow.iter().map(|rule| rule.parse().unwrap()).collect(),
        deny: deny.iter().map(|target| target.parse().unwrap()).collect(),
        ..NetworkPolicy::default()
    }
}

#[track_caller]
fn table(policy: &NetworkPolicy, rows: &[(&str, &str)]) {
    for (request, expected) in rows {
        assert_eq!(check(policy, request), *expected, "{request}");
    }
}

#[test]
fn nothing_is_allowed_by_nothing() {
    let requests = ["lookup a.example", "connect a.example 443", "raw 1.1.1.1 443", "raw 10.200.200.1 80"];
    for request in requests {
        assert_eq!(check(&NetworkPolicy::default(), request), "no-network");
        assert!(!check(&policy(Mode::Allowlist, &[], &[]), request).starts_with("by"));
    }
    let with_rules = NetworkPolicy { mode: Mode::None, ..policy(Mode::Full, &["a.example"], &[]) };
    table(&with_rules, &requests.map(|request| (request, "no-network")));
}

#[test]
fn names_are_allowed_by_name_and_port() {
    let list =
        ["a.example", "*.b.example:*", "c.example:22", "203.0.113.0/24", "10.0.0.0/8:5432", "0.0.0.0/0:99"];
    table(
        &policy(Mode::Allowlist, &list, &["bad.b.example", "203.0.113.9"]),
        &[
            ("lookup a.example", "by a.example"),
            ("lookup x.a.example", "not-in-allowlist"),
            ("lookup b.example", "not-in-allowlist"),
            ("lookup x.b.example", "by *.b.example:*"),
            ("lookup bad.b.example", "denied"),
            ("lookup worse.bad.b.example", "by *.b.example:*"),
            ("connect a.example 443", "by a.example"),
            ("connect a.example 80", "by a.example"),
            ("connect a.example 22", "port-not-allowed"),
            ("connect x.b.example 22", "by *.b.example:*"),
            ("connect c.example 22", "by c.example:22"),
            ("connect c.example 443", "port-not-allowed"),
            ("connect bad.b.example 443", "denied"),
            ("raw 203.0.113.7 443", "by 203.0.113.0/24"),
            ("raw 203.0.113.7 22", "port-not-allowed"),
            ("raw 203.0.113.9 443", "denied"),
            ("raw ::ffff:203.0.113.9 443", "denied"),
            ("raw 64:ff9b::cb00:7109 443", "denied"),
            ("resolved a.example 443 64:ff9b::cb00:7109", "denied"),
            ("raw 203.0.114.1 443", "port-not-allowed"),
            ("raw 203.0.114.1 99", "by 0.0.0.0/0:99"),
            ("raw 10.1.2.3 5432", "by 10.0.0.0/8:5432"),
            ("raw 10.1.2.3 99", "port-not-allowed"),
            ("raw 192.168.0.1 99", "private-address"),
            ("raw 127.0.0.1 99", "loopback-address"),
            ("raw ::ffff:127.0.0.1 99", "loopback-address"),
            ("raw 169.254.169.254 99", "link-local-address"),
            ("raw 198.18.0.1 99", "unusable-address"),
            ("raw ::1 443", "loopback-address"),
            ("resolved a.example 443 1.1.1.1", "by a.example"),
            ("resolved a.example 443 203.0.113.9", "denied"),
            ("resolved a.example 443 10.0.0.1", "private-address"),
            ("resolved a.example 443 127.0.0.1", "loopback-address"),
            ("resolved a.example 443 ::ffff:169.254.169.254", "link-local-address"),
            ("resolved a.example 443 0.0.0.0", "unusable-address"),
            ("resolved z.example 443 1.1.1.1", "not-in-allowlist"),
        ],
    );
}

#[test]
fn full_means_what_is_public() {
    table(
        &policy(Mode::Full, &["192.168.7.0/24:22"], &["*.bad.example"]),
        &[
            ("connect a.example 25", "public"),
            ("connect x.bad.example 443", "denied"),
            ("raw 1.1.1.1 53", "public"),
            ("raw 2606:4700::1111 53", "public"),
            ("raw 10.0.0.1 80", "private-address"),
            ("raw 192.168.7.5 22", "by 192.168.7.0/24:22"),
            ("raw 192.168.7.5 80", "port-not-allowed"),
            ("raw 127.0.0.1 80", "loopback-address"),
            ("raw 100.64.0.1 80", "private-address"),
            ("raw 169.254.169.254 80", "link-local-address"),
            ("raw 10.200.200.1 80", "port-not-allowed"),
            ("resolved a.example 443 192.168.7.5", "private-address"),
        ],
    );
}

#[test]
fn a_private_name_is_that_name_alone() {
    let mirror = NetworkPolicy {
        private: vec!["mirror.corp.example".parse().unwrap()],
        ..policy(Mode::Allowlist, &["a.example"], &[])
    };
    table(
        &mirror,
        &[
            ("connect mirror.corp.example 443", "privately by mirror.corp.example"),
            ("resolved mirror.corp.example 443 10.0.0.1", "privately by mirror.corp.example"),
            ("resolved mirror.corp.example 443 1.1.1.1", "privately by mirror.corp.example"),
            ("resolved mirror.corp.example 443 127.0.0.1", "loopback-address"),
            ("resolved mirror.corp.example 443 169.254.169.254", "link-local-address"),
            ("resolved mirror.corp.example 22 10.0.0.1", "port-not-allowed"),
            ("resolved a.example 443 10.0.0.1", "private-address"),
            ("raw 10.0.0.1 443", "private-address"),
        ],
    );
}

#[test]
fn services_are_the_hosts_only_ports() {
    let services = ["ollama=127.0.0.1:11434", "search=127.0.0.1:8080@80"];
    let local = NetworkPolicy {
        services: services.iter().map(|service| service.parse().unwrap()).collect(),
        ..policy(Mode::Allowlist, &[], &["search"])
    };
    table(
        &local,
        &[
            ("lookup ollama", "to ollama"),
            ("lookup ollama.agentbox.internal", "to ollama"),
            ("lookup host.docker.internal", "to ollama"),
            ("connect ollama 11434", "to ollama"),
            ("connect ollama 80", "port-not-allowed"),
            ("connect host.docker.internal 80", "to search"),
            ("connect host.docker.internal 22", "port-not-allowed"),
            ("connect search 80", "denied"),
            ("raw 10.200.200.1 11434", "to ollama"),
            ("raw 10.200.200.1 80", "to search"),
            ("raw 10.200.200.1 8080", "port-not-allowed"),
            ("raw 127.0.0.1 11434", "loopback-address"),
            ("connect other.agentbox.internal 80", "not-in-allowlist"),
        ],
    );
}

#[test]
fn what_may_be_asked_by_http() {
    let list = ["GET http://a.example/x/*", "HEAD http://a.example/y", "b.example"];
    table(
        &policy(Mode::Allowlist, &list, &[]),
        &[
            ("connect a.example 80", "by GET http://a.example:80/x/*"),
            ("connect a.example 443", "port-not-allowed"),
            ("http GET a.example 80 /x/1", "by GET http://a.example:80/x/*"),
            ("http HEAD a.example 80 /y", "by HEAD http://a.example:80/y"),
            ("http POST a.example 80 /x/1", "request-not-allowed"),
            ("http GET a.example 80 /z", "request-not-allowed"),
            ("http DELETE b.example 80 /any", "by b.example"),
            ("http GET c.example 80 /", "not-in-allowlist"),
        ],
    );
    // Who may do everything may do that.
    let both = policy(Mode::Allowlist, &["GET http://a.example/x/*", "a.example"], &[]);
    table(&both, &[("http POST a.example 80 /z", "by a.example")]);
}

#[test]
fn the_order_of_rules_does_not_matter() {
    for list in [["0.0.0.0/0:5432", "10.0.0.0/8:5432"], ["10.0.0.0/8:5432", "0.0.0.0/0:5432"]] {
        table(
            &policy(Mode::Allowlist, &list, &[]),
            &[("raw 10.1.2.3 5432", "by 10.0.0.0/8:5432"), ("raw 1.1.1.1 5432", "by 0.0.0.0/0:5432")],
        );
    }
    let alias = NetworkPolicy {
        services: vec!["ollama=127.0.0.1:11434".parse().unwrap()],
        ..policy(Mode::Allowlist, &[], &["10.0.0.0/8"])
    };
    table(&alias, &[("raw 10.200.200.1 11434", "denied"), ("connect ollama 11434", "to ollama")]);
}

fn any_name() -> impl Strategy<Value = HostName> {
    "(a|b|c)([.](a|b|c)){0,2}[.]example".prop_map(|text| text.parse().unwrap())
}

fn any_target() -> impl Strategy<Value = String> {
    let ranges = vec!["10.0.0.0/8", "203.0.113.0/24", "0.0.0.0/0", "[2001:db8::]/32", "203.0.113.7"];
    prop_oneof![
        any_name().prop_map(|name| name.to_string()),
        any_name().prop_map(|name| format!("*.{name}")),
        proptest::sample::select(ranges).prop_map(str::to_owned),
    ]
}

prop_compose! {
    fn any_policy()(
        mode in proptest::sample::select([Mode::None, Mode::Allowlist, Mode::Full].as_slice()),
        allow in proptest::collection::vec((any_target(), proptest::option::of(1u16..100)), 0..5),
        deny in proptest::collection::vec(any_target(), 0..3),
        private in proptest::collection::vec(any_name(), 0..2),
        service in any::<bool>(),
    ) -> NetworkPolicy {
        let rule = |(target, port): (String, Option<u16>)| {
            port.map_or(target.clone(), |port| format!("{target}:{port}")).parse().unwrap()
        };
        NetworkPolicy {
            mode,
            allow: allow.into_iter().map(rule).collect(),
            deny: deny.iter().map(|target| target.parse().unwrap()).collect(),
            private: private.iter().map(|name| name.to_string().parse().unwrap()).collect(),
            services: service.then(|| "a=127.0.0.1:80".parse().unwrap()).into_iter().collect(),
            upstream: None,
            bandwidth: None,
        }
    }
}

fn any_address() -> impl Strategy<Value = IpAddr> {
    let known =
        vec!["10.0.0.1", "203.0.113.7", "127.0.0.1", "169.254.169.254", "10.200.200.1", "2001:db8::1", "::1"];
    prop_oneof![any::<IpAddr>(), proptest::sample::select(known).prop_map(|address| address.parse().unwrap())]
}

proptest! {
    #[test]
    fn a_denial_never_widens(
        policy in any_policy(), denied in any_target(), name in any_name(), address in any_address(), port in 1u16..100,
    ) {
        let mut tighter = policy.clone();
        tighter.deny.push(denied.parse().unwrap());
        let port = NonZeroU16::new(port).unwrap();
        for request in [
            Request::Lookup(&name),
            Request::Connect(&name, port),
            Request::Raw(address, port),
            Request::Resolved(&name, port, address),
        ] {
            let (before, after) = (policy.decide(&request), tighter.decide(&request));
            prop_assert!(before.is_allowed() || !after.is_allowed(), "{request:?}: {before:?}, then {after:?}");
        }
    }

    #[test]
    fn nobody_is_led_into_this_machine(
        policy in any_policy(), name in any_name(), address in any_address(), port in 1u16..100,
    ) {
        let port = NonZeroU16::new(port).unwrap();
        for request in [Request::Raw(address, port), Request::Resolved(&name, port, address)] {
            let verdict = policy.decide(&request);
            let is_closed = matches!(Place::of(address), Place::Loopback | Place::LinkLocal | Place::Nowhere);
            prop_assert!(!is_closed || matches!(verdict, Verdict::Refused(_) | Verdict::Service(_)), "{verdict:?}");
        }
    }

    #[test]
    fn who_may_connect_may_look_up(policy in any_policy(), name in any_name(), port in 1u16..100) {
        let port = NonZeroU16::new(port).unwrap();
        let may_connect = policy.decide(&Request::Connect(&name, port)).is_allowed();
        prop_assert!(!may_connect || policy.decide(&Request::Lookup(&name)).is_allowed());
    }

    #[test]
    fn a_policy_is_what_was_kept_of_it(policy in any_policy()) {
        let kept = serde_json::to_string(&policy).unwrap();
        prop_assert_eq!(serde_json::from_str::<NetworkPolicy>(&kept).unwrap(), policy);
    }
}
