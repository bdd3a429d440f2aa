//! Where nothing may lead, whoever names it: this machine, private networks, a cloud's metadata, and all other spellings of
//! those. Seen from the servers there, which hear nothing.

use harness::{Agentbox, Internet, callers};
use policy::Wall;

use crate::inside::{attempt, control, get};

/// Allowed names that lead where they may not, and who would answer there.
const NAMES: [&str; 9] = [
    "loopback.test",
    "unspecified.test",
    "own.test",
    "private.test",
    "lan.test",
    "metadata.test",
    "shared.test",
    "mapped.test",
    "alias-private.test",
];

fn leads_nowhere(internet: &Internet, agentbox: Agentbox) -> Result<(), String> {
    let ports = ["80", "9998", "9999", "11434"];
    let options = NAMES.iter().flat_map(|name| ["--allow".to_owned(), format!("{name}:*")]);
    let attempts: Vec<String> = NAMES
        .iter()
        .flat_map(|name| ports.iter().map(move |port| format!("tcp {name} {port} {}", get(name))))
        .collect();
    let attempts: Vec<&str> = attempts.iter().map(String::as_str).collect();
    let outcome = attempt(agentbox.options(options), &attempts);
    let seen = internet.seen();
    match seen.connections() {
        [] if outcome.successes().is_empty() => Ok(()),
        [] => Err(format!("inside: {}", outcome.successes().join(", "))),
        connections => Err(format!("{} was reached", connections[0].to)),
    }
}

callers!(an_allowed_name_does_not_lead_where_nothing_may, |caller| {
    let internet = Internet::new();
    leads_nowhere(&internet, internet.agentbox(caller)).unwrap();
    let weakened =
        |internet: &Internet, walls: &[Wall]| Agentbox::weakened(caller, walls).behind(internet.prefix());
    let internet = Internet::new();
    leads_nowhere(&internet, weakened(&internet, &[])).unwrap();
    let breach = leads_nowhere(&internet, weakened(&internet, &[Wall::EgressAddresses])).unwrap_err();
    control("egress-addresses", caller, &breach);
});

/// Without any name, in every spelling that programs take.
fn no_address_is_reached(internet: &Internet, agentbox: Agentbox) -> Result<(), String> {
    let hosts = [
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "0xa9fea9fe",
        "2852039166",
        "0251.0376.0251.0376",
        "0.0.0.0",
        "::",
        "10.7.0.9",
        "10.7.0.1",
        "192.0.2.1",
        "2001:db8:0:1::1",
        "100.64.0.9",
        "10.200.200.1",
        "198.18.0.1",
        "198.19.255.255",
        "203.0.113.10",
        "2001:db8:0:2::10",
        "::ffff:203.0.113.10",
        "224.0.0.1",
        "255.255.255.255",
        "fe80::1%lo",
        "ff02::1%lo",
    ];
    let attempts: Vec<String> = hosts
        .iter()
        .flat_map(|host| ["80", "9999", "11434"].map(|port| format!("tcp {host} {port} x")))
        .collect();
    let attempts: Vec<&str> = attempts.iter().map(String::as_str).collect();
    let outcome = attempt(agentbox, &attempts);
    let seen = internet.seen();
    if !seen.is_nothing() || !outcome.successes().is_empty() {
        return Err(format!("{:?} {:?}", outcome.successes(), seen.packets().first()));
    }
    match outcome.slowest().unwrap() {
        (slowest, seconds) if seconds > 2.0 => Err(format!("{slowest} took {seconds} s")),
        _ => Ok(()),
    }
}

callers!(no_address_is_reached_that_no_rule_names, |caller| {
    let internet = Internet::new();
    let allow = ["--allow", "allowed.test"];
    no_address_is_reached(&internet, internet.agentbox(caller).options(allow)).unwrap();
    let internet = Internet::new();
    let weakened =
        |walls: &[Wall]| Agentbox::weakened(caller, walls).behind(internet.prefix()).options(allow);
    no_address_is_reached(&internet, weakened(&[])).unwrap();
    let breach = no_address_is_reached(&internet, weakened(&[Wall::Egress])).unwrap_err();
    control("egress", caller, &breach);
});

callers!(the_whole_network_has_no_private_part, |caller| {
    let internet = Internet::new();
    let outcome = attempt(
        internet.agentbox(caller).option("--full-network"),
        &[
            "tcp 203.0.113.20 7 echo",
            "tcp 2001:db8:0:2::10 80 GET /six HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
            "tcp 10.7.0.9 80 x",
            "tcp 10.7.0.1 9999 x",
            "tcp 192.0.2.1 9999 x",
            "tcp 192.0.2.1 9998 x",
            "tcp 2001:db8:0:1::1 9998 x",
            "tcp 169.254.169.254 80 x",
            "tcp 100.64.0.9 80 x",
            "tcp own.test 9999 x",
            "tcp private.test 80 x",
            "tcp loopback.test 9999 x",
        ],
    );
    let reached: Vec<String> = outcome.successes();
    assert_eq!(reached.len(), 2, "{reached:?}");
    assert!(reached.iter().all(|reached| reached.contains("answered")), "{reached:?}");
    let stderr = outcome.finished.stderr();
    assert!(stderr.contains("warning: the whole public network is open"), "{stderr}");
    assert!(stderr.contains("missing   egress "), "{stderr}");
    let seen = internet.seen();
    let mut places: Vec<_> = seen.connections().iter().map(|connection| connection.to.to_string()).collect();
    places.sort();
    assert_eq!(places, ["203.0.113.20:7", "[2001:db8:0:2::10]:80"]);
});

callers!(one_name_may_lead_into_a_private_network, |caller| {
    let internet = Internet::new();
    let request = |name: &str| format!("tcp {name} 80 {}", get(name));
    let options =
        ["--allow-private", "private.test", "--allow-private", "loopback.test", "--allow", "shared.test"];
    let requests = ["private.test", "loopback.test", "shared.test", "alias-private.test"].map(request);
    let outcome =
        attempt(internet.agentbox(caller).options(options), &requests.each_ref().map(String::as_str));
    assert!(outcome.of(&requests[0]).starts_with("answered HTTP/1.1 200"), "{}", outcome.of(&requests[0]));
    assert_eq!(outcome.successes().len(), 1, "{:?}", outcome.successes());
    let stderr = outcome.finished.stderr();
    assert!(stderr.contains("weaker    egress-addresses   private.test, loopback.test may lead"), "{stderr}");
    assert!(stderr.contains("blocked: loopback.test:80 (it leads to this machine)\n"), "{stderr}");
    assert!(
        stderr.contains(
            "shared.test:80 (it leads into a private network); to allow: --allow-private shared.test\n"
        ),
        "{stderr}"
    );
});
