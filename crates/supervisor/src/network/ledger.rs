//! What has been seen of a sandbox's network: on record, and as a table for whoever looks. Everything that names come from
//! inside, so both are bounded: what is repeated is counted, not written again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use audit::{Event, Text};
use gateway::{Peer, Seen, Traffic, Unrecorded, Witness};
use policy::network::{NetworkPolicy, Refusal};
use tokio::sync::broadcast;
use wire::{Flow, Total};

use crate::record::{Record, RecordError};

use super::repeats::{Noted, Repeats};

/// The most lines of the table; what comes then is in the line of all others.
const MOST: usize = 4096;

/// How far whoever follows may fall behind before it is given the whole table anew.
const BEHIND: usize = 256;

/// The host of the line of all others.
const OTHERS: &str = "*";

/// The host of a question for what is called like no host.
const NO_NAME: &str = "?";

/// How much of what is asked for by HTTP is on record.
const LONGEST_TARGET: usize = 256;

/// How often what is repeated is on record.
const AGAIN: Duration = Duration::from_secs(60);

/// All that has been seen.
#[derive(Debug)]
pub(crate) struct Ledger {
    record: Arc<Record>,
    table: Mutex<Table>,
    followers: broadcast::Sender<Flow>,
}

#[derive(Debug, Default)]
struct Table {
    lines: BTreeMap<Key, Line>,
    /// What is open, by its number.
    open: HashMap<u64, (Key, Arc<Traffic>)>,
    repeats: Repeats<Key>,
    /// Of what there are too many, by port and outcome.
    others: Repeats<Key>,
}

/// What one line is about; a question has no port.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    host: String,
    port: u16,
    refusal: Option<Refusal>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Line {
    times: u64,
    open: u64,
    sent: u64,
    received: u64,
}

impl Ledger {
    pub(crate) fn new(record: Arc<Record>) -> Self {
        Self { record, table: Mutex::default(), followers: broadcast::Sender::new(BEHIND) }
    }

    /// Lines are counted up one by one, so poison is ignored.
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner is about to change what may leave.
    pub(super) fn policy(&self, policy: &NetworkPolicy) -> Result<(), RecordError> {
        self.record.put(&Event::policy(policy))
    }

    /// Only these ports lead out.
    pub(super) fn entrances(&self, ports: &[u16]) -> Result<(), RecordError> {
        self.record.put(&Event::Entrances { ports: ports.to_vec() })
    }

    /// Every line.
    pub(crate) fn flows(&self) -> Vec<Flow> {
        let table = self.table();
        let mut lines = table.lines.clone();
        for (key, traffic) in table.open.values() {
            if let Some(line) = lines.get_mut(key) {
                line.sent += traffic.sent.get();
                line.received += traffic.received.get();
            }
        }
        lines.iter().map(|(key, line)| line.flow(key)).collect()
    }

    /// All lines together.
    pub(crate) fn total(&self) -> Total {
        self.flows().iter().fold(Total::default(), |total, flow| Total {
            open: total.open + flow.open,
            refused: total.refused + if flow.refusal.is_empty() { 0 } else { flow.times },
            sent: total.sent + flow.sent,
            received: total.received + flow.received,
        })
    }

    /// What changes from now on.
    pub(crate) fn follow(&self) -> broadcast::Receiver<Flow> {
        self.followers.subscribe()
    }

    /// Puts on record what was cut or only counted, as the sandbox ends.
    pub(crate) fn settle(&self) {
        let open = std::mem::take(&mut self.table().open);
        for (connection, (_, traffic)) in open {
            let (sent, received) = (traffic.sent.get(), traffic.received.get());
            let refusal = None;
            let _ = self.record.outgoing(&Event::Disconnected { connection, sent, received, refusal });
        }
        let mut left = self.table().repeats.settle();
        left.extend(self.table().others.settle());
        for (key, times) in left {
            let _ = self.record.outgoing(&key.event(times));
        }
    }

    fn count(&self, key: Key, change: impl FnOnce(&mut Line)) {
        let mut table = self.table();
        let key = table.key(key);
        let line = table.lines.entry(key.clone()).or_default();
        change(line);
        // Nobody may follow.
        let _ = self.followers.send(line.flow(&key));
    }

