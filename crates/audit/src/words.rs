//! Lists of words that an event is described with, each closed: the same in the file and for people.

use serde::{Deserialize, Serialize};

macro_rules! words {
    ($(#[$meaning:meta])* $type:ident { $($(#[$each:meta])* $variant:ident $name:literal,)* }) => {
        $(#[$meaning])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $type {
            $($(#[$each])* $variant,)*
        }

        impl $type {
            /// Every one of them.
            pub const ALL: &[$type] = &[$($type::$variant,)*];

            /// The stable name, the same in the file and for people.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)* }
            }
        }
    };
}

words! {
    /// Why a sandbox ended.
    StopReason {
        /// Its command ended.
        Exited "exited",
        /// The owner asked for it.
        Asked "asked",
        /// Its time was up.
        Time "time",
        /// Nobody had used it for long enough.
        Idle "idle",
        /// It could not be built, or what built it failed.
        Failed "failed",
    }
}

words! {
    /// What was done to a file.
    FileOperation {
        /// It was read.
        Read "read",
        /// It was written.
        Write "write",
        /// A directory was listed.
        List "list",
        /// It was asked about.
        Stat "stat",
        /// A directory was made.
        MakeDirectory "make-directory",
        /// It was given another name.
        Rename "rename",
        /// It was removed.
        Remove "remove",
    }
}

words! {
    /// Which way bytes went.
    Direction {
        /// Into the sandbox.
        In "in",
        /// Out of it.
        Out "out",
    }
}

words! {
    /// What there was too much of.
    Limit {
        /// Memory.
        Memory "memory",
        /// Processes and threads.
        Pids "pids",
        /// Bytes on disk.
        Disk "disk",
        /// Time since the start, of a process or of the sandbox.
        Time "time",
        /// Time without use.
        Idle "idle",
    }
}

words! {
    /// What was done to a terminal.
    TerminalChange {
        /// Somebody looks at it.
        Attached "attached",
        /// Somebody does no more.
        Detached "detached",
        /// It has another size.
        Resized "resized",
        /// Something was typed into it by a program.
        Sent "sent",
    }
}

words! {
    /// What was done to a port.
    PortChange {
        /// It was opened.
        Added "added",
        /// It was closed.
        Removed "removed",
    }
}

words! {
    /// One of our processes on the host.
    OurProcess {
        /// The one with the owner's privileges.
        Keeper "keeper",
        /// The confined one.
        Supervisor "supervisor",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_names_are_the_stable_names() {
        fn check<Word: Serialize>(all: &[Word], name: impl Fn(&Word) -> &'static str) {
            for word in all {
                assert_eq!(serde_json::to_string(word).unwrap(), format!("\"{}\"", name(word)));
            }
        }
        check(StopReason::ALL, |word| word.name());
        check(FileOperation::ALL, |word| word.name());
        check(Direction::ALL, |word| word.name());
        check(Limit::ALL, |word| word.name());
        check(TerminalChange::ALL, |word| word.name());
        check(PortChange::ALL, |word| word.name());
        check(OurProcess::ALL, |word| word.name());
    }
}
