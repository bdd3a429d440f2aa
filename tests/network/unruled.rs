//! A kernel without rules for packets: nothing is led to the gateway, so it listens on the ports that the policy names, and
//! the kernel refuses all others. What may leave is the same; that it is less is reported, or refused where isolation is
//! strict.

use harness::{Agentbox, Caller, Internet, binaries, callers};
use policy::Wall;

use crate::inside::{attempt, control, get};
use crate::walls::nothing_leaves;

/// On the host of this network, and without rules.
fn behind(internet: &Internet, agentbox: Agentbox) -> Agentbox {
    let probe = binaries().probe().display().to_string();
    let without = [&probe, "without", "netfilter", "--"].map(str::to_owned);
    agentbox.behind(internet.prefix().into_iter().chain(without))
}

fn shipped(internet: &Internet, caller: Caller) -> Agentbox {
    behind(internet, Agentbox::shipped(caller))
}

fn weakened(internet: &Internet, caller: Caller, walls: &[Wall]) -> Agentbox {
    behind(internet, Agentbox::weakened(caller, walls))
}

callers!(what_is_named_is_reached_and_it_is_reported, |caller| {
    let internet = Internet::new();
    let (web, model) = (get("allowed.test"), get("model"));
    let reached = [
        format!("tcp allowed.test 80 {web}"),
        format!("twice allowed.test 8080 {web}"),
        format!("tcp model 11434 {model}"),
        format!("tcp 10.200.200.1 11434 {model}"),
        "tcp raw.test 7 words".to_owned(),
        "tcp raw.test 22 words".to_owned(),
        // A range of addresses, for programs that use no name.
        "tcp 203.0.113.20 7 words".to_owned(),
    ];
    let allowed = [
        "--allow",
        "allowed.test",
        "--allow",
        "http://allowed.test:8080/*",
        "--allow",
        "raw.test:7",
        "--allow",
        "raw.test:22",
        "--allow",
        "203.0.113.20/32:7",
        "--service",
        "model=127.0.0.1:11434",
    ];
    let attempts: Vec<&str> = reached.iter().map(String::as_str).collect();
    let outcome = attempt(shipped(&internet, caller).options(allowed), &attempts);
    assert_eq!(outcome.successes().len(), reached.len(), "{:?}", outcome.outcomes);
    assert!(outcome.of("tcp raw.test 22 words").contains("SSH-2.0-world"), "{:?}", outcome.outcomes);
    let said = outcome.finished.stderr();
    let line = said.lines().find(|line| line.starts_with("weaker    egress")).unwrap_or_default();
    assert!(line.contains("only ports 7, 22, 53, 80, 443, 8080, 11434 lead out"), "{said}");
    assert!(said.lines().any(|line| line.starts_with("hint: ") && line.contains("modprobe")), "{said}");

    let ca = format!("{}:/ca.pem", internet.ca().display());
    let words = ["curl", "-sS", "--max-time", "10", "--cacert", "/ca.pem", "https://allowed.test/hello"];
    let finished = shipped(&internet, caller).options(["--allow", "allowed.test", "--mount", &ca]).run(words);
    assert!(finished.assert_success().stdout().contains("/hello"), "{}", finished.stdout());
    assert_eq!(internet.seen().connections_to("203.0.113.10:443").len(), 1);
});

const OPTIONS: [&str; 4] = ["--allow", "allowed.test", "--allow", "raw.test:7"];

/// Only what is named leaves, on the ports that are named.
fn nothing_else_leaves(internet: &Internet, agentbox: Agentbox) -> Result<(), String> {
    let other = format!("tcp 198.51.100.10 80 {}", get("other.test"));
    let outcome = attempt(
        agentbox.options(OPTIONS),
        &[
            "name other.test",
            &other,
            "tcp allowed.test 7 x",
            "tcp allowed.test 8080 x",
            "tcp raw.test 22 x",
            "tcp raw.test 80 x",
            "tcp 10.200.200.1 9999 x",
            "tcp 10.200.200.1 443 x",
            "udp 192.0.2.53 53 x",
            "udp allowed.test 443 quic",
        ],
    );
    if let [success, ..] = outcome.successes().as_slice() {
        return Err(success.clone());
    }
    if !internet.seen().is_nothing() {
        return Err(format!("left: {:?}", internet.seen().packets()));
    }
    match outcome.slowest() {
        Some((slowest, seconds)) if seconds > 2.0 => Err(format!("{slowest} took {seconds} s")),
        _ => Ok(()),
    }
}

