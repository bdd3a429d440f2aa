//! A process of the fixture's that holds namespaces and serves in them: `world.py`.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::workspace_root;

/// Nothing that it is asked takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// One side of the network. It ends when dropped, and its namespaces with it.
#[derive(Debug)]
pub(super) struct World {
    child: Child,
    stdout: ChildStdout,
    errors: PathBuf,
}

impl World {
    /// Starts one in new namespaces; it waits there for the word to begin.
    pub(super) fn start(role: &str, namespaces: &[&str], directory: &Path) -> Self {
        let program = workspace_root().join("tests/src/internet/world.py");
        let errors = directory.join(format!("{role}.err"));
        let mut command = Command::new("unshare");
        command
            .args(namespaces)
            .args(["--", "/usr/bin/python3", "-BEsS"])
            .arg(program)
            .arg(role)
            .arg(directory);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&errors).unwrap());
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        Self { child, stdout, errors }
    }

    /// It is the same process before and after it has become `world.py`.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Says a word to it.
    pub(super) fn tell(&mut self, word: &str) {
        let told = self.child.stdin.as_mut().unwrap().write_all(word.as_bytes());
        assert!(told.is_ok(), "the world has ended: {}", self.errors());
    }

    /// Waits for its answer.
    pub(super) fn hear(&mut self, word: &str) {
        let limit = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
        let mut descriptors = [PollFd::new(&self.stdout, PollFlags::IN)];
        let ready = loop {
            match poll(&mut descriptors, Some(&limit)) {
                Err(rustix::io::Errno::INTR) => {}
                ready => break ready.unwrap(),
            }
        };
        assert!(ready == 1, "the world does not say '{word}': {}", self.errors());
        // It says each word at once, and nothing more until it is asked.
        let mut said = [0; 64];
        let count = self.stdout.read(&mut said).unwrap();
        let said = String::from_utf8_lossy(&said[..count]);
        assert_eq!(said.trim_end(), word, "the world says something else: {}", self.errors());
    }

    /// What it complained about; it never should.
    pub(super) fn errors(&self) -> String {
        fs::read_to_string(&self.errors).unwrap_or_default()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + Duration::from_secs(5);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
