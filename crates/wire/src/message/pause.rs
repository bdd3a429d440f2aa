//! Standing still, and other limits: what the owner's side does itself as far as cgroups do it, and wants on record.

/// Everything inside stands still, or goes on.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Pause {
    /// Which of the two.
    #[prost(bool, tag = "1")]
    pub paused: bool,
    /// By a signal of init's to every process, as there is no cgroup to be frozen. Otherwise only a supervisor is asked,
    /// which puts it on record.
    #[prost(bool, tag = "2")]
    pub by_signal: bool,
}

/// The limits that hold from now on.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct NewLimits {
    /// Bytes of memory.
    #[prost(uint64, tag = "1")]
    pub memory: u64,
    /// Thousandths of processors.
    #[prost(uint32, tag = "2")]
    pub cpus_milli: u32,
    /// Processes and threads.
    #[prost(uint32, tag = "3")]
    pub pids: u32,
    /// Bytes on disk.
    #[prost(uint64, tag = "4")]
    pub disk: u64,
}
