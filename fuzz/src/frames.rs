//! Frames of the control channel, from an init that is not trusted. However the connection ends, it ends, and no more is
//! handed on than came.

use std::cell::RefCell;

use tokio::runtime::{Builder, Runtime};
use wire::{ConnectionEnd, ExecEvent, Incoming, Side, start};

thread_local! {
    static RUNTIME: RefCell<Option<Runtime>> = RefCell::new(Builder::new_current_thread().enable_time().build().ok());
}

pub(crate) fn check(bytes: &[u8]) {
    for side in [Side::Asking, Side::Answering] {
        RUNTIME.with_borrow(|runtime| {
            if let Some(runtime) = runtime {
                runtime.block_on(converse(bytes, side));
            }
        });
    }
}

/// Hears all of it.
async fn converse(bytes: &[u8], side: Side) {
    let read = std::io::Cursor::new(bytes.to_vec());
    let (connection, incoming) = start(read, tokio::io::sink(), side);
    // One of our own, which the peer may speak on.
    let opened = connection.open();
    let listening = tokio::spawn(listen(incoming));
    let end = connection.closed().await;
    assert!(matches!(end, ConnectionEnd::Clean | ConnectionEnd::Protocol(_)), "{end:?}");
    drop(opened);
    let heard = listening.await.unwrap_or(usize::MAX);
    assert!(heard <= bytes.len(), "{heard} bytes of {}", bytes.len());
}

/// How many bytes come on the lanes of all channels.
async fn listen(mut incoming: Incoming) -> usize {
    let mut heard = 0;
    while let Some(mut channel) = incoming.next().await {
        for lane in [&mut channel.input, &mut channel.output, &mut channel.error] {
            while let Ok(Some(bytes)) = lane.receiver.next().await {
                heard += bytes.len();
            }
        }
        while let Ok(Some(_)) = channel.messages.receiver.next_message::<ExecEvent>().await {}
    }
    heard
}
