//! The two machines that filters can be built for, on either of them, and their tables of system calls.

use syscalls::{aarch64, x86_64};

/// A machine whose system calls a filter knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// 64-bit x86, without the x32 and 32-bit entries.
    X86_64,
    /// 64-bit ARM, little-endian, without the 32-bit entry.
    Aarch64,
}

impl Architecture {
    /// The machine that this program was built for.
    #[cfg(target_arch = "x86_64")]
    pub const NATIVE: Self = Self::X86_64;
    /// The machine that this program was built for.
    #[cfg(target_arch = "aarch64")]
    pub const NATIVE: Self = Self::Aarch64;

    /// The kernel's name for the machine, as a filter sees it: the ELF machine, 64-bit, little-endian.
    #[must_use]
    pub const fn audit_value(self) -> u32 {
        match self {
            Self::X86_64 => 0xC000_003E,
            Self::Aarch64 => 0xC000_00B7,
        }
    }

    /// The name of the system call with this number, if the table has one.
    #[must_use]
    pub fn name_of(self, number: u32) -> Option<&'static str> {
        let number = number as usize;
        match self {
            Self::X86_64 => x86_64::Sysno::new(number).map(|call| call.name()),
            Self::Aarch64 => aarch64::Sysno::new(number).map(|call| call.name()),
        }
    }

    /// The highest number in the table.
    #[must_use]
    pub const fn last_number(self) -> u32 {
        match self {
            Self::X86_64 => x86_64::Sysno::last().id().cast_unsigned(),
            Self::Aarch64 => aarch64::Sysno::last().id().cast_unsigned(),
        }
    }
}
