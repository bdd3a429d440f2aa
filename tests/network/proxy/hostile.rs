//! Isolation 25, 26 and 35 to 41 at the proxy: nothing is reached that the token does not name, however it is asked for.

use harness::{Agentbox, Internet, callers};
use policy::Wall;

use super::{Proxy, connect, requests, text, token};

/// The check holds for the program as it ships; and for the other build, until the walls are taken away.
#[track_caller]
fn stands(
    caller: harness::Caller,
    walls: &[Wall],
    check: impl Fn(&Internet, Agentbox) -> Result<(), String>,
) {
    let internet = Internet::new();
    check(&internet, internet.agentbox(caller)).unwrap();
    let internet = Internet::new();
    check(&internet, Agentbox::weakened(caller, &[])).unwrap();
    let internet = Internet::new();
    let breach = check(&internet, Agentbox::weakened(caller, walls)).unwrap_err();
    let names: Vec<&str> = walls.iter().map(|wall| wall.name()).collect();
    eprintln!("negative control: {}: {caller:?}: {breach}", names.join(" + "));
}

/// Nobody was connected to, and every answer is a refusal.
fn all_refused(internet: &Internet, answers: &[String]) -> Result<(), String> {
    if let Some(connection) = internet.seen().connections().first() {
        return Err(format!("{} was connected to", connection.to));
    }
    match answers.iter().find(|answer| !answer.contains("HTTP/1.1 403") && !answer.contains("HTTP/1.1 502")) {
        Some(answer) => Err(answer.clone()),
        None => Ok(()),
    }
}

callers!(only_what_the_token_names_is_reached, |caller| {
    stands(caller, &[Wall::Egress], |internet, agentbox| {
        let proxy = Proxy::start(internet, agentbox);
        let field = proxy.field(&["--allow", "allowed.test", "--deny", "other.test"]);
        let get = |host: &str| format!("GET http://{host}/ HTTP/1.1\\r\\nHost: {host}\\r\\n{field}\\r\\n");
        let answers = proxy.talk(&[
            connect("other.test:443", &field),
            connect("allowed.test:22", &field),
            connect("198.51.100.10:443", &field),
            get("other.test"),
            get("allowed.test:8080"),
        ]);
        all_refused(internet, &answers)
    });
});

callers!(no_address_of_ours_is_reached, |caller| {
    stands(caller, &[Wall::EgressAddresses], |internet, agentbox| {
        let proxy = Proxy::start(internet, agentbox);
        let hosts = [
            "loopback.test:9999",
            "own.test:9999",
            "lan.test:9999",
            "private.test:80",
            "metadata.test:80",
            "shared.test:80",
            "mapped.test:80",
            "unspecified.test:9998",
            "alias-private.test:80",
        ];
        let addresses = [
            "127.0.0.1:9999",
            "127.0.0.1:15004",
            "[::1]:9999",
            "[::ffff:127.0.0.1]:9999",
            "192.0.2.1:9999",
            "10.7.0.9:80",
            "169.254.169.254:80",
            "[::ffff:169.254.169.254]:80",
            "100.64.0.9:80",
            "0.0.0.0:9998",
        ];
        let rules = hosts.iter().chain(["192.0.2.0/24:*", "0.0.0.0/0:*"].iter());
        let options: Vec<&str> = rules.flat_map(|rule| ["--allow", rule]).collect();
        let field = proxy.field(&options);
        let words: Vec<String> = hosts.iter().chain(&addresses).map(|place| connect(place, &field)).collect();
        all_refused(internet, &proxy.talk(&words))
    });
});

