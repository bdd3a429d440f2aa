//! Bytes to characters and sequences, and what is held of an unfinished one: a viewer may come between any two bytes,
//! and must read the rest as everyone else does.

use crate::csi::Csi;
use crate::terminal::Terminal;
use crate::title;
use crate::writer::Writer;

const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;
const ESCAPE: u8 = 0x1b;
const DELETE: u8 = 0x7f;
const BELL: u8 = 0x07;

/// Bytes of a control sequence; longer ones do nothing.
const SEQUENCE: usize = 256;
/// Intermediate bytes of an escape sequence; longer ones do nothing.
const INTERMEDIATES: usize = 4;
/// Bytes of a command (OSC) that are held, enough for every title that is kept; what follows is dropped.
const COMMAND: usize = 1024;
/// A command's number that no terminal has, under which the rest of one that we do not repeat is ignored.
const IGNORED_COMMAND: &str = "\x1b]9999;";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Characters; a part of one may be held.
    #[default]
    Ground,
    /// After ESC, perhaps with intermediates.
    Escape,
    /// After CSI.
    Sequence,
    /// After CSI, in what is too long or not well-formed.
    BadSequence,
    /// After OSC.
    Command,
    /// After OSC, and ESC: perhaps its end.
    CommandEnding,
    /// In a DCS, SOS, PM, APC or screen's title: nothing of it is read.
    Ignored,
    /// The same, after ESC.
    IgnoredEnding,
}

/// Where in a sequence the stream is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parser {
    state: State,
    /// What of the unfinished character or sequence has come.
    held: Vec<u8>,
}

impl Parser {
    pub(crate) fn feed(&mut self, mut bytes: &[u8], terminal: &mut Terminal) {
        while let Some((&byte, rest)) = bytes.split_first() {
            if self.state == State::Ground && byte >= 0x20 && byte != DELETE {
                let is_text = |byte: &u8| *byte >= 0x20 && *byte != DELETE;
                let end = bytes.iter().position(|byte| !is_text(byte)).unwrap_or(bytes.len());
                let (text, rest) = bytes.split_at(end);
                self.text(text, terminal);
                bytes = rest;
                continue;
            }
            self.byte(byte, terminal);
            bytes = rest;
        }
    }

