//! Commands that are made to fail at a point, and the file in which it is seen that one came by.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use failpoint::Point;
use harness::Running;

use crate::place::Place;

/// How long a command may take to come by its point.
const PATIENCE: Duration = Duration::from_secs(20);

/// What happens there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Kill,
    Fail,
    Wait,
}

impl How {
    const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Fail => "fail",
            Self::Wait => "wait",
        }
    }
}

/// A point at which something is to happen.
pub(crate) struct Armed<'place> {
    place: &'place Place,
    order: String,
    mark: PathBuf,
}

impl<'place> Armed<'place> {
    pub(crate) fn new(place: &'place Place, how: How, point: Point) -> Self {
        let mark = place.path(&format!("{}-{}", how.name(), point.name()));
        fs::write(&mark, "0").unwrap();
        place.caller.own(&mark);
        let order = format!("{} {} {}", how.name(), point.name(), mark.display());
        Self { place, order, mark }
    }

    /// Says something to agentbox that may come by.
    #[track_caller]
    pub(crate) fn begin(&self, words: &[&str]) -> Running {
        self.place.agentbox().env("AGENTBOX_FAILPOINT", &self.order).start_words(words)
    }

    pub(crate) fn is_reached(&self) -> bool {
        fs::read(&self.mark).unwrap() != b"0"
    }

    /// The same, where it waits there until it is let go.
    #[track_caller]
    pub(crate) fn hold_up(&self, words: &[&str]) -> Running {
        let running = self.begin(words);
        let deadline = Instant::now() + PATIENCE;
        while !self.is_reached() {
            assert!(Instant::now() < deadline, "{words:?} never came by: {}", running.stderr());
            std::thread::sleep(Duration::from_millis(1));
        }
        running
    }

    /// Lets it go. The file is shared memory of the other's, and keeps its length.
    pub(crate) fn let_go(&self) {
        self.release().unwrap();
    }

    fn release(&self) -> std::io::Result<()> {
        fs::File::options().write(true).open(&self.mark)?.write_all_at(b"2", 0)
    }
}

impl Drop for Armed<'_> {
    /// Nobody is held up for ever where a test has failed.
    fn drop(&mut self) {
        let _ = self.release();
    }
}