callers!(nothing_else_leaves_by_any_protocol, |caller| {
    let internet = Internet::new();
    nothing_leaves(&internet, shipped(&internet, caller).options(OPTIONS)).unwrap();
    nothing_else_leaves(&internet, shipped(&internet, caller)).unwrap();
    nothing_else_leaves(&internet, weakened(&internet, caller, &[])).unwrap();
    let breach = nothing_else_leaves(&internet, weakened(&internet, caller, &[Wall::Egress])).unwrap_err();
    control("egress without rules", caller, &breach);
    let internet = Internet::new();
    let open = weakened(&internet, caller, &[Wall::NetNamespace]).options(OPTIONS);
    let breach = nothing_leaves(&internet, open).unwrap_err();
    control("net-namespace without rules", caller, &breach);
});

/// Nobody comes to the host's loopback by the sandbox's own, on a port that is listened on.
fn loopback_stays_inside(internet: &Internet, agentbox: Agentbox) -> Result<(), String> {
    let places = ["tcp 127.0.0.1 9999 x", "tcp 127.0.0.2 9999 x", "tcp ::1 9999 x", "tcp 0.0.0.0 9999 x"];
    let outcome = attempt(agentbox.options(["--allow", "raw.test:9999"]), &places);
    match (outcome.successes().as_slice(), internet.seen().connections()) {
        ([], []) => Ok(()),
        (successes, connections) => Err(format!("{successes:?}, {} came", connections.len())),
    }
}

callers!(the_gateways_sockets_do_not_lead_to_the_hosts_loopback, |caller| {
    let internet = Internet::new();
    loopback_stays_inside(&internet, shipped(&internet, caller)).unwrap();
    loopback_stays_inside(&internet, weakened(&internet, caller, &[])).unwrap();
    let open = weakened(&internet, caller, &[Wall::Egress, Wall::EgressAddresses]);
    control("egress of loopback", caller, &loopback_stays_inside(&internet, open).unwrap_err());
});

callers!(servers_inside_have_the_other_ports, |caller| {
    let internet = Internet::new();
    let script = "
import socket
def serve(port):
    try: server = socket.create_server(('127.0.0.1', port))
    except OSError as error: return error.errno
    talk = socket.create_connection(('127.0.0.1', port))
    server.accept()[0].sendall(b'here')
    return talk.recv(9)
print(serve(8000), serve(9000))
";
    let agentbox = shipped(&internet, caller).options(["--allow", "raw.test:9000"]);
    let finished = agentbox.run(["python3", "-c", script]);
    assert_eq!(finished.assert_success().stdout(), "b'here' 98\n");
    assert!(finished.stderr().contains("nothing inside can listen on them"), "{}", finished.stderr());
});

callers!(strict_isolation_and_too_many_ports_are_refused, |caller| {
    let internet = Internet::new();
    shipped(&internet, caller).run(["true"]).assert_success();
    let strict = shipped(&internet, caller).options(["--isolation", "strict", "--allow", "allowed.test"]);
    let many: Vec<String> = (1000..1064).map(|port| format!("--allow=raw.test:{port}")).collect();
    let many = shipped(&internet, caller).options(many);
    for (agentbox, error) in [(strict, "strict isolation is not to be had here: "), (many, "66 ports")] {
        let refused = agentbox.run(["echo", "it ran"]);
        refused.assert_refused();
        let said = refused.stderr();
        assert!(said.contains(error) && refused.stdout().is_empty(), "{said}");
        let hint = said.lines().find(|line| line.starts_with("hint: ")).unwrap_or_default();
        // Where other walls are missing as well the first of them is named: as an ordinary user, and with a backend.
        let others = caller != Caller::Root || harness::backend() != policy::Backend::Native;
        assert!(hint.contains("modprobe") || (others && !said.contains("egress")), "{said}");
    }
    assert!(internet.seen().is_nothing());
});

