//! Bytes from inside a sandbox as text that is inert wherever it is shown, and from which the bytes come back.
//!
//! The escaping: printable characters stand for themselves; everything else begins with a backslash.
//!
//! | text | bytes |
//! |---|---|
//! | `\\` | a backslash |
//! | `\n`, `\r`, `\t` | line feed, carriage return, tab |
//! | `\x1b` | this one byte: an ASCII control character, or a byte that is not part of UTF-8; two digits |
//! | `\u{202e}` | this character, which acts, or cannot be seen, or is drawn over another |
//! | `\[17 bytes more]` | only at the end: 17 bytes were cut off here |
//!
//! Such characters are controls beyond ASCII, bidi and other format characters, combining marks, white space other than
//! a blank, fillers, private and unassigned ones.
//!
//! In the file the text is a JSON string, in which each backslash is written twice.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How long a text may be, in bytes as it lies in the file between its quotes, without the mark of what was cut off.
pub const TEXT_LIMIT: usize = 4096;

/// Bytes from inside, escaped. See the module for how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Text(String);

/// A text that is not escaped as this crate escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an escape that stands for nothing at byte {0} of a text")]
pub struct TextError(usize);

impl Text {
    /// Escapes `bytes`, as many of them as [`TEXT_LIMIT`] allows.
    #[must_use]
    pub fn new(bytes: impl AsRef<[u8]>) -> Self {
        Self::within(bytes.as_ref(), TEXT_LIMIT)
    }

    /// Escapes as many of `bytes` as fit into `room` bytes of the file, and marks how many do not.
    pub(crate) fn within(bytes: &[u8], room: usize) -> Self {
        Self::fit(bytes, room).text
    }

    /// As [`Text::within`], and says what it took.
    pub(crate) fn fit(bytes: &[u8], room: usize) -> Fit {
        // No byte of ours takes less than one of the file's, so what is beyond is not even looked at.
        let looked_at = &bytes[..bytes.len().min(room.saturating_add(1))];
        let mut escaped = Escaped { text: String::with_capacity(looked_at.len()), cost: 0, room };
        let missing = bytes.len() - escaped.push(looked_at);
        let Escaped { mut text, cost, .. } = escaped;
        if missing > 0 {
            text.push_str(&format!("\\[{missing} bytes more]"));
        }
        Fit { text: Self(text), cost, missing }
    }

    /// The text, inert.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bytes that the text stands for, without those that were cut off.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        // It was escaped or parsed by us, so there is nothing that cannot be read.
        unescape(&self.0).unwrap_or_default().0
    }

    /// How many bytes were cut off.
    #[must_use]
    pub fn missing(&self) -> u64 {
        unescape(&self.0).unwrap_or_default().1
    }
}

/// A text that was made to fit.
pub(crate) struct Fit {
    pub(crate) text: Text,
    /// How many bytes it takes in the file between its quotes, without the mark.
    pub(crate) cost: usize,
    /// How many bytes were cut off.
    pub(crate) missing: usize,
}

/// JSON writes these two with a backslash before them.
const fn cost(byte: u8) -> usize {
    if matches!(byte, b'\\' | b'"') { 2 } else { 1 }
}

/// A text on its way, and how much room it has taken.
struct Escaped {
    text: String,
    cost: usize,
    room: usize,
}

impl Escaped {
    /// Escapes bytes until there is no more room; says how many were taken.
    fn push(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        for chunk in bytes.utf8_chunks() {
            let mut rest = chunk.valid();
            while let Some(character) = rest.chars().next() {
                // Most of what is ever written is plain and goes by the run.
                let run = rest.bytes().position(|byte| !is_plain(byte)).unwrap_or(rest.len());
                let length = if run > 0 { run.min(self.room - self.cost) } else { character.len_utf8() };
                let fits =
                    if run > 0 { self.push_plain(&rest[..length]) } else { self.push_character(character) };
                if !fits {
                    return taken;
                }
                taken += length;
                rest = &rest[length..];
            }
            for byte in chunk.invalid() {
                if !self.push_piece(&format!("\\x{byte:02x}")) {
                    return taken;
                }
                taken += 1;
            }
        }
        taken
    }

