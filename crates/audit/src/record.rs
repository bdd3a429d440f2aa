//! One line of the log: how a record is written, byte for byte, and how it is read back.
//!
//! ```text
//! {"seq":7,"time":"2026-11-16T03:04:05.678Z","event":{"kind":"paused"},"prev":"<64 digits>","hash":"<64 digits>"}
//! ^------------------- these bytes are hashed, from the brace to the quote -----------------^
//! ```
//!
//! The hash is SHA-256 over the bytes of the line from its first up to, not including, the comma before `"hash"`, which
//! is always the 75th byte from the line's end. `prev` is the `hash` of the record before. A verifier needs neither to
//! understand the event nor to write JSON in some canonical way.

use std::borrow::Cow;
use std::io::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::hash::DIGITS;
use crate::text::is_visible;
use crate::{Event, Hash, Text, Time};

/// How long a record may be, its newline included.
pub const RECORD_LIMIT: usize = 64 * 1024;

const BEFORE_HASH: &[u8] = b",\"hash\":\"";
const AFTER_HASH: &[u8] = b"\"}";
/// What follows the hashed bytes.
const TAIL: usize = BEFORE_HASH.len() + DIGITS + AFTER_HASH.len();

/// A record as it was read. That it is here does not say that the chain is whole: [`verify`](crate::verify()) does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number; a sandbox's first is 1.
    pub seq: u64,
    /// When it was written.
    pub time: Time,
    /// What happened.
    pub event: Recorded,
    /// The hash of the record before.
    pub prev: Hash,
    /// Its own hash.
    pub hash: Hash,
    line: String,
}

/// An event as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// One that this version knows.
    Known(Event),
    /// One of another version's, as it is: its JSON, made inert.
    Unknown(Text),
}

impl Record {
    /// Reads a line, without its newline.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let whole = Whole::parse(line)?;
        let Envelope { seq, time, event, prev, hash } = whole.envelope;
        let event = match serde_json::from_str(event.get()) {
            Ok(event) => Recorded::Known(event),
            Err(_) => Recorded::Unknown(Text::new(event.get())),
        };
        Some(Self { seq, time, event, prev, hash, line: str::from_utf8(line).ok()?.to_owned() })
    }

    /// The record as JSON, as it lies in the file. A terminal may see it: what our writer would have escaped and
    /// another did not is escaped here, with the same meaning.
    #[must_use]
    pub fn json(&self) -> Cow<'_, str> {
        let acts = |c: char| c.is_ascii_control() || !c.is_ascii() && !is_visible(c);
        if !self.line.contains(acts) {
            return Cow::Borrowed(&self.line);
        }
        let mut json = String::with_capacity(self.line.len());
        for character in self.line.chars() {
            match character {
                // JSON allows these between its tokens only, where a blank means the same.
                '\t' | '\r' | '\n' => json.push(' '),
                _ if acts(character) => {
                    let units = character.encode_utf16(&mut [0; 2]).to_vec();
                    units.iter().for_each(|unit| json.push_str(&format!("\\u{unit:04x}")));
                }
                _ => json.push(character),
            }
        }
        Cow::Owned(json)
    }
}

/// The outer object; what it holds as an event is left as it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Envelope<'line> {
    pub(crate) seq: u64,
    pub(crate) time: Time,
    #[serde(borrow)]
    pub(crate) event: &'line RawValue,
    pub(crate) prev: Hash,
    pub(crate) hash: Hash,
}

/// A line that has the shape of a record, from its first byte to its last.
pub(crate) struct Whole<'line> {
    pub(crate) envelope: Envelope<'line>,
    hashed: &'line [u8],
}

impl<'line> Whole<'line> {
    /// Reads a line, without its newline.
    pub(crate) fn parse(line: &'line [u8]) -> Option<Self> {
        let (hashed, tail) = line.split_at_checked(line.len().checked_sub(TAIL)?)?;
        let digits = tail.strip_prefix(BEFORE_HASH)?.strip_suffix(AFTER_HASH)?;
        let hash = Hash::from_digits(digits)?;
        let envelope: Envelope<'line> = serde_json::from_str(str::from_utf8(line).ok()?).ok()?;
        (envelope.hash == hash).then_some(Self { envelope, hashed })
    }

    /// Whether its hash is the hash of its bytes.
    pub(crate) fn is_intact(&self) -> bool {
        Hash::of(self.hashed) == self.envelope.hash
    }
}

/// Appends a record to `line`, its newline included, and says what its hash is.
pub(crate) fn encode(
    line: &mut Vec<u8>,
    (seq, prev): (u64, Hash),
    time: Time,
    event: &Event,
) -> serde_json::Result<Hash> {
    let start = line.len();
    // Writing to memory does not fail.
    let _ = write!(line, "{{\"seq\":{seq},\"time\":\"");
    line.extend_from_slice(&time.characters());
    line.extend_from_slice(b"\",\"event\":");
    serde_json::to_writer(&mut *line, event)?;
    line.extend_from_slice(b",\"prev\":\"");
    line.extend_from_slice(&prev.digits());
    line.push(b'"');
    let hash = Hash::of(&line[start..]);
    line.extend_from_slice(BEFORE_HASH);
    line.extend_from_slice(&hash.digits());
    line.extend_from_slice(AFTER_HASH);
    line.push(b'\n');
    Ok(hash)
}