callers!(the_whole_network_has_the_ports_that_are_known, |caller| {
    let internet = Internet::new();
    let (web, other) = (get("other.test"), get("198.51.100.10"));
    let attempts = [
        format!("tcp other.test 80 {web}"),
        format!("tcp 198.51.100.10 80 {other}"),
        "tcp raw.test 7 words".to_owned(),
        "tcp raw.test 22 words".to_owned(),
    ];
    let attempts: Vec<&str> = attempts.iter().map(String::as_str).collect();
    let agentbox = shipped(&internet, caller).options(["--full-network", "--allow", "raw.test:22"]);
    let outcome = attempt(agentbox, &attempts);
    let answers: Vec<bool> = attempts.iter().map(|it| outcome.of(it).starts_with("answered")).collect();
    assert_eq!(answers, [true, true, false, true], "{:?}", outcome.outcomes);
    let said = outcome.finished.stderr();
    let line = said.lines().find(|line| line.starts_with("missing   egress ")).unwrap_or_default();
    assert!(line.contains("only ports 22, 53, 80, 443 lead out"), "{said}");
});

callers!(a_port_that_is_allowed_later_waits_for_the_next_start, |caller| {
    let internet = Internet::new();
    let words = |words: &[&str]| shipped(&internet, caller).start_words(words).finish();
    let created = words(&["create", "--allow", "raw.test:7"]);
    let id = created.assert_success().stdout().trim().to_owned();
    let talk = "import socket, sys
print(socket.create_connection(('raw.test', int(sys.argv[1])), 5).recv(20))";
    let reach = |port: &str| words(&["exec", &id, "--", "python3", "-c", talk, port]);
    let known = words(&["policy", "set", &id, "--allow", "raw.test"]);
    assert_eq!(known.assert_success().stderr(), "");
    let set = words(&["policy", "set", &id, "--allow", "raw.test:22"]);
    let said = set.assert_success().stderr();
    assert!(said.starts_with("warning: only ports 7, 53, 80, 443 lead out"), "{said}");
    assert!(said.contains("22 will be reached once it is started anew"), "{said}");
    assert!(reach("22").stderr().contains("ConnectionRefusedError"));
    assert!(internet.seen().is_nothing());
    words(&["stop", &id, "--time", "0"]).assert_success();
    words(&["start", &id]).assert_success();
    assert!(reach("22").assert_success().stdout().contains("SSH-2.0-world"));
    let record = words(&["audit", &id]).stdout();
    for line in [
        "weaker: egress; only ports 7 53 80 443 lead out",
        "weaker: egress; only ports 22 53 80 443 lead out",
    ] {
        assert!(record.contains(line), "{record}");
    }
    words(&["rm", "--force", &id]).assert_success();
});

callers!(the_doctor_says_what_a_network_lacks, |caller| {
    let internet = Internet::new();
    let finished = shipped(&internet, caller).start_words(&["doctor", "--json"]).finish();
    let found: serde_json::Value = serde_json::from_slice(&finished.stdout).unwrap();
    let probes = found["probes"].as_array().unwrap();
    let probe = probes.iter().find(|probe| probe["name"] == "nft-tproxy").unwrap();
    assert_eq!(probe["state"], "weaker", "{probe}");
    assert!(probe["detail"].as_str().unwrap().contains("only on ports 80, 443 and those that"), "{probe}");
    assert!(probe["fix"].as_str().unwrap().starts_with("sudo modprobe"), "{probe}");
    assert_eq!(finished.code, 0, "no sandbox is kept from starting: {found:#}");
});
