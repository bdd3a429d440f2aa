//! Heads of responses, good and bad, one table for each rule.

use proptest::prelude::*;

use super::*;
use crate::http::fields::find_end;
use crate::http::head::Head;

fn asked(line: &str, lines: &str) -> Asked {
    let bytes = format!("{line}\r\nHost: a.test\r\n{lines}\r\n").into_bytes();
    Head::parse(&bytes).unwrap().asked()
}

fn get() -> Asked {
    asked("GET / HTTP/1.1", "")
}

fn websocket() -> Asked {
    asked("GET / HTTP/1.1", "Connection: Upgrade\r\nUpgrade: websocket\r\n")
}

fn kind(head: &str, asked: &Asked) -> Result<Kind, Malformed> {
    Answer::parse(head.as_bytes(), asked).map(|answer| answer.kind())
}

#[test]
fn a_response_ends_where_it_says() {
    for (head, body, after) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Some(Framing::Exactly(5)), After::Kept),
        ("HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n", Some(Framing::Exactly(5)), After::Kept),
        ("HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\n", Some(Framing::Exactly(5)), After::Kept),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n",
            Some(Framing::Exactly(5)),
            After::Closed,
        ),
        ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", Some(Framing::Exactly(5)), After::Closed),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Some(Framing::Chunked), After::Kept),
        ("HTTP/1.1 200 OK\r\n\r\n", Some(Framing::UntilEnd), After::Closed),
        ("HTTP/1.1 204 No Content\r\n\r\n", None, After::Kept),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", None, After::Kept),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", None, After::Kept),
        ("HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n", Some(Framing::Exactly(0)), After::Kept),
    ] {
        assert_eq!(kind(head, &get()), Ok(Kind::Final(body, after)), "{head:?}");
    }
    for head in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"] {
        assert_eq!(kind(head, &asked("HEAD / HTTP/1.1", "")), Ok(Kind::Final(None, After::Kept)));
    }
    let last = asked("GET / HTTP/1.1", "Connection: close\r\n");
    assert_eq!(kind("HTTP/1.1 204 x\r\n\r\n", &last), Ok(Kind::Final(None, After::Closed)));
}

#[test]
fn a_response_with_two_meanings_is_refused() {
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 304 x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 204 x\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 204 x\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 100 x\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 103 x\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nConnection: content-length\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 +20 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1\t200 OK\r\n\r\n",
        "HTTP/1.1 200\tOK\r\n\r\n",
        "HTTP/1.1 200 O\x1bK\r\n\r\n",
        "HTTP/1.1 \r\n\r\n",
        "HTTP/1.1\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "http/1.1 200 OK\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "200 OK\r\n\r\n",
    ] {
        assert_eq!(kind(head, &get()), Err(Malformed), "{head:?}");
    }
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(kind(chunked, &asked("GET / HTTP/1.0", "")), Err(Malformed));
}

#[test]
fn only_who_asked_speaks_something_else() {
    let switching = "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n";
    assert_eq!(kind(switching, &websocket()), Ok(Kind::Final(None, After::Switched)));
    assert_eq!(kind(switching, &get()), Err(Malformed));
    for head in [
        "HTTP/1.1 101 x\r\n\r\n",
        "HTTP/1.1 101 x\r\nUpgrade: websocket\r\n\r\n",
        "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        "HTTP/1.0 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n\r\n",
        "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n\r\n",
    ] {
        assert_eq!(kind(head, &websocket()), Err(Malformed), "{head:?}");
    }
    let other = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Upgrade\r\nUpgrade: h2,h2c\r\n\r\n";
    assert_eq!(kind(other, &websocket()), Ok(Kind::Final(Some(Framing::Exactly(0)), After::Kept)));
}

#[test]
fn a_response_is_written_anew() {
    for (head, asked, written) in [
        (
            "HTTP/1.0 200 OK\r\nA: b\r\nKeep-Alive: x\r\nConnection: x-hop\r\nX-Hop: y\r\nContent-Length: 05\r\n\r\n",
            get(),
            "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 5\r\nConnection: close\r\n\r\n",
        ),
        (
            "HTTP/1.1 200\r\nTransfer-Encoding: Chunked\r\nTrailer: x\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
            get(),
            "HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
        ("HTTP/1.1 200 OK\r\n\r\n", get(), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"),
        ("HTTP/1.1 204 x\r\nContent-Length: 0\r\n\r\n", get(), "HTTP/1.1 204 x\r\n\r\n"),
        ("HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n", get(), "HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n"),
        (
            "HTTP/1.1 103 x\r\nLink: y\r\nConnection: close\r\n\r\n",
            get(),
            "HTTP/1.1 103 x\r\nLink: y\r\n\r\n",
        ),
        (
            "HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n",
            asked("HEAD / HTTP/1.1", ""),
            "HTTP/1.1 200 x\r\n\r\n",
        ),
        (
            "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: y\r\n\r\n",
            websocket(),
            "HTTP/1.1 101 x\r\nSec-WebSocket-Accept: y\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        ),
    ] {
        let answer = Answer::parse(head.as_bytes(), &asked).unwrap();
        assert_eq!(String::from_utf8(answer.written()).unwrap(), written, "{head:?}");
    }
}

proptest! {
    #[test]
    fn what_goes_on_means_the_same(
        first in "HTTP/1\\.[01] (101|103|200|204|304|404)( [a-z ]{0,4})?\r\n",
        lines in "((Content-Length: [05]|Transfer-Encoding: chunked|Connection: (close|upgrade)|Upgrade: websocket|a:b)\r\n){0,3}",
        number in 0..4usize,
    ) {
        let asked = [get(), asked("HEAD / HTTP/1.1", ""), asked("GET / HTTP/1.0", ""), websocket()][number].clone();
        let head = format!("{first}{lines}\r\n");
        if let Ok(answer) = Answer::parse(head.as_bytes(), &asked) {
            let written = answer.written();
            prop_assert_eq!(find_end(&written, 0), Ok(Some(written.len())));
            let again = Answer::parse(&written, &asked).unwrap();
            prop_assert_eq!(again.kind(), answer.kind());
            prop_assert_eq!(again.written(), written);
        }
    }

    #[test]
    fn bytes_are_read_in_bounds(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Answer::parse(&bytes, &get());
    }
}
