//! How what is sent inside comes to the gateway: all of it, from whatever address and whoever listens inside, and without
//! the kernel's tracking of connections. What stays among those inside is theirs.

use std::process::Command;

use harness::{Internet, Running, callers};

use crate::inside::attempt;

/// Its namespace as the host sees it.
fn in_network_of(running: &Running, argv: &[&str]) -> String {
    let pid = running.processes().command.to_string();
    let done =
        Command::new("/usr/bin/nsenter").args(["--net", "--target", &pid]).args(argv).output().unwrap();
    assert!(done.status.success(), "{argv:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// What the kernel should have understood of the bytes that it was given.
const RULES: &str = "\
table inet agentbox {
	chain out {
		type filter hook output priority filter; policy accept;
		meta l4proto tcp accept
		meta mark 0x00000001 accept
		ip daddr 127.0.0.0/8 accept
		ip6 daddr ::1 accept
		udp dport 53 accept
		reject with icmpx admin-prohibited
	}

	chain in {
		type filter hook prerouting priority mangle; policy accept;
		meta mark 0x00000001 accept
		ip daddr 127.0.0.0/8 accept
		ip6 daddr ::1 accept
		meta nfproto ipv4 tproxy ip to 10.200.200.1:53 accept
		meta nfproto ipv6 tproxy ip6 to [100::53]:53 accept
		tcp flags != syn / syn,ack accept
		reject with icmpx admin-prohibited
	}
}
";

/// Talks to an allowed host for as long as it has input, and asks for a name.
const TALK: &str = "
import socket, sys
talk = socket.create_connection(('raw.test', 7), 5)
for line in sys.stdin:
    talk.sendall(line.encode()); print(talk.recv(99).decode(), end='', flush=True)
    socket.gethostbyname('raw.test'); socket.create_connection(('raw.test', 7), 5).close()
";

callers!(the_kernel_has_these_rules_and_tracks_no_connection, |caller| {
    let internet = Internet::new();
    let mut talk =
        internet.agentbox(caller).options(["--allow", "raw.test:7"]).start(["python3", "-c", TALK]);
    talk.write(b"one\n");
    talk.wait_for("one\n");
    assert_eq!(in_network_of(&talk, &["nft", "list", "ruleset"]), RULES);
    let table = format!("/proc/{}/net/nf_conntrack", talk.processes().command);
    // A kernel without such a table tracks nothing.
    if std::path::Path::new(&table).exists() {
        assert_eq!(std::fs::read_to_string(&table).unwrap(), "");
        // With a rule that asks for it, it would be there.
        let track =
            "add table x; add chain x x { type filter hook output priority 0; }; add rule x x ct state new";
        in_network_of(&talk, &["nft", track]);
        talk.write(b"two\n");
        talk.write(b"three\n");
        talk.wait_for("three\n");
        let tracked = std::fs::read_to_string(&table).unwrap();
        assert!(tracked.contains("dport=7"), "{tracked}");
    }
    talk.finish().assert_success();
});

/// Servers inside where a name leads to, at that address and at every one, of each family. Prints what whoever connects to
/// the name hears, and what who connects to the loopback.
const SERVE: &str = "
import socket
address = socket.gethostbyname('raw.test')
def ask(host):
    try: talk = socket.create_connection((host, 9000), 3); talk.sendall(b'send 4\\n'); return len(talk.makefile('rb').read())
    except OSError as error: return type(error).__name__
def serve(family, place, host):
    server = socket.socket(family, socket.SOCK_STREAM); server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((place, 9000)); server.listen()
    server.settimeout(0.2)
    own = socket.create_connection((host, 9000), 3)
    visit, _ = server.accept()
    visit.sendall(b'here'); heard = own.recv(9).decode()
    name = ask('raw.test')
    six = ask('2001:db8:0:2::10')
    try: server.accept(); heard = 'caught'
    except TimeoutError: pass
    return heard, name, six
print(*serve(socket.AF_INET, '0.0.0.0', '127.0.0.1'))
print(*serve(socket.AF_INET6, '::', '::1'))
server = socket.create_server((address, 9000)); server.settimeout(0.2)
print(ask('raw.test'))
try: server.accept(); print('caught')
except TimeoutError: pass
held = socket.create_connection(('raw.test', 9000), 3)
socket.socket().bind(('127.0.0.1', 9000)); print('bound')
";

// A server inside catches nothing that is for elsewhere, and is reached where it should be.
callers!(no_server_inside_catches_what_is_for_elsewhere, |caller| {
    let internet = Internet::new();
    let options = ["--allow", "raw.test:9000", "--allow", "[2001:db8:0:2::10]/128:9"];
    let finished = internet.agentbox(caller).options(options).run(["python3", "-c", SERVE]);
    let refused = "here 4 ConnectionResetError\n";
    assert_eq!(
        finished.assert_success().stdout(),
        format!("{refused}{refused}4\nbound\n"),
        "{}",
        finished.stderr()
    );
    assert_eq!(internet.seen().connections_to("203.0.113.20:9000").len(), 4);
});

/// Connects and asks from addresses that are not the loopback's: those of names, of the gateway, of nobody. Prints what came.
const FROM: &str = "
import socket, struct, sys
IP_FREEBIND, IPV6_FREEBIND = 15, 78
question = struct.pack('!6H', 7, 256, 1, 0, 0, 0) + b'\\3raw\\4test\\0\\0\\1\\0\\1'
request = b'GET /bytes/300000 HTTP/1.1\\r\\nHost: [2001:db8:0:2::10]\\r\\nConnection: close\\r\\n\\r\\n'
server = socket.create_server(('127.0.0.1', 8000))
def bound(kind, source):
    family = socket.AF_INET6 if ':' in source else socket.AF_INET
    talk = socket.socket(family, kind); talk.settimeout(3)
    if family == socket.AF_INET6: talk.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
    talk.bind((source, 0)); return talk
for source in sys.argv[1:]:
    new = ':' in source
    talk = bound(socket.SOCK_STREAM, source)
    talk.connect(('2001:db8:0:2::10', 80) if new else (socket.gethostbyname('raw.test'), 9000))
    talk.sendall(request if new else b'send 300000\\n'); got = 0
    while more := talk.recv(65536): got += len(more)
    ask = bound(socket.SOCK_DGRAM, source)
    ask.sendto(question, ('2001:db8::99' if new else '192.0.2.99', 53))
    answer, server_address = ask.recvfrom(999)
    own = ''
    if not new:
        own = bound(socket.SOCK_STREAM, source); own.connect(('127.0.0.1', 8000))
        server.accept()[0].sendall(b'here'); own = own.recv(9).decode()
    print(min(got, 300000), socket.inet_ntoa(answer[-4:]), *server_address[:2], own)
";

callers!(whatever_address_it_is_sent_from_it_is_led, |caller| {
    let internet = Internet::new();
    let options = ["--allow", "raw.test:9000", "--allow", "[2001:db8:0:2::10]/128:80"];
    let sources = [
        "127.0.0.1",
        "127.5.5.5",
        "198.18.0.1",
        "198.19.7.7",
        "10.200.200.1",
        "5.5.5.5",
        "::1",
        "2001:db8::7",
    ];
    // gVisor's kernel lets nobody bind an address of IPv6 that is none of the machine's own.
    let new = if harness::is_on(harness::HOST_KERNEL, "no foreign address can be bound") { 2 } else { 1 };
    let argv = ["python3", "-c", FROM].into_iter().chain(sources).take(3 + 6 + new);
    let finished = internet.agentbox(caller).options(options).run(argv);
    let (four, six) = ("300000 198.18.0.1 192.0.2.99 53 here\n", "300000 198.18.0.1 2001:db8::99 53 \n");
    let said = finished.assert_success().stdout();
    assert_eq!(said, four.repeat(6) + &six.repeat(new), "{}", finished.stderr());
});

/// Sends datagrams without being connected, to whom no refusal is told later.
const SEND: &str = "
import socket, sys
for words in sys.argv[1:]:
    host, port = words.split(' ')
    talk = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET, socket.SOCK_DGRAM)
    talk.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    try: print(talk.sendto(b'secret', (host, int(port))))
    except OSError as error: print(error.strerror)
