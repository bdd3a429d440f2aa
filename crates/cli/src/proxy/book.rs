//! What the proxy has seen, one JSON object a line. Whoever is turned away or refused can come again as often as he likes, so
//! that only some of that is written down, and how much else there was. What is let through is written down each time.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gateway::{Book, Seen, Traffic, Unrecorded, Witness};
use handover::now_ms;
use policy::SandboxName;
use policy::network::Refusal;
use serde_json::{Value, json};

use crate::output::json_line;

/// How many refusals are written down in a second: of strangers all together, and of each who has a token.
const REFUSALS: u32 = 10;

/// How much of what is asked for by HTTP is written down.
const LONGEST_TARGET: usize = 256;

/// The record of a proxy.
#[derive(Debug)]
pub(super) struct Log {
    file: Arc<File>,
    /// The number of the next connection, whoever's it is: several may have tokens with the same name.
    next: Arc<AtomicU64>,
    strangers: Mutex<Refusals>,
}

/// How many have been written down lately.
#[derive(Debug)]
struct Refusals {
    since: Instant,
    written: u32,
    unwritten: u64,
}

impl Log {
    pub(super) fn new(file: File) -> Self {
        let strangers = Mutex::new(Refusals::new(Instant::now()));
        Self { file: Arc::new(file), next: Arc::default(), strangers }
    }
}

impl Refusals {
    const fn new(since: Instant) -> Self {
        Self { since, written: 0, unwritten: 0 }
    }

    /// Whether one more is written down: how many were not before it.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if now.duration_since(self.since) >= Duration::from_secs(1) {
            (self.since, self.written) = (now, 0);
        }
        if self.written == REFUSALS {
            self.unwritten += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.unwritten))
    }
}

impl Book for Log {
    fn turned_away(&self, from: SocketAddr, refusal: Refusal) {
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(unwritten) = strangers.admit(Instant::now()) {
            let event = json!({
                "time": now_ms(), "event": "turned-away", "from": from.ip(), "reason": refusal.code(),
                "unwritten": unwritten,
            });
            let _ = write(&self.file, &event);
        }
    }

    fn witness(&self, holder: &SandboxName) -> Arc<dyn Witness> {
        let (file, next) = (Arc::clone(&self.file), Arc::clone(&self.next));
        let state = State { open: HashMap::new(), refusals: Refusals::new(Instant::now()) };
        Arc::new(Page { holder: holder.clone(), file, next, state: Mutex::new(state) })
    }
}

/// What is on record of one who has a token.
#[derive(Debug)]
struct Page {
    holder: SandboxName,
    file: Arc<File>,
    next: Arc<AtomicU64>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// What is open: the number that it has on record, and what goes both ways.
    open: HashMap<u64, (u64, Arc<Traffic>)>,
    refusals: Refusals,
}

impl Witness for Page {
    fn see(&self, seen: &Seen<'_>) -> Result<(), Unrecorded> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let reason = |refusal: &Option<Refusal>| refusal.map(Refusal::code);
        let mut event = match seen {
            // Names are asked for by whoever dials, and by nobody else.
            Seen::Question { .. } => return Ok(()),
            Seen::Refused { peer, port, refusal } => {
                let Some(unwritten) = state.refusals.admit(Instant::now()) else { return Ok(()) };
                json!({
                    "event": "refused", "host": peer.to_string(), "port": port, "reason": refusal.code(),
                    "unwritten": unwritten,
                })
            }
            Seen::Opened { number, peer, port, address, traffic } => {
                let connection = self.next.fetch_add(1, Ordering::Relaxed);
                state.open.insert(*number, (connection, Arc::clone(traffic)));
                json!({
                    "event": "opened", "connection": connection, "host": peer.to_string(), "port": port,
                    "address": address,
                })
            }
            Seen::Request { number, method, target, refusal } => {
                let unwritten = match refusal {
                    Some(_) => state.refusals.admit(Instant::now()),
                    None => Some(0),
                };
                let Some(unwritten) = unwritten else { return Ok(()) };
                json!({
                    "event": "request",
                    "connection": state.open.get(number).map(|(connection, _)| connection),
                    "method": method, "target": target.get(..LONGEST_TARGET).unwrap_or(target),
                    "reason": reason(refusal), "unwritten": unwritten,
                })
            }
            Seen::Closed { number, peer, port, refusal } => {
                let (connection, traffic) = state.open.remove(number).unzip();
                let traffic = traffic.unwrap_or_default();
                json!({
                    "event": "closed", "connection": connection, "host": peer.to_string(), "port": port,
                    "sent": traffic.sent.get(), "received": traffic.received.get(), "reason": reason(refusal),
                })
            }
        };
        event["time"] = json!(now_ms());
        event["holder"] = json!(self.holder);
        let written = write(&self.file, &event);
        if let (Err(_), Seen::Opened { number, .. }) = (&written, seen) {
            state.open.remove(number);
        }
        written
    }
}

/// In one go, so that no line is cut by another.
fn write(mut file: &File, event: &Value) -> Result<(), Unrecorded> {
    file.write_all(json_line(event).as_bytes()).map_err(|_| Unrecorded)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::num::NonZeroU16;
    use std::os::fd::OwnedFd;

    use gateway::Peer;

    use super::*;

    #[test]
    fn refusals_are_counted_when_they_are_too_many() {
        let start = Instant::now();
        let mut refusals = Refusals::new(start);
        for _ in 0..REFUSALS {
            assert_eq!(refusals.admit(start), Some(0));
        }
        assert_eq!((refusals.admit(start), refusals.admit(start)), (None, None));
        assert_eq!(refusals.admit(start + Duration::from_secs(1)), Some(2));
    }

    #[test]
    fn connections_have_numbers_of_their_own_and_long_targets_an_end() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let log = Log::new(OwnedFd::from(writer).into());
        let (peer, port) = (Peer::Address([192, 0, 2, 1].into()), NonZeroU16::MIN);
        let target = format!("/{}", "x".repeat(1000));
        for _ in 0..2 {
            // Two tokens with the same name: what each of them counts begins anew.
            let page = log.witness(&"ci".parse().unwrap());
            let address = ([192, 0, 2, 1], 1).into();
            let (number, traffic) = (0, &Arc::default());
            let opened = Seen::Opened { number, peer: &peer, port, address, traffic };
            page.see(&opened).unwrap();
            page.see(&Seen::Request { number, method: "GET", target: &target, refusal: None }).unwrap();
            page.see(&Seen::Closed { number, peer: &peer, port, refusal: None }).unwrap();
        }
        drop(log);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let numbers: Vec<_> = records.iter().map(|record| record["connection"].as_u64().unwrap()).collect();
        assert_eq!(numbers, [0, 0, 0, 1, 1, 1]);
        assert_eq!(records[1]["target"].as_str().unwrap().len(), LONGEST_TARGET);
    }
}
