//! Watching one file, or one directory and the files in it, until whoever asked has heard enough.

use std::io::Read;
use std::mem::MaybeUninit;

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, Event, ReadFlags, Reader, WatchFlags};
use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;
use wire::{Change, FileAnswer, FileChanged, FileDone, WatchFile};

use super::failure::Failure;
use super::{Streams, status};

/// Room for some hundred events.
const BUFFER: usize = 16 * 1024;

const WATCHED: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);

/// What each kind of event is called.
const CHANGES: [(ReadFlags, Change); 11] = [
    (ReadFlags::QUEUE_OVERFLOW, Change::Lost),
    (ReadFlags::DELETE_SELF, Change::Gone),
    (ReadFlags::MOVE_SELF, Change::Gone),
    (ReadFlags::IGNORED, Change::Gone),
    (ReadFlags::CREATE, Change::Created),
    (ReadFlags::MODIFY, Change::Modified),
    (ReadFlags::CLOSE_WRITE, Change::Closed),
    (ReadFlags::ATTRIB, Change::Attributes),
    (ReadFlags::DELETE, Change::Removed),
    (ReadFlags::MOVED_FROM, Change::MovedFrom),
    (ReadFlags::MOVED_TO, Change::MovedTo),
];

/// Tells what happens. Where it cannot be told as fast, the kernel forgets and says so.
pub(super) fn watch(ask: &WatchFile, streams: &mut Streams) -> Result<FileDone, Failure> {
    let failed = |errno| Failure::system(&ask.path, errno);
    let watched = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(failed)?;
    inotify::add_watch(&watched, &ask.path[..], WATCHED).map_err(failed)?;
    let stat = status::look(CWD, &ask.path, AtFlags::empty()).map_err(failed)?;
    streams.replies.send(FileAnswer::Stat(stat))?;
    let mut buffer = [MaybeUninit::uninit(); BUFFER];
    let mut reader = Reader::new(&watched, &mut buffer);
    let mut done = FileDone::default();
    loop {
        streams.replies.flush()?;
        let is_over = wait(&watched, streams).map_err(failed)?;
        loop {
            let told = match reader.next() {
                Ok(event) => changed(&event),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(failed(errno)),
            };
            let Some(told) = told else { continue };
            let is_gone = told.change == i32::from(Change::Gone);
            streams.replies.send(FileAnswer::Changed(told))?;
            done.entries += 1;
            if is_gone {
                return Ok(done);
            }
        }
        if is_over {
            return Ok(done);
        }
    }
}

/// Waits for events, or for the end of stdin, and says whether it was that. What is said there before is of no
/// interest.
fn wait(watched: &rustix::fd::OwnedFd, streams: &mut Streams) -> Result<bool, Errno> {
    let mut descriptors = [PollFd::new(watched, PollFlags::IN), PollFd::new(&streams.input, PollFlags::IN)];
    match poll(&mut descriptors, None) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(errno),
    }
    let has_input = !descriptors[1].revents().is_empty();
    Ok(has_input && !matches!(streams.input.read(&mut [0; 512]), Ok(1..)))
}

fn changed(event: &Event<'_>) -> Option<FileChanged> {
    let (_, change) = CHANGES.iter().find(|(flag, _)| event.events().contains(*flag))?;
    Some(FileChanged {
        change: i32::from(*change),
        name: event.file_name().map(|name| Bytes::copy_from_slice(name.to_bytes())).unwrap_or_default(),
        cookie: event.cookie(),
    })
}
