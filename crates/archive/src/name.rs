//! Names in an archive, checked at the door: afterwards a name cannot lead out of its directory, whatever it says.

use crate::limits::{Limit, Limits};

/// What is wrong with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It names nothing.
    #[error("the name is empty")]
    Empty,
    /// It begins with a slash.
    #[error("the name is absolute")]
    Absolute,
    /// It has a `..` in it.
    #[error("the name leads upwards")]
    Upwards,
    /// It has a NUL in it.
    #[error("the name has a NUL in it")]
    Nul,
    /// It is too long or too deep.
    #[error("the name is over the limit of {0}")]
    Limit(Limit),
}

/// A relative name without `..`, `.`, NUL, or a slash too many. Empty for the directory itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    bytes: Vec<u8>,
    depth: usize,
}

impl Name {
    /// The directory itself.
    pub(crate) const fn root() -> Self {
        Self { bytes: Vec::new(), depth: 0 }
    }

    /// Reads a name, which must lead nowhere else.
    pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Self, NameError> {
        if bytes.len() > limits.name_length {
            return Err(NameError::Limit(Limit::NameLength));
        }
        match bytes.first() {
            None => return Err(NameError::Empty),
            Some(b'/') => return Err(NameError::Absolute),
            Some(_) if bytes.contains(&0) => return Err(NameError::Nul),
            Some(_) => {}
        }
        let mut name = Self::root();
        for part in bytes.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => continue,
                b".." => return Err(NameError::Upwards),
                part => name.push(part),
            }
            if name.depth > limits.depth {
                return Err(NameError::Limit(Limit::Depth));
            }
        }
        Ok(name)
    }

    /// Adds a part, which is a plain name.
    pub(crate) fn push(&mut self, part: &[u8]) {
        if !self.bytes.is_empty() {
            self.bytes.push(b'/');
        }
        self.bytes.extend_from_slice(part);
        self.depth += 1;
    }

    /// The same with another first part.
    pub(crate) fn with_top(&self, top: &[u8]) -> Self {
        let mut name = Self::root();
        for part in std::iter::once(top).chain(self.parts().skip(1)) {
            name.push(part);
        }
        name
    }

    /// Whether it is the directory itself.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.bytes.is_empty()
    }

    /// As it is written.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many names stand between its slashes.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// What stands between the slashes.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.split(|byte| *byte == b'/').filter(|part| !part.is_empty())
    }

    /// The directory and the name in it.
    #[must_use]
    pub fn split(&self) -> (&[u8], &[u8]) {
        match self.bytes.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&self.bytes[..slash], &self.bytes[slash + 1..]),
            None => (&[], &self.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { bytes: 0, entries: 0, name_length: 20, depth: 3 };

    fn parse(text: &[u8]) -> Result<Vec<u8>, NameError> {
        Name::parse(text, &LIMITS).map(|name| name.bytes)
    }

    #[test]
    fn names_lose_what_means_nothing() {
        assert_eq!(parse(b"./a//b/./c/").as_deref(), Ok(&b"a/b/c"[..]));
        assert_eq!(parse(b"./").as_deref(), Ok(&b""[..]));
        assert_eq!(parse(b"..a/b..").as_deref(), Ok(&b"..a/b.."[..]));
        assert_eq!(parse(b"\xff\n").as_deref(), Ok(&b"\xff\n"[..]));
    }

    #[test]
    fn names_that_lead_away_are_refused() {
        assert_eq!(parse(b""), Err(NameError::Empty));
        assert_eq!(parse(b"/a"), Err(NameError::Absolute));
        assert_eq!(parse(b"a/../b"), Err(NameError::Upwards));
        assert_eq!(parse(b".."), Err(NameError::Upwards));
        assert_eq!(parse(b"a\0b"), Err(NameError::Nul));
    }

    #[test]
    fn names_are_bounded() {
        assert_eq!(parse(b"a/b/c").as_deref(), Ok(&b"a/b/c"[..]));
        assert_eq!(parse(b"a/b/c/d"), Err(NameError::Limit(Limit::Depth)));
        assert_eq!(parse(&[b'a'; 20]).map(|name| name.len()), Ok(20));
        assert_eq!(parse(&[b'a'; 21]), Err(NameError::Limit(Limit::NameLength)));
    }

    #[test]
    fn a_name_is_taken_apart() {
        let name = Name::parse(b"a/b/c", &LIMITS).unwrap();
        assert_eq!(name.split(), (&b"a/b"[..], &b"c"[..]));
        assert_eq!(name.with_top(b"x").as_bytes(), b"x/b/c");
        assert_eq!(Name::parse(b"a", &LIMITS).unwrap().split(), (&b""[..], &b"a"[..]));
    }
}
