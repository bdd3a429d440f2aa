//! Memory that large files are read into. It begins with a page, as the memory does that the kernel copies from: a
//! processor that reads a few bytes behind what it has just written, as far as the lowest twelve bits of both addresses
//! go, waits for the one before the other, and is four times as slow.

use std::ops::{Deref, DerefMut};

const PAGE: usize = 4096;

/// Zeros, to begin with.
#[derive(Debug)]
pub(crate) struct Buffer {
    memory: Box<[u8]>,
    start: usize,
    length: usize,
}

impl Buffer {
    pub(crate) fn new(length: usize) -> Self {
        let memory: Box<[u8]> = vec![0; length + PAGE].into();
        let start = memory.as_ptr().align_offset(PAGE).min(PAGE);
        Self { memory, start, length }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}
