//! The central promise: whoever comes between any two bytes sees, then and ever after, what the others see.

use screen::{Screen, Size};

use crate::alacritty::Viewer;
use crate::scanner;

/// Leaves a terminal in as odd a state as programs can.
pub(crate) const DIRT: &[u8] = b"\x1b[?1049h\x1b[41;1;4mdirt everywhere\x1b[5;9r\x1b[?6h\x1b[4h\x1b[?7l\
    \x1b(0\x1b)0\x0e\x1b[?1h\x1b=\x1b[?1003h\x1b[?1006h\x1b[?2004h\x1b[?1004h\x1b[?25l\x1b[5 q\x1b[3g\x1b7\
    \x1b[>4;2m\x1b[>5u\x1b[>7u\x1b[?5h\x1b[?2031h";

/// Numbers that look random and are the same each time.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }
}

/// Cuts a stream at one place and compares a late viewer of our own kind, clean or dirty, with one from the start.
#[track_caller]
pub(crate) fn check_own(stream: &[u8], at: usize, size: Size, state_before: &[u8]) {
    let (before, after) = stream.split_at(at);
    let mut early = Screen::new(size);
    early.feed(before);
    let restored = early.restore();
    scanner::check(&restored);
    scanner::check(&early.leave());
    let mut late = Screen::new(size);
    late.feed(state_before);
    late.feed(&restored);
    assert_same(&early, &late, "at the cut", stream, at);
    early.feed(after);
    late.feed(after);
    assert_same(&early, &late, "at the end", stream, at);
}

#[track_caller]
fn assert_same(early: &Screen, late: &Screen, when: &str, stream: &[u8], at: usize) {
    if early != late {
        let context = &stream[at.saturating_sub(60)..(at + 60).min(stream.len())];
        let (left, right) = (format!("{early:#?}"), format!("{late:#?}"));
        let different: Vec<String> = left
            .lines()
            .zip(right.lines())
            .filter(|(left, right)| left != right)
            .take(8)
            .map(|(left, right)| format!("{left} <> {right}"))
            .collect();
        panic!("{when}, cut at {at} in {}:\n{}", context.escape_ascii(), different.join("\n"));
    }
}

/// The same with a terminal that is not ours on both sides.
#[track_caller]
pub(crate) fn check_other(stream: &[u8], at: usize, size: Size, state_before: &[u8]) {
    let (before, after) = stream.split_at(at);
    let mut screen = Screen::new(size);
    screen.feed(before);
    // Who was always there came to an empty screen, with a terminal in the same state.
    let mut early = Viewer::new(size);
    early.feed(b"\x1b]2;my own\x07");
    early.feed(state_before);
    early.feed(&Screen::new(size).restore());
    early.feed(before);
    let mut late = Viewer::new(size);
    late.feed(b"\x1b]2;my own\x07");
    late.feed(state_before);
    let asked = late.replies().len();
    late.feed(&screen.restore());
    assert_eq!(late.replies().len(), asked, "restoring made the terminal answer");
    compare(&early, &late, "at the cut", stream, at);
    early.feed(after);
    late.feed(after);
    compare(&early, &late, "at the end", stream, at);
}

#[track_caller]
fn compare(early: &Viewer, late: &Viewer, when: &str, stream: &[u8], at: usize) {
    let different: Vec<String> = early
        .facts()
        .into_iter()
        .zip(late.facts())
        .filter(|(early, late)| early != late)
        .map(|(early, late)| difference(&early, &late))
        .collect();
    if !different.is_empty() {
        let context = &stream[at.saturating_sub(60)..(at + 60).min(stream.len())];
        panic!("{when}, cut at {at} in {}:\n{}", context.escape_ascii(), different.join("\n"));
    }
}

/// Of two lines only the cells that differ.
fn difference(early: &str, late: &str) -> String {
    let pairs = early.split('|').zip(late.split('|')).enumerate().filter(|(_, (early, late))| early != late);
    let cells: Vec<String> =
        pairs.take(3).map(|(index, (early, late))| format!("{index}: {early:?} <> {late:?}")).collect();
    format!(
        "{}: always there <> came late: {}",
        early.split(':').next().unwrap_or_default(),
        cells.join(", ")
    )
}
