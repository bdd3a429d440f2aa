//! The name that was allowed, the name in the TLS greeting and the Host of a request are one, or the connection is closed
//! with the reason on record.

use harness::{Agentbox, Internet, callers};
use policy::Wall;

use crate::inside::control;

/// Greets `HOST` on 443 as if it were `NAME` (none for `-`), in pieces of so many bytes, and prints the first byte that comes
/// back, or what came instead.
const GREET: &str = r#"
import socket, ssl, sys, time
for words in sys.argv[1:]:
    host, name, size = words.split(' ')
    context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    # Some servers overlook a warning before the greeting.
    before = bytes.fromhex('1503010002015a') if name.startswith('!') else b''
    name = name.lstrip('!')
    greeting = context.wrap_bio(incoming, outgoing, server_hostname=None if name == '-' else name)
    try: greeting.do_handshake()
    except ssl.SSLWantReadError: pass
    hello = before + outgoing.read()
    try:
        talk = socket.create_connection((host, 443), 3)
        talk.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(hello), int(size)):
            talk.sendall(hello[at:at + int(size)]); time.sleep(0.005 if int(size) < 1000 else 0)
        got = talk.recv(1)
        print('greeted' if got == b'\x16' else f'got {got}')
    except OSError as error: print(type(error).__name__)
"#;

fn greet(agentbox: Agentbox, greetings: &[&str]) -> Vec<String> {
    let argv = ["python3", "-c", GREET].into_iter().chain(greetings.iter().copied());
    let finished = agentbox.run(argv);
    finished.assert_success();
    finished.stdout().lines().map(str::to_owned).collect()
}

fn no_other_host_is_meant(internet: &Internet, agentbox: Agentbox) -> Result<(), String> {
    let greetings = [
        "allowed.test other.test 9999",
        "allowed.test - 9999",
        "allowed.test other.test 40",
        "allowed.test !other.test 9999",
    ];
    let answers = greet(agentbox, &greetings);
    let seen = internet.seen();
    let strangers: Vec<_> = seen.connections().iter().filter(|c| !c.first.is_empty()).collect();
    match strangers.as_slice() {
        [] if answers == ["ConnectionResetError"; 4] => Ok(()),
        [] => Err(format!("{answers:?}")),
        [stranger, ..] => Err(format!("{} got a greeting for {:?}", stranger.to, stranger.sni)),
    }
}

callers!(a_greeting_for_another_host_is_not_passed_on, |caller| {
    let allow = ["--allow", "allowed.test"];
    let internet = Internet::new();
    no_other_host_is_meant(&internet, internet.agentbox(caller).options(allow)).unwrap();
    let internet = Internet::new();
    let weakened =
        |walls: &[Wall]| Agentbox::weakened(caller, walls).behind(internet.prefix()).options(allow);
    no_other_host_is_meant(&internet, weakened(&[])).unwrap();
    let breach = no_other_host_is_meant(&internet, weakened(&[Wall::EgressNames])).unwrap_err();
    control("egress-names", caller, &breach);
});

callers!(a_greeting_in_pieces_is_read_whole, |caller| {
    let internet = Internet::new();
    let answers = greet(
        internet.agentbox(caller).options(["--allow", "allowed.test", "--allow", "*.wild.test"]),
        &[
            "allowed.test allowed.test 9999",
            "allowed.test ALLOWED.test 9",
            "a.wild.test a.wild.test 100",
            "a.wild.test b.wild.test 100",
        ],
    );
    assert_eq!(answers, ["greeted", "greeted", "greeted", "ConnectionResetError"]);
});

/// Speaks to the host's port and prints all that comes back, a connection a word: HOST, PORT, and what is said, with `|` for
/// a pause. Several speak at once: most of them wait.
pub(crate) const TALK: &str = r#"
import socket, sys, time
from concurrent.futures import ThreadPoolExecutor

def talk(words):
    host, port, text = words.split(' ', 2)
    got = b''
    try:
        talk = socket.create_connection((host, int(port)), 3); talk.settimeout(3)
        first, *parts = text.encode('latin-1').decode('unicode_escape').encode('latin-1').split(b'|')
        talk.sendall(first)
        for part in parts: time.sleep(0.1); talk.sendall(part)
        while more := talk.recv(65536): got += more
        return repr(got.decode('latin-1'))
    except OSError as error: return type(error).__name__ + ' ' + repr(got.decode('latin-1'))

with ThreadPoolExecutor(8) as several: print(*several.map(talk, sys.argv[1:]), sep='\n')
"#;

/// Tells what came back of each.
pub(crate) fn talk(agentbox: Agentbox, words: &[&str]) -> Vec<String> {
    let argv = ["python3", "-c", TALK].into_iter().chain(words.iter().copied());
    let finished = agentbox.run(argv);
    finished.assert_success();
    finished.stdout().lines().map(str::to_owned).collect()
}

