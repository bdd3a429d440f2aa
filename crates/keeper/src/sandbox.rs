//! A sandbox that is being started: its builder, which may begin before the order has come, its cgroups, ids and plan,
//! and the supervisor.

use std::fs;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use audit::{Event, StopReason};
use failpoint::Point;
use handover::{Filed, Inward, KeeperOrder, LAYER, Sockets, TreeOrder, UPPER, Way};
use jail::{
    Cgroup, Direct, Face, Granted, IdMap, Jailed, Layered, Plan, Rooted, Site, Streams, Survey, Tree, Weaken,
};
use policy::network::Mode;
use policy::{Backend, Report, Timeout, Wall};

use crate::clean::CGROUPS_FILE;
use crate::error::KeeperError;
use crate::record::Record;
use crate::supervisor::{Lines, Supervise, Supervisor};

/// A builder on its way, and the channel to what it will become.
pub(crate) struct Begun {
    jailed: Jailed,
    channel: UnixStream,
    /// What its ids were given as, once they were.
    has_ids: Option<Face>,
}

impl Begun {
    /// Clones the builder before there is an order, unless the order decides what it is cloned into: its namespaces are
    /// the same for every order and take long.
    pub(crate) fn early() -> Option<Result<Self, KeeperError>> {
        (!Cgroup::are_entered_by_clone()).then(|| Self::now(None))
    }

    fn now(cgroup: Option<&Cgroup>) -> Result<Self, KeeperError> {
        let (channel, inner) = UnixStream::pair().map_err(KeeperError::Watch)?;
        // Init has nothing to say but its exit code; what is on its stderr could come from anywhere.
        let log = fs::File::options().write(true).open("/dev/null").map_err(KeeperError::Watch)?;
        let streams = Streams { channel: inner.as_fd(), log: log.as_fd() };
        let jailed = jail::launch(&Weaken::current(), cgroup, &streams)?;
        failpoint::pass(Point::KeeperBuilderCloned);
        Ok(Self { jailed, channel, has_ids: None })
    }

    /// The same with its ids, which are given once.
    pub(crate) fn with_ids(mut self, ids: &IdMap, face: Face) -> Result<Self, KeeperError> {
        if self.has_ids.is_none()
            && let Err(error) = self.jailed.map_ids(ids, face)
        {
            self.abandon();
            return Err(error.into());
        }
        self.has_ids = Some(face);
        failpoint::pass(Point::KeeperIdsMapped);
        Ok(self)
    }

    /// Ends a builder that is not needed.
    pub(crate) fn abandon(self) {
        self.jailed.destroy();
    }
}

pub(crate) struct Sandbox {
    pub(crate) plan: Plan,
    pub(crate) root: Rooted,
    pub(crate) jailed: Jailed,
    pub(crate) supervisor: Supervisor,
    pub(crate) record: Record,
    /// Where what outlives its processes is, if anything does.
    pub(crate) kept: Option<PathBuf>,
    /// Where what is only there while it runs is.
    pub(crate) runtime: PathBuf,
    /// What it may have on the host's disk.
    pub(crate) disk: u64,
    /// How long it may live.
    pub(crate) lifetime: Option<Duration>,
    /// What its workspace is, where that is a tree of the owner's.
    pub(crate) tree: Option<TreeOrder>,
    /// What leads to its init.
    pub(crate) way: Inward,
    /// The name of what puts up its last walls, where that is a runtime.
    pub(crate) backend: Backend,
}

