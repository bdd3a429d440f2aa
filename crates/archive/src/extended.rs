//! Extended (PAX) headers: records of `length key=value`, for what does not fit into a block. Only what says where
//! and how much is read; a record that would change the meaning of an entry and that we do not know is refused.

use crate::moment::Moment;
use crate::number;

/// What is wrong with an extended header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtendedError {
    /// A record whose length, `=` or end of line is not where it must be.
    #[error("a record is malformed")]
    Malformed,
    /// A size or a time that is no number.
    #[error("a record has a wrong number")]
    Number,
    /// A record that is there twice, of which two programs could take one each.
    #[error("a record is there twice")]
    Twice,
    /// Sparse files.
    #[error("sparse files are not supported")]
    Sparse,
    /// A name, a link or a size for all entries to come.
    #[error("a global header names or sizes entries")]
    Global,
}

/// What an extended header says of the next entry.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Extended {
    pub(crate) name: Option<Vec<u8>>,
    pub(crate) link: Option<Vec<u8>>,
    pub(crate) size: Option<u64>,
    pub(crate) modified: Option<Moment>,
    pub(crate) uid: Option<u64>,
    pub(crate) gid: Option<u64>,
    /// Extended attributes, as the programs that make layers of images write them.
    pub(crate) attributes: Vec<Attribute>,
}

/// An extended attribute: its name and its value.
pub type Attribute = (Vec<u8>, Vec<u8>);

/// What stands before the name of an extended attribute.
pub(crate) const ATTRIBUTE: &[u8] = b"SCHILY.xattr.";

impl Extended {
    /// Reads the records of one header.
    pub(crate) fn decode(mut bytes: &[u8]) -> Result<Self, ExtendedError> {
        let mut found = Self::default();
        while !bytes.is_empty() {
            let (key, value, rest) = record(bytes).ok_or(ExtendedError::Malformed)?;
            bytes = rest;
            match key {
                b"path" => set(&mut found.name, value.to_vec())?,
                b"linkpath" => set(&mut found.link, value.to_vec())?,
                b"size" => set(&mut found.size, number::decimal(value).ok_or(ExtendedError::Number)?)?,
                b"mtime" => {
                    set(&mut found.modified, Moment::from_decimal(value).ok_or(ExtendedError::Number)?)?
                }
                b"uid" => set(&mut found.uid, number::decimal(value).ok_or(ExtendedError::Number)?)?,
                b"gid" => set(&mut found.gid, number::decimal(value).ok_or(ExtendedError::Number)?)?,
                key if key.starts_with(ATTRIBUTE) => {
                    found.attributes.push((key[ATTRIBUTE.len()..].to_vec(), value.to_vec()));
                }
                key if key.starts_with(b"GNU.sparse.") => return Err(ExtendedError::Sparse),
                // Names of owners, labels, comments: of the machine that it came from.
                _ => {}
            }
        }
        Ok(found)
    }

    /// Looks through a header for all entries to come, of which git and others write one with a comment. It is let
    /// through where it changes nothing that matters.
    pub(crate) fn check_global(bytes: &[u8]) -> Result<(), ExtendedError> {
        let found = Self::decode(bytes)?;
        let harmless = found.name.is_none() && found.link.is_none() && found.size.is_none();
        if harmless { Ok(()) } else { Err(ExtendedError::Global) }
    }
}

fn set<T>(place: &mut Option<T>, value: T) -> Result<(), ExtendedError> {
    if place.replace(value).is_some() { Err(ExtendedError::Twice) } else { Ok(()) }
}

/// The key, the value and what comes after the first record.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    // A length of more digits than a whole header has bytes is none.
    let space = bytes.iter().take(8).position(|byte| *byte == b' ')?;
    let length = usize::try_from(number::decimal(&bytes[..space])?).ok()?;
    let (record, rest) = bytes.split_at_checked(length)?;
    let content = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = content.iter().position(|byte| *byte == b'=').filter(|index| *index > 0)?;
    Some((&content[..equals], &content[equals + 1..], rest))
}

/// Appends one record.
pub(crate) fn write_record(header: &mut Vec<u8>, key: impl AsRef<[u8]>, value: &[u8]) {
    let key = key.as_ref();
    let rest = key.len() + value.len() + 3;
    // The length counts its own digits.
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    header.extend_from_slice(format!("{length} ").as_bytes());
    header.extend_from_slice(key);
    header.push(b'=');
    header.extend_from_slice(value);
    header.push(b'\n');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn records_are_read() {
        let found = Extended::decode(b"9 path=a\n18 linkpath=\xff/a=b\n9 size=7\n13 mtime=1.5\n9 x.y=z\0\n");
        assert_eq!(
            found,
            Ok(Extended {
                name: Some(b"a".to_vec()),
                link: Some(b"\xff/a=b".to_vec()),
                size: Some(7),
                modified: Some(Moment { seconds: 1, nanoseconds: 500_000_000 }),
                ..Extended::default()
            })
        );
    }

    #[test]
    fn tricks_are_refused() {
        for (bytes, error) in [
            (&b"9 path=a\n9 path=b\n"[..], ExtendedError::Twice),
            (b"11 size=-1\n", ExtendedError::Number),
            (b"25 size=99999999999999999999999\n", ExtendedError::Malformed),
            (b"32 size=99999999999999999999999\n", ExtendedError::Number),
            (b"22 GNU.sparse.major=1\n", ExtendedError::Sparse),
            (b"8 path=a\n", ExtendedError::Malformed),
            (b"99 path=a\n", ExtendedError::Malformed),
            (b"99999999999999999999 path=a\n", ExtendedError::Malformed),
            (b"0 path=a\n", ExtendedError::Malformed),
            (b"-9 path=a\n", ExtendedError::Malformed),
            (b"5 =a\n", ExtendedError::Malformed),
            (b"7 path\n", ExtendedError::Malformed),
            (b"\0", ExtendedError::Malformed),
        ] {
            assert_eq!(Extended::decode(bytes), Err(error), "{}", bytes.escape_ascii());
        }
        assert_eq!(Extended::check_global(b"13 comment=a\n"), Ok(()));
        assert_eq!(Extended::check_global(b"9 path=a\n"), Err(ExtendedError::Global));
    }

    proptest! {
        #[test]
        fn records_come_back(value in proptest::collection::vec(any::<u8>(), 0..1200)) {
            let mut header = Vec::new();
            write_record(&mut header, "path", &value);
            let expected = Extended { name: Some(value), ..Extended::default() };
            prop_assert_eq!(Extended::decode(&header), Ok(expected));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Extended::decode(&bytes);
        }
    }
}
