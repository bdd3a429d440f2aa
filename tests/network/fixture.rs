//! Positive controls of the network that these tests run in: what is sent from its host arrives and is seen, what
//! is not sent is not.

use harness::{Internet, Request, Seen, callers, is_root, together};
use serde_json::{Value, json};

/// Connects, says something, and prints all that comes back.
const TALK: &str = "import socket, sys
talk = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)
talk.sendall(sys.argv[3].encode())
talk.shutdown(socket.SHUT_WR)
while got := talk.recv(65536):
    sys.stdout.buffer.write(got)";

/// Sends a datagram and prints the first that comes back.
const SEND: &str = "import socket, sys
family = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET
talk = socket.socket(family, socket.SOCK_DGRAM)
talk.settimeout(float(sys.argv[4]) if len(sys.argv) > 4 else 5)
talk.sendto(sys.argv[3].encode(), (sys.argv[1], int(sys.argv[2])))
sys.stdout.buffer.write(talk.recv(65536))";

/// Asks the resolver for addresses, and prints the code and whether the number and the name are those asked for.
const ASK: &str = "import socket, struct, sys
name = b''.join(bytes([len(part)]) + part.encode() for part in sys.argv[1].split('.')) + bytes([0, 0, 1, 0, 1])
talk = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
talk.settimeout(0.3)
talk.sendto(struct.pack('!6H', 7, 256, 1, 0, 0, 0) + name, ('192.0.2.53', 53))
try:
    for _ in range(2):
        got = talk.recv(512)
        number, flags, _, count = struct.unpack_from('!4H', got)
        print(flags & 15, number == 7, got[12:12 + len(name)] == name, count)
except TimeoutError:
    print('nothing')";

fn internet() -> Option<Internet> {
    is_root("make network namespaces").then(Internet::new)
}

#[track_caller]
fn python(internet: &Internet, script: &str, words: &[&str]) -> String {
    let argv = ["/usr/bin/python3", "-c", script].into_iter().chain(words.iter().copied());
    internet.run_in_host(argv).assert_success().stdout()
}

#[track_caller]
fn curl(internet: &Internet, words: &[&str]) -> String {
    let argv = ["curl", "--silent", "--show-error", "--max-time", "10"].into_iter();
    let argv = argv.chain(words.iter().copied());
    internet.run_in_host(argv).assert_success().stdout()
}

fn was_asked(seen: &Seen, name: &str, kind: &str, over: &str) -> bool {
    seen.questions().iter().any(|it| it.name == name && it.kind == kind && it.over == over)
}

fn count_packets(seen: &Seen, protocol: &str, to: &str, port: u16) -> u64 {
    let packets = seen.packets().iter();
    let those = packets.filter(|it| it.protocol == protocol && it.to == to && it.port == Some(port));
    those.map(|it| it.count).sum()
}

#[test]
fn names_are_resolved_and_seen() {
    let _turn = together();
    let Some(internet) = internet() else { return };
    let find = |name: &str| {
        let finished = internet.run_in_host(["getent", "-s", "dns", "ahosts", name]);
        (finished.code, finished.stdout())
    };
    let (_, found) = find("allowed.test");
    assert!(found.contains("203.0.113.10 ") && found.contains("2001:db8:0:2::10 "), "{found}");
    assert!(find("a.wild.test").1.contains("203.0.113.10 "));
    assert!(find("alias.test").1.contains("203.0.113.10 "));
    assert!(find("truncate.test").1.contains("203.0.113.10 "));
    assert_eq!(find("nowhere.test").0, 2);
    let seen = internet.seen();
    assert!(was_asked(&seen, "allowed.test", "A", "udp"), "{seen:#?}");
    assert!(was_asked(&seen, "allowed.test", "AAAA", "udp"), "{seen:#?}");
    assert!(was_asked(&seen, "truncate.test", "A", "tcp"), "{seen:#?}");
    assert!(count_packets(&seen, "udp", "192.0.2.53", 53) > 0, "{seen:#?}");
    assert!(!seen.connections_to("192.0.2.53:53").is_empty(), "{seen:#?}");
}

#[test]
fn a_resolver_misbehaves_as_told() {
    let _turn = together();
    if !is_root("make network namespaces") {
        return;
    }
    let mut names = Internet::names();
    names["own.here"] = json!({ "A": ["203.0.113.1", "203.0.113.2"] });
    let internet = Internet::with_names(&names);
    let ask = |name: &str| python(&internet, ASK, &[name]);
    assert_eq!(ask("own.here"), "0 True True 2\nnothing\n");
    assert_eq!(ask("timeout.test"), "nothing\n");
    assert_eq!(ask("servfail.test"), "2 True True 0\nnothing\n");
    assert_eq!(ask("nxdomain.test"), "3 True True 0\nnothing\n");
    assert_eq!(ask("lie.test"), "0 False True 1\n0 True False 1\n");
    let find = || internet.run_in_host(["getent", "-s", "dns", "ahostsv4", "flip.test"]).stdout();
    assert!(find().starts_with("203.0.113.10 "));
    assert!(find().starts_with("10.7.0.9 "));
}

