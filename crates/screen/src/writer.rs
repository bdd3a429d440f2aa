//! What a viewer is sent, put together from constants of ours, numbers and characters of the screen.

use crate::size::Size;

/// Bytes for a viewer.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn for_screen(size: Size) -> Self {
        Self(Vec::with_capacity(1024 + size.height() * size.width() / 2))
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(crate) fn character(&mut self, character: char) {
        self.text(character.encode_utf8(&mut [0; 4]));
    }

    pub(crate) fn number(&mut self, number: u16) {
        let mut digits = [0; 5];
        let mut start = digits.len();
        let mut rest = number;
        loop {
            start -= 1;
            digits[start] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.0.extend_from_slice(&digits[start..]);
    }

    /// Numbers with semicolons between them.
    pub(crate) fn numbers(&mut self, before: &str, numbers: &[u16], after: &str) {
        self.text(before);
        for (index, number) in numbers.iter().enumerate() {
            if index > 0 {
                self.text(";");
            }
            self.number(*number);
        }
        self.text(after);
    }

    /// The cursor to a place counted from zero.
    pub(crate) fn move_to(&mut self, row: usize, column: usize) {
        self.numbers("\x1b[", &[one_based(row), one_based(column)], "H");
    }

    /// The cursor to a column counted from zero.
    pub(crate) fn move_to_column(&mut self, column: usize) {
        self.numbers("\x1b[", &[one_based(column)], "G");
    }

    /// The cursor so many columns to the right.
    pub(crate) fn move_right(&mut self, columns: usize) {
        self.numbers("\x1b[", &[u16::try_from(columns).unwrap_or(u16::MAX)], "C");
    }
}

fn one_based(index: usize) -> u16 {
    u16::try_from(index + 1).unwrap_or(u16::MAX)
}
