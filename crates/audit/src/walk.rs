//! Walks the lines of a log through all its parts, in order, with one line in memory. Safe beside a writer: a part is
//! left only when the next one has begun to be written, which is after the last byte of this one.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use policy::SandboxId;

use crate::parts::{Directory, io_failed, is_same};
use crate::{Part, RECORD_LIMIT, ReadError};

/// What the walk came to. The line itself is to be had by [`Walk::line`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A line that ended with a newline.
    Line,
    /// A line longer than any record; the walk cannot go on.
    TooLong,
    /// The end of an older part. The line is what stood there without a newline, mostly nothing.
    PartEnd,
    /// The end of the log as it is now; the line as before. More may have been written at the next step.
    End,
}

/// A walk through a log.
#[derive(Debug)]
pub(crate) struct Walk {
    directory: Directory,
    id: SandboxId,
    /// The number that the present part has, or will have once it is no more the newest.
    index: u64,
    part: Part,
    lines: Lines,
    next: Option<(Part, File)>,
    is_leaving: bool,
}

impl Walk {
    /// Stands before the first line of the first part.
    pub(crate) fn start(directory: &Path, id: &SandboxId) -> Result<Self, ReadError> {
        let directory = Directory::open(directory)?;
        let first = part_after(&directory, id, 0, None)?;
        Self::before(directory, id, first)
    }

    /// The same for whoever shows a log and does not judge it: where the newest part begins with the first record, no other
    /// is looked for, which takes longer than to read most logs.
    pub(crate) fn start_to_show(directory: &Path, id: &SandboxId) -> Result<Self, ReadError> {
        let held = Directory::open(directory)?;
        match held.part(id, Part::Newest)? {
            Some(file) if begins_log(&file) => Self::before(held, id, Some((Part::Newest, file))),
            _ => Self::start(directory, id),
        }
    }

    fn before(directory: Directory, id: &SandboxId, first: Option<(Part, File)>) -> Result<Self, ReadError> {
        let missing = || ReadError::NoLog(directory.path_of(&Part::Newest.file_name(id)));
        let (part, file) = first.ok_or_else(missing)?;
        let lines = Lines::new(file);
        Ok(Self { directory, id: id.clone(), index: 1, part, lines, next: None, is_leaving: false })
    }

    /// The present part.
    pub(crate) const fn part(&self) -> Part {
        self.part
    }

    /// The number of the present line in its part, counted from 1.
    pub(crate) const fn line_number(&self) -> u64 {
        self.lines.number
    }

    /// The present line, without its newline.
    pub(crate) fn line(&self) -> &[u8] {
        self.lines.line.strip_suffix(b"\n").unwrap_or(&self.lines.line)
    }

    /// Goes on by a line, or by the end of a part.
    pub(crate) fn step(&mut self) -> Result<Step, ReadError> {
        if self.is_leaving
            && let Some((part, file)) = self.next.take()
        {
            (self.part, self.lines, self.is_leaving) = (part, Lines::new(file), false);
            self.index += 1;
        }
        loop {
            match self.lines.read().map_err(|source| self.failed(source))? {
                Found::Line => return Ok(Step::Line),
                Found::TooLong => return Ok(Step::TooLong),
                Found::Rest => {}
            }
            if self.next.is_some() {
                self.is_leaving = true;
                return Ok(Step::PartEnd);
            }
            self.next = self.begun_part()?;
            if self.next.is_none() {
                return Ok(Step::End);
            }
            // What was written between the last read and the first byte of the next part is read now.
        }
    }

    /// The next part, if its writer has come to it.
    fn begun_part(&self) -> Result<Option<(Part, File)>, ReadError> {
        let present = self.lines.reader.get_ref();
        let Some((part, file)) = part_after(&self.directory, &self.id, self.index, Some(present))? else {
            return Ok(None);
        };
        let length = file.metadata().map_err(|source| self.failed(source))?.len();
        Ok((part != Part::Newest || length > 0).then_some((part, file)))
    }

    fn failed(&self, source: io::Error) -> ReadError {
        io_failed("read", self.directory.path_of(&self.part.file_name(&self.id)), source)
    }
}

/// Whether a part begins with the first record of all.
fn begins_log(part: &File) -> bool {
    const BEGINNING: &[u8] = b"{\"seq\":1,";
    let mut bytes = [0; BEGINNING.len()];
    part.read_exact_at(&mut bytes, 0).is_ok() && bytes == BEGINNING
}

/// The part that follows the one numbered `index`, which is `present`; nothing where that is the newest.
fn part_after(
    directory: &Directory,
    id: &SandboxId,
    index: u64,
    present: Option<&File>,
) -> Result<Option<(Part, File)>, ReadError> {
    // In this order: if the number is not there after the newest was opened, the newest is the one that follows.
    let newest = directory.part(id, Part::Newest)?;
    let path = || directory.path_of(&Part::Newest.file_name(id));
    if let (Some(newest), Some(present)) = (&newest, present)
        && is_same(newest, present).map_err(|source| io_failed("look at", path(), source))?
    {
        return Ok(None);
    }
    let following = Part::Numbered(index + 1);
    if let Some(file) = directory.part(id, following)? {
        return Ok(Some((following, file)));
    }
    if directory.numbers(id)?.last().is_some_and(|last| *last > index) {
        // It may have got its number a moment ago, and others after it.
        let file = directory.part(id, following)?;
        let missing = || ReadError::MissingPart(directory.path_of(&following.file_name(id)));
        return Ok(Some((following, file.ok_or_else(missing)?)));
    }
    match newest {
        Some(file) => Ok(Some((Part::Newest, file))),
        None if index == 0 => Ok(None),
        None => Err(ReadError::MissingPart(path())),
    }
}

/// The lines of one file, which may grow meanwhile.
#[derive(Debug)]
struct Lines {
    reader: BufReader<File>,
    line: Vec<u8>,
    number: u64,
}

enum Found {
    Line,
    Rest,
    TooLong,
}

impl Lines {
    fn new(file: File) -> Self {
        Self { reader: BufReader::with_capacity(RECORD_LIMIT, file), line: Vec::new(), number: 1 }
    }

    /// Reads up to the next newline; a line whose end is not there yet is gone on with next time.
    fn read(&mut self) -> io::Result<Found> {
        if self.line.ends_with(b"\n") {
            self.line.clear();
            self.number += 1;
        }
        let room = RECORD_LIMIT.saturating_sub(self.line.len());
        (&mut self.reader).take(room as u64).read_until(b'\n', &mut self.line)?;
        Ok(match self.line.len() {
            _ if self.line.ends_with(b"\n") => Found::Line,
            RECORD_LIMIT.. => Found::TooLong,
            _ => Found::Rest,
        })
    }
}