fn no_request_is_for_another(internet: &Internet, agentbox: Agentbox) -> Result<(), String> {
    let hello = r"GET /first HTTP/1.1\r\nHost: allowed.test\r\n\r\n";
    let stranger = r"GET /secret HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n";
    let words = [
        // At once, as the second of a connection, and behind another in one go.
        format!("allowed.test 80 {stranger}"),
        format!("allowed.test 80 {hello}|{stranger}"),
        format!("allowed.test 80 {hello}{stranger}"),
        // On another port, letter by letter, and behind empty lines.
        format!("allowed.test 8080 {stranger}"),
        r"allowed.test 8080 GE|T /secret HTTP/1.1\r\nHost: other.test\r\n\r\n".to_owned(),
        format!("allowed.test 8080 \\r\\n\\r\\n{stranger}"),
        r"allowed.test 8080 GET x://other.test/secret HTTP/1.1\r\nHost: other.test\r\n\r\n".to_owned(),
        r"allowed.test 8080 GET secret HTTP/1.1\r\nHost: other.test\r\n\r\n".to_owned(),
        // In a request that can be read in two ways.
        r"allowed.test 80 POST / HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /secret HTTP/1.1\r\nHost: other.test\r\n\r\n".to_owned(),
        r"allowed.test 80 GET http://other.test/secret HTTP/1.1\r\nHost: allowed.test\r\n\r\n".to_owned(),
        r"allowed.test 80 GET /secret HTTP/1.1\r\nHost: allowed.test\r\nHost: other.test\r\n\r\n".to_owned(),
        r"allowed.test 80 GET /secret HTTP/1.1\nHost: other.test\n\n".to_owned(),
        r"allowed.test 80 CONNECT other.test:443 HTTP/1.1\r\nHost: other.test:443\r\n\r\n".to_owned(),
        r"allowed.test 80 PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
    ];
    let words = words.each_ref().map(String::as_str);
    let answers = talk(agentbox, &words);
    let seen = internet.seen();
    let requests = || seen.connections().iter().flat_map(|connection| &connection.requests);
    if let Some(request) =
        requests().find(|r| r.line.contains("secret") || r.host.as_deref() != Some("allowed.test"))
    {
        return Err(format!("{} for {:?} arrived", request.line, request.host));
    }
    let refused = |answer: &&String| {
        answer.contains("HTTP/1.1 400") || answer.contains("HTTP/1.1 403") || answer.starts_with("Connection")
    };
    match answers.iter().find(|answer| !refused(answer)) {
        Some(answer) => Err(format!("answered {answer}")),
        None => Ok(()),
    }
}

callers!(a_request_for_another_host_is_not_passed_on, |caller| {
    let allow = ["--allow", "allowed.test", "--allow", "allowed.test:8080"];
    let internet = Internet::new();
    no_request_is_for_another(&internet, internet.agentbox(caller).options(allow)).unwrap();
    let internet = Internet::new();
    let weakened =
        |walls: &[Wall]| Agentbox::weakened(caller, walls).behind(internet.prefix()).options(allow);
    no_request_is_for_another(&internet, weakened(&[])).unwrap();
    let breach = no_request_is_for_another(&internet, weakened(&[Wall::EgressNames])).unwrap_err();
    control("egress-names", caller, &breach);
});

callers!(rules_about_requests_hold_for_each_of_them, |caller| {
    let internet = Internet::new();
    let get = |path: &str| {
        format!("GET {path} HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: close\\r\\n\\r\\n")
    };
    let words = [
        get("/open/one"),
        get("/open/../secret"),
        get("/open/%2e%2e/secret"),
        get("/secret"),
        get("/open/two").replace("GET", "DELETE"),
        // What is no request is not spoken there at all.
        r"SSH-2.0-x\r\n".to_owned(),
    ];
    let words = words.map(|words| format!("allowed.test 80 {words}"));
    let agentbox = internet.agentbox(caller).options(["--allow", "GET,HEAD http://allowed.test/open/*"]);
    let answers = talk(agentbox, &words.each_ref().map(String::as_str));
    assert!(answers[0].contains("HTTP/1.1 200"), "{answers:?}");
    assert!(answers[1..].iter().all(|answer| !answer.contains("HTTP/1.1 200")), "{answers:?}");
    assert!(answers[3].contains("request-not-allowed"), "{answers:?}");
    let seen = internet.seen();
    let lines: Vec<&str> =
        seen.connections().iter().flat_map(|c| &c.requests).map(|r| r.line.as_str()).collect();
    assert_eq!(lines, ["GET /open/one HTTP/1.1"]);
    let agentbox = internet.agentbox(caller).options(["--allow", "GET http://allowed.test:443/*"]);
    let greeted = greet(agentbox, &["allowed.test allowed.test 9999"]);
    assert_eq!(greeted, ["ConnectionResetError"]);
});
