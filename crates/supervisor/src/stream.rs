//! One output of a process: what it wrote is kept in a log, and everyone who views it reads on from there. Who views
//! it is waited for, so that nothing is lost to a slow viewer; where nobody does, the oldest bytes make room.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use wire::{LaneError, LaneReceiver, LaneSender};

use crate::log::{CAPACITY, Log, Piece};

/// One output of a process.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    state: Mutex<State>,
    /// Something was added, or nothing more will be.
    grown: Notify,
    /// A viewer has read on, or is gone.
    read: Notify,
}

#[derive(Debug, Default)]
struct State {
    log: Log,
    /// How far each viewer has read.
    viewers: BTreeMap<u64, u64>,
    next_viewer: u64,
}

/// A viewer's place in a stream; dropping it gives the place up.
#[derive(Debug)]
pub(crate) struct Viewer {
    stream: Arc<Stream>,
    id: u64,
    offset: u64,
}

impl Stream {
    /// Nothing that could break is ever half done under this lock, so poison is ignored.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps all that comes from inside, until its end.
    pub(crate) async fn fill(&self, mut lane: LaneReceiver) {
        while let Ok(Some(bytes)) = lane.next().await {
            loop {
                let read = self.read.notified();
                if self.state().has_room(bytes.len()) {
                    break;
                }
                read.await;
            }
            self.state().log.push(&bytes);
            self.grown.notify_waiters();
        }
        self.state().log.finish();
        self.grown.notify_waiters();
    }

    /// A viewer from this offset on, or from the first one that is kept.
    pub(crate) fn view(self: &Arc<Self>, offset: u64) -> Viewer {
        let mut state = self.state();
        let offset = offset.clamp(state.log.start(), state.log.end());
        let id = state.next_viewer;
        state.next_viewer += 1;
        state.viewers.insert(id, offset);
        drop(state);
        Viewer { stream: Arc::clone(self), id, offset }
    }

    /// What it holds.
    pub(crate) fn size(&self) -> usize {
        self.state().log.len()
    }

    /// Forgets what was written.
    pub(crate) fn clear(&self) {
        self.state().log.clear();
    }
}

impl State {
    fn has_room(&self, more: usize) -> bool {
        let Some(slowest) = self.viewers.values().min() else { return true };
        let unread = self.log.end().saturating_sub(*slowest);
        unread == 0 || unread.saturating_add(more as u64) <= CAPACITY as u64
    }
}

impl Viewer {
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Sends everything to a client: until the end of the stream, or of what is there.
    pub(crate) async fn send(mut self, mut lane: LaneSender, follow: Follow) -> Result<(), LaneError> {
        loop {
            let stream = Arc::clone(&self.stream);
            let grown = stream.grown.notified();
            let piece = stream.state().log.at(self.offset);
            match piece {
                Piece::Bytes(bytes, end) => {
                    lane.send(bytes).await?;
                    self.offset = end;
                    stream.state().viewers.insert(self.id, end);
                    stream.read.notify_waiters();
                }
                Piece::NotYet if follow == Follow::ToTheEnd => grown.await,
                Piece::NotYet | Piece::Finished => break,
            }
        }
        lane.finish();
        Ok(())
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.stream.state().viewers.remove(&self.id);
        self.stream.read.notify_waiters();
    }
}

/// How long a viewer stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follow {
    /// Until the process has ended.
    ToTheEnd,
    /// Until it has seen what is there.
    ToNow,
}
