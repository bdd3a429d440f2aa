//! The program that a backend leaves the last walls to, and whether its version is one to rely on. It was found and
//! looked at on the owner's side; here it is a value, and the judgement on its version a pure function.

mod version;

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Backend, Wall};

pub use version::{Build, judge};

/// A program that speaks the OCI runtime's command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OciRuntime {
    /// Where it is.
    pub program: PathBuf,
    /// What it says that it is, or what its build says.
    pub version: String,
    /// Whether holes are known in it.
    pub standing: Standing,
    /// How runsc takes system calls away from the kernel; none for the others, which do not.
    pub platform: Option<Platform>,
}

/// Whether holes are known in a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// None is known.
    Sound,
    /// Some are, or nobody can tell how old it is: why.
    Vulnerable(String),
}

/// How runsc takes system calls away from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Platform {
    /// By seccomp's traps; works nearly everywhere.
    Systrap,
    /// By the processor's virtualization.
    Kvm,
    /// By ptrace; slow, and gone from newer versions.
    Ptrace,
}

impl Platform {
    /// In the order in which they are tried.
    pub const ALL: [Self; 3] = [Self::Systrap, Self::Kvm, Self::Ptrace];

    /// As runsc knows it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Systrap => "systrap",
            Self::Kvm => "kvm",
            Self::Ptrace => "ptrace",
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl Backend {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 4] = [Self::Native, Self::Gvisor, Self::Crun, Self::Runc];

    /// Its name, the same in options, reports and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Gvisor => "gvisor",
            Self::Crun => "crun",
            Self::Runc => "runc",
        }
    }

    /// The program that the last walls are left to; none where they are our own.
    #[must_use]
    pub const fn program(self) -> Option<&'static str> {
        match self {
            Self::Native => None,
            Self::Gvisor => Some("runsc"),
            Self::Crun => Some("crun"),
            Self::Runc => Some("runc"),
        }
    }

    /// Whether a wall is on this backend's list. One that is not does not exist there, or another stands in its place.
    #[must_use]
    pub const fn has_wall(self, wall: Wall) -> bool {
        match wall {
            Wall::OwnKernel => self.has_own_kernel(),
            Wall::RuntimeVersion => self.program().is_some(),
            Wall::Landlock => !self.has_own_kernel(),
            _ => true,
        }
    }

    /// Whether what runs inside asks a kernel of its own and not the host's. Only there may it be root.
    #[must_use]
    pub const fn has_own_kernel(self) -> bool {
        matches!(self, Self::Gvisor)
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
