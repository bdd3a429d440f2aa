//! The replies, each after its length.

use std::fs::File;
use std::io::{BufWriter, Write};

use prost::Message;
use wire::{FileAnswer, FileReply};

use super::failure::Failure;

/// Where replies go. They may wait here until they are flushed.
#[derive(Debug)]
pub(super) struct Replies {
    output: BufWriter<File>,
}

impl Replies {
    pub(super) fn new(output: File) -> Self {
        Self { output: BufWriter::new(output) }
    }

    pub(super) fn send(&mut self, answer: FileAnswer) -> Result<(), Failure> {
        let bytes = FileReply { answer: Some(answer) }.encode_length_delimited_to_vec();
        self.output.write_all(&bytes).map_err(|error| Failure::stream(b"", &error))
    }

    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        self.output.flush().map_err(|error| Failure::stream(b"", &error))
    }
}
