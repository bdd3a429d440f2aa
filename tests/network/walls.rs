//! Programs that know of no proxy: whatever they send, by whatever protocol, leaves only where it is allowed, and what does
//! not fails at once.

use harness::{Agentbox, Internet, callers};
use policy::Wall;

use crate::inside::{attempt, control};

pub(crate) fn nothing_leaves(internet: &Internet, agentbox: Agentbox) -> Result<(), String> {
    let outcome = attempt(
        agentbox,
        &[
            "tcp 203.0.113.20 7 x",
            "tcp 203.0.113.20 22 x",
            "tcp 203.0.113.20 65000 x",
            "tcp 2001:db8:0:2::10 443 x",
            "udp 203.0.113.20 443 quic",
            "udp 203.0.113.20 123 time",
            "udp 203.0.113.20 5353 names",
            "udp 2001:db8:0:2::10 443 quic",
            "udp 255.255.255.255 67 x",
            "icmp 203.0.113.20",
            "icmp 2001:db8:0:2::10",
            "sctp 203.0.113.20 7",
            "sctp 2001:db8:0:2::10 7",
            // By hand: pings, SCTP, and what no program uses.
            "raw 203.0.113.20 1",
            "raw 203.0.113.20 132",
            "raw 203.0.113.20 253",
        ],
    );
    let seen = internet.seen();
    if !seen.is_nothing() {
        return Err(format!("left: {:?}", seen.packets()));
    }
    if let [success, ..] = outcome.successes().as_slice() {
        return Err(success.clone());
    }
    match outcome.slowest() {
        Some((slowest, seconds)) if seconds > 2.0 => Err(format!("{slowest} took {seconds} s")),
        _ => Ok(()),
    }
}

callers!(nothing_leaves_by_any_protocol, |caller| {
    for options in [&[][..], &["--allow", "allowed.test"], &["--network", "allowlist"]] {
        let internet = Internet::new();
        nothing_leaves(&internet, internet.agentbox(caller).options(options)).unwrap();
        let weakened =
            |walls: &[Wall]| Agentbox::weakened(caller, walls).behind(internet.prefix()).options(options);
        if !options.contains(&"allowed.test") {
            continue;
        }
        nothing_leaves(&internet, weakened(&[])).unwrap();
        let breach = nothing_leaves(&internet, weakened(&[Wall::NetNamespace])).unwrap_err();
        control("net-namespace", caller, &breach);
    }
});

// Whoever connects to the gateway's own sockets gets nothing by it.
callers!(the_gateways_own_sockets_lead_nowhere, |caller| {
    let internet = Internet::new();
    let outcome = attempt(
        internet.agentbox(caller).options(["--allow", "allowed.test", "--full-network"]),
        &[
            "tcp 127.0.0.1 1 GET / HTTP/1.1\r\n\r\n",
            "tcp ::1 1 x",
            // Where they are, and where nobody is: by TCP only questions are answered there.
            "tcp 10.200.200.1 1 x",
            "tcp 100::53 1 x",
            "tcp 127.0.0.1 53 x",
            "udp 127.0.0.1 53 x",
        ],
    );
    assert!(outcome.successes().is_empty(), "{:?}", outcome.successes());
    assert!(internet.seen().is_nothing());
});

// A server inside is reached inside, as on any machine.
callers!(servers_inside_are_reached_inside, |caller| {
    let internet = Internet::new();
    let script = "
import http.server, threading, urllib.request
server = http.server.HTTPServer(('127.0.0.1', 8000), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen('http://127.0.0.1:8000/').status, urllib.request.urlopen('http://localhost:8000/').status)
";
    let finished =
        internet.agentbox(caller).options(["--allow", "allowed.test"]).run(["python3", "-c", script]);
    finished.assert_success();
    assert_eq!(finished.stdout(), "200 200\n");
});

// The end of the supervisor, which is the gateway, is the end of the network and of the sandbox.
callers!(without_its_gateway_nothing_goes_on, |caller| {
    let internet = Internet::new();
    let script = "
import socket, time
talk = socket.create_connection(('raw.test', 7), 5)
talk.sendall(b'one'); print(talk.recv(9), flush=True)
while True:
    time.sleep(0.05); talk.sendall(b'x'); talk.recv(9)
";
    let run = internet.agentbox(caller).options(["--allow", "raw.test:7"]).start(["python3", "-c", script]);
    run.wait_for("one");
    let harness::Processes { supervisor, command, .. } = run.processes();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(supervisor).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    assert_eq!(run.finish().code, 125);
    let connections = internet.seen().connections().to_vec();
    assert!(connections.iter().all(|connection| connection.total.is_some()), "{connections:?}");
    // Whoever talked is gone, and no packet comes from there any more.
    assert!(!std::path::Path::new(&format!("/proc/{command}")).exists());
    let before = internet.seen();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(internet.seen().packets(), before.packets());
});

// Whoever begins and does not go on, or never ends, takes no memory of the gateway's.
callers!(endless_beginnings_are_ended, |caller| {
    let internet = Internet::new();
    let script = "
import socket, time
talk = socket.create_connection(('raw.test', 7), 5)
start = time.monotonic()
try:
    while time.monotonic() - start < 10:
        talk.sendall(b'\\r\\n' * 64); time.sleep(0.05)
    print('endless')
except OSError as error: print('ended')
";
    let finished =
        internet.agentbox(caller).options(["--allow", "raw.test:7"]).run(["python3", "-c", script]);
    assert_eq!(finished.assert_success().stdout(), "ended\n");
    let asked = "
import socket
talk = socket.create_connection(('10.200.200.1', 53), 5)
talk.sendall(b'\\xff\\xff'); print(talk.recv(1))
";
    let finished = internet.agentbox(caller).options(["--allow", "raw.test:7"]).run(["python3", "-c", asked]);
    assert_eq!(finished.assert_success().stdout(), "b''\n");
});
