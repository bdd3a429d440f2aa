//! What the measurement asks of a client of the network, and what the client answers: one line of JSON each.

use serde::{Deserialize, Serialize};

/// Something that a client does.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Task {
    /// Try until the site answers, while whoever is in between starts.
    Reach,
    /// Read so many MiB over one connection.
    Read { mebibytes: u64 },
    /// Make connections with one small request each, so many at once and for so long.
    Request { kind: Kind, at_once: usize, milliseconds: u64 },
    /// Open so many tunnels, say a byte over each, and keep them.
    Hold { tunnels: usize },
    /// Close the tunnels that are held.
    LetGo,
}

/// How a small request is made.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// By HTTP, and a proxy is asked for a tunnel first.
    Tunnelled,
    /// By no known protocol, and a proxy is asked for a tunnel first.
    Raw,
    /// By HTTP on its own port, where a proxy reads the request itself.
    Forwarded,
}

/// What came of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Bytes that were read, requests that were answered, or tunnels that are held.
    pub(crate) count: u64,
    /// How long all of it took.
    pub(crate) seconds: f64,
    /// How long one request took, in milliseconds: what half of them stay within, and 99 of 100.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Outcome {
    /// How many a second.
    pub(crate) fn rate(&self) -> f64 {
        self.count as f64 / self.seconds
    }
}
