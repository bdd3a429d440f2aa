//! Heads of requests, good and bad, one table for each rule.

use proptest::prelude::*;

use super::*;
use crate::http::fields::find_end;

const HOST: &str = "Host: a.test\r\n";

/// A head with this first line and these lines behind it.
fn head(line: &str, lines: &str) -> Vec<u8> {
    format!("{line}\r\n{lines}\r\n").into_bytes()
}

fn written(bytes: &[u8]) -> String {
    String::from_utf8(Head::parse(bytes).unwrap().written()).unwrap()
}

#[test]
fn a_request_is_written_anew() {
    let bytes = head(
        "POST /a?b HTTP/1.1",
        "X: 1\r\nhost:  A.TEST.:8080\r\nCONTENT-LENGTH: 007\r\nCookie: c\r\nCookie: d\r\nKeep-Alive: x\r\n",
    );
    assert_eq!(
        written(&bytes),
        "POST /a?b HTTP/1.1\r\nHost: a.test:8080\r\nX: 1\r\nCookie: c\r\nCookie: d\r\nContent-Length: 7\r\n\r\n"
    );
    let bytes = head("GET / HTTP/1.0", "Host: a.test\r\nConnection: keep-alive\r\n");
    assert_eq!(written(&bytes), "GET / HTTP/1.0\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    let bytes = head("PUT / HTTP/1.1", "Host: a.test\r\nTransfer-Encoding: CHUNKED\r\nConnection: close\r\n");
    assert_eq!(
        written(&bytes),
        "PUT / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    );
}

#[test]
fn what_was_asked_is_known() {
    let bytes = head("HEAD /x/%61?y HTTP/1.1", "Host: [::1]:81\r\n");
    let head = Head::parse(&bytes).unwrap();
    assert_eq!(head.method().to_string(), "HEAD");
    assert_eq!(head.target(), "/x/%61?y");
    assert_eq!(head.path().unwrap().to_string(), "/x/a");
    assert_eq!(head.host().to_string(), "[::1]:81");
    assert!(head.asked().is_head && !head.asked().closes);
}

#[test]
fn a_path_with_two_meanings_is_passed_on_where_nobody_minds() {
    for target in ["/a/%2e%2e/b", "/..;/a", "/a%2fb", "/a//b"] {
        let bytes = head(&format!("GET {target} HTTP/1.1"), HOST);
        let head = Head::parse(&bytes).unwrap();
        assert!(head.path().is_err(), "{target}");
        assert_eq!(head.target(), target);
    }
}

#[test]
fn targets_are_told_without_the_host() {
    for (line, target) in [
        ("GET / HTTP/1.1", "/"),
        ("GET //evil.test/ HTTP/1.1", "//evil.test/"),
        ("OPTIONS * HTTP/1.1", "*"),
        ("GET http://a.test/x?y HTTP/1.1", "/x?y"),
        ("GET HTTP://A.TEST./x HTTP/1.1", "/x"),
        ("GET http://a.test HTTP/1.1", "/"),
        ("GET http://a.test?x=/ HTTP/1.1", "/?x=/"),
    ] {
        let bytes = head(line, HOST);
        assert_eq!(Head::parse(&bytes).unwrap().target(), target);
        assert!(written(&bytes).contains(&format!(" {target} HTTP/1.1\r\nHost: a.test\r\n")));
    }
}

#[test]
fn a_first_line_with_two_meanings_is_refused() {
    for line in [
        "",
        "GET",
        "GET /",
        "GET / ",
        "GET  / HTTP/1.1",
        "GET /  HTTP/1.1",
        "GET / HTTP/1.1 ",
        " GET / HTTP/1.1",
        "GET\t/ HTTP/1.1",
        "GET / x HTTP/1.1",
        "GET / HTTP/1.2",
        "GET / HTTP/2.0",
        "GET / HTTP/0.9",
        "GET / HTTP/1.10",
        "GET / HTTP/01.1",
        "GET / http/1.1",
        "GET / XHTTP/1.1",
        "PRI * HTTP/2.0",
        "PRI * HTTP/1.1",
        "get / HTTP/1.1",
        "G@T / HTTP/1.1",
        "GET * HTTP/1.1",
        "GET a HTTP/1.1",
        "GET ?x HTTP/1.1",
        "GET /\u{e9} HTTP/1.1",
        "GET /\u{7f} HTTP/1.1",
        "GET /\0 HTTP/1.1",
        "GET /\x0b HTTP/1.1",
        "CONNECT a.test:80 HTTP/1.1",
        "CONNECT / HTTP/1.1",
        "GET https://a.test/ HTTP/1.1",
        "GET ftp://a.test/ HTTP/1.1",
        "GET http:/a.test/ HTTP/1.1",
        "GET http:///x HTTP/1.1",
        "GET http://evil.test/ HTTP/1.1",
        "GET http://a.test:81/ HTTP/1.1",
        "GET http://a.test@evil.test/ HTTP/1.1",
        "GET http://evil.test@a.test/ HTTP/1.1",
        "GET http://evil.test\\.a.test/ HTTP/1.1",
        "GET http://a.test#.evil.test/ HTTP/1.1",
    ] {
        assert!(Head::parse(&head(line, HOST)).is_err(), "{line:?}");
    }
}

#[test]
fn there_is_one_host() {
    for lines in [
        "",
        "X: y\r\n",
        "Host:\r\n",
        "Host: a.test\r\nHost: a.test\r\n",
        "Host: a.test\r\nhost: evil.test\r\n",
        "Host: a.test, evil.test\r\n",
        "Host: evil@a.test\r\n",
        "Host: a.test:+443\r\n",
        "Host: a.test\r\nHost_: x\r\nConnection: host\r\n",
    ] {
        for line in ["GET / HTTP/1.1", "GET / HTTP/1.0"] {
            assert!(Head::parse(&head(line, lines)).is_err(), "{line} {lines:?}");
        }
    }
}

#[test]
fn the_old_version_has_no_chunks() {
    let lines = format!("{HOST}Transfer-Encoding: chunked\r\n");
    assert!(Head::parse(&head("POST / HTTP/1.1", &lines)).is_ok());
    assert!(Head::parse(&head("POST / HTTP/1.0", &lines)).is_err());
}

#[test]
fn only_a_body_can_be_expected_to_wait() {
    for (value, is_good) in
        [("100-continue", true), ("100-Continue", true), ("x, 100-continue", false), ("", false)]
    {
        let lines = format!("{HOST}Expect: {value}\r\nContent-Length: 1\r\n");
        assert_eq!(Head::parse(&head("POST / HTTP/1.1", &lines)).is_ok(), is_good, "{value}");
    }
    let twice = format!("{HOST}Expect: 100-continue\r\nExpect: 100-continue\r\n");
    assert!(Head::parse(&head("POST / HTTP/1.1", &twice)).is_err());
}

#[test]
fn only_a_websocket_can_be_spoken_next() {
    let bytes = head(
        "GET /ws HTTP/1.1",
        "Host: a.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: x\r\n",
    );
    assert_eq!(Head::parse(&bytes).unwrap().asked().upgrade, Upgrade::WebSocket);
    assert_eq!(
        written(&bytes),
        "GET /ws HTTP/1.1\r\nHost: a.test\r\nSec-WebSocket-Key: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    );
    for (line, lines) in [
        ("GET / HTTP/1.1", "Connection: Upgrade\r\nUpgrade: h2c\r\n"),
        ("GET / HTTP/1.1", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n"),
        ("GET / HTTP/1.1", "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n"),
        ("GET / HTTP/1.1", "Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: websocket\r\n"),
        ("GET / HTTP/1.1", "Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n"),
        ("GET / HTTP/1.1", "Connection: Upgrade\r\nUpgrade:\r\n"),
        ("GET / HTTP/1.1", "Upgrade: websocket\r\n"),
        ("GET / HTTP/1.1", "Connection: close\r\nUpgrade: websocket\r\n"),
        ("GET / HTTP/1.0", "Connection: Upgrade\r\nUpgrade: websocket\r\n"),
        ("POST / HTTP/1.1", "Connection: Upgrade\r\nUpgrade: websocket\r\n"),
        ("GET / HTTP/1.1", "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n"),
        ("GET / HTTP/1.1", "Connection: Upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n"),
    ] {
        assert!(Head::parse(&head(line, &format!("{HOST}{lines}"))).is_err(), "{line} {lines:?}");
    }
    // Without a field that says what else, it is nothing.
    let bytes = head("GET / HTTP/1.1", &format!("{HOST}Connection: Upgrade\r\n"));
    assert_eq!(written(&bytes), "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
}

/// Lines that decide something, and others, with a byte of trouble here and there.
fn any_head() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("Host: a.test\r\n"),
        Just("host:b.test:81\r\n"),
        Just("Content-Length: 5\r\n"),
        Just("Content-Length: 00\r\n"),
        Just("Transfer-Encoding: chunked\r\n"),
        Just("Connection: close, x-a\r\n"),
        Just("Connection: Upgrade\r\n"),
        Just("Upgrade: websocket\r\n"),
        Just("Expect: 100-continue\r\n"),
        Just("X-A: \tb\r\n"),
        Just("TE: trailers\r\n"),
        Just("x:y\r\n"),
    ];
    let first = "(GET|POST|HEAD|OPTIONS) (/[a-z%?]{0,5}|\\*|http://a.test/?) HTTP/1\\.[01]\r\n";
    let lines = proptest::collection::vec(line, 0..6);
    let trouble = proptest::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>()));
    (first, lines, trouble).prop_map(|(first, lines, trouble)| {
        let mut bytes = format!("{first}Host: a.test\r\n{}\r\n", lines.concat()).into_bytes();
        if let Some((at, byte)) = trouble {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    })
}

proptest! {
    #[test]
    fn what_goes_on_means_the_same(bytes in any_head()) {
        if let Ok(head) = Head::parse(&bytes) {
            let written = head.written();
            prop_assert_eq!(find_end(&written, 0), Ok(Some(written.len())));
            let again = Head::parse(&written).unwrap();
            prop_assert_eq!(again.method(), head.method());
            prop_assert_eq!(again.target(), head.target());
            prop_assert_eq!(again.host(), head.host());
            prop_assert_eq!(again.version, head.version);
            prop_assert_eq!(again.framing, head.framing);
            prop_assert_eq!(again.upgrade, head.upgrade);
            prop_assert_eq!(again.asked().closes && again.upgrade == Upgrade::No, head.asked().closes && head.upgrade == Upgrade::No);
            // To write it again changes nothing.
            prop_assert_eq!(again.written(), written);
        }
    }

    #[test]
    fn bytes_are_read_in_bounds(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Head::parse(&bytes);
    }
}
