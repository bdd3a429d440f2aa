//! The protocol played between two states without a stream, so that every interleaving can be tried.

use std::collections::VecDeque;
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use proptest::prelude::*;

use super::State;
use crate::connection::Side;
use crate::error::{LaneError, ProtocolError};
use crate::frame::{CHANNEL_LIMIT, Header, Kind, LaneName, WINDOW};
use crate::writer::Batch;

const LANES: [LaneName; LaneName::COUNT] = [LaneName::Messages, LaneName::In, LaneName::Out, LaneName::Err];

fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// What `state` writes next, at most one batch.
fn written(state: &mut State) -> Vec<(Header, Bytes)> {
    let mut batch = Batch::default();
    let _ = state.poll_batch(&context(), &mut batch);
    let frames = batch.frames();
    frames.map(|(header, payload)| (Header::decode(header).unwrap(), payload)).collect()
}

/// Two states and the frames between them.
struct Pair {
    states: [State; 2],
    /// What each has written and the other has not read.
    wires: [VecDeque<(Header, Bytes)>; 2],
}

impl Pair {
    fn new() -> Self {
        let states = [State::new(Side::Asking), State::new(Side::Answering)];
        Self { states, wires: [VecDeque::new(), VecDeque::new()] }
    }

    fn write(&mut self, from: usize) {
        let frames = written(&mut self.states[from]);
        self.wires[from].extend(frames);
    }

    /// Gives up to `count` frames of `from` to the other side, which must find nothing wrong with them.
    fn read(&mut self, from: usize, count: usize) {
        for _ in 0..count {
            let Some((header, payload)) = self.wires[from].pop_front() else { return };
            self.states[1 - from].receive(header, payload).unwrap();
        }
    }

    fn settle(&mut self) {
        for from in [0, 1, 0, 1] {
            self.write(from);
            self.read(from, usize::MAX);
        }
    }
}

/// One step of an honest conversation on one of three channels.
#[derive(Clone, Debug)]
enum Move {
    Send { side: usize, channel: usize, lane: usize, length: usize },
    Finish { side: usize, channel: usize, lane: usize },
    Take { side: usize, channel: usize, lane: usize },
    Write { side: usize },
    Read { side: usize, count: usize },
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let place = || (0..2_usize, 0..3_usize, 0..4_usize);
    let length = prop_oneof![1..64_usize, 1..20_000_usize, 60_000..300_000_usize];
    let one = prop_oneof![
        8 => (place(), length)
            .prop_map(|((side, channel, lane), length)| Move::Send { side, channel, lane, length }),
        1 => place().prop_map(|(side, channel, lane)| Move::Finish { side, channel, lane }),
        12 => place().prop_map(|(side, channel, lane)| Move::Take { side, channel, lane }),
        8 => (0..2_usize).prop_map(|side| Move::Write { side }),
        8 => (0..2_usize, 1..8_usize).prop_map(|(side, count)| Move::Read { side, count }),
    ];
    proptest::collection::vec(one, 1..300)
}

/// What one direction of one lane has carried.
#[derive(Default)]
struct Carried {
    /// The part of a send that has found no credit yet.
    waiting: Bytes,
    finished: bool,
    sent: Vec<u8>,
    taken: Vec<u8>,
}

/// Bytes that differ from place to place and from time to time, so that no mix-up goes unseen.
fn pattern(seed: usize, length: usize) -> Bytes {
    static BYTES: LazyLock<Bytes> = LazyLock::new(|| (0..=250).cycle().take(400_000).collect());
    let start = seed * 31 % 251;
    BYTES.slice(start..start + length)
}

struct Conversation {
    pair: Pair,
    ids: Vec<u32>,
    carried: Vec<Carried>,
}

impl Conversation {
    fn new() -> Self {
        let mut pair = Pair::new();
        let ids = vec![
            pair.states[0].open().unwrap(),
            pair.states[1].open().unwrap(),
            pair.states[0].open().unwrap(),
        ];
        pair.settle();
        Self { pair, ids, carried: (0..24).map(|_| Carried::default()).collect() }
    }

    fn carried(&mut self, side: usize, channel: usize, lane: usize) -> &mut Carried {
        &mut self.carried[(side * 3 + channel) * 4 + lane]
    }

