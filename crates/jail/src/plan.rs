//! Everything that the builder will need. It reaches it as bytes ([`crate::blueprint`]), and the builder only carries
//! it out.

mod limits;
mod walls;

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};

use policy::network::Mode;
use policy::{Nesting, OciRuntime, Report, Root, SandboxSpec, State, Wall};

use crate::cgroup::Cgroup;
use crate::error::{Gap, JailError};
use crate::ids::IdMap;
use crate::launch::Built;
use crate::network::{self, Fallback, Wiring};
use crate::root::{self, INIT_PATH, Sources, Tree, WRITABLE};
use crate::step::{Step, host_path};
use crate::survey::Survey;
use crate::weaken::Weaken;
use crate::yard::{self, Rootwork, Stack, Yard};

use limits::{inner_limits, resource_limits};
pub(crate) use walls::LANDLOCK_LEAST;
use walls::{refuse_gaps, report_walls};

/// Files in the private directories, beside their size.
const FILES_PER_MEBIBYTE: u64 = 256;

/// What of the host a plan is made with.
pub struct Site<'host> {
    /// The static file that becomes PID 1.
    pub init: &'host Path,
    /// A directory of ours, on which the new root is put together; inside the walls it is covered by it.
    pub staging: &'host Path,
    /// The caller's home directory.
    pub home: Option<&'host Path>,
    /// Our own directories, which no mount may bring in.
    pub own: &'host [&'host Path],
    /// The directory whose `workspace` and `outputs` outlive the sandbox's processes; without it they end with them.
    pub kept: Option<&'host Path>,
    /// A tree of the owner's, where that is the workspace.
    pub tree: Option<Tree<'host>>,
    /// The program that the last walls are left to, where the backend has one.
    pub runtime: Option<&'host OciRuntime>,
}

/// The walls of one sandbox, but for its root.
pub struct Plan {
    pub(crate) ids: IdMap,
    pub(crate) staging: CString,
    pub(crate) root_options: CString,
    /// Whether the sandbox gets a cgroup namespace.
    pub(crate) own_cgroups: bool,
    pub(crate) host_name: Vec<u8>,
    pub(crate) limits: Vec<(u32, u64)>,
    pub(crate) nesting: Nesting,
    /// How its network is wired, where it has one.
    pub(crate) wiring: Option<Wiring<Vec<u8>>>,
    /// And what is done where the kernel has no rules for it, which shows only when it is built.
    fallback: Fallback,
    pub(crate) cgroup: Option<Cgroup>,
    pub(crate) weaken: Weaken,
    /// Where a runtime puts up the last walls.
    pub(crate) yard: Option<Yard>,
    /// And what of it complains to the keeper.
    pub(crate) complaints: Option<File>,
    report: Report,
}

/// The root file system of one sandbox, planned.
pub struct Rooted {
    pub(crate) steps: Vec<Step>,
    pub(crate) init_arguments: Vec<CString>,
    covered_sockets: Vec<PathBuf>,
}

impl Plan {
    /// Plans the walls. `report` already tells of ids and limits; here the rest is added, and strict isolation
    /// is refused if anything is missing.
    pub fn new(
        spec: &SandboxSpec,
        site: &Site<'_>,
        granted: Granted<'_>,
        weaken: Weaken,
    ) -> Result<Self, JailError> {
        let Granted { survey, ids, cgroup, mut report } = granted;
        let (spec, ids) = (&*weaken.spec(spec), weaken.ids(ids).for_backend(spec.backend));
        ids.check_user(spec.user)?;
        if matches!(site.tree, Some(Tree::Layered(_))) || matches!(spec.root, Root::Image(_)) {
            ids.check_overlays()?;
        }
        report_walls(&mut report, spec, site.kept.is_some(), survey);
        let (yard, complaints) = plan_yard(spec, site.runtime, &ids)?;
        if let Some(runtime) = site.runtime.filter(|_| yard.is_some()) {
            yard::report(&mut report, spec, runtime, Stack::of(spec, &Weaken::nothing()));
        }
        refuse_gaps(spec.isolation, &report)?;
        let fallback = Fallback::new(spec.isolation, &spec.network);
        let own_cgroups =
            report.state(Wall::CgroupNamespace) == State::Given && weaken.keeps(Wall::CgroupNamespace);
        Ok(Self {
            staging: host_path(site.staging)?,
            root_options: match &yard {
                Some(yard) => yard.options(&ids)?,
                None => root_options(spec, &ids, &weaken)?,
            },
            own_cgroups,
            host_name: root::host_name(spec).into_bytes(),
            limits: resource_limits(spec, &report),
            nesting: spec.nesting,
            wiring: (spec.network.mode != Mode::None)
                .then(|| Wiring::new(&fallback, Stack::place(spec, &weaken))),
            fallback,
            ids,
            cgroup,
            weaken,
            yard,
            complaints,
            report,
        })
    }

