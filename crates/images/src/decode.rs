//! The bytes of a layer, unpacked: gzip, zstd or plain, by a thread of their own that also takes their digest. A layer
//! that becomes far larger than it came is refused before it has filled anything.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Cursor, Read};
use std::os::unix::fs::FileExt as _;
use std::thread::JoinHandle;

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use crate::digest::{Digest, Hasher};
use crate::pieces::{Pieces, Sender};
use crate::weaken::Guard;

/// As much as is passed on at once.
const PIECE: usize = 256 * 1024;
/// As many times its own size as a layer may become. What compilers and package managers write stays below a hundred.
const RATIO: u64 = 400;
/// Whatever is smaller than that harms nobody.
const HARMLESS: u64 = 1 << 30;

/// A layer that becomes too large.
#[derive(Debug, thiserror::Error)]
#[error("it becomes more than {RATIO} times as large as it came")]
pub(crate) struct Bomb;

/// What packed a file that is none of ours to read, by its first bytes.
pub(crate) fn foreign(file: &File) -> io::Result<Option<&'static str>> {
    let mut start = [0; 6];
    let count = file.read_at(&mut start, 0)?;
    Ok(match &start[..count] {
        [0xfd, b'7', b'z', b'X', b'Z', 0] => Some("xz"),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some("bzip2"),
        _ => None,
    })
}

/// A layer that is being decoded.
pub(crate) struct Decoded {
    pieces: Option<Pieces>,
    thread: Option<JoinHandle<Digest>>,
}

impl Decoded {
    /// Begins to decode a file. How it is packed is seen by its first bytes: registries have been wrong about it.
    pub(crate) fn open(file: File) -> io::Result<Self> {
        let most = match Guard::Size.stands() {
            true => file.metadata()?.len().saturating_mul(RATIO).max(HARMLESS),
            false => u64::MAX,
        };
        let mut input = BufReader::with_capacity(PIECE, file);
        let start = input.fill_buf()?;
        let decoder: Box<dyn Read + Send> = match start {
            [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(input)),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(Frames::new(input)),
            // A frame that says something about the others may come first.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Box::new(Frames::new(input)),
            _ => Box::new(input),
        };
        let (sender, pieces) = Pieces::new();
        let thread = std::thread::Builder::new()
            .name("decode".to_owned())
            .spawn(move || pump(decoder, &sender, most))?;
        Ok(Self { pieces: Some(pieces), thread: Some(thread) })
    }

    /// The digest of all that there was; whoever asks has read to the end.
    pub(crate) fn finish(mut self) -> io::Result<Digest> {
        io::copy(&mut self, &mut io::sink())?;
        let thread = self.thread.take().ok_or(io::ErrorKind::Other)?;
        thread.join().map_err(|_| io::Error::other("the thread that decodes was lost"))
    }
}

impl Read for Decoded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.pieces.as_mut().map_or(Ok(0), |pieces| pieces.read(buffer))
    }
}

impl Drop for Decoded {
    fn drop(&mut self) {
        // Without a reader the thread ends with the next piece.
        self.pieces = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn pump(mut decoder: Box<dyn Read + Send>, sender: &Sender, most: u64) -> Digest {
    let mut hasher = Hasher::default();
    let mut total = 0;
    loop {
        let mut piece = vec![0; PIECE];
        let mut filled = 0;
        let failed = loop {
            match decoder.read(&mut piece[filled..]) {
                Ok(0) => break None,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Some(error),
            }
            if filled == PIECE {
                break None;
            }
        };
        piece.truncate(filled);
        hasher.update(&piece);
        total += filled as u64;
        let is_last = filled < PIECE;
        let sent = if piece.is_empty() { Ok(()) } else { sender.send(Ok(piece)) };
        let failed = failed.or_else(|| (total > most).then(|| io::Error::other(Bomb)));
        if let Some(error) = failed {
            let _ = sender.send(Err(error));
            return hasher.finish();
        }
        if is_last || sent.is_err() {
            return hasher.finish();
        }
    }
}

/// A stream of zstd frames, as some programs write a layer: several, and some that hold nothing.
struct Frames<R: Read> {
    state: State<R>,
}

/// What is read of a frame to see which it is stands before the rest.
type Begun<R> = io::Chain<Cursor<[u8; 4]>, R>;

enum State<R: Read> {
    Between(R),
    Within(Box<StreamingDecoder<Begun<R>, FrameDecoder>>),
    Lost,
}

impl<R: Read> Frames<R> {
    const fn new(input: R) -> Self {
        Self { state: State::Between(input) }
    }

    /// What comes after a frame; none at the end of all.
    fn begin(mut input: R) -> io::Result<(State<R>, bool)> {
        let mut magic = [0; 4];
        match input.read(&mut magic[..1])? {
            0 => return Ok((State::Between(input), true)),
            _ => input.read_exact(&mut magic[1..])?,
        }
        if matches!(magic, [0x50..=0x5f, 0x2a, 0x4d, 0x18]) {
            let mut length = [0; 4];
            input.read_exact(&mut length)?;
            let length = u64::from(u32::from_le_bytes(length));
            if io::copy(&mut input.by_ref().take(length), &mut io::sink())? != length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            return Ok((State::Between(input), false));
        }
        let decoder = StreamingDecoder::new(Cursor::new(magic).chain(input)).map_err(io::Error::other)?;
        Ok((State::Within(Box::new(decoder)), false))
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.state, State::Lost) {
                State::Lost => return Err(io::ErrorKind::BrokenPipe.into()),
                State::Within(mut decoder) => {
                    let count = decoder.read(buffer)?;
                    if count > 0 {
                        self.state = State::Within(decoder);
                        return Ok(count);
                    }
                    self.state = State::Between(decoder.into_inner().into_inner().1);
                }
                State::Between(input) => {
                    let (state, is_end) = Self::begin(input)?;
                    self.state = state;
                    if is_end {
                        return Ok(0);
                    }
                }
            }
        }
    }
}