";

callers!(a_datagram_is_refused_where_it_is_sent, |caller| {
    let internet = Internet::new();
    let places = [
        "203.0.113.20 443",
        "203.0.113.20 54",
        "10.200.200.1 1",
        "2001:db8:0:2::10 443",
        "255.255.255.255 67",
    ];
    let argv = ["python3", "-c", SEND].into_iter().chain(places);
    let finished = internet.agentbox(caller).options(["--full-network"]).run(argv);
    assert_eq!(finished.assert_success().stdout(), "Operation not permitted\n".repeat(places.len()));
    assert!(internet.seen().is_nothing(), "{:?}", internet.seen());
});

/// Takes and gives as many bytes as are said, of a few connections at once, and prints how many.
const MOVE: &str = "
import socket, sys
from concurrent.futures import ThreadPoolExecutor
count = int(sys.argv[1])
def move(up):
    talk = socket.create_connection(('raw.test', 9000), 30)
    if not up:
        talk.sendall(b'send %d\\n' % count); got = 0
        while more := talk.recv(1 << 20): got += len(more)
        return got
    talk.sendall(b'sink\\n' + b'x' * count); talk.shutdown(socket.SHUT_WR)
    return int(talk.makefile('rb').read())
sys.stdin.readline()
with ThreadPoolExecutor(4) as several: print(*several.map(move, [True, False] * 2))
";

