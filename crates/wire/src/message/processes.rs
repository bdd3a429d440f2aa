//! What a kernel of the sandbox's own says of its processes. It is told inside, and believed by nobody.

use crate::EXEC_VARIABLE;

/// The longest command line that is told.
pub const COMMAND_LIMIT: usize = 64 << 10;

/// The longest text of the kernel's own about a process that is told.
pub const STAT_LIMIT: usize = 16 << 10;

/// The number of the exec that an environment names, as far as it was read: what is cut off at its end says nothing.
#[must_use]
pub fn exec_mark(environment: &[u8]) -> Option<u64> {
    let whole =
        environment.split_inclusive(|byte| *byte == 0).filter_map(|variable| variable.strip_suffix(b"\0"));
    let mut values =
        whole.filter_map(|variable| variable.strip_prefix(EXEC_VARIABLE.as_bytes())?.strip_prefix(b"="));
    std::str::from_utf8(values.next()?).ok()?.parse().ok()
}

/// As whom they are looked at.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Processes {
    /// The user id inside.
    #[prost(uint32, tag = "1")]
    pub uid: u32,
    /// The group id inside.
    #[prost(uint32, tag = "2")]
    pub gid: u32,
}

/// One process, as its kernel has it in /proc.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SeenProcess {
    /// Its id.
    #[prost(int32, tag = "1")]
    pub pid: i32,
    /// Its user.
    #[prost(uint32, tag = "2")]
    pub user: u32,
    /// The kernel's line about it, `stat`, as it is; no more than [`STAT_LIMIT`] bytes of it.
    #[prost(bytes = "vec", tag = "3")]
    pub stat: Vec<u8>,
    /// Its command line, each word before a NUL; no more than [`COMMAND_LIMIT`] bytes of it.
    #[prost(bytes = "vec", tag = "4")]
    pub command: Vec<u8>,
    /// The number of the exec that its environment names.
    #[prost(uint64, optional, tag = "5")]
    pub exec: Option<u64>,
    /// When that kernel was started, in seconds since 1970.
    #[prost(uint64, tag = "6")]
    pub booted: u64,
}

#[cfg(test)]
mod tests {
    use super::exec_mark;

    #[test]
    fn an_exec_is_named_by_a_whole_variable() {
        assert_eq!(exec_mark(b"A=1\0AGENTBOX_EXEC=7\0B=2"), Some(7));
        assert_eq!(exec_mark(b"A=1\0XAGENTBOX_EXEC=7\0AGENTBOX_EXEC=\0"), None);
        assert_eq!(exec_mark(b"A=1\0AGENTBOX_EXEC=7"), None, "it may be the beginning of 71");
    }
}
