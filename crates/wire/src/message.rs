//! What may be asked across the control channel, on one screen. The same messages travel from a client to the
//! supervisor and from the supervisor to init. Byte fields are data from either side: bounded, never a path
//! of the host, never printed unescaped.

mod files;
mod network;
mod pause;
mod ports;
mod process;
mod processes;

pub use files::{
    Change, FILE_REQUEST_LIMIT, FileAnswer, FileAsk, FileChanged, FileCode, FileDone, FileEntry, FileFailed,
    FileKind, FileMoved, FileReply, FileRequest, FileSkipped, FileStat, LIST_LIMIT, ListDirectory,
    MakeDirectory, MoveFile, PATH_LIMIT, PackTree, ReadFile, RemoveFile, SkippedWhy, StatFile, UnpackTree,
    WatchFile, WriteFile, WriteHow,
};
pub use network::{Flow, Flows, Net, Policy, Total};
pub use pause::{NewLimits, Pause};
pub use ports::{Dial, Dialled, PortState, PortStates, Ports, Unpublish, Unpublished};
pub use process::{
    Attach, Detach, Event, Exec, ExecEvent, ExecInput, ExecState, Execs, Exited, Failed, List, Send, Started,
    Step, Stop, Tell, WindowSize,
};
pub use processes::{COMMAND_LIMIT, Processes, STAT_LIMIT, SeenProcess, exec_mark};

/// The version of this list. Both sides of a connection are of one build today; the number is checked so that
/// they can be of two builds later.
pub const VERSION: u32 = 1;

/// The variable that tells a process, and whoever descends from it, the number of its exec.
pub const EXEC_VARIABLE: &str = "AGENTBOX_EXEC";

/// The first message on a channel: what is asked.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Request {
    /// The version of the messages that the asking side speaks.
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// The question itself.
    #[prost(oneof = "Ask", tags = "2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 21, 22, 30, 31")]
    pub ask: Option<Ask>,
}

/// Everything that can be asked.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Ask {
    /// Start a process. Lane `In` carries its stdin, `Out` its stdout (or its terminal), `Err` its stderr. Init takes
    /// a descriptor that is passed before this as its stdout.
    #[prost(message, tag = "2")]
    Exec(Exec),
    /// See what a process wrote and writes, as if one had been there all the time. Asked of a supervisor only.
    #[prost(message, tag = "3")]
    Attach(Attach),
    /// Which processes were started, by whom they are known: answered by one [`Execs`]. Asked of a supervisor only.
    #[prost(message, tag = "4")]
    List(List),
    /// Tell every process inside to end. When none is left, or the time is over, the channel is finished; a
    /// supervisor then ends the sandbox.
    #[prost(message, tag = "5")]
    Stop(Stop),
    /// Type something without seeing anything: answered when it has been typed. Asked of a supervisor only.
    #[prost(message, tag = "6")]
    Send(Send),
    /// Do something with files, as a user inside. Lane `In` carries what is written, `Out` what is read, `Err` the
    /// replies, each after its length. Whoever passes a pipe gets an archive through it, past everybody, and says
    /// [`FileMoved`] at the end. Asked of a supervisor only.
    #[prost(message, tag = "7")]
    File(FileOrder),
    /// Everything inside stands still, or goes on: answered when it does.
    #[prost(message, tag = "8")]
    Pause(Pause),
    /// The owner gives other limits: answered when that is on record. Asked of a supervisor only.
    #[prost(message, tag = "9")]
    Limit(NewLimits),
    /// Which processes its own kernel has: lane `Out` carries one [`SeenProcess`] after the other, each after its length,
    /// and that all were told is an exit of 0. Asked of a supervisor only.
    #[prost(message, tag = "10")]
    Processes(Processes),
    /// Connect to a port inside: answered by one [`Dialled`]. Lane `In` carries what it is sent, `Out` what it answers.
    /// Asked of init only.
    #[prost(message, tag = "20")]
    Dial(Dial),
    /// Which ports are published: answered by one [`PortStates`]. Asked of a supervisor only.
    #[prost(message, tag = "21")]
    Ports(Ports),
    /// Close a published port: answered by one [`Unpublished`]. Asked of a supervisor only.
    #[prost(message, tag = "22")]
    Unpublish(Unpublish),
    /// What has been seen of the sandbox's network: answered by one [`Flows`], and by more where those are wanted that
    /// change. Asked of a supervisor only.
    #[prost(message, tag = "30")]
    Net(Net),
    /// The owner changes what may leave: answered when it holds. Asked of a supervisor only.
    #[prost(message, tag = "31")]
    SetPolicy(Policy),
}

/// Something to be done with files.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FileOrder {
    /// What.
    #[prost(message, optional, tag = "1")]
    pub request: Option<FileRequest>,
    /// The user id inside.
    #[prost(uint32, tag = "2")]
    pub uid: u32,
    /// The group id inside.
    #[prost(uint32, tag = "3")]
    pub gid: u32,
    /// Where paths that are not absolute begin.
    #[prost(bytes = "bytes", tag = "4")]
    pub workdir: bytes::Bytes,
}