    /// Text without control characters, which may begin or end in the middle of a character.
    fn text(&mut self, mut text: &[u8], terminal: &mut Terminal) {
        while !self.held.is_empty() {
            let Some((&byte, rest)) = text.split_first() else { return };
            self.held.push(byte);
            match std::str::from_utf8(&self.held) {
                Ok(characters) => {
                    characters.chars().for_each(|character| terminal.print(character));
                    self.held.clear();
                    text = rest;
                }
                Err(error) if error.error_len().is_none() => text = rest,
                Err(_) => {
                    // The byte was not the next one of this character, so it begins another.
                    self.held.clear();
                    terminal.print(char::REPLACEMENT_CHARACTER);
                }
            }
        }
        let ascii = text.iter().position(|byte| !byte.is_ascii()).unwrap_or(text.len());
        let (ascii, text) = text.split_at(ascii);
        terminal.print_ascii(ascii);
        let mut left = text.len();
        for chunk in text.utf8_chunks() {
            left -= chunk.valid().len() + chunk.invalid().len();
            chunk.valid().chars().for_each(|character| terminal.print(character));
            if chunk.invalid().is_empty() {
                continue;
            }
            let is_unfinished = std::str::from_utf8(chunk.invalid()).is_err_and(|e| e.error_len().is_none());
            if left == 0 && is_unfinished {
                self.held.extend_from_slice(chunk.invalid());
            } else {
                terminal.print(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    fn byte(&mut self, byte: u8, terminal: &mut Terminal) {
        match (self.state, byte) {
            (_, CANCEL | SUBSTITUTE) => {
                self.give_up_character(terminal);
                self.enter(State::Ground);
            }
            (State::Command, ESCAPE) => self.state = State::CommandEnding,
            (State::Ignored, ESCAPE) => self.state = State::IgnoredEnding,
            (_, ESCAPE) => {
                self.give_up_character(terminal);
                self.enter(State::Escape);
            }
            (State::CommandEnding, b'\\') | (State::Command, BELL) => {
                terminal.command(&self.held);
                self.enter(State::Ground);
            }
            (State::IgnoredEnding, b'\\') => self.enter(State::Ground),
            (State::CommandEnding | State::IgnoredEnding, _) => {
                self.enter(State::Escape);
                self.byte(byte, terminal);
            }
            (State::Command, 0..0x20) | (State::Ignored, _) | (State::Escape | State::Sequence, DELETE) => {}
            (State::Command, _) => {
                if self.held.len() < COMMAND {
                    self.held.push(byte);
                }
            }
            (State::Ground, _) => {
                self.give_up_character(terminal);
                terminal.control(byte);
            }
            (State::Escape | State::Sequence | State::BadSequence, 0..0x20) => terminal.control(byte),
            (State::Escape, _) => self.escape(byte, terminal),
            (State::Sequence, 0x40..) => {
                if let Some(csi) = Csi::parse(&self.held, byte) {
                    terminal.sequence(&csi);
                }
                self.enter(State::Ground);
            }
            (State::Sequence, _) => {
                if self.held.len() < SEQUENCE && follows(&self.held, byte) {
                    self.held.push(byte);
                } else {
                    self.enter(State::BadSequence);
                }
            }
            (State::BadSequence, 0x40..DELETE) => self.enter(State::Ground),
            (State::BadSequence, _) => {}
        }
    }

    fn escape(&mut self, byte: u8, terminal: &mut Terminal) {
        match byte {
            0x20..=0x2f => {
                if self.held.len() < INTERMEDIATES {
                    self.held.push(byte);
                }
            }
            b'[' if self.held.is_empty() => self.enter(State::Sequence),
            b']' if self.held.is_empty() => self.enter(State::Command),
            b'P' | b'X' | b'^' | b'_' | b'k' if self.held.is_empty() => self.enter(State::Ignored),
            _ => {
                terminal.escape(&self.held, byte);
                self.enter(State::Ground);
            }
        }
    }

    /// A character whose rest did not come.
    fn give_up_character(&mut self, terminal: &mut Terminal) {
        if self.state == State::Ground && !self.held.is_empty() {
            self.held.clear();
            terminal.print(char::REPLACEMENT_CHARACTER);
        }
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.held.clear();
        self.held.shrink_to(SEQUENCE);
    }

    /// Brings a viewer's terminal to the same place in the stream. Commands other than titles are not repeated.
    pub(crate) fn write(&self, writer: &mut Writer) {
        let held = || self.held.iter().copied();
        match self.state {
            State::Ground => held().for_each(|byte| writer.byte(byte)),
            State::Escape => {
                writer.byte(ESCAPE);
                held().for_each(|byte| writer.byte(byte));
            }
            State::Sequence => {
                writer.text("\x1b[");
                held().for_each(|byte| writer.byte(byte));
            }
            State::BadSequence => writer.text("\x1b[0<"),
            State::Command | State::CommandEnding => self.write_command(writer),
            // Of all strings that end with ST and nothing else, this one is ignored by the most terminals.
            State::Ignored | State::IgnoredEnding => writer.text("\x1b^"),
        }
        if matches!(self.state, State::CommandEnding | State::IgnoredEnding) {
            writer.byte(ESCAPE);
        }
    }

    fn write_command(&self, writer: &mut Writer) {
        let digits = self.held.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(self.held.len());
        let (number, rest) = self.held.split_at(digits);
        match (number, rest) {
            (_, []) if number.len() <= 4 => {
                writer.text("\x1b]");
                number.iter().for_each(|byte| writer.byte(*byte));
            }
            ([b'0'..=b'2'], [b';', text @ ..]) => {
                writer.text("\x1b]");
                number.iter().for_each(|byte| writer.byte(*byte));
                writer.text(";");
                let unfinished = unfinished_character(text);
                writer.text(&title::printable(text.get(..text.len() - unfinished).unwrap_or_default()));
                text.iter().skip(text.len() - unfinished).for_each(|byte| writer.byte(*byte));
            }
            _ => writer.text(IGNORED_COMMAND),
        }
    }
}

/// Whether a control sequence can go on with a byte: a prefix, then numbers, then intermediates.
fn follows(held: &[u8], byte: u8) -> bool {
    let has_intermediates = held.last().is_some_and(|last| (0x20..=0x2f).contains(last));
    match byte {
        0x20..=0x2f => true,
        b'0'..=b';' => !has_intermediates,
        b'<'..=b'?' => held.is_empty(),
        _ => false,
    }
}

/// How many bytes at the end are the beginning of a character.
fn unfinished_character(text: &[u8]) -> usize {
    let Some(last) = text.utf8_chunks().last() else { return 0 };
    match std::str::from_utf8(last.invalid()) {
        Err(error) if error.error_len().is_none() => last.invalid().len(),
        _ => 0,
    }
}
