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

/// The longest method of HTTP.
const LONGEST_METHOD: usize = 32;

/// The first byte of a TLS connection: a record of the handshake.
pub(crate) const HANDSHAKE: u8 = 0x16;

/// What the bytes are the beginning of; none where more of them must be seen. Whoever is in doubt takes it for HTTP: that
/// is read strictly later, while what is something else is not read at all.
pub(crate) fn recognise(bytes: &[u8]) -> Option<Speech> {
    if *bytes.first()? == HANDSHAKE {
        return Some(Speech::Tls);
    }
    // Servers skip empty lines before a request.
    let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n' | b' ' | b'\t'))?;
    let bytes = &bytes[start..];
    let end = bytes.iter().position(|byte| !is_token(*byte)).unwrap_or(bytes.len());
    let (method, rest) = bytes.split_at(end);
    if method.is_empty() || method.len() > LONGEST_METHOD {
        return Some(Speech::Other);
    }
    match rest {
        // The rest of the method, or what follows it, is still to come.
        [] => None,
        [b' ' | b'\t', target @ ..] => match target.iter().find(|byte| !matches!(byte, b' ' | b'\t'))? {
            b'/' | b'*' | b'h' | b'H' => Some(Speech::Http),
            _ if method.eq_ignore_ascii_case(b"CONNECT") => Some(Speech::Http),
            _ => Some(Speech::Other),
        },
        _ => Some(Speech::Other),
    }
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
            (b"CONNECT example.com:443", Some(Speech::Http)),
            (b"PRI * HTTP/2.0", Some(Speech::Http)),
            (b"X-Y_z! /", Some(Speech::Http)),
            (b"SSH-2.0-OpenSSH_9.2\r\n", Some(Speech::Other)),
            (b"EHLO client\r\n", Some(Speech::Other)),
            (b"\0\0\0\x08\x04\xd2\x16\x2f", Some(Speech::Other)),
            (b"*1\r\n$4\r\nPING\r\n", Some(Speech::Other)),
            (b"PING\r\n", Some(Speech::Other)),
            (b"\x80\x2e\x01", Some(Speech::Other)),
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

    proptest! {
        #[test]
        fn more_bytes_change_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..80), more in any::<[u8; 3]>()) {
            if let Some(speech) = recognise(&bytes) {
                prop_assert_eq!(recognise(&[&bytes[..], &more].concat()), Some(speech));
            }
        }

        #[test]
        fn no_request_is_missed(start in "[\r\n \t]{0,4}", method in "[A-Za-z!#]{1,20}", path in "[ -~]{0,40}") {
            let text = format!("{start}{method} /{path}");
            prop_assert_eq!(recognise(text.as_bytes()), Some(Speech::Http));
        }
    }
}
