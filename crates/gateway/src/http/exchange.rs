//! One request and its answer after the other, on one connection. The next request is looked at when the answer to the one
//! before is complete, so that no answer can be taken for another's.

use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use policy::network::Refusal;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::conversation::Traffic;

use super::answer::{After, Answer, Kind};
use super::blocked::{self, Status};
use super::body::pass_on;
use super::end::{End, FAREWELL, Fault, Motion, Party, Waiting, say_last};
use super::head::{Asked, Head, Upgrade};
use super::source::Source;
use super::{Ended, Judge, Passage, Times};

/// The most answers to one request; all but the last only say that there will be another.
const MOST_ANSWERS: usize = 64;

/// The two who are relayed between.
#[derive(Debug)]
pub(crate) struct Between<'relay> {
    pub(crate) client: &'relay TcpStream,
    /// What the client has said already, and nobody has read.
    pub(crate) held: Vec<u8>,
    pub(crate) server: &'relay TcpStream,
    pub(crate) traffic: &'relay Traffic,
}

/// Relays requests and their answers until either side is done, or one of them does what is refused; the client has been
/// told of that then, where it can be. The sockets stay the caller's.
pub(crate) async fn relay(
    Between { client, held, server, traffic }: Between<'_>,
    judge: &impl Judge,
    times: &Times,
) -> Result<Ended, Refusal> {
    let motion = &Motion::new();
    let mut relay = Relay {
        client: Source::holding(End { party: Party::Client, stream: client, motion, traffic }, held),
        server: Source::new(End { party: Party::Server, stream: server, motion, traffic }),
        judge,
        times,
        motion,
        asked: None,
        is_answerable: AtomicBool::new(false),
        is_first: true,
    };
    loop {
        match relay.exchange().await {
            Ok(ControlFlow::Continue(())) => relay.is_first = false,
            Ok(ControlFlow::Break(ended)) => return Ok(ended),
            Err(fault) => return relay.give_up(fault).await,
        }
    }
}

struct Relay<'relay, J> {
    client: Source<'relay>,
    server: Source<'relay>,
    judge: &'relay J,
    times: &'relay Times,
    motion: &'relay Motion,
    /// The request that is being answered, once it has been understood.
    asked: Option<Asked>,
    /// The client has asked something, and has not heard the beginning of an answer.
    is_answerable: AtomicBool,
    is_first: bool,
}

/// How much of a request the server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// Not all yet.
    Going,
    /// All.
    Whole,
    /// All that it wanted; its answer may still come.
    Half,
}

