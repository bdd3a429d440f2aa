//! Every moment that has a name: the process that comes by is killed there, or finds the disk full.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use failpoint::Point;
use harness::{Caller, callers};

use crate::armed::{Armed, How};
use crate::place::Place;

/// How long a process may take to come by its point, or to end, once the command that leads there has ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was done when a point was reached.
struct Struck {
    point: Point,
    command: String,
    code: i32,
}

/// Gives one command after the other, in a life that comes by every point, until one is struck.
#[track_caller]
fn strike(place: &Place, how: How, point: Point) -> Option<Struck> {
    let (armed, token) = (Armed::new(place, how, point), place.token());
    let life: [&[&str]; 7] = [
        &["create", "--name", "box", "--env", &token],
        &["exec", "box", "--", "true"],
        &["exec", "--detach", "box", "--", "sleep", "600"],
        &["stop", "--time", "1", "box"],
        &["start", "box"],
        &["rm", "--force", "box"],
        &["run", "--env", &token, "--", "true"],
    ];
    let mut last = None;
    for words in life {
        let code = place.finish(armed.begin(words), words).code;
        last = Some(Struck { point, command: words[0].to_owned(), code });
        if armed.is_reached() {
            return last;
        }
    }
    // Last words are said when the command has ended.
    let deadline = Instant::now() + PATIENCE;
    while !armed.is_reached() {
        if Instant::now() > deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    last
}

/// What has to hold afterwards, whatever the sandbox of the name `box` is now.
#[track_caller]
fn aftermath(place: &Place, struck: &Struck, after: &str) {
    place.assert_no_orphans(after);
    let dead = place.dead();
    let mut state = place.state_of("box");
    place.assert_no_strays(&dead, after);
    let deadline = Instant::now() + PATIENCE;
    // A keeper that is about to be done has its lock for a moment more, and nobody can tell it from one that begins. Nor does
    // it know at once that its supervisor was killed: what is said to run answers, or has ended a moment later.
    let is_settled = |state: Option<&str>| match state {
        Some("starting") => false,
        Some("running") => place.try_say(&["exec", "box", "--", "true"]).code == 0,
        _ => true,
    };
    while !is_settled(state.as_deref()) && Instant::now() < deadline {
        state = place.state_of("box");
    }
    if struck.command == "create" && struck.code != 0 && struck.point != Point::EngineClaimed {
        // Nobody was told of it: it ends and goes, with whoever made it or with the next command.
        while state.is_some() {
            assert!(Instant::now() < deadline, "{after}: it is {state:?}, and nobody was told of it");
            state = place.state_of("box");
        }
    }
    match state.as_deref() {
        None => {}
        Some("running") => drop(place.say(&["exec", "box", "--", "true"])),
        Some("stopped" | "created") => {
            place.say(&["start", "box"]);
            place.say(&["exec", "box", "--", "true"]);
        }
        Some(state) => panic!("{after}: it is {state}"),
    }
    if state.is_some() {
        place.say(&["rm", "--force", "box"]);
    }
    // Its name is free.
    place.create("box");
    place.say(&["exec", "box", "--", "true"]);
    place.say(&["rm", "--force", "box"]);
    place.say(&["exec", "other", "--", "true"]);
    assert_eq!(place.list().len(), 1, "{after}");
}

#[track_caller]
fn walk_over(caller: Caller, how: How, points: &[Point]) {
    let place = Place::weakened(caller);
    place.create("other");
    let mut records = BTreeSet::new();
    for point in points {
        let after = format!("{how:?} at {}", point.name());
        match strike(&place, how, *point) {
            Some(struck) => {
                let after = format!("{after}, in {} ({})", struck.command, struck.code);
                aftermath(&place, &struck, &after);
                place.assert_records(&mut records, &after);
            }
            None => {
                let may_be_missed = point.needs_cgroups() && caller != Caller::Root;
                assert!(may_be_missed, "{after}: never reached");
            }
        }
    }
    place.say(&["rm", "--force", "other"]);
    place.assert_nothing_left("all points");
}

callers!(killed_at_every_point, |caller| {
    // Those of a review are walked over where there is one, in the tests of `workspace`, and those of an image in `images`.
    let elsewhere = [Point::REVIEW, Point::IMAGE].concat();
    let points: Vec<Point> = Point::ALL.iter().copied().filter(|it| !elsewhere.contains(it)).collect();
    walk_over(caller, How::Kill, &points);
});

callers!(a_full_disk_at_every_point, |caller| {
    walk_over(caller, How::Fail, Point::FAILING);
});
