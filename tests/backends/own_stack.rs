//! With strict isolation gVisor's kernel speaks TCP itself, over a cable into a namespace in which our rules and the
//! gateway's sockets are. Seen from the host: its connections are not in any table of the host kernel's where it stands, and
//! what is not allowed does not leave.

use std::fs;
use std::process::Command;

use harness::{Agentbox, Caller, HostProcess, Internet, Running, Subtree, callers, host_processes, is_root};
use policy::{Backend, Wall};

use crate::{has_gvisor, with};

/// Whoever can have strict isolation here: root, and who has ids and limits of their own. Whoever has one id is refused.
struct Place {
    caller: Caller,
    internet: Internet,
    subtree: Option<Subtree>,
}

impl Place {
    fn of(caller: Caller) -> Option<Self> {
        if !has_gvisor() || !is_root("make network namespaces and hand cgroups over") {
            return None;
        }
        let is_handed_over = caller != Caller::Root && std::path::Path::new("/sys/fs/cgroup/memory").is_dir();
        let subtree = is_handed_over.then(|| Subtree::hand_over(caller));
        Some(Self { caller, internet: Internet::new(), subtree })
    }

    fn strict(&self, agentbox: Agentbox) -> Agentbox {
        let inner = self.subtree.as_ref().map(Subtree::prefix).unwrap_or_default();
        let words = inner.into_iter().chain(self.internet.prefix());
        agentbox.behind(words).options(["--backend", "gvisor", "--isolation", "strict", "--report"])
    }

    fn shipped(&self) -> Agentbox {
        self.strict(Agentbox::shipped(self.caller))
    }
}

/// Says what is heard from a host, for as long as there is input.
const TALK: &str = "
import socket, sys
talk = socket.create_connection(('raw.test', 7), 5)
for line in sys.stdin: talk.sendall(line.encode()); print(talk.recv(99).decode(), end='', flush=True)
";

/// The kernel of a run.
fn kernel_of(running: &Running) -> HostProcess {
    let is_below = |process: &HostProcess| {
        let above = |pid: i32| HostProcess::read(pid).map(|process| process.parent);
        std::iter::successors(Some(process.parent), |pid| above(*pid))
            .take_while(|pid| *pid > 1)
            .any(|pid| pid == running.pid())
    };
    let is_kernel =
        |process: &HostProcess| process.arguments.first().is_some_and(|word| word == "runsc-sandbox");
    host_processes().into_iter().find(|process| is_kernel(process) && is_below(process)).expect("its kernel")
}

