//! What fuzzing sees of HTTP. What goes on must mean the same to the next reader as it did here.

#![expect(clippy::unwrap_used, reason = "what fails here has been found")]

use super::answer::Answer;
use super::authority::{Authority, Host};
use super::body::Chunks;
use super::fields::{LONGEST_HEAD, Malformed, find_end};
use super::head::{Form, Head};
use super::proxied::{Aim, Errand};

/// The most lines of a head that is read again: some that we write come on top.
const MOST_LINES: usize = 120;

/// The most bytes that come on top of a head for lines of our own and the spaces in all others.
const OUR_OWN: usize = 512;

/// Requests that an answer can be to.
const REQUESTS: [&[u8]; 5] = [
    b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    b"HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n",
    b"GET / HTTP/1.0\r\nHost: a.test\r\n\r\n",
];

/// The host and port of a request. What is taken has one spelling, without anything that could end it.
pub fn authority(bytes: &[u8]) {
    let Ok(authority) = Authority::parse(bytes) else { return };
    let shown = authority.to_string();
    assert!(shown.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase()), "{shown:?}");
    assert!(!shown.contains(['@', '/', '\\', '%', '?', '#', ',']), "{shown:?}");
    assert_eq!(Authority::parse(shown.as_bytes()).as_ref(), Ok(&authority));
    assert_eq!(Authority::parse(&bytes.to_ascii_uppercase()).as_ref(), Ok(&authority));
    if let Host::Name(name) = authority.host {
        assert!(name.as_str().parse::<std::net::IpAddr>().is_err(), "{name}");
    }
}

/// Whether the bytes begin with a request that would be taken.
pub(crate) fn is_request(bytes: &[u8]) -> bool {
    head_of(bytes).is_some_and(|head| Head::parse(head).is_ok())
}

/// The head that the bytes begin with. It is found wherever the search for it was interrupted.
fn head_of(bytes: &[u8]) -> Option<&[u8]> {
    let bytes = &bytes[..bytes.len().min(LONGEST_HEAD)];
    let found = find_end(bytes, 0);
    let half = bytes.len() / 2;
    match find_end(&bytes[..half], 0) {
        Ok(None) => assert_eq!(find_end(bytes, half), found),
        early => assert_eq!(early, found),
    }
    let head = bytes.get(..found.ok()??)?;
    (head.split(|byte| *byte == b'\n').count() <= MOST_LINES).then_some(head)
}

/// How many lines have this field, to a reader who takes an underscore for a dash.
fn count(head: &[u8], field: &str) -> usize {
    let lines = head.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b':').next());
    lines.filter(|name| String::from_utf8_lossy(name).replace('_', "-").eq_ignore_ascii_case(field)).count()
}

/// What goes on is one head, with one host and at most one length.
fn check_written(written: &[u8], head: &[u8]) {
    assert_eq!(find_end(written, 0), Ok(Some(written.len())));
    assert!(written.len() <= head.len() + OUR_OWN);
    assert!(count(written, "content-length") + count(written, "transfer-encoding") <= 1);
    assert!(count(written, "upgrade") <= 1 && count(written, "connection") <= 1);
}

/// The head of a request.
pub fn request(bytes: &[u8]) {
    let Some(bytes) = head_of(bytes) else { return };
    let Ok(head) = Head::parse(bytes) else { return };
    let written = head.written();
    check_written(&written, bytes);
    assert_eq!(count(&written, "host"), 1);
    let again = Head::parse(&written).unwrap();
    assert_eq!((again.method(), again.target()), (head.method(), head.target()));
    assert_eq!((again.host(), again.path()), (head.host(), head.path()));
    let (asked, before) = (again.asked(), head.asked());
    assert_eq!((asked.framing, asked.upgrade), (before.framing, before.upgrade));
    assert_eq!((asked.is_head, asked.is_old()), (before.is_head, before.is_old()));
    assert_eq!(again.written(), written);
    if let Ok(path) = head.path() {
        assert_eq!(path.to_string().parse(), Ok(path));
    }
}

/// What is asked of a proxy: the words by which it may be asked. Whom a tunnel is for has one spelling; a request goes on
/// as one to a server, without those words.
pub(crate) fn errand(bytes: &[u8]) -> Option<&[u8]> {
    let bytes = head_of(bytes)?;
    let Errand { authorization, aim } = Errand::parse(bytes)?;
    assert!(count(bytes, "proxy-authorization") >= usize::from(authorization.is_some()));
    match aim {
        Aim::Tunnel(host, port) => {
            assert!(bytes.starts_with(b"CONNECT ") && Head::parse(bytes).is_err());
            let shown = Authority { host: host.clone(), port: Some(port) }.to_string();
            authority(shown.as_bytes());
            let again = format!("CONNECT {shown} HTTP/1.1\r\nHost: {shown}\r\n\r\n");
            let expected = Errand { authorization: None, aim: Aim::Tunnel(host, port) };
            assert_eq!(Errand::parse(again.as_bytes()), Some(expected));
        }
        Aim::Request(host, port) => {
            let head = Head::parse(bytes).unwrap();
            assert_eq!(
                (head.form(), &head.host().host, head.host().http_port()),
                (Form::Absolute, &host, port)
            );
            assert_eq!(head.authorization(), authorization);
            let written = head.written();
            check_written(&written, bytes);
            let again = Head::parse(&written).unwrap();
            assert_eq!(
                (again.form(), again.host(), again.authorization()),
                (Form::Origin, head.host(), None)
            );
            assert_eq!(Errand::parse(&written).map(|errand| errand.aim), Some(Aim::Here));
        }
        Aim::Secure | Aim::Here => {}
    }
    authorization
}

/// The head of a response, to each kind of request.
pub fn response(bytes: &[u8]) {
    let Some(bytes) = head_of(bytes) else { return };
    for request in REQUESTS {
        let asked = Head::parse(request).unwrap().asked();
        let Ok(answer) = Answer::parse(bytes, &asked) else { continue };
        let written = answer.written();
        check_written(&written, bytes);
        let again = Answer::parse(&written, &asked).unwrap();
        assert_eq!(again.kind(), answer.kind());
        assert_eq!(again.written(), written);
    }
}

/// A body of chunks. However it comes, the same goes on, and it holds the same.
pub fn chunks(bytes: &[u8]) {
    let whole = passed(bytes, bytes.len().max(1));
    for size in [1, 2, 7] {
        assert_eq!(passed(bytes, size), whole, "in pieces of {size}");
    }
    let Ok((Chunks::Done, out, used)) = whole else { return };
    assert!(out.len() <= used);
    assert_eq!(held(&out), held(&bytes[..used]));
    assert_eq!(passed(&out, out.len()), Ok((Chunks::Done, out.clone(), out.len())));
}

/// What becomes of a body that comes in pieces of this size: where its reader is, what went on, how much was read.
fn passed(bytes: &[u8], size: usize) -> Result<(Chunks, Vec<u8>, usize), Malformed> {
    let (mut chunks, mut out, mut used, mut here) = (Chunks::Size, Vec::new(), 0, 0);
    while here < bytes.len() {
        here = bytes.len().min(here + size);
        used += chunks.pass(&bytes[used..here], &mut out)?;
    }
    Ok((chunks, out, used))
}

/// What a body holds, to a reader who trusts it.
fn held(mut body: &[u8]) -> Vec<u8> {
    let mut held = Vec::new();
    loop {
        let end = body.windows(2).position(|two| two == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return held;
        }
        held.extend(&body[end + 2..end + 2 + size]);
        body = &body[end + 2 + size + 2..];
    }
}
