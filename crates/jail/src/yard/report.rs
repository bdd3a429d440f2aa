//! What a report says of walls that a runtime puts up. Each backend has its own list: what does not exist there is not on
//! it, and what stands in its place is.

use policy::{Backend, Limits, OciRuntime, Report, SandboxSpec, Standing, State, Wall};

use super::Stack;

/// The hint of a wall that the owner has chosen to do without.
pub(crate) const LEAVE_OUT_ROOT: &str = "leave --user root out";

/// Adds the walls that only a runtime has, in place of those that are not to be had with it.
pub(crate) fn report(report: &mut Report, spec: &SandboxSpec, runtime: &OciRuntime, stack: Stack) {
    let backend = spec.backend;
    let program = backend.program().unwrap_or_default();
    let version = format!("{program} {}", runtime.version);
    match &runtime.standing {
        Standing::Sound => report.given(Wall::RuntimeVersion, version),
        Standing::Vulnerable(why) => {
            let hint = format!("install a current {program}: `agentbox setup {backend}`");
            report.missing(Wall::RuntimeVersion, format!("{version} {why}"), hint);
        }
    }
    if !backend.has_own_kernel() {
        return;
    }
    let mut own = Report::default();
    let platform = runtime.platform.map_or("", policy::Platform::name);
    let files = if super::gvisor::opens_files_itself(spec) {
        "opens files itself"
    } else {
        "asks another process for files"
    };
    let kernel = format!("gVisor's, which takes system calls by {platform} and {files}");
    match stack {
        Stack::None => own.given(Wall::OwnKernel, kernel),
        Stack::Own => {
            own.given(Wall::OwnKernel, format!("{kernel}; it speaks TCP itself"));
            own.given(
                Wall::NetNamespace,
                "no network device but a loopback and a cable to the gateway's own",
            );
        }
        Stack::Hosts => {
            let detail =
                format!("{kernel}; what goes to the network is the host kernel's, in a namespace of its own");
            own.weaker(Wall::OwnKernel, detail, "--isolation strict lets its kernel speak TCP itself");
        }
    }
    let seccomp =
        "its kernel answers them, and may itself make only the calls that runsc's filter lets through";
    own.given(Wall::Seccomp, seccomp);
    own.given(Wall::NestedNamespaces, "those that are made inside are its kernel's, and none of the host's");
    if spec.user.is_root() {
        own.weaker(
            Wall::NonRoot,
            "root inside, who is nobody on the host and has no capability",
            LEAVE_OUT_ROOT,
        );
    }
    report.replace(own);
    // There is none in its kernel, and nobody is told that there was.
    report.remove(Wall::Landlock);
}

/// Says of the limit on processes how it holds with this backend.
pub fn report_pids(report: &mut Report, backend: Backend, limits: &Limits, host: &Limits) {
    let (pids, outer) = (limits.pids, host.pids);
    let by_cgroup = report.state(Wall::PidsLimit) == State::Given;
    let mut line = Report::default();
    match backend {
        Backend::Native => return,
        Backend::Gvisor if by_cgroup => {
            line.given(
                Wall::PidsLimit,
                format!("{pids} for each user by its kernel, {outer} of the host's by cgroup"),
            );
        }
        Backend::Gvisor => {
            let hint = "run as root, or under a systemd user session (`loginctl enable-linger`)";
            line.weaker(Wall::PidsLimit, format!("{pids} for each user by its kernel"), hint);
        }
        Backend::Crun | Backend::Runc if by_cgroup => {
            let own = outer.count() - pids.count();
            line.given(Wall::PidsLimit, format!("{pids} by cgroup, and {own} for the runtime's own threads"));
        }
        Backend::Crun | Backend::Runc => return,
    }
    report.replace(line);
}
