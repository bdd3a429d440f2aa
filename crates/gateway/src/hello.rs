//! The first message of a TLS client, which says in the clear which host it means.

use policy::network::HostName;
use rustls::server::Acceptor;

/// The most bytes that it may have.
pub(crate) const LONGEST: usize = 32 * 1024;

/// What is known of it so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hello {
    /// It goes on.
    More,
    /// It means this host.
    Host(HostName),
    /// It means none.
    Nameless,
    /// It is none.
    Malformed,
}

/// Reads what has come of it. The records that it was cut into do not matter.
pub(crate) fn read(bytes: &[u8]) -> Hello {
    let mut acceptor = Acceptor::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        if !matches!(acceptor.read_tls(&mut rest), Ok(1..)) {
            return Hello::Malformed;
        }
        match acceptor.accept() {
            Ok(Some(accepted)) => {
                let hello = accepted.client_hello();
                let Some(name) = hello.server_name() else { return Hello::Nameless };
                return name.parse().map_or(Hello::Malformed, Hello::Host);
            }
            Ok(None) => {}
            Err(_) => return Hello::Malformed,
        }
    }
    if bytes.len() < LONGEST { Hello::More } else { Hello::Malformed }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A client's first message: one record for each of `cuts`.
    fn hello(name: Option<&str>, cuts: &[usize]) -> Vec<u8> {
        let sized = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat();
        let extension = |kind: u16, bytes: &[u8]| [&kind.to_be_bytes()[..], &sized(bytes)].concat();
        let mut extensions = Vec::new();
        if let Some(name) = name {
            extensions.extend(extension(0, &sized(&[&[0][..], &sized(name.as_bytes())].concat())));
        }
        extensions.extend(extension(43, &[2, 3, 4]));
        extensions.extend(extension(10, &sized(&[0, 29])));
        extensions.extend(extension(13, &sized(&[4, 3])));
        let body = [&[3, 3][..], &[7; 32], &[0], &sized(&[0x13, 1]), &[1, 0], &sized(&extensions)].concat();
        let message = [&[1, 0][..], &(body.len() as u16).to_be_bytes(), &body].concat();
        let mut records = Vec::new();
        let mut rest = &message[..];
        for cut in cuts.iter().copied().chain([message.len()]) {
            let (part, after) = rest.split_at(cut.min(rest.len()));
            if !part.is_empty() {
                records.extend([0x16, 3, 1]);
                records.extend(sized(part));
            }
            rest = after;
        }
        records
    }

    #[test]
    fn the_host_is_read() {
        let name = Hello::Host("example.com".parse().unwrap());
        assert_eq!(read(&hello(Some("example.com"), &[])), name);
        assert_eq!(read(&hello(Some("EXAMPLE.com"), &[])), name);
        assert_eq!(read(&hello(Some("example.com"), &[1, 3, 50])), name);
        assert_eq!(read(&hello(None, &[])), Hello::Nameless);
    }

    #[test]
    fn a_hello_that_is_cut_goes_on() {
        let whole = hello(Some("example.com"), &[9]);
        for length in 0..whole.len() {
            assert_eq!(read(&whole[..length]), Hello::More, "{length}");
        }
    }

    #[test]
    fn what_is_no_hello_is_none() {
        assert_eq!(read(b"\x16\x03\x01\x00\x05hello"), Hello::Malformed);
        assert_eq!(read(b"\x17\x03\x01\x00\x05hello"), Hello::Malformed);
        assert_eq!(read(&[0x16, 3, 1, 0x40, 0]), Hello::More);
        for name in ["exa\0mple.com", "example.com/", "a b"] {
            assert!(matches!(read(&hello(Some(name), &[])), Hello::Malformed | Hello::Nameless), "{name:?}");
        }
        let endless = [&[0x16, 3, 1, 0x3f, 0xff, 1, 0, 0xff, 0xff][..], &[0; 40_000]].concat();
        assert_eq!(read(&endless), Hello::Malformed);
    }

    proptest! {
        #[test]
        fn bytes_are_read_in_bounds(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0usize..200, byte in any::<u8>()) {
            let _ = read(&[&[0x16, 3, 1], &bytes[..]].concat());
            let mut changed = hello(Some("example.com"), &[]);
            if let Some(place) = changed.get_mut(at) {
                *place = byte;
            }
            let _ = read(&changed);
        }
    }
}
