//! The entries of an archive, with what extended headers say of them already put in. Nothing here touches a file.

use std::io::Read;

use crate::block::{BLOCK, Header, Kind};
use crate::error::{HeaderError, UnpackError};
use crate::extended::Extended;
use crate::limits::{Limit, Limits};
use crate::moment::Moment;
use crate::name::{Name, NameError};

use super::source::Source;

/// Room in an extended header for what is not a name: times, owners, labels.
const OTHER_RECORDS: usize = 64 * 1024;

/// As much of a wrong name as an error keeps.
const SHOWN: usize = 256;

/// One entry.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Name,
    pub(super) mode: u32,
    pub(super) modified: Moment,
    pub(super) content: Content,
}

/// What an entry is.
#[derive(Debug)]
pub(super) enum Content {
    /// A file; so many bytes follow in the stream.
    File(u64),
    Directory,
    SymbolicLink(Vec<u8>),
    HardLink(Name),
}

/// What came before an entry to be put into it.
#[derive(Debug, Default)]
struct Ahead {
    extended: Option<Extended>,
    long_name: Option<Vec<u8>>,
    long_link: Option<Vec<u8>>,
}

impl Ahead {
    fn is_empty(&self) -> bool {
        self.extended.is_none() && self.long_name.is_none() && self.long_link.is_none()
    }
}

/// Reads entries from a stream.
#[derive(Debug)]
pub(super) struct Entries<'a, R> {
    pub(super) source: Source<R>,
    limits: &'a Limits,
    seen: u64,
    bytes: u64,
    begun: bool,
}

impl<'a, R: Read> Entries<'a, R> {
    pub(super) const fn new(source: Source<R>, limits: &'a Limits) -> Self {
        Self { source, limits, seen: 0, bytes: 0, begun: false }
    }

