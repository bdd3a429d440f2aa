//! What has come from one end and not been passed on. It is held only while it is there: an end that is silent costs
//! nothing.

use std::time::Duration;

use tokio::time::timeout;

use super::end::{End, Fault};
use super::fields::{LONGEST_HEAD, find_end};

/// How much is read at first; most heads are shorter.
const FIRST: usize = 4096;

/// An end, and what has come from it.
#[derive(Debug)]
pub(super) struct Source<'relay> {
    pub(super) end: End<'relay>,
    bytes: Vec<u8>,
    start: usize,
}

impl<'relay> Source<'relay> {
    pub(super) const fn new(end: End<'relay>) -> Self {
        Self::holding(end, Vec::new())
    }

    /// One of which this has come already.
    pub(super) const fn holding(end: End<'relay>, bytes: Vec<u8>) -> Self {
        Self { end, bytes, start: 0 }
    }

    /// What is here.
    pub(super) fn rest(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// Forgets the first of it.
    pub(super) fn consume(&mut self, count: usize) {
        self.start += count;
        if self.start >= self.bytes.len() {
            self.bytes = Vec::new();
            self.start = 0;
        }
    }

    /// Moves some of it to `out`, no more than `most`: how much.
    pub(super) fn take(&mut self, most: u64, out: &mut Vec<u8>) -> u64 {
        let rest = self.rest();
        let count = usize::try_from(most).unwrap_or(usize::MAX).min(rest.len());
        out.extend(&rest[..count]);
        self.consume(count);
        count as u64
    }

    /// Waits for more, no more than `room`: how much came. None means the end.
    pub(super) async fn fill(&mut self, room: usize) -> Result<usize, Fault> {
        loop {
            self.end.readable().await?;
            self.bytes.drain(..self.start);
            self.start = 0;
            let before = self.bytes.len();
            let room = self.end.meter().piece(room);
            self.bytes.reserve_exact(room);
            self.bytes.resize(before + room, 0);
            let taken = self.end.try_read(&mut self.bytes[before..]);
            let count = taken.ok().flatten().unwrap_or(0);
            self.bytes.truncate(before + count);
            if self.bytes.is_empty() {
                self.bytes = Vec::new();
            }
            if let Some(count) = taken? {
                return Ok(count);
            }
        }
    }

    /// Waits until something is here, or the end: whether something is.
    pub(super) async fn begins(&mut self) -> Result<bool, Fault> {
        Ok(!self.rest().is_empty() || self.fill(FIRST).await? > 0)
    }

    /// Waits until a whole head is here, and says where it ends. It may take that long from its first byte on.
    pub(super) async fn head(&mut self, limit: Duration) -> Result<usize, Fault> {
        let party = self.end.party;
        if !self.begins().await? {
            return Err(Fault::Gone(party));
        }
        timeout(limit, self.rest_of_head()).await.unwrap_or(Err(Fault::Slow(party)))
    }

    async fn rest_of_head(&mut self) -> Result<usize, Fault> {
        let party = self.end.party;
        let mut searched = 0;
        loop {
            let head = &self.rest()[..self.rest().len().min(LONGEST_HEAD)];
            if let Some(end) = find_end(head, searched).map_err(|_| Fault::Malformed(party))? {
                return Ok(end);
            }
            searched = head.len();
            let room = searched.max(FIRST).min(LONGEST_HEAD - searched);
            if room == 0 {
                return Err(Fault::Malformed(party));
            }
            if self.fill(room).await? == 0 {
                return Err(Fault::Gone(party));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::conversation::Traffic;
    use crate::http::end::{Motion, Party};

    const LONG: Duration = Duration::from_secs(10);

    /// What is said, held by a source.
    async fn said(bytes: &[u8], check: impl AsyncFn(&mut Source<'_>)) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (one, other) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (mut speaker, (stream, _)) = (one.unwrap(), other.unwrap());
        let (motion, traffic) = (Motion::new(), Traffic::default());
        let end = End { party: Party::Client, stream: &stream, motion: &motion, traffic: &traffic };
        let speaking = async {
            speaker.write_all(bytes).await.unwrap();
            // What is left unread must not break the connection under it.
            speaker
        };
        let mut source = Source::new(end);
        let (_speaker, ()) = tokio::join!(speaking, check(&mut source));
    }

    #[tokio::test]
    async fn nothing_is_held_of_a_silent_end() {
        said(b"A\r\n\r\nrest", async |source| {
            assert_eq!(source.bytes.capacity(), 0);
            assert_eq!(source.head(LONG).await, Ok(5));
            source.consume(5);
            assert_eq!(source.rest(), b"rest");
            let mut out = Vec::new();
            assert_eq!(source.take(3, &mut out), 3);
            assert_eq!((out.as_slice(), source.rest()), (&b"res"[..], &b"t"[..]));
            assert_eq!(source.take(u64::MAX, &mut out), 1);
            assert_eq!(source.bytes.capacity(), 0);
        })
        .await;
    }

    #[tokio::test]
    async fn there_is_an_end_to_what_is_held() {
        said(&[b'x'; 200_000], async |source| {
            assert_eq!(source.head(LONG).await, Err(Fault::Malformed(Party::Client)));
            assert!(source.bytes.capacity() <= LONGEST_HEAD, "{}", source.bytes.capacity());
        })
        .await;
    }
}
