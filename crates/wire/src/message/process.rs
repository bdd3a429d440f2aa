//! Processes inside: started, seen, told, and what becomes of them.

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
    /// It goes on when whoever asked for it is gone. Init is never asked that: a supervisor stays.
    #[prost(bool, tag = "9")]
    pub detached: bool,
    /// The sandbox ends with it. Init is never asked that.
    #[prost(bool, tag = "10")]
    pub last: bool,
    /// The name of its terminal; a supervisor gives one where this is empty. Init is never told.
    #[prost(string, tag = "11")]
    pub terminal_name: String,
}

/// A process to see. What it wrote is given from these offsets on, or from where it is still kept.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Attach {
    /// Its number.
    #[prost(uint64, tag = "1")]
    pub exec: u64,
    /// How much of its stdout was seen before.
    #[prost(uint64, tag = "2")]
    pub output: u64,
    /// How much of its stderr was seen before.
    #[prost(uint64, tag = "3")]
    pub error: u64,
    /// Only what is there, without waiting for more.
    #[prost(bool, tag = "4")]
    pub no_follow: bool,
    /// The size of the viewer's own terminal, which the process's terminal takes.
    #[prost(message, optional, tag = "5")]
    pub size: Option<WindowSize>,
}

/// Something to type.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Send {
    /// The number of the process.
    #[prost(uint64, tag = "1")]
    pub exec: u64,
    /// What to type.
    #[prost(bytes = "bytes", tag = "2")]
    pub bytes: bytes::Bytes,
}

/// Nothing more to say.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct List {}

/// How to end everything.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Stop {
    /// From SIGTERM to the end.
    #[prost(uint64, tag = "1")]
    pub grace_ms: u64,
}

/// The processes that were started and are still known, the oldest first.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Execs {
    /// Each of them.
    #[prost(message, repeated, tag = "1")]
    pub execs: Vec<ExecState>,
}

/// A process as its supervisor knows it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecState {
    /// Its number, which no other in this sandbox has.
    #[prost(uint64, tag = "1")]
    pub exec: u64,
    /// What was asked for.
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub argv: Vec<bytes::Bytes>,
    /// Its process id inside, also when it has ended; zero before it runs.
    #[prost(int32, tag = "3")]
    pub pid: i32,
    /// When it was asked for, in milliseconds since 1970.
    #[prost(uint64, tag = "4")]
    pub asked_ms: u64,
    /// How it ended, if it has.
    #[prost(message, optional, tag = "5")]
    pub exited: Option<Exited>,
    /// Why it did not start, if so.
    #[prost(message, optional, tag = "6")]
    pub failed: Option<Failed>,
    /// The name of its terminal, where it has one.
    #[prost(string, tag = "7")]
    pub terminal: String,
    /// Whether it goes on without a client.
    #[prost(bool, tag = "8")]
    pub detached: bool,
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
    #[prost(oneof = "Tell", tags = "1, 2, 3")]
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
    /// The viewer leaves, and wants its own terminal back as it was. Told to a supervisor only.
    #[prost(message, tag = "3")]
    Detach(Detach),
}

/// Nothing more to say.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Detach {}

/// What becomes of a process.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecEvent {
    /// One of the list.
    #[prost(oneof = "Event", tags = "1, 2, 3, 4")]
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
    /// It goes on without this viewer, who has asked to leave.
    #[prost(message, tag = "4")]
    Detached(Detach),
}

/// A process that runs.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Started {
    /// Its process id inside.
    #[prost(int32, tag = "1")]
    pub pid: i32,
    /// Its number; init knows none and says zero.
    #[prost(uint64, tag = "2")]
    pub exec: u64,
    /// The offset in its stdout that the lane begins at.
    #[prost(uint64, tag = "3")]
    pub output: u64,
    /// The offset in its stderr that the lane begins at.
    #[prost(uint64, tag = "4")]
    pub error: u64,
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
