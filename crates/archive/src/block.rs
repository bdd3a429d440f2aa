//! The 512 bytes before each entry, as ustar and GNU have them. Reading stands on the hostile path: every byte that
//! is used is checked, and what is ambiguous is refused.

mod fields;

use crate::error::HeaderError;
use crate::number;

pub(crate) use fields::{Fields, LARGEST_OWNER, link_fits, split};

/// Everything in an archive is a multiple of this.
pub(crate) const BLOCK: usize = 512;

/// One header.
pub(crate) type Block = [u8; BLOCK];

const NAME: std::ops::Range<usize> = 0..100;
const MODE: std::ops::Range<usize> = 100..108;
const USER: std::ops::Range<usize> = 108..116;
const GROUP: std::ops::Range<usize> = 116..124;
const SIZE: std::ops::Range<usize> = 124..136;
const TIME: std::ops::Range<usize> = 136..148;
const CHECKSUM: std::ops::Range<usize> = 148..156;
const KIND: usize = 156;
const LINK: std::ops::Range<usize> = 157..257;
const MAGIC: std::ops::Range<usize> = 257..265;
const PREFIX: std::ops::Range<usize> = 345..500;

const USTAR: &[u8] = b"ustar\x0000";
const GNU: &[u8] = b"ustar  \x00";

/// A field of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The name or the directory before it.
    Name,
    /// Where a link leads.
    Link,
    /// The access rights.
    Mode,
    /// How many bytes follow.
    Size,
    /// When the file was last written.
    Time,
    /// The number of its owner.
    User,
    /// The number of its group.
    Group,
}

/// What is no file, directory or link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// A named pipe.
    Fifo,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
}

/// What a header stands before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    HardLink,
    SymbolicLink,
    Directory,
    /// Records for the next entry.
    Extended,
    /// Records for all entries to come.
    Global,
    /// GNU's way to a name of more than 100 bytes, and to such a place for a link to lead to.
    LongName,
    LongLink,
    Special(Special),
}

impl Kind {
    fn from_byte(byte: u8) -> Result<Self, HeaderError> {
        match byte {
            0 | b'0' => Ok(Self::File),
            b'1' => Ok(Self::HardLink),
            b'2' => Ok(Self::SymbolicLink),
            b'3' => Ok(Self::Special(Special::CharacterDevice)),
            b'4' => Ok(Self::Special(Special::BlockDevice)),
            b'5' => Ok(Self::Directory),
            b'6' => Ok(Self::Special(Special::Fifo)),
            b'x' => Ok(Self::Extended),
            b'g' => Ok(Self::Global),
            b'L' => Ok(Self::LongName),
            b'K' => Ok(Self::LongLink),
            byte => Err(HeaderError::UnknownKind(byte)),
        }
    }

    /// For the kinds that we write.
    fn to_byte(self) -> u8 {
        match self {
            Self::File => b'0',
            Self::HardLink => b'1',
            Self::SymbolicLink => b'2',
            Self::Special(Special::CharacterDevice) => b'3',
            Self::Special(Special::BlockDevice) => b'4',
            Self::Directory => b'5',
            Self::Special(Special::Fifo) => b'6',
            Self::Extended => b'x',
            Self::Global => b'g',
            Self::LongName => b'L',
            Self::LongLink => b'K',
        }
    }
}

/// A header as it was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) name: Vec<u8>,
    pub(crate) link: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) size: u64,
    pub(crate) seconds: i64,
    pub(crate) uid: u64,
    pub(crate) gid: u64,
}