    /// The next entry; none at the end of the archive. The contents of the last one have been read.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, UnpackError> {
        let mut ahead = Ahead::default();
        loop {
            let block = self.source.block()?;
            if block == [0; BLOCK] {
                return if ahead.is_empty() {
                    self.source.end().map(|()| None)
                } else {
                    Err(HeaderError::Stray.into())
                };
            }
            let header = Header::decode(&block).map_err(|error| match error {
                HeaderError::Magic if !self.begun => UnpackError::NotTar(likeness(&block)),
                error => error.into(),
            })?;
            self.begun = true;
            match header.kind {
                Kind::Global if ahead.is_empty() => {
                    self.count(&header.name)?;
                    Extended::check_global(&self.body(&header)?)?;
                }
                Kind::Extended if ahead.extended.is_none() => {
                    ahead.extended = Some(Extended::decode(&self.body(&header)?)?);
                }
                Kind::LongName if ahead.long_name.is_none() => ahead.long_name = Some(self.long(&header)?),
                Kind::LongLink if ahead.long_link.is_none() => ahead.long_link = Some(self.long(&header)?),
                Kind::Global | Kind::Extended | Kind::LongName | Kind::LongLink => {
                    return Err(HeaderError::Stray.into());
                }
                Kind::File | Kind::HardLink | Kind::SymbolicLink | Kind::Directory | Kind::Special(_) => {
                    return self.entry(header, ahead).map(Some);
                }
            }
        }
    }

    /// Puts together what the headers say.
    fn entry(&mut self, header: Header, ahead: Ahead) -> Result<Entry, UnpackError> {
        let extended = ahead.extended.unwrap_or_default();
        let name = one_of(extended.name, ahead.long_name)?.unwrap_or(header.name);
        let link = one_of(extended.link, ahead.long_link)?.unwrap_or(header.link);
        let size = extended.size.unwrap_or(header.size);
        self.count(&name)?;
        let parsed = self.name(&name)?;
        let kind = match header.kind {
            // How directories were written before there was a kind for them.
            Kind::File if name.ends_with(b"/") => Kind::Directory,
            kind => kind,
        };
        if kind != Kind::File && size != 0 {
            return Err(HeaderError::Sized.into());
        }
        let content = match kind {
            Kind::Directory => Content::Directory,
            Kind::Special(special) => return Err(UnpackError::Special { name: shown(&name), special }),
            _ if parsed.is_root() => {
                return Err(UnpackError::Name { name: shown(&name), why: NameError::Empty });
            }
            Kind::HardLink => Content::HardLink(self.name(&link)?),
            Kind::SymbolicLink => Content::SymbolicLink(self.target(link)?),
            _ => Content::File(self.measure(size, &name)?),
        };
        let whole_seconds = Moment { seconds: header.seconds, nanoseconds: 0 };
        Ok(Entry {
            name: parsed,
            // No program becomes another user by coming out of an archive.
            mode: header.mode & 0o777,
            modified: extended.modified.unwrap_or(whole_seconds),
            content,
        })
    }

    fn name(&self, bytes: &[u8]) -> Result<Name, UnpackError> {
        Name::parse(bytes, self.limits).map_err(|why| match why {
            NameError::Limit(limit) => UnpackError::Limit { name: shown(bytes), limit },
            why => UnpackError::Name { name: shown(bytes), why },
        })
    }

    /// Where a symbolic link leads is its own business: nobody here follows it.
    fn target(&self, bytes: Vec<u8>) -> Result<Vec<u8>, UnpackError> {
        if bytes.len() > self.limits.name_length {
            return Err(UnpackError::Limit { name: shown(&bytes), limit: Limit::NameLength });
        }
        let why = match bytes.as_slice() {
            [] => NameError::Empty,
            bytes if bytes.contains(&0) => NameError::Nul,
            _ => return Ok(bytes),
        };
        Err(UnpackError::Name { name: shown(&bytes), why })
    }

    fn count(&mut self, name: &[u8]) -> Result<(), UnpackError> {
        if self.seen >= self.limits.entries {
            return Err(UnpackError::Limit { name: shown(name), limit: Limit::Entries });
        }
        self.seen += 1;
        Ok(())
    }

    fn measure(&mut self, size: u64, name: &[u8]) -> Result<u64, UnpackError> {
        match self.bytes.checked_add(size).filter(|bytes| *bytes <= self.limits.bytes) {
            Some(bytes) => self.bytes = bytes,
            None => return Err(UnpackError::Limit { name: shown(name), limit: Limit::Bytes }),
        }
        Ok(size)
    }

    /// What follows a header that speaks of another.
    fn body(&mut self, header: &Header) -> Result<Vec<u8>, UnpackError> {
        let most = self.limits.name_length.saturating_mul(2).saturating_add(OTHER_RECORDS);
        let size = usize::try_from(header.size).ok().filter(|size| *size <= most);
        let limit = Limit::ExtendedHeader;
        let size = size.ok_or_else(|| UnpackError::Limit { name: shown(&header.name), limit })?;
        self.source.whole(size)
    }

    /// A name in GNU's way, which ends with a NUL.
    fn long(&mut self, header: &Header) -> Result<Vec<u8>, UnpackError> {
        let mut name = self.body(header)?;
        if name.last() == Some(&0) {
            name.pop();
        }
        Ok(name)
    }
}

fn one_of<T>(one: Option<T>, other: Option<T>) -> Result<Option<T>, HeaderError> {
    match (one, other) {
        (Some(_), Some(_)) => Err(HeaderError::Ambiguous),
        (one, other) => Ok(one.or(other)),
    }
}

/// A name for an error.
fn shown(name: &[u8]) -> Vec<u8> {
    name.iter().take(SHOWN).copied().collect()
}

/// What it is that is not tar.
fn likeness(bytes: &[u8]) -> &'static str {
    match bytes {
        [0x1f, 0x8b, ..] => "gzip data",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd data",
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => "xz data",
        [b'B', b'Z', b'h', ..] => "bzip2 data",
        [b'P', b'K', 3, 4, ..] => "a zip file",
        _ => "something else",
    }
}
