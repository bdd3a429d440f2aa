//! Other backends, each that has a program here, whatever backend the other suites run on: that the same sandbox comes out,
//! and the traps of their programs, one by one.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod broken;
mod endings;
mod own_stack;
mod same;
mod setup;
mod traps;
mod versions;

use std::path::Path;

use harness::{Agentbox, Caller};
use policy::Backend;

/// The backends that have a program here. tests/setup.sh installs or builds one for each, so that none is left out there.
fn backends() -> Vec<Backend> {
    let found = |backend: &Backend| {
        let directories = harness::path();
        let name = backend.program();
        name.is_some_and(|name| {
            directories.split(':').any(|directory| Path::new(directory).join(name).is_file())
        })
    };
    let found: Vec<Backend> = Backend::ALL.into_iter().filter(found).collect();
    assert!(!found.is_empty() || !harness::is_root("install what the tests need"), "run tests/setup.sh");
    found
}

/// A sandbox with a backend.
fn with(caller: Caller, backend: Backend) -> Agentbox {
    Agentbox::shipped(caller).options(["--backend", backend.name()])
}

fn has_gvisor() -> bool {
    backends().contains(&Backend::Gvisor)
}
