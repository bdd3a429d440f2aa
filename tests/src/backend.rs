//! Which backend the suites are run on: the native one, or the one that AGENTBOX_TEST_BACKEND names. Programs of other
//! backends that tests/setup.sh has built come first in PATH.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};

use policy::Backend;

use crate::{Agentbox, Caller};

/// Where tests/setup.sh puts the programs that it builds, for every user to execute.
const TOOLS: &str = "/usr/local/libexec/agentbox-tests";

/// What a state directory has of runtimes.
const KNOWN_FILE: &str = "backends.json";

/// The backend under test.
#[must_use]
pub fn backend() -> Backend {
    static BACKEND: LazyLock<Backend> = LazyLock::new(|| {
        let name = std::env::var("AGENTBOX_TEST_BACKEND").unwrap_or_default();
        let named =
            |backend: &Backend| backend.name() == name || (name.is_empty() && *backend == Backend::Native);
        Backend::ALL.into_iter().find(named).unwrap_or_else(|| panic!("'{name}' is no backend"))
    });
    *BACKEND
}

/// The backends with which what runs inside is a process of the host's and asks its kernel. With the others a test of that
/// kernel's calls, of our filter on them, of Landlock, or of what the host sees of a process, is about nothing.
pub const HOST_KERNEL: &[Backend] = &[Backend::Native, Backend::Crun, Backend::Runc];

/// Whether the test, or this part of it, is about the backend under test; else it is said that and why it is left out, and
/// tests/run.sh lists it in the end.
#[must_use]
#[track_caller]
pub fn is_on(backends: &[Backend], why: &str) -> bool {
    let is_on = backends.contains(&backend());
    if !is_on {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("a test").to_owned();
        // Not by the test runner's own output, which hides what successful tests print.
        let _ = writeln!(std::io::stderr(), "left out on {}: {test}: {why}", backend());
    }
    is_on
}

/// Gives a state directory that is not there yet what the program finds out when it first meets a runtime: for that it runs a
/// whole sandbox, with a record, which is no part of most tests.
pub fn know_runtime(caller: Caller, state: &Path) {
    static KNOWN: Mutex<Vec<(Caller, Vec<u8>)>> = Mutex::new(Vec::new());
    if backend() == Backend::Native {
        return;
    }
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if !known.iter().any(|(whose, _)| *whose == caller) {
        let home = caller.directory();
        let first = home.path().join("state");
        let agentbox = Agentbox::shipped(caller).env("AGENTBOX_HOME", &first.display().to_string());
        agentbox.run(["true"]).assert_success();
        known.push((caller, fs::read(first.join(KNOWN_FILE)).unwrap()));
    }
    let found = known.iter().find(|(whose, _)| *whose == caller).expect("what was just found out");
    fs::DirBuilder::new().mode(0o700).create(state).unwrap();
    fs::write(state.join(KNOWN_FILE), &found.1).unwrap();
    caller.own(state);
    caller.own(&state.join(KNOWN_FILE));
}

/// The words that choose it, and with AGENTBOX_TEST_ISOLATION=strict those that ask for every wall.
pub(crate) fn options() -> Vec<String> {
    let mut words = match backend() {
        Backend::Native => Vec::new(),
        other => vec!["--backend".to_owned(), other.name().to_owned()],
    };
    // Where everything else is there, all of a suite can be run with everything.
    if std::env::var_os("AGENTBOX_TEST_ISOLATION").is_some_and(|isolation| isolation == "strict") {
        words.extend(["--isolation", "strict"].map(str::to_owned));
    }
    words
}

/// The PATH in which its program is found.
pub(crate) fn variables() -> Vec<(String, String)> {
    vec![("PATH".to_owned(), path())]
}

/// The PATH of every caller.
#[must_use]
pub fn path() -> String {
    let usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    if Path::new(TOOLS).is_dir() { format!("{TOOLS}:{usual}") } else { usual.to_owned() }
}
