//! Isolation 35 and 36, as a proxy meets them: what has two readings has none.

use super::*;

fn aim(head: &str) -> Option<Aim> {
    Errand::parse(head.replace('\n', "\r\n").as_bytes()).map(|errand| errand.aim)
}

fn host(text: &str) -> Host {
    Authority::parse(text.as_bytes()).unwrap().host
}

fn port(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap()
}

#[test]
fn errands_are_told_apart() {
    let name = || host("a.test");
    for (head, expected) in [
        ("CONNECT a.test:443 HTTP/1.1\nHost: a.test:443\n\n", Aim::Tunnel(name(), port(443))),
        ("CONNECT A.test.:22 HTTP/1.1\nHost: a.test\n\n", Aim::Tunnel(name(), port(22))),
        ("CONNECT a.test:443 HTTP/1.0\n\n", Aim::Tunnel(name(), port(443))),
        ("CONNECT [2001:db8::1]:443 HTTP/1.1\n\n", Aim::Tunnel(host("[2001:db8::1]"), port(443))),
        ("CONNECT 203.0.113.7:5432 HTTP/1.1\n\n", Aim::Tunnel(host("203.0.113.7"), port(5432))),
        ("GET http://a.test/x HTTP/1.1\nHost: a.test\n\n", Aim::Request(name(), port(80))),
        ("GET http://a.test:80/ HTTP/1.1\nHost: a.test\n\n", Aim::Request(name(), port(80))),
        ("GET http://a.test:8080/ HTTP/1.1\nHost: a.test:8080\n\n", Aim::Request(name(), port(8080))),
        ("GET https://a.test/ HTTP/1.1\nHost: a.test\n\n", Aim::Secure),
        ("GET / HTTP/1.1\nHost: 127.0.0.1:15004\n\n", Aim::Here),
        ("OPTIONS * HTTP/1.1\nHost: a\n\n", Aim::Here),
    ] {
        assert_eq!(aim(head), Some(expected), "{head:?}");
    }
}

#[test]
fn authorities_with_two_readings_are_refused() {
    for authority in [
        "a.test",
        "a.test:",
        "a.test:0",
        "a.test:+443",
        "a.test:0443",
        "a.test:443:443",
        "a.test:65536",
        "a.test%00:443",
        "a.test\0:443",
        "user@a.test:443",
        "a.test:443@evil.test:443",
        "evil.test\\a.test:443",
        "a.test:443/",
        "http://a.test:443",
        "ａ.test:443",
        "a\u{3002}test:443",
        "[fe80::1%eth0]:443",
        "[fe80::1%25eth0]:443",
        "fe80::1:443",
        "0177.0.0.1:443",
        "0x7f000001:443",
        "2130706433:443",
        "127.1:443",
        ":443",
        "/",
        "*",
    ] {
        let head = format!("CONNECT {authority} HTTP/1.1\n\n");
        assert_eq!(aim(&head), None, "{authority:?}");
    }
    assert_eq!(Errand::parse(b"CONNECT a.test:443\r\nX: y HTTP/1.1\r\n\r\n"), None);
    assert_eq!(Errand::parse(b"CONNECT a.test:443\xff HTTP/1.1\r\n\r\n"), None);
}

#[test]
fn heads_with_two_readings_are_refused() {
    let tunnel = "CONNECT a.test:443 HTTP/1.1\n";
    let request = "POST http://a.test/ HTTP/1.1\nHost: a.test\n";
    for head in [
        format!("{tunnel}Host: b.test:443\n\n"),
        format!("{tunnel}Host: a.test:80\n\n"),
        format!("{tunnel}Host: a.test\nHost: a.test\n\n"),
        format!("{tunnel}Content-Length: 5\n\n"),
        format!("{tunnel}Transfer-Encoding: chunked\n\n"),
        format!("{tunnel}Upgrade: h2c\n\n"),
        format!("{tunnel}Proxy-Authorization: Bearer a\nProxy-Authorization: Bearer b\n\n"),
        format!("{tunnel} folded: x\n\n"),
        format!("{tunnel}Name : x\n\n"),
        format!("{request}Content-Length: 5\nTransfer-Encoding: chunked\n\n"),
        format!("{request}Content-Length: 5\nContent-Length: 5\n\n"),
        format!("{request}Connection: host\n\n"),
        format!("{request}Upgrade: h2c\nConnection: upgrade\n\n"),
        "POST http://a.test/ HTTP/1.0\nHost: a.test\nTransfer-Encoding: chunked\n\n".to_owned(),
        "GET http://a.test/ HTTP/1.1\nHost: b.test\n\n".to_owned(),
        "GET http://a.test/ HTTP/1.1\n\n".to_owned(),
        "GET http://user@a.test/ HTTP/1.1\nHost: a.test\n\n".to_owned(),
        "GET ftp://a.test/ HTTP/1.1\nHost: a.test\n\n".to_owned(),
        "GET a.test HTTP/1.1\nHost: a.test\n\n".to_owned(),
        "connect a.test:443 HTTP/1.1\n\n".to_owned(),
        "CONNECT  a.test:443 HTTP/1.1\n\n".to_owned(),
        "CONNECT a.test:443 HTTP/2.0\n\n".to_owned(),
        "PRI * HTTP/2.0\n\n".to_owned(),
    ] {
        assert_eq!(aim(&head), None, "{head:?}");
    }
}