impl Header {
    pub(crate) fn decode(block: &Block) -> Result<Self, HeaderError> {
        let is_ustar = &block[MAGIC] == USTAR;
        if !is_ustar && &block[MAGIC] != GNU {
            return Err(HeaderError::Magic);
        }
        if number::field(&block[CHECKSUM]) != Some(checksum(block).into()) {
            return Err(HeaderError::Checksum);
        }
        let mut name = Vec::new();
        // GNU keeps other things where ustar has the prefix.
        if is_ustar {
            name.extend_from_slice(text(block, PREFIX, Field::Name)?);
        }
        if !name.is_empty() {
            name.push(b'/');
        }
        name.extend_from_slice(text(block, NAME, Field::Name)?);
        let number = |range: std::ops::Range<usize>, field| {
            number::field(&block[range]).ok_or(HeaderError::Number(field))
        };
        Ok(Self {
            kind: Kind::from_byte(block[KIND])?,
            name,
            link: text(block, LINK, Field::Link)?.to_vec(),
            mode: u32::try_from(number(MODE, Field::Mode)?).map_err(|_| HeaderError::Number(Field::Mode))?,
            size: u64::try_from(number(SIZE, Field::Size)?).map_err(|_| HeaderError::Number(Field::Size))?,
            seconds: number(TIME, Field::Time)?,
            uid: u64::try_from(number(USER, Field::User)?).map_err(|_| HeaderError::Number(Field::User))?,
            gid: u64::try_from(number(GROUP, Field::Group)?)
                .map_err(|_| HeaderError::Number(Field::Group))?,
        })
    }
}

/// What stands before the NULs that fill a field. Something after a NUL would be read by some and not by others.
fn text(block: &Block, range: std::ops::Range<usize>, field: Field) -> Result<&[u8], HeaderError> {
    let bytes = &block[range];
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (text, rest) = bytes.split_at(end);
    if rest.iter().all(|byte| *byte == 0) { Ok(text) } else { Err(HeaderError::AfterNul(field)) }
}

/// The sum of all bytes, with the field for the sum itself as spaces.
fn checksum(block: &Block) -> u32 {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u32::from(*byte)).sum::<u32>();
    sum(&block[..CHECKSUM.start]) + sum(&block[CHECKSUM.end..]) + 8 * u32::from(b' ')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header() -> Block {
        Fields {
            kind: Kind::File,
            prefix: b"",
            name: b"a",
            link: b"",
            mode: 0o644,
            size: 3,
            seconds: 7,
            uid: 0,
            gid: 0,
        }
        .encode()
    }

    /// The header with the checksum that belongs to it.
    fn signed(mut block: Block) -> Block {
        let sum = checksum(&block);
        number::write_octal(&mut block[CHECKSUM.start..CHECKSUM.end - 1], sum.into());
        block
    }

    #[test]
    fn wrong_headers_are_named() {
        let changed = |index: usize, bytes: &[u8]| {
            let mut block = header();
            block[index..index + bytes.len()].copy_from_slice(bytes);
            Header::decode(&signed(block)).map(|_| ())
        };
        assert_eq!(changed(0, b"b"), Ok(()));
        assert_eq!(changed(5, b"b"), Err(HeaderError::AfterNul(Field::Name)));
        assert_eq!(changed(350, b"b"), Err(HeaderError::AfterNul(Field::Name)));
        assert_eq!(changed(160, b"b"), Err(HeaderError::AfterNul(Field::Link)));
        assert_eq!(changed(124, b"-1"), Err(HeaderError::Number(Field::Size)));
        assert_eq!(changed(124, &[0xff; 12]), Err(HeaderError::Number(Field::Size)));
        assert_eq!(changed(KIND, b"S"), Err(HeaderError::UnknownKind(b'S')));
        assert_eq!(changed(257, b"x"), Err(HeaderError::Magic));
        let mut block = header();
        block[0] = b'b';
        assert_eq!(Header::decode(&block), Err(HeaderError::Checksum));
    }

    proptest! {
        #[test]
        fn headers_come_back(
            name in proptest::collection::vec(1_u8.., 0..100),
            prefix in proptest::collection::vec(1_u8.., 0..155),
            (uid, gid) in (0..=0o777_7777_u64, 0..=0o777_7777_u64),
            (mode, size, seconds) in (0..=0o7777_u32, 0..=number::LARGEST_OCTAL, 0..=number::LARGEST_OCTAL),
        ) {
            let (kind, prefix_text) = (Kind::Directory, &prefix[..]);
            let fields = Fields { kind, prefix: prefix_text, name: &name, link: b"l", mode, size, seconds, uid, gid };
            let mut whole = prefix.clone();
            if !whole.is_empty() {
                whole.push(b'/');
            }
            whole.extend_from_slice(&name);
            let expected = Header {
                kind: Kind::Directory,
                name: whole,
                link: b"l".to_vec(),
                mode,
                size,
                seconds: i64::try_from(seconds).unwrap(),
                uid,
                gid,
            };
            prop_assert_eq!(Header::decode(&fields.encode()), Ok(expected));
        }
    }
}
