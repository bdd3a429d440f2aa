//! Probes of what a process gives up for good: system calls by seccomp, files by Landlock.

use policy::{Nesting, State};

use super::Finding;
use super::mounts::expect;
use super::sys::close_off_files;
use super::trial::{Refusal, Trial};
use crate::plan::LANDLOCK_LEAST;
use crate::seccomp::{self, Architecture, Filter};
use crate::sys::{self, Cloned, Errno, Outcome};

fn no_new_privileges() -> Outcome {
    sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1).map(drop)
}

/// The filter of a sandbox hides clone3, by which the child itself came to be.
pub(super) fn seccomp() -> Result<(), Refusal> {
    let filter = Filter::for_sandbox(Architecture::NATIVE, Nesting::Closed);
    let install = || seccomp::install(&filter).map_err(Errno);
    let refused = || {
        expect(
            libc::ENOSYS,
            sys::clone_into(0, None).map(|cloned| match cloned {
                Cloned::Child => sys::exit(0),
                Cloned::Parent { .. } => (),
            }),
        )
    };
    Trial::bare().run(&[
        ("give up new privileges", &no_new_privileges),
        ("install the filter", &install),
        ("be refused by it", &refused),
    ])
}

/// A rule set without a rule closes every file off.
pub(super) fn landlock() -> Result<Finding, Refusal> {
    let refused = || expect(libc::EACCES, sys::open(c"/", libc::O_RDONLY, 0).map(drop));
    Trial::bare().run(&[
        ("give up new privileges", &no_new_privileges),
        ("close files off", &close_off_files),
        ("be refused to open one", &refused),
    ])?;
    let version = sys::landlock_version();
    if version < LANDLOCK_LEAST {
        let detail = format!("the kernel has interface {version}, and {LANDLOCK_LEAST} is needed");
        return Ok(Finding { state: State::Missing, detail, errno: None });
    }
    Ok(Finding::given(format!("interface {version}; {}", super::Probe::Landlock.meaning())))
}
