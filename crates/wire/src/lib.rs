//! The control channel: many requests over one byte stream, each a *channel* of four *lanes*, with flow
//! control per lane so that a slow reader of one never stops the others.
//!
//! Both ends link this crate and neither trusts the other: everything read from the peer is hostile. Wrong
//! bytes end the connection with a typed error; they never panic and never make memory grow past the windows.

mod buffers;
mod channel;
mod connection;
mod error;
mod flow;
mod frame;
mod lane;
mod message;
mod passage;
mod reader;
mod relay;
mod state;
mod stream;
mod sys;
mod writer;

pub use buffers::ReadBuffers;
pub use channel::{Channel, ChannelHandle};
pub use connection::{Connection, Incoming, Side, start};
pub use error::{ConnectionEnd, ConnectionError, LaneError, NoDescriptorLeft, ProtocolError};
pub use lane::{Lane, LaneReceiver, LaneSender, MESSAGE_LIMIT};
pub use message::{
    Ask, Attach, COMMAND_LIMIT, Change, Detach, Dial, Dialled, EXEC_VARIABLE, Event, Exec, ExecEvent,
    ExecInput, ExecState, Execs, Exited, FILE_REQUEST_LIMIT, Failed, FileAnswer, FileAsk, FileChanged,
    FileCode, FileDone, FileEntry, FileFailed, FileKind, FileMoved, FileOrder, FileReply, FileRequest,
    FileSkipped, FileStat, Flow, Flows, LIST_LIMIT, List, ListDirectory, MakeDirectory, MoveFile, Net,
    NewLimits, PATH_LIMIT, PackTree, Pause, Policy, PortState, PortStates, Ports, Processes, ReadFile,
    RemoveFile, Request, STAT_LIMIT, SeenProcess, Send, SkippedWhy, Started, StatFile, Step, Stop, Tell,
    Total, UnpackTree, Unpublish, Unpublished, VERSION, WatchFile, WindowSize, WriteFile, WriteHow,
    exec_mark,
};
pub use relay::{Carrier, Count, relay, reset};
pub use stream::{over_pipes, over_socket, over_socket_of_another_kernel};
