//! `init files`: one thing done with files, as an ordinary process inside. It runs behind the walls of any exec and
//! with the rights of the agent, so that no process with more rights ever touches a path that the agent made.
//!
//! It is asked once, over its stdin, by the supervisor. It must never wait for a file (a pipe, a device), never hold
//! a whole file or a whole directory in memory, and say at its end whether it has done what it was asked.

mod directory;
mod failure;
mod opening;
mod remove;
mod replies;
mod request;
mod status;
mod transfer;
mod tree;
mod watch;

use std::fs::File;
use std::io;

use rustix::fd::BorrowedFd;
use wire::{FileAnswer, FileAsk, FileDone};

use failure::Failure;
use replies::Replies;

/// The three streams, unbuffered.
struct Streams {
    input: File,
    output: File,
    replies: Replies,
}

impl Streams {
    fn take() -> io::Result<Self> {
        let file = |descriptor: BorrowedFd<'_>| descriptor.try_clone_to_owned().map(File::from);
        Ok(Self {
            input: file(rustix::stdio::stdin())?,
            output: file(rustix::stdio::stdout())?,
            replies: Replies::new(file(rustix::stdio::stderr())?),
        })
    }
}

/// Does what stdin asks for. The exit code is 0 after `Done` and 1 after `Failed`, or where nobody could be told.
pub(crate) fn run() -> u8 {
    let Ok(mut streams) = Streams::take() else { return 1 };
    let done = request::read(&mut streams.input).and_then(|ask| answer(ask, &mut streams));
    let (last, code) = match done {
        Ok(done) => (FileAnswer::Done(done), 0),
        Err(failure) => (FileAnswer::Failed(failure.into()), 1),
    };
    let told = streams.replies.send(last).and_then(|()| streams.replies.flush());
    if told.is_ok() { code } else { 1 }
}

fn answer(ask: FileAsk, streams: &mut Streams) -> Result<FileDone, Failure> {
    match ask {
        FileAsk::Read(ask) => transfer::read(&ask, streams),
        FileAsk::Write(ask) => transfer::write(&ask, streams),
        FileAsk::Stat(ask) => status::answer(&ask, &mut streams.replies),
        FileAsk::List(ask) => directory::list(&ask, &mut streams.replies),
        FileAsk::MakeDirectory(ask) => directory::make(&ask),
        FileAsk::Move(ask) => directory::rename(&ask),
        FileAsk::Remove(ask) => remove::remove(&ask),
        FileAsk::Watch(ask) => watch::watch(&ask, streams),
        FileAsk::Pack(ask) => tree::pack(&ask, streams),
        FileAsk::Unpack(ask) => tree::unpack(&ask, streams),
    }
}
