//! Clones the builder and brings it through its gate: id maps, the plan, and the word whether it went well.

use std::io::{self, IoSlice, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use policy::Wall;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, send, sendmsg};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Resource, Rlimit, WaitId, WaitIdOptions, getrlimit, prlimit, setrlimit, waitid};

use crate::blueprint::{self, Draft, MOST_ARGUMENTS, MOST_TREES};
use crate::builder::{self, Ends, Failure, Phase};
use crate::cgroup::Cgroup;
use crate::error::JailError;
use crate::helper::Helper;
use crate::ids::IdMap;
use crate::network::are_rules_absent;
use crate::plan::{Plan, Rooted};
use crate::sys::{self, Cloned, Room};
use crate::weaken::Weaken;
use crate::yard::Face;

/// What init is connected to.
pub struct Streams<'caller> {
    /// The control channel's inner end.
    pub channel: BorrowedFd<'caller>,
    /// Where init's own complaints go.
    pub log: BorrowedFd<'caller>,
}

/// A sandbox whose walls are going up or stand.
#[derive(Debug)]
pub struct Jailed {
    pid: i32,
    pidfd: OwnedFd,
    status: OwnedFd,
    /// Until it is passed on.
    gate: Option<UnixStream>,
    /// What still writes its id maps.
    helpers: Vec<Helper>,
}

/// How a process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// Walls that stand.
#[derive(Debug, Default)]
pub struct Built {
    /// What the kernel said where it has no rules to lead the network by.
    pub(crate) without_rules: Option<io::Error>,
}

/// Clones the builder, into its cgroup where that is on v2; it begins at once and waits at its gate for
/// [`Jailed::map_ids`] and [`Jailed::build`].
pub fn launch(weaken: &Weaken, cgroup: Option<&Cgroup>, streams: &Streams<'_>) -> Result<Jailed, JailError> {
    let (gate, gate_inner) = UnixStream::pair().map_err(JailError::Namespaces)?;
    let (status, status_inner) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|errno| JailError::Namespaces(errno.into()))?;
    // Made here, as nothing may be allocated after clone.
    let mut room = Room::new(blueprint::LARGEST).map_err(|errno| JailError::Namespaces(errno.into()))?;
    let ends = Ends {
        gate: gate_inner.as_raw_fd(),
        status: status_inner.as_raw_fd(),
        channel: streams.channel.as_raw_fd(),
        log: streams.log.as_raw_fd(),
    };
    let entrance = cgroup.and_then(Cgroup::entrance);
    match sys::clone_into(first_namespaces(weaken), entrance).map_err(|e| JailError::Namespaces(e.into()))? {
        Cloned::Child => {
            // Our copy of the gate's outer end would keep end-of-file away when the keeper dies.
            let _ = sys::close(gate.as_raw_fd());
            builder::run(weaken, ends, room.bytes())
        }
        Cloned::Parent { pid, pidfd } => {
            // Where it begins is for speed alone.
            let _ = sys::send_elsewhere(pid);
            Ok(Jailed { pid, pidfd, status, gate: Some(gate), helpers: Vec::new() })
        }
    }
}

/// The namespaces that only a clone can make. The builder makes the others itself, as that takes time which the
/// keeper has better use for.
fn first_namespaces(weaken: &Weaken) -> u64 {
    let pid = if weaken.keeps(Wall::PidNamespace) { libc::CLONE_NEWPID } else { 0 };
    (libc::CLONE_NEWUSER | pid) as u32 as u64
}

impl Jailed {
    /// Gives the builder its ids, or starts helpers that do. `face` is what the only one shows as, where it is the only one.
    pub fn map_ids(&mut self, ids: &IdMap, face: Face) -> Result<(), JailError> {
        self.helpers = ids.write(self.pid, face)?;
        Ok(())
    }

    /// Lets it have more descriptors than whoever called, where the caller is root, who may. A kernel of the sandbox's needs
    /// them for all that runs inside; without them it remembers fewer files.
    pub fn raise_descriptors(&self) {
        const MANY: u64 = 1 << 18;
        let many = Rlimit { current: Some(MANY), maximum: Some(MANY) };
        let has_fewer = getrlimit(Resource::Nofile).maximum.is_some_and(|most| most < MANY);
        // Ours first: what it has is planned by what we have.
        if has_fewer && setrlimit(Resource::Nofile, many).is_ok() {
            let _ = prlimit(Pid::from_raw(self.pid), Resource::Nofile, many);
        }
    }

