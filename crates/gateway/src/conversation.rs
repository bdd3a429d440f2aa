//! What goes both ways on a connection that has been made, and whether the client means the host that it was made to.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use policy::Wall;
use policy::network::{Refusal, Request, Rule, Verdict};
use rustix::net::Shutdown;
use tokio::net::TcpStream;

use crate::call::{Wanted, reset};
use crate::carry::{Meter, carry, pass_on};
use crate::gateway::Gateway;
use crate::hello::Hello;
use crate::http;
use crate::listen::{Heard, Patience, listen};
use crate::seen::{Peer, Seen};

/// How long letters that could be the beginning of a request are held back.
const A_MOMENT: Duration = Duration::from_millis(30);

/// How many of them there may be.
const MOST_LETTERS: usize = 1024;

/// What may be spoken to a host by its name, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Languages {
    /// HTTP.
    Http,
    /// HTTP and TLS.
    Web,
    /// Anything.
    All,
}

/// What has gone both ways.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Bytes out of the sandbox.
    pub sent: Meter,
    /// Bytes into it.
    pub received: Meter,
}

impl Traffic {
    /// Resolves when nothing has moved for so long, and at most for twice as long.
    pub(crate) async fn stands_still(&self, limit: Duration) {
        let total = || self.sent.get() + self.received.get();
        let mut before = total();
        loop {
            tokio::time::sleep(limit).await;
            let now = total();
            if now == before {
                return;
            }
            before = now;
        }
    }
}

/// A connection that has been made.
pub(crate) struct Conversation<'serving> {
    pub(crate) gateway: &'serving Gateway,
    pub(crate) number: u64,
    pub(crate) wanted: &'serving Wanted,
    /// To the client inside, and to the outside.
    pub(crate) streams: (&'serving TcpStream, &'serving TcpStream),
    pub(crate) traffic: &'serving Traffic,
    /// Whether one direction has ended.
    pub(crate) is_half: AtomicBool,
}

