//! The process after clone: builds the walls around itself from the inside, step by step, and becomes init.
//! Only raw system calls on memory that was there before: another thread of the caller may have held any lock.

mod reading;

use std::ffi::CStr;
use std::os::fd::RawFd;

use policy::{Nesting, Wall};

use crate::blueprint::{Brief, Last, MOST_TREES};
use crate::filters;
use crate::network::Led;
use crate::root::INIT;
use crate::seccomp;
use crate::sys::{self, Errno, Outcome, Pointers};
use crate::weaken::Weaken;
use reading::{read_arguments, receive, run_steps};

/// Descriptors that the builder works with, as numbers that both sides of the clone know.
#[derive(Clone, Copy)]
pub(crate) struct Ends {
    /// The parent sends the blueprint here, once the builder has its ids; end-of-file means that it is gone. The
    /// builder hands the sockets of its network out here, and all that ever follows is the end.
    pub(crate) gate: RawFd,
    /// The builder says here where it failed; it closes by itself when init starts.
    pub(crate) status: RawFd,
    /// The control channel, which becomes init's stdin and stdout.
    pub(crate) channel: RawFd,
    /// Where init's own complaints go.
    pub(crate) log: RawFd,
}

/// A failure as the builder reports it: which phase, and at which step of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) phase: Phase,
    pub(crate) step: u32,
    pub(crate) errno: i32,
}

macro_rules! phases {
    ($($phase:ident $meaning:literal,)*) => {
        /// The phases of building, in order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub(crate) enum Phase { $($phase,)* }

        impl Phase {
            const ALL: &[Phase] = &[$(Phase::$phase,)*];

            pub(crate) const fn meaning(self) -> &'static str {
                match self { $(Phase::$phase => $meaning,)* }
            }
        }
    };
}

phases! {
    Namespaces "make the namespaces",
    Propagation "cut the mounts off from the host's",
    Loopback "raise the loopback device",
    Blueprint "read the plan",
    Cgroup "join the cgroups",
    NewRoot "mount the new root",
    Identity "become the root of the new user namespace",
    Steps "put the new root together",
    Name "set the host name",
    Network "open the sockets of its network",
    Rules "lead its network to the gateway",
    Cable "connect it with its network",
    Pivot "leave the host's root",
    Seal "make the root read-only",
    Limits "set the resource limits",
    Privileges "drop the privileges",
    Descriptors "drop the descriptors",
    Filter "install the system call filter",
    Execute "start init",
    Runtime "start the runtime",
}

impl Failure {
    pub(crate) const SIZE: usize = 12;

    /// The step of what is no failure: the kernel has no rules, and it went on without them.
    const WENT_ON: u32 = 1;

    fn noting(led: Led) -> Option<Self> {
        match led {
            Led::ByRules => None,
            Led::ByPorts(errno) => Some(Self { phase: Phase::Rules, step: Self::WENT_ON, errno: errno.0 }),
        }
    }

    /// Whether it only says that the builder goes on without rules.
    pub(crate) fn is_note(&self) -> bool {
        self.phase == Phase::Rules && self.step == Self::WENT_ON
    }

    fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..4].copy_from_slice(&(self.phase as u32).to_le_bytes());
        bytes[4..8].copy_from_slice(&self.step.to_le_bytes());
        bytes[8..].copy_from_slice(&self.errno.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; Self::SIZE]) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let phase = *Phase::ALL.get(word(0) as usize)?;
        Some(Self { phase, step: word(4), errno: word(8) as i32 })
    }
}

/// Builds and becomes init, or says why not and ends.
pub(crate) fn run(weaken: &Weaken, ends: Ends, room: &mut [u8]) -> ! {
    let Err(failure) = build(weaken, ends, room);
    let _ = sys::write(ends.status, &failure.to_bytes());
    sys::exit(1)
}

