//! What a runtime says when it does not do its work. It is a program of the owner's, but what it repeats may come from
//! inside: so it is bounded, cut off, made one line, and only ever shown to a person.
//!
//! It is listened to all the time: one that panics says more than a pipe holds, and would wait for a reader with all
//! that runs in it.

use std::fs::File;
use std::io::Read as _;
use std::time::Duration;

use jail::Ending;

/// How long a runtime may take until init is heard of. A machine that does other things at the same time is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How much of its words is shown.
const MOST: usize = 2048;

/// How much of what it said is kept: the beginning, where a panic says why, and the end, where all else does.
const BEGINNING: usize = 32 << 10;
const END: usize = 32 << 10;

/// What a runtime that works never says so much of. It is ended, as nobody listens for ever.
const TOO_MUCH: usize = 1 << 20;

/// How much is read at once.
const PIECE: usize = 64 << 10;

/// What programs in Go begin the reason with that they end themselves for; a trace of all that they did follows.
const PANICS: [&str; 3] = ["panic: ", "fatal error: ", "runtime: "];

/// Why there is no sandbox, as far as its runtime says.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct RuntimeWords(String);

/// What was heard of a runtime so far.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    beginning: Vec<u8>,
    end: Vec<u8>,
    total: usize,
}

impl Heard {
    /// Hears what has been said by now. It does not wait: what is not there yet is not the reason.
    pub(crate) fn listen(&mut self, complaints: Option<&mut File>) {
        let Some(complaints) = complaints else { return };
        let mut piece = vec![0; PIECE];
        while !self.is_too_much() {
            match complaints.read(&mut piece) {
                Ok(count @ 1..) => self.take(&piece[..count]),
                _ => return,
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len());
        let (first, rest) = bytes.split_at(bytes.len().min(BEGINNING - self.beginning.len()));
        self.beginning.extend_from_slice(first);
        self.end.extend_from_slice(rest);
        self.end.drain(..self.end.len().saturating_sub(END));
    }

    /// Whether no runtime that works would have said so much.
    pub(crate) const fn is_too_much(&self) -> bool {
        self.total > TOO_MUCH
    }

    /// Its reason, or else what is known otherwise.
    pub(crate) fn reason(&self, otherwise: &str) -> RuntimeWords {
        RuntimeWords(self.line().unwrap_or_else(|| otherwise.to_owned()))
    }

    /// One line of what it said: from where it panicked, or else the last of it, as the reason stands at the end.
    fn line(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&[&self.beginning[..], &self.end[..]].concat()).into_owned();
        let starts = |line: &&str| PANICS.iter().any(|panic| line.starts_with(panic));
        let panicked = text.lines().find(starts).map(|line| line.as_ptr() as usize - text.as_ptr() as usize);
        let words: Vec<&str> = text[panicked.unwrap_or(0)..].split_whitespace().collect();
        let line: String = words.join(" ").chars().filter(|letter| !letter.is_control()).collect();
        let length = line.chars().count();
        match (length, panicked) {
            (0, _) => None,
            (..=MOST, _) => Some(line),
            (_, Some(_)) => Some(format!("{} …", line.chars().take(MOST).collect::<String>())),
            (_, None) => Some(format!("… {}", line.chars().skip(length - MOST).collect::<String>())),
        }
    }
}

/// How a runtime ended that said nothing.
pub(crate) fn silent_end(program: &str, ending: Option<Ending>) -> String {
    match ending {
        Some(Ending::Signal(signal)) => format!("{program} was killed by signal {signal}"),
        Some(Ending::Code(code)) => format!("{program} ended with code {code} and without a word"),
        None => format!("its init is gone, and {program} said nothing"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_end_of_long_words_is_shown_on_one_line() {
        let (mut ours, mut theirs) = jail::complaints().unwrap();
        let mut heard = Heard::default();
        heard.listen(Some(&mut ours));
        assert_eq!(heard.reason("silence").to_string(), "silence");
        theirs.write_all(b"first\n\x1b[31msecond\t third\n").unwrap();
        heard.listen(Some(&mut ours));
        assert_eq!(heard.reason("silence").to_string(), "first [31msecond third");
        theirs.write_all(&[b'x'; 5000]).unwrap();
        heard.listen(Some(&mut ours));
        let long = heard.reason("silence").to_string();
        assert!(long.starts_with("… x") && long.chars().count() == MOST + 2, "{}", long.len());
    }

    #[test]
    fn of_a_panic_the_beginning_is_shown_however_long_its_trace() {
        let mut heard = Heard::default();
        heard.take(b"starting\npanic: no memory\n\n");
        for number in 0..20_000 {
            heard.take(format!("goroutine {number} [running]:\n").as_bytes());
        }
        let said = heard.reason("").to_string();
        assert!(said.starts_with("panic: no memory goroutine 0 ") && said.ends_with(" …"), "{said}");
        assert!(heard.beginning.len() + heard.end.len() <= BEGINNING + END && !heard.is_too_much());
        heard.take(&[b'x'; TOO_MUCH]);
        assert!(heard.is_too_much() && heard.end.len() == END);
    }
}
