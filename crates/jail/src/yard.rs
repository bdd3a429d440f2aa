//! The yard: where a backend leaves the last walls to another program. The builder makes the same namespaces, the same
//! network and the same root as for a native sandbox, but puts that root into a small file system of its own, with nothing
//! of the host's beside it but the runtime; then it becomes the runtime, which is the root of the yard and nobody outside.
//!
//! So a runtime, and whoever gets past it, finds itself behind our own walls, and everything that it makes (processes,
//! mounts, files of its state) ends with the yard's first process. This is the only place that knows OCI.

mod bundle;
mod gvisor;
mod limits;
mod namespaced;
mod report;
mod second;
mod surroundings;
mod upper;

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};

use policy::{Backend, OciRuntime, SandboxSpec, Wall};

use crate::blueprint::Last;
use crate::error::JailError;
use crate::ids::IdMap;
use crate::seccomp::Program;
use crate::step::{Owner, Step, host_path, inside};
use crate::weaken::Weaken;

pub(crate) use gvisor::Stack;
pub use limits::host_limits;
pub use report::report_pids;
pub(crate) use report::{LEAVE_OUT_ROOT, report};
pub use upper::written_over_image;

/// Where the runtime stands in the yard, or its directory.
const RUNTIME: &str = "runtime";
/// Where the sandbox's root is put together, relative to the yard. Never the yard's own root: binds would show what lies
/// under them.
const ROOT: &str = "rootfs";
/// What its own programs need of a file system.
const YARD_OPTIONS: &str = "mode=0755,size=32m,nr_inodes=4096";
/// The filter on system calls that init puts on.
const FILTER: &str = "/.agentbox/filter";
/// The system's programs, which stand in a yard where they stand on the host.
const SYSTEM: &str = "/usr";
/// A yard that is planned.
pub(crate) struct Yard {
    backend: Backend,
    runtime: OciRuntime,
    /// Where it stands in the yard.
    program: CString,
    /// Where the runtime complains.
    complaints: File,
}

/// What a bundle is written from.
struct Inside<'plan> {
    spec: &'plan SandboxSpec,
    ids: &'plan IdMap,
    weaken: &'plan Weaken,
    /// What init is started with.
    arguments: &'plan [String],
    /// What can be written, as paths inside.
    writable: &'plan [PathBuf],
    /// Resource limits, by their numbers.
    limits: &'plan [(u32, u64)],
}

/// What a plan has for a yard.
pub(crate) struct Rootwork {
    /// The root's own steps.
    pub(crate) steps: Vec<Step>,
    /// The options of its file system.
    pub(crate) options: CString,
    /// What init is started with.
    pub(crate) arguments: Vec<String>,
    /// What can be written, as paths inside.
    pub(crate) writable: Vec<PathBuf>,
}

/// A yard as the builder gets it.
pub(crate) struct Laid {
    pub(crate) steps: Vec<Step>,
    /// The runtime's command line.
    pub(crate) arguments: Vec<CString>,
}

/// As whom the only id shows that a caller without a range has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    /// As the agent.
    Agent,
    /// As root, as which a runtime has to be started; init makes it the agent again.
    Root,
}

impl Face {
    /// The one that a backend needs.
    #[must_use]
    pub const fn of(backend: Backend) -> Self {
        match backend {
            Backend::Native => Self::Agent,
            Backend::Gvisor | Backend::Crun | Backend::Runc => Self::Root,
        }
    }
}

impl Yard {
    /// The yard of a specification whose backend is none of our own; none where it is.
    pub(crate) fn plan(
        spec: &SandboxSpec,
        site: Option<(&OciRuntime, File)>,
    ) -> Result<Option<Self>, JailError> {
        match (spec.backend, site) {
            (Backend::Native, _) => Ok(None),
            (backend, Some((runtime, complaints))) => {
                let program = host_path(&standing(backend, &runtime.program))?;
                Ok(Some(Self { backend, runtime: runtime.clone(), program, complaints }))
            }
            (backend, None) => Err(JailError::NoRuntime(backend)),
        }
    }

