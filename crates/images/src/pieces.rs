//! Bytes that another thread hands over piece by piece, as a stream.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// As many pieces as may wait.
const WAITING: usize = 4;

/// What hands pieces over; it waits while enough of them do.
pub(crate) type Sender = SyncSender<io::Result<Vec<u8>>>;

/// A stream of pieces. It ends when nobody hands any over any more, or with a failure of who does.
pub(crate) struct Pieces {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    at: usize,
}

impl Pieces {
    pub(crate) fn new() -> (Sender, Self) {
        let (sender, pieces) = sync_channel(WAITING);
        (sender, Self { pieces, piece: Vec::new(), at: 0 })
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.piece.len() {
            let Ok(piece) = self.pieces.recv() else { return Ok(0) };
            self.piece = piece?;
            self.at = 0;
        }
        let rest = &self.piece[self.at..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}
