//! What a client speaks, told from its first bytes. TLS and HTTP name the host that is meant a second time, and that must
//! be the same one; all others are known by name and port alone.

/// What somebody speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speech {
    /// A handshake of TLS, or what should be one.
    Tls,
    /// A request of HTTP, or what some server could take for one.
    Http,
    /// Anything else.
    Other,
}

/// How far a line is looked at that may become a request.
const LONGEST_TARGET: usize = 16 * 1024;

/// The longest method of HTTP.
const LONGEST_METHOD: usize = 32;

/// The kinds of records that TLS has: some servers take others before the handshake.
const RECORDS: std::ops::RangeInclusive<u8> = 0x14..=0x18;

/// What the bytes are the beginning of; none where more of them must be seen. Whoever is in doubt takes it for TLS or HTTP:
/// those are read strictly later, while what is something else is not read at all.
pub(crate) fn recognise(bytes: &[u8]) -> Option<Speech> {
    if is_tls(bytes)? {
        return Some(Speech::Tls);
    }
    // Servers skip empty lines before a request.
    let start = bytes.iter().position(|byte| !is_blank(*byte))?;
    let bytes = &bytes[start..];
    let end = bytes.iter().position(|byte| !is_token(*byte)).unwrap_or(bytes.len());
    let (method, rest) = bytes.split_at(end);
    if method.is_empty() || method.len() > LONGEST_METHOD {
        return Some(Speech::Other);
    }
    match rest {
        // The rest of the method, or what follows it, is still to come.
        [] => None,
        [first, rest @ ..] if is_blank(*first) && *first != b'\n' => is_request(rest),
        _ => Some(Speech::Other),
    }
}

/// Whether it is a record of TLS, or the greeting of a version before that.
fn is_tls(bytes: &[u8]) -> Option<bool> {
    let first = *bytes.first()?;
    let second = || bytes.get(1).copied();
    match first {
        // The version that follows always begins so.
        first if RECORDS.contains(&first) => Some(second()? == 3),
        0x80..=0xff => Some(bytes.get(2).copied()? == 1 && bytes.get(3).copied()? <= 3),
        _ => Some(false),
    }
}

/// What follows a word and a blank: the target of a request, as any server could take it, or something else. A line that
/// ends without the name of HTTP is none, unless its target begins as one; a line that does not end may still be one.
fn is_request(rest: &[u8]) -> Option<Speech> {
    let target = &rest[rest.iter().position(|byte| *byte == b'\n' || !is_blank(*byte))?..];
    // No further, so that it does not matter how much has come.
    let target = &target[..target.len().min(LONGEST_TARGET)];
    // A `\r` by itself ends a line to some, and is a blank to others.
    let line = target.iter().position(|byte| *byte == b'\n');
    let seen = &target[..line.unwrap_or(target.len())];
    let names_http = seen.windows(5).any(|bytes| bytes.eq_ignore_ascii_case(b"HTTP/"));
    let begins = matches!(target[0], b'/' | b'*') || seen.windows(3).any(|bytes| bytes == b"://");
    match line {
        _ if begins || names_http => Some(Speech::Http),
        Some(_) => Some(Speech::Other),
        None if seen.len() == LONGEST_TARGET => Some(Speech::Http),
        None => None,
    }
}

/// What some server takes for a blank; the one of Python's library takes all of these.
const fn is_blank(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | 0x1c..=b' ' | 0x85 | 0xa0)
}

const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn speech_is_known_by_its_first_bytes() {
        for (bytes, speech) in [
            (&b"\x16\x03\x01"[..], Some(Speech::Tls)),
            (b"GET / HTTP/1.1\r\n", Some(Speech::Http)),
            (b"GET /", Some(Speech::Http)),
            (b"get /x", Some(Speech::Http)),
            (b"\r\nGET /", Some(Speech::Http)),
            (b" GET\t /", Some(Speech::Http)),
            (b"OPTIONS *", Some(Speech::Http)),
            (b"GET http://", Some(Speech::Http)),
            (b"GET http", None),
            (b"CONNECT example.com:443 HTTP/1.1\r\n", Some(Speech::Http)),
            (b"CONNECT {\"verbose\":false}\r\n", Some(Speech::Other)),
            (b"PRI * HTTP/2.0", Some(Speech::Http)),
            (b"X-Y_z! /", Some(Speech::Http)),
            (b"SSH-2.0-OpenSSH_9.2\r\n", Some(Speech::Other)),
            (b"EHLO client\r\n", Some(Speech::Other)),
            (b"EHLO client", None),
            (b"GET x://other.test/ HTTP/1.1\r\n", Some(Speech::Http)),
            (b"GET index.html HTTP/1.1\r\n", Some(Speech::Http)),
            (b"GET index.html http/1.0", Some(Speech::Http)),
            (b"GET\x0c/ HTTP/1.1\r\n", Some(Speech::Http)),
            (b"GET\r/ HTTP/1.1\r\n", Some(Speech::Http)),
            (b"GET index.html\rHTTP/1.1\n", Some(Speech::Http)),
            (b"\x1fGET\x1c/ HTTP/1.1\n", Some(Speech::Http)),
            (b"\xa0GET\x85index.html\xa0HTTP/1.1\n", Some(Speech::Http)),
            (b"\x15\x03\x01\x00\x02\x01\x5a\x16\x03", Some(Speech::Tls)),
            (b"\x14\x03\x03", Some(Speech::Tls)),
            (b"\x17\x03\x03", Some(Speech::Tls)),
            (b"\x80\x2e\x01\x03\x01", Some(Speech::Tls)),
            (b"\x16", None),
            (b"\x16\x01", Some(Speech::Other)),
            (b"\0\0\0\x08\x04\xd2\x16\x2f", Some(Speech::Other)),
            (b"*1\r\n$4\r\nPING\r\n", Some(Speech::Other)),
            (b"PING\r\n", Some(Speech::Other)),
            (b"PING \r\n", Some(Speech::Other)),
            (b"PING\r", None),
            (b"\x80\x2e\x01", None),
            (b"\x80\x2e\x05\x00", Some(Speech::Other)),
            (b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", Some(Speech::Other)),
            (b"", None),
            (b"G", None),
            (b"GET", None),
            (b"GET ", None),
            (b"\r\n\r\n", None),
        ] {
            assert_eq!(recognise(bytes), speech, "{:?}", bytes.escape_ascii().to_string());
        }
    }

    #[test]
    fn a_line_without_end_is_not_passed_on_unread() {
        let long = [b"GET ", &[b'a'; LONGEST_TARGET][..], b" HTTP/1.1\r\n"].concat();
        let cut = 4 + LONGEST_TARGET;
        assert_eq!(recognise(&long[..cut - 1]), None);
        assert_eq!(recognise(&long[..cut]), Some(Speech::Http));
        assert_eq!(recognise(&long), Some(Speech::Http));
        let other = [&long[..cut], b"\n"].concat();
        assert_eq!(recognise(&other), Some(Speech::Http), "what has been decided");
    }

    proptest! {
        #[test]
        fn more_bytes_change_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..80), more in any::<[u8; 3]>()) {
            if let Some(speech) = recognise(&bytes) {
                prop_assert_eq!(recognise(&[&bytes[..], &more].concat()), Some(speech));
            }
        }

        #[test]
        fn no_request_is_missed(start in "[\r\n \t]{0,4}", method in "[A-Za-z!#]{1,20}", path in "[!-~]{1,40}") {
            let text = format!("{start}{method} {path} HTTP/1.1\r\n");
            prop_assert_eq!(recognise(text.as_bytes()), Some(Speech::Http));
        }
    }
}