    /// Whom the last walls are left to.
    pub(crate) fn last(&self) -> Last<'_> {
        if self.backend.has_own_kernel() { Last::Kernel(&self.program) } else { Last::Runtime(&self.program) }
    }

    pub(crate) fn complaints(&self) -> BorrowedFd<'_> {
        self.complaints.as_fd()
    }

    /// The options of the yard's own file system.
    pub(crate) fn options(&self, ids: &IdMap) -> Result<CString, JailError> {
        let owner = if ids.has_root() { ",uid=0,gid=0" } else { "" };
        host_path(Path::new(&format!("{YARD_OPTIONS}{owner}")))
    }

    /// Further words for init.
    pub(crate) fn init_arguments(&self, spec: &SandboxSpec, ids: &IdMap, weaken: &Weaken) -> Vec<String> {
        let mut words = Vec::new();
        if !ids.has_root() {
            words.push("--single".to_owned());
        }
        if self.backend.has_own_kernel() {
            words.push("--own-kernel".to_owned());
        }
        if self.filter(spec, weaken).is_some() {
            words.extend(["--filter".to_owned(), FILTER.to_owned()]);
        }
        words
    }

    /// The filter that is left to init: no runtime can be relied on to have ours. A kernel of the sandbox's own needs none,
    /// but for what it would leave unanswered where it speaks TCP itself.
    fn filter(&self, spec: &SandboxSpec, weaken: &Weaken) -> Option<Program> {
        if !self.backend.has_own_kernel() {
            return weaken.keeps(Wall::Seccomp).then(|| crate::filters::sandbox(spec.nesting));
        }
        (Stack::of(spec, weaken) == Stack::Own).then(crate::filters::own_stack)
    }

    /// Lays the yard around a root: every step, and what is executed in the end.
    pub(crate) fn lay(
        &self,
        root: Rootwork,
        inside: (&SandboxSpec, &IdMap, &Weaken),
        limits: &[(u32, u64)],
    ) -> Result<Laid, JailError> {
        let (spec, ids, weaken) = inside;
        let Rootwork { steps: rooted, options, arguments, writable } = root;
        let place = path(ROOT)?;
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        let mut steps = vec![
            directory(ROOT, 0o755)?,
            Step::FileSystem {
                kind: c"tmpfs".to_owned(),
                path: place.clone(),
                flags,
                options: Some(options),
            },
            Step::Enter { path: place.clone() },
        ];
        let (settings, mut rooted) = self.divide(rooted);
        let mut writable = writable;
        if self.backend.has_own_kernel() {
            let links = second::link(&mut rooted)?;
            writable.retain(|path| !links.contains(path));
        }
        if !ids.has_root() {
            rooted.iter_mut().for_each(make_builders_own);
        }
        steps.extend(rooted);
        if let Some(filter) = self.filter(spec, weaken) {
            steps.push(Step::File { path: path(FILTER)?, contents: filter.bytes() });
        }
        steps.push(Step::Enter { path: path("..")? });
        steps.push(Step::Seal { path: place });
        steps.extend(self.surroundings(ids)?);
        steps.extend(self.count_namespaces(settings, spec, ids)?);
        let described = Inside { spec, ids, weaken, arguments: &arguments, writable: &writable, limits };
        let bundle = bundle::write(self, &described)?;
        steps.push(Step::File { path: path("bundle/config.json")?, contents: bundle });
        let words = match self.backend {
            Backend::Gvisor => gvisor::command(&self.runtime, spec, ids, weaken),
            _ => namespaced::command(self.backend, spec),
        };
        let arguments = words.iter().map(|word| host_path(Path::new(word))).collect::<Result<_, _>>()?;
        Ok(Laid { steps, arguments })
    }

    /// Takes out of a root's steps what the runtime does itself inside: /proc, /dev, and with a kernel of its own /sys.
    /// What is set through /proc is set in the yard instead.
    fn divide(&self, steps: Vec<Step>) -> (Vec<Step>, Vec<Step>) {
        let below = |step: &Step, name: &str| {
            step.place().is_some_and(|place| place.to_bytes() == name.as_bytes() || is_below(place, name))
        };
        let is_directory = |step: &Step| matches!(step, Step::Directory { .. });
        let (settings, steps): (Vec<Step>, Vec<Step>) =
            steps.into_iter().partition(|step| matches!(step, Step::Setting { .. }));
        let own_kernel = self.backend.has_own_kernel();
        // One device has to be there to cover other things with.
        let is_device =
            |step: &Step| below(step, "dev") && !below(step, "dev/null") && !below(step, "dev/shm");
        let is_the_runtimes = |step: &Step| {
            !is_directory(step)
                && (below(step, "proc") || is_device(step) || (own_kernel && below(step, "sys")))
        };
        (settings, steps.into_iter().filter(|step| !is_the_runtimes(step)).collect())
    }

    /// Limits on what may be made in the yard's user namespace and all below it. Only the runtime makes another one, and
    /// for a single id init; what has a kernel of its own makes none of the host's.
    fn count_namespaces(
        &self,
        settings: Vec<Step>,
        spec: &SandboxSpec,
        ids: &IdMap,
    ) -> Result<Vec<Step>, JailError> {
        const LIMIT: &CStr = c"proc/sys/user/max_user_namespaces";
        let keep = |step: &Step| !matches!(step, Step::Setting { path, .. } if path.as_c_str() == LIMIT);
        let mut steps: Vec<Step> = settings.into_iter().filter(keep).collect();
        if spec.nesting == policy::Nesting::Closed && !self.backend.has_own_kernel() {
            let count: u8 = if ids.has_root() { 1 } else { 2 };
            steps.push(Step::Setting { path: LIMIT.to_owned(), value: count.to_string().into_bytes() });
        }
        Ok(steps)
    }
}

/// Where a runtime is executed in the yard.
fn standing(backend: Backend, program: &Path) -> PathBuf {
    match (backend, program.file_name()) {
        (Backend::Runc, _) if program.starts_with(SYSTEM) => program.to_owned(),
        (Backend::Runc, Some(name)) => Path::new("/").join(RUNTIME).join(name),
        _ => Path::new("/").join(RUNTIME),
    }
}

/// Where there is nobody else, everything is the builder's, who shows as root in a yard.
fn make_builders_own(step: &mut Step) {
    match step {
        Step::Directory { owner, .. } | Step::Place { owner, .. } => *owner = Owner::Builder,
        Step::Overlay { uid, gid, .. } => (*uid, *gid) = (0, 0),
        _ => {}
    }
}

fn is_below(place: &CStr, name: &str) -> bool {
    place.to_bytes().strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
}

fn directory(name: &str, mode: u32) -> Result<Step, JailError> {
    Ok(Step::Directory { path: path(name)?, mode, owner: Owner::Builder })
}

/// A path of the yard's, or a word, for the kernel.
fn path(text: &str) -> Result<CString, JailError> {
    inside(Path::new(text))
}

/// A pipe for a runtime's complaints: the end to read from, and the one that it gets. What does not fit into it waits, and
/// whoever writes more than anybody will read waits with it.
pub fn complaints() -> io::Result<(File, File)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&read, true)?;
    Ok((read.into(), write.into()))
}