    /// Waits until the builder has its ids and gives it the plan; it goes on to the end.
    pub fn build(&mut self, plan: &Plan, root: &Rooted) -> Result<(), JailError> {
        // Not before there is an order: until then our own maker may keep us away from its processor.
        let processors = sys::Processors::own().ok();
        let all = processors.map(|own| own.bytes()).unwrap_or_default();
        let Draft { bytes, trees } = Draft::new(plan, root, &all);
        let too_many = trees.len() > MOST_TREES || root.init_arguments.len() > MOST_ARGUMENTS;
        if too_many || bytes.len() > blueprint::LARGEST {
            return Err(JailError::TooManyMounts);
        }
        self.helpers.drain(..).try_for_each(Helper::finish)?;
        // While it builds, there is enough to do here. It is for speed alone.
        let _ = processors.map(|own| own.keep_elsewhere(self.pid));
        // If the builder is gone, its status says why.
        let _ = self.hand_over(&bytes, &trees);
        Ok(())
    }

    fn hand_over(&self, bytes: &[u8], trees: &[BorrowedFd<'_>]) -> io::Result<()> {
        let length = (bytes.len() as u64).to_le_bytes();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_TREES))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !trees.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(trees));
        }
        let parts = [IoSlice::new(&length), IoSlice::new(bytes)];
        let gate = self.gate.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let sent = sendmsg(gate, &parts, &mut ancillary, SendFlags::NOSIGNAL)?;
        // The descriptors went with the first byte; what did not fit into the socket's buffer follows.
        let mut rest = bytes.get(sent.saturating_sub(length.len())..).unwrap_or_default();
        while !rest.is_empty() {
            let sent = send(gate, rest, SendFlags::NOSIGNAL)?;
            rest = &rest[sent..];
        }
        Ok(())
    }

    /// The socket at which the builder, that has its plan, hands out those of its network, some at a time with a byte that
    /// says what they are ([`crate::HandedOut`]). After the last comes the end.
    pub const fn gate(&mut self) -> Option<UnixStream> {
        self.gate.take()
    }

    /// Becomes readable once it is known whether the walls stand.
    #[must_use]
    pub fn status(&self) -> BorrowedFd<'_> {
        self.status.as_fd()
    }

    /// Whether it is known by now: a builder that waits at its gate says nothing.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        let mut descriptors = [PollFd::new(&self.status, PollFlags::IN)];
        poll(&mut descriptors, Some(&Timespec::default())) == Ok(1)
    }

    /// Waits until init runs behind its walls, or for the reason why it does not. [`Plan::hear`] is for what it says.
    pub fn outcome(&self, root: Option<&Rooted>) -> Result<Built, JailError> {
        let mut status = std::fs::File::from(self.status.try_clone().map_err(JailError::Namespaces)?);
        let mut built = Built::default();
        let failure = match next_word(&mut status)? {
            Some(word) if word.is_note() => {
                built.without_rules = Some(io::Error::from_raw_os_error(word.errno));
                next_word(&mut status)?
            }
            word => word,
        };
        // Exec closed the status. A builder that was killed closes it too, which its pidfd then shows.
        let Some(failure) = failure else { return Ok(built) };
        let source = io::Error::from_raw_os_error(failure.errno);
        let steps = match failure.phase {
            Phase::Namespaces => return Err(JailError::Namespaces(source)),
            Phase::Rules if are_rules_absent(failure.errno) => return Err(JailError::NoRules(source)),
            Phase::Steps => root.and_then(|root| root.steps.get(failure.step as usize)),
            _ => None,
        };
        let step = steps.map_or_else(|| failure.phase.meaning().to_owned(), |step| step.describe());
        Err(JailError::Step { step, source })
    }

    /// Init's process id, as the host counts.
    #[must_use]
    pub const fn pid(&self) -> i32 {
        self.pid
    }

    /// Becomes readable when init has ended.
    #[must_use]
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// How init, or the runtime in its place, has ended by itself; none while it runs.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let status = waitid(WaitId::PidFd(self.pidfd.as_fd()), look).ok()??;
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Some(Ending::Code(code)),
            (None, Some(signal)) => Some(Ending::Signal(signal)),
            (None, None) => None,
        }
    }

    /// Kills init, and with it everything inside.
    pub fn kill(&self) {
        let _ = sys::kill(self.pidfd.as_fd());
    }

    /// Waits until all of it is gone.
    pub fn reap(self) {
        let _ = sys::reap(self.pidfd.as_fd());
    }

    /// Kills init and waits until everything inside is gone.
    pub fn destroy(self) {
        self.kill();
        self.reap();
    }
}

/// What the builder says next; none at the end.
fn next_word(status: &mut std::fs::File) -> Result<Option<Failure>, JailError> {
    let mut bytes = Vec::new();
    status.take(Failure::SIZE as u64).read_to_end(&mut bytes).map_err(JailError::Namespaces)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let bytes: [u8; Failure::SIZE] = bytes.try_into().map_err(|_| JailError::Vanished)?;
    Failure::from_bytes(bytes).map(Some).ok_or(JailError::Vanished)
}
