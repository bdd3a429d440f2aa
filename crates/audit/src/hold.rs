//! One writer at a time: two that went on from the same head would break the chain.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// A writer whose keeper is gone is gone a moment later.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits until no other descriptor of this log is held, and holds this one until it and all its copies are closed. To
/// be done before the head is read.
pub fn hold(log: impl AsFd) -> std::io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match flock(&log, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn one_holds_it_and_the_next_waits_for_all_its_copies() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let first = File::create(&path).unwrap();
        hold(&first).unwrap();
        let copy = first.try_clone().unwrap();
        drop(first);
        let begun = Instant::now();
        let next = std::thread::spawn(move || hold(File::open(&path).unwrap()));
        std::thread::sleep(Duration::from_millis(100));
        assert!(!next.is_finished());
        drop(copy);
        next.join().unwrap().unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(100));
    }
}
