//! Every way in which a log cannot be read or written.

use std::io;
use std::path::PathBuf;

use crate::{Part, RECORD_LIMIT};

/// Why a log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The kernel refused.
    #[error("cannot {what} {path}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// Something else stands where a part should: a link, a directory, a pipe.
    #[error("{0} is not a regular file")]
    NotAFile(PathBuf),
    /// The sandbox has no log here.
    #[error("there is no {0}")]
    NoLog(PathBuf),
    /// A part between others is not there.
    #[error("{0} is missing")]
    MissingPart(PathBuf),
    /// A line is no record, and no record after it accounts for it.
    #[error("line {line} of {part} is not a record")]
    NotARecord {
        /// The part.
        part: Part,
        /// The line, counted from 1.
        line: u64,
    },
    /// A line is longer than any record.
    #[error("line {line} of {part} is longer than {RECORD_LIMIT} bytes")]
    TooLong {
        /// The part.
        part: Part,
        /// The line, counted from 1.
        line: u64,
    },
    /// The end of a log, from which it would have to go on, is neither a record nor the beginning of one.
    #[error("the end of {0} is not a record")]
    NoHead(PathBuf),
    /// Whoever wrote it last has not ended.
    #[error("another process still writes {0}")]
    Busy(PathBuf),
    /// The newest part has room.
    #[error("{0} is not full")]
    NotFull(PathBuf),
    /// There are as many parts as a log may have.
    #[error("the log of {0} is full")]
    Full(PathBuf),
}

/// Why a record could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Nothing of it is in the log; it may be tried again.
    #[error("the record could not be written")]
    NotWritten(#[source] io::Error),
    /// A part of it is in the log. The writer keeps the rest and writes it before anything else; it must not be tried
    /// again. If the writer ends before that, the log's end is torn and the next writer says so.
    #[error("the record was cut off: its rest will be written before the next one")]
    Cut(#[source] io::Error),
    /// A record over the limit, which only a list of the host's own can bring about.
    #[error("a record of {0} bytes is over the limit of {RECORD_LIMIT}")]
    TooLong(usize),
    /// The event has no form in JSON.
    #[error("the event cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    /// `Event::Torn` is the writer's own.
    #[error("an event of kind 'torn' is written by the log's writer only")]
    Reserved,
    /// What was written could overwrite what is there.
    #[error("the descriptor of the log is not open for appending")]
    NotAppending,
    /// Somebody has written since the head was read, or a new part is not new.
    #[error("the part of the log has {found} bytes and should have {expected}")]
    OtherLength {
        /// What the head says.
        expected: u64,
        /// What the file has.
        found: u64,
    },
    /// The log cannot be gone on with.
    #[error("the log cannot be gone on with")]
    Log(#[source] ReadError),
    /// The descriptor cannot be asked about or made durable.
    #[error("the descriptor of the log failed")]
    Descriptor(#[source] io::Error),
}
