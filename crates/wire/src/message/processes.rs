//! What a kernel of the sandbox's own says of its processes. It is told inside, and believed by nobody.

/// The longest command line that is told.
pub const COMMAND_LIMIT: usize = 64 << 10;

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
    /// The kernel's line about it, `stat`, as it is.
    #[prost(bytes = "bytes", tag = "3")]
    pub stat: bytes::Bytes,
    /// Its command line, each word before a NUL; no more than [`COMMAND_LIMIT`] bytes of it.
    #[prost(bytes = "bytes", tag = "4")]
    pub command: bytes::Bytes,
    /// The number of the exec that its environment names.
    #[prost(uint64, optional, tag = "5")]
    pub exec: Option<u64>,
    /// When that kernel was started, in seconds since 1970.
    #[prost(uint64, tag = "6")]
    pub booted: u64,
}