    /// Puts on record what may be repeated, now or with those that follow.
    fn note(&self, key: &Key) -> Result<(), Unrecorded> {
        let now = Instant::now();
        let mut table = self.table();
        let (key, noted) = match table.repeats.note(key, now, AGAIN) {
            Noted::TooMany => {
                let others = Key { host: OTHERS.to_owned(), ..key.clone() };
                let noted = table.others.note(&others, now, AGAIN);
                (others, noted)
            }
            noted => (key.clone(), noted),
        };
        drop(table);
        match noted {
            Noted::Now(times) => self.record.outgoing(&key.event(times)).map_err(|_| Unrecorded),
            Noted::Later | Noted::TooMany => Ok(()),
        }
    }
}

impl Witness for Ledger {
    fn see(&self, seen: &Seen<'_>) -> Result<(), Unrecorded> {
        let put = |event: &Event| self.record.outgoing(event).map_err(|_| Unrecorded);
        match *seen {
            Seen::Question { name, refusal } => {
                let host = name.map_or(NO_NAME, |name| name.as_str()).to_owned();
                let key = Key { host, port: 0, refusal };
                self.note(&key)?;
                self.count(key, |line| line.times += 1);
            }
            Seen::Refused { peer, port, refusal } => {
                let key = Key::new(peer, port.get(), Some(refusal));
                // It is refused, on record or not, and the table says so.
                let noted = self.note(&key);
                self.count(key, |line| line.times += 1);
                return noted;
            }
            Seen::Opened { number, peer, port, address, traffic } => {
                let (host, address) = (Text::new(peer.to_string()), address.ip());
                put(&Event::Connected { connection: number, host, port: port.get(), address })?;
                let key = self.table().key(Key::new(peer, port.get(), None));
                self.table().open.insert(number, (key.clone(), Arc::clone(traffic)));
                self.count(key, |line| {
                    line.times += 1;
                    line.open += 1;
                });
            }
            Seen::Request { number, method, target, refusal } => {
                let target = target.get(..LONGEST_TARGET).unwrap_or(target);
                let (method, target) = (Text::new(method), Text::new(target));
                put(&Event::Request { connection: number, method, target, refusal })?;
            }
            Seen::Closed { number, peer, port, refusal } => {
                let Some((key, traffic)) = self.table().open.remove(&number) else { return Ok(()) };
                let (sent, received) = (traffic.sent.get(), traffic.received.get());
                let recorded = put(&Event::Disconnected { connection: number, sent, received, refusal });
                self.count(key, |line| {
                    line.open = line.open.saturating_sub(1);
                    line.sent += sent;
                    line.received += received;
                });
                if refusal.is_some() {
                    self.count(Key::new(peer, port.get(), refusal), |line| line.times += 1);
                }
                return recorded;
            }
        }
        Ok(())
    }
}

impl Table {
    /// The key itself, or that of all others where there are too many.
    fn key(&self, key: Key) -> Key {
        if self.lines.len() < MOST || self.lines.contains_key(&key) {
            return key;
        }
        Key { host: OTHERS.to_owned(), port: 0, refusal: key.refusal }
    }
}

impl Key {
    fn new(peer: &Peer, port: u16, refusal: Option<Refusal>) -> Self {
        Self { host: peer.to_string(), port, refusal }
    }

    /// As it is on record, as often as it happened.
    fn event(&self, times: u64) -> Event {
        let (host, refusal) = (Text::new(&self.host), self.refusal);
        match refusal {
            Some(refusal) if self.port != 0 => Event::Blocked { host, port: self.port, refusal, times },
            _ => Event::Question { name: host, refusal, times },
        }
    }
}

impl Line {
    fn flow(&self, key: &Key) -> Flow {
        let Self { times, open, sent, received } = *self;
        let refusal = key.refusal.map_or("", Refusal::code).to_owned();
        Flow { host: key.host.clone(), port: key.port.into(), refusal, times, open, sent, received }
    }
}
