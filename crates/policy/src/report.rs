//! The effective-isolation report: each wall, given or not, why, and how to get it. What the program says to
//! the person, writes into its log and checks in its tests is this one value.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! walls {
    ($($variant:ident $name:literal $necessity:ident $meaning:literal,)*) => {
        /// One wall between a sandbox and its host.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Wall {
            $(#[doc = $meaning] $variant,)*
        }

        impl Wall {
            /// Every wall, in the order in which a report lists them.
            pub const ALL: &[Wall] = &[$(Wall::$variant,)*];

            /// The stable name of the wall, the same in reports, logs and tests.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Wall::$variant => $name,)* }
            }

            /// What the wall does, for people.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Wall::$variant => $meaning,)* }
            }

            /// Whether a sandbox without this wall is never started.
            #[must_use]
            pub const fn is_never_optional(self) -> bool {
                match self { $(Wall::$variant => matches!(Necessity::$necessity, Necessity::Always),)* }
            }
        }
    };
}

enum Necessity {
    Always,
    Reported,
}

walls! {
    UserNamespace "user-namespace" Always "ids inside are not ids of the host",
    MountNamespace "mount-namespace" Always "only the files listed are there",
    PidNamespace "pid-namespace" Always "no process of the host is visible",
    NetNamespace "net-namespace" Always "no network device but a loopback of its own",
    IpcNamespace "ipc-namespace" Always "no shared memory or queue of the host",
    UtsNamespace "uts-namespace" Always "a host name of its own",
    NonRoot "non-root" Always "everything runs as an ordinary user",
    Capabilities "capabilities" Always "no capability in any set",
    NoNewPrivileges "no-new-privileges" Always "setuid programs give nothing",
    Seccomp "seccomp" Always "system calls that tools do not need are refused",
    Descriptors "descriptors" Always "no descriptor of the caller is inherited",
    Environment "environment" Always "no variable of the caller is inherited",
    NestedNamespaces "nested-namespaces" Reported "no user namespace can be made inside",
    OwnKernel "own-kernel" Reported "system calls are answered by a kernel of the sandbox's own",
    RuntimeVersion "runtime-version" Reported "no hole is known in the program that builds the last walls",
    Landlock "landlock" Reported "a second wall around files, kept by the kernel's Landlock",
    CgroupNamespace "cgroup-namespace" Reported "the host's cgroup tree is not visible",
    MemoryLimit "memory-limit" Reported "memory is limited",
    CpuLimit "cpu-limit" Reported "processor time is limited",
    PidsLimit "pids-limit" Reported "processes and threads are limited",
    DiskLimit "disk-limit" Reported "what is written is limited",
    IdRange "id-range" Reported "a range of user ids of the sandbox's own",
    Egress "egress" Reported "nothing leaves but to what is allowed",
    EgressAddresses "egress-addresses" Reported "no name leads to this machine, a private network or a cloud's metadata",
    EgressNames "egress-names" Reported "TLS and HTTP clients mean the host that was allowed",
}

/// How a wall stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is up.
    Given,
    /// It is up in a weaker form, which the detail names.
    Weaker,
    /// It is not there.
    Missing,
}

/// One line of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WallReport {
    /// Which wall.
    pub wall: Wall,
    /// Whether it is there.
    pub state: State,
    /// How it is given, or why it is not.
    pub detail: String,
    /// How to get it, where it is not given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hint: Option<String>,
}

/// All walls of one sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Report {
    walls: Vec<WallReport>,
}

impl Report {
    /// Notes that a wall is up, and how.
    pub fn given(&mut self, wall: Wall, detail: impl Into<String>) {
        self.walls.push(WallReport { wall, state: State::Given, detail: detail.into(), hint: None });
    }

    /// Notes that a wall is up in a weaker form, and how to get the full one.
    pub fn weaker(&mut self, wall: Wall, detail: impl Into<String>, hint: impl Into<String>) {
        let (detail, hint) = (detail.into(), Some(hint.into()));
        self.walls.push(WallReport { wall, state: State::Weaker, detail, hint });
    }

    /// Notes that a wall is not there, why, and how to get it.
    pub fn missing(&mut self, wall: Wall, detail: impl Into<String>, hint: impl Into<String>) {
        let (detail, hint) = (detail.into(), Some(hint.into()));
        self.walls.push(WallReport { wall, state: State::Missing, detail, hint });
    }

    /// Takes over the lines of another report.
    pub fn extend(&mut self, other: Self) {
        self.walls.extend(other.walls);
    }

    /// Takes over the lines of another report, in place of its own of the same walls.
    pub fn replace(&mut self, other: Self) {
        self.walls.retain(|line| !other.walls.iter().any(|new| new.wall == line.wall));
        self.extend(other);
    }

    /// Takes a wall off the list, which does not exist with this backend.
    pub fn remove(&mut self, wall: Wall) {
        self.walls.retain(|line| line.wall != wall);
    }

    /// The lines, in the order of [`Wall::ALL`].
    #[must_use]
    pub fn walls(&self) -> Vec<&WallReport> {
        let mut lines: Vec<_> = self.walls.iter().collect();
        lines.sort_by_key(|line| line.wall);
        lines
    }

    /// The lines that are not fully given.
    #[must_use]
    pub fn gaps(&self) -> Vec<&WallReport> {
        self.walls().into_iter().filter(|line| line.state != State::Given).collect()
    }

    /// How `wall` stands; a wall that nobody reported is missing.
    #[must_use]
    pub fn state(&self, wall: Wall) -> State {
        self.walls.iter().find(|line| line.wall == wall).map_or(State::Missing, |line| line.state)
    }
}

impl fmt::Display for Wall {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_that_nobody_reported_is_missing() {
        let mut report = Report::default();
        report.given(Wall::Seccomp, "filter of 120 instructions");
        assert_eq!(report.state(Wall::Seccomp), State::Given);
        assert_eq!(report.state(Wall::Landlock), State::Missing);
        assert!(report.gaps().is_empty());
    }

    #[test]
    fn json_names_are_the_stable_names() {
        for wall in Wall::ALL {
            assert_eq!(serde_json::to_string(wall).unwrap(), format!("\"{}\"", wall.name()));
        }
    }
}
