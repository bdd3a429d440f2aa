//! Whether limits can be set: which cgroups the machine has, and a cgroup with limits really made and removed, by a
//! process that stands where a keeper would stand.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use jail::{Controller, Hierarchies, Subordinates, Survey};
use policy::{Limits, Report, SandboxId, State, Wall};

use super::surroundings::Surroundings;
use super::{Finding, Health};
use crate::scope;
use crate::setup::{self, SetupHow, SetupStep};

/// What hands controllers on to users before version 252 of systemd.
const DELEGATION: &str = "/etc/systemd/system/user@.service.d/agentbox.conf";

const WALLS: [Wall; 3] = [Wall::MemoryLimit, Wall::CpuLimit, Wall::PidsLimit];

/// The word by which our own program becomes the process that tries.
pub const LIMITS_PROBE: &str = "limits-probe";

/// One finding for the hierarchies, one for systemd's scope and one for each limit.
pub(super) fn findings(surroundings: &Surroundings) -> Vec<Finding> {
    let hierarchies = Hierarchies::read().unwrap_or_default();
    let tried = try_limits(surroundings);
    let remedy = setup::commands(&remedy(&hierarchies, surroundings));
    let remedy = Some(remedy).filter(|commands| !commands.is_empty());
    let mut found = vec![hierarchy(&hierarchies), systemd_scope(&tried, surroundings)];
    for wall in WALLS {
        let (state, detail) = match &tried.limits {
            Ok(report) => report
                .walls()
                .into_iter()
                .find(|line| line.wall == wall)
                .map_or((State::Missing, "not set".to_owned()), |line| (line.state, line.detail.clone())),
            Err(_) if wall == Wall::PidsLimit => {
                (State::Weaker, "only by RLIMIT_NPROC of a user namespace".to_owned())
            }
            Err(reason) => (State::Missing, reason.clone()),
        };
        let fix = remedy.clone().filter(|_| state != State::Given);
        found.push(Finding { name: wall.name(), state: state.into(), detail, fix });
    }
    found
}

/// What is to be done for limits, where they cannot be set.
pub(crate) fn lacking(surroundings: &Surroundings) -> Vec<SetupStep> {
    let given = |report: &Report| WALLS.iter().all(|wall| report.state(*wall) == State::Given);
    if try_limits(surroundings).limits.as_ref().is_ok_and(given) {
        return Vec::new();
    }
    remedy(&Hierarchies::read().unwrap_or_default(), surroundings)
}

/// What came of trying.
struct Tried {
    /// In a scope of the user's systemd, as a keeper would be started.
    in_scope: bool,
    limits: Result<Report, String>,
}

/// Starts our own program as a keeper would be started, to make a cgroup there.
fn try_limits(surroundings: &Surroundings) -> Tried {
    let prefix = scope::prefix("agentbox doctor").unwrap_or_default();
    let in_scope = !prefix.is_empty();
    let program = surroundings.program.display().to_string();
    let words: Vec<&str> =
        prefix.iter().map(String::as_str).chain([program.as_str(), LIMITS_PROBE]).collect();
    let output = Command::new(words[0]).args(&words[1..]).env_clear().envs(scope::environment()).output();
    let limits = match output {
        Ok(output) => serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("{} ended without a word: {}", words[0], said.trim()))
        }),
        Err(error) => Err(format!("cannot start {}: {error}", words[0])),
    };
    Tried { in_scope, limits }
}

/// The life of the process that tries: makes a cgroup with limits, removes it, and says in JSON what was set.
#[must_use]
pub fn limits_probe() -> ExitCode {
    match serde_json::to_string(&set_limits()) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

fn set_limits() -> Result<Report, String> {
    let mut bytes = [0; 12];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|errno| format!("no random name: {errno}"))?;
    let mut cgroup = Survey::take(Subordinates::find()).find_cgroup(&SandboxId::from_random(bytes))?;
    let mut report = Report::default();
    let made = cgroup.create(&Limits::default(), &mut report);
    let removed = cgroup.remove().map_err(|error| format!("a cgroup could not be removed: {error}"));
    made.and(removed).map(|()| report)
}

fn hierarchy(hierarchies: &Hierarchies) -> Finding {
    let name = "cgroup";
    let unified = unified_controllers(hierarchies);
    let legacy = legacy_controllers(hierarchies);
    let list =
        |controllers: Vec<Controller>| controllers.iter().map(|c| c.name()).collect::<Vec<_>>().join(", ");
    let (state, detail) = match (unified.len(), legacy.len()) {
        (3, _) => (Health::Ok, "v2 with memory, cpu and pids".to_owned()),
        (_, 3) => (Health::Ok, "v1 with memory, cpu and pids".to_owned()),
        (0, 0) => (Health::Missing, "no hierarchy with memory, cpu or pids is mounted".to_owned()),
        (0, _) => (Health::Weaker, format!("v1 with {} only", list(legacy))),
        (_, _) => (Health::Weaker, format!("v2 with {} only", list(unified))),
    };
    let fix = (state != Health::Ok).then(|| {
        "boot a kernel with CONFIG_MEMCG, CONFIG_CFS_BANDWIDTH and CONFIG_CGROUP_PIDS, and mount cgroup2 at \
         /sys/fs/cgroup"
            .to_owned()
    });
    Finding { name, state, detail, fix }
}

/// The controllers that v2 has, of ours.
fn unified_controllers(hierarchies: &Hierarchies) -> Vec<Controller> {
    let Some(unified) = &hierarchies.unified else { return Vec::new() };
    let names = fs::read_to_string(unified.mount.join("cgroup.controllers")).unwrap_or_default();
    let has = |controller: &Controller| names.split_whitespace().any(|name| name == controller.name());
    Controller::ALL.into_iter().filter(has).collect()
}

