//! One question and one answer of DNS, as bytes. Whatever comes from inside is hostile: it is read once, in bounds, and
//! never followed anywhere.

use std::net::Ipv4Addr;

use policy::network::HostName;

/// The type of a record that holds an address of IPv4.
pub(crate) const A: u16 = 1;

const HEADER: usize = 12;
const INTERNET: u16 = 1;
/// The longest name, as it travels.
const LONGEST_NAME: usize = 255;
const LONGEST_LABEL: u8 = 63;

const IS_ANSWER: u16 = 0x8000;
const OPERATION: u16 = 0x7800;
const IS_CUT: u16 = 0x0200;
const WANTS_RECURSION: u16 = 0x0100;
const HAS_RECURSION: u16 = 0x0080;

/// The name in the question, as whoever answers points to it.
const SAME_NAME: [u8; 2] = [0xc0, HEADER as u8];

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question<'bytes> {
    id: u16,
    flags: u16,
    /// As it was asked, with the case of its letters, type and class.
    section: &'bytes [u8],
    /// What is asked for; none where no host is called so.
    pub(crate) name: Option<HostName>,
    /// The type of the records.
    pub(crate) kind: u16,
}

/// What is said to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The address, for so many seconds.
    Address(Ipv4Addr, u32),
    /// There is the name, and nothing of that type.
    Nothing,
    /// There is no such name.
    NoName,
    /// Not now.
    Failure,
}

impl Reply {
    const fn code(self) -> u16 {
        match self {
            Self::Address(..) | Self::Nothing => 0,
            Self::Failure => 2,
            Self::NoName => 3,
        }
    }
}

/// What is said to bytes that are no question of ours: nothing at all, or an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotAsked(pub(crate) Option<[u8; HEADER]>);

impl<'bytes> Question<'bytes> {
    /// Reads a question. There is exactly one in a message, and what stands behind it is not looked at.
    pub(crate) fn read(bytes: &'bytes [u8]) -> Result<Self, NotAsked> {
        const MALFORMED: u16 = 1;
        const NOT_IMPLEMENTED: u16 = 4;
        const REFUSED: u16 = 5;
        let word = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let header = || Some([word(0)?, word(2)?, word(4)?]);
        let [id, flags, count] = header().filter(|_| bytes.len() >= HEADER).ok_or(NotAsked(None))?;
        // An answer to an answer would go on for ever.
        if flags & IS_ANSWER != 0 {
            return Err(NotAsked(None));
        }
        let error = |code| NotAsked(Some(head(id, flags, code, [0, 0])));
        if flags & OPERATION != 0 {
            return Err(error(NOT_IMPLEMENTED));
        }
        let is_one = count == 1 && flags & IS_CUT == 0;
        let (name, end) = is_one.then(|| labels(bytes)).flatten().ok_or_else(|| error(MALFORMED))?;
        let (Some(kind), Some(class)) = (word(end), word(end + 2)) else { return Err(error(MALFORMED)) };
        if class != INTERNET {
            return Err(error(REFUSED));
        }
        let section = bytes.get(HEADER..end + 4).unwrap_or_default();
        Ok(Self { id, flags, section, name: name.parse().ok(), kind })
    }

    /// The answer to it, as bytes.
    pub(crate) fn answer(&self, reply: Reply) -> Vec<u8> {
        let records = u16::from(matches!(reply, Reply::Address(..)));
        let mut bytes = head(self.id, self.flags, reply.code(), [1, records]).to_vec();
        bytes.extend(self.section);
        if let Reply::Address(address, seconds) = reply {
            bytes.extend(SAME_NAME);
            bytes.extend(A.to_be_bytes());
            bytes.extend(INTERNET.to_be_bytes());
            bytes.extend(seconds.to_be_bytes());
            bytes.extend(4u16.to_be_bytes());
            bytes.extend(address.octets());
        }
        bytes
    }
}