    fn push_character(&mut self, character: char) -> bool {
        match character {
            '\\' => self.push_piece("\\\\"),
            '\n' => self.push_piece("\\n"),
            '\r' => self.push_piece("\\r"),
            '\t' => self.push_piece("\\t"),
            '"' => self.push_piece("\""),
            _ if character.is_ascii() => self.push_piece(&format!("\\x{:02x}", u32::from(character))),
            _ if is_visible(character) => {
                let mut place = [0; 4];
                self.push_piece(character.encode_utf8(&mut place))
            }
            _ => self.push_piece(&format!("\\u{{{:x}}}", u32::from(character))),
        }
    }

    /// Takes what stands for itself; nothing is taken where there is no room at all.
    fn push_plain(&mut self, run: &str) -> bool {
        self.cost += run.len();
        self.text.push_str(run);
        !run.is_empty()
    }

    fn push_piece(&mut self, piece: &str) -> bool {
        let cost: usize = piece.bytes().map(cost).sum();
        let fits = self.cost + cost <= self.room;
        if fits {
            self.cost += cost;
            self.text.push_str(piece);
        }
        fits
    }
}

/// Whether a byte stands for itself, in a text and in JSON.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && cost(byte) == 1
}

/// Whether a character beyond ASCII can be seen and does nothing to its neighbours. The standard library knows which
/// are controls, formats, spaces, combining, private or unassigned; the others look like nothing though they are
/// letters or symbols: the Hangul fillers, the empty Braille pattern, the empty note head.
pub(crate) fn is_visible(character: char) -> bool {
    let looks_like_nothing =
        matches!(character, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{2800}' | '\u{1d159}');
    !looks_like_nothing && character.escape_debug().len() == 1
}

/// The bytes of an escaped text and how many were cut off, or where it is not escaped as it should be.
fn unescape(text: &str) -> Result<(Vec<u8>, u64), TextError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let wrong = TextError(text.len() - rest.len() + at);
        let escape = &rest[at + 1..];
        if let Some(mark) = escape.strip_prefix('[') {
            let count = mark.strip_suffix(" bytes more]").and_then(count).ok_or(wrong)?;
            return Ok((bytes, count));
        }
        let length = unescape_one(escape, &mut bytes).ok_or(wrong)?;
        rest = &escape[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok((bytes, 0))
}

/// The number in a mark: digits only, and never nothing.
pub(crate) fn count(digits: &str) -> Option<u64> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    if plain { digits.parse().ok() } else { None }
}

/// Reads what follows a backslash; says how long it was.
fn unescape_one(escape: &str, bytes: &mut Vec<u8>) -> Option<usize> {
    let simple = match escape.as_bytes().first()? {
        b'\\' => b'\\',
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'x' => {
            bytes.push(u8::from_str_radix(hexadecimal(escape.get(1..3)?)?, 16).ok()?);
            return Some(3);
        }
        b'u' => {
            let digits = escape.strip_prefix("u{")?;
            let digits = &digits[..digits.find('}').filter(|length| *length <= 6)?];
            let character = char::from_u32(u32::from_str_radix(hexadecimal(digits)?, 16).ok()?)?;
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(digits.len() + 3);
        }
        _ => return None,
    };
    bytes.push(simple);
    Some(1)
}

fn hexadecimal(digits: &str) -> Option<&str> {
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(digits)
}

impl FromStr for Text {
    type Err = TextError;

    /// Reads an escaped text. What should have been escaped and was not is escaped now, whoever wrote it.
    fn from_str(text: &str) -> Result<Self, TextError> {
        let (bytes, missing) = unescape(text)?;
        let mut read = Self::within(&bytes, usize::MAX);
        if missing > 0 {
            read.0.push_str(&format!("\\[{missing} bytes more]"));
        }
        Ok(read)
    }
}

impl TryFrom<String> for Text {
    type Error = TextError;

    fn try_from(text: String) -> Result<Self, TextError> {
        text.parse()
    }
}

impl From<Text> for String {
    fn from(text: Text) -> String {
        text.0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
