//! The entries of an archive, with what extended headers say of them already put in. Nothing here touches a file.

use std::io::Read;

use crate::block::{BLOCK, Header, Kind, Special};
use crate::error::{HeaderError, UnpackError};
use crate::extended::{Attribute, Extended};
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
pub struct Entry {
    /// Where it goes.
    pub name: Name,
    /// Its access rights, with those to become another user.
    pub mode: u32,
    /// The number of its owner.
    pub uid: u64,
    /// The number of its group.
    pub gid: u64,
    /// When it was last written.
    pub modified: Moment,
    /// Its extended attributes.
    pub attributes: Vec<Attribute>,
    /// What it is.
    pub content: Content,
}

/// What an entry is.
#[derive(Debug)]
pub enum Content {
    /// A file; so many bytes follow in the stream.
    File(u64),
    /// A directory.
    Directory,
    /// A symbolic link, and where it leads.
    SymbolicLink(Vec<u8>),
    /// A second name of an entry.
    HardLink(Name),
    /// What is neither.
    Special(Special),
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
pub struct Entries<'a, R> {
    pub(super) source: Source<R>,
    limits: &'a Limits,
    seen: u64,
    bytes: u64,
    begun: bool,
    ending: Ending,
}

/// How an archive may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// With blocks of zeros, as it should.
    Marked,
    /// Also with the stream, between two entries: whoever reads knows by a digest that it is whole.
    WithStream,
}

impl<'a, R: Read> Entries<'a, R> {
    /// Reads what `input` says, within limits. It may end without a mark, as some programs write archives: the caller
    /// makes sure that it is whole.
    #[must_use]
    pub fn of(input: R, limits: &'a Limits) -> Self {
        Self { ending: Ending::WithStream, ..Self::new(Source::new(input), limits) }
    }

    pub(super) const fn new(source: Source<R>, limits: &'a Limits) -> Self {
        Self { source, limits, seen: 0, bytes: 0, begun: false, ending: Ending::Marked }
    }

    /// Gives the contents of the file that was read last, piece by piece; they have to be had before the next entry.
    pub fn contents<E: From<UnpackError>>(
        &mut self,
        size: u64,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut left = size;
        while left > 0 {
            let piece = self.source.contents(left, size - left)?;
            left -= piece.len() as u64;
            take(piece)?;
        }
        match self.source.padding(size) {
            Err(UnpackError::Truncated) if self.ending == Ending::WithStream => Ok(()),
            padded => Ok(padded?),
        }
    }

    /// The next entry; none at the end of the archive. The contents of the last one have been read.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator could not say what is wrong with the archive"
    )]
    pub fn next(&mut self) -> Result<Option<Entry>, UnpackError> {
        let mut ahead = Ahead::default();
        loop {
            if self.ending == Ending::WithStream && ahead.is_empty() && self.source.is_at_end()? {
                return Ok(None);
            }
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
            _ if parsed.is_root() => {
                return Err(UnpackError::Name { name: shown(&name), why: NameError::Empty });
            }
            Kind::Special(special) => Content::Special(special),
            Kind::HardLink => Content::HardLink(self.name(&link)?),
            Kind::SymbolicLink => Content::SymbolicLink(self.target(link)?),
            _ => Content::File(self.measure(size, &name)?),
        };
        let whole_seconds = Moment { seconds: header.seconds, nanoseconds: 0 };
        Ok(Entry {
            name: parsed,
            mode: header.mode & 0o7777,
            uid: extended.uid.unwrap_or(header.uid),
            gid: extended.gid.unwrap_or(header.gid),
            attributes: extended.attributes,
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
