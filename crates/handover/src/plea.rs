//! What the supervisor may ask of its keeper; [`Answer`](crate::Answer) is what it hears back. A byte or two: there is
//! nothing to parse, and what is not on the list ends the sandbox.

use std::io::{self, Read};

/// What the supervisor asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plea {
    /// End the sandbox.
    End,
    /// End the sandbox, as nothing is heard of its init any more.
    Lost,
    /// End the sandbox, as the command that it ends with has ended with this code.
    Exited(u8),
    /// End the sandbox, as its life time is over.
    Expired,
    /// End the sandbox, as nobody has used it for long enough.
    Idle,
    /// Which limits were reached since the last such question.
    Limits,
    /// The same, and the end of everything inside: the command that the sandbox ends with has ended, which is said in a moment.
    Empty,
    /// The next part of the record, as the last is full.
    Part,
    /// Init has been heard of, for the first time. No question.
    Up,
}

impl Plea {
    /// As it travels.
    #[must_use]
    pub fn bytes(self) -> Vec<u8> {
        match self {
            Self::End => vec![b'E'],
            Self::Lost => vec![b'L'],
            Self::Exited(code) => vec![b'X', code],
            Self::Expired => vec![b'T'],
            Self::Idle => vec![b'I'],
            Self::Limits => vec![b'M'],
            Self::Empty => vec![b'K'],
            Self::Part => vec![b'P'],
            Self::Up => vec![b'U'],
        }
    }

    /// Reads one; none where the bytes are none.
    pub fn read(mut socket: impl Read) -> io::Result<Option<Self>> {
        let mut byte = [0];
        socket.read_exact(&mut byte)?;
        Ok(match byte[0] {
            b'E' => Some(Self::End),
            b'L' => Some(Self::Lost),
            b'T' => Some(Self::Expired),
            b'I' => Some(Self::Idle),
            b'M' => Some(Self::Limits),
            b'K' => Some(Self::Empty),
            b'P' => Some(Self::Part),
            b'U' => Some(Self::Up),
            b'X' => {
                socket.read_exact(&mut byte)?;
                Some(Self::Exited(byte[0]))
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pleas_survive_their_bytes_and_nothing_else_is_one() {
        let ends = [Plea::End, Plea::Lost, Plea::Exited(0), Plea::Exited(255), Plea::Expired, Plea::Idle];
        for plea in ends.into_iter().chain([Plea::Limits, Plea::Empty, Plea::Part, Plea::Up]) {
            assert_eq!(Plea::read(plea.bytes().as_slice()).unwrap(), Some(plea));
        }
        assert_eq!(Plea::read(&b"Q"[..]).unwrap(), None);
        assert!(Plea::read(&b"X"[..]).is_err());
        assert!(Plea::read(&b""[..]).is_err());
    }
}
