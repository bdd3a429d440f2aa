//! What may be asked across the control channel, on one screen. The same messages travel from a client to the
//! supervisor and from the supervisor to init. Byte fields are data from either side: bounded, never a path
//! of the host, never printed unescaped.

/// The version of this list. Both sides of a connection are of one build today; the number is checked so that
/// they can be of two builds later.
pub const VERSION: u32 = 1;

/// The first message on a channel: what is asked.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Request {
    /// The version of the messages that the asking side speaks.
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// The question itself.
    #[prost(oneof = "Ask", tags = "2")]
    pub ask: Option<Ask>,
}

/// Everything that can be asked.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Ask {
    /// Start a process. Lane `In` carries its stdin, `Out` its stdout (or its terminal), `Err` its stderr.
    #[prost(message, tag = "2")]
    Exec(Exec),
}

/// A process to start.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Exec {
    /// The command and its arguments; the command is looked up in the PATH of `environment`.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub argv: Vec<bytes::Bytes>,
    /// The whole environment, as `NAME=value`.
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub environment: Vec<bytes::Bytes>,
    /// Where it starts.
    #[prost(bytes = "bytes", tag = "3")]
    pub workdir: bytes::Bytes,
    /// User id inside.
    #[prost(uint32, tag = "4")]
    pub uid: u32,
    /// Group id inside.
    #[prost(uint32, tag = "5")]
    pub gid: u32,
    /// A terminal of this size instead of three pipes.
    #[prost(message, optional, tag = "6")]
    pub terminal: Option<WindowSize>,
    /// After so long it gets SIGTERM; zero is never.
    #[prost(uint64, tag = "7")]
    pub timeout_ms: u64,
    /// So long after SIGTERM it gets SIGKILL.
    #[prost(uint64, tag = "8")]
    pub grace_ms: u64,
}

/// A terminal's size in characters.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct WindowSize {
    /// Lines.
    #[prost(uint32, tag = "1")]
    pub rows: u32,
    /// Columns.
    #[prost(uint32, tag = "2")]
    pub columns: u32,
}

/// What may be told to a running process.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecInput {
    /// One of the list.
    #[prost(oneof = "Tell", tags = "1, 2")]
    pub tell: Option<Tell>,
}

/// Everything that can be told to a running process.
#[derive(Clone, Copy, PartialEq, prost::Oneof)]
pub enum Tell {
    /// Send this signal to its process group.
    #[prost(int32, tag = "1")]
    Signal(i32),
    /// Its terminal has another size now.
    #[prost(message, tag = "2")]
    Resize(WindowSize),
}

/// What becomes of a process.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecEvent {
    /// One of the list.
    #[prost(oneof = "Event", tags = "1, 2, 3")]
    pub event: Option<Event>,
}

/// Everything that can become of a process. `Started` comes first, or `Failed` and nothing else; `Exited` is
/// last, after the last byte of output.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Event {
    /// It runs.
    #[prost(message, tag = "1")]
    Started(Started),
    /// It could not be started.
    #[prost(message, tag = "2")]
    Failed(Failed),
    /// It has ended and its output has been delivered.
    #[prost(message, tag = "3")]
    Exited(Exited),
}

/// A process that runs.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Started {
    /// Its process id inside.
    #[prost(int32, tag = "1")]
    pub pid: i32,
}

/// Why a process could not be started.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Failed {
    /// Which step failed.
    #[prost(enumeration = "Step", tag = "1")]
    pub step: i32,
    /// The kernel's error number.
    #[prost(int32, tag = "2")]
    pub errno: i32,
}

/// The steps of starting a process, as far as they can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Step {
    /// The request itself: a NUL, no argv, an unknown version.
    Request = 0,
    /// Pipes or the terminal.
    Streams = 1,
    /// The new process.
    Fork = 2,
    /// Its user and groups.
    User = 3,
    /// Its walls (Landlock, limits).
    Walls = 4,
    /// Its working directory.
    Workdir = 5,
    /// The program: ENOENT is "not found", EACCES "not executable".
    Program = 6,
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Exited {
    /// The code it gave, where it ended by itself.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// The signal that ended it, else zero.
    #[prost(int32, tag = "2")]
    pub signal: i32,
    /// Whether its time-out had run out before.
    #[prost(bool, tag = "3")]
    pub timed_out: bool,
    /// Whether the memory limit of the sandbox was hit while it ran; init does not know and says false.
    #[prost(bool, tag = "4")]
    pub out_of_memory: bool,
}
