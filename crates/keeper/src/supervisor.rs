//! The supervisor as the keeper sees it: a child process, and one byte at a time from it.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};

use handover::{Answer, KeeperOrder, Plea, SupervisorOrder};
use jail::IdMap;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::error::KeeperError;

/// How long the supervisor may take to end by itself.
const LAST_WORDS: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// The exit code of a supervisor that gave up.
const FAILED: i32 = 1;

pub(crate) struct Supervisor {
    child: Child,
    pidfd: OwnedFd,
    socket: UnixStream,
}

impl Supervisor {
    /// Starts the supervisor and hands it the channel, its listening socket and its first client.
    pub(crate) fn start(
        order: &KeeperOrder,
        ids: &IdMap,
        channel: UnixStream,
        client: OwnedFd,
    ) -> Result<Self, KeeperError> {
        let path = order.runtime.join("control.sock");
        let listener = UnixListener::bind(&path).map_err(|source| KeeperError::File { path, source })?;
        let (socket, inner) = UnixStream::pair().map_err(KeeperError::Supervisor)?;
        let child = Command::new(&order.program)
            .arg("supervisor")
            .env_clear()
            .stdin(OwnedFd::from(inner))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(KeeperError::Supervisor)?;
        let pid = Pid::from_child(&child);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|e| KeeperError::Supervisor(e.into()))?;
        let supervisor = Self { child, pidfd, socket };
        let orders = SupervisorOrder { uid: ids.supervisor_id() };
        handover::send(&supervisor.socket, &orders, &[channel.as_fd(), listener.as_fd(), client.as_fd()])?;
        Ok(supervisor)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Becomes readable when the supervisor has ended.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Whether it has ended because it could not do its work.
    pub(crate) fn has_failed(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|ended| ended.is_some_and(|status| status.code() == Some(FAILED)))
    }

    /// Becomes readable when it asks for something.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Reads one plea. Anything that is none, and the end of the socket, is an end.
    pub(crate) fn plea(&mut self) -> Plea {
        let mut byte = [0];
        match self.socket.read_exact(&mut byte) {
            Ok(()) => Plea::from_byte(byte[0]).unwrap_or(Plea::End),
            Err(_) => Plea::End,
        }
    }

    pub(crate) fn answer(&mut self, answer: Answer) -> io::Result<()> {
        self.socket.write_all(&[answer as u8])
    }

    /// Lets it finish its last words, for a while, and takes its status away.
    pub(crate) fn destroy(mut self) {
        let _ = self.socket.shutdown(Shutdown::Write);
        let mut descriptors = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let ended = poll(&mut descriptors, Some(&LAST_WORDS));
        if ended != Ok(1) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