    /// Plans the root file system, which takes longer than all else: the builder makes its namespaces meanwhile.
    pub fn root(&self, spec: &SandboxSpec, site: &Site<'_>, survey: Survey) -> Result<Rooted, JailError> {
        let spec = &*self.weaken.spec(spec);
        let Site { init, home, own, kept, tree, .. } = *site;
        let sources = Sources { init, home, own, kept, tree: self.weaken.tree(tree) };
        let planned = root::plan(spec, &self.ids, &sources, survey.host)?;
        let mut steps = planned.steps;
        self.weaken.root(&mut steps)?;
        if let Some(cgroup) = self.cgroup.as_ref().filter(|_| self.own_cgroups) {
            steps.extend(cgroup.steps()?);
        }
        let (writable, covered_sockets) = (planned.writable_mounts, planned.covered_sockets);
        let mut words = self.init_arguments(&writable);
        let Some(yard) = &self.yard else {
            let init_arguments = words.iter().map(|word| host_path(Path::new(word)));
            return Ok(Rooted {
                steps,
                init_arguments: init_arguments.collect::<Result<_, _>>()?,
                covered_sockets,
            });
        };
        words.extend(yard.init_arguments(spec, &self.ids, &self.weaken));
        let options = root_options(spec, &self.ids, &self.weaken)?;
        let rootwork = Rootwork { steps, options, arguments: words, writable };
        let laid = yard.lay(rootwork, (spec, &self.ids, &self.weaken), &inner_limits(spec, &self.limits))?;
        Ok(Rooted { steps: laid.steps, init_arguments: laid.arguments, covered_sockets })
    }

    fn init_arguments(&self, writable_mounts: &[PathBuf]) -> Vec<String> {
        let mut arguments = vec![INIT_PATH.to_owned(), "--landlock".to_owned()];
        let required = self.report.state(Wall::Landlock) == State::Given && self.weaken.keeps(Wall::Landlock);
        arguments.push(if required { "required" } else { "off" }.to_owned());
        let writable = WRITABLE.iter().map(PathBuf::from).chain(writable_mounts.iter().cloned());
        for path in writable.chain(["/proc", "/dev"].iter().map(PathBuf::from)) {
            arguments.extend(["--write".to_owned(), path.display().to_string()]);
        }
        arguments.extend(self.weaken.init_arguments());
        arguments
    }

    /// Where the runtime complains, if there is one.
    pub const fn complaints(&mut self) -> Option<&mut File> {
        self.complaints.as_mut()
    }

    /// Becomes readable when it does.
    pub fn complaining(&self) -> Option<BorrowedFd<'_>> {
        self.complaints.as_ref().map(File::as_fd)
    }

    /// Takes in what was found out only while it was built: on a kernel without rules for packets the network has some
    /// ports alone, which is reported, or there is none.
    pub fn hear(&mut self, outcome: Result<Built, JailError>) -> Result<(), JailError> {
        match (outcome, &self.fallback) {
            (Ok(Built { without_rules: Some(error) }), Fallback::Ports(ports)) => {
                network::report_ports(&mut self.report, ports, &error);
                Ok(())
            }
            (Err(JailError::NoRules(error)), Fallback::Strict) => Err(JailError::Strict {
                wall: Wall::Egress,
                source: Gap(network::lack(&error)),
                hint: network::LOAD.to_owned(),
            }),
            (Err(JailError::NoRules(error)), Fallback::TooMany(count)) => {
                Err(JailError::TooManyPorts { count: *count, source: Gap(network::lack(&error)) })
            }
            (outcome, _) => outcome.map(drop),
        }
    }

    /// The effective isolation.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.report
    }

    /// The cgroups of the sandbox, if it has any.
    #[must_use]
    pub const fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }

    /// The ids of the sandbox.
    #[must_use]
    pub const fn ids(&self) -> &IdMap {
        &self.ids
    }
}

impl Rooted {
    /// Sockets of the host's in mounted trees, covered.
    #[must_use]
    pub fn covered_sockets(&self) -> &[PathBuf] {
        &self.covered_sockets
    }
}

/// What the machine grants a sandbox beyond what a plan can decide by itself.
pub struct Granted<'survey> {
    /// What there is on it.
    pub survey: &'survey Survey,
    /// Its ids.
    pub ids: IdMap,
    /// Its cgroups, made already.
    pub cgroup: Option<Cgroup>,
    /// What has been said of both.
    pub report: Report,
}

/// The yard of a specification, and our end of its complaints.
fn plan_yard(
    spec: &SandboxSpec,
    runtime: Option<&OciRuntime>,
    ids: &IdMap,
) -> Result<(Option<Yard>, Option<File>), JailError> {
    let Some(runtime) = runtime else { return Ok((Yard::plan(spec, None)?, None)) };
    let (ours, theirs) = yard::complaints().map_err(JailError::Namespaces)?;
    ids.give_to_root(&theirs).map_err(JailError::Namespaces)?;
    Ok((Yard::plan(spec, Some((runtime, theirs)))?, Some(ours)))
}

fn root_options(spec: &SandboxSpec, ids: &IdMap, weaken: &Weaken) -> Result<CString, JailError> {
    let mut options = "mode=0755".to_owned();
    if ids.has_root() {
        options.push_str(",uid=0,gid=0");
    }
    if weaken.keeps(Wall::DiskLimit) {
        let size = spec.limits.disk.as_bytes();
        let files = ((size >> 20) * FILES_PER_MEBIBYTE).max(4096);
        options.push_str(&format!(",size={size},nr_inodes={files}"));
    }
    host_path(Path::new(&options))
}
