//! What the end-to-end tests share: who calls agentbox, the program as it ships and the one with walls taken
//! away, what is left behind on the host, and the negative controls.
//!
//! It stands on the owner's side and looks at sandboxes from the host. It must never take a sandbox's own word
//! for what the host can see for itself.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod agentbox;
mod backend;
mod binaries;
mod caller;
mod control;
mod dice;
mod finished;
mod host;
mod internet;
mod leaks;
mod pty;
mod running;
mod subtree;
mod sys;
mod turn;

pub use agentbox::Agentbox;
pub use backend::{HOST_KERNEL, backend, is_on, know_runtime, path};
pub use binaries::{Binaries, binaries, copy_program, probe_mount};
pub use caller::Caller;
pub use control::{Check, breach, breach_all, holds, is_ours, stands};
pub use dice::Dice;
pub use finished::Finished;
pub use host::{HostProcess, host_processes};
pub use internet::{Connection, Datagram, Internet, Packets, Question, Repository, Request, Seen};
pub use leaks::{LeakCount, cgroups, leaks, leaks_of};
pub use pty::Pty;
pub use running::{Processes, Running};
pub use subtree::Subtree;
pub use sys::seccomp_filter;
pub use turn::{Company, Turn, alone, as_caller, is_full, is_root, together, workspace_root};

/// One test for each kind of caller, beside each other: modules `root`, `subordinate` and `single`.
#[macro_export]
macro_rules! callers {
    ($name:ident, |$caller:ident| $body:block) => {
        $crate::callers!(@ $name, Anybody, $caller, $body);
    };
    (@ $name:ident, $company:ident, $caller:ident, $body:block) => {
        mod $name {
            use super::*;
            use $crate::Caller;

            fn case($caller: Caller) $body

            #[test]
            fn root() {
                $crate::as_caller(Caller::Root, $crate::Company::$company, case);
            }

            #[test]
            fn subordinate() {
                $crate::as_caller(Caller::Subordinate, $crate::Company::$company, case);
            }

            #[test]
            fn single() {
                $crate::as_caller(Caller::Single, $crate::Company::$company, case);
            }
        }
    };
}

/// The same for tests that count what their caller has left behind: none of that caller's runs meanwhile.
#[macro_export]
macro_rules! callers_apart {
    ($name:ident, |$caller:ident| $body:block) => {
        $crate::callers!(@ $name, OtherCallers, $caller, $body);
    };
}

/// The same for tests during which no other test of the program may run, as they take what others need.
#[macro_export]
macro_rules! callers_alone {
    ($name:ident, |$caller:ident| $body:block) => {
        $crate::callers!(@ $name, Nobody, $caller, $body);
    };
}
