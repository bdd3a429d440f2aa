//! The supervisor as the keeper sees it: a child process, and a byte or two at a time from it.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use audit::Head;
use handover::{Answer, Bequest, Inward, KeeperOrder, OfferedPort, PORTS_SOCKET, Plea, Sockets};
use jail::{Forked, Plan};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, pidfd_send_signal, waitid, waitpid};

use crate::error::KeeperError;

/// How long the supervisor may take to end by itself.
const LAST_WORDS: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };
/// How long it may take to say that what is inside is gone.
const ONE_WORD: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// How long the rest of a plea may take, and the taking of an answer.
const HALF_A_WORD: Duration = Duration::from_secs(1);

/// What the supervisor does, as its crate defines it; the keeper knows nothing of it but its exit code: zero, or the
/// error number of why it gave up.
pub(crate) type Supervise = fn(Bequest) -> i32;

fn bind(path: PathBuf) -> Result<UnixListener, KeeperError> {
    UnixListener::bind(&path).map_err(|source| KeeperError::File { path, source })
}

/// What leads from the supervisor to the inside.
pub(crate) struct Lines {
    /// The control channel.
    pub(crate) channel: UnixStream,
    /// Where the sockets of the sandbox's network come from, if it has one.
    pub(crate) gate: Option<UnixStream>,
}

pub(crate) struct Supervisor {
    pid: Pid,
    pidfd: OwnedFd,
    socket: UnixStream,
}

impl Supervisor {
    /// Forks the supervisor with the channel, its listening sockets, its first client and its ports, and nothing else.
    pub(crate) fn start(
        order: &KeeperOrder,
        plan: &Plan,
        (log, head): (OwnedFd, Head),
        Lines { channel, gate }: Lines,
        Sockets { client, ports }: Sockets,
        supervise: Supervise,
    ) -> Result<Self, KeeperError> {
        let listener = bind(order.runtime.join("control.sock"))?;
        let publishing = bind(order.runtime.join(PORTS_SOCKET))?;
        let (socket, inner) = UnixStream::pair().map_err(KeeperError::Supervisor)?;
        // One that says half a word, or does not listen, does not hold its keeper up.
        socket.set_read_timeout(Some(HALF_A_WORD)).map_err(KeeperError::Supervisor)?;
        socket.set_write_timeout(Some(HALF_A_WORD)).map_err(KeeperError::Supervisor)?;
        let kept = [inner.into(), channel.into(), listener.into(), publishing.into(), client, log];
        let has_gate = gate.is_some();
        let (insides, listening): (Vec<_>, Vec<_>) =
            ports.into_iter().map(|port| (port.inside, port.listener)).unzip();
        let further = gate.map(OwnedFd::from).into_iter().chain(listening).collect();
        match jail::fork(kept, further).map_err(KeeperError::Supervisor)? {
            Forked::Parent { pid, pidfd } => Ok(Self { pid, pidfd, socket }),
            Forked::Child([keeper, channel, listener, publishing, client, audit], further) => {
                // The parent's socket is closed already, and its number may be another's.
                std::mem::forget(socket);
                let (uid, stay, life) = (plan.ids().supervisor_id(), order.stay, order.spec.life);
                let mut further = further.into_iter();
                let gate = if has_gate { further.next() } else { None };
                let ports = insides.into_iter().zip(further);
                let ports = ports.map(|(inside, listener)| OfferedPort { listener, inside }).collect();
                jail::end(supervise(Bequest {
                    uid,
                    stay,
                    life,
                    head,
                    audit,
                    keeper,
                    channel,
                    way: Inward::of(order.spec.backend),
                    network: order.spec.network.clone(),
                    gate,
                    listener,
                    client,
                    ports,
                    publishing,
                }))
            }
        }
    }

    pub(crate) const fn id(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Becomes readable when the supervisor has ended.
    pub(crate) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Why it could not do its work, if that is why it has ended.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        // Its status stays: how it ended is asked once more.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::PidFd(self.pidfd()), options).ok()??;
        status.exit_status().filter(|errno| *errno != 0).map(io::Error::from_raw_os_error)
    }

    /// The same of one that says no more: its end may be seen a moment later than that.
    pub(crate) fn last_failure(&self) -> Option<io::Error> {
        let mut descriptors = [PollFd::from_borrowed_fd(self.pidfd(), PollFlags::IN)];
        let _ = poll(&mut descriptors, Some(&ONE_WORD));
        self.failure()
    }

    /// Becomes readable when it asks for something.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Waits for it to ask for something, or to be gone, as long as that takes one that nothing holds up.
    pub(crate) fn speaks_or_is_gone(&self) -> bool {
        let mut descriptors = [PollFd::new(&self.socket, PollFlags::IN)];
        poll(&mut descriptors, Some(&ONE_WORD)) == Ok(1)
    }

    /// Reads one plea: nothing where it is gone, or says what is on no list, which means that it is lost.
    pub(crate) fn plea(&mut self) -> Option<Plea> {
        Plea::read(&self.socket).ok().flatten()
    }

    pub(crate) fn answer(&self, answer: &Answer) -> io::Result<()> {
        answer.send(&self.socket)
    }

    /// Tells it that the sandbox is over.
    pub(crate) fn dismiss(&self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Lets it finish its last words, for a while, and takes its status away: whether somebody had killed it.
    pub(crate) fn destroy(self) -> bool {
        let mut descriptors = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let by_itself = poll(&mut descriptors, Some(&LAST_WORDS)) == Ok(1);
        if !by_itself {
            let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
        let status = waitpid(Some(self.pid), WaitOptions::empty()).ok().flatten();
        by_itself && status.is_some_and(|(_, status)| status.signaled())
    }
}
