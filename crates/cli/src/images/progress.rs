//! How far an image on its way has come, on stderr: for a person who looks, a line that changes; for a log, a line for
//! each layer. What takes less than a second says nothing.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use images::Step;

use crate::processes::size;

/// Before that nobody has begun to wonder.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a line changes.
const OFTEN: Duration = Duration::from_millis(100);

/// What is told of an image on its way.
pub(crate) struct Telling {
    state: Mutex<State>,
}

struct State {
    begun: Instant,
    said: Option<Instant>,
    on_terminal: bool,
    blobs: BTreeMap<String, (u64, u64)>,
    unpacking: u64,
    unpacked: u64,
}

impl Telling {
    pub(crate) fn new() -> Self {
        let state = State {
            begun: Instant::now(),
            said: None,
            on_terminal: std::io::stderr().is_terminal(),
            blobs: BTreeMap::new(),
            unpacking: 0,
            unpacked: 0,
        };
        Self { state: Mutex::new(state) }
    }

    pub(crate) fn hear(&self, step: &Step) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.hear(step);
    }

    /// Takes the line away.
    pub(crate) fn finish(&self) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.on_terminal && state.said.is_some() {
            let _ = std::io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

impl State {
    fn hear(&mut self, step: &Step) {
        match step {
            Step::Received { blob, bytes, of } => {
                self.blobs.insert(blob.short().to_owned(), (*bytes, *of));
            }
            Step::Here(_) => {}
            Step::Unpacking(_) => self.unpacking += 1,
            Step::Unpacked(_) => self.unpacked += 1,
        }
        if self.begun.elapsed() < PATIENCE {
            return;
        }
        let mut stderr = std::io::stderr();
        if !self.on_terminal {
            // A log gets a line where something is done.
            let _ = match step {
                Step::Received { blob, bytes, of } if bytes == of => {
                    stderr.write_all(format!("received {} ({})\n", blob.short(), size(*of)).as_bytes())
                }
                Step::Unpacked(layer) => stderr.write_all(format!("unpacked {}\n", layer.short()).as_bytes()),
                _ => Ok(()),
            };
            return;
        }
        if self.said.is_some_and(|said| said.elapsed() < OFTEN) {
            return;
        }
        self.said = Some(Instant::now());
        let _ = stderr.write_all(format!("\r{}\x1b[K", self.line()).as_bytes());
    }

    fn line(&self) -> String {
        let (bytes, of) = self.blobs.values().fold((0, 0), |sum, blob| (sum.0 + blob.0, sum.1 + blob.1));
        let mut parts = Vec::new();
        if let Some(percent) = (bytes * 100).checked_div(of) {
            const WIDTH: u64 = 24;
            let filled = usize::try_from(bytes * WIDTH / of.max(1)).unwrap_or(0);
            let bar: String = (0..WIDTH as usize).map(|at| if at < filled { '#' } else { '.' }).collect();
            parts.push(format!("[{bar}] {percent:>3}% of {}", size(of)));
        }
        if self.unpacking > 0 {
            parts.push(format!("unpacked {} of {} layers", self.unpacked, self.unpacking));
        }
        parts.join(", ")
    }
}
