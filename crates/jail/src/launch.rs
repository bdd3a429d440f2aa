//! Clones the builder and brings it through its gate: id maps, and the word whether it went well.

use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use policy::Wall;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::builder::{self, Ends, Failure, Phase};
use crate::error::JailError;
use crate::plan::Plan;
use crate::sys::{self, Cloned, PointerArray};

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
    gate: Option<OwnedFd>,
}

/// Clones the builder; it begins at once and waits at its gate for [`Jailed::map_ids`].
pub fn launch(plan: &Plan, streams: &Streams<'_>) -> Result<Jailed, JailError> {
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|errno| JailError::Namespaces(errno.into()));
    let (gate_inner, gate) = pipe()?;
    let (status, status_inner) = pipe()?;
    // Everything that init gets is made here, as nothing may be allocated after clone.
    let arguments = PointerArray::new(plan.init_arguments.iter().map(|argument| argument.as_c_str()));
    let nothing = PointerArray::new(std::iter::empty());
    let ends = Ends {
        gate: gate_inner.as_raw_fd(),
        status: status_inner.as_raw_fd(),
        channel: streams.channel.as_raw_fd(),
        log: streams.log.as_raw_fd(),
    };
    let entrance = plan.cgroup.as_ref().and_then(|cgroup| cgroup.entrance());
    match sys::clone_into(first_namespaces(plan), entrance).map_err(|e| JailError::Namespaces(e.into()))? {
        Cloned::Child => {
            // Our copy of the gate's outer end would keep end-of-file away when the keeper dies.
            let _ = sys::close(gate.as_raw_fd());
            builder::run(plan, ends, &arguments, &nothing)
        }
        Cloned::Parent { pid, pidfd } => Ok(Jailed { pid, pidfd, status, gate: Some(gate) }),
    }
}

/// The namespaces that only a clone can make. The builder makes the others itself, as that takes time which the
/// keeper has better use for.
fn first_namespaces(plan: &Plan) -> u64 {
    let pid = if plan.weaken.keeps(Wall::PidNamespace) { libc::CLONE_NEWPID } else { 0 };
    (libc::CLONE_NEWUSER | pid) as u32 as u64
}

impl Jailed {
    /// Gives the builder its ids; it begins to build.
    pub fn map_ids(&mut self, plan: &Plan) -> Result<(), JailError> {
        plan.ids.write(self.pid)?;
        if let Some(gate) = self.gate.take() {
            // If the builder is gone, its status says why.
            let _ = rustix::io::write(gate, b"g");
        }
        Ok(())
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

    /// Waits until init runs behind its walls, or for the reason why it does not.
    pub fn outcome(&self, plan: &Plan) -> Result<(), JailError> {
        let mut bytes = Vec::new();
        let mut status = std::fs::File::from(self.status.try_clone().map_err(JailError::Namespaces)?);
        let read = status.by_ref().take(Failure::SIZE as u64).read_to_end(&mut bytes);
        read.map_err(JailError::Namespaces)?;
        if bytes.is_empty() {
            // Exec closed the status. A builder that was killed closes it too, which its pidfd then shows.
            return Ok(());
        }
        let bytes: [u8; Failure::SIZE] = bytes.try_into().map_err(|_| JailError::Vanished)?;
        let failure = Failure::from_bytes(bytes).ok_or(JailError::Vanished)?;
        let source = io::Error::from_raw_os_error(failure.errno);
        let steps = match failure.phase {
            Phase::Namespaces => return Err(JailError::Namespaces(source)),
            Phase::Steps => plan.steps.get(failure.step as usize),
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

    /// Kills init, and with it everything inside, and waits until all of it is gone.
    pub fn destroy(self) {
        let _ = sys::kill(self.pidfd.as_fd());
        let _ = sys::reap(self.pidfd.as_fd());
    }
}
