//! Two honest peers over a socket pair: what one sends is what the other gets, and every end is told.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use bytes::Bytes;
use tokio::net::UnixStream;
use tokio::time::timeout;
use wire::{
    Ask, Channel, Connection, ConnectionEnd, ConnectionError, Event, Exec, ExecEvent, Exited, Incoming,
    LaneError, Request, Side, VERSION, start,
};

fn pair() -> ((Connection, Incoming), (Connection, Incoming)) {
    let (near, far) = UnixStream::pair().unwrap();
    let (near_read, near_write) = near.into_split();
    let (far_read, far_write) = far.into_split();
    (start(near_read, near_write, Side::Asking), start(far_read, far_write, Side::Answering))
}

/// A channel as both sides have it. The connections are given back because dropping `Incoming` refuses channels.
async fn channel(asking: &Connection, incoming: &mut Incoming) -> (Channel, Channel) {
    let near = asking.open().unwrap();
    (near, incoming.next().await.unwrap())
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(20), future).await.expect("this takes far too long")
}

#[tokio::test]
async fn a_request_is_answered() {
    let ((asking, _i), (_answering, mut incoming)) = pair();
    let (mut near, mut far) = channel(&asking, &mut incoming).await;
    let exec = Exec { argv: vec![Bytes::from_static(b"/bin/true")], ..Exec::default() };
    let request = Request { version: VERSION, ask: Some(Ask::Exec(exec)) };
    near.messages.sender.send_message(&request).await.unwrap();
    assert_eq!(far.messages.receiver.next_message().await, Ok(Some(request)));

    let exited = ExecEvent { event: Some(Event::Exited(Exited { code: 7, ..Exited::default() })) };
    far.output.sender.send(Bytes::from_static(b"out")).await.unwrap();
    far.messages.sender.send_message(&exited).await.unwrap();
    drop(far);
    assert_eq!(near.messages.receiver.next_message().await, Ok(Some(exited)));
    assert_eq!(near.messages.receiver.next_message::<ExecEvent>().await, Ok(None));
    soon(near.handle.closed()).await;
    assert_eq!(near.output.receiver.next().await, Ok(Some(Bytes::from_static(b"out"))));
    assert_eq!(near.output.receiver.next().await, Ok(None));
    assert_eq!(near.output.sender.send(Bytes::from_static(b"late")).await, Err(LaneError::Closed));
}

#[tokio::test]
async fn the_first_word_is_heard_whatever_it_is() {
    let ((asking, _refused), (answering, mut incoming)) = pair();
    assert!(!asking.has_asked());
    let waiting = tokio::spawn({
        let asking = asking.clone();
        async move { asking.heard().await }
    });
    let (near, far) = channel(&asking, &mut incoming).await;
    assert!(asking.has_asked() && !waiting.is_finished());
    // To close it is a word, too.
    drop(far);
    assert!(soon(waiting).await.unwrap());
    drop(near);
    answering.shutdown();
    soon(asking.closed()).await;
    assert!(soon(asking.heard()).await, "what was heard stays heard");
}

#[tokio::test]
async fn who_ends_without_a_word_was_not_heard() {
    let ((asking, _refused), (answering, _incoming)) = pair();
    answering.shutdown();
    assert!(!soon(asking.heard()).await);
}

