//! A walk by chance: several clients do everything to a handful of sandboxes at once, and any process of ours is killed
//! at any moment. AGENTBOX_TEST_SEED repeats what each of them chooses.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use harness::{Dice, callers, is_full};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::place::Place;

const CLIENTS: usize = 3;
const NAMES: [&str; 4] = ["north", "east", "south", "west"];
/// One that nobody is to kill, and which has to be as it was in the end.
const CALM: &str = "calm";
/// Between two shots. A sandbox is made in less, so some live and some do not.
const LONGEST: Duration = Duration::from_millis(250);

/// What a client does next.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Create,
    RunDetached,
    Run,
    Exec,
    ExecDetached,
    ExecOnTerminal,
    Send,
    Logs,
    CopyIn,
    CopyOut,
    Stop,
    Start,
    Remove,
    RemoveByForce,
    List,
    Terminals,
    Collect,
}

impl Deed {
    const ALL: [Self; 17] = [
        Self::Create,
        Self::RunDetached,
        Self::Run,
        Self::Exec,
        Self::ExecDetached,
        Self::ExecOnTerminal,
        Self::Send,
        Self::Logs,
        Self::CopyIn,
        Self::CopyOut,
        Self::Stop,
        Self::Start,
        Self::Remove,
        Self::RemoveByForce,
        Self::List,
        Self::Terminals,
        Self::Collect,
    ];

    /// How it is said. `own` is a directory of the client's.
    fn words(self, name: &str, token: &str, own: &Path) -> Vec<String> {
        let own = own.display();
        let text = match self {
            Self::Create => format!("create --env {token} --name {name}"),
            Self::RunDetached => format!("run --detach --env {token} --name {name} -- sleep 1"),
            Self::Run => format!("run --env {token} -- true"),
            Self::Exec => format!("exec {name} -- echo words"),
            Self::ExecDetached => format!("exec --detach {name} -- sleep 600"),
            Self::ExecOnTerminal => format!("exec --detach --tty {name} -- cat"),
            Self::Send => format!("send {name} t1 text"),
            Self::Logs => format!("logs {name}"),
            Self::CopyIn => format!("cp {own}/agentbox-init {name}:/workspace/"),
            Self::CopyOut => format!("cp {name}:/etc {own}/etc"),
            Self::Stop => format!("stop --time 0 {name}"),
            Self::Start => format!("start {name}"),
            Self::Remove => format!("rm {name}"),
            Self::RemoveByForce => format!("rm --force {name}"),
            Self::List => "ls --all".to_owned(),
            Self::Terminals => format!("terminals {name}"),
            Self::Collect => "gc".to_owned(),
        };
        text.split(' ').map(str::to_owned).collect()
    }

    /// Whether it leaves a sandbox as it is.
    const fn is_harmless(self) -> bool {
        !matches!(
            self,
            Self::Stop
                | Self::Remove
                | Self::RemoveByForce
                | Self::ExecDetached
                | Self::ExecOnTerminal
                | Self::CopyIn
        )
    }
}

/// Does one thing after the other to anybody; how often it went well.
fn wander(place: &Place, mut dice: Dice, own: &Path, over: &AtomicBool) -> usize {
    let (token, mut successes) = (place.token(), 0);
    while !over.load(Ordering::Relaxed) {
        let deed = *dice.pick(&Deed::ALL);
        let to_the_calm = deed.is_harmless() && dice.pick(&[true, false, false, false]) == &true;
        let name = if to_the_calm { CALM } else { dice.pick(&NAMES) };
        let words = deed.words(name, &token, own);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let finished = place.try_say(&words);
        successes += usize::from(finished.code == 0);
        let _ = fs::remove_dir_all(own.join("etc"));
    }
    successes
}

/// Kills processes of the place, but none of the calm sandbox's; how many.
fn shoot(place: &Place, mut dice: Dice, spared: &[i32], over: &AtomicBool) -> usize {
    let mut shots = 0;
    while !over.load(Ordering::Relaxed) {
        thread::sleep(dice.delay(LONGEST));
        let is_target = |process: &harness::HostProcess| {
            !spared.contains(&process.pid) && !spared.contains(&process.parent)
        };
        let targets: Vec<i32> =
            place.processes().into_iter().filter(is_target).map(|process| process.pid).collect();
        if !targets.is_empty()
            && kill_process(Pid::from_raw(*dice.pick(&targets)).unwrap(), Signal::KILL).is_ok()
        {
            shots += 1;
        }
    }
    shots
}

/// The processes of a sandbox: keeper, supervisor, init.
#[track_caller]
fn processes_of(place: &Place, id: &str) -> [i32; 3] {
    let status = fs::read(place.kept().join(id).join("status.json")).unwrap();
    let status: Value = serde_json::from_slice(&status).unwrap();
    ["keeper", "supervisor", "init"].map(|who| status[who].as_i64().unwrap().try_into().unwrap())
}

/// How many descriptors each of these has, once what was asked last is over: it does not change for a while.
fn descriptors(processes: [i32; 3]) -> [usize; 3] {
    let count = || processes.map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count));
    let mut last = count();
    loop {
        thread::sleep(Duration::from_millis(500));
        let now = count();
        if now == last {
            return now;
        }
        last = now;
    }
}

callers!(whatever_happens_nothing_is_left, |caller| {
    let place = Place::shipped(caller);
    let mut dice = Dice::throw(&format!("a walk as {caller:?}"));
    let calm = place.create(CALM);
    place.say(&["exec", CALM, "--", "true"]);
    let spared = processes_of(&place, &calm);
    let before = descriptors(spared);
    let over = AtomicBool::new(false);
    let (successes, shots) = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let own = place.path(&format!("client-{number}"));
                fs::create_dir(&own).unwrap();
                fs::copy(place.path("agentbox-init"), own.join("agentbox-init")).unwrap();
                place.caller.own(&own);
                let (place, dice, over) = (&place, dice.split(), &over);
                scope.spawn(move || wander(place, dice, &own, over))
            })
            .collect();
        let (place, dice, over) = (&place, dice.split(), &over);
        let shooter = scope.spawn(move || shoot(place, dice, &spared, over));
        let deadline = Instant::now() + Duration::from_secs(if is_full() { 180 } else { 20 });
        // Whoever fails, fails the test at once.
        while Instant::now() < deadline && !clients.iter().any(|client| client.is_finished()) {
            thread::sleep(Duration::from_millis(50));
        }
        over.store(true, Ordering::Relaxed);
        let shots = shooter.join().unwrap();
        (clients.into_iter().map(|client| client.join().unwrap()).sum::<usize>(), shots)
    });
    assert!(successes > 20 && shots > 20, "{successes} commands went well, {shots} shots hit");

    let after = format!("{successes} commands that went well and {shots} shots");
    place.assert_no_orphans(&after);
    let dead = place.dead();
    for entry in place.list() {
        assert_ne!(entry["state"], "damaged", "{after}: {entry}");
    }
    place.assert_no_strays(&dead, &after);
    // The calm one was shot at by nobody and holds no more than in the beginning.
    place.say(&["exec", CALM, "--", "true"]);
    assert_eq!(descriptors(spared), before, "{after}: descriptors of keeper, supervisor and init");
    for entry in place.list() {
        place.say(&["rm", "--force", entry["id"].as_str().unwrap()]);
    }
    assert_eq!(place.list(), Vec::<Value>::new(), "{after}");
    place.assert_records(&mut BTreeSet::new(), &after);
    place.assert_nothing_left(&after);
});
