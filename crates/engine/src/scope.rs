//! A place for cgroups under a systemd user session: an ordinary user cannot move a process out of its login
//! session, but the user's own systemd can start one in a scope that is delegated to it.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use jail::Hierarchies;
use rustix::fs::{Access, access};
use rustix::process::geteuid;

/// The program that asks the user's systemd for a scope.
const SYSTEMD_RUN: &str = "/usr/bin/systemd-run";

/// The command in front of the keeper, where a scope is needed and to be had; else nothing.
pub(crate) fn prefix(description: &str) -> Option<Vec<String>> {
    if geteuid().is_root() || !Path::new(SYSTEMD_RUN).exists() || manager().is_none() {
        return None;
    }
    let unified = Hierarchies::read().ok()?.unified.filter(|unified| unified.has_all_controllers())?;
    // A cgroup that was handed over in another way needs no scope. One below the user's own systemd is the
    // caller's too, but it is systemd that arranges what is in there.
    let service = format!("user@{}.service", geteuid().as_raw());
    let is_managed = unified.own.iter().any(|part| part == service.as_str());
    if !is_managed && access(unified.own.join("cgroup.procs"), Access::WRITE_OK).is_ok() {
        return None;
    }
    let arguments = [
        SYSTEMD_RUN,
        "--user",
        "--scope",
        "--quiet",
        "--collect",
        "--property=Delegate=yes",
        "--description",
    ];
    let arguments = arguments.iter().copied().chain([description, "--"]);
    Some(arguments.map(str::to_owned).collect())
}

/// The variable that leads to the user's systemd, for a process that has no others.
pub(crate) fn environment() -> Option<(&'static str, PathBuf)> {
    Some(("XDG_RUNTIME_DIR", manager()?))
}

/// The runtime directory in which the user's systemd listens. One that was killed leaves its socket behind, so
/// this knocks at it; a session bus is not needed.
fn manager() -> Option<PathBuf> {
    let directory = PathBuf::from(format!("/run/user/{}", geteuid().as_raw()));
    UnixStream::connect(directory.join("systemd/private")).is_ok().then_some(directory)
}
