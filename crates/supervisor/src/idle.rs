//! Whether anybody uses the sandbox. A client that is connected does, and so does a process without a terminal, for as
//! long as it runs; a terminal only when something appears on it, as a shell that waits there would wait for ever.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::jobs::Jobs;

/// How often terminals are looked at, as a part of the time that may pass.
const LOOKS: u32 = 8;
/// How often at least and at most.
const OFTEN: Duration = Duration::from_millis(50);
const SELDOM: Duration = Duration::from_secs(60);

/// How many use the sandbox.
#[derive(Clone, Debug)]
pub(crate) struct Users(Arc<watch::Sender<usize>>);

/// One who does, until this is dropped.
#[derive(Debug)]
pub(crate) struct User(Arc<watch::Sender<usize>>);

impl Default for Users {
    fn default() -> Self {
        Self(Arc::new(watch::channel(0).0))
    }
}

impl Users {
    /// One more.
    pub(crate) fn add(&self) -> User {
        self.0.send_modify(|count| *count += 1);
        User(Arc::clone(&self.0))
    }

    /// Resolves when nobody has used the sandbox for so long.
    pub(crate) async fn none_for(&self, limit: Duration, jobs: &Jobs) {
        let look = (limit / LOOKS).clamp(OFTEN, SELDOM);
        let mut users = self.0.subscribe();
        loop {
            // Whoever is gone is not counted any more; the sender is ours.
            let _ = users.wait_for(|count| *count == 0).await;
            let (mut shown, mut since) = (jobs.shown(), Instant::now());
            while since.elapsed() < limit && *users.borrow_and_update() == 0 {
                let rest = limit.saturating_sub(since.elapsed());
                tokio::select! {
                    _ = users.changed() => {}
                    () = tokio::time::sleep(look.min(rest)) => {}
                }
                let now = jobs.shown();
                if now != shown {
                    (shown, since) = (now, Instant::now());
                }
            }
            if *users.borrow() == 0 {
                return;
            }
        }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