/// Asks for a tunnel to `HOST` and greets as if it were `NAME` at once, without waiting for the tunnel.
const GREET: &str = r#"
import socket, ssl, sys
for words in sys.argv[2:]:
    host, name = words.split(' ')
    context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    greeting = context.wrap_bio(incoming, outgoing, server_hostname=None if name == '-' else name)
    try: greeting.do_handshake()
    except ssl.SSLWantReadError: pass
    talk = socket.create_connection(('127.0.0.1', 15004), 3)
    ask = f'CONNECT {host}:443 HTTP/1.1\r\nProxy-Authorization: Bearer {sys.argv[1]}\r\n\r\n'
    talk.sendall(ask.encode() + outgoing.read())
    got = b''
    try:
        while b'\r\n\r\n' not in got or got.endswith(b'\r\n\r\n'):
            more = talk.recv(1)
            if not more: break
            got += more
        print('greeted' if got[-1:] == b'\x16' else 'closed')
    except OSError as error: print(type(error).__name__)
"#;

fn greet(proxy: &Proxy<'_>, greetings: &[&str]) -> Vec<String> {
    let url = proxy.url(&["--allow", "allowed.test"]);
    let finished = proxy.client(&[], &[&["/usr/bin/python3", "-c", GREET, token(&url)], greetings].concat());
    finished.assert_success();
    finished.stdout().lines().map(str::to_owned).collect()
}

callers!(a_tunnel_is_for_the_host_that_it_was_asked_for, |caller| {
    stands(caller, &[Wall::EgressNames], |internet, agentbox| {
        let proxy = Proxy::start(internet, agentbox);
        let field = proxy.field(&["--allow", "allowed.test", "--allow", "allowed.test:8080"]);
        let other = r"GET /secret HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n";
        proxy.talk(&[
            format!("{}|{other}", connect("allowed.test:80", &field)),
            format!("{}{other}", connect("allowed.test:8080", &field)),
        ]);
        let answers = greet(&proxy, &["allowed.test other.test", "allowed.test -"]);
        if let Some(connection) = internet.seen().connections().iter().find(|c| !c.first.is_empty()) {
            return Err(format!("{} heard of {:?} {:?}", connection.to, connection.sni, connection.requests));
        }
        if answers != ["ConnectionResetError"; 2] {
            return Err(format!("{answers:?}"));
        }
        let reasons: Vec<_> = proxy.records("closed").iter().map(|record| record["reason"].clone()).collect();
        assert_eq!(reasons, ["host-differs", "host-differs", "server-name-differs", "server-name-missing"]);
        assert_eq!(greet(&proxy, &["allowed.test allowed.test"]), ["greeted"]);
        Ok(())
    });
});

callers!(each_request_is_decided_on_by_itself, |caller| {
    // A name that is not allowed leads nowhere either.
    stands(caller, &[Wall::Egress, Wall::EgressAddresses], |internet, agentbox| {
        let proxy = Proxy::start(internet, agentbox);
        let field = proxy.field(&["--allow", "allowed.test"]);
        let get = |host: &str, path: &str, field: &str| {
            format!("GET http://{host}/{path} HTTP/1.1\\r\\nHost: {host}\\r\\n{field}\\r\\n")
        };
        let first = get("allowed.test", "first", &field);
        let answers = proxy.talk(&[
            format!("{first}|{}", get("other.test", "secret", &field)),
            format!("{first}{}", get("other.test", "secret", &field)),
            // Without a token, and as if the proxy were the server.
            format!("{first}|{}", get("allowed.test", "secret", "")),
            format!("{first}|GET /secret HTTP/1.1\\r\\nHost: allowed.test\\r\\n{field}\\r\\n"),
            format!("{first}|{}", connect("other.test:443", &field)),
            format!(
                "{first}|GET http://allowed.test/secret HTTP/1.1\\r\\nHost: other.test\\r\\n{field}\\r\\n"
            ),
        ]);
        let seen = requests(internet);
        if let Some(request) = seen.iter().find(|request| request.line.contains("secret")) {
            return Err(format!("{} for {:?} arrived", request.line, request.host));
        }
        assert_eq!(seen.len(), 6, "{seen:?}");
        for (answer, status) in answers.iter().zip(["403", "403", "407", "400", "400", "400"]) {
            let second = format!("HTTP/1.1 {status}");
            assert!(answer.contains("HTTP/1.1 200") && answer.contains(&second), "{status}: {answer}");
        }
        Ok(())
    });
});