/// Whether `piece` may be what is there of record `seq` after its write was cut off: it begins as that record does and
/// has not got to its end. Doubt is refused, so that a last record which somebody changed is not taken for a torn one.
pub(crate) fn is_begun(piece: &[u8], seq: u64) -> bool {
    let beginning = format!("{{\"seq\":{seq},\"time\":\"");
    let length = beginning.len().min(piece.len());
    let begins = length > 0 && piece[..length] == beginning.as_bytes()[..length];
    let end = &piece[piece.len().saturating_sub(TAIL + 1)..];
    let has_hash = end.windows(BEFORE_HASH.len()).position(|window| window == BEFORE_HASH);
    let has_end = has_hash.is_some_and(|at| end.len() - at >= BEFORE_HASH.len() + DIGITS);
    begins && !has_end && !piece.ends_with(AFTER_HASH)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn line(event: &Event) -> Vec<u8> {
        let time = Time::from(UNIX_EPOCH + Duration::from_millis(1_794_798_245_678));
        let mut line = Vec::new();
        encode(&mut line, (7, Hash::ZERO), time, event).unwrap();
        assert_eq!(line.pop(), Some(b'\n'));
        line
    }

    /// A line as somebody else might write it, with a hash that fits.
    fn sealed(before_hash: &str) -> Vec<u8> {
        format!("{before_hash},\"hash\":\"{}\"}}", Hash::of(before_hash.as_bytes())).into_bytes()
    }

    #[test]
    fn the_bytes_are_as_documented() {
        let zeros = "0".repeat(64);
        let hashed = format!(
            r#"{{"seq":7,"time":"2026-11-16T03:04:05.678Z","event":{{"kind":"paused"}},"prev":"{zeros}""#
        );
        assert_eq!(line(&Event::Paused), sealed(&hashed));
        assert_eq!(line(&Event::Paused)[hashed.len()..].len(), 75);
    }

    #[test]
    fn a_kind_of_another_version_is_shown_as_it_is() {
        let known = String::from_utf8(line(&Event::Paused)).unwrap();
        let (before_hash, _) = known.split_once(",\"hash\"").unwrap();
        let strange = before_hash.replace("\"paused\"", "\"dreamt\",\"of\":\"\u{202e}\u{7f}\"");
        let record = Record::parse(&sealed(&strange)).unwrap();
        let Recorded::Unknown(shown) = &record.event else { panic!("{record:?}") };
        assert_eq!(shown.as_str(), r#"{"kind":"dreamt","of":"\u{202e}\x7f"}"#);
        assert!(record.json().contains(r#""of":"\u202e\u007f"}"#), "{}", record.json());
    }

    #[test]
    fn json_for_a_terminal_has_no_control_between_its_tokens() {
        let known = String::from_utf8(line(&Event::Paused)).unwrap();
        let (before_hash, _) = known.split_once(",\"hash\"").unwrap();
        let record = Record::parse(&sealed(&before_hash.replace("\"event\":", "\"event\":\r\t"))).unwrap();
        assert!(record.json().contains("\"event\":  {"));
    }

    #[test]
    fn only_the_exact_shape_is_a_record() {
        let good = String::from_utf8(line(&Event::Paused)).unwrap();
        assert!(Whole::parse(good.as_bytes()).unwrap().is_intact());
        let (before_hash, _) = good.split_once(",\"hash\"").unwrap();
        for wrong in [
            sealed(&before_hash.replace("\"seq\":7", "\"seq\":7,\"seq\":7")),
            sealed(&before_hash.replace("\"seq\":7", "\"seq\":7,\"more\":7")),
            sealed(&before_hash.replace("\"seq\":7", "\"seq\":-7")),
            sealed(&before_hash.replace("2026", "26")),
            format!("{good} ").into_bytes(),
            good.replace(",\"hash\"", ", \"hash\"").into_bytes(),
            good.as_bytes()[..good.len() - 1].to_vec(),
            Vec::new(),
            vec![b'['; 60_000],
        ] {
            assert!(Whole::parse(&wrong).is_none(), "{}", String::from_utf8_lossy(&wrong));
        }
    }

    #[test]
    fn a_changed_record_is_never_a_torn_one() {
        let good = line(&Event::Removed);
        for at in 0..good.len() {
            let mut changed = good.clone();
            changed[at] ^= 1;
            assert!(!is_begun(&changed, 7), "a flip at {at}");
            changed.remove(at);
            assert!(!is_begun(&changed, 7), "a deletion at {at}");
        }
        let cut = (1..good.len()).filter(|length| is_begun(&good[..*length], 7)).count();
        assert!(cut > good.len() - 6, "{cut} of {}", good.len());
        assert!(!is_begun(&good[..20], 8) && !is_begun(b"", 7));
    }
}