fn head(id: u16, flags: u16, code: u16, [questions, records]: [u16; 2]) -> [u8; HEADER] {
    let flags = IS_ANSWER | HAS_RECURSION | flags & (OPERATION | WANTS_RECURSION) | code;
    let mut bytes = [0; HEADER];
    for (place, word) in bytes.chunks_exact_mut(2).zip([id, flags, questions, records]) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

/// The name behind the header, and where it ends. A name that is elsewhere is none in a question.
fn labels(bytes: &[u8]) -> Option<(String, usize)> {
    let mut name = String::new();
    let mut at = HEADER;
    loop {
        let length = *bytes.get(at)?;
        at += 1;
        if length == 0 {
            return Some((name, at));
        }
        let label = bytes.get(at..at + usize::from(length)).filter(|_| length <= LONGEST_LABEL)?;
        at += label.len();
        if at - HEADER >= LONGEST_NAME {
            return None;
        }
        if !name.is_empty() {
            name.push('.');
        }
        // A dot within a label is none between two; what no name has is spelled so that none is read.
        let shown = |byte: &u8| if *byte == b'.' || !byte.is_ascii() { ' ' } else { char::from(*byte) };
        name.extend(label.iter().map(shown));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn question(name: &str, kind: u16) -> Vec<u8> {
        let mut bytes = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            bytes.push(label.len() as u8);
            bytes.extend(label.as_bytes());
        }
        bytes.push(0);
        bytes.extend(kind.to_be_bytes());
        bytes.extend(INTERNET.to_be_bytes());
        bytes
    }

    #[test]
    fn a_question_is_read_and_answered() {
        let bytes = question("ExAmple.com", A);
        let question = Question::read(&bytes).unwrap();
        assert_eq!(question.name, Some("example.com".parse().unwrap()));
        assert_eq!(question.kind, A);
        let answer = question.answer(Reply::Address(Ipv4Addr::new(198, 18, 0, 1), 60));
        assert_eq!(answer[..12], [0xab, 0xcd, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
        // The letters are as they were asked.
        assert_eq!(answer[12..bytes.len()], bytes[12..]);
        assert_eq!(answer[bytes.len()..], [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18, 0, 1]);
        let none = question.answer(Reply::NoName);
        assert_eq!(none[2..8], [0x81, 0x83, 0, 1, 0, 0]);
        assert_eq!(question.answer(Reply::Nothing).len(), bytes.len());
        assert_eq!(question.answer(Reply::Failure)[3], 0x82);
    }

    #[test]
    fn what_is_no_question_gets_an_error_or_nothing() {
        let good = question("example.com", A);
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            Question::read(&bytes).map(drop).unwrap_err().0.map(|answer| answer[3] & 0xf)
        };
        assert_eq!(with(2, 0x81), None, "an answer");
        assert_eq!(with(2, 0x29), Some(4), "an update");
        assert_eq!(with(2, 0x03), Some(1), "cut");
        assert_eq!(with(5, 0), Some(1), "no question");
        assert_eq!(with(5, 2), Some(1), "two questions");
        assert_eq!(with(12, 0xc0), Some(1), "a name elsewhere");
        assert_eq!(with(12, 64), Some(1), "a long label");
        assert_eq!(with(good.len() - 1, 3), Some(5), "chaos");
        assert_eq!(Question::read(&good[..11]), Err(NotAsked(None)));
        assert!(Question::read(&good[..good.len() - 1]).is_err());
        let long = question(&vec!["a".repeat(63); 4].join("."), A);
        assert!(Question::read(&long).is_err());
    }

    #[test]
    fn what_is_called_like_no_host_has_no_name() {
        for name in ["exa mple.com", "a\0b.com", "a/b", "b\u{fc}cher.de", "1.2.3.4"] {
            let bytes = question(name, A);
            assert_eq!(Question::read(&bytes).unwrap().name, None, "{name:?}");
        }
        let mut bytes = question("exampleXcom", A);
        bytes[20] = b'.';
        assert_eq!(Question::read(&bytes).unwrap().name, None);
        // The root has no name either.
        assert_eq!(
            Question::read(&[&[0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0][..], &[0, 2, 0, 1]].concat())
                .unwrap()
                .name,
            None
        );
    }

    proptest! {
        #[test]
        fn bytes_are_read_in_bounds(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            if let Ok(question) = Question::read(&bytes) {
                let answer = question.answer(Reply::NoName);
                prop_assert!(answer.len() <= bytes.len());
            }
        }
    }
}
