//! The base as a sorted list: every path with its mode and blob, as `git ls-files` printed it once. A layer is read
//! against it without asking git for each name.

use std::io;
use std::ops::Range;
use std::path::Path;

/// What a path is in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) path: Vec<u8>,
    /// As git writes it: `100644`, `100755`, `120000` or `160000`.
    pub(crate) mode: String,
    pub(crate) object: String,
    /// Whether git was told not to look at the file.
    pub(crate) is_flagged: bool,
}

/// All paths of the base.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    entries: Vec<Entry>,
}

impl Listing {
    /// Reads what `git ls-files -z -s -t -v` printed.
    pub(crate) fn parse(printed: &[u8]) -> io::Result<Self> {
        let mut entries = Vec::new();
        for line in printed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            entries.push(parse_line(line).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?);
        }
        entries.sort_by(|one: &Entry, other| one.path.cmp(&other.path));
        Ok(Self { entries })
    }

    /// Reads it from a file.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        Self::parse(&std::fs::read(path)?)
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn get(&self, path: &[u8]) -> Option<&Entry> {
        let found = self.entries.binary_search_by(|entry| entry.path.as_slice().cmp(path)).ok()?;
        self.entries.get(found)
    }

    /// What lies below a directory; all for an empty path.
    pub(crate) fn below(&self, directory: &[u8]) -> &[Entry] {
        self.entries.get(self.range_below(directory)).unwrap_or_default()
    }

    fn range_below(&self, directory: &[u8]) -> Range<usize> {
        if directory.is_empty() {
            return 0..self.entries.len();
        }
        let mut bound = directory.to_vec();
        bound.push(b'/');
        let begin = self.entries.partition_point(|entry| entry.path.as_slice() < bound.as_slice());
        // The byte after the separator: whatever begins with the directory's name and one is before it.
        if let Some(last) = bound.last_mut() {
            *last = b'/' + 1;
        }
        let end = self.entries.partition_point(|entry| entry.path.as_slice() < bound.as_slice());
        begin..end
    }
}

/// Whether a path is a file of attributes.
pub(crate) fn is_attributes(path: &[u8]) -> bool {
    path == b".gitattributes" || path.ends_with(b"/.gitattributes")
}

/// `H 100644 <object> 0\t<path>`.
fn parse_line(line: &[u8]) -> Option<Entry> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let (head, path) = (std::str::from_utf8(line.get(..tab)?).ok()?, line.get(tab + 1..)?);
    let mut words = head.split(' ');
    let (tag, mode, object) = (words.next()?, words.next()?, words.next()?);
    Some(Entry {
        path: path.to_vec(),
        mode: mode.to_owned(),
        object: object.to_owned(),
        is_flagged: tag != "H",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_a_directory_is_found() {
        let printed = b"H 100644 aa 0\ta-b\0H 100644 aa 0\ta/x\0h 100644 aa 0\ta/y\0H 100644 aa 0\ta0\0";
        let listing = Listing::parse(printed).unwrap();
        let below: Vec<&[u8]> = listing.below(b"a").iter().map(|entry| entry.path.as_slice()).collect();
        assert_eq!(below, [b"a/x", b"a/y"]);
        assert!(listing.get(b"a/y").unwrap().is_flagged && !listing.get(b"a0").unwrap().is_flagged);
        assert!(
            listing.get(b"a").is_none() && listing.below(b"").len() == 4 && listing.below(b"b").is_empty()
        );
    }
}
