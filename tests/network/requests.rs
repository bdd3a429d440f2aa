//! Requests by plain HTTP that can be read in more than one way: each is answered with an error and closed, and the server
//! hears nothing of it.

use harness::{Agentbox, Caller, Internet, callers};
use policy::Wall;

use crate::inside::control;
use crate::speech::talk;

/// Hosts that some read as the one that is allowed, and others as another or as none. As they are written in Python.
const AUTHORITIES: [&str; 20] = [
    r"allowed.test\x00",
    r"allowed.test\x00.other.test",
    r"allowed.test%00.other.test",
    r"allowed.test\r\n other.test",
    r"allowed.test\rX: y",
    r"other.test@allowed.test",
    r"allowed.test@other.test",
    r"allowed.test:80@other.test",
    r"allowed.test\\other.test",
    r"allowed.test\\@other.test",
    // In letters of twice the width, and with a full stop of another script.
    r"\xef\xbd\x81llowed.test",
    r"allowed\xe3\x80\x82test",
    r"allowed.test%25eth0",
    r"[fe80::1%25eth0]",
    r"allowed.test:+80",
    r"allowed.test:080",
    r"allowed.test:",
    r"allowed.test:80:80",
    r"allowed.test, other.test",
    r"allowed.test#.other.test",
];

