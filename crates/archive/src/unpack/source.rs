//! The stream that an archive is read from, block by block or in pieces as they come.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::BorrowedFd;

use crate::block::{BLOCK, Block};
use crate::buffer::Buffer;
use crate::error::UnpackError;

use super::pour::{Funnel, Pour};

/// As much as is read at once.
const BUFFER: usize = 256 * 1024;

/// The largest record that is filled up with zeros after the end of an archive.
const LARGEST_RECORD: usize = 1024 * 1024;

/// A stream of blocks.
#[derive(Debug)]
pub(super) struct Source<R> {
    input: R,
    buffer: Buffer,
    start: usize,
    end: usize,
    pours: Option<Pours<R>>,
}

/// How contents are moved past the buffer.
#[derive(Debug)]
struct Pours<R> {
    pour: fn(&mut R, BorrowedFd<'_>, usize) -> io::Result<usize>,
    funnel: Funnel,
}

impl<R: Pour> Source<R> {
    /// A pipe, out of which contents can be moved past the buffer. Where that is not to be had, they are read.
    pub(super) fn pouring(pipe: R) -> Self {
        let pours = Funnel::new().ok().map(|funnel| Pours { pour: R::pour, funnel });
        Self { pours, ..Self::new(pipe) }
    }
}

impl<R: Read> Source<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, buffer: Buffer::new(BUFFER), start: 0, end: 0, pours: None }
    }

    /// Whether contents can be moved past the buffer.
    pub(super) const fn pours(&self) -> bool {
        self.pours.is_some()
    }

    /// Whether nothing follows.
    pub(super) fn is_at_end(&mut self) -> Result<bool, UnpackError> {
        Ok(self.start == self.end && self.fill(BUFFER)? == 0)
    }

    /// The next block.
    pub(super) fn block(&mut self) -> Result<Block, UnpackError> {
        while self.end - self.start < BLOCK {
            if self.fill(BUFFER)? == 0 {
                return Err(UnpackError::Truncated);
            }
        }
        let mut block = [0; BLOCK];
        block.copy_from_slice(&self.buffer[self.start..self.start + BLOCK]);
        self.start += BLOCK;
        Ok(block)
    }

    /// The bytes that can be had now, at least one and at most `most`.
    pub(super) fn piece(&mut self, most: u64) -> Result<&[u8], UnpackError> {
        if self.start == self.end && self.fill(BUFFER)? == 0 {
            return Err(UnpackError::Truncated);
        }
        let length = usize::try_from(most).unwrap_or(usize::MAX).min(self.end - self.start);
        let piece = &self.buffer[self.start..self.start + length];
        self.start += length;
        Ok(piece)
    }

    /// The same for a file of which `written` bytes have been had. Pieces end at multiples of
    /// the buffer, so that writes begin with a page.
    pub(super) fn contents(&mut self, most: u64, written: u64) -> Result<&[u8], UnpackError> {
        if self.start == self.end {
            let within = usize::try_from(written % BUFFER as u64).unwrap_or(0);
            if self.fill(BUFFER - within)? == 0 {
                return Err(UnpackError::Truncated);
            }
        }
        self.piece(most)
    }

    /// Moves exactly `size` bytes into a file past the buffer, except for those that are in it.
    pub(super) fn pour(&mut self, mut file: &File, size: u64) -> io::Result<()> {
        let Some(Pours { pour, funnel }) = &self.pours else { return Err(io::ErrorKind::Unsupported.into()) };
        let buffered = &self.buffer[self.start..self.end];
        let buffered = &buffered[..usize::try_from(size).unwrap_or(usize::MAX).min(buffered.len())];
        self.start += buffered.len();
        file.write_all(buffered)?;
        funnel.pour(file, size - buffered.len() as u64, |into, most| pour(&mut self.input, into, most))
    }

    /// What fills the last block after `size` bytes.
    pub(super) fn padding(&mut self, size: u64) -> Result<(), UnpackError> {
        let mut left = size.wrapping_neg() % BLOCK as u64;
        while left > 0 {
            left -= self.piece(left)?.len() as u64;
        }
        Ok(())
    }

    /// All `size` bytes at once, and what fills the last block. The caller has bounded `size`.
    pub(super) fn whole(&mut self, size: usize) -> Result<Vec<u8>, UnpackError> {
        let mut bytes = Vec::new();
        while bytes.len() < size {
            let piece = self.piece((size - bytes.len()) as u64)?;
            bytes.extend_from_slice(piece);
        }
        self.padding(size as u64)?;
        Ok(bytes)
    }

    /// Reads what fills the last record, so that whoever writes it is not cut off. Nothing else may follow.
    pub(super) fn end(&mut self) -> Result<(), UnpackError> {
        let mut seen = 0;
        while seen <= LARGEST_RECORD {
            if self.start == self.end && self.fill(BUFFER)? == 0 {
                return Ok(());
            }
            let rest = &self.buffer[self.start..self.end];
            if rest.iter().any(|byte| *byte != 0) {
                return Err(UnpackError::Trailing);
            }
            seen += rest.len();
            self.start = self.end;
        }
        Err(UnpackError::Trailing)
    }

    /// Reads at most so much more behind what is there; zero is the end of the stream.
    fn fill(&mut self, most: usize) -> Result<usize, UnpackError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let end = self.buffer.len().min(self.end.saturating_add(most));
        loop {
            match self.input.read(&mut self.buffer[self.end..end]) {
                Ok(count) => {
                    // A reader that lies about what it read must not make us trust it.
                    self.end = self.end.saturating_add(count).min(end);
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(UnpackError::Input(error)),
            }
        }
    }
}