impl Conversation<'_> {
    /// Bytes both ways, to the end. Where only some languages may be spoken, the client is listened to first; what the
    /// server says is passed on meanwhile, for in some protocols the server begins.
    pub(crate) async fn hold(&self, languages: Option<Languages>) -> Result<(), Refusal> {
        let languages = languages.filter(|_| self.gateway.weaken.keeps(Wall::EgressNames));
        let back = self.back();
        tokio::pin!(back);
        let mut is_over = false;
        if let Some(languages) = languages {
            let heard = self.listen(languages);
            tokio::pin!(heard);
            let heard = loop {
                tokio::select! {
                    heard = &mut heard => break heard?,
                    ended = &mut back, if !is_over => match ended {
                        Ok(()) => is_over = true,
                        Err(_) => return self.broken(),
                    },
                }
            };
            self.check(&heard, languages)?;
            if heard == Heard::Http {
                // A server that begins speaks something else.
                if is_over || self.traffic.received.get() > 0 {
                    return Err(Refusal::MalformedResponse);
                }
                return self.relay(self, Vec::new()).await.map(drop);
            }
        }
        let ended = if is_over { self.forth().await } else { tokio::try_join!(self.forth(), back).map(drop) };
        ended.or_else(|_| self.broken())
    }

    /// What the client says.
    async fn forth(&self) -> io::Result<()> {
        let (inner, outer) = self.streams;
        carry(inner, outer, &self.gateway.pipes, &self.traffic.sent).await?;
        self.tell_end(outer);
        Ok(())
    }

    /// What the other side says.
    async fn back(&self) -> io::Result<()> {
        let (inner, outer) = self.streams;
        carry(outer, inner, &self.gateway.pipes, &self.traffic.received).await?;
        self.tell_end(inner);
        Ok(())
    }

    /// One direction has ended, which is told to whoever listens there; where both have, all is closed anyway.
    fn tell_end(&self, listener: &TcpStream) {
        if !self.is_half.swap(true, Ordering::Relaxed) {
            // Whoever is gone needs not be told.
            let _ = rustix::net::shutdown(listener, Shutdown::Write);
        }
    }

    /// Says something to the client from here. One that does not hear it is found out when all else is passed on.
    pub(crate) async fn answer(&self, words: &[u8]) {
        let _ = pass_on(self.streams.0, words).await;
    }

    /// Waits until it is known what the client speaks. Letters that may be all it says are passed on; what makes a request
    /// of them later was not looked at as one, and is refused.
    async fn listen(&self, languages: Languages) -> Result<Heard, Refusal> {
        let (inner, outer) = self.streams;
        let letters = (languages == Languages::All).then_some(A_MOMENT);
        let patience = Patience { whole: self.gateway.limits.head, letters };
        let mut said = Vec::new();
        loop {
            match listen(inner, &said, patience).await? {
                Heard::Letters(letters) => {
                    self.traffic.sent.add(letters.len());
                    said.extend_from_slice(&letters);
                    // Nobody says that much without it being clear what it is.
                    if said.len() > MOST_LETTERS {
                        return Err(Refusal::Stalled);
                    }
                    if pass_on(outer, &letters).await.is_err() {
                        return Ok(Heard::Nothing);
                    }
                }
                Heard::Http if !said.is_empty() => return Err(Refusal::MalformedRequest),
                heard => return Ok(heard),
            }
        }
    }

    /// Either side has broken off, and the other hears of it.
    fn broken(&self) -> Result<(), Refusal> {
        reset(self.streams.0);
        reset(self.streams.1);
        Ok(())
    }

    /// Whether what the client says is meant for the host, as far as its first words tell.
    fn check(&self, heard: &Heard, languages: Languages) -> Result<(), Refusal> {
        let Peer::Name(name) = &self.wanted.peer else { return Ok(()) };
        match (heard, languages) {
            (Heard::Http | Heard::Nothing, _) | (Heard::Other | Heard::Letters(_), Languages::All) => Ok(()),
            (Heard::Other | Heard::Letters(_), Languages::Web | Languages::Http)
            | (Heard::Tls(_), Languages::Http) => Err(Refusal::NotHttp),
            (Heard::Tls(hello), Languages::All | Languages::Web) => match hello {
                Hello::Host(host) if *host == **name => Ok(()),
                Hello::Host(_) => Err(Refusal::ServerNameDiffers),
                Hello::Nameless => Err(Refusal::ServerNameMissing),
                Hello::Malformed | Hello::More => Err(Refusal::MalformedHello),
            },
        }
    }

    /// Passes requests on, each after it has been decided on by whoever judges them. What is `held` has been taken from the
    /// client before.
    pub(crate) async fn relay(
        &self,
        judge: &impl http::Judge,
        held: Vec<u8>,
    ) -> Result<http::Ended, Refusal> {
        let (inner, outer) = self.streams;
        let limits = self.gateway.limits;
        let times = http::Times { head: limits.head, idle: limits.idle };
        let between = http::Between { client: inner, held, server: outer, traffic: self.traffic };
        let ended = http::relay(between, judge, &times).await?;
        if ended == http::Ended::Upgraded {
            tokio::try_join!(self.forth(), self.back()).map(drop).or_else(|_| self.broken())?;
        }
        Ok(ended)
    }
}

impl http::Judge for Conversation<'_> {
    /// Each request is decided on by itself, by the policy of now.
    fn judge(&self, request: &http::Head<'_>) -> Result<http::Passage, Refusal> {
        let decided = self.decide(request);
        let (method, target) = (request.method().as_str(), request.target());
        let seen = Seen::Request { number: self.number, method, target, refusal: decided.err() };
        self.gateway.witness.see(&seen).map_err(|_| Refusal::Unrecorded)?;
        decided.map(|()| http::Passage::Here)
    }
}

impl Conversation<'_> {
    fn decide(&self, request: &http::Head<'_>) -> Result<(), Refusal> {
        let Wanted { peer: Peer::Name(name), port } = self.wanted else { return Ok(()) };
        let http::Authority { host, port: said } = request.host();
        let is_same = *host == http::Host::Name((**name).clone()) && said.is_none_or(|said| said == *port);
        if !is_same {
            return Err(Refusal::HostDiffers);
        }
        let policy = self.gateway.policy();
        let verdict = match policy.decide(&Request::Connect(name, *port)) {
            // Only where a rule is about paths does it matter that there is one spelling of them.
            Verdict::Rule(Rule { http: Some(_), .. }) => {
                let path = request.path().map_err(|_| Refusal::MalformedRequest)?;
                policy.decide(&Request::Http(name, *port, request.method(), &path))
            }
            verdict => verdict,
        };
        match verdict {
            Verdict::Refused(_) if !self.gateway.weaken.keeps(Wall::Egress) => Ok(()),
            Verdict::Refused(refusal) => Err(refusal),
            Verdict::Rule(_) | Verdict::Private(_) | Verdict::Public | Verdict::Service(_) => Ok(()),
        }
    }
}
