//! A log in a directory of its own.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use audit::{Arguments, Broken, Event, Hash, Head, Part, Text, Verified, Writer, begin_part, open, verify};
use policy::{SandboxId, User};
use tempfile::TempDir;

pub(crate) struct Log {
    directory: TempDir,
    pub(crate) id: SandboxId,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), id: "0123456789ab".parse().unwrap() }
    }

    /// A log of `counts.len()` parts with so many records each.
    pub(crate) fn with_parts(counts: &[u64]) -> Self {
        let log = Self::new();
        let mut writer = log.writer();
        for (index, count) in counts.iter().enumerate() {
            if index > 0 {
                writer.go_on(log.next_part()).unwrap();
            }
            fill(&mut writer, *count);
        }
        log
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn file(&self, part: Part) -> PathBuf {
        self.path().join(part.file_name(&self.id))
    }

    pub(crate) fn bytes(&self, part: Part) -> Vec<u8> {
        fs::read(self.file(part)).unwrap()
    }

    pub(crate) fn put(&self, part: Part, bytes: &[u8]) {
        fs::write(self.file(part), bytes).unwrap();
    }

    pub(crate) fn head(&self) -> Head {
        Head::read(self.path(), &self.id).unwrap()
    }

    /// A writer that goes on from whatever is there.
    pub(crate) fn writer(&self) -> Writer {
        Writer::new(open(self.path(), &self.id).unwrap(), self.head()).unwrap()
    }

    pub(crate) fn next_part(&self) -> OwnedFd {
        begin_part(self.path(), &self.id).unwrap()
    }

    pub(crate) fn verify(&self) -> Result<Verified, Broken> {
        verify(self.path(), &self.id, None)
    }

    pub(crate) fn verify_to(&self, head: Hash) -> Result<Verified, Broken> {
        verify(self.path(), &self.id, Some(head))
    }
}

/// The moment of record `number`.
pub(crate) fn moment(number: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_700_000_000 + number)
}

pub(crate) fn fill(writer: &mut Writer, count: u64) {
    for _ in 0..count {
        let number = writer.head().seq + 1;
        writer.append(moment(number), &small(number)).unwrap();
    }
}

pub(crate) fn small(number: u64) -> Event {
    Event::Exited { exec: number, code: Some(0), signal: None, timed_out: false, out_of_memory: false }
}

/// An event of some `length` bytes.
pub(crate) fn large(number: u64, length: usize) -> Event {
    let argv = Arguments::new([vec![b'x'; length]]);
    Event::Exec {
        exec: number,
        argv,
        cwd: Text::new("/"),
        user: User::AGENT,
        terminal: None,
        detached: false,
    }
}
