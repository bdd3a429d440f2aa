//! The request, after its length. Not a byte more is read: what follows belongs to a file.

use std::io::Read;

use prost::Message;
use rustix::io::Errno;
use wire::{FILE_REQUEST_LIMIT, FileAsk, FileCode, FileRequest, PATH_LIMIT};

use super::failure::Failure;

/// Reads the one request.
pub(super) fn read(input: &mut impl Read) -> Result<FileAsk, Failure> {
    let mut bytes = vec![0; length(input)?];
    exactly(input, &mut bytes)?;
    let request =
        FileRequest::decode(bytes.as_slice()).map_err(|_| malformed("the request is no message"))?;
    let ask = request.ask.ok_or_else(|| malformed("the request asks for nothing"))?;
    paths(&ask).into_iter().try_for_each(check)?;
    Ok(ask)
}

/// The length before a message, at seven bits a byte.
fn length(input: &mut impl Read) -> Result<usize, Failure> {
    let mut length = 0;
    for shift in [0, 7, 14] {
        let mut byte = [0];
        exactly(input, &mut byte)?;
        length |= usize::from(byte[0] & 0x7f) << shift;
        if byte[0] & 0x80 == 0 && length <= FILE_REQUEST_LIMIT {
            return Ok(length);
        }
    }
    Err(malformed("the request is too long"))
}

fn exactly(input: &mut impl Read, bytes: &mut [u8]) -> Result<(), Failure> {
    input.read_exact(bytes).map_err(|_| malformed("the request is cut off"))
}

fn malformed(detail: &str) -> Failure {
    Failure::new(FileCode::Refused, b"").with_errno(Errno::INVAL).with_detail(detail)
}

/// Every path and name of a request that must be one.
fn paths(ask: &FileAsk) -> Vec<&[u8]> {
    match ask {
        FileAsk::Read(ask) => vec![&ask.path],
        FileAsk::Write(ask) => vec![&ask.path],
        FileAsk::Stat(ask) => vec![&ask.path],
        FileAsk::List(ask) => vec![&ask.path],
        FileAsk::MakeDirectory(ask) => vec![&ask.path],
        FileAsk::Move(ask) => vec![&ask.from, &ask.to],
        FileAsk::Remove(ask) => vec![&ask.path],
        FileAsk::Watch(ask) => vec![&ask.path],
        FileAsk::Pack(ask) => vec![&ask.path],
        FileAsk::Unpack(ask) => vec![&ask.path],
    }
}

fn check(path: &[u8]) -> Result<(), Failure> {
    if path.len() > PATH_LIMIT {
        return Err(Failure::system(path, Errno::NAMETOOLONG));
    }
    if path.is_empty() || path.contains(&0) {
        return Err(Failure::new(FileCode::Refused, path)
            .with_errno(Errno::INVAL)
            .with_detail("this is no path"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use wire::{FileFailed, StatFile};

    use super::*;

    fn stat(path: &[u8]) -> Vec<u8> {
        let ask = FileAsk::Stat(StatFile { path: Bytes::copy_from_slice(path), follow: false });
        FileRequest { ask: Some(ask) }.encode_length_delimited_to_vec()
    }

    fn code(bytes: &[u8]) -> Result<(), i32> {
        read(&mut &*bytes).map(drop).map_err(|failure| FileFailed::from(failure).code)
    }

    #[test]
    fn nothing_is_read_that_follows() {
        let bytes = [&stat(b"/a")[..], b"contents"].concat();
        let mut rest = bytes.as_slice();
        read(&mut rest).unwrap();
        assert_eq!(rest, b"contents");
    }

    #[test]
    fn nonsense_is_refused() {
        let refused = Err(FileCode::Refused as i32);
        for bytes in
            [&b""[..], b"\xff\xff\xff\xff\xff", b"\xff\xff\x7f", b"\x00", b"\x05ab", b"\x02\xff\xff", b"\x80"]
        {
            assert_eq!(code(bytes), refused, "{}", bytes.escape_ascii());
        }
        assert_eq!(code(&stat(b"")), refused);
        assert_eq!(code(&stat(b"a\0b")), refused);
        assert_eq!(code(&stat(&[b'a'; PATH_LIMIT + 1])), Err(FileCode::TooLarge as i32));
        assert_eq!(code(&stat(&[b'a'; PATH_LIMIT])), Ok(()));
    }
}
