//! Which tests may run beside each other: most may, those that count what their caller has on the host only beside those of
//! other callers, and a few beside none.

use std::io::Write as _;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::{Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::Caller;

/// One for each caller. Whoever takes several takes them in this order.
static TURNS: [RwLock<()>; Caller::ALL.len()] = [const { RwLock::new(()) }; Caller::ALL.len()];

/// A test's turn; it ends when this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Turn {
    _shared: Vec<RwLockReadGuard<'static, ()>>,
    _own: Vec<RwLockWriteGuard<'static, ()>>,
}

impl Turn {
    fn shared(callers: &[Caller]) -> Self {
        let take = |caller: &Caller| lock_of(*caller).read().unwrap_or_else(PoisonError::into_inner);
        Self { _shared: callers.iter().map(take).collect(), _own: Vec::new() }
    }

    fn own(callers: &[Caller]) -> Self {
        let take = |caller: &Caller| lock_of(*caller).write().unwrap_or_else(PoisonError::into_inner);
        Self { _shared: Vec::new(), _own: callers.iter().map(take).collect() }
    }
}

fn lock_of(caller: Caller) -> &'static RwLock<()> {
    match caller {
        Caller::Root => &TURNS[0],
        Caller::Subordinate => &TURNS[1],
        Caller::Single => &TURNS[2],
    }
}

/// For a test beside which others may run, as whatever callers.
pub fn together() -> Turn {
    Turn::shared(&Caller::ALL)
}

/// For a test that must have the machine to itself.
pub fn alone() -> Turn {
    Turn::own(&Caller::ALL)
}

/// Beside whom a test of one caller may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    /// Anybody.
    Anybody,
    /// Those of other callers: a command of the same caller would clean up what is looked for.
    OtherCallers,
    /// Nobody.
    Nobody,
}

/// Runs a test as one kind of caller, or says that this machine has none such.
pub fn as_caller(caller: Caller, company: Company, check: fn(Caller)) {
    if !caller.is_available() {
        let _ = writeln!(std::io::stderr(), "skipped: {caller:?}: run tests/setup.sh as root for its user");
        return;
    }
    say_failures_at_once();
    let _turn = match company {
        Company::Anybody => Turn::shared(&[caller]),
        Company::OtherCallers => Turn::own(&[caller]),
        Company::Nobody => alone(),
    };
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