impl<J: Judge> Relay<'_, J> {
    /// One request and its answer.
    async fn exchange(&mut self) -> Result<ControlFlow<Ended>, Fault> {
        self.asked = None;
        self.is_answerable.store(false, Ordering::Relaxed);
        if !self.next_begins().await? {
            return Ok(ControlFlow::Break(Ended::Closed));
        }
        self.is_answerable.store(true, Ordering::Relaxed);
        let end = self.client.head(self.times.head).await?;
        let (head, asked) = self.admit(end)?;
        // An answer that is here before the request is not to it.
        refuse_early(self.server.end)?;
        self.motion.mark();

        let (client, server) = (self.client.end, self.server.end);
        let is_answerable = &self.is_answerable;
        let still = || self.motion.ceases(self.times.idle);
        let mut sending = pin!(pass_on(&mut self.client, server, head, asked.framing));
        let answering = Answering { to: client, asked: &asked, is_answerable, limit: self.times.head };
        let mut answering = pin!(answering.pass(&mut self.server));
        let mut sent = Sent::Going;
        let after = loop {
            tokio::select! {
                done = &mut sending, if sent == Sent::Going => sent = match done {
                    Ok(()) => Sent::Whole,
                    Err(Fault::Gone(Party::Server)) => Sent::Half,
                    Err(fault) => return Err(fault),
                },
                after = &mut answering => break after?,
                fault = early_words(client, is_answerable), if asked.upgrade != Upgrade::No => return Err(fault),
                () = still() => {
                    let party = if sent == Sent::Going { Party::Client } else { Party::Server };
                    return Err(Fault::Slow(party));
                }
            }
        };
        match (after, sent) {
            (After::Switched, _) => Ok(ControlFlow::Break(Ended::Upgraded)),
            (After::Kept, Sent::Whole) => Ok(ControlFlow::Continue(())),
            // The server has answered early and reads on, as the client goes on.
            (After::Kept, Sent::Going) => tokio::select! {
                done = &mut sending => done.map(ControlFlow::Continue),
                () = still() => Err(Fault::Slow(Party::Client)),
            },
            (After::Closed, _) | (After::Kept, Sent::Half) => {
                let _ = timeout(FAREWELL, client.take_leave()).await;
                Ok(ControlFlow::Break(Ended::Closed))
            }
        }
    }

    /// Waits for the next request: whether there is one.
    async fn next_begins(&mut self) -> Result<bool, Fault> {
        if !self.server.rest().is_empty() {
            return Err(Fault::Malformed(Party::Server));
        }
        let server = self.server.end;
        tokio::select! {
            biased;
            fault = server.speaks() => match fault {
                Fault::Gone(_) => Ok(false),
                fault => Err(fault),
            },
            begins = timeout(self.times.idle, self.client.begins()) => begins.unwrap_or(Ok(false)),
        }
    }

    /// Reads a request's head, which ends there, and has it decided on: the head as it goes on.
    fn admit(&mut self, end: usize) -> Result<(Vec<u8>, Asked), Fault> {
        let malformed = Fault::Malformed(Party::Client);
        let (bytes, behind) = self.client.rest().split_at(end);
        let head = Head::parse(bytes).map_err(|_| malformed)?;
        let asked = head.asked();
        self.asked = Some(asked.clone());
        if asked.upgrade != Upgrade::No && !behind.is_empty() {
            return Err(malformed);
        }
        match self.judge.judge(&head).map_err(Fault::Refused)? {
            Passage::Here => {}
            Passage::Elsewhere => return Err(Fault::Elsewhere),
        }
        let written = head.written();
        self.client.consume(end);
        Ok((written, asked))
    }

    /// Ends it for a fault, and says so to the client where it can be said.
    async fn give_up(&self, fault: Fault) -> Result<Ended, Refusal> {
        let is_answerable = self.is_answerable.load(Ordering::Relaxed);
        let (refusal, status) = match fault {
            Fault::Refused(refusal) => (refusal, Status::Forbidden),
            Fault::Elsewhere => return Ok(Ended::Elsewhere(self.client.rest().to_vec())),
            Fault::Malformed(Party::Client) => (Refusal::MalformedRequest, Status::BadRequest),
            Fault::Malformed(Party::Server) => (Refusal::MalformedResponse, Status::BadGateway),
            // Somebody has had enough, which nobody refuses.
            Fault::Gone(Party::Client) => return Ok(Ended::Closed),
            Fault::Gone(_) | Fault::Slow(_) if !is_answerable => return Ok(Ended::Closed),
            // A server may close between two requests; a client whose request met with that asks again, if it hears nothing.
            Fault::Gone(Party::Server) if !self.is_first => return Ok(Ended::Closed),
            Fault::Gone(Party::Server) | Fault::Slow(Party::Server) => {
                (Refusal::Unreachable, Status::BadGateway)
            }
            Fault::Slow(Party::Client) => (Refusal::Stalled, Status::Timeout),
        };
        if is_answerable {
            let words = blocked::response(refusal, status, self.asked.as_ref());
            say_last(self.client.end.stream, &words).await;
        }
        Err(refusal)
    }
}

/// What an answer is passed on with.
struct Answering<'exchange> {
    to: End<'exchange>,
    asked: &'exchange Asked,
    is_answerable: &'exchange AtomicBool,
    /// How long a head may take.
    limit: Duration,
}

impl Answering<'_> {
    /// Passes on what the server answers, up to the end of its last answer.
    async fn pass(&self, from: &mut Source<'_>) -> Result<After, Fault> {
        let malformed = Fault::Malformed(Party::Server);
        for _ in 0..MOST_ANSWERS {
            let end = from.head(self.limit).await?;
            let answer = Answer::parse(&from.rest()[..end], self.asked).map_err(|_| malformed)?;
            let (kind, mut head) = (answer.kind(), answer.written());
            from.consume(end);
            match kind {
                // An old client would take it for the last one.
                Kind::Interim if self.asked.is_old() => {}
                Kind::Interim => {
                    // One that is cut off half way leaves no room for another.
                    self.is_answerable.store(false, Ordering::Relaxed);
                    self.to.write_all(&head).await?;
                    self.is_answerable.store(true, Ordering::Relaxed);
                }
                Kind::Final(body, after) => {
                    if after == After::Switched {
                        refuse_early(self.to)?;
                        from.take(u64::MAX, &mut head);
                    }
                    self.is_answerable.store(false, Ordering::Relaxed);
                    pass_on(from, self.to, head, body).await?;
                    return Ok(after);
                }
            }
        }
        Err(malformed)
    }
}

/// Whoever speaks now speaks too early.
fn refuse_early(end: End<'_>) -> Result<(), Fault> {
    match end.waiting() {
        Waiting::Nothing => Ok(()),
        Waiting::Bytes => Err(Fault::Malformed(end.party)),
        Waiting::End => Err(Fault::Gone(end.party)),
    }
}

/// Resolves when a client that asked to speak something else does so before it may, or goes. Once it has another answer,
/// what it says is its next request.
async fn early_words(client: End<'_>, is_answerable: &AtomicBool) -> Fault {
    let mut byte = [0; 1];
    loop {
        if let Err(fault) = client.readable().await {
            return fault;
        }
        if !is_answerable.load(Ordering::Relaxed) {
            return std::future::pending().await;
        }
        match client.try_read(&mut byte) {
            Ok(None) => {}
            Ok(Some(0)) => return Fault::Gone(client.party),
            Ok(Some(_)) => return Fault::Malformed(client.party),
            Err(fault) => return fault,
        }
    }
}
