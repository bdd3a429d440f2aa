//! Processes that last as long as their stdin: whoever starts one holds the other end, so none outlives the measurement,
//! however that ends.

use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::interrupt;

/// How long one may take to go after its stdin has ended.
const LEAVING: Duration = Duration::from_secs(5);

/// One that was started; it ends when it is dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    stdout: ChildStdout,
}

impl Process {
    /// Starts it outside of our process group: a Ctrl-C is for us, who then end it.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        interrupt::check()?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
        let stdout = child.stdout.take().context("no stdout")?;
        Ok(Self { child, stdout })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Says a line, and waits for one in return.
    pub(super) fn ask(&mut self, line: &str, patience: Duration) -> Result<String> {
        interrupt::check()?;
        self.child.stdin.as_mut().context("no stdin")?.write_all(format!("{line}\n").as_bytes())?;
        self.hear(patience)
    }

    /// Waits for a line. Nothing more is said before the next question.
    pub(super) fn hear(&mut self, patience: Duration) -> Result<String> {
        let deadline = Instant::now() + patience;
        let mut line = Vec::new();
        let mut buffer = [0; 1024];
        while line.last() != Some(&b'\n') {
            interrupt::check()?;
            if Instant::now() > deadline {
                bail!("there was no answer within {} s", patience.as_secs());
            }
            // An interruption may meet another thread than this one.
            let second = Timespec { tv_sec: 1, tv_nsec: 0 };
            match poll(&mut [PollFd::new(&self.stdout, PollFlags::IN)], Some(&second)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            match self.stdout.read(&mut buffer)? {
                0 => bail!("it has ended"),
                count => line.extend_from_slice(&buffer[..count]),
            }
        }
        Ok(String::from_utf8(line)?.trim_end().to_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + LEAVING;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In such a process: says that it is ready.
pub(super) fn say_ready() -> Result<()> {
    let mut stdout = std::io::stdout();
    stdout.write_all(b"ready\n")?;
    Ok(stdout.flush()?)
}

/// In such a process: waits for stdin to end.
pub(super) fn wait_for_the_end() -> Result<()> {
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(())
}

/// In such a process: as many descriptors as it may have, for thousands of connections.
pub(super) fn raise_descriptors() -> Result<()> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}
