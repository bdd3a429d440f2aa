//! Whoever interrupts a measurement gets the machine back as it was: the signal is only noted, whatever is measured
//! next is an error, and on the way out everything that was made is removed.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use tokio::signal::unix::{SignalKind, signal};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Notes requests to end from now on.
pub(crate) fn watch() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut interrupt, mut terminate, mut hang_up) = {
        let _inside = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?)
    };
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {}
            }
        });
        INTERRUPTED.store(true, Ordering::Relaxed);
    });
    Ok(())
}

/// An error once there was a request to end.
pub(crate) fn check() -> Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    Ok(())
}
