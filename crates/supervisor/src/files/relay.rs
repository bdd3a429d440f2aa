//! An archive's bytes between the client's pipe and the process inside, where the pipe itself cannot go in. The pipe is the
//! owner's; what comes out of the lanes is hostile, and is only ever written to that pipe.

use std::io;
use std::os::fd::OwnedFd;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::oneshot;
use wire::{FileAsk, FileOrder, LaneError, LaneReceiver, LaneSender};

/// How much is read at a time.
const PIECE: usize = 64 * 1024;

/// What goes through here.
#[derive(Debug)]
pub(super) enum Relayed {
    Nothing,
    /// An archive for the process inside.
    In(Receiver),
    /// One that it packs.
    Out(Sender),
}

impl Relayed {
    /// Which way an order's pipe leads. The process inside finds its archive on stdin then.
    pub(super) fn of(order: &mut FileOrder, pipe: OwnedFd) -> Self {
        let ask = order.request.as_mut().and_then(|request| request.ask.as_mut());
        let opened: io::Result<Self> = match ask {
            Some(FileAsk::Unpack(ask)) => {
                ask.by_output = false;
                Receiver::from_owned_fd(pipe).map(Self::In)
            }
            Some(_) => Sender::from_owned_fd(pipe).map(Self::Out),
            None => Ok(Self::Nothing),
        };
        // A pipe that leads the other way than what was asked for carries nothing, which the client finds out.
        opened.unwrap_or(Self::Nothing)
    }
}

/// All that comes from the pipe, to the process inside.
pub(super) async fn feed(mut pipe: Receiver, mut to: LaneSender) -> Result<(), LaneError> {
    loop {
        let mut piece = BytesMut::with_capacity(PIECE);
        match pipe.read_buf(&mut piece).await {
            Ok(0) => break,
            Ok(_) => to.send(piece.freeze()).await?,
            // Cut short: the process inside is not told that this was all.
            Err(_) => return Err(LaneError::Closed),
        }
    }
    to.finish();
    Ok(())
}

/// All that the process inside writes, to the pipe; `_passing` is dropped when it is through.
pub(super) async fn drain(
    mut from: LaneReceiver,
    mut pipe: Sender,
    _passing: oneshot::Sender<()>,
) -> Result<(), LaneError> {
    while let Some(bytes) = from.next().await? {
        if pipe.write_all(&bytes).await.is_err() {
            return Err(LaneError::Closed);
        }
    }
    Ok(())
}

/// What the process inside replies. Its last word is kept back until all bytes have `passed`: whoever hears it reads only
/// what is in the pipe by then.
pub(super) async fn tell(
    mut from: LaneReceiver,
    mut to: LaneSender,
    passed: oneshot::Receiver<()>,
) -> Result<(), LaneError> {
    let mut last: Option<Bytes> = None;
    while let Some(bytes) = from.next().await? {
        if let Some(earlier) = last.replace(bytes) {
            to.send(earlier).await?;
        }
    }
    // Nothing is ever sent: the other side is dropped when it is done.
    let _ = passed.await;
    if let Some(bytes) = last {
        to.send(bytes).await?;
    }
    to.finish();
    Ok(())
}
