//! A sandbox that is being started: its cgroups, ids and plan, the cloned builder and the supervisor.

use std::fs;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use handover::KeeperOrder;
use jail::{Cgroup, Granted, Jailed, Plan, Rooted, Site, Streams, Survey, Weaken};
use policy::{Report, Wall};

use crate::clean::CGROUPS_FILE;
use crate::error::KeeperError;
use crate::supervisor::{Supervise, Supervisor};

pub(crate) struct Sandbox {
    pub(crate) plan: Plan,
    pub(crate) root: Rooted,
    pub(crate) jailed: Jailed,
    pub(crate) supervisor: Supervisor,
}

impl Sandbox {
    /// Starts everything. The walls still go up when this returns; [`Jailed::status`] tells when they stand.
    pub(crate) fn start(
        order: &KeeperOrder,
        survey: &Survey,
        client: OwnedFd,
        supervise: Supervise,
    ) -> Result<Self, KeeperError> {
        let own: Vec<&Path> = order.own.iter().map(AsRef::as_ref).collect();
        let site =
            Site { init: &order.init, staging: &order.runtime, home: order.home.as_deref(), own: &own };
        let plan = plan(order, &site, survey, weakened())?;
        let (channel, inner) = UnixStream::pair().map_err(KeeperError::Watch)?;
        // Init has nothing to say but its exit code; what is on its stderr could come from anywhere.
        let log = fs::File::options().write(true).open("/dev/null").map_err(KeeperError::Watch)?;

        // The builder works on the other processor while this one goes on.
        let mut jailed = jail::launch(&plan, &Streams { channel: inner.as_fd(), log: log.as_fd() })?;
        let started = jailed.map_ids(&plan).and_then(|()| {
            let root = plan.root(&order.spec, &site)?;
            jailed.build(&root)?;
            Ok(root)
        });
        let started = started.map_err(KeeperError::from).and_then(|root| {
            let uid = plan.ids().supervisor_id();
            Ok((root, Supervisor::start(order, uid, channel, client, supervise)?))
        });
        match started {
            Ok((root, supervisor)) => Ok(Self { plan, root, jailed, supervisor }),
            Err(error) => {
                // What the builder has to say, if anything, came first.
                let said = jailed.is_decided().then(|| jailed.outcome(None).err()).flatten();
                let error = said.map_or(error, KeeperError::from);
                jailed.destroy();
                remove_cgroup(&plan);
                Err(error)
            }
        }
    }
}

fn plan(order: &KeeperOrder, site: &Site<'_>, survey: &Survey, weaken: Weaken) -> Result<Plan, KeeperError> {
    let mut report = Report::default();
    let ids = survey.choose_ids(&order.id_ranges, &mut report)?;
    let limited = weaken.keeps(Wall::MemoryLimit) && weaken.keeps(Wall::PidsLimit);
    let cgroup = if limited { limit(order, survey, &mut report)? } else { None };
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
    fs::write(&path, note).map_err(|source| KeeperError::File { path, source })?;
    let mut limits = Report::default();
    match cgroup.create(&order.spec.limits, &mut limits) {
        Ok(()) => {
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
    if weakened().keeps(Wall::Descriptors) {
        jail::drop_inherited_descriptors();
    }
}

#[cfg(feature = "weaken")]
fn weakened() -> Weaken {
    Weaken::from_environment()
}

#[cfg(not(feature = "weaken"))]
const fn weakened() -> Weaken {
    Weaken::nothing()
}
