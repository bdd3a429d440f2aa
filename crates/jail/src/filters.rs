//! The filters of this machine as constants, compiled while the crate was built.

use libc::sock_filter;
use policy::Nesting;

use crate::seccomp::Program;

include!(concat!(env!("OUT_DIR"), "/filters.rs"));

/// The filter that init and everything else in a sandbox runs under.
pub(crate) fn sandbox(nesting: Nesting) -> Program {
    Program::from_instructions(match nesting {
        Nesting::Closed => &SANDBOX,
        Nesting::Open => &NESTED,
    })
}

/// The filter that stands before a kernel of the sandbox's own which speaks TCP itself.
pub(crate) fn own_stack() -> Program {
    Program::from_instructions(&OWN_STACK)
}

/// The filter that the supervisor puts on itself.
pub(crate) fn supervisor() -> Program {
    Program::from_instructions(&SUPERVISOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seccomp::{Architecture, Filter};

    #[test]
    fn the_constants_are_what_the_tables_say() {
        let words = |program: &Program| -> Vec<_> {
            program.instructions().iter().map(|step| (step.code, step.jt, step.jf, step.k)).collect()
        };
        for nesting in [Nesting::Closed, Nesting::Open] {
            let compiled = Filter::for_sandbox(Architecture::NATIVE, nesting);
            assert_eq!(words(&sandbox(nesting)), words(&compiled));
        }
        assert_eq!(words(&own_stack()), words(&Filter::for_own_stack(Architecture::NATIVE)));
        assert_eq!(words(&supervisor()), words(&Filter::for_supervisor(Architecture::NATIVE)));
    }
}