// Where the queue of those who begin is full, the kernel keeps nothing of a connection until it is answered: what comes then
// is led by itself, not as a part of what it knows.
callers!(much_is_moved_and_nothing_need_be_remembered_of_a_beginning, |caller| {
    let internet = Internet::new();
    let count = 20_000_000;
    let argv = ["python3", "-c", MOVE, &count.to_string()];
    let mut run = internet.agentbox(caller).options(["--allow", "raw.test:9000"]).start(argv);
    in_network_of(&run, &["sh", "-c", "echo 2 >/proc/sys/net/ipv4/tcp_syncookies"]);
    run.write(b"\n");
    let finished = run.finish();
    assert_eq!(finished.assert_success().stdout(), format!("{count} {count} {count} {count}\n"));
});

// A port that was used is used again at once, whoever closed.
callers!(a_port_can_be_used_again_at_once, |caller| {
    let internet = Internet::new();
    let script = "
import socket
for number in range(6):
    talk = socket.socket(); talk.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); talk.settimeout(5)
    talk.bind(('127.0.0.1', 33333)); talk.connect((socket.gethostbyname('raw.test'), 9000))
    if number % 2: talk.sendall(b'send 4\\n'); print(len(talk.makefile('rb').read()), end=' ')
    else: talk.sendall(b'sink\\n' + b'x' * 4); talk.shutdown(socket.SHUT_WR); print(talk.recv(9).strip().decode(), end=' ')
    # The first to close waits, here or there; one that is reset leaves nothing that waits here.
    if number % 3 == 0: talk.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\\1\\0\\0\\0\\0\\0\\0\\0')
    talk.close()
    import time; time.sleep(0.1 if number % 2 else 1.2)
";
    let finished =
        internet.agentbox(caller).options(["--allow", "raw.test:9000"]).run(["python3", "-c", script]);
    assert_eq!(finished.assert_success().stdout(), "4 4 4 4 4 4 ", "{}", finished.stderr());
});

// Nothing on the loopback is the gateway's: every port there is for those inside.
callers!(nothing_of_the_gateway_is_on_the_loopback, |caller| {
    let internet = Internet::new();
    let places =
        ["tcp 127.0.0.1 1 x", "tcp 127.0.0.1 53 x", "tcp ::1 53 x", "udp 127.0.0.1 53 x", "udp ::1 53 x"];
    let outcome = attempt(internet.agentbox(caller).options(["--full-network"]), &places);
    for place in places {
        assert!(outcome.of(place).ends_with("Connection refused"), "{place}: {}", outcome.of(place));
    }
});
