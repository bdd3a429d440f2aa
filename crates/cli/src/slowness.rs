//! Says what is waited for where a sandbox takes its time to start: another program, which is tried out the first time that it
//! is met, or a look through large trees.

use std::any::Any;
use std::io::{self, Write as _};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use policy::{Backend, Root, SandboxSpec, Tools};

/// What another program takes longer for than this is said.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same of what we do ourselves, which mostly takes milliseconds.
const OWN_PATIENCE: Duration = Duration::from_secs(1);

/// Somebody who waits for a sandbox to start, until this is dropped.
pub(crate) struct Slowness {
    _over: Sender<()>,
}

impl Slowness {
    /// While a program is tried out, for [`Engine::telling`](engine::Engine::telling).
    pub(crate) fn of_trial(backend: Backend) -> Box<dyn Any> {
        Box::new(Self::of(backend))
    }

    pub(crate) fn of(backend: Backend) -> Option<Self> {
        let program = backend.program()?;
        Some(Self::said_after(PATIENCE, format!("waiting for {program} to start the sandbox")))
    }

    /// While the keeper looks through trees of the owner's, which takes as long as they are large where they have not been
    /// read before.
    pub(crate) fn of_trees(spec: &SandboxSpec) -> Option<Self> {
        let what = match (&spec.root, spec.mounts.is_empty()) {
            (Root::Host(Tools::Owner), true) => "your tool chains",
            (Root::Host(Tools::Owner), false) => "your tool chains and what is mounted",
            (Root::Host(Tools::System) | Root::Image(_), false) => "what is mounted",
            (Root::Host(Tools::System) | Root::Image(_), true) => return None,
        };
        Some(Self::said_after(
            OWN_PATIENCE,
            format!("looking through {what} for sockets, which takes longer the first time"),
        ))
    }

    fn said_after(patience: Duration, text: String) -> Self {
        let (over, waiting) = channel();
        std::thread::spawn(move || {
            if waiting.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                let _ = writeln!(io::stderr(), "{text}");
            }
        });
        Self { _over: over }
    }
}
