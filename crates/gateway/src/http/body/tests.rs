//! Chunks, good and bad, and however they come.

use proptest::prelude::*;

use super::*;

/// All that is written of a body that comes in these pieces; an error where it is refused or does not end.
fn passed(pieces: &[&[u8]]) -> Result<(Vec<u8>, usize), Malformed> {
    let (mut chunks, mut here, mut out, mut used) = (Chunks::Size, Vec::new(), Vec::new(), 0);
    for piece in pieces {
        here.extend_from_slice(piece);
        let count = chunks.pass(&here, &mut out)?;
        assert!(chunks != Chunks::Done || count <= here.len());
        here.drain(..count);
        used += count;
        assert!(here.len() < LONGEST_TRAILERS || chunks == Chunks::Done, "too much is kept");
    }
    if chunks == Chunks::Done { Ok((out, used)) } else { Err(Malformed) }
}

/// What a body holds, read by somebody who trusts it.
fn held(mut body: &[u8]) -> Vec<u8> {
    let mut held = Vec::new();
    loop {
        let end = body.windows(2).position(|two| two == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        held.extend(&body[end + 2..end + 2 + size]);
        body = &body[end + 2 + size + 2..];
        if size == 0 {
            assert!(body.is_empty());
            return held;
        }
    }
}

#[test]
fn chunks_are_written_anew() {
    for (body, written) in [
        (&b"0\r\n\r\n"[..], &b"0\r\n\r\n"[..]),
        (b"5\r\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n"),
        (b"00A\r\n0123456789\r\n000\r\n\r\n", b"a\r\n0123456789\r\n0\r\n\r\n"),
        (b"0000000000000001\r\n\n\r\n0\r\n\r\n", b"1\r\n\n\r\n0\r\n\r\n"),
        (b"1\r\nx\r\n0\r\nDigest: y\r\nA:\r\n\r\n", b"1\r\nx\r\n0\r\n\r\n"),
    ] {
        assert_eq!(passed(&[body]).unwrap(), (written.to_vec(), body.len()));
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        assert_eq!(passed(&bytes).unwrap().0, written);
    }
    // What stands behind is the next message's.
    assert_eq!(passed(&[b"0\r\n\r\nGET / HTTP/1.1\r\n"]).unwrap().1, 5);
}

#[test]
fn chunks_with_two_meanings_are_refused() {
    for body in [
        &b"\r\n"[..],
        b"5;x=y\r\nhello\r\n0\r\n\r\n",
        b"5;\r\nhello\r\n0\r\n\r\n",
        b"5 \r\nhello\r\n0\r\n\r\n",
        b" 5\r\nhello\r\n0\r\n\r\n",
        b"+5\r\nhello\r\n0\r\n\r\n",
        b"-5\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b"5\nhello\r\n0\r\n\r\n",
        b"5\rhello\r\n0\r\n\r\n",
        b"5\r\nhello\n0\r\n\r\n",
        b"5\r\nhello0\r\n\r\n",
        b"5\r\nhello!\r\n0\r\n\r\n",
        b"5\r\nhello\r\r\n0\r\n\r\n",
        b"00000000000000005\r\nhello\r\n0\r\n\r\n",
        b"fffffffffffffffff\r\n",
        b"g\r\n",
        b"0\r\n\n",
        b"0\n\r\n",
        b"0\r\nA\r\n\r\n",
        b"0\r\nA : b\r\n\r\n",
        b"0\r\n A: b\r\n\r\n",
        b"0\r\nA: b\n\r\n",
        b"0\r\nContent-Length: 5\r\n\r\n",
        b"0\r\ntransfer-encoding: chunked\r\n\r\n",
        b"0\r\nHOST: evil.test\r\n\r\n",
    ] {
        let mut out = Vec::new();
        assert_eq!(Chunks::Size.pass(body, &mut out), Err(Malformed), "{}", body.escape_ascii());
    }
}

#[test]
fn a_chunk_can_be_as_long_as_a_number() {
    let mut chunks = Chunks::Size;
    let mut out = Vec::new();
    assert_eq!(chunks.pass(b"FFFFFFFFFFFFFFFF\r\nab", &mut out), Ok(20));
    assert_eq!(chunks, Chunks::Data(u64::MAX - 2));
    assert_eq!(out, b"ffffffffffffffff\r\nab");
}

#[test]
fn there_is_an_end_to_trailers() {
    let body = |length: usize| [b"0\r\nA: ", "x".repeat(length).as_bytes(), b"\r\n\r\n"].concat();
    assert!(passed(&[&body(LONGEST_TRAILERS - 7)]).is_ok());
    assert!(passed(&[&body(LONGEST_TRAILERS - 6)]).is_err());
    let many = [b"0\r\n", "A: b\r\n".repeat(129).as_bytes(), b"\r\n"].concat();
    assert!(passed(&[&many]).is_err());
    // It is noticed before the end comes.
    assert_eq!(
        Chunks::Trailers(0).pass("x".repeat(LONGEST_TRAILERS).as_bytes(), &mut Vec::new()),
        Err(Malformed)
    );
}

proptest! {
    #[test]
    fn chunks_are_the_same_however_they_come(
        parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..6),
        trailers in "([a-z]: [a-z]{0,5}\r\n){0,3}",
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut body = Vec::new();
        for part in &parts {
            body.extend(format!("{:03X}\r\n", part.len()).as_bytes());
            body.extend(part);
            body.extend(b"\r\n");
        }
        body.extend(format!("0\r\n{trailers}\r\n").as_bytes());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len())).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|two| &body[two[0]..two[1]]).collect();
        let (written, used) = passed(&pieces).unwrap();
        prop_assert_eq!(used, body.len());
        prop_assert_eq!(held(&written), parts.concat());
        prop_assert_eq!(passed(&[&written]), Ok((written.clone(), written.len())));
    }

    #[test]
    fn bytes_are_read_in_bounds(
        body in "[0-9a-f]{1,3}\r\n[a\r\n]{0,9}\r\n0\r\n[a:\r\n]{0,9}\r\n\r\n|[0-3\r\n;a:]{0,30}",
        cut in any::<prop::sample::Index>(),
    ) {
        let body = body.as_bytes();
        let whole = passed(&[body]);
        if let Ok((written, used)) = &whole {
            prop_assert!(written.len() <= *used);
            held(written);
        }
        let (first, second) = body.split_at(cut.index(body.len() + 1));
        prop_assert_eq!(passed(&[first, second]), whole);
    }
}
