//! Bodies on their way. Where one ends is said by its head, or by its chunks; these are read strictly and written anew.

use std::io::Write as _;

use super::end::{End, Fault};
use super::fields::{Fields, Framing, Malformed, find_end};
use super::source::Source;

/// How much is taken at a time.
const PIECE: usize = 64 * 1024;

/// The longest size of a chunk: what fits into 64 bits.
const LONGEST_SIZE: usize = 16;

/// The longest trailers.
const LONGEST_TRAILERS: usize = 8 * 1024;

/// Passes a head on, and the body that belongs to it. What is here already goes together.
pub(super) async fn pass_on(
    from: &mut Source<'_>,
    to: End<'_>,
    mut head: Vec<u8>,
    framing: Option<Framing>,
) -> Result<(), Fault> {
    match framing {
        None => to.write_all(&head).await,
        Some(Framing::Exactly(count)) => {
            let left = count - from.take(count, &mut head);
            to.write_all(&head).await?;
            drop(head);
            carry_exactly(from.end, to, left).await
        }
        Some(Framing::Chunked) => carry_chunks(from, to, head).await,
        Some(Framing::UntilEnd) => {
            from.take(u64::MAX, &mut head);
            to.write_all(&head).await?;
            drop(head);
            carry(from.end, to, u64::MAX).await.map(drop)
        }
    }
}

/// Carries so many bytes, and never one more: that would be the next message's.
async fn carry_exactly(from: End<'_>, to: End<'_>, count: u64) -> Result<(), Fault> {
    match carry(from, to, count).await? {
        0 => Ok(()),
        _ => Err(Fault::Gone(from.party)),
    }
}

/// Carries no more than so many bytes: how many are left to be carried at the end. There is a buffer while bytes move.
async fn carry(from: End<'_>, to: End<'_>, most: u64) -> Result<u64, Fault> {
    let mut left = most;
    while left > 0 {
        from.readable().await?;
        let mut buffer = vec![0; from.meter().piece(room(left))];
        while left > 0 {
            let room = room(left).min(buffer.len());
            let buffer = buffer.get_mut(..room).unwrap_or_default();
            match from.try_read(buffer)? {
                None => break,
                Some(0) => return Ok(left),
                Some(count) => {
                    to.write_all(&buffer[..count]).await?;
                    left -= count as u64;
                    // Whoever waits holds no buffer.
                    if from.meter().is_paced() {
                        break;
                    }
                }
            }
        }
    }
    Ok(0)
}

fn room(left: u64) -> usize {
    usize::try_from(left).unwrap_or(PIECE).min(PIECE)
}

async fn carry_chunks(from: &mut Source<'_>, to: End<'_>, mut out: Vec<u8>) -> Result<(), Fault> {
    let mut chunks = Chunks::Size;
    loop {
        let used = chunks.pass(from.rest(), &mut out).map_err(|_| Fault::Malformed(from.end.party))?;
        from.consume(used);
        to.write_all(&out).await?;
        out = Vec::new();
        match chunks {
            Chunks::Done => return Ok(()),
            Chunks::Data(left) if left > PIECE as u64 => {
                carry_exactly(from.end, to, left).await?;
                chunks = Chunks::DataEnd;
            }
            _ if from.fill(PIECE).await? == 0 => return Err(Fault::Gone(from.end.party)),
            _ => {}
        }
    }
}

/// Where in a body of chunks its reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunks {
    /// Before the size of a chunk.
    Size,
    /// In a chunk of which so much is left.
    Data(u64),
    /// Before the end of its line.
    DataEnd,
    /// Behind the last one, where trailers can be. So many bytes hold no end of them.
    Trailers(usize),
    /// Behind everything.
    Done,
}

impl Chunks {
    /// Reads on and writes the same chunks to `out`: how much was read. What is left must be here again the next time.
    pub(super) fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, Malformed> {
        let mut used = 0;
        loop {
            let rest = bytes.get(used..).unwrap_or_default();
            match *self {
                Self::Size => {
                    let Some((size, length)) = read_size(rest)? else { return Ok(used) };
                    used += length;
                    *self = if size == 0 { Self::Trailers(0) } else { Self::Data(size) };
                    if size > 0 {
                        // Nothing that is written to memory fails.
                        let _ = write!(out, "{size:x}\r\n");
                    }
                }
                Self::Data(left) => {
                    let count = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    out.extend(&rest[..count]);
                    used += count;
                    let left = left - count as u64;
                    *self = if left == 0 { Self::DataEnd } else { Self::Data(left) };
                    if left > 0 {
                        return Ok(used);
                    }
                }
                Self::DataEnd => match rest {
                    [] | [b'\r'] => return Ok(used),
                    [b'\r', b'\n', ..] => {
                        out.extend(b"\r\n");
                        used += 2;
                        *self = Self::Size;
                    }
                    _ => return Err(Malformed),
                },
                Self::Trailers(searched) => {
                    let Some(length) = read_trailers(rest, searched)? else {
                        *self = Self::Trailers(rest.len());
                        return Ok(used);
                    };
                    used += length;
                    out.extend(b"0\r\n\r\n");
                    *self = Self::Done;
                }
                Self::Done => return Ok(used),
            }
        }
    }
}

/// The size of a chunk, and how long its line is; none while that is not all here. Nothing but digits stands on it:
/// what extensions mean, nobody agrees on.
fn read_size(bytes: &[u8]) -> Result<Option<(u64, usize)>, Malformed> {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_hexdigit()).take(LONGEST_SIZE + 1).count();
    let (size, end) = bytes.split_at(digits);
    if digits > LONGEST_SIZE || (digits == 0 && !bytes.is_empty()) {
        return Err(Malformed);
    }
    match end {
        [] | [b'\r'] => Ok(None),
        [b'\r', b'\n', ..] => {
            let size = std::str::from_utf8(size).ok().and_then(|size| u64::from_str_radix(size, 16).ok());
            Ok(Some((size.ok_or(Malformed)?, digits + 2)))
        }
        _ => Err(Malformed),
    }
}

/// How long the trailers are, with the empty line behind them; none while that is not here. They are read like the fields
/// of a head, and dropped: nobody was told that there would be any.
fn read_trailers(bytes: &[u8], searched: usize) -> Result<Option<usize>, Malformed> {
    if bytes.starts_with(b"\r\n") {
        return Ok(Some(2));
    }
    let trailers = &bytes[..bytes.len().min(LONGEST_TRAILERS)];
    match find_end(trailers, searched.min(trailers.len()))? {
        None if bytes.len() >= LONGEST_TRAILERS => Err(Malformed),
        None => Ok(None),
        Some(end) if Fields::parse(&bytes[..end])?.decide() => Err(Malformed),
        Some(end) => Ok(Some(end)),
    }
}

#[cfg(test)]
mod tests;