    fn push(&mut self, side: usize, channel: usize, lane: usize) {
        let id = self.ids[channel];
        let mut bytes = std::mem::take(&mut self.carried(side, channel, lane).waiting);
        let sent = self.pair.states[side].poll_send(&context(), (id, LANES[lane]), &mut bytes);
        assert_eq!(sent.is_pending(), !bytes.is_empty());
        self.carried(side, channel, lane).waiting = bytes;
    }

    fn send(&mut self, side: usize, channel: usize, lane: usize, length: usize) {
        let carried = self.carried(side, channel, lane);
        if carried.finished || !carried.waiting.is_empty() {
            return self.push(side, channel, lane);
        }
        let bytes = pattern(carried.sent.len() + side + channel + lane, length);
        carried.sent.extend_from_slice(&bytes);
        carried.waiting = bytes;
        self.push(side, channel, lane);
    }

    fn finish(&mut self, side: usize, channel: usize, lane: usize) {
        let id = self.ids[channel];
        let carried = self.carried(side, channel, lane);
        if carried.waiting.is_empty() {
            carried.finished = true;
            self.pair.states[side].finish(id, LANES[lane]);
        }
    }

    /// Takes what the other side sent; true where there was something.
    fn take(&mut self, side: usize, channel: usize, lane: usize) -> bool {
        let id = self.ids[channel];
        let polled = self.pair.states[side].poll_receive(&context(), id, LANES[lane]);
        let carried = self.carried(1 - side, channel, lane);
        match polled {
            Poll::Pending => false,
            Poll::Ready(Ok(Some(chunk))) => {
                assert!(carried.sent[carried.taken.len()..].starts_with(&chunk));
                carried.taken.extend_from_slice(&chunk);
                true
            }
            Poll::Ready(Ok(None)) => {
                assert!(carried.finished && carried.sent == carried.taken);
                false
            }
            Poll::Ready(Err(error)) => panic!("{error}"),
        }
    }

    fn make(&mut self, next: Move) {
        match next {
            Move::Send { side, channel, lane, length } => self.send(side, channel, lane, length),
            Move::Finish { side, channel, lane } => self.finish(side, channel, lane),
            Move::Take { side, channel, lane } => drop(self.take(side, channel, lane)),
            Move::Write { side } => self.pair.write(side),
            Move::Read { side, count } => self.pair.read(side, count),
        }
        for state in &self.pair.states {
            assert!(state.held() <= 12 * WINDOW as usize, "more is held than the windows allow");
        }
    }

    /// Moves everything that is under way; true while something moved.
    fn drain(&mut self) -> bool {
        self.pair.settle();
        let mut moved = false;
        for side in 0..2 {
            for channel in 0..3 {
                for lane in 0..4 {
                    self.push(side, channel, lane);
                    moved |= self.take(side, channel, lane);
                }
            }
        }
        moved || self.pair.states.iter().any(|state| !state.queue.is_empty())
    }
}

proptest! {
    #[test]
    fn any_interleaving_arrives_in_order_and_whole(moves in moves()) {
        let mut conversation = Conversation::new();
        for next in moves {
            conversation.make(next);
        }
        while conversation.drain() {}
        for carried in &conversation.carried {
            prop_assert!(carried.waiting.is_empty() && carried.sent == carried.taken);
        }
    }
}

#[test]
fn a_slow_reader_holds_one_window_and_the_sender_waits() {
    let mut pair = Pair::new();
    let id = pair.states[0].open().unwrap();
    let mut bytes = Bytes::from(vec![0; 10 * WINDOW as usize]);
    for _ in 0..20 {
        let sent = pair.states[0].poll_send(&context(), (id, LaneName::Out), &mut bytes);
        assert!(sent.is_pending());
        pair.settle();
        assert_eq!(pair.states[1].held(), WINDOW as usize);
    }
    assert_eq!(bytes.len(), 9 * WINDOW as usize);
}

