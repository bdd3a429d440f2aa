//! How much there may be at once, and how long it may take.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::carry::MOST_PIPES;

/// How much and how long.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many connections may be open at once.
    pub connections: usize,
    /// How long a client may take from the first byte of what names its host to the last.
    pub head: Duration,
    /// How long nothing may move.
    pub idle: Duration,
    /// How long it may take to find and reach a host.
    pub dial: Duration,
}

impl Limits {
    /// What this process can hold open at once follows from what it may.
    #[must_use]
    pub fn of_this_process() -> Self {
        let mine = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self::default().within(usize::try_from(mine).unwrap_or(usize::MAX))
    }

    /// The same for a process that may have so many descriptors, of which others need some.
    fn within(self, descriptors: usize) -> Self {
        /// For all that is neither a connection nor a pipe: the owner's own connections, questions on their way.
        const OTHERS: usize = 512;
        // Each has two ends, and so has a pipe.
        let places = descriptors.saturating_sub(OTHERS + 2 * MOST_PIPES) / 2;
        Self { connections: self.connections.min(places.max(16)), ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 8192,
            head: Duration::from_secs(15),
            idle: Duration::from_secs(3600),
            dial: Duration::from_secs(20),
        }
    }
}

/// Connections are descriptors of the process that serves them. Most are started with a limit for programs that were made
/// when a thousand was much; once confined, none can raise its own.
pub fn raise_descriptors() {
    const ENOUGH: u64 = 32_768;
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(ENOUGH).min(ENOUGH);
    if limit.current.is_some_and(|current| current < most) {
        // Where it cannot be raised, there are fewer connections.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..limit });
    }
}
