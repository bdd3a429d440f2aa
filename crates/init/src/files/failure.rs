//! Why something was not done, as it is answered.

use std::io;

use bytes::Bytes;
use rustix::io::Errno;
use wire::{FileCode, FileFailed, PATH_LIMIT};

/// The most words of a reason.
const LONGEST_DETAIL: usize = 512;

/// Why something was not done.
#[derive(Debug)]
pub(super) struct Failure {
    code: FileCode,
    errno: i32,
    path: Bytes,
    detail: String,
}

impl Failure {
    /// The kernel refused.
    pub(super) fn system(path: &[u8], errno: Errno) -> Self {
        let code = match errno {
            Errno::NOENT => FileCode::NotFound,
            Errno::PERM | Errno::ACCESS | Errno::ROFS => FileCode::Permission,
            Errno::EXIST => FileCode::Exists,
            Errno::ISDIR => FileCode::IsDirectory,
            Errno::NOTDIR => FileCode::NotDirectory,
            Errno::NOTEMPTY => FileCode::NotEmpty,
            Errno::NAMETOOLONG | Errno::FBIG => FileCode::TooLarge,
            Errno::NOSPC | Errno::DQUOT => FileCode::NoSpace,
            _ => FileCode::Other,
        };
        Self::new(code, path).with_errno(errno)
    }

    /// The same of an error that the standard library brings.
    pub(super) fn stream(path: &[u8], error: &io::Error) -> Self {
        Self::system(path, Errno::from_io_error(error).unwrap_or(Errno::IO))
    }

    /// We refused.
    pub(super) fn new(code: FileCode, path: &[u8]) -> Self {
        let path = Bytes::copy_from_slice(&path[..path.len().min(PATH_LIMIT)]);
        Self { code, errno: 0, path, detail: String::new() }
    }

    pub(super) fn with_errno(self, errno: Errno) -> Self {
        Self { errno: errno.raw_os_error(), ..self }
    }

    /// Says what was wrong. Whatever is not printable was put there by an enemy.
    pub(super) fn with_detail(self, detail: &str) -> Self {
        let printable = |letter: char| if matches!(letter, ' '..='~') { letter } else { '?' };
        Self { detail: detail.chars().map(printable).take(LONGEST_DETAIL).collect(), ..self }
    }
}

impl From<Failure> for FileFailed {
    fn from(failure: Failure) -> Self {
        let Failure { code, errno, path, detail } = failure;
        Self { code: code.into(), errno, path, detail }
    }
}
