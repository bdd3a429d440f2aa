//! What the proxy has seen, one JSON object a line. Strangers can come as often as they like, so that only some of them are
//! written down, and how many others there were.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gateway::{Book, Seen, Traffic, Unrecorded, Witness};
use policy::SandboxName;
use policy::network::Refusal;
use serde_json::{Value, json};

use crate::output::json_line;

/// How many strangers are written down in a second.
const STRANGERS: u32 = 10;

/// The record of a proxy.
#[derive(Debug)]
pub(super) struct Log {
    file: Arc<File>,
    strangers: Mutex<Strangers>,
}

#[derive(Debug)]
struct Strangers {
    since: Instant,
    written: u32,
    unwritten: u64,
}

impl Log {
    pub(super) fn new(file: File) -> Self {
        let strangers = Strangers { since: Instant::now(), written: 0, unwritten: 0 };
        Self { file: Arc::new(file), strangers: Mutex::new(strangers) }
    }
}

impl Strangers {
    /// Whether one more is written down: how many were not before it.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if now.duration_since(self.since) >= Duration::from_secs(1) {
            (self.since, self.written) = (now, 0);
        }
        if self.written == STRANGERS {
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
                "time": milliseconds(), "event": "turned-away", "from": from.ip(), "reason": refusal.code(),
                "unwritten": unwritten,
            });
            let _ = write(&self.file, &event);
        }
    }

    fn witness(&self, holder: &SandboxName) -> Arc<dyn Witness> {
        Arc::new(Page { holder: holder.clone(), file: Arc::clone(&self.file), open: Mutex::default() })
    }
}

/// What is on record of one who has a token.
#[derive(Debug)]
struct Page {
    holder: SandboxName,
    file: Arc<File>,
    /// What goes both ways on what is open.
    open: Mutex<HashMap<u64, Arc<Traffic>>>,
}

impl Witness for Page {
    fn see(&self, seen: &Seen<'_>) -> Result<(), Unrecorded> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let reason = |refusal: &Option<Refusal>| refusal.map(Refusal::code);
        let mut event = match seen {
            // Names are asked for by whoever dials, and by nobody else.
            Seen::Question { .. } => return Ok(()),
            Seen::Refused { peer, port, refusal } => {
                json!({"event": "refused", "host": peer.to_string(), "port": port, "reason": refusal.code()})
            }
            Seen::Opened { number, peer, port, address, traffic } => {
                open.insert(*number, Arc::clone(traffic));
                json!({
                    "event": "opened", "connection": number, "host": peer.to_string(), "port": port,
                    "address": address,
                })
            }
            Seen::Request { number, method, target, refusal } => json!({
                "event": "request", "connection": number, "method": method, "target": target,
                "reason": reason(refusal),
            }),
            Seen::Closed { number, peer, port, refusal } => {
                let traffic = open.remove(number).unwrap_or_default();
                json!({
                    "event": "closed", "connection": number, "host": peer.to_string(), "port": port,
                    "sent": traffic.sent.get(), "received": traffic.received.get(), "reason": reason(refusal),
                })
            }
        };
        event["time"] = json!(milliseconds());
        event["holder"] = json!(self.holder);
        let written = write(&self.file, &event);
        if let (Err(_), Seen::Opened { number, .. }) = (&written, seen) {
            open.remove(number);
        }
        written
    }
}

/// In one go, so that no line is cut by another.
fn write(mut file: &File, event: &Value) -> Result<(), Unrecorded> {
    file.write_all(json_line(event).as_bytes()).map_err(|_| Unrecorded)
}

fn milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_counted_when_they_are_too_many() {
        let start = Instant::now();
        let mut strangers = Strangers { since: start, written: 0, unwritten: 0 };
        for _ in 0..STRANGERS {
            assert_eq!(strangers.admit(start), Some(0));
        }
        assert_eq!((strangers.admit(start), strangers.admit(start)), (None, None));
        assert_eq!(strangers.admit(start + Duration::from_secs(1)), Some(2));
    }
}