impl Sandbox {
    /// Starts everything. The walls still go up when this returns; [`Jailed::status`] tells when they stand.
    pub(crate) fn start(
        order: &KeeperOrder,
        survey: Survey,
        begun: Option<Result<Begun, KeeperError>>,
        sockets: Sockets,
        supervise: Supervise,
    ) -> Result<Self, KeeperError> {
        let own: Vec<&Path> = order.own.iter().map(AsRef::as_ref).collect();
        let layer = order.kept.as_ref().map(|kept| kept.join(LAYER));
        let upper = layer.as_deref().unwrap_or(&order.runtime).join(UPPER);
        let site = Site {
            init: &order.init,
            staging: &order.runtime,
            home: order.home.as_deref(),
            own: &own,
            kept: order.kept.as_deref(),
            tree: order.tree.as_ref().zip(layer.as_deref()).map(|(tree, layer)| shown(tree, layer, &upper)),
            runtime: order.program.as_ref(),
        };
        let mut plan = match plan(order, &site, &survey, Weaken::current()) {
            Ok(plan) => plan,
            Err(error) => {
                if let Some(Ok(begun)) = begun {
                    begun.abandon();
                }
                return Err(error);
            }
        };
        let face = Face::of(order.spec.backend);
        // One whose only id shows as somebody else is of no use to a runtime.
        let is_other = |begun: &Begun| {
            matches!(plan.ids(), IdMap::Single) && begun.has_ids.is_some_and(|shown| shown != face)
        };
        let begun = match begun {
            // Nobody stands outside of the cgroup that was made for it.
            Some(Ok(begun)) if plan.cgroup().is_some_and(Cgroup::is_entered_by_clone) || is_other(&begun) => {
                begun.abandon();
                None
            }
            begun => begun,
        };
        let begun = begun.unwrap_or_else(|| Begun::now(plan.cgroup()));
        let Begun { mut jailed, channel, .. } = match begun.and_then(|begun| begun.with_ids(plan.ids(), face))
        {
            Ok(begun) => begun,
            Err(error) => {
                remove_cgroup(&plan);
                return Err(error);
            }
        };
        if order.spec.backend.has_own_kernel() {
            jailed.raise_descriptors();
        }
        // The builder works on the other processor while this one goes on.
        let started = plan.root(&order.spec, &site, survey).and_then(|root| {
            jailed.build(&plan, &root)?;
            failpoint::pass(Point::KeeperBlueprintSent);
            Ok(root)
        });
        let record = Record::of(order);
        let started = started.map_err(KeeperError::from).and_then(|root| {
            if order.kept.is_none() {
                // For other commands while it runs.
                let filed = Filed { init: Some(jailed.pid()), ..Filed::new(order.spec.clone()) };
                let filed = filed.write_for_now(&order.runtime);
                let filed = filed.and_then(|()| failpoint::attempt(Point::KeeperFiled));
                filed.map_err(|source| KeeperError::File { path: order.runtime.clone(), source })?;
            }
            let begun = record.begin(order, &plan)?;
            let has_network = order.spec.network.mode != Mode::None;
            let lines = Lines { channel, gate: if has_network { jailed.gate() } else { None } };
            let supervisor = Supervisor::start(order, &plan, begun, lines, sockets, supervise);
            if supervisor.is_err() {
                // Its start is on record, and so is what became of it.
                let _ = record.conclude(&Event::Stopped { reason: StopReason::Failed, code: None });
            }
            failpoint::pass(Point::KeeperSupervisorForked);
            Ok((root, supervisor?))
        });
        match started {
            Ok((root, supervisor)) => {
                let kept = order.kept.clone();
                let lifetime = order.spec.life.lifetime.map(Timeout::duration);
                let (runtime, disk) = (order.runtime.clone(), order.spec.limits.disk.as_bytes());
                let tree = order.tree.clone();
                let backend = order.spec.backend;
                let way = Inward::of(backend);
                Ok(Self {
                    plan,
                    root,
                    jailed,
                    supervisor,
                    record,
                    kept,
                    runtime,
                    disk,
                    lifetime,
                    tree,
                    way,
                    backend,
                })
            }
            Err(error) => {
                // What the builder has to say, if anything, came first.
                let said = jailed.is_decided().then(|| plan.hear(jailed.outcome(None)).err()).flatten();
                let error = said.map_or(error, KeeperError::from);
                jailed.destroy();
                remove_cgroup(&plan);
                Err(error)
            }
        }
    }
}

/// A tree of the owner's as it is shown inside.
fn shown<'order>(tree: &'order TreeOrder, layer: &'order Path, upper: &'order Path) -> Tree<'order> {
    let TreeOrder { owner, stores, way, .. } = tree;
    match way {
        Way::Layered => Tree::Layered(Layered { owner, layer, stores }),
        Way::Direct(covers) => Tree::Direct(Direct { owner, own: upper, stores, covers }),
    }
}

fn plan(order: &KeeperOrder, site: &Site<'_>, survey: &Survey, weaken: Weaken) -> Result<Plan, KeeperError> {
    let mut report = Report::default();
    let ids = survey.choose_ids(&order.id_ranges, &mut report)?;
    let limited = weaken.keeps(Wall::MemoryLimit) && weaken.keeps(Wall::PidsLimit);
    let cgroup = if limited { limit(order, survey, &mut report)? } else { None };
    let (backend, limits) = (order.spec.backend, &order.spec.limits);
    jail::report_pids(&mut report, backend, limits, &jail::host_limits(backend, limits));
    Ok(Plan::new(&order.spec, site, Granted { survey, ids, cgroup, report }, weaken)?)
}

/// Makes the cgroups, or reports why there are none.
fn limit(order: &KeeperOrder, survey: &Survey, report: &mut Report) -> Result<Option<Cgroup>, KeeperError> {
    let mut unlimited = |reason: String| {
        let hint = "run as root, or under a systemd user session (`loginctl enable-linger`), \
                    or have a cgroup delegated";
        report.missing(Wall::MemoryLimit, reason.clone(), hint);
        report.missing(Wall::CpuLimit, reason, hint);
        let pids = order.spec.limits.pids;
        report.weaker(Wall::PidsLimit, format!("{pids} by RLIMIT_NPROC of its user namespace"), hint);
    };
    let mut cgroup = match survey.find_cgroup(&order.spec.id) {
        Ok(cgroup) => cgroup,
        Err(reason) => {
            unlimited(reason);
            return Ok(None);
        }
    };
    // Written down first: a keeper that is killed in between leaves a note for the next command.
    let path = order.runtime.join(CGROUPS_FILE);
    let mut note = Vec::new();
    for directory in cgroup.directories() {
        let _ = writeln!(note, "{}", directory.display());
    }
    let noted = fs::write(&path, note).and_then(|()| failpoint::attempt(Point::KeeperCgroupsNoted));
    noted.map_err(|source| KeeperError::File { path, source })?;
    let mut limits = Report::default();
    match cgroup.create(&jail::host_limits(order.spec.backend, &order.spec.limits), &mut limits) {
        Ok(()) => {
            failpoint::pass(Point::KeeperCgroupsMade);
            report.extend(limits);
            Ok(Some(cgroup))
        }
        Err(reason) => {
            let _ = cgroup.remove();
            unlimited(reason);
            Ok(None)
        }
    }
}

pub(crate) fn remove_cgroup(plan: &Plan) {
    if let Some(cgroup) = plan.cgroup() {
        // What could not be removed now stands in the note and goes with the runtime directory.
        let _ = cgroup.remove();
    }
}

/// Closes what was inherited besides the three streams.
pub(crate) fn drop_descriptors() {
    if Weaken::current().keeps(Wall::Descriptors) {
        jail::drop_inherited_descriptors();
    }
}
