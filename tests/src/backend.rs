//! Which backend the suites are run on: the native one, or the one that AGENTBOX_TEST_BACKEND names. Programs of other
//! backends that tests/setup.sh has built come first in PATH.

use std::path::Path;
use std::sync::LazyLock;

use policy::Backend;

/// Where tests/setup.sh puts the programs that it builds, for every user to execute.
const TOOLS: &str = "/usr/local/libexec/agentbox-tests";

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

/// Whether the test is about the backend under test; else it says that it is skipped.
#[must_use]
pub fn is_on(backends: &[Backend], what: &str) -> bool {
    let is_on = backends.contains(&backend());
    if !is_on {
        eprintln!("skipped on {}: {what}", backend());
    }
    is_on
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