/// The one straight line. The order matters and each step says why it stands where it does.
fn build(weaken: &Weaken, ends: Ends, room: &mut [u8]) -> Result<std::convert::Infallible, Failure> {
    let at = |phase| move |errno: Errno| Failure { phase, step: 0, errno: errno.0 };
    let keeps = |wall| weaken.keeps(wall);

    // What takes long and depends on nothing comes first: the order for this sandbox may still be on its way.
    let _ = sys::set_name(c"agentbox-build");
    sys::set_umask(0).map_err(at(Phase::Namespaces))?;
    sys::unshare(namespaces(weaken)).map_err(at(Phase::Namespaces))?;
    // First of all mounts: nothing that follows may reach the host, nor anything of the host's come in.
    sys::mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE, None).map_err(at(Phase::Propagation))?;
    if keeps(Wall::NetNamespace) {
        sys::raise_loopback().map_err(at(Phase::Loopback))?;
    }

    // Comes when the id maps are written; before, this process is nobody and could own no file.
    let mut trees = [-1; MOST_TREES];
    let mut blueprint = receive(ends.gate, room, &mut trees).map_err(at(Phase::Blueprint))?;
    let malformed = Failure { phase: Phase::Blueprint, step: 0, errno: libc::EBADMSG };
    let brief = blueprint.brief().ok_or(malformed)?;
    let arguments = read_arguments(&mut blueprint).map_err(at(Phase::Blueprint))?;

    // Before the cgroup namespace, which begins where one stands, and before anything that is to be counted.
    let doors = blueprint.doors(&brief).ok_or(malformed)?;
    join_cgroups(doors, brief.own_cgroups).map_err(at(Phase::Cgroup))?;

    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    sys::mount(c"agentbox", brief.staging, Some(c"tmpfs"), flags, Some(brief.root_options))
        .and_then(|()| sys::change_directory(brief.staging))
        .map_err(at(Phase::NewRoot))?;

    // Only now: the way to the staging directory is open to the keeper's own id alone.
    become_root(&brief).map_err(at(Phase::Identity))?;
    // A change of ids clears the signal, so it comes after. If the keeper died before, the gate tells.
    sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64).map_err(at(Phase::Identity))?;
    run_steps(&mut blueprint)?;

    if keeps(Wall::UtsNamespace) {
        sys::set_host_name(brief.host_name).map_err(at(Phase::Name))?;
    }
    let mut led = Led::ByRules;
    if let Some(wiring) = brief.wiring.as_ref().filter(|_| keeps(Wall::NetNamespace)) {
        led = wiring.lay(ends.gate)?;
    }

    // The old root goes on top of the new one and is taken off: no path and no mount leads back.
    sys::pivot_root(c".", c".")
        .and_then(|()| sys::unmount_detached(c"."))
        .and_then(|()| sys::change_directory(c"/"))
        .map_err(at(Phase::Pivot))?;
    let sealed = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | flags;
    sys::mount(c"none", c"/", None, sealed, None).map_err(at(Phase::Seal))?;

    for (resource, value) in brief.limits.iter().flatten() {
        sys::lower_limit(*resource, *value).map_err(at(Phase::Limits))?;
    }
    // A runtime needs every capability of this namespace to build the last walls, and none outside of it.
    if brief.last == Last::Builder {
        drop_capabilities(&brief, weaken).map_err(at(Phase::Privileges))?;
    }
    if keeps(Wall::NoNewPrivileges) {
        sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1).map_err(at(Phase::Privileges))?;
    }
    sys::unblock_signals().map_err(at(Phase::Privileges))?;
    let log = blueprint.complaints(&brief).unwrap_or(ends.log);
    let status = arrange_descriptors(weaken, Ends { log, ..ends }).map_err(at(Phase::Descriptors))?;

    // The status has another number from here on. What was built otherwise than planned is said there when all of it
    // stands, as whoever hears a word takes it for the last.
    if let Some(note) = Failure::noting(led) {
        sys::write(status, &note.to_bytes()).map_err(at(Phase::Descriptors))?;
    }
    // Until here it was kept away from its keeper's. Where all cannot be had again, there are some.
    let _ = sys::take_processors(brief.processors);
    let failure = match brief.last {
        Last::Builder => become_init(weaken, brief.nesting, &arguments),
        Last::Runtime(path) => become_runtime(path, &arguments),
        Last::Kernel(path) => {
            make_room_for_descriptors().map_err(at(Phase::Descriptors))?;
            become_runtime(path, &arguments)
        }
    };
    let _ = sys::write(status, &failure.to_bytes());
    sys::exit(1)
}

/// The filter comes last, as it forbids most of the above. Everything inside inherits it, init included.
fn become_init(weaken: &Weaken, nesting: Nesting, arguments: &Pointers<'_>) -> Failure {
    if weaken.keeps(Wall::Seccomp)
        && let Err(errno) = seccomp::install(&filters::sandbox(nesting))
    {
        return Failure { phase: Phase::Filter, step: 0, errno };
    }
    let errno = sys::execute(INIT, arguments);
    Failure { phase: Phase::Execute, step: 0, errno: errno.0 }
}