/// A peer that reads nothing can make us queue no more than what the limits allow, whatever it sends.
#[test]
fn a_peer_that_never_reads_cannot_make_the_queue_grow() {
    let mut state = State::new(Side::Answering);
    state.drop_incoming();
    let frame = |channel, kind, length| Header { channel, kind, lane: LaneName::Messages, length };
    let mut id = 1;
    let refused = loop {
        if let Err(error) = state.receive(frame(id, Kind::Open, 0), Bytes::new()) {
            break error;
        }
        state.receive(frame(id, Kind::Data, 1), Bytes::from_static(b"x")).unwrap();
        state.receive(frame(id, Kind::Close, 0), Bytes::new()).unwrap();
        id += 2;
    };
    assert_eq!(refused, ProtocolError::TooManyChannels);
    assert_eq!((state.queue.len(), state.channels.len()), (CHANNEL_LIMIT, CHANNEL_LIMIT));

    // Discarded data earns one queued credit, and the window opens only when that is written.
    let mut state = State::new(Side::Answering);
    state.receive(frame(1, Kind::Open, 0), Bytes::new()).unwrap();
    state.discard(1, LaneName::Messages);
    let data = Bytes::from(vec![0; 0x1_0000]);
    let mut taken = 0;
    while state.receive(frame(1, Kind::Data, 0x1_0000), data.clone()).is_ok() {
        taken += 1;
    }
    assert_eq!((taken, state.queue.len()), (4, 1));
}

#[test]
fn tiny_frames_cost_their_bytes_only() {
    let mut state = State::new(Side::Answering);
    let frame = |kind, length| Header { channel: 1, kind, lane: LaneName::In, length };
    state.receive(Header { lane: LaneName::Messages, ..frame(Kind::Open, 0) }, Bytes::new()).unwrap();
    let buffer = Bytes::from(vec![3; WINDOW as usize]);
    for at in 0..WINDOW as usize {
        state.receive(frame(Kind::Data, 1), buffer.slice(at..=at)).unwrap();
    }
    assert!(buffer.is_unique(), "a slice of one byte keeps the whole buffer");
    let Poll::Ready(Ok(Some(chunk))) = state.poll_receive(&context(), 1, LaneName::In) else {
        panic!("nothing came")
    };
    assert_eq!(chunk, buffer);
}

#[test]
fn a_channel_is_forgotten_when_both_have_closed_it_and_nobody_reads() {
    let mut pair = Pair::new();
    let id = pair.states[0].open().unwrap();
    let _ = pair.states[0].poll_send(&context(), (id, LaneName::Out), &mut Bytes::from_static(b"late"));
    pair.settle();
    pair.states[0].close(id);
    pair.settle();
    pair.states[1].close(id);
    pair.settle();
    for state in &pair.states {
        assert_eq!((state.open_by_us, state.open_by_peer, state.channels.len()), (0, 0, 1));
    }
    let received = pair.states[1].poll_receive(&context(), id, LaneName::Out);
    assert_eq!(received, Poll::Ready(Ok(Some(Bytes::from_static(b"late")))));
    let received = pair.states[1].poll_receive(&context(), id, LaneName::Out);
    assert_eq!(received, Poll::Ready(Err(LaneError::Closed)));
    for state in &mut pair.states {
        LANES.into_iter().for_each(|lane| state.discard(id, lane));
        assert!(state.channels.is_empty());
    }
}

#[test]
fn frames_that_cross_our_close_are_ignored() {
    let mut pair = Pair::new();
    let id = pair.states[0].open().unwrap();
    pair.settle();
    let mut bytes = Bytes::from(vec![0; WINDOW as usize]);
    assert!(pair.states[1].poll_send(&context(), (id, LaneName::Out), &mut bytes).is_ready());
    pair.states[1].finish(id, LaneName::Out);
    LANES.into_iter().for_each(|lane| pair.states[0].discard(id, lane));
    pair.states[0].close(id);
    // Both have written before either reads.
    pair.write(0);
    pair.write(1);
    pair.settle();
    assert!(pair.states[0].channels.contains_key(&id), "the peer's Close is still to come");
    pair.states[1].close(id);
    pair.settle();
    assert!(pair.states[0].channels.is_empty());
}

#[test]
fn ids_run_out_with_an_error() {
    let mut state = State::new(Side::Asking);
    state.next_id = Some(u32::MAX);
    assert_eq!(state.open(), Ok(u32::MAX));
    assert_eq!(state.open(), Err(crate::error::ConnectionError::IdsExhausted));
}
