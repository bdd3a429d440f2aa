//! Which tests may run beside each other: most may, those that count what is on the host may not.

use std::io::Write as _;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::{Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::Caller;

static TURNS: RwLock<()> = RwLock::new(());

/// A test's turn; it ends when this is dropped.
#[derive(Debug)]
#[must_use]
pub enum Turn {
    /// Others may run beside it.
    Together(RwLockReadGuard<'static, ()>),
    /// No other test of this program runs.
    Alone(RwLockWriteGuard<'static, ()>),
}

/// For a test beside which others may run.
pub fn together() -> Turn {
    Turn::Together(TURNS.read().unwrap_or_else(PoisonError::into_inner))
}

/// For a test that must have the machine to itself.
pub fn alone() -> Turn {
    Turn::Alone(TURNS.write().unwrap_or_else(PoisonError::into_inner))
}

/// Runs a test as one kind of caller, or says that this machine has none such.
pub fn as_caller(caller: Caller, turn: fn() -> Turn, check: fn(Caller)) {
    if !caller.is_available() {
        let _ = writeln!(std::io::stderr(), "skipped: {caller:?}: run tests/setup.sh as root for its user");
        return;
    }
    say_failures_at_once();
    let _turn = turn();
    check(caller);
}

/// Says why a test failed beside its name, too: the test runner says it only when all are over, and whoever keeps a part
/// of a long output may not have that.
fn say_failures_at_once() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |failure| {
            let thread = std::thread::current();
            let _ = writeln!(std::io::stderr(), "{}: {failure}", thread.name().unwrap_or("a thread"));
            usual(failure);
        }));
    });
}

/// Whether this is root; else says that a test is left out, and why.
#[must_use]
pub fn is_root(why: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        let _ = writeln!(std::io::stderr(), "skipped: only root can {why}");
    }
    is_root
}

/// Whether the long forms are asked for.
#[must_use]
pub fn is_full() -> bool {
    std::env::var("AGENTBOX_TEST_FORM").is_ok_and(|form| form == "full")
}

/// The root of the source tree.
#[must_use]
pub fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ has a parent").to_owned()
}
