//! Lines, good and bad, one table for each rule.

use proptest::prelude::*;

use super::*;

fn fields(lines: &[u8]) -> Result<Fields<'_>, Malformed> {
    Fields::parse(lines)
}

fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

#[test]
fn a_head_ends_with_its_first_empty_line() {
    for (bytes, end) in [
        (&b"A\r\n\r\n"[..], Ok(Some(5))),
        (b"A\r\nB\r\n\r\nC\r\n\r\n", Ok(Some(8))),
        (b"A\r\n\r\n\n", Ok(Some(5))),
        (b"", Ok(None)),
        (b"A", Ok(None)),
        (b"A\r", Ok(None)),
        (b"A\r\n\r", Ok(None)),
        (b"A\n", Err(Malformed)),
        (b"A\n\n", Err(Malformed)),
        (b"A\r\n\n", Err(Malformed)),
        (b"A\rB", Err(Malformed)),
        (b"A\r\r\n", Err(Malformed)),
        (b"\n", Err(Malformed)),
        (b"\r\n", Err(Malformed)),
        (b"\r\nA\r\n\r\n", Err(Malformed)),
        (b"A\0", Err(Malformed)),
    ] {
        assert_eq!(find_end(bytes, 0), end, "{}", shown(bytes));
    }
}

#[test]
fn fields_are_read() {
    for (lines, value) in [
        (&b"A: x\r\n\r\n"[..], &b"x"[..]),
        (b"a:x\r\n\r\n", b"x"),
        (b"A: \t x y \t\r\n\r\n", b"x y"),
        (b"A:\r\n\r\n", b""),
        (b"A: :\r\n\r\n", b":"),
        (b"!#$%&'*+-.^_`|~09z: 1\r\nA: \xff\xe9\r\n\r\n", b"\xff\xe9"),
    ] {
        assert_eq!(fields(lines).unwrap().only("A"), Ok(Some(value)), "{}", shown(lines));
    }
    assert_eq!(fields(b"\r\n").unwrap().only("A"), Ok(None));
}

#[test]
fn what_is_no_field_is_refused() {
    for lines in [
        &b""[..],
        b"A: x\r\n",
        b"A\r\n\r\n",
        b": x\r\n\r\n",
        b" A: x\r\n\r\n",
        b"A: x\r\n y\r\n\r\n",
        b"A: x\r\n\ty: z\r\n\r\n",
        b"A : x\r\n\r\n",
        b"A\t: x\r\n\r\n",
        b"A B: x\r\n\r\n",
        b"A\0: x\r\n\r\n",
        b"(A): x\r\n\r\n",
        b"\xc3\xa9: x\r\n\r\n",
        b"A: x\0\r\n\r\n",
        b"A: x\x0by\r\n\r\n",
        b"A: \x0cx\r\n\r\n",
        b"A: x\ny\r\n\r\n",
        b"A: x\ry\r\n\r\n",
        b"A: x\x7f\r\n\r\n",
        b"A: x\x1b[2J\r\n\r\n",
        b"\r\nA: x\r\n\r\n",
    ] {
        assert_eq!(fields(lines).map(drop), Err(Malformed), "{}", shown(lines));
    }
}

#[test]
fn there_is_an_end_to_lines() {
    let lines = |count: usize| ["A: x\r\n".repeat(count).as_bytes(), b"\r\n"].concat();
    assert!(fields(&lines(MOST_LINES)).is_ok());
    assert!(fields(&lines(MOST_LINES + 1)).is_err());
}

#[test]
fn a_length_is_said_once_and_one_way() {
    for (lines, framing) in [
        (&b""[..], None),
        (b"Content-Length: 0\r\n", Some(Framing::Exactly(0))),
        (b"content-length:  5 \r\n", Some(Framing::Exactly(5))),
        (b"Content-Length: 18446744073709551615\r\n", Some(Framing::Exactly(u64::MAX))),
        (b"Transfer-Encoding: chunked\r\n", Some(Framing::Chunked)),
        (b"TRANSFER-ENCODING: Chunked\r\n", Some(Framing::Chunked)),
    ] {
        let lines = [lines, b"\r\n"].concat();
        assert_eq!(fields(&lines).unwrap().framing(Version::Current), Ok(framing), "{}", shown(&lines));
    }
}

