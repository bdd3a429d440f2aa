//! Whoever is killed at whichever moment: the owner's tree is as it was, and the pin goes with the sandbox.

use std::fs;
use std::time::{Duration, Instant};

use failpoint::Point;
use harness::{Agentbox, callers};

use crate::project::{Project, assert_same_but_locks};

/// Moments of a start, of the end, and of the removal.
const MOMENTS: [Point; 11] = [
    Point::EngineKeptMade,
    Point::EngineWorkspacePrepared,
    Point::EngineRuntimeLocked,
    Point::EngineOrderSent,
    Point::KeeperBlueprintSent,
    Point::KeeperWallsStand,
    Point::EngineUnclaimed,
    Point::EngineClaimed,
    Point::KeeperEndFiled,
    Point::EngineRemoving,
    Point::EngineUnlisted,
];

callers!(nothing_is_lost_and_nothing_is_left, |caller| {
    let project = Project::repository(caller);
    project.write(".env", "KEY=1\n");
    let before = project.seen();
    let path = project.path().display().to_string();
    for point in MOMENTS {
        let mark = project.place().join(point.name());
        project.write_at(&mark, "0");
        let order = format!("kill {} {}", point.name(), mark.display());
        let armed = || project.with_state(Agentbox::weakened(caller, &[])).env("AGENTBOX_FAILPOINT", &order);
        let _ = armed()
            .start_words(&["run", "-w", &path, "--", "sh", "-c", "echo work > readme; sleep 0.2"])
            .finish();
        if let Some(id) = project.kept().first().filter(|id| !id.starts_with('.')) {
            let _ = armed().start_words(&["rm", "--force", id]).finish();
        }
        assert_ne!(fs::read(&mark).unwrap(), b"0", "{} is never reached", point.name());

        // The next commands clean up what nobody was told of.
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            project.say(&["gc"]).assert_success();
            let kept = project.kept();
            for id in kept.iter().filter(|id| !id.starts_with('.')) {
                // What has come so far that somebody worked inside is on file.
                project.say(&["rm", "--force", id]);
            }
            if kept.is_empty() {
                break;
            }
            assert!(Instant::now() < deadline, "{}: {kept:?}", point.name());
        }
        assert_same_but_locks(&project, &before);
        assert_eq!(project.git(&["for-each-ref", "refs/agentbox"]), "", "{}", point.name());
    }
});