/// Talks to an allowed host; what of it the host's kernel has in the namespace of the sandbox's.
fn speaks_itself(place: &Place, agentbox: Agentbox) -> Result<(), String> {
    let mut talk = place.strict(agentbox).options(["--allow", "raw.test:7"]).start(["python3", "-c", TALK]);
    talk.write(b"one\n");
    talk.wait_for("one\n");
    let kernel = kernel_of(&talk);
    let connections: Vec<String> = ["net/tcp", "net/tcp6", "net/udp", "net/udp6"]
        .iter()
        .flat_map(|table| {
            let text = fs::read_to_string(kernel.file(table)).unwrap_or_default();
            text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    talk.write(b"two\n");
    talk.wait_for("two\n");
    talk.finish().assert_success();
    match connections.first() {
        Some(first) => Err(format!("the host's kernel has a socket where the sandbox's is: {first}")),
        None => Ok(()),
    }
}

callers!(strict_isolation_with_a_network_has_a_kernel_that_speaks_itself, |caller| {
    let Some(place) = Place::of(caller) else { return };
    if caller == Caller::Single {
        let refused =
            place.shipped().options(["--allow", "raw.test:7"]).run(["true"]).assert_refused().stderr();
        assert!(refused.contains("id-range"), "{refused}");
        return;
    }
    let report = place.shipped().options(["--allow", "raw.test:7"]).run(["true"]).assert_success().stderr();
    let line = report.lines().find(|line| line.contains(" own-kernel ")).unwrap();
    assert!(line.starts_with("given ") && line.contains("it speaks TCP itself"), "{line}");
    speaks_itself(&place, Agentbox::shipped(caller)).unwrap();
    speaks_itself(&place, Agentbox::weakened(caller, &[])).unwrap();
    let breach = speaks_itself(&place, Agentbox::weakened(caller, &[Wall::OwnKernel])).unwrap_err();
    eprintln!("negative control: own-kernel: {caller:?}: {breach}");
    assert!(!place.internet.seen().connections_to("203.0.113.20:7").is_empty());
});

// Where the sandbox's kernel is, there is one end of the cable, without an address of the host's, and nothing listens.
callers!(at_its_end_of_the_cable_there_is_nothing_else, |caller| {
    let Some(place) = Place::of(caller).filter(|_| caller != Caller::Single) else { return };
    let running = place.shipped().options(["--allow", "raw.test:7"]).start(["sh", "-c", "echo runs; cat"]);
    running.wait_for("runs\n");
    let kernel = kernel_of(&running).pid.to_string();
    let there = |argv: &[&str]| {
        let done = Command::new("/usr/bin/nsenter")
            .args(["--net", "--target", &kernel])
            .args(argv)
            .output()
            .unwrap();
        assert!(done.status.success(), "{argv:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    let links = there(&["ip", "-o", "link"]);
    let names: Vec<&str> =
        links.lines().filter_map(|line| line.split([':', '@']).nth(1)).map(str::trim).collect();
    assert_eq!(names, ["lo", "eth0"], "{links}");
    assert!(!there(&["ip", "-o", "-4", "address"]).contains("eth0"), "an address of the host's is left");
    assert_eq!(there(&["ss", "-Hltun"]), "");
    assert_eq!(there(&["nft", "list", "ruleset"]), "");
    running.finish().assert_success();
});

/// Tries to reach what is not allowed, and what is.
const REACH: &str = "
import socket, sys
def tcp(host, port):
    try:
        with socket.create_connection((host, port), 3) as talk: talk.sendall(b'x'); return 'answered' if talk.recv(9) else 'closed'
    except OSError as error: return 'refused'
def udp(host, port):
    talk = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET, socket.SOCK_DGRAM); talk.settimeout(2)
    try: talk.connect((host, port)); talk.send(b'x'); return 'answered' if talk.recv(9) else 'closed'
    except TimeoutError: return 'nobody said that it was refused'
    except OSError as error: return 'refused'
def icmp(host):
    new = ':' in host
    try:
        talk = socket.socket(socket.AF_INET6 if new else socket.AF_INET, socket.SOCK_DGRAM, 58 if new else 1); talk.settimeout(2)
        talk.sendto(bytes([128 if new else 8, 0, 0, 0, 0, 7, 0, 1]) + b'secret', (host, 0)); return 'answered' if talk.recv(99) else 'closed'
    except TimeoutError: return 'nobody said that it was refused'
    except OSError as error: return 'refused'
for host in ['other.test', '203.0.113.20', '10.7.0.9', '169.254.169.254', '192.0.2.1', '10.200.200.1', '2001:db8:0:2::10', '100::53']:
    print(host, tcp(host, 9999 if host == '192.0.2.1' else 80))
for host, port in [('203.0.113.20', 443), ('203.0.113.20', 123), ('2001:db8:0:2::10', 443), ('192.0.2.1', 9999)]:
    print(host, port, udp(host, port))
for host in ['203.0.113.20', '2001:db8:0:2::10']:
    print(host, 'echo', icmp(host))
print('raw.test', tcp('raw.test', 7))
";

fn nothing_else_leaves(place: &Place, agentbox: Agentbox) -> Result<(), String> {
    let finished = place.strict(agentbox).options(["--allow", "raw.test:7"]).run(["python3", "-c", REACH]);
    let (said, seen) = (finished.assert_success().stdout(), place.internet.seen());
    let reached = said.lines().filter(|line| line.ends_with(" answered")).collect::<Vec<_>>();
    if reached != ["raw.test answered"] {
        return Err(format!("reached: {reached:?}"));
    }
    if let Some(silent) = said.lines().find(|line| line.contains("nobody said")) {
        return Err(silent.to_owned());
    }
    if let [refused, ..] = seen.connections_to("203.0.113.20:80").as_slice() {
        return Err(format!("left: {refused:?}"));
    }
    let others = |to: &str| to != "203.0.113.20" && to != "192.0.2.53";
    match seen.packets().iter().find(|packets| others(&packets.to)) {
        Some(packets) => Err(format!("left: {packets:?}")),
        None if seen.datagrams().is_empty() => Ok(()),
        None => Err(format!("left: {:?}", seen.datagrams())),
    }
}

callers!(what_is_not_allowed_does_not_leave_by_the_cable, |caller| {
    let Some(place) = Place::of(caller).filter(|_| caller != Caller::Single) else { return };
    nothing_else_leaves(&place, Agentbox::shipped(caller)).unwrap();
    nothing_else_leaves(&place, Agentbox::weakened(caller, &[])).unwrap();
    let walls = [Wall::NetNamespace];
    let breach = nothing_else_leaves(&place, Agentbox::weakened(caller, &walls)).unwrap_err();
    eprintln!("negative control: net-namespace: {caller:?}: {breach}");
});

// runsc takes the address off its end at each start; each start has one. What is published is reached inside, and a service
// of the host's is where it always is.
callers!(each_start_has_its_address_and_ports_lead_inside, |caller| {
    let Some(place) = Place::of(caller).filter(|_| caller == Caller::Root) else { return };
    let prefix = place.internet.prefix();
    let agentbox = |words: &[&str]| {
        let done = Agentbox::shipped(caller).behind(&prefix).start_words(words).finish();
        done.assert_success().stdout().trim().to_owned()
    };
    let options = ["--backend", "gvisor", "--isolation", "strict", "--allow", "raw.test:7"];
    let service = ["--service", "model=127.0.0.1:11434", "--publish", "127.0.0.1:0:8000"];
    let id = agentbox(&[&["create"][..], &options, &service].concat());
    let serve = "cd /usr/share && exec python3 -m http.server 8000 --bind 0.0.0.0";
    for _ in 0..2 {
        let echo = "import socket; talk = socket.create_connection(('raw.test', 7), 5); talk.sendall(b'hello'); print(talk.recv(9).decode())";
        assert_eq!(agentbox(&["exec", &id, "--", "python3", "-c", echo]), "hello");
        let tags = agentbox(&["exec", &id, "--", "curl", "-sS", "http://10.200.200.1:11434/api/tags"]);
        assert!(tags.contains("/api/tags"), "{tags}");
        agentbox(&["exec", "--detach", &id, "--", "sh", "-c", serve]);
        let ports = agentbox(&["port", &id, "ls"]);
        let address =
            ports.split_whitespace().find(|word| word.starts_with("127.0.0.1:")).unwrap().to_owned();
        let url = format!("http://{address}/doc/");
        let done = place.internet.run_in_host([
            "curl",
            "-sS",
            "--retry",
            "20",
            "--retry-connrefused",
            "--retry-all-errors",
            "--retry-delay",
            "1",
            &url,
        ]);
        assert!(done.assert_success().stdout().contains("Directory listing"), "{}", done.stdout());
        agentbox(&["stop", "--time", "1", &id]);
        agentbox(&["start", &id]);
    }
    agentbox(&["rm", "--force", &id]);
});

// Without strict isolation the host's kernel speaks for it, which is said.
callers!(otherwise_the_hosts_kernel_speaks_for_it_and_that_is_said, |caller| {
    if !has_gvisor() {
        return;
    }
    let sandbox = with(caller, Backend::Gvisor).options(["--report", "--allow", "example.com"]);
    let report = sandbox.run(["true"]).assert_success().stderr();
    let line = report.lines().find(|line| line.contains(" own-kernel ")).unwrap();
    assert!(line.starts_with("weaker "), "{line}");
    assert!(report.contains("--isolation strict lets its kernel speak TCP itself"), "{report}");
});