#[tokio::test]
async fn much_data_arrives_whole_through_a_small_window() {
    let ((asking, _i), (_answering, mut incoming)) = pair();
    let (mut near, mut far) = channel(&asking, &mut incoming).await;
    let sent: Vec<u8> = (0..5_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let bytes = Bytes::from(sent.clone());
    let sender = tokio::spawn(async move {
        near.output.sender.send(bytes).await.unwrap();
        near.output.sender.finish();
        near.handle
    });
    let mut received = Vec::new();
    while let Some(chunk) = far.output.receiver.next().await.unwrap() {
        received.extend_from_slice(&chunk);
    }
    assert!(received == sent);
    drop(sender.await.unwrap());
}

#[tokio::test]
async fn a_stream_that_takes_a_few_bytes_at_a_time_will_do() {
    let (near, far) = tokio::io::duplex(5);
    let (near_read, near_write) = tokio::io::split(near);
    let (far_read, far_write) = tokio::io::split(far);
    let (asking, _i) = start(near_read, near_write, Side::Asking);
    let (_answering, mut incoming) = start(far_read, far_write, Side::Answering);
    let (mut near, mut far) = channel(&asking, &mut incoming).await;
    let bytes = Bytes::from_iter((0..=255).cycle().take(20_000));
    near.input.sender.send(bytes.clone()).await.unwrap();
    near.input.sender.finish();
    let mut received = Vec::new();
    while let Some(chunk) = soon(far.input.receiver.next()).await.unwrap() {
        received.extend_from_slice(&chunk);
    }
    assert_eq!(received, bytes);
}

#[tokio::test]
async fn a_message_larger_than_the_window_arrives() {
    let ((asking, _i), (_answering, mut incoming)) = pair();
    let (mut near, mut far) = channel(&asking, &mut incoming).await;
    let message = Exec { workdir: vec![9; 3_000_000].into(), ..Exec::default() };
    let (sent, received) = tokio::join!(
        near.messages.sender.send_message(&message),
        far.messages.receiver.next_message::<Exec>()
    );
    assert_eq!((sent, received), (Ok(()), Ok(Some(message))));

    let message = Exec { workdir: vec![9; wire::MESSAGE_LIMIT].into(), ..Exec::default() };
    assert!(matches!(near.messages.sender.send_message(&message).await, Err(LaneError::MessageTooLarge(_))));
}

#[tokio::test]
async fn a_slow_reader_stops_its_own_lane_only() {
    let ((asking, _i), (_answering, mut incoming)) = pair();
    let (mut near, mut far) = channel(&asking, &mut incoming).await;
    near.output.sender.send(vec![1; 256 * 1024].into()).await.unwrap();
    let stuck = timeout(Duration::from_millis(50), near.output.sender.send(Bytes::from_static(b"x"))).await;
    assert!(stuck.is_err(), "a byte over the window was sent");
    soon(near.error.sender.send(Bytes::from_static(b"e"))).await.unwrap();
    assert_eq!(soon(far.error.receiver.next()).await, Ok(Some(Bytes::from_static(b"e"))));

    while far.output.receiver.next().await.unwrap().unwrap().len() == 64 * 1024 {
        if timeout(Duration::from_millis(50), near.output.sender.send(Bytes::from_static(b"x"))).await.is_ok()
        {
            return;
        }
    }
    panic!("what was read was never credited");
}

#[tokio::test]
async fn a_dropped_receiver_does_not_stall_the_sender() {
    let ((asking, _i), (_answering, mut incoming)) = pair();
    let (mut near, far) = channel(&asking, &mut incoming).await;
    near.output.sender.send(vec![1; 256 * 1024].into()).await.unwrap();
    let Channel { output, handle: _handle, .. } = far;
    drop(output.receiver);
    soon(near.output.sender.send(vec![1; 8 * 1024 * 1024].into())).await.unwrap();
}

#[tokio::test]
async fn a_closed_channel_fails_what_was_not_finished() {
    let ((asking, _i), (_answering, mut incoming)) = pair();
    let (near, mut far) = channel(&asking, &mut incoming).await;
    let Channel { mut output, mut error, handle, .. } = near;
    error.sender.send(Bytes::from_static(b"last")).await.unwrap();
    drop(handle);
    assert_eq!(output.sender.send(Bytes::from_static(b"x")).await, Err(LaneError::Closed));
    assert_eq!(output.receiver.next().await, Err(LaneError::Closed));
    assert_eq!(far.error.receiver.next().await, Ok(Some(Bytes::from_static(b"last"))));
    assert_eq!(far.error.receiver.next().await, Err(LaneError::Closed));
    soon(far.handle.closed()).await;
}

#[tokio::test]
async fn a_shutdown_delivers_what_was_sent_and_ends_both_sides() {
    let ((asking, mut from_far), (answering, mut incoming)) = pair();
    let (mut near, mut far) = channel(&asking, &mut incoming).await;
    near.output.sender.send(vec![5; 200_000].into()).await.unwrap();
    asking.shutdown();
    assert_eq!(near.output.sender.send(Bytes::from_static(b"x")).await, Err(LaneError::Lost));
    assert_eq!(asking.open().err(), Some(ConnectionError::Over));

    let mut received = 0;
    let end = loop {
        match soon(far.output.receiver.next()).await {
            Ok(Some(chunk)) => received += chunk.len(),
            other => break other,
        }
    };
    assert_eq!((received, end), (200_000, Err(LaneError::Lost)));
    assert!(matches!(soon(answering.closed()).await, ConnectionEnd::Clean));
    assert!(matches!(soon(asking.closed()).await, ConnectionEnd::Clean));
    assert!(soon(incoming.next()).await.is_none());
    assert!(soon(from_far.next()).await.is_none());
    assert_eq!(near.output.receiver.next().await, Err(LaneError::Lost));
    soon(near.handle.closed()).await;
}

#[tokio::test]
async fn refused_channels_are_closed() {
    let ((asking, _i), (_answering, incoming)) = pair();
    drop(incoming);
    let channel = asking.open().unwrap();
    soon(channel.handle.closed()).await;
}

#[tokio::test]
async fn as_many_channels_as_allowed_and_no_more() {
    let ((asking, _i), (_answering, mut incoming)) = pair();
    let mut near: Vec<_> = (0..1024).map(|_| asking.open().unwrap()).collect();
    assert_eq!(asking.open().err(), Some(ConnectionError::TooManyChannels));
    let mut far = Vec::new();
    while far.len() < 1024 {
        far.push(soon(incoming.next()).await.unwrap());
    }
    drop(near.pop());
    assert_eq!(asking.open().err(), Some(ConnectionError::TooManyChannels), "the peer has not closed it yet");
    drop(far.pop());
    soon(async {
        while asking.open().is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn thousands_of_channels_one_after_the_other() {
    let ((asking, _i), (_answering, mut incoming)) = pair();
    tokio::spawn(async move {
        while let Some(mut channel) = incoming.next().await {
            let Ok(Some(bytes)) = channel.input.receiver.next().await else { return };
            channel.output.sender.send(bytes).await.unwrap();
        }
    });
    for round in 0..5_000_u32 {
        let mut channel = asking.open().unwrap();
        let bytes = Bytes::copy_from_slice(&round.to_le_bytes());
        channel.input.sender.send(bytes.clone()).await.unwrap();
        assert_eq!(soon(channel.output.receiver.next()).await, Ok(Some(bytes)));
    }
}