/// Requests whose end is in one place for some and in another for others, or that would be followed by another protocol.
/// Each is what stands behind `METHOD / `.
const REQUESTS: [(&str, &str); 20] = [
    ("POST", r"HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("POST", r"HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n"),
    ("POST", r"HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nsecret"),
    ("POST", r"HTTP/1.1\r\nContent-Length: 6\r\ncontent-length: 6\r\n\r\nsecret"),
    ("POST", r"HTTP/1.1\r\nContent-Length: 6, 6\r\n\r\nsecret"),
    ("POST", r"HTTP/1.1\r\nContent-Length: +6\r\n\r\nsecret"),
    ("POST", r"HTTP/1.1\r\nContent-Length : 6\r\n\r\nsecret"),
    ("POST", r"HTTP/1.1\r\nContent-Length: 6\nX: y\r\n\r\nsecret"),
    ("GET", r"HTTP/1.1\nX: y\n\n"),
    ("GET", r"HTTP/1.1\r\nX: y\r\n\n"),
    ("POST", r"HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("POST", r"HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    ("POST", r"HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
    ("POST", r"HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("GET", r"HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET /secret HTTP/1.1\r\n\r\n"),
    ("GET", r"HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n"),
    ("GET", r"HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ("GET", r"HTTP/2.0\r\n\r\n"),
    ("GET", r"HTTP/1.1\r\nConnection: Host\r\n\r\n"),
    ("GET", r"HTTP/1.1\r\n Host: other.test\r\n\r\n"),
];

/// Speaks all of it to the allowed host, and is told each time what is wrong with it.
fn all_are_refused(internet: &Internet, agentbox: Agentbox, requests: &[String]) -> Result<(), String> {
    let words: Vec<String> = requests.iter().map(|request| format!("allowed.test 80 {request}")).collect();
    let answers = talk(agentbox, &words.iter().map(String::as_str).collect::<Vec<_>>());
    let seen = internet.seen();
    let heard = seen.connections().iter().find(|connection| !connection.first.is_empty());
    if let Some(heard) = heard {
        return Err(format!("the server heard {:?}", String::from_utf8_lossy(&heard.first)));
    }
    let is_refusal = |answer: &str| {
        answer.contains("HTTP/1.1 400") && answer.contains("malformed-request") && answer.contains("close")
    };
    assert_eq!(answers.len(), requests.len());
    match requests.iter().zip(&answers).find(|(_, answer)| !is_refusal(answer)) {
        Some((request, answer)) => Err(format!("{request} was answered {answer}")),
        None => Ok(()),
    }
}

fn stands(caller: Caller, requests: &[String]) {
    let allow = ["--allow", "allowed.test"];
    let internet = Internet::new();
    all_are_refused(&internet, internet.agentbox(caller).options(allow), requests).unwrap();
    let weakened =
        |walls: &[Wall]| Agentbox::weakened(caller, walls).behind(internet.prefix()).options(allow);
    // One of them is enough, of those after which the server closes.
    let some = &requests[..1];
    all_are_refused(&internet, weakened(&[]), some).unwrap();
    let breach = all_are_refused(&internet, weakened(&[Wall::EgressNames]), some).unwrap_err();
    control("egress-names", caller, &breach);
}

callers!(a_host_with_two_readings_is_refused_before_it_is_decided_on, |caller| {
    let requests = AUTHORITIES.iter().flat_map(|authority| {
        [
            format!("GET /secret HTTP/1.1\\r\\nHost: {authority}\\r\\nConnection: close\\r\\n\\r\\n"),
            format!("GET http://{authority}/secret HTTP/1.1\\r\\nHost: allowed.test\\r\\n\\r\\n"),
        ]
    });
    stands(caller, &requests.collect::<Vec<_>>());
});

callers!(a_request_with_two_ends_is_not_passed_on, |caller| {
    let requests = REQUESTS.iter().map(|(method, rest)| {
        let (version, rest) = rest.split_at("HTTP/1.1".len());
        // The line end is the request's own.
        let end = if rest.starts_with("\\n") { "\\n" } else { "\\r\\n" };
        // Not where the connection is to become something else.
        let close = if *method == "POST" { "\\r\\nConnection: close" } else { "" };
        format!("{method} /secret {version}{end}Host: allowed.test{close}{rest}")
    });
    stands(caller, &requests.collect::<Vec<_>>());
});

callers!(a_path_with_two_spellings_is_not_what_a_rule_is_about, |caller| {
    let internet = Internet::new();
    let paths = [
        "/open/%2e%2e/secret",
        "/open/%2E./secret",
        "/open/..;/secret",
        "/open/.;x/../secret",
        "/open/%2f../secret",
        "/open%2f..%2fsecret",
        "/open/..%5csecret",
        "/open//secret",
        "/open/%00/secret",
        "/open/%252e%252e/secret\\t",
        "/secret/../open/x",
    ];
    let words = paths.iter().chain(&["/open/%66ine"]);
    let words = words.map(|path| {
        format!(
            "allowed.test 80 GET {path} HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: close\\r\\n\\r\\n"
        )
    });
    let words: Vec<String> = words.collect();
    let agentbox = internet.agentbox(caller).options(["--allow", "GET http://allowed.test/open/*"]);
    let answers = talk(agentbox, &words.iter().map(String::as_str).collect::<Vec<_>>());
    let (last, refused) = answers.split_last().unwrap();
    assert!(refused.iter().all(|answer| answer.contains("HTTP/1.1 40")), "{answers:?}");
    // What has one meaning in any spelling arrives.
    assert!(last.contains("HTTP/1.1 200"), "{last}");
    let seen = internet.seen();
    let asked: Vec<_> =
        seen.connections().iter().flat_map(|c| &c.requests).map(|r| r.line.as_str()).collect();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(!asked[0].contains("secret"), "{asked:?}");
});

// What is said to a proxy stays with it, and so does what a client says is for the next on the way.
callers!(what_is_for_the_next_on_the_way_does_not_arrive, |caller| {
    let internet = Internet::new();
    let request = "GET /hop HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: close, X-Hop\\r\\nX-Hop: secret\\r\\n\
                   Proxy-Authorization: Basic secret\\r\\nProxy-Connection: keep-alive\\r\\nKeep-Alive: timeout=5\\r\\n\
                   TE: trailers\\r\\nX-End: kept\\r\\n\\r\\n";
    let words = format!("allowed.test 80 {request}");
    let answers = talk(internet.agentbox(caller).options(["--allow", "allowed.test"]), &[&words]);
    assert!(answers[0].contains("HTTP/1.1 200"), "{answers:?}");
    let seen = internet.seen();
    let request = &seen.connections()[0].requests[0];
    let names: Vec<&str> = request.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"X-End"), "{request:?}");
    let hops = ["X-Hop", "Proxy-Authorization", "Proxy-Connection", "Keep-Alive", "TE"];
    assert!(hops.iter().all(|hop| !names.contains(hop)), "{request:?}");
    assert!(request.headers.iter().all(|(_, value)| !value.contains("secret")), "{request:?}");
});
