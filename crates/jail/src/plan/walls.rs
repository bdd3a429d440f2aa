//! What a plan says of the walls that it has, and what strict isolation refuses.

use policy::{Isolation, Nesting, Report, SandboxSpec, Wall, WallReport, Workspace};

use crate::error::{Gap, JailError};
use crate::network::{self, LEAVE_OUT_FULL, LEAVE_OUT_PRIVATE, LEAVE_OUT_UPSTREAM};
use crate::survey::Survey;
use crate::yard::LEAVE_OUT_ROOT;

/// Landlock inside needs its second interface: the first refuses every rename across directories.
pub(crate) const LANDLOCK_LEAST: u32 = 2;
/// The hint of walls that the owner has chosen to do without.
const LEAVE_OUT_NESTED: &str = "leave --nested out";
const LEAVE_OUT_DIRECT: &str = "leave :direct out, and take what was changed when you have read it";
/// Adds the walls that every plan has.
pub(super) fn report_walls(report: &mut Report, spec: &SandboxSpec, is_kept: bool, survey: &Survey) {
    let landlock = survey.landlock;
    for wall in Wall::ALL.iter().filter(|wall| wall.is_never_optional()) {
        match (wall, &spec.workspace) {
            (Wall::MountNamespace, Workspace::Direct(directory)) => {
                let detail = format!("{}, and '{}' is written directly", wall.meaning(), directory.display());
                report.weaker(*wall, detail, LEAVE_OUT_DIRECT);
            }
            _ => report.given(*wall, wall.meaning()),
        }
    }
    match spec.nesting {
        Nesting::Closed => {
            report.given(Wall::NestedNamespaces, "closed by the filter and by a limit of zero")
        }
        Nesting::Open => report.missing(Wall::NestedNamespaces, "opened by --nested", LEAVE_OUT_NESTED),
    }
    if spec.nesting == Nesting::Open {
        let detail = "off with --nested: it forbids every mount, also in namespaces of one's own";
        report.missing(Wall::Landlock, detail, LEAVE_OUT_NESTED);
    } else if landlock >= LANDLOCK_LEAST {
        report.given(Wall::Landlock, format!("interface {landlock}"));
    } else {
        let detail = format!("the kernel has interface {landlock}, and {LANDLOCK_LEAST} is needed");
        report.missing(Wall::Landlock, detail, "boot a kernel of 5.19 or later with `lsm=landlock,…`");
    }
    if survey.has_cgroup_namespaces {
        report.given(Wall::CgroupNamespace, Wall::CgroupNamespace.meaning());
    } else {
        let hint = "raise the limit with `sysctl user.max_cgroup_namespaces=15000`";
        report.missing(Wall::CgroupNamespace, "the machine allows no cgroup namespace", hint);
    }
    network::report(report, &spec.network);
    let disk = spec.limits.disk;
    let private = format!("{disk} for all private directories together");
    if let Workspace::Direct(_) = spec.workspace {
        let detail = format!("{private}; what is written directly is watched by nobody");
        report.weaker(Wall::DiskLimit, detail, LEAVE_OUT_DIRECT);
        return;
    }
    let detail = if is_kept {
        format!(
            "{private}; workspace and outputs are on the disk and watched: all is paused when they hold {disk}"
        )
    } else {
        private
    };
    report.given(Wall::DiskLimit, detail);
}

/// Strict isolation starts only with everything.
pub(super) fn refuse_gaps(isolation: Isolation, report: &Report) -> Result<(), JailError> {
    // What the owner has chosen is no gap of the machine's.
    let choices = [
        LEAVE_OUT_NESTED,
        LEAVE_OUT_DIRECT,
        LEAVE_OUT_FULL,
        LEAVE_OUT_PRIVATE,
        LEAVE_OUT_UPSTREAM,
        LEAVE_OUT_ROOT,
    ];
    let chosen = |line: &&WallReport| line.hint.as_deref().is_some_and(|hint| choices.contains(&hint));
    let gap = report.gaps().into_iter().find(|line| !chosen(line)).cloned();
    match (isolation, gap) {
        (Isolation::Strict, Some(gap)) => Err(JailError::Strict {
            wall: gap.wall,
            source: Gap(gap.detail),
            hint: gap.hint.unwrap_or_default(),
        }),
        _ => Ok(()),
    }
}
