//! Headers that we write: what goes into their fields, and whether it fits.

use super::{
    BLOCK, Block, CHECKSUM, GROUP, KIND, Kind, LINK, MAGIC, MODE, NAME, PREFIX, SIZE, TIME, USER, USTAR,
    checksum,
};
use crate::number;

/// What goes into a header that we write; all of it fits.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    pub(crate) kind: Kind,
    pub(crate) prefix: &'a [u8],
    pub(crate) name: &'a [u8],
    pub(crate) link: &'a [u8],
    pub(crate) mode: u32,
    pub(crate) size: u64,
    pub(crate) seconds: u64,
    pub(crate) uid: u64,
    pub(crate) gid: u64,
}

impl Fields<'_> {
    /// The header.
    pub(crate) fn encode(&self) -> Block {
        let mut block = [0; BLOCK];
        let mut put = |range: std::ops::Range<usize>, bytes: &[u8]| {
            let length = bytes.len().min(range.len());
            block[range.start..range.start + length].copy_from_slice(&bytes[..length]);
        };
        put(NAME, self.name);
        put(PREFIX, self.prefix);
        put(LINK, self.link);
        put(MAGIC, USTAR);
        put(CHECKSUM.start..CHECKSUM.end, b" ");
        block[KIND] = self.kind.to_byte();
        number::write_octal(&mut block[MODE], u64::from(self.mode & 0o7777));
        number::write_octal(&mut block[USER], self.uid);
        number::write_octal(&mut block[GROUP], self.gid);
        number::write_octal(&mut block[SIZE], self.size);
        number::write_octal(&mut block[TIME], self.seconds);
        let sum = checksum(&block);
        // Six digits, a NUL and a space, as everyone has it.
        number::write_octal(&mut block[CHECKSUM.start..CHECKSUM.end - 1], sum.into());
        block[CHECKSUM.end - 1] = b' ';
        block
    }
}

/// The largest number that the field of an owner holds.
pub(crate) const LARGEST_OWNER: u64 = 0o777_7777;

/// A name as prefix and name, where it fits into the two fields.
pub(crate) fn split(name: &[u8]) -> Option<(&[u8], &[u8])> {
    if name.len() <= NAME.len() {
        return Some((&[], name));
    }
    // The last byte of a directory's name is a slash, which cannot be the one between the two.
    let earliest = name.len().checked_sub(NAME.len() + 1)?;
    let slash = (earliest.max(1)..name.len() - 1).find(|index| name[*index] == b'/')?;
    (slash <= PREFIX.len()).then(|| (&name[..slash], &name[slash + 1..]))
}

/// Whether a link's target fits into its field.
pub(crate) fn link_fits(link: &[u8]) -> bool {
    link.len() <= LINK.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_where_they_fit() {
        assert_eq!(split(b"a/b"), Some((&b""[..], &b"a/b"[..])));
        let long = [&[b'a'; 90][..], b"/", &[b'b'; 90]].concat();
        assert_eq!(split(&long), Some((&long[..90], &long[91..])));
        let directory = [&[b'a'; 155][..], b"/", &[b'b'; 99], b"/"].concat();
        assert_eq!(split(&directory), Some((&directory[..155], &directory[156..])));
        assert_eq!(split(&[b'a'; 101]), None);
        assert_eq!(split(&[&[b'a'; 100][..], b"/"].concat()), None);
        assert_eq!(split(&[&[b'a'; 156][..], b"/b"].concat()), None);
        assert_eq!(split(&[b"/", &[b'a'; 100][..]].concat()), None);
    }
}