#[test]
fn sites_answer_and_see_requests() {
    let _turn = together();
    let Some(internet) = internet() else { return };
    let said: Value = serde_json::from_str(&curl(&internet, &["-4", "http://allowed.test/where"])).unwrap();
    assert_eq!(said, json!({ "host": "allowed.test", "path": "/where", "server": "203.0.113.10" }));
    assert!(curl(&internet, &["-6", "http://allowed.test/"]).contains("2001:db8:0:2::10"));
    assert_eq!(curl(&internet, &["-4", "http://allowed.test:8080/bytes/100000"]).len(), 100_000);
    let long = "abc".repeat(20_000);
    assert_eq!(curl(&internet, &["http://other.test/", "--data", &long]), long);
    // What must stay out of reach can be reached from the host.
    for place in ["10.7.0.9", "169.254.169.254", "100.64.0.9:8080"] {
        assert!(curl(&internet, &[&format!("http://{place}/")]).contains(&format!("\"host\": \"{place}\"")));
    }
    let again = ["http://other.test/1", "http://other.test/2", "--header", "X-Mine: a b"];
    curl(&internet, &again);
    let seen = internet.seen();
    let sites = seen.connections_to("198.51.100.10:80");
    assert_eq!(sites.len(), 2, "{seen:#?}");
    assert!(sites[0].first.starts_with(b"POST / HTTP/1.1\r\n"));
    assert!(sites[0].total.unwrap().0 > 60_000);
    let lines: Vec<&str> = sites[1].requests.iter().map(|request| request.line.as_str()).collect();
    assert_eq!(lines, ["GET /1 HTTP/1.1", "GET /2 HTTP/1.1"]);
    let has_header = |it: &Request| it.headers.contains(&("X-Mine".to_owned(), "a b".to_owned()));
    assert!(sites[1].requests.iter().all(|it| has_header(it) && it.host.as_deref() == Some("other.test")));
    assert_eq!(seen.connections_to("[2001:db8:0:2::10]:80").len(), 1, "{seen:#?}");
    assert_eq!(seen.connections_to("169.254.169.254:80").len(), 1, "{seen:#?}");
}

#[test]
fn names_behind_tls_are_seen() {
    let _turn = together();
    let Some(internet) = internet() else { return };
    let ca = internet.ca().display().to_string();
    for (name, path) in [("allowed.test", "/a"), ("b.wild.test", "/b")] {
        let said = curl(&internet, &["-4", "--cacert", &ca, &format!("https://{name}{path}")]);
        assert!(said.contains(name) && said.contains(path), "{said}");
    }
    // Whoever does not know the authority goes away, but its greeting was there.
    let refused = internet.run_in_host(["curl", "-4", "--silent", "https://c.wild.test/"]);
    assert_eq!(refused.code, 60);
    let seen = internet.seen();
    let greeted: Vec<_> = seen.connections_to("203.0.113.10:443");
    let names: Vec<_> = greeted.iter().map(|it| it.sni.as_deref().unwrap()).collect();
    assert_eq!(names, ["allowed.test", "b.wild.test", "c.wild.test"], "{seen:#?}");
    assert_eq!(greeted[0].handshake, Some(Ok(())));
    assert_eq!(greeted[0].requests[0].line, "GET /a HTTP/1.1");
    assert_eq!(greeted[0].first[0], 22);
    assert!(matches!(greeted[2].handshake, Some(Err(_))) && greeted[2].requests.is_empty(), "{seen:#?}");
}

#[test]
fn other_protocols_answer() {
    let _turn = together();
    let Some(internet) = internet() else { return };
    let talk = |port: &str, words: &str| python(&internet, TALK, &["203.0.113.20", port, words]);
    assert_eq!(talk("22", "hello"), "SSH-2.0-world_1.0\r\nhello");
    let mail = talk("25", "EHLO me\r\nQUIT\r\n");
    assert!(mail.starts_with("220 ") && mail.contains("\r\n250 ") && mail.ends_with("221 bye\r\n"), "{mail}");
    assert!(talk("3306", "").contains("8.0.0-world"));
    assert_eq!(talk("5432", "hello"), "hello");
    assert_eq!(talk("7", "hello"), "hello");
    assert_eq!(talk("9000", "send 300000\n").len(), 300_000);
    assert_eq!(talk("9000", "sink\nabcdef"), "6\n");
    let seen = internet.seen();
    assert_eq!(seen.connections_to("203.0.113.20:22")[0].first, b"hello");
    assert_eq!(seen.connections_to("203.0.113.20:9000")[0].total, Some((12, 300_000)));
    assert_eq!(seen.connections().len(), 7, "{seen:#?}");
}

