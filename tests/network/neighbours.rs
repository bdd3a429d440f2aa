//! Two sandboxes of one owner, each with a network: neither is there for the other, by no address, port, name or socket.

use harness::{Agentbox, Internet, callers};
use policy::Wall;

use crate::inside::{attempt, control};

/// Serves on every kind of socket that a neighbour could look for, reaches each of them itself, talks to an allowed host,
/// and says whenever somebody else comes.
const SERVE: &str = r#"
import select, socket, sys
def tcp(family, address):
    own = socket.socket(family, socket.SOCK_STREAM)
    if family == socket.AF_INET6: own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    own.bind(address); own.listen(); return own
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind(('0.0.0.0', 8000))
servers = [tcp(socket.AF_INET, ('0.0.0.0', 8000)), tcp(socket.AF_INET6, ('::', 8000)), tcp(socket.AF_UNIX, '\0agentbox-neighbour')]
for server, address in zip(servers, [('127.0.0.1', 8000), ('::1', 8000), '\0agentbox-neighbour']):
    talk = socket.socket(server.family, socket.SOCK_STREAM); talk.connect(address); server.accept()
try: talk = socket.create_connection(('raw.test', 7), 5); talk.sendall(b'mine'); assert talk.recv(9) == b'mine'
except socket.gaierror: print('serving without a name', flush=True)
else: print('serving', talk.getpeername()[0], flush=True)
while True:
    ready, _, _ = select.select([sys.stdin, udp, *servers], [], [])
    if sys.stdin in ready: break
    for server in ready:
        if server is udp: data, who = udp.recvfrom(99); udp.sendto(b'neighbour', who)
        else: visit, who = server.accept(); visit.sendall(b'neighbour')
        print('reached', server.getsockname(), flush=True)
"#;

/// All that could lead there, those first that do without the wall.
const ATTEMPTS: [&str; 16] = [
    "tcp 127.0.0.1 8000 x",
    "tcp ::1 8000 x",
    "unix agentbox-neighbour",
    "tcp 0.0.0.0 8000 x",
    "tcp 10.200.200.1 8000 x",
    "tcp 192.0.2.1 8000 x",
    "tcp 2001:db8:0:1::1 8000 x",
    "udp 127.0.0.1 8000 x",
    "udp 192.0.2.1 8000 x",
    // The gateway of either, and what the name of the neighbour's leads to there.
    "tcp 127.0.0.1 1 x",
    "tcp 192.0.2.1 1 x",
    "udp 192.0.2.1 1 x",
    "tcp 198.18.0.1 7 x",
    "tcp 198.18.0.1 8000 x",
    // The same address means another name here, once one was asked for.
    "tcp allowed.test 7 x",
    "tcp 198.18.0.1 7 y",
];

/// The address that the first name of a sandbox has, in each of them.
const FIRST: &str = "198.18.0.1";

fn no_path(
    internet: &Internet,
    agentbox: &dyn Fn() -> Agentbox,
    options: &[&str],
    attempts: &[&str],
) -> Result<(), String> {
    // Without the wall there is nobody who knows names, which is not waited for.
    let agentbox = || agentbox().options(["--env", "RES_OPTIONS=timeout:1 attempts:1"]);
    let neighbour = agentbox().options(["--allow", "raw.test:7"]).start(["python3", "-c", SERVE]);
    neighbour.wait_for("serving");
    let before = internet.seen();
    let outcome = attempt(agentbox().options(options), attempts);
    let said = neighbour.stdout();
    let finished = neighbour.finish();
    if let Some(reached) = said.lines().find(|line| line.starts_with("reached")) {
        return Err(format!("the neighbour was {reached}"));
    }
    if !outcome.successes().is_empty() {
        return Err(outcome.successes().join(", "));
    }
    assert_eq!(finished.assert_success().stdout(), format!("serving {FIRST}\n"));
    let raw = |seen: &harness::Seen| seen.connections_to("203.0.113.20:7").len();
    assert_eq!((raw(&before), raw(&internet.seen())), (1, 1));
    Ok(())
}

callers!(no_sandbox_is_there_for_another, |caller| {
    for options in [&["--allow", "allowed.test:*"][..], &["--full-network"]] {
        let internet = Internet::new();
        no_path(&internet, &|| internet.agentbox(caller), options, &ATTEMPTS).unwrap();
    }
    let weakened =
        |internet: &Internet, walls: &[Wall]| Agentbox::weakened(caller, walls).behind(internet.prefix());
    let options = ["--allow", "allowed.test:*"];
    let internet = Internet::new();
    // Nobody answers the others without the wall, for which each would wait.
    let some = &ATTEMPTS[..3];
    no_path(&internet, &|| weakened(&internet, &[]), &options, some).unwrap();
    let internet = Internet::new();
    let open = || weakened(&internet, &[Wall::NetNamespace]);
    control("net-namespace", caller, &no_path(&internet, &open, &options, some).unwrap_err());
});
