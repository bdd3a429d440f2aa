//! One output of a process: what it wrote is kept in a log, and everyone who views it reads on from there. Who views
//! it is waited for, so that nothing is lost to a slow viewer; where nobody does, the oldest bytes make room.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use screen::{Screen, Size};
use tokio::sync::{Notify, watch};
use wire::{LaneError, LaneReceiver, LaneSender, WindowSize};

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
    /// What a terminal shows.
    screen: Option<Screen>,
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
            self.state().push(&bytes);
            self.grown.notify_waiters();
        }
        self.state().log.finish();
        self.grown.notify_waiters();
    }

    /// The stream of a terminal of this size.
    pub(crate) fn of_terminal(size: WindowSize) -> Self {
        let state = State { screen: Some(Screen::new(screen_size(size))), ..State::default() };
        Self { state: Mutex::new(state), ..Self::default() }
    }

    /// The terminal has another size now.
    pub(crate) fn resize(&self, size: WindowSize) {
        if let Some(screen) = &mut self.state().screen {
            screen.resize(screen_size(size));
        }
    }

    /// What brings a viewer's terminal to what this one shows; the viewer goes on from there.
    pub(crate) fn show(self: &Arc<Self>) -> Option<(Bytes, Viewer)> {
        let mut state = self.state();
        let shown = state.screen.as_ref()?.restore();
        let end = state.log.end();
        let (id, offset) = state.seat(end);
        drop(state);
        Some((shown.into(), Viewer { stream: Arc::clone(self), id, offset }))
    }

    /// What gives a viewer's terminal back.
    pub(crate) fn leave(&self) -> Bytes {
        self.state().screen.as_ref().map(Screen::leave).unwrap_or_default().into()
    }

    /// A viewer from this offset on, or from the first one that is kept.
    pub(crate) fn view(self: &Arc<Self>, offset: u64) -> Viewer {
        let (id, offset) = self.state().seat(offset);
        Viewer { stream: Arc::clone(self), id, offset }
    }

    /// How much was ever written.
    pub(crate) fn end(&self) -> u64 {
        self.state().log.end()
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

/// Sizes come from clients; a screen takes what it can.
fn screen_size(size: WindowSize) -> Size {
    let clamp = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
    Size { rows: clamp(size.rows), columns: clamp(size.columns) }
}

impl State {
    fn push(&mut self, bytes: &[u8]) {
        self.log.push(bytes);
        if let Some(screen) = &mut self.screen {
            screen.feed(bytes);
        }
    }

    /// A new viewer's number and the offset that it begins at.
    fn seat(&mut self, offset: u64) -> (u64, u64) {
        let offset = offset.clamp(self.log.start(), self.log.end());
        let id = self.next_viewer;
        self.next_viewer += 1;
        self.viewers.insert(id, offset);
        (id, offset)
    }

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

    /// Sends everything to a client: until the end of the stream, or of what is there, or until it leaves.
    pub(crate) async fn send(
        mut self,
        first: Bytes,
        mut lane: LaneSender,
        follow: Follow,
        mut leaving: watch::Receiver<bool>,
    ) -> Result<(), LaneError> {
        if !first.is_empty() {
            lane.send(first).await?;
        }
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
                Piece::NotYet if follow == Follow::ToTheEnd => tokio::select! {
                    () = grown => {}
                    _ = leaving.wait_for(|leaving| *leaving) => break,
                },
                Piece::NotYet | Piece::Finished => break,
            }
            if *leaving.borrow() {
                break;
            }
        }
        if *leaving.borrow() {
            lane.send(self.stream.leave()).await?;
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
