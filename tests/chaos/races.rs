//! Several commands that want the same sandbox at once: each does what it says or says why not, and in the end one
//! thing is true.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use failpoint::Point;
use harness::{Dice, Finished, HostProcess, callers, is_full};
use policy::Backend;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::armed::{Armed, How};
use crate::place::Place;

fn rounds() -> usize {
    if is_full() { 100 } else { 6 }
}

/// Says all of these at the same time: what came of each.
#[track_caller]
fn at_once(place: &Place, commands: &[&[&str]]) -> Vec<Finished> {
    let together = Barrier::new(commands.len());
    thread::scope(|scope| {
        let threads: Vec<_> = commands
            .iter()
            .map(|words| {
                scope.spawn(|| {
                    together.wait();
                    place.try_say(words)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Kills the keeper of a sandbox, with which it ends, and leaves the rest to the next command.
#[track_caller]
fn kill_keeper(place: &Place, id: &str) {
    let status = std::fs::read(place.kept().join(id).join("status.json")).unwrap();
    let status: serde_json::Value = serde_json::from_slice(&status).unwrap();
    let keeper = Pid::from_raw(status["keeper"].as_i64().unwrap().try_into().unwrap()).unwrap();
    kill_process(keeper, Signal::KILL).unwrap();
    place.say(&["wait", id]);
}

callers!(of_those_who_start_it_one_does, |caller| {
    let place = Place::shipped(caller);
    place.create("box");
    for round in 0..rounds() {
        place.say(&["stop", "box"]);
        let said = at_once(&place, &[["start", "box"].as_slice(); 3]);
        let (won, lost): (Vec<_>, Vec<_>) = said.iter().partition(|finished| finished.code == 0);
        assert_eq!(won.len(), 1, "round {round}: {said:?}");
        for lost in lost {
            assert!(lost.stderr().contains("runs"), "round {round}: {}", lost.stderr());
        }
        place.say(&["exec", "box", "--", "true"]);
    }
    place.say(&["rm", "--force", "box"]);
    place.assert_nothing_left("starts at once");
});

callers!(nobody_starts_one_that_is_being_removed, |caller| {
    let place = Place::weakened(caller);
    place.create("box");
    place.say(&["stop", "box"]);
    for point in [Point::EngineRemoving, Point::EngineUnlisted, Point::EngineRemovalRecorded] {
        let armed = Armed::new(&place, How::Wait, point);
        let (words, id) = (["rm", "box"], place.list()[0]["id"].as_str().unwrap().to_owned());
        let removing = armed.hold_up(&words);
        let started = place.try_say(&["start", &id]);
        assert_eq!(started.code, 125, "{}", point.name());
        armed.let_go();
        assert_eq!(place.finish(removing, &words).code, 0, "{}", point.name());
        place.assert_no_orphans(point.name());
        place.assert_no_strays(std::slice::from_ref(&id), point.name());
        place.say(&["audit", "--verify", &id]);
        place.create("box");
        place.say(&["stop", "box"]);
    }
    place.say(&["rm", "box"]);
    place.assert_nothing_left("removals");
});

callers!(nobody_removes_one_that_is_being_started, |caller| {
    let place = Place::weakened(caller);
    place.create("box");
    for point in [Point::EngineRuntimeLocked, Point::EngineBooting, Point::EngineOrderSent] {
        place.say(&["stop", "box"]);
        let armed = Armed::new(&place, How::Wait, point);
        let words = ["start", "box"];
        let starting = armed.hold_up(&words);
        let removed = place.try_say(&["rm", "box"]);
        assert_eq!(removed.code, 125, "{}", point.name());
        assert!(removed.stderr().contains("runs"), "{}", removed.stderr());
        armed.let_go();
        assert_eq!(place.finish(starting, &words).code, 0, "{}", point.name());
        place.say(&["exec", "box", "--", "true"]);
    }
    place.say(&["rm", "--force", "box"]);
    place.assert_nothing_left("starts");
});

callers!(one_that_is_started_and_removed_at_once_is_there_or_not, |caller| {
    let place = Place::shipped(caller);
    for round in 0..rounds() {
        let id = place.create("box");
        place.say(&["stop", "box"]);
        let [started, removed] = &at_once(&place, &[&["start", "box"], &["rm", "--force", "box"]])[..] else {
            panic!("two were asked");
        };
        let after = format!("round {round}: start {}, rm {}", started.stderr(), removed.stderr());
        if removed.code == 0 {
            assert_eq!(place.state_of("box"), None, "{after}");
        } else {
            place.say(&["exec", "box", "--", "true"]);
            place.say(&["rm", "--force", "box"]);
        }
        place.assert_no_orphans(&after);
        place.assert_no_strays(std::slice::from_ref(&id), &after);
        place.say(&["audit", "--verify", &id]);
    }
    place.assert_nothing_left("starts and removals");
});

callers!(those_who_clean_up_at_once_harm_nobody, |caller| {
    let place = Place::shipped(caller);
    let id = place.create("box");
    for round in 0..rounds() {
        kill_keeper(&place, &id);
        let ls: &[&str] = &["ls", "--quiet"];
        let said = at_once(&place, &[ls, &["start", "box"], ls, &["gc"], ls]);
        if said[1].code != 0 {
            // Whoever cleans up has its lock for a moment.
            place.say(&["start", "box"]);
        }
        place.say(&["exec", "box", "--", "true"]);
        place.assert_no_strays(&[], &format!("round {round}"));
        place.say(&["audit", "--verify", &id]);
    }
    place.say(&["rm", "--force", "box"]);
    place.assert_nothing_left("cleaning up at once");
});

callers!(a_supervisor_that_is_late_hides_nothing, |caller| {
    let place = Place::weakened(caller);
    let armed = Armed::new(&place, How::Wait, Point::SupervisorForked);
    let words = ["create", "--env", &place.token(), "--name", "box"];
    let held_up = armed.hold_up(&words);
    if harness::backend() == Backend::Native {
        let id = place.finish(held_up, &words).stdout().trim().to_owned();
        assert_eq!(place.last_recorded(&id), "started");
        armed.let_go();
        kill_keeper(&place, &id);
        assert_eq!(place.last_recorded(&id), "lost");
        place.say(&["rm", "box"]);
    } else {
        // Only it would hear from init, so that whoever makes the sandbox waits, too. Its start is on record all the same.
        let id = place.recorded().remove(0);
        assert_eq!(place.last_recorded(&id), "started");
        let of_name = |process: &HostProcess| process.name == "agentbox-keeper";
        let keeper = place.processes().into_iter().find(of_name).unwrap();
        kill_process(Pid::from_raw(keeper.pid).unwrap(), Signal::KILL).unwrap();
        armed.let_go();
        assert_eq!(place.finish(held_up, &words).code, 125);
        // Nobody was told of it, so that it goes; what became of it is on record, too.
        assert_eq!(place.state_of("box"), None);
        assert_eq!(place.last_recorded(&id), "removed");
        let record = place.say(&["audit", "--json", &id]);
        assert!(record.contains(r#""kind":"lost""#), "{record}");
    }
    place.assert_nothing_left("a supervisor that never began");
});

callers!(a_sandbox_of_which_nobody_was_told_goes, |caller| {
    // About as long as it takes.
    let longest = Duration::from_millis(if harness::backend() == Backend::Native { 40 } else { 250 });
    let place = Place::shipped(caller);
    let mut dice = Dice::throw(&format!("create, cut off as {caller:?}"));
    let token = place.token();
    for round in 0..rounds() * 4 {
        let detached: &[&str] = &["run", "--detach", "--name", "box", "--env", &token, "--", "sleep", "600"];
        let created: &[&str] = &["create", "--name", "box", "--env", &token];
        let (words, signal) =
            (*dice.pick(&[detached, created]), *dice.pick(&[Signal::KILL, Signal::INT, Signal::TERM]));
        let running = place.agentbox().behind(["/usr/bin/setsid"]).start_words(words);
        thread::sleep(dice.delay(longest));
        let group = Pid::from_raw(running.pid()).unwrap();
        // It may have ended by itself.
        let _ = kill_process_group(group, signal);
        let finished = running.finish_within(Duration::from_secs(60));
        let after = format!("round {round}: {} after {signal:?}: {}", words[0], finished.code);
        if finished.code == 0 {
            place.say(&["exec", "box", "--", "true"]);
            place.say(&["rm", "--force", "box"]);
        } else if finished.stdout.is_empty() {
            let deadline = Instant::now() + Duration::from_secs(10);
            while let Some(state) = place.state_of("box") {
                assert!(Instant::now() < deadline, "{after}: it is {state}");
            }
        } else {
            // Told and cut off: there or not.
            let _ = place.try_say(&["rm", "--force", "box"]);
        }
        // Its name is to be had at once.
        place.create("box");
        place.say(&["rm", "--force", "box"]);
        place.assert_no_orphans(&after);
    }
    place.assert_nothing_left("creations cut off");
});