fn become_runtime(path: &CStr, arguments: &Pointers<'_>) -> Failure {
    let errno = sys::execute(path, arguments);
    Failure { phase: Phase::Runtime, step: 0, errno: errno.0 }
}

/// A kernel of the sandbox's own takes descriptors up to 255 while it has threads, and then the host's kernel waits for all
/// processors (for 10 ms) before the table grows. A process starts with a table that holds its maker's highest descriptor,
/// so whoever makes that kernel gets one more: where to complain, once again.
fn make_room_for_descriptors() -> Outcome {
    const HIGH: RawFd = 250;
    const LOG: RawFd = 2;
    sys::duplicate_onto(LOG, HIGH)
}

/// Moves itself into the v1 cgroups, by files that the keeper has opened. On v2 it was cloned into its cgroup.
fn join_cgroups(doors: &[RawFd], own: bool) -> Outcome {
    doors.iter().try_for_each(|door| sys::write(*door, b"0").map(drop))?;
    if own { sys::unshare(libc::CLONE_NEWCGROUP) } else { Ok(()) }
}

/// All namespaces that are not made yet, but for the cgroup namespace.
fn namespaces(weaken: &Weaken) -> i32 {
    let optional = [
        (Wall::NetNamespace, libc::CLONE_NEWNET),
        (Wall::IpcNamespace, libc::CLONE_NEWIPC),
        (Wall::UtsNamespace, libc::CLONE_NEWUTS),
    ];
    let kept = optional.iter().filter(|(wall, _)| weaken.keeps(*wall));
    kept.fold(libc::CLONE_NEWNS, |flags, (_, flag)| flags | flag)
}

/// With a range of ids: root of the namespace, so that the agent owns nothing it is not given. With one id
/// there is nobody else to be.
fn become_root(brief: &Brief<'_>) -> Outcome {
    if !brief.has_root {
        return Ok(());
    }
    sys::set_groups(&[])?;
    sys::set_group(0)?;
    sys::set_user(0)
}

/// What init keeps where it has users to choose among: to change to them, to signal them, and to see to it
/// that what it starts keeps nothing.
const INIT_CAPABILITIES: u64 = 1 << CAP_KILL | 1 << CAP_SETGID | 1 << CAP_SETUID | 1 << CAP_SETPCAP;
const CAP_KILL: u32 = 5;
const CAP_SETGID: u32 = 6;
const CAP_SETUID: u32 = 7;
const CAP_SETPCAP: u32 = 8;
const LAST_CAPABILITY: u32 = 63;

fn drop_capabilities(brief: &Brief<'_>, weaken: &Weaken) -> Outcome {
    let kept = if brief.has_root { INIT_CAPABILITIES } else { 0 };
    if weaken.keeps(Wall::Capabilities) {
        for capability in (0..=LAST_CAPABILITY).filter(|capability| kept & (1 << capability) == 0) {
            match sys::prctl(libc::PR_CAPBSET_DROP, u64::from(capability)) {
                Ok(_) => {}
                // The kernel knows no such capability, nor any higher one.
                Err(Errno(libc::EINVAL)) => break,
                Err(errno) => return Err(errno),
            }
        }
        sys::set_capabilities(kept)?;
    } else {
        sys::keep_capabilities();
    }
    Ok(())
}

/// The channel to 0 and 1, the log to 2, the status to 3 until exec, and nothing else.
fn arrange_descriptors(weaken: &Weaken, ends: Ends) -> Result<RawFd, Errno> {
    const ABOVE: RawFd = 10;
    const STATUS: RawFd = 3;
    let channel = sys::duplicate_above(ends.channel, ABOVE)?;
    let log = sys::duplicate_above(ends.log, ABOVE)?;
    let status = sys::duplicate_above(ends.status, ABOVE)?;
    sys::duplicate_onto(channel, 0)?;
    sys::duplicate_onto(channel, 1)?;
    sys::duplicate_onto(log, 2)?;
    sys::duplicate_onto(status, STATUS)?;
    sys::close_on_exec(STATUS)?;
    if weaken.keeps(Wall::Descriptors) {
        sys::close_from(STATUS + 1)?;
    }
    Ok(STATUS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_survive_the_pipe() {
        for phase in Phase::ALL {
            let failure = Failure { phase: *phase, step: 7, errno: libc::EPERM };
            assert_eq!(Failure::from_bytes(failure.to_bytes()), Some(failure));
        }
        assert_eq!(Failure::from_bytes([0xff; Failure::SIZE]), None);
    }
}
