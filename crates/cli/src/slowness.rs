//! Says what is waited for where another program takes its time to start a sandbox; the first time that it is met it is
//! tried out before.

use std::io::{self, Write as _};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use policy::Backend;

/// What takes longer than this is said to.
const PATIENCE: Duration = Duration::from_secs(5);

/// Somebody who waits for the program of a backend, until this is dropped.
pub(crate) struct Slowness {
    _over: Sender<()>,
}

impl Slowness {
    pub(crate) fn of(backend: Backend) -> Option<Self> {
        let program = backend.program()?;
        let (over, waiting) = channel();
        std::thread::spawn(move || {
            if waiting.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let _ = writeln!(io::stderr(), "waiting for {program} to start the sandbox");
            }
        });
        Some(Self { _over: over })
    }
}
