//! Life: 65. Sandboxes launched by several threads of one process while others allocate and change the
//! environment: what runs between clone and exec must need neither, as their locks may be held for ever there.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use harness::{alone, binaries, is_full};
use jail::{Granted, Plan, Site, Streams, Subordinates, Survey, Weaken};
use policy::{
    Backend, Isolation, Limits, Nesting, Report, Root, SandboxId, SandboxSpec, Tools, User, Workspace,
};

use crate::remains::Remains;
use crate::sys;

const LAUNCHERS: usize = 4;

#[test]
fn life_65_launched_by_many_threads() {
    if !harness::is_on(&[Backend::Native], "it builds walls without a keeper") {
        return;
    }
    let _turn = alone();
    let launches = if is_full() { 500 } else { 40 };
    let init = binaries().shipped().with_file_name("agentbox-init");
    let before = Remains::of_anybody();
    let directory = tempfile::tempdir().unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| change_environment(&over));
        scope.spawn(|| allocate(&over));
        let launch = |number: usize| {
            let staging = directory.path().join(number.to_string());
            std::fs::create_dir(&staging).unwrap();
            let (init, ranges) = (&init, directory.path().join("id-ranges"));
            scope.spawn(move || (0..launches).for_each(|_| launch_one(init, &staging, &ranges)))
        };
        let launchers: Vec<_> = (0..LAUNCHERS).map(launch).collect();
        let outcomes: Vec<_> = launchers.into_iter().map(|launcher| launcher.join()).collect();
        over.store(true, Ordering::Relaxed);
        assert!(outcomes.iter().all(Result::is_ok));
    });
    before.nothing_is_left("launches by many threads");
}

/// Builds the walls, waits until init stands behind them, and takes them down.
fn launch_one(init: &Path, staging: &Path, ranges: &Path) {
    let mut report = Report::default();
    let spec = spec();
    let survey = Survey::take(Subordinates::find());
    let ids = survey.choose_ids(ranges, &mut report).unwrap();
    let cgroup = survey.find_cgroup(&spec.id).ok().and_then(|mut cgroup| {
        cgroup.create(&spec.limits, &mut report).ok()?;
        Some(cgroup)
    });
    let site = Site { init, staging, home: None, own: &[], kept: None, tree: None, runtime: None };
    let plan =
        Plan::new(&spec, &site, Granted { survey: &survey, ids, cgroup, report }, Weaken::nothing()).unwrap();
    let (channel, inner) = UnixStream::pair().unwrap();
    let log = File::options().write(true).open("/dev/null").unwrap();
    let streams = Streams { channel: inner.as_fd(), log: log.as_fd() };
    let mut jailed = jail::launch(&Weaken::nothing(), plan.cgroup(), &streams).unwrap();
    jailed.map_ids(plan.ids(), jail::Face::Agent).unwrap();
    let root = plan.root(&spec, &site, survey).unwrap();
    jailed.build(&plan, &root).unwrap();
    let outcome = jailed.outcome(Some(&root));
    jailed.destroy();
    if let Some(cgroup) = plan.cgroup() {
        cgroup.remove().unwrap();
    }
    drop(channel);
    outcome.unwrap();
}

fn spec() -> SandboxSpec {
    let mut id = [0; 12];
    rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty()).unwrap();
    SandboxSpec {
        id: SandboxId::from_random(id),
        name: None,
        backend: Backend::Native,
        isolation: Isolation::BestEffort,
        workspace: Workspace::Empty,
        root: Root::Host(Tools::System),
        mounts: Vec::new(),
        environment: Vec::new(),
        workdir: "/workspace".parse().unwrap(),
        user: User { uid: 1000, gid: 1000 },
        limits: Limits::default(),
        nesting: Nesting::Closed,
        life: policy::Life::default(),
        ports: Vec::new(),
        network: policy::network::NetworkPolicy::default(),
    }
}

fn change_environment(over: &AtomicBool) {
    let values: Vec<String> = (0..64).map(|length| "x".repeat(length * 16)).collect();
    let mut turn = 0_usize;
    while !over.load(Ordering::Relaxed) {
        sys::set_variable(&format!("AGENTBOX_STRESS_{}", turn % 50), &values[turn % values.len()]);
        turn += 1;
    }
}

fn allocate(over: &AtomicBool) {
    let mut held: Vec<Vec<u8>> = vec![Vec::new(); 256];
    let mut turn = 0_usize;
    while !over.load(Ordering::Relaxed) {
        let place = turn % held.len();
        held[place] = vec![1; (turn * 977) % 70_000];
        turn += 1;
    }
}
