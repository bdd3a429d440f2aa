//! Probes of the kernel itself: its version, and the namespaces that hold no files.

use policy::State;
use rustix::process::{geteuid, getpid};
use rustix::system::uname;

use super::Finding;
use super::trial::{Refusal, Trial};
use crate::sys::{self, Errno};

/// Every wall is there.
const LEAST: (u32, u32) = (5, 15);
/// Overlays on id-mapped layers, which root's review workspaces stand on.
const LEAST_FOR_ROOT: (u32, u32) = (5, 19);

pub(super) fn version() -> Finding {
    let release = uname().release().to_string_lossy().into_owned();
    let wanted = if geteuid().is_root() { LEAST_FOR_ROOT } else { LEAST };
    let (state, detail) = judge(&release, wanted);
    Finding { state, detail, errno: None }
}

/// Whether root may have an overlay of id-mapped trees. A release that is not understood is tried.
pub(crate) fn has_overlays_for_root() -> bool {
    let release = uname().release().to_string_lossy().into_owned();
    parse(&release).is_none_or(|version| version >= LEAST_FOR_ROOT)
}

fn judge(release: &str, wanted: (u32, u32)) -> (State, String) {
    match parse(release) {
        Some(version) if version < LEAST => (State::Missing, format!("{release}, and 5.15 is needed")),
        Some(version) if version < wanted => {
            (State::Weaker, format!("{release}; as root, review workspaces need 5.19"))
        }
        Some(_) => (State::Given, release.to_owned()),
        None => (State::Weaker, format!("{release} is no version that is understood")),
    }
}

/// The first two numbers of a release such as `6.1.0-18-amd64`.
fn parse(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

pub(super) fn pid_namespace() -> Result<(), Refusal> {
    let first = || if getpid().is_init() { Ok(()) } else { Err(Errno(libc::EINVAL)) };
    Trial::namespaces(libc::CLONE_NEWPID).run(&[("be its first process", &first)])
}

pub(super) fn net_namespace() -> Result<(), Refusal> {
    Trial::namespaces(libc::CLONE_NEWNET).run(&[("raise the loopback device", &sys::raise_loopback)])
}

pub(super) fn uts_namespace() -> Result<(), Refusal> {
    let name = || sys::set_host_name(b"agentbox");
    Trial::namespaces(libc::CLONE_NEWUTS).run(&[("set the host name", &name)])
}

/// After clone, as the builder does once it stands in its cgroup.
pub(super) fn cgroup_namespace() -> Result<(), Refusal> {
    let make = || sys::unshare(libc::CLONE_NEWCGROUP);
    Trial::namespaces(0).run(&[("make the namespace", &make)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let user = |release| judge(release, LEAST).0;
        let root = |release| judge(release, LEAST_FOR_ROOT).0;
        assert_eq!(user("5.14.0-503.el9.x86_64"), State::Missing);
        assert_eq!(root("5.4.0"), State::Missing);
        assert_eq!(user("5.15.0-91-generic"), State::Given);
        assert_eq!(root("5.15.0-91-generic"), State::Weaker);
        assert_eq!(root("5.19.0"), State::Given);
        assert_eq!(root("6.1+deb12"), State::Given);
        assert_eq!(root("10.0-rc1"), State::Given);
        assert_eq!(root("unknown"), State::Weaker);
    }
}
