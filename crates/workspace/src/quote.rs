//! Names as git writes them in a line, and reads them: in quotes, with escapes, where a byte could be taken for something
//! else.

/// A name in quotes; what git reads back is the same.
pub(crate) fn quoted(name: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(name.len() + 2);
    text.push(b'"');
    for &byte in name {
        match byte {
            b'"' | b'\\' => text.extend_from_slice(&[b'\\', byte]),
            0..b' ' | 0x7f => text.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
            byte => text.push(byte),
        }
    }
    text.push(b'"');
    text
}

/// Reads a name up to the end or to `end`, and what follows.
pub(crate) fn name(text: &[u8], end: u8) -> Option<(Vec<u8>, &[u8])> {
    let Some(mut rest) = text.strip_prefix(b"\"") else {
        let length = text.iter().position(|byte| *byte == end).unwrap_or(text.len());
        let (name, rest) = text.split_at(length);
        return Some((name.to_vec(), rest.get(1..).unwrap_or_default()));
    };
    let mut name = Vec::new();
    loop {
        let (byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => return Some((name, rest.get(1..).unwrap_or_default())),
            b'\\' => rest = escape(rest, &mut name)?,
            byte => name.push(*byte),
        }
    }
}

fn escape<'a>(text: &'a [u8], name: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (byte, rest) = text.split_first()?;
    let plain = match byte {
        b'a' => 7,
        b'b' => 8,
        b't' => b'\t',
        b'n' => b'\n',
        b'v' => 11,
        b'f' => 12,
        b'r' => b'\r',
        b'"' | b'\\' => *byte,
        b'0'..=b'3' => {
            let digits = std::str::from_utf8(text.get(..3)?).ok()?;
            name.push(u8::from_str_radix(digits, 8).ok()?);
            return text.get(3..);
        }
        _ => return None,
    };
    name.push(plain);
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_were() {
        let read = |text: &str| name(text.as_bytes(), b'\t').map(|(name, rest)| (name, rest.to_vec()));
        assert_eq!(read("plain\trest"), Some((b"plain".to_vec(), b"rest".to_vec())));
        assert_eq!(read("\"a\\nb\\377\\\"\"\trest"), Some((b"a\nb\xff\"".to_vec(), b"rest".to_vec())));
        assert_eq!(read("\"open"), None);
        assert_eq!(read("\"\\9\""), None);
        for odd in [b"a\nb\"c\\d\x01\x7f\xff".as_slice(), b"", b"plain", b"\"", b"\\"] {
            assert_eq!(name(&quoted(odd), b'\t'), Some((odd.to_vec(), &b""[..])), "{odd:?}");
        }
    }
}