/// The controllers that v1 has, of ours.
fn legacy_controllers(hierarchies: &Hierarchies) -> Vec<Controller> {
    let bound = hierarchies.legacy.iter().flat_map(|hierarchy| &hierarchy.controllers);
    Controller::ALL
        .into_iter()
        .filter(|controller| bound.clone().any(|name| name == controller.name()))
        .collect()
}

fn systemd_scope(tried: &Tried, surroundings: &Surroundings) -> Finding {
    let name = "systemd-scope";
    match (&tried.limits, tried.in_scope) {
        (Ok(_), true) => Finding::ok(name, "the user's systemd starts sandboxes in a delegated scope"),
        (Ok(_), false) => Finding::ok(name, "not needed: the caller makes cgroups by itself"),
        (Err(reason), true) => Finding {
            name,
            state: Health::Missing,
            detail: reason.clone(),
            fix: Some(setup::commands(&delegate_controllers(surroundings))),
        },
        (Err(_), false) => Finding {
            name,
            state: Health::Weaker,
            detail: "no systemd of the user's answers".to_owned(),
            fix: surroundings.has_systemd.then(|| setup::commands(&[enable_linger(surroundings)])),
        },
    }
}

/// What gives the caller limits, by what the machine has.
fn remedy(hierarchies: &Hierarchies, surroundings: &Surroundings) -> Vec<SetupStep> {
    let on_unified = unified_controllers(hierarchies).len() == Controller::ALL.len();
    if surroundings.is_root() {
        let enclosing = "limit what encloses us instead: docker run --memory 4g --cpus 4 --pids-limit 512 …, or make \
                /sys/fs/cgroup writable there (docker 28 and later: --security-opt writable-cgroups=true)";
        return vec![SetupStep::by_hand("nobody may make cgroups here", [enclosing.to_owned()])];
    }
    let handed_over = match (on_unified, surroundings.has_systemd) {
        (true, true) if has_user_manager(surroundings) => return delegate_controllers(surroundings),
        (true, true) => return vec![enable_linger(surroundings)],
        (true, false) => hand_over_unified(hierarchies, surroundings),
        (false, _) => hand_over_legacy(hierarchies, surroundings),
    };
    let why = "sandboxes have no limits without cgroups of yours; this is for your own shell, which it moves there, and holds \
               until the machine is booted again";
    handed_over.map(|lines| SetupStep::by_hand(why, lines)).into_iter().collect()
}

fn has_user_manager(surroundings: &Surroundings) -> bool {
    Path::new("/run/user").join(surroundings.uid.to_string()).join("systemd/private").exists()
}

fn enable_linger(surroundings: &Surroundings) -> SetupStep {
    let argv = ["loginctl", "enable-linger", &surroundings.user].map(str::to_owned).to_vec();
    SetupStep::run("sandboxes get their limits from a session of systemd's", surroundings.as_root(argv))
}

/// Before version 252 systemd does not hand the cpu controller on to users.
fn delegate_controllers(surroundings: &Surroundings) -> Vec<SetupStep> {
    let reload = ["systemctl", "daemon-reload"].map(str::to_owned).to_vec();
    vec![
        SetupStep {
            why: "systemd does not hand the limit on processors on to users".to_owned(),
            how: SetupHow::Write {
                path: DELEGATION.into(),
                contents: "[Service]\nDelegate=cpu memory pids\n".to_owned(),
            },
        },
        SetupStep::run("it is read once more", surroundings.as_root(reload)),
        SetupStep::by_hand(
            "a session has what systemd gave it when it began",
            ["# and log in again".to_owned()],
        ),
    ]
}

/// Without systemd: a subtree of the caller's own. The shell goes below it, for a cgroup that has processes cannot
/// give its children limits.
fn hand_over_unified(hierarchies: &Hierarchies, surroundings: &Surroundings) -> Option<Vec<String>> {
    let unified = hierarchies.unified.as_ref()?;
    let (mount, name) = (unified.mount.display(), &surroundings.user);
    let own = format!("{mount}/agentbox-{}", surroundings.uid);
    Some(vec![
        format!(
            "sudo mkdir -p {own}/shell && echo +memory +cpu +pids | sudo tee {mount}/cgroup.subtree_control"
        ),
        format!(
            "sudo chown {name} {own} {own}/cgroup.procs {own}/cgroup.subtree_control {own}/shell \
             {own}/shell/cgroup.procs"
        ),
        format!("echo $$ | sudo tee {own}/shell/cgroup.procs"),
    ])
}

fn hand_over_legacy(hierarchies: &Hierarchies, surroundings: &Surroundings) -> Option<Vec<String>> {
    let is_ours = |name: &String| Controller::ALL.iter().any(|controller| controller.name() == name);
    let ours = hierarchies.legacy.iter().filter(|hierarchy| hierarchy.controllers.iter().any(is_ours));
    let mounts: Vec<String> = ours.map(|hierarchy| hierarchy.mount.display().to_string()).collect();
    let (uid, name) = (surroundings.uid, &surroundings.user);
    let hand_over = format!(
        "for d in {}; do sudo mkdir -p $d/agentbox-{uid}; sudo chown {name} $d/agentbox-{uid}; \
         echo $$ | sudo tee $d/agentbox-{uid}/cgroup.procs; done",
        mounts.join(" ")
    );
    Some(vec![hand_over]).filter(|_| !mounts.is_empty())
}