callers!(what_is_for_the_proxy_does_not_go_on, |caller| {
    let internet = Internet::new();
    let proxy = Proxy::start(&internet, internet.agentbox(caller));
    let field = proxy.field(&["--allow", "allowed.test"]);
    let more = r"Proxy-Connection: keep-alive\r\nConnection: close, x-mine\r\nX-Mine: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nX-Stays: 1\r\n";
    let answers = proxy.talk(&[format!(
        "GET http://allowed.test/path?query HTTP/1.1\\r\\nHost: allowed.test\\r\\n{field}{more}\\r\\n"
    )]);
    assert!(answers[0].contains("HTTP/1.1 200"), "{answers:?}");
    let requests = requests(&internet);
    assert_eq!(requests[0].line, "GET /path?query HTTP/1.1");
    let names: Vec<&str> = requests[0].headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Host", "X-Stays", "Connection"]);
    let seen = internet.seen();
    assert!(!String::from_utf8_lossy(&seen.connections()[0].first).contains("eyJ"), "the token went on");
});

callers!(what_has_two_readings_is_refused_before_anything_is_decided, |caller| {
    let internet = Internet::new();
    let proxy = Proxy::start(&internet, internet.agentbox(caller));
    let field = proxy.field(&["--allow", "allowed.test"]);
    let authorities = [
        r"allowed.test\x00:443",
        r"allowed.test:443\r\nX: y",
        "allowed.test%00:443",
        "user@allowed.test:443",
        r"other.test\\allowed.test:443",
        "ａllowed.test:443",
        "[fe80::1%25eth0]:443",
        "allowed.test:+443",
        "allowed.test",
    ];
    let mut words: Vec<String> =
        authorities.map(|place| format!("CONNECT {place} HTTP/1.1\\r\\n{field}\\r\\n")).to_vec();
    let post = format!("POST http://allowed.test/ HTTP/1.1\\r\\nHost: allowed.test\\r\\n{field}");
    words.push(format!("{post}Content-Length: 5\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n"));
    words.push(format!("{post}Content-Length: 5\\r\\nContent-Length: 6\\r\\n\\r\\nhello"));
    words.push(format!("{post}Upgrade: h2c\\r\\nConnection: upgrade\\r\\n\\r\\n"));
    words.push(format!("{}Transfer-Encoding: chunked\\r\\n\\r\\n", post.replace("HTTP/1.1", "HTTP/1.0")));
    words.push(post.replace("\\r\\n", "\\n") + "\\n");
    // What is no letter of one byte cannot be said by the one who speaks here; its bytes can.
    let words: Vec<String> = words.iter().map(|words| words.replace('ａ', r"\xef\xbd\x81")).collect();
    for (answer, said) in proxy.talk(&words).iter().zip(&words) {
        assert!(answer.contains("HTTP/1.1 400") && answer.contains("malformed-request"), "{said}: {answer}");
    }
    assert!(internet.seen().is_nothing());
});

/// Keeps many connections that never say all, and fetches meanwhile.
const SLOW: &str = r#"
import socket, subprocess, sys, time
slow = [socket.create_connection(('127.0.0.1', 15004), 3) for _ in range(800)]
for talk in slow: talk.sendall(b'CONNECT allowed.test:443 HTTP/1.1\r\nX: ')
start = time.monotonic()
for _ in range(5):
    for talk in slow: talk.sendall(b'x')
    subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(time.monotonic() - start)
"#;

callers!(those_who_never_say_all_do_not_stand_in_the_way, |caller| {
    let internet = Internet::new();
    let proxy = Proxy::start(&internet, internet.agentbox(caller));
    let url = proxy.url(&["--allow", "allowed.test"]);
    let ca = text(&internet.ca());
    let curl = ["curl", "-sS", "--max-time", "5", "--cacert", &ca, "--proxy", &url, "https://allowed.test/"];
    let finished = proxy.client(&[], &[&["/usr/bin/python3", "-c", SLOW][..], &curl].concat());
    finished.assert_success();
    let seconds: f64 = finished.stdout().trim().parse().unwrap();
    assert!(seconds < 5.0, "{seconds}");
});