#[test]
fn a_length_that_can_be_read_in_two_ways_is_refused() {
    for lines in [
        &b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"[..],
        b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: 5\r\ncontent-length: 5\r\n",
        b"Content-Length: 5, 5\r\n",
        b"Content-Length: 5,6\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length: -5\r\n",
        b"Content-Length: 0x5\r\n",
        b"Content-Length: 5a\r\n",
        b"Content-Length: 1 2\r\n",
        b"Content-Length: 1_000\r\n",
        b"Content-Length: \"5\"\r\n",
        b"Content-Length:\r\n",
        b"Content-Length: \xd9\xa5\r\n",
        b"Content-Length: 18446744073709551616\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked, chunked\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding: identity\r\n",
        b"Transfer-Encoding: gzip\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: chunked;q=1\r\n",
        b"Transfer-Encoding: \"chunked\"\r\n",
        b"Transfer-Encoding: ,chunked\r\n",
        b"Transfer-Encoding:\r\n",
    ] {
        let lines = [lines, b"\r\n"].concat();
        assert_eq!(fields(&lines).unwrap().framing(Version::Current), Err(Malformed), "{}", shown(&lines));
    }
    let chunked = fields(b"Transfer-Encoding: chunked\r\n\r\n").unwrap();
    assert_eq!(chunked.framing(Version::Old), Err(Malformed));
}

#[test]
fn nothing_poses_as_a_length_or_a_host() {
    for name in ["Content_Length", "TRANSFER_ENCODING", "Transfer_encoding"] {
        assert!(fields(format!("{name}: 5\r\n\r\n").as_bytes()).is_err(), "{name}");
    }
    assert!(fields(b"X_Content_Length: 5\r\n\r\n").is_ok());
}

#[test]
fn what_is_for_the_next_hop_stays_here() {
    let lines = b"A: 1\r\nConnection: close, X-Hop\r\nx-hop: secret\r\nKeep-Alive: timeout=5\r\n\
        Proxy-Connection: x\r\nProxy-Authorization: Basic x\r\nProxy-Authenticate: x\r\nTE: trailers\r\n\
        Trailer: x\r\nUpgrade: x\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\
        CONNECTION: upgrade,, keep-alive\r\nB: 2\r\n\r\n";
    let fields = fields(lines).unwrap();
    let options = fields.options().unwrap();
    assert!(options.closes && options.upgrades);
    let mut out = Vec::new();
    fields.write(&options, &mut out);
    assert_eq!(shown(&out), shown(b"A: 1\r\nB: 2\r\n"));
}

#[test]
fn what_matters_at_the_end_cannot_be_left_behind() {
    for name in DECIDING.iter().chain(&ESSENTIAL) {
        for name in [(*name).to_owned(), name.to_ascii_uppercase()] {
            let lines = format!("Connection: keep-alive, {name}\r\n\r\n");
            assert_eq!(fields(lines.as_bytes()).unwrap().options(), Err(Malformed), "{name}");
        }
    }
    for value in ["a b", "a;b", "\"close\"", "é"] {
        let lines = format!("Connection: {value}\r\n\r\n");
        assert_eq!(fields(lines.as_bytes()).unwrap().options(), Err(Malformed), "{value}");
    }
    let lines = |count: usize| format!("Connection: {}\r\n\r\n", vec!["x"; count].join(","));
    assert!(fields(lines(MOST_OPTIONS).as_bytes()).unwrap().options().is_ok());
    assert!(fields(lines(MOST_OPTIONS + 1).as_bytes()).unwrap().options().is_err());
}

proptest! {
    #[test]
    fn an_end_is_found_however_bytes_come(
        bytes in "[A\r\n]{0,12}|(A\r\n){0,4}\r\nB",
        cuts in proptest::collection::vec(0..14usize, 0..4),
    ) {
        let bytes = bytes.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.push(bytes.len());
        cuts.sort_unstable();
        let mut searched = 0;
        let mut found = Ok(None);
        for cut in cuts {
            found = find_end(&bytes[..cut], searched);
            searched = cut;
            if found != Ok(None) {
                break;
            }
        }
        prop_assert_eq!(found, find_end(bytes, 0));
    }

    #[test]
    fn lines_are_read_in_bounds(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(fields) = Fields::parse(&bytes) {
            prop_assert!(fields.0.len() <= MOST_LINES);
            if let Ok(options) = fields.options() {
                let mut out = Vec::new();
                fields.write(&options, &mut out);
                prop_assert!(out.len() <= 2 * bytes.len());
            }
        }
    }
}
