//! One output of a process: what it wrote is kept in a log, and everyone who views it reads on from there. Who views
//! it is waited for, so that nothing is lost to a slow viewer; where nobody does, the oldest bytes make room. So they do
//! where all streams together hold too much ([`Shelf`]).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use screen::{Screen, Size};
use tokio::sync::{Notify, watch};
use wire::{LaneError, LaneReceiver, LaneSender, WindowSize};

use crate::log::{CAPACITY, Log, Piece};
use crate::shelf::{Shelf, Spare};

/// One output of a process.
#[derive(Debug)]
pub(crate) struct Stream {
    state: Mutex<State>,
    shelf: Arc<Shelf>,
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
    /// A stream among others; that of a terminal has a size.
    pub(crate) fn new(shelf: &Arc<Shelf>, terminal: Option<WindowSize>) -> Arc<Self> {
        let screen = terminal.map(|size| Screen::new(screen_size(size)));
        let state = Mutex::new(State { screen, ..State::default() });
        let (grown, read) = (Notify::new(), Notify::new());
        let stream = Arc::new(Self { state, shelf: Arc::clone(shelf), grown, read });
        shelf.add(&stream);
        stream
    }

    /// Nothing that could break is ever half done under this lock, so poison is ignored.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is kept, and says so to the shelf.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        let before = state.log.held();
        change(&mut state);
        self.shelf.account(before, state.log.held());
    }

    /// Keeps all that comes from inside, until its end.
    pub(crate) async fn fill(&self, mut lane: LaneReceiver) {
        while let Ok(Some(bytes)) = lane.next().await {
            loop {
                let read = self.read.notified();
                let is_room = self.shelf.make_room(bytes.len());
                if self.state().takes(bytes.len(), is_room) {
                    break;
                }
                read.await;
            }
            self.push(&bytes);
        }
        self.finish();
    }

    /// Keeps bytes.
    pub(crate) fn push(&self, bytes: &[u8]) {
        self.change(|state| state.push(bytes));
        self.grown.notify_waiters();
    }

    /// Nothing more will come.
    pub(crate) fn finish(&self) {
        self.change(|state| state.log.finish());
        self.grown.notify_waiters();
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

    /// How much memory it holds.
    pub(crate) fn size(&self) -> usize {
        self.state().log.held()
    }

    /// What it could do without.
    pub(crate) fn spare(&self) -> Spare {
        let state = self.state();
        let seen = state.seen().saturating_sub(state.log.start());
        Spare {
            bytes: usize::try_from(seen).unwrap_or(usize::MAX),
            is_finished: state.log.is_finished(),
            is_viewed: !state.viewers.is_empty(),
        }
    }

    /// Forgets so many of the oldest bytes; none that a viewer waits for.
    pub(crate) fn forget(&self, count: usize) {
        let count = count.min(self.spare().bytes);
        self.change(|state| state.log.forget(count));
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.change(|state| state.log.forget(usize::MAX));
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

    /// The offset up to which all viewers have seen it.
    fn seen(&self) -> u64 {
        self.viewers.values().min().map_or(self.log.end(), |slowest| (*slowest).max(self.log.start()))
    }

    /// Whether so much more can be kept without any loss to a viewer. Where there is no room among all streams, viewers
    /// see it piece by piece.
    fn takes(&self, more: usize, is_room: bool) -> bool {
        let unseen = self.log.end().saturating_sub(self.seen());
        unseen == 0 || (is_room && unseen.saturating_add(more as u64) <= CAPACITY as u64)
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
