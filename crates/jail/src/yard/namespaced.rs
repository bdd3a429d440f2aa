//! What crun and runc are told: they put namespaces of their own around the root and leave the rest to init, which has the
//! same filter and the same Landlock domain as in a native sandbox.

use std::path::PathBuf;

use policy::{Backend, SandboxSpec, Wall};

use super::bundle::Mount;
use super::{Inside, ROOT, path};
use crate::error::JailError;
use crate::root;
use crate::step::Step;

/// Where shared memory lies in the yard.
const SHARED_MEMORY: &str = "/shm";

/// The command line. Neither may make cgroups: the builder has joined the sandbox's before, and what is made beside them
/// nobody would remove.
pub(super) fn command(backend: Backend, spec: &SandboxSpec) -> Vec<String> {
    let words: &[&str] = match backend {
        Backend::Crun => &["crun", "--root=/run/crun", "--cgroup-manager=disabled"],
        // With this it goes on where it may not make cgroups, which the yard does not let it.
        _ => &["runc", "--root=/run/runc", "--rootless=true"],
    };
    words
        .iter()
        .copied()
        .chain(["run", "--bundle=/bundle"])
        .map(str::to_owned)
        .chain([spec.id.to_string()])
        .collect()
}

/// What their own programs need in the yard: the system's libraries, and cgroups to look at, which runc does not start
/// without.
pub(super) fn surroundings(backend: Backend) -> Result<Vec<Step>, JailError> {
    let mut steps = Vec::new();
    steps.push(super::directory("usr", 0o755)?);
    steps.extend(root::system_trees()?);
    // By another way than through /dev, over which they mount their own first.
    steps.push(super::directory(&SHARED_MEMORY[1..], 0o755)?);
    let source = path(&format!("{ROOT}/dev/shm"))?;
    steps.push(Step::Again { source, path: path(SHARED_MEMORY)?, flags: 0 });
    if backend == Backend::Runc {
        let flags = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        let place = path("sys/fs/cgroup")?;
        steps.push(Step::FileSystem { kind: c"cgroup2".to_owned(), path: place, flags, options: None });
    }
    Ok(steps)
}

/// A fresh /proc, and a fresh /dev for them to fill, as everybody has it: what they do where there is none is less well
/// looked after. Shared memory lies with all else that is limited by one number.
pub(super) fn mounts(inside: &Inside<'_>) -> Vec<Mount> {
    let mount = |destination: &str, kind: &'static str, source: &str, options: &[&str]| Mount {
        destination: PathBuf::from(destination),
        kind,
        source: PathBuf::from(source),
        options: options.iter().map(|option| (*option).to_owned()).collect(),
    };
    let proc = if inside.weaken.keeps(Wall::PidNamespace) {
        mount("/proc", "proc", "proc", &["nosuid", "nodev", "noexec"])
    } else {
        mount("/proc", "bind", "/proc", &["rbind"])
    };
    vec![
        proc,
        mount("/dev", "tmpfs", "tmpfs", &["nosuid", "noexec", "strictatime", "mode=755", "size=64k"]),
        mount(
            "/dev/pts",
            "devpts",
            "devpts",
            &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"],
        ),
        mount("/dev/shm", "bind", SHARED_MEMORY, &["bind", "nosuid", "nodev"]),
    ]
}
