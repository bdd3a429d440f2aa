//! Exhaustion: what is used up inside is used up there alone. The numbers are those of the design's list of walls.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod descriptors;
mod disk;
mod handed_over;
mod memory;
mod processes;
mod streams;

use std::time::Instant;

use harness::Caller;

/// Fails the test unless a program can be started on the host, by us and by the caller.
#[track_caller]
fn assert_host_forks(caller: Caller) {
    let start = Instant::now();
    for whose in [Caller::Root, caller].into_iter().filter(|whose| whose.is_available()) {
        let status = whose.command(std::path::Path::new("/bin/true")).status();
        assert!(status.as_ref().is_ok_and(|status| status.success()), "{whose:?} cannot fork: {status:?}");
    }
    assert!(start.elapsed().as_secs() < 5, "forking on the host takes {:?}", start.elapsed());
}