#[test]
fn datagrams_are_echoed_and_seen() {
    let _turn = together();
    let Some(internet) = internet() else { return };
    let places = [("203.0.113.20", 443), ("203.0.113.20", 123), ("203.0.113.20", 5353)];
    for (address, port) in places.into_iter().chain([("2001:db8:0:2::10", 443)]) {
        assert_eq!(python(&internet, SEND, &[address, &port.to_string(), "a datagram"]), "a datagram");
    }
    let seen = internet.seen();
    assert_eq!(seen.datagrams().len(), 4, "{seen:#?}");
    assert!(seen.datagrams().iter().all(|it| it.bytes == b"a datagram"));
    assert_eq!(count_packets(&seen, "udp", "203.0.113.20", 443), 1, "{seen:#?}");
    assert_eq!(count_packets(&seen, "udp", "2001:db8:0:2::10", 443), 1, "{seen:#?}");
}

#[test]
fn the_hosts_own_services_answer_the_host() {
    let _turn = together();
    let Some(internet) = internet() else { return };
    let talk = |address: &str, port: &str| python(&internet, TALK, &[address, port, "hello"]);
    for address in ["127.0.0.1", "::1", "192.0.2.1", "10.7.0.1"] {
        assert_eq!(talk(address, "9999"), format!("canary {address}\n"));
    }
    assert_eq!(talk("192.0.2.1", "9998"), "canary 192.0.2.1\n");
    assert!(curl(&internet, &["http://127.0.0.1:11434/api/tags"]).contains("/api/tags"));
    assert_eq!(python(&internet, SEND, &["127.0.0.1", "9999", "hello"]), "hello");
    let seen = internet.seen();
    assert_eq!((seen.connections().len(), seen.datagrams().len()), (6, 1), "{seen:#?}");
    assert_eq!(seen.connections_to("[::1]:9999")[0].first, b"hello");
    assert_eq!(seen.connections_to("127.0.0.1:11434")[0].requests[0].line, "GET /api/tags HTTP/1.1");
    // None of that left the host.
    assert!(seen.packets().is_empty(), "{seen:#?}");
}

#[test]
fn packets_are_counted_where_nobody_listens() {
    let _turn = together();
    let Some(internet) = internet() else { return };
    let refused = internet.run_in_host(["/usr/bin/python3", "-c", TALK, "203.0.113.77", "81", ""]);
    assert!(refused.stderr().contains("ConnectionRefusedError"), "{}", refused.stderr());
    for (address, port) in [("203.0.113.66", "80"), ("192.88.99.1", "7777"), ("2001:db8:9::1", "7777")] {
        let silent = internet.run_in_host(["/usr/bin/python3", "-c", SEND, address, port, "hello", "0.2"]);
        assert_ne!(silent.code, 0, "{address}");
    }
    let seen = internet.seen();
    assert_eq!(count_packets(&seen, "tcp", "203.0.113.77", 81), 1, "{seen:#?}");
    assert_eq!(count_packets(&seen, "udp", "203.0.113.66", 80), 1, "{seen:#?}");
    assert_eq!(count_packets(&seen, "udp", "192.88.99.1", 7777), 1, "{seen:#?}");
    assert_eq!(count_packets(&seen, "udp", "2001:db8:9::1", 7777), 1, "{seen:#?}");
    assert_eq!((seen.connections().len(), seen.datagrams().len()), (0, 0), "{seen:#?}");
}

#[test]
fn a_host_that_is_quiet_is_seen_to_be() {
    let _turn = together();
    let Some(internet) = internet() else { return };
    assert!(internet.seen().is_nothing(), "{:#?}", internet.seen());
    // What neighbours ask each other comes about a second after the cables are plugged in, and does not count.
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert!(internet.seen().is_nothing(), "{:#?}", internet.seen());
}

callers!(a_sandbox_on_this_host, |caller| {
    let Some(internet) = internet() else { return };
    let running = internet.agentbox(caller).start(["sh", "-c", "echo it runs; cat"]);
    running.wait_for("it runs\n");
    let network = |pid: i32| std::fs::read_link(format!("/proc/{pid}/ns/net")).unwrap();
    assert_eq!(network(running.pid()), network(internet.host_pid()));
    assert_ne!(network(running.processes().command), network(internet.host_pid()));
    running.finish().assert_success();
    let seen = internet.seen();
    assert!(seen.is_nothing(), "{seen:#?}");
});
