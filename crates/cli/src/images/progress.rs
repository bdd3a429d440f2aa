//! How far an image on its way has come, on stderr: for a person who looks, a line for each layer under way and one for all,
//! which change; for a log, a line for each layer that is done. What takes less than a second says nothing, and what takes
//! longer says so whether something happens meanwhile or not.

use std::io::{IsTerminal as _, Write as _};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use images::{Digest, Step};

use crate::processes::size;

/// Before that nobody has begun to wonder.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often lines change.
const OFTEN: Duration = Duration::from_millis(100);
/// How many layers have a line of their own.
const MOST_LINES: usize = 8;
/// How wide a bar is; a line stays within the narrowest terminal that people have.
const BAR: u64 = 24;

/// What is told of an image on its way.
pub(crate) struct Telling {
    state: Arc<Mutex<State>>,
    /// Who draws, from the first step on, until this is dropped.
    drawer: Mutex<Option<Sender<()>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waits,
    Comes,
    IsHere,
    IsUnpacked,
    Unpacks,
}

struct Layer {
    blob: Digest,
    bytes: u64,
    of: u64,
    phase: Phase,
}

struct State {
    begun: Instant,
    on_terminal: bool,
    layers: Vec<Layer>,
    /// Lines that are on the terminal and are written over.
    drawn: Vec<String>,
    /// Nothing is drawn any more.
    over: bool,
}

impl Telling {
    pub(crate) fn new() -> Self {
        let state = State::new(std::io::stderr().is_terminal());
        Self { state: Arc::new(Mutex::new(state)), drawer: Mutex::default() }
    }

    pub(crate) fn hear(&self, step: &Step) {
        let mut state = lock(&self.state);
        state.hear(step);
        if state.on_terminal {
            // Where everything is here already there is no step, and nobody to be started.
            lock(&self.drawer).get_or_insert_with(|| start_drawing(Arc::clone(&self.state)));
        } else if state.begun.elapsed() >= PATIENCE {
            let _ = std::io::stderr().write_all(state.log_line(step).as_bytes());
        }
    }

    /// Takes the lines away.
    pub(crate) fn finish(&self) {
        let mut state = lock(&self.state);
        state.over = true;
        let _ = std::io::stderr().write_all(state.back().as_bytes());
    }
}

/// What is behind the locks is text for a person's eyes, which is true enough whoever panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Draws every now and then, until what it returns is dropped.
fn start_drawing(state: Arc<Mutex<State>>) -> Sender<()> {
    let (over, waiting) = channel();
    std::thread::spawn(move || {
        while waiting.recv_timeout(OFTEN) == Err(RecvTimeoutError::Timeout) {
            let mut state = lock(&state);
            if !state.over && state.begun.elapsed() >= PATIENCE {
                let _ = std::io::stderr().write_all(state.drawing().as_bytes());
            }
        }
    });
    over
}

impl State {
    fn new(on_terminal: bool) -> Self {
        Self { begun: Instant::now(), on_terminal, layers: Vec::new(), drawn: Vec::new(), over: false }
    }

    fn hear(&mut self, step: &Step) {
        let (Step::Received { blob, .. } | Step::Unpacking(blob) | Step::Unpacked(blob)) = step;
        let at = self.layers.iter().position(|layer| layer.blob == *blob).unwrap_or_else(|| {
            self.layers.push(Layer { blob: blob.clone(), bytes: 0, of: 0, phase: Phase::Waits });
            self.layers.len() - 1
        });
        let layer = &mut self.layers[at];
        layer.phase = match step {
            Step::Received { bytes, of, .. } => {
                (layer.bytes, layer.of) = (*bytes, *of);
                match *bytes {
                    0 => Phase::Waits,
                    bytes if bytes < *of => Phase::Comes,
                    _ => Phase::IsHere,
                }
            }
            Step::Unpacking(_) => Phase::Unpacks,
            Step::Unpacked(_) => Phase::IsUnpacked,
        };
    }

    /// A log gets a line where something is done.
    fn log_line(&self, step: &Step) -> String {
        match step {
            Step::Received { blob, bytes, of } if bytes == of => {
                format!("received {} ({})\n", blob.short(), size(*of))
            }
            Step::Unpacked(blob) => format!("unpacked {}\n", blob.short()),
            _ => String::new(),
        }
    }

    /// What brings the terminal from the lines that are there to those that should be; nothing where they are the same.
    fn drawing(&mut self) -> String {
        let lines = self.lines();
        if lines == self.drawn {
            return String::new();
        }
        let mut text = self.back();
        lines.iter().for_each(|line| text.push_str(&format!("{line}\n")));
        self.drawn = lines;
        text
    }

    /// Back to where the first line begins, with nothing below.
    fn back(&mut self) -> String {
        match std::mem::take(&mut self.drawn).len() {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\r\x1b[J"),
        }
    }

    fn lines(&self) -> Vec<String> {
        let under_way = self.layers.iter().filter_map(|layer| {
            let state = match layer.phase {
                Phase::Comes => format!("{} of {}", bar(layer.bytes, layer.of), size(layer.of)),
                Phase::Unpacks => "unpacking".to_owned(),
                Phase::Waits | Phase::IsHere | Phase::IsUnpacked => return None,
            };
            Some(format!("{}  {state}", layer.blob.short()))
        });
        let mut lines: Vec<String> = under_way.take(MOST_LINES).collect();
        let (bytes, of) =
            self.layers.iter().fold((0, 0), |sum, layer| (sum.0 + layer.bytes, sum.1 + layer.of));
        let unpacked = self.layers.iter().filter(|layer| layer.phase == Phase::IsUnpacked).count();
        let came = if of > 0 { format!("{} of {}, ", bar(bytes, of), size(of)) } else { String::new() };
        lines.push(format!("{:<12}  {came}{unpacked} unpacked", "all"));
        lines
    }
}

fn bar(bytes: u64, of: u64) -> String {
    let share = |whole: u64| {
        u64::try_from(u128::from(bytes) * u128::from(whole) / u128::from(of.max(1))).unwrap_or(0)
    };
    let filled = share(BAR);
    let bar: String = (0..BAR).map(|at| if at < filled { '#' } else { '.' }).collect();
    format!("[{bar}] {:>3}%", share(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layer_under_way_has_a_line() {
        let mut state = State::new(true);
        let [one, two, three] = ["one", "two", "three"].map(|text| Digest::of(text.as_bytes()));
        let came = |blob: &Digest, bytes| Step::Received { blob: blob.clone(), bytes, of: 2048 };
        for step in [came(&one, 0), came(&two, 0), came(&three, 0), came(&one, 1024), came(&two, 2048)] {
            state.hear(&step);
        }
        state.hear(&Step::Unpacking(two.clone()));
        let expected = [
            format!("{}  [############............]  50% of 2.0KiB", one.short()),
            format!("{}  unpacking", two.short()),
            "all           [############............]  50% of 6.0KiB, 0 unpacked".to_owned(),
        ];
        assert_eq!(state.lines(), expected);
        let first = state.drawing();
        assert!(!first.contains('\x1b'), "{first:?}");
        assert_eq!(state.drawing(), "", "nothing has changed");
        state.hear(&Step::Unpacked(two));
        let second = state.drawing();
        assert!(second.starts_with("\x1b[3A\r\x1b[J") && second.ends_with("1 unpacked\n"), "{second:?}");
        assert_eq!(state.back(), "\x1b[2A\r\x1b[J");
        assert_eq!(state.back(), "");
    }
}
